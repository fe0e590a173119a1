/* SPDX-License-Identifier: Apache-2.0
 * sort and top_k: bits against tests/golden/gen_order.py, gradients against differences. */
#include "golden/order.h"
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "unit/ops/specials.h"

Test(op_sort, bits)
{
    for (int falling = 0; falling < 2; ++falling) {
        graph_run run;
        graph_run_begin(&run);
        const tp_node_id x = graph_run_input(&run, TP_F32, 44, 3, (int64_t[]){3, 40, 2});
        make_special(run.data[0], 240);
        graph_run_expect_bits(&run, tp_op_sort(run.graph, x, 1, falling),
                              falling ? golden_sort_falling : golden_sort_rising, 240);
        graph_run_expect_bits(&run, tp_op_argsort(run.graph, x, 1, falling),
                              falling ? golden_argsort_falling : golden_argsort_rising, 240);
        graph_run_end(&run);
    }
}

Test(op_sort, top_k)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 45, 2, (int64_t[]){4, 50});
    make_special(run.data[0], 200);
    tp_node_id where;
    graph_run_expect_bits(&run, tp_op_top_k(run.graph, x, 9, NULL), golden_top_k, 36);
    graph_run_expect_bits(&run, tp_op_top_k(run.graph, x, 9, &where), golden_top_k, 36);
    graph_run_expect_bits(&run, where, golden_top_k_indices, 36);
    /* as many rounds of argmax, the first of which is this */
    const tp_host_tensor *best = graph_run_eval(&run, tp_op_argmax(run.graph, x, 1));
    for (int i = 0; i < 4; ++i)
        cr_assert_eq(((const uint32_t *)best->data)[i], golden_top_k_indices[9 * i]);
    graph_run_end(&run);
}

Test(op_sort, integers_by_their_dtype)
{
    const uint32_t x[] = {0, 0xffffffffu, 5, 0x80000000u, 5};
    const uint8_t bytes[] = {3, 255, 0, 128, 3};
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_shape shape = {1, {5}};
    const tp_node_id s = tp_op_constant(g, TP_S32, shape, x),
                     u = tp_op_constant(g, TP_U32, shape, x);
    const tp_node_id b = tp_op_constant(g, TP_U8, shape, bytes);
    graph_run_expect_bits(&run, tp_op_argsort(g, s, 0, false), (uint32_t[]){3, 1, 0, 2, 4}, 5);
    graph_run_expect_bits(&run, tp_op_argsort(g, s, 0, true), (uint32_t[]){2, 4, 0, 1, 3}, 5);
    graph_run_expect_bits(&run, tp_op_argsort(g, u, 0, false), (uint32_t[]){0, 2, 4, 3, 1}, 5);
    graph_run_expect_bits(&run, tp_op_argsort(g, b, 0, false), (uint32_t[]){2, 0, 4, 3, 1}, 5);
    graph_run_expect_bits(&run, tp_op_top_k_indices(g, b, 2), (uint32_t[]){1, 3}, 2);
    const tp_host_tensor *sorted = graph_run_eval(&run, tp_op_sort(g, b, 0, true));
    cr_assert_arr_eq(sorted->data, ((uint8_t[]){255, 128, 3, 3, 0}), 5);
    graph_run_end(&run);
}

Test(op_sort, bf16_keeps_its_bits)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_BF16, 3, 1, (int64_t[]){4});
    const float values[] = {2, -1, INFINITY, 0.5f}, wanted[] = {-1, 0.5f, 2, INFINITY};
    for (int i = 0; i < 4; ++i)
        ((tp_bf16 *)run.data[0])[i] = tp_bf16_from_f32(values[i]);
    const tp_host_tensor *y = graph_run_eval(&run, tp_op_sort(run.graph, x, 0, false));
    for (int i = 0; i < 4; ++i)
        cr_assert_eq(tp_bf16_to_f32(((const tp_bf16 *)y->data)[i]), wanted[i]);
    graph_run_end(&run);
}

static tp_node_id build_rising(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id y = tp_op_sort(g, in[0], 1, false);
    return tp_op_multiply(g, y, y);
}
static tp_node_id build_falling(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id y = tp_op_sort(g, in[0], 0, true);
    return tp_op_multiply(g, y, y);
}
static tp_node_id build_top_k(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id y = tp_op_top_k(g, in[0], 3, NULL);
    return tp_op_multiply(g, y, y);
}
static tp_node_id build_top_k_with_indices(tp_graph *g, const tp_node_id *in)
{
    tp_node_id where;
    const tp_node_id y = tp_op_top_k(g, in[0], 3, &where);
    return tp_op_multiply(g, y, y);
}
/* Carried along. */
static tp_node_id build_carried(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id order = tp_op_argsort(g, in[0], 1, false);
    const tp_node_id y = tp_op_take_along_axis(g, in[1], order, 1);
    return tp_op_multiply(g, y, y);
}

Test(op_sort, gradients)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_rising, .shapes = {"[2,7,3]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_falling, .shapes = {"[6,2]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_top_k, .shapes = {"[2,3,8]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_top_k_with_indices, .shapes = {"[2,8]"}});
    tp_gradcheck((tp_gradcheck_case){
        .build = build_carried, .shapes = {"[2,7]", "[2,7]"}, .without_inputs = 1});
}

Test(op_sort, mistakes)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 1, (int64_t[]){3});
    tp_op_top_k_indices(run.graph, x, 4);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, "top_k of 4 of 3 elements");
    graph_run_end(&run);
    graph_run_begin(&run);
    tp_op_sort(run.graph, tp_op_scalar(run.graph, TP_F32, 1), 0, false);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT,
                   "sort along axis 0 of a tensor of rank 0");
    graph_run_end(&run);
}
