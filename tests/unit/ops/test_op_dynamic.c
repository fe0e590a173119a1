/* SPDX-License-Identifier: Apache-2.0
 * dynamic_slice and dynamic_update_slice: bits against tests/golden/gen_order.py, gradients against
 * differences. */
#include "golden/order.h"
#include "harness/gradcheck.h"
#include "harness/graph_run.h"

static const int32_t starts[3][3] = {{1, 2, 1}, {-3, 9, 0}, {2, 2, 2}};
static const int64_t box[] = {2, 3, 4};

static tp_node_id start_node(tp_graph *g, int i)
{
    return tp_op_constant(g, TP_S32, (tp_shape){1, {3}}, starts[i]);
}

Test(op_dynamic, bits)
{
    static const uint32_t *const cut[] = {golden_dynamic_slice_0, golden_dynamic_slice_1,
                                          golden_dynamic_slice_2};
    static const uint32_t *const updated[] = {golden_dynamic_update_slice_0,
                                              golden_dynamic_update_slice_1,
                                              golden_dynamic_update_slice_2};
    for (int i = 0; i < 3; ++i) {
        graph_run run;
        graph_run_begin(&run);
        tp_graph *g = run.graph;
        const tp_node_id x = graph_run_input(&run, TP_F32, 42, 3, (int64_t[]){4, 5, 6});
        const tp_node_id u = graph_run_input(&run, TP_F32, 43, 3, box);
        graph_run_expect_bits(&run, tp_op_dynamic_slice(g, x, start_node(g, i), box), cut[i], 24);
        graph_run_expect_bits(&run, tp_op_dynamic_update_slice(g, x, u, start_node(g, i)),
                              updated[i], 120);
        graph_run_end(&run);
    }
}

/* A scalar has one slice, which begins at an empty vector. */
Test(op_dynamic, scalars)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 0, NULL);
    const tp_node_id start = tp_op_constant(run.graph, TP_S32, (tp_shape){1, {0}}, "");
    const float value = *(const float *)run.data[0];
    cr_assert_eq(
        *(const float *)graph_run_eval(&run, tp_op_dynamic_slice(run.graph, x, start, NULL))->data,
        value);
    graph_run_end(&run);
}

static tp_node_id build_slice(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id y = tp_op_dynamic_slice(g, in[0], start_node(g, 1), box);
    return tp_op_multiply(g, y, y);
}
static tp_node_id build_update(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id y = tp_op_dynamic_update_slice(g, in[0], in[1], start_node(g, 0));
    return tp_op_multiply(g, y, y);
}

Test(op_dynamic, gradients)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_slice, .shapes = {"[4,5,6]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_update, .shapes = {"[4,5,6]", "[2,3,4]"}});
}

Test(op_dynamic, mistakes)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 3, (int64_t[]){4, 2, 6});
    tp_op_dynamic_slice(run.graph, x, start_node(run.graph, 0), box);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT,
                   "slices have 3 elements in operand dim 1, expected 0 to 2");
    graph_run_end(&run);

    graph_run_begin(&run);
    const tp_node_id y = graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){4, 5});
    tp_op_dynamic_slice(run.graph, y, start_node(run.graph, 0), box);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT,
                   "a slice of 2 sizes of a tensor with 2 dims");
    graph_run_end(&run);

    graph_run_begin(&run);
    const tp_node_id a = graph_run_input(&run, TP_F32, 1, 3, (int64_t[]){4, 5, 6});
    const tp_node_id b = graph_run_input(&run, TP_BF16, 1, 3, box);
    tp_op_dynamic_update_slice(run.graph, a, b, start_node(run.graph, 0));
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT,
                   "the update is bf16, the operand is f32");
    graph_run_end(&run);
}
