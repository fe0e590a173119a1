/* SPDX-License-Identifier: Apache-2.0
 * scatter: bits against tests/golden/gen_memory.py, order of summation, gradients against differences. */
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "unit/ops/memory_cases.h"

static const char *const kinds[] = {"add", "max", "min", "replace"};

static const uint32_t *golden_of(const memory_case *c, int kind, int rule)
{
    const uint32_t *const all[] = {c->added[rule], c->largest[rule], c->smallest[rule],
                                   c->replaced[rule]};
    return all[kind];
}

Test(op_scatter, bits)
{
    for (int i = 0; i < MEMORY_CASES * 8; ++i) {
        const memory_case *c = &memory_cases[i / 8];
        const int kind = i / 2 % 4, rule = i % 2;
        graph_run run;
        graph_run_begin(&run);
        const tp_node_id x = graph_run_input(&run, TP_F32, 20, c->operand.rank, c->operand.dims);
        const tp_node_id u = graph_run_input(&run, TP_F32, 30, c->dense.rank, c->dense.dims);
        const tp_node_id y = tp_op_scatter(run.graph, x, memory_case_indices(run.graph, c), u,
                                           &c->dims, kinds[kind], rule ? "skip" : "clamp");
        graph_run_expect_bits(&run, y, golden_of(c, kind, rule), tp_shape_elems(&c->operand));
        graph_run_end(&run);
    }
}

/* (1 + 2^24) - 2^24 is 0 in f32 from the left, and would be 1 in any other order. */
Test(op_scatter, adds_in_rising_order)
{
    const float values[] = {16777216.0f, -16777216.0f}, one = 1.0f;
    const int32_t places[] = {0, 0};
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = tp_op_constant(run.graph, TP_F32, (tp_shape){1, {1}}, &one);
    const tp_node_id at = tp_op_constant(run.graph, TP_S32, (tp_shape){1, {2}}, places);
    const tp_node_id u = tp_op_constant(run.graph, TP_F32, (tp_shape){1, {2}}, values);
    const tp_host_tensor *y =
        graph_run_eval(&run, tp_op_put_along_axis(run.graph, x, at, u, 0, "add"));
    cr_assert_eq(*(const float *)y->data, 0.0f);
    graph_run_end(&run);
}

/* bf16 sums are f32 inside and rounded once: 256 + 1 + 1 is 258, not 256. */
Test(op_scatter, bf16_is_rounded_once)
{
    const tp_bf16 x0 = tp_bf16_from_f32(256.0f),
                  ones[] = {tp_bf16_from_f32(1), tp_bf16_from_f32(1)};
    const int32_t places[] = {0, 0};
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = tp_op_constant(run.graph, TP_BF16, (tp_shape){1, {1}}, &x0);
    const tp_node_id at = tp_op_constant(run.graph, TP_S32, (tp_shape){1, {2}}, places);
    const tp_node_id u = tp_op_constant(run.graph, TP_BF16, (tp_shape){1, {2}}, ones);
    const tp_host_tensor *y =
        graph_run_eval(&run, tp_op_put_along_axis(run.graph, x, at, u, 0, "add"));
    cr_assert_eq(tp_bf16_to_f32(*(const tp_bf16 *)y->data), 258.0f);
    graph_run_end(&run);
}

