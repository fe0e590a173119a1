/* SPDX-License-Identifier: Apache-2.0
 * reduce, argmax, argmin: bits against tests/golden/gen_ops.py, gradients against differences.
 */
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "golden/ops.h"
#include "graph/attrs.h"

static void check_axes(const char *kind, const int64_t *dims, int rank, uint32_t seed,
                       const int64_t *axes, int32_t count, const uint32_t *golden, int64_t elems)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, seed, rank, dims);
    graph_run_expect_bits(&run, tp_op_reduce(run.graph, x, kind, axes, count), golden, elems);
    graph_run_end(&run);
}

Test(op_reduce, several_axes)
{
    static const int64_t dims[] = {3, 4, 50}, axes[] = {2, 0};
    check_axes("add", dims, 3, 8, axes, 2, golden_reduce_add_outer, 4);
    check_axes("multiply", dims, 3, 8, axes, 2, golden_reduce_multiply_outer, 4);
    check_axes("max", dims, 3, 8, axes, 2, golden_reduce_max_outer, 4);
    check_axes("min", dims, 3, 8, axes, 2, golden_reduce_min_outer, 4);
}

Test(op_reduce, first_axis)
{
    static const int64_t dims[] = {3, 4, 50}, axes[] = {0};
    check_axes("add", dims, 3, 8, axes, 1, golden_reduce_add_first, 200);
    check_axes("multiply", dims, 3, 8, axes, 1, golden_reduce_multiply_first, 200);
    check_axes("max", dims, 3, 8, axes, 1, golden_reduce_max_first, 200);
    check_axes("min", dims, 3, 8, axes, 1, golden_reduce_min_first, 200);
}

Test(op_reduce, more_than_two_blocks)
{
    static const int64_t dims[] = {2, 17000}, axes[] = {1};
    check_axes("add", dims, 2, 9, axes, 1, golden_reduce_add_long, 2);
    check_axes("max", dims, 2, 9, axes, 1, golden_reduce_max_long, 2);
    check_axes("min", dims, 2, 9, axes, 1, golden_reduce_min_long, 2);
}

/* What comes out of nothing: the identities. */
Test(op_reduce, nothing)
{
    static const int64_t dims[] = {0, 1}, axes[] = {0};
    static const uint32_t zero[] = {0}, one[] = {0x3f800000}, low[] = {0xff800000},
                          high[] = {0x7f800000};
    check_axes("add", dims, 2, 1, axes, 1, zero, 1);
    check_axes("multiply", dims, 2, 1, axes, 1, one, 1);
    check_axes("max", dims, 2, 1, axes, 1, low, 1);
    check_axes("min", dims, 2, 1, axes, 1, high, 1);
}

/* bf16: summed in f32, rounded once. 256 + 1 + 1 + 1 is 259 in f32 and 260 (even) in bf16. */
Test(op_reduce, bf16_rounds_once)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_BF16, 1, 1, (int64_t[]){4});
    for (int i = 0; i < 4; i++)
        ((tp_bf16 *)run.data[0])[i] = tp_bf16_from_f32(i ? 1.0f : 256.0f);
    const tp_host_tensor *y = graph_run_eval(&run, tp_op_reduce(run.graph, x, "add", NULL, 0));
    cr_assert(y->dtype == TP_BF16);
    cr_assert(tp_bf16_to_f32(*(const tp_bf16 *)y->data) == 260.0f);
    graph_run_end(&run);
}

static void check_integers(tp_dtype dtype, const char *kind, const uint32_t *elements,
                           int64_t count, uint32_t expected)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, dtype, 1, 1, &count);
    memcpy(run.data[0], elements, (size_t)count * 4);
    graph_run_expect_bits(&run, tp_op_reduce(run.graph, x, kind, NULL, 0), &expected, 1);
    graph_run_end(&run);
}

Test(op_reduce, integers)
{
    static const uint32_t a[] = {5, 0xfffffff0u, 7, 0x80000000u}; /* s32: 5, -16, 7, the smallest */
    check_integers(TP_S32, "add", a, 3, 0xfffffffcu);
    check_integers(TP_S32, "max", a, 4, 7);
    check_integers(TP_S32, "min", a, 4, 0x80000000u);
    check_integers(TP_U32, "max", a, 4, 0xfffffff0u);
    check_integers(TP_U32, "min", a, 4, 5);
    check_integers(TP_S32, "multiply", a, 3, (uint32_t)(5 * -16 * 7));
    check_integers(TP_S32, "max", a, 0, 0x80000000u);
    check_integers(TP_S32, "min", a, 0, 0x7fffffffu);
    check_integers(TP_U32, "max", a, 0, 0);
    check_integers(TP_U32, "min", a, 0, 0xffffffffu);
}

