/* SPDX-License-Identifier: Apache-2.0
 * Autodiff as such: order of accumulation, dtypes along the way, where paths end. (Each op's own gradient:
 * tests/unit/ops.) */
#include <criterion/criterion.h>
#include <string.h>

#include "graph/autodiff.h"
#include "graph/verify.h"
#include "harness/gradcheck.h"
#include "ops/registry.h"

static tp_graph *new_graph(void)
{
    tp_graph *graph;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    return graph;
}

static tp_node_id sum_of(tp_graph *g, tp_node_id a)
{
    return tp_op_reduce(g, a, "add", NULL, 0);
}

static const char *op_of(const tp_graph *g, tp_node_id id)
{
    cr_assert(id >= 0 && id < g->node_count);
    return g->nodes[id].def->name;
}

/* Two layers with shared weights, a residual and a normalisation. */
static tp_node_id build_net(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id h = tp_op_tanh(g, tp_op_add(g, tp_op_matmul(g, in[0], in[1], "f32"), in[2]));
    const tp_node_id r = tp_op_add(g, h, tp_op_matmul(g, h, in[1], "f32"));
    const int64_t last[] = {1};
    const tp_node_id mean = tp_op_reduce(g, r, "add", last, 1);
    const tp_node_id column = tp_op_reshape(g, mean, (tp_shape){2, {4, 1}});
    const tp_node_id centred = tp_op_subtract(g, r, tp_op_multiply_scalar(g, column, 1.0 / 3));
    const tp_node_id variance =
        tp_op_reduce(g, tp_op_multiply(g, centred, centred), "add", last, 1);
    const tp_node_id scale =
        tp_op_rsqrt(g, tp_op_add_scalar(g, tp_op_reshape(g, variance, (tp_shape){2, {4, 1}}), 0.5));
    return tp_op_multiply(g, centred, scale);
}
Test(autodiff, small_net)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_net, .shapes = {"[4,3]", "[3,3]", "[3]"}});
}

Test(autodiff, users_by_falling_id)
{
    tp_graph *g = new_graph();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){1, {3}});
    const tp_node_id first = tp_op_exponential(g, x), second = tp_op_tanh(g, x),
                     third = tp_op_sine(g, x);
    const tp_node_id loss = sum_of(g, tp_op_add(g, tp_op_add(g, first, second), third));
    tp_node_id d;
    tp_graph_gradients(g, loss, &x, 1, &d);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK);
    /* (sine's + tanh's) + exponential's: the last multiplies d by the node `first` itself */
    cr_assert_str_eq(op_of(g, d), "add");
    const tp_node_id inner = g->nodes[d].inputs[0], last = g->nodes[d].inputs[1];
    cr_expect_str_eq(op_of(g, inner), "add");
    cr_expect_str_eq(op_of(g, last), "multiply");
    cr_expect_eq(g->nodes[last].inputs[1], first);
    const tp_node_id by_sine = g->nodes[inner].inputs[0];
    cr_expect_str_eq(op_of(g, g->nodes[by_sine].inputs[1]), "cosine");
    tp_graph_destroy(g);
}

Test(autodiff, weights_in_bf16_get_unrounded_gradients)
{
    tp_graph *g = new_graph();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){2, {4, 3}});
    const tp_node_id w = tp_graph_add_input(g, "w", TP_F32, (tp_shape){2, {3, 2}});
    const tp_node_id y =
        tp_op_matmul(g, tp_op_convert(g, x, TP_BF16), tp_op_convert(g, w, TP_BF16), "default");
    tp_node_id d[2];
    const tp_node_id wrt[] = {w, x};
    tp_graph_gradients(g, sum_of(g, y), wrt, 2, d);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK);
    cr_expect_eq(g->nodes[d[0]].dtype, TP_F32);
    cr_expect_eq(g->nodes[d[1]].dtype, TP_F32);
    for (tp_node_id id = d[0]; id != TP_NO_NODE; id = g->nodes[id].inputs[0]) {
        cr_expect_eq(g->nodes[id].dtype, TP_F32, "%s rounds the gradient", op_of(g, id));
        if (g->nodes[id].def->op_class == TP_OP_MXU) break;
    }
    tp_graph_destroy(g);
}