Test(op_scatter, integers_wrap_and_know_their_sign)
{
    const uint32_t x[] = {0xfffffffeu, 5, 5}, u[] = {3, 0x80000000u, 0x80000000u};
    const int32_t places[] = {0, 1, 2};
    const uint32_t sum[] = {1, 0x80000005u, 0x80000005u};
    const uint32_t largest[2][3] = {{3, 5, 5}, {0xfffffffeu, 0x80000000u, 0x80000000u}};
    const uint32_t smallest[2][3] = {{0xfffffffeu, 0x80000000u, 0x80000000u}, {3, 5, 5}};
    for (int is_unsigned = 0; is_unsigned < 2; ++is_unsigned) {
        const tp_dtype dtype = is_unsigned ? TP_U32 : TP_S32;
        graph_run run;
        graph_run_begin(&run);
        tp_graph *g = run.graph;
        const tp_shape shape = {1, {3}};
        const tp_node_id a = tp_op_constant(g, dtype, shape, x),
                         b = tp_op_constant(g, dtype, shape, u);
        const tp_node_id at = tp_op_constant(g, TP_S32, shape, places);
        graph_run_expect_bits(&run, tp_op_put_along_axis(g, a, at, b, 0, "add"), sum, 3);
        graph_run_expect_bits(&run, tp_op_put_along_axis(g, a, at, b, 0, "max"),
                              largest[is_unsigned], 3);
        graph_run_expect_bits(&run, tp_op_put_along_axis(g, a, at, b, 0, "min"),
                              smallest[is_unsigned], 3);
        graph_run_end(&run);
    }
}

static tp_node_id squared_scatter(tp_graph *graph, const tp_node_id *in, int which,
                                  const char *kind, const char *rule)
{
    const memory_case *c = &memory_cases[which];
    const tp_node_id y =
        tp_op_scatter(graph, in[0], memory_case_indices(graph, c), in[1], &c->dims, kind, rule);
    return tp_op_multiply(graph, y, y);
}
#define BUILD(which, kind, rule)                                                                   \
    static tp_node_id build_##which##_##kind##_##rule(tp_graph *graph, const tp_node_id *in)       \
    {                                                                                              \
        return squared_scatter(graph, in, which, #kind, #rule);                                    \
    }
BUILD(0, add, skip)
BUILD(3, add, skip)
BUILD(3, add, clamp)
BUILD(0, max, skip)
BUILD(2, min, clamp)
BUILD(0, replace, skip)
BUILD(3, replace, clamp)
#define CHECK(which, kind, rule, operand, updates)                                                 \
    tp_gradcheck((tp_gradcheck_case){.build = build_##which##_##kind##_##rule,                     \
                                     .shapes = {operand, updates}})

Test(op_scatter, gradients)
{
    CHECK(0, add, skip, "[11,5]", "[3,4,5]");
    CHECK(3, add, skip, "[4,3,5]", "[3,2,2,3]");
    CHECK(3, add, clamp, "[4,3,5]", "[3,2,2,3]");
    CHECK(0, max, skip, "[11,5]", "[3,4,5]");
    CHECK(2, min, clamp, "[3,6,4]", "[3,2,4]");
    CHECK(0, replace, skip, "[11,5]", "[3,4,5]");
    CHECK(3, replace, clamp, "[4,3,5]", "[3,2,2,3]");
}

Test(op_scatter, mistakes)
{
    const memory_case *c = &memory_cases[0];
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 2, c->operand.dims);
    const tp_node_id u = graph_run_input(&run, TP_F32, 1, 3, (int64_t[]){3, 5, 5});
    tp_op_scatter(g, x, memory_case_indices(g, c), u, &c->dims, "add", "skip");
    EXPECT_FAILURE(tp_graph_check(g), TPUCL_INVALID_ARGUMENT,
                   "the updates have shape [3,5,5], expected [3,4,5]");
    graph_run_end(&run);

    graph_run_begin(&run);
    const tp_node_id floats = graph_run_input(&run, TP_F32, 1, 1, (int64_t[]){3});
    tp_op_take(run.graph, floats, floats, 0);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, "input 1 is f32");
    graph_run_end(&run);

    graph_run_begin(&run);
    const tp_node_id y = graph_run_input(&run, TP_F32, 1, 1, (int64_t[]){3});
    tp_op_put_along_axis(run.graph, y, y, y, 1, "add");
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT,
                   "axis 1 of a tensor of rank 1");
    graph_run_end(&run);
}
