/* SPDX-License-Identifier: Apache-2.0
 * The check before timing: right products of every kind pass, and no longer when an operand is another. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "bench/product_check.h"

static tp_device *device;

static void open_device(void)
{
    tp_device_list *list = NULL;
    tp_device_choice choice;
    cr_assert_eq(tp_device_list_create(&list), TPUCL_OK);
    cr_assert_eq(tp_device_list_select(list, NULL, &choice), TPUCL_OK);
    cr_assert_eq(tp_device_open(list, choice.index, NULL, &device), TPUCL_OK);
    tp_device_list_destroy(list);
}

static void close_device(void)
{
    tp_device_close(device);
}

TestSuite(product_check, .init = open_device, .fini = close_device);

static void check_line(const char *text, tp_precision precision)
{
    tp_problem_line line;
    tp_mxu_problem problem;
    tp_product_timer *timer = NULL;
    double seconds;
    cr_assert_eq(tp_problem_line_parse(tp_view_of(text), &line), TPUCL_OK);
    tp_problem_line_to_mxu(&line, precision, &problem);
    cr_assert_eq(tp_product_timer_create(device, &problem, NULL, 1, &timer), TPUCL_OK, "%s: %s",
                 text, tpucl_last_error()->message);
    cr_assert_eq(tp_product_timer_run(timer, 1, false, &seconds), TPUCL_OK);
    cr_assert_eq(tp_bench_check_product(&line, precision, timer), TPUCL_OK, "%s",
                 tpucl_last_error()->message);

    for (int32_t tensor = 0; tensor < 2; tensor++) {
        const size_t count = tp_product_timer_elements(timer, tensor);
        float *before = malloc(count * sizeof *before), *other = malloc(count * sizeof *other);
        cr_assert(before && other);
        cr_assert_eq(tp_product_timer_read_tensor(timer, tensor, before), TPUCL_OK);
        for (size_t i = 0; i < count; i++)
            other[i] = before[i] * 2 + 1;
        cr_assert_eq(tp_product_timer_write_tensor(timer, tensor, other), TPUCL_OK);
        cr_assert_eq(tp_bench_check_product(&line, precision, timer), TPUCL_NOT_EXACT,
                     "%s: operand %d", text, tensor);
        cr_assert_eq(tp_product_timer_write_tensor(timer, tensor, before), TPUCL_OK);
        cr_assert_eq(tp_bench_check_product(&line, precision, timer), TPUCL_OK);
        free(before), free(other);
    }
    tp_product_timer_destroy(timer);
}

Test(product_check, dot)
{
    check_line("dot 37 41 131 layout=TN", TP_PRECISION_DEFAULT);
    check_line("dot 37 41 131 layout=NT", TP_PRECISION_F32);
}

Test(product_check, convolutions)
{
    check_line("conv 2 9 11 6 10 3x3 stride=2 pad=1", TP_PRECISION_DEFAULT);
    check_line("conv 2 9 11 6 10 3x3 stride=2 pad=1 op=input_grad", TP_PRECISION_DEFAULT);
    check_line("conv 2 9 11 6 10 3x3 stride=2 pad=1 op=filter_grad", TP_PRECISION_DEFAULT);
}

Test(product_check, convolutions_of_groups)
{
    check_line("conv 2 9 11 6 10 3x2 dilation=2 groups=2", TP_PRECISION_DEFAULT);
    check_line("conv 2 9 11 6 10 3x2 dilation=2 groups=2 op=input_grad", TP_PRECISION_DEFAULT);
    check_line("conv 2 9 11 6 10 3x2 dilation=2 groups=2 op=filter_grad", TP_PRECISION_DEFAULT);
}