/* A bf16 node with one f32 and one bf16 contribution, then an op that wants its own dtype. */
Test(autodiff, contributions_of_two_dtypes)
{
    tp_graph *g = new_graph();
    const tp_shape square = {2, {3, 3}};
    const tp_node_id x = tp_graph_add_input(g, "x", TP_BF16, square);
    const tp_node_id h = tp_op_multiply(g, x, x);
    const tp_node_id y = tp_op_matmul(g, h, h, "default");
    tp_node_id d;
    tp_graph_gradients(g, sum_of(g, y), &x, 1, &d);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_expect_eq(g->nodes[d].dtype, TP_BF16);
    cr_expect_eq(tp_graph_verify(g), TPUCL_OK);
    tp_graph_destroy(g);
}

Test(autodiff, paths_end)
{
    tp_graph *g = new_graph();
    const tp_shape shape = {1, {3}};
    const tp_node_id ids[] = {
        tp_graph_add_input(g, "a", TP_F32, shape), tp_graph_add_input(g, "b", TP_F32, shape),
        tp_graph_add_input(g, "c", TP_F32, shape), tp_graph_add_input(g, "d", TP_F32, shape)};
    const tp_node_id stopped = tp_op_stop_gradient(g, ids[1]);
    const tp_node_id count = tp_op_convert(g, tp_op_convert(g, ids[2], TP_S32), TP_F32);
    const tp_node_id loss = sum_of(g, tp_op_add(g, tp_op_multiply(g, ids[0], stopped), count));
    const int32_t before = g->node_count;
    tp_node_id d[4];
    tp_graph_gradients(g, loss, ids, 4, d);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK);
    cr_expect_neq(d[0], TP_NO_NODE);
    for (int i = 1; i < 4; ++i)
        cr_expect_eq(d[i], TP_NO_NODE);
    cr_expect(strncmp(g->nodes[g->node_count - 1].name, "gradient/", 9) == 0);
    cr_expect_lt(before, g->node_count);
    tp_graph_destroy(g);
}

Test(autodiff, gradient_of_itself)
{
    tp_graph *g = new_graph();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){0});
    tp_node_id d;
    tp_graph_gradients(g, x, &x, 1, &d);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK);
    cr_expect_str_eq(op_of(g, d), "constant");
    tp_graph_destroy(g);
}

Test(autodiff, intermediate_and_input)
{
    tp_graph *g = new_graph();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){0});
    const tp_node_id h = tp_op_sine(g, x), y = tp_op_multiply(g, h, h), wrt[] = {h, x};
    tp_node_id d[2];
    tp_graph_gradients(g, y, wrt, 2, d);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK);
    cr_expect_neq(d[0], TP_NO_NODE);
    cr_expect_eq(g->nodes[d[1]].inputs[0], d[0]);
    tp_graph_destroy(g);
}

Test(autodiff, mistakes)
{
    tp_graph *g = new_graph();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){1, {3}});
    tp_node_id d;
    tp_graph_gradients(g, x, &x, 1, &d);
    cr_expect_eq(d, TP_NO_NODE);
    cr_expect_eq(tp_graph_check(g), TPUCL_INVALID_ARGUMENT);
    cr_expect(
        strstr(tpucl_last_error()->message, "gradient of f32[3], expected an f32 or bf16 scalar"));
    tp_graph_destroy(g);

    g = new_graph();
    tp_graph_gradients(g, 3, NULL, 0, NULL);
    cr_expect_eq(tp_graph_check(g), TPUCL_INVALID_ARGUMENT);
    tp_graph_destroy(g);
}
