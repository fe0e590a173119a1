/* SPDX-License-Identifier: Apache-2.0
 * See sample_graph.h. */
#include "harness/sample_graph.h"

#include <criterion/criterion.h>
#include <math.h>

#include "graph/autodiff.h"
#include "graph/verify.h"
#include "ops/registry.h"

const tp_sample_options tp_sample_small = {4, 6, 5, 3, 2, 0.1, 0.25};

static tp_node_id add_weight(tp_graph *g, const char *name, tp_shape shape, double limit)
{
    const tp_variable variable = {.name = name,
                                  .dtype = TP_F32,
                                  .shape = shape,
                                  .init = limit > 0 ? TP_INIT_UNIFORM : TP_INIT_ZEROS,
                                  .init_a = -limit,
                                  .init_b = limit,
                                  .is_trainable = true,
                                  .is_model = true};
    return tp_graph_add_variable(g, &variable);
}

static tp_node_id add_dense(tp_graph *g, const char *scope, tp_node_id x, int64_t in, int64_t out,
                            tp_node_id weights[2])
{
    const char *old_scope = tp_graph_push_scope(g, scope);
    weights[0] = add_weight(g, "kernel", (tp_shape){2, {in, out}}, sqrt(6.0 / (double)(in + out)));
    weights[1] = add_weight(g, "bias", (tp_shape){1, {out}}, 0);
    const tp_node_id product = tp_op_matmul(g, tp_op_convert(g, x, TP_BF16),
                                            tp_op_convert(g, weights[0], TP_BF16), "default");
    const tp_node_id y = tp_op_add(g, product, weights[1]);
    tp_graph_pop_scope(g, old_scope);
    return y;
}

static tp_node_id add_dropout(tp_graph *g, tp_node_id x, double rate)
{
    const tp_node_id keep = tp_op_bernoulli(g, g->nodes[x].shape, 1 - rate, 1);
    return tp_op_select(g, keep, tp_op_multiply_scalar(g, x, 1 / (1 - rate)),
                        tp_op_scalar(g, TP_F32, 0));
}

/* Mean over the batch of log(sum exp(logits)) - logits[label]. */
static tp_node_id add_loss(tp_graph *g, tp_node_id logits, tp_node_id label)
{
    const tp_shape shape = g->nodes[logits].shape, column = {2, {shape.dims[0], 1}};
    const int64_t last[] = {1};
    const tp_node_id top = tp_op_reshape(g, tp_op_reduce(g, logits, "max", last, 1), column);
    const tp_node_id shifted = tp_op_subtract(g, logits, tp_op_stop_gradient(g, top));
    const tp_node_id sum = tp_op_reduce(g, tp_op_exponential(g, shifted), "add", last, 1);
    const tp_node_id is_label =
        tp_op_compare(g, "EQ", tp_op_iota(g, TP_S32, shape, 1), tp_op_reshape(g, label, column));
    const tp_node_id chosen = tp_op_reduce(
        g, tp_op_select(g, is_label, shifted, tp_op_scalar(g, TP_F32, 0)), "add", last, 1);
    const tp_node_id losses = tp_op_subtract(g, tp_op_log(g, sum), chosen);
    return tp_op_multiply_scalar(g, tp_op_reduce(g, losses, "add", NULL, 0),
                                 1.0 / (double)shape.dims[0]);
}

tp_graph *tp_sample_graph(const tp_sample_options *options)
{
    tp_graph *g;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &g), TPUCL_OK);
    tp_node_id weights[4], gradients[4];
    const tp_node_id x =
        tp_graph_add_input(g, "x", TP_F32, (tp_shape){2, {options->batch, options->features}});
    const tp_node_id label =
        tp_graph_add_input(g, "label", TP_S32, (tp_shape){1, {options->batch}});
    tp_node_id h = add_dense(g, "dense", x, options->features, options->hidden, &weights[0]);
    h = tp_op_maximum(g, h, tp_op_scalar(g, TP_F32, 0));
    if (options->dropout > 0) h = add_dropout(g, h, options->dropout);
    const tp_node_id logits =
        add_dense(g, "logits", h, options->hidden, options->classes, &weights[2]);
    const tp_node_id loss = add_loss(g, logits, label);
    tp_graph_gradients(g, loss, weights, 4, gradients);
    const double share = 1.0 / options->cores;
    for (int i = 0; i < 4; ++i) {
        const tp_node_id mean = tp_op_multiply_scalar(g, tp_op_all_reduce(g, gradients[i]), share);
        const tp_node_id change = tp_op_multiply_scalar(g, mean, -options->learning_rate);
        tp_graph_add_update(g, weights[i], tp_op_add(g, weights[i], change));
    }
    tp_graph_add_output(g, "loss", tp_op_multiply_scalar(g, tp_op_all_reduce(g, loss), share));
    tp_graph_add_output(g, "logits", logits);
    cr_assert_eq(tp_graph_verify(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    return g;
}
