/* SPDX-License-Identifier: Apache-2.0
 * Sizes expected here were worked out by hand from the definitions in kernel/mxu.h and Keras' rule of
 * padding. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/str.h"
#include "harness/alloc_loop.h"
#include "tune/problem_line.h"

static tp_problem_line parse(const char *text)
{
    tp_problem_line line;
    cr_assert_eq(tp_problem_line_parse(tp_view_of(text), &line), TPUCL_OK, "%s: %s", text,
                 tpucl_last_error()->message);
    return line;
}

static void expect_product(const char *text, int64_t m, int64_t n, int64_t k)
{
    const tp_problem_line line = parse(text);
    cr_assert_eq(line.m, m, "%s: m is %lld", text, (long long)line.m);
    cr_assert_eq(line.n, n, "%s: n is %lld", text, (long long)line.n);
    cr_assert_eq(line.k, k, "%s: k is %lld", text, (long long)line.k);
}

Test(problem_line, dot)
{
    const tp_problem_line line = parse("dot 3 5 7 layout=TN batch=2 times=4 # why");
    cr_assert_eq(line.kind, TP_MXU_DOT);
    cr_assert_eq(line.batch, 2);
    cr_assert_eq(line.times, 4);
    cr_assert(line.a_is_transposed && !line.b_is_transposed);
    cr_assert_eq(tp_problem_line_flops(&line), 2.0 * 2 * 3 * 5 * 7);
    expect_product("dot 3 5 7", 3, 5, 7);
}

Test(problem_line, layouts_become_strides)
{
    static const struct {
        const char *text;
        int64_t a_outer, a_inner, b_outer, b_inner;
    } rows[] = {{"dot 3 5 7", 7, 1, 1, 5},
                {"dot 3 5 7 layout=NT", 7, 1, 7, 1},
                {"dot 3 5 7 layout=TN", 1, 3, 1, 5},
                {"dot 3 5 7 layout=TT", 1, 3, 7, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tp_problem_line line = parse(rows[i].text);
        tp_mxu_problem p;
        tp_problem_line_to_mxu(&line, TP_PRECISION_DEFAULT, &p);
        cr_assert_eq(p.a.stride_outer, rows[i].a_outer, "%s", rows[i].text);
        cr_assert_eq(p.a.stride_inner, rows[i].a_inner, "%s", rows[i].text);
        cr_assert_eq(p.b.stride_outer, rows[i].b_outer, "%s", rows[i].text);
        cr_assert_eq(p.b.stride_inner, rows[i].b_inner, "%s", rows[i].text);
        cr_assert_eq(p.a.stride_batch, 21);
        cr_assert_eq(p.b.stride_batch, 35);
        cr_assert_eq(p.a.dtype, TP_BF16);
        cr_assert_eq(p.c_dtype, TP_F32);
    }
}

Test(problem_line, conv_sizes)
{
    expect_product("conv 16 56 56 64 128 3x3", 16 * 56 * 56, 128, 9 * 64);
    expect_product("conv 16 56 56 64 128 3x3 stride=2 op=forward", 16 * 28 * 28, 128, 9 * 64);
    expect_product("conv 16 56 56 64 128 3x3 stride=2 op=input_grad", 16 * 56 * 56, 64, 9 * 128);
    expect_product("conv 16 56 56 64 128 3x3 stride=2 op=filter_grad", 9 * 64, 128, 16 * 28 * 28);
    expect_product("conv 2 10 12 6 4 3x5 pad=valid", 2 * 8 * 8, 4, 15 * 6);
    expect_product("conv 2 10 12 6 4 3x3 pad=2 dilation=2 groups=2", 2 * 10 * 12, 4, 9 * 3);
    expect_product("conv 2 10 12 6 4 3x3 groups=2 op=input_grad", 2 * 10 * 12, 6, 9 * 2);
    expect_product("conv 2 10 12 6 4 3x3 groups=2 op=filter_grad", 9 * 3, 4, 2 * 10 * 12);
}

Test(problem_line, gradients_count_the_operations_of_the_forward_convolution)
{
    static const char *const ops[] = {"forward", "input_grad", "filter_grad"};
    char text[TP_PROBLEM_LINE_BYTES];
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        snprintf(text, sizeof text, "conv 2 9 9 6 8 3x3 stride=2 pad=1 groups=2 op=%s", ops[i]);
        const tp_problem_line line = parse(text);
        cr_assert_eq(tp_problem_line_flops(&line), 2.0 * (2 * 5 * 5) * 8 * (9 * 3), "%s", text);
    }
}

Test(problem_line, padding_of_same_is_uneven_where_keras_says)
{
    /* 3 taps, stride 2: 56 needs one more pixel, at the end; 57 two, one on each side */
    const tp_problem_line even = parse("conv 1 56 57 1 1 3x3 stride=2");
    cr_assert_eq(even.conv.pad_top, 0);
    cr_assert_eq(even.conv.out_h, 28);
    cr_assert_eq(even.conv.pad_left, 1);
    cr_assert_eq(even.conv.out_w, 29);
    const tp_problem_line stem = parse("conv 16 224 224 3 64 7x7 stride=2 pad=3");
    cr_assert_eq(stem.conv.pad_top, 3);
    cr_assert_eq(stem.conv.out_h, 112);
}

