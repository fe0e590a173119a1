/* SPDX-License-Identifier: Apache-2.0
 * The yardstick of the kernel tests: its comparison, and its results against sums written out by
 * hand.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "kernel/mxu_cases.h"

Test(mxu_cases, comparison_is_of_bits_except_for_nan)
{
    const float left[] = {1.0f, 0.0f, NAN, INFINITY}, right[] = {1.0f, 0.0f, -NAN, INFINITY};
    const float minus_zero[] = {1.0f, -0.0f}, one_nan[] = {NAN}, infinity[] = {INFINITY};
    cr_assert(tp_mxu_case_compare(TP_F32, left, right, 4) == -1);
    cr_assert(tp_mxu_case_compare(TP_F32, left, minus_zero, 2) == 1);
    cr_assert(tp_mxu_case_compare(TP_F32, one_nan, infinity, 1) == 0);
    const uint16_t bf16_left[] = {0x3f80, 0x7fc0}, bf16_right[] = {0x3f80, 0xffff};
    const uint16_t bf16_infinity[] = {0x3f80, 0x7f80};
    cr_assert(tp_mxu_case_compare(TP_BF16, bf16_left, bf16_right, 2) == -1);
    cr_assert(tp_mxu_case_compare(TP_BF16, bf16_left, bf16_infinity, 2) == 1);
}

Test(mxu_cases, every_case_is_a_valid_problem)
{
    size_t count = 0;
    const tp_mxu_case *rows = tp_mxu_cases(&count);
    cr_assert(count >= 80);
    for (size_t i = 0; i < count; i++) {
        tp_arena *arena = NULL;
        tp_mxu_problem problem;
        tp_mxu_plan plan;
        const tp_device_caps caps = {.max_allocation_bytes = 1 << 30};
        cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
        cr_expect(tp_mxu_case_problem(&rows[i], arena, &problem) == TPUCL_OK &&
                      tp_mxu_plan_create(&problem, &caps, NULL, 3, arena, &plan) == TPUCL_OK,
                  "%s: %s", rows[i].name, tpucl_last_error()->message);
        tp_arena_destroy(arena);
        for (size_t j = 0; j < i; j++)
            cr_expect(strcmp(rows[i].name, rows[j].name) != 0, "'%s' stands twice", rows[i].name);
    }
}

/* x of 3 x 3 with one channel, kernel 2 x 2, no padding: all three products by hand. */
static const tp_mxu_conv tiny = {1, 3, 3, 1, 2, 2, 1, 2, 2, 1, 1, 0, 0, 1, 1, 1};
static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 10, 100, 1000}, dy[] = {1, 2, 3, 4};

static void expect(tp_mxu_kind kind, int64_t m, int64_t k, const float *a, const float *b,
                   const float *expected)
{
    float c[9] = {0};
    const tp_mxu_problem problem = {
        .kind = kind,
        .precision = TP_PRECISION_F32,
        .batch = 1,
        .m = m,
        .n = 1,
        .k = k,
        .a = {.dtype = TP_F32},
        .b = {.dtype = TP_F32},
        .conv = tiny,
        .c_dtype = TP_F32,
    };
    cr_assert(tp_mxu_case_expect(&problem, a, b, c) == TPUCL_OK);
    for (int64_t i = 0; i < m; i++)
        cr_expect(c[i] == expected[i], "kind %d, %lld: %g, expected %g", (int)kind, (long long)i,
                  (double)c[i], (double)expected[i]);
}

Test(mxu_cases, convolution_by_hand)
{
    expect(TP_MXU_CONV, 4, 4, x, w, (const float[]){5421, 6532, 8754, 9865});
    expect(TP_MXU_CONV_INPUT_GRAD, 9, 4, dy, w,
           (const float[]){1, 12, 20, 103, 1234, 2040, 300, 3400, 4000});
    expect(TP_MXU_CONV_FILTER_GRAD, 4, 4, x, dy, (const float[]){37, 47, 67, 77});
}

/* Two channels, the second ten times the first, each with a filter of its own. */
Test(mxu_cases, groups_by_hand)
{
    float pairs[18], filters[8], gradients[8], c[8] = {0};
    for (int i = 0; i < 9; i++) {
        pairs[2 * i] = x[i];
        pairs[2 * i + 1] = 10 * x[i];
    }
    for (int i = 0; i < 4; i++) {
        filters[2 * i] = w[i];
        filters[2 * i + 1] = -w[i];
        gradients[2 * i] = dy[i];
        gradients[2 * i + 1] = 2 * dy[i];
    }
    tp_mxu_problem problem = {.kind = TP_MXU_CONV,
                              .precision = TP_PRECISION_F32,
                              .batch = 1,
                              .m = 4,
                              .n = 2,
                              .k = 4,
                              .a = {.dtype = TP_F32},
                              .b = {.dtype = TP_F32},
                              .conv = tiny,
                              .c_dtype = TP_F32};
    problem.conv.in_c = problem.conv.out_c = problem.conv.groups = 2;
    cr_assert(tp_mxu_case_expect(&problem, pairs, filters, c) == TPUCL_OK);
    const float forward[] = {5421, -54210, 6532, -65320, 8754, -87540, 9865, -98650};
    for (int i = 0; i < 8; i++)
        cr_expect(c[i] == forward[i], "%d: %g", i, (double)c[i]);
    problem.kind = TP_MXU_CONV_FILTER_GRAD;
    cr_assert(tp_mxu_case_expect(&problem, pairs, gradients, c) == TPUCL_OK);
    const float filter[] = {37, 740, 47, 940, 67, 1340, 77, 1540};
    for (int i = 0; i < 8; i++)
        cr_expect(c[i] == filter[i], "%d: %g", i, (double)c[i]);
}

/* The case that tells a fused multiply-add from a product and a sum, and a copied first chunk from
 * an added one. */
Test(mxu_cases, vanishing_sums_are_minus_zero)
{
    const float a[2] = {-0x1p-100f, -0x1p-100f}, b[2] = {0x1p-100f, 0x1p-100f};
    float c = 1.0f;
    const tp_mxu_problem problem = {
        .kind = TP_MXU_DOT,
        .batch = 1,
        .m = 1,
        .n = 1,
        .k = 2,
        .a = {.dtype = TP_F32, .stride_inner = 1},
        .b = {.dtype = TP_F32, .stride_inner = 1},
        .c_dtype = TP_F32,
    };
    cr_assert(tp_mxu_case_expect(&problem, a, b, &c) == TPUCL_OK);
    cr_assert(c == 0.0f && signbit(c));
}