Test(op_reduce, logical)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_PRED, 1, 2, (int64_t[]){3, 2});
    memcpy(run.data[0], (uint8_t[]){1, 1, 1, 0, 0, 0}, 6);
    static const int64_t axis[] = {1};
    const tp_node_id all = tp_op_reduce(run.graph, x, "and", axis, 1);
    const tp_node_id any = tp_op_reduce(run.graph, x, "or", axis, 1);
    cr_assert(memcmp(graph_run_eval(&run, all)->data, (uint8_t[]){1, 0, 0}, 3) == 0);
    cr_assert(memcmp(graph_run_eval(&run, any)->data, (uint8_t[]){1, 1, 0}, 3) == 0);
    graph_run_end(&run);
}

static tp_node_id build_add(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_reduce(graph, in[0], "add", (const int64_t[]){0, 2}, 2);
}

static tp_node_id build_max(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_reduce(graph, in[0], "max", (const int64_t[]){0, 2}, 2);
}

static tp_node_id build_min(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_reduce(graph, in[0], "min", (const int64_t[]){0, 2}, 2);
}

static tp_node_id build_multiply(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_reduce(graph, in[0], "multiply", (const int64_t[]){0, 2}, 2);
}

Test(op_reduce, gradients)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_add, .shapes = {"[3,4,2]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_max, .shapes = {"[3,4,2]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_min, .shapes = {"[3,4,2]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_multiply, .shapes = {"[3,4,1]"}, .middle = 1});
}

Test(op_reduce, gradient_of_max_is_shared_by_equals)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 1, (int64_t[]){4});
    memcpy(run.data[0], (float[]){2, 5, 5, 1}, 16);
    const tp_node_id y = tp_op_reduce(run.graph, x, "max", NULL, 0);
    tp_node_id d;
    tp_graph_gradients(run.graph, y, &x, 1, &d);
    const float *found = graph_run_eval(&run, d)->data;
    cr_assert(found[0] == 0 && found[1] == 0.5f && found[2] == 0.5f && found[3] == 0);
    graph_run_end(&run);
}

static int32_t arg(const char *op, tp_dtype dtype, const void *elements, int64_t count)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, dtype, 1, 2, (int64_t[]){1, count});
    memcpy(run.data[0], elements, (size_t)count * 4);
    const tp_attr axis = tp_attr_int("axis", 1);
    const tp_host_tensor *y = graph_run_eval(&run, tp_graph_add(run.graph, op, &x, 1, &axis, 1));
    cr_assert(y->dtype == TP_S32 && tp_shape_elems(&y->shape) == 1);
    const int32_t index = *(const int32_t *)y->data;
    graph_run_end(&run);
    return index;
}

Test(op_reduce, argmax_argmin)
{
    const float plain[] = {1, 3, -2, 3, -2}, nan[] = {1, NAN, 5, NAN},
                zeros[] = {-0.0f, 0.0f, -0.0f};
    const int32_t integers[] = {-3, 4, -9};
    cr_assert(arg("argmax", TP_F32, plain, 5) == 1);
    cr_assert(arg("argmin", TP_F32, plain, 5) == 2);
    cr_assert(arg("argmax", TP_F32, nan, 4) == 1);
    cr_assert(arg("argmin", TP_F32, nan, 4) == 1);
    cr_assert(arg("argmax", TP_F32, zeros, 3) == 1);
    cr_assert(arg("argmin", TP_F32, zeros, 3) == 0);
    cr_assert(arg("argmax", TP_S32, integers, 3) == 1);
    cr_assert(arg("argmin", TP_S32, integers, 3) == 2);
}

static void expect_refused(tp_dtype dtype, const char *kind, int64_t axis, const char *part)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, dtype, 1, 2, (int64_t[]){2, 3});
    tp_op_reduce(run.graph, x, kind, &axis, 1);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, part);
    graph_run_end(&run);
}

Test(op_reduce, mistakes)
{
    expect_refused(TP_PRED, "add", 0, "and, or take pred");
    expect_refused(TP_F32, "and", 0, "and, or take pred");
    expect_refused(TP_U8, "add", 0, "u8");
    expect_refused(TP_F32, "add", 2, "dimension 2");
    expect_refused(TP_F32, "sum", 0, "kind");
}