Test(problem_line, precision_says_what_tensors_hold)
{
    static const struct {
        const char *text;
        tp_dtype c;
        bool b_is_replicated;
    } rows[] = {{"conv 1 4 4 1 1 3x3", TP_BF16, true},
                {"conv 1 4 4 1 1 3x3 op=input_grad", TP_BF16, true},
                {"conv 1 4 4 1 1 3x3 op=filter_grad", TP_F32, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tp_problem_line line = parse(rows[i].text);
        tp_mxu_problem bf16, f32;
        tp_problem_line_to_mxu(&line, TP_PRECISION_DEFAULT, &bf16);
        tp_problem_line_to_mxu(&line, TP_PRECISION_F32, &f32);
        cr_assert_eq(bf16.c_dtype, rows[i].c, "%s", rows[i].text);
        cr_assert_eq(bf16.b.is_replicated, rows[i].b_is_replicated, "%s", rows[i].text);
        cr_assert_eq(f32.a.dtype, TP_F32);
        cr_assert_eq(f32.c_dtype, TP_F32);
    }
}

Test(problem_line, prints_one_spelling)
{
    static const char *const rows[][2] = {
        {"  dot\t1 2 3 layout=NN batch=1 times=9", "dot 1 2 3"},
        {"dot 1 2 3 layout=TT batch=4", "dot 1 2 3 batch=4 layout=TT"},
        {"conv 1 8 8 2 2 3x3 pad=1 op=forward", "conv 1 8 8 2 2 3x3"},
        {"conv 1 8 8 2 2 1x1 pad=valid", "conv 1 8 8 2 2 1x1"},
        {"conv 1 8 8 2 2 3x3 pad=valid", "conv 1 8 8 2 2 3x3 pad=0"},
        {"conv 1 8 8 2 2 3x3 op=input_grad stride=2 pad=1 groups=2 dilation=1",
         "conv 1 8 8 2 2 3x3 stride=2 pad=1 groups=2 op=input_grad"},
        {"conv 1 8 8 2 2 3x3 dilation=2 op=filter_grad",
         "conv 1 8 8 2 2 3x3 dilation=2 op=filter_grad"},
    };
    char text[TP_PROBLEM_LINE_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tp_problem_line line = parse(rows[i][0]);
        tp_problem_line_print(&line, text);
        cr_assert_str_eq(text, rows[i][1]);
        const tp_problem_line again = parse(text);
        cr_assert_eq(memcmp(&again.conv, &line.conv, sizeof line.conv), 0, "%s", text);
    }
}

Test(problem_line, says_what_is_wrong)
{
    static const char *const rows[][2] = {
        {"gemm 1 2 3", "begins with 'gemm', expected dot or conv"},
        {"dot 1 2", "K is missing"},
        {"dot 1 x 2", "N is 'x', expected a number from 1"},
        {"dot 0 1 2", "M is '0'"},
        {"dot 1 1 99999999999", "K is '99999999999'"},
        {"dot 1 2 3 4", "'4' is too much"},
        {"dot 1 2 3 layout=NX", "layout is 'NX'"},
        {"dot 1 2 3 stride=2", "dot has no option 'stride'"},
        {"dot 1 2 3 batch=2 batch=2", "'batch' is given twice"},
        {"dot 2000000000 1 2000000000", "2^40 elements"},
        {"dot 1000000 1000000 1000 batch=2000", "2^40 elements"},
        {"dot 100000 2000000 1000000", "2^40 elements"},
        {"conv 1 2 3 4 5", "kernel's size is missing"},
        {"conv 1 2 3 4 5 3", "kernel's size is '3'"},
        {"conv 1 2 3 4 5 x3", "kernel's height is ''"},
        {"conv 1 2 3 4 5 3x3 layout=NN", "conv has no option 'layout'"},
        {"conv 1 2 3 4 5 3x3 op=backward", "op is 'backward'"},
        {"conv 1 2 3 4 5 3x3 pad=-1", "pad is '-1'"},
        {"conv 1 2 3 4 5 3x3 pad=valid", "smaller than the kernel's reach of 3"},
        {"conv 1 2 3 4 6 3x3 groups=3", "4 channels and 6 filters"},
        {"conv 1 2 3 4 4 3x3 dilation=2147483647 pad=valid", "reach of 4294967295"},
        {"conv 1 9 9 1 1 1x1 pad=2147483647", "2^40 elements"},
        {"conv 999 999 999 999 999 500x500", "2^60 multiply-adds"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tp_problem_line line;
        cr_assert_eq(tp_problem_line_parse(tp_view_of(rows[i][0]), &line), TPUCL_INVALID_ARGUMENT,
                     "%s", rows[i][0]);
        cr_assert(strstr(tpucl_last_error()->message, rows[i][1]), "%s: %s", rows[i][0],
                  tpucl_last_error()->message);
    }
}

Test(problem_line, lines_of_a_text)
{
    tp_problem_lines lines = {0};
    const char *good = "# head\n\ndot 1 2 3 # tail\r\n  conv 1 4 4 1 1 3x3 times=3";
    cr_assert_eq(tp_problem_lines_parse(tp_view_of(good), "a.txt", &lines), TPUCL_OK);
    cr_assert_eq(lines.count, 2);
    cr_assert_eq(lines.items[0].number, 3);
    cr_assert_eq(lines.items[1].number, 4);
    cr_assert_eq(lines.items[1].times, 3);
    tp_problem_lines_deinit(&lines);

    const char *bad = "dot 1 2\ndot 1 2 3\nconv";
    cr_assert_eq(tp_problem_lines_parse(tp_view_of(bad), "b.txt", &lines), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "b.txt:1: K is missing"));
    cr_assert(strstr(tpucl_last_error()->message, "b.txt:3: the number of images is missing"));
    tp_problem_lines_deinit(&lines);
}

static tpucl_status parse_many(void *user)
{
    tp_problem_lines lines = {0};
    const tpucl_status status = tp_problem_lines_parse(tp_view_of(user), "many", &lines);
    tp_problem_lines_deinit(&lines);
    return status;
}

Test(problem_line, memory)
{
    alloc_loop_run(parse_many, "dot 1 1 1\ndot 1 1 1\ndot 1 1 1\ndot 1 1 1\ndot 1 1 1\n"
                               "dot 1 1 1\ndot 1 1 1\ndot 1 1 1\ndot 1 1 1\ndot 1 1 1\n");
}
