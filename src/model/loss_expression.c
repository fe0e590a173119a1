/* SPDX-License-Identifier: Apache-2.0
 * See loss_expression.h.
 */
#include "model/loss_expression.h"

#include <stdio.h>
#include "graph/builder.h"
#include "model/loss_elements.h"

/* ---- names ---- */

static void add_name(tp_loss_input *input, const char *name, tp_node_id node)
{
    input->names[input->name_count++] = (tp_expression_name){name, node};
}

/* The result, which takes gradients from the rows that weigh something. */
static tp_node_id open_to_examples(tp_graph *graph, tp_node_id result, tp_node_id weight)
{
    static const int64_t axes[] = {0};
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id counts = tp_op_compare(graph, "GT", weight, zero);
    const tp_node_id rows =
        tp_op_broadcast_in_dim(graph, counts, tp_loss_shape_of(graph, result), axes);
    return tp_op_select(graph, rows, result, tp_op_stop_gradient(graph, result));
}

void tp_loss_name_all(tp_graph *graph, tp_loss_input *input, tp_node_id weight, tp_node_id mask)
{
    input->name_count = 0;
    input->sample_weight = weight;
    add_name(input, "y_true", input->label);
    add_name(input, "y_pred", open_to_examples(graph, input->result, weight));
    add_name(input, "sample_weight", weight);
    if (mask != TP_NO_NODE) add_name(input, "mask", mask);
}

/* ---- shapes ---- */

/* [batch, some of the axes] with axes of size 1 behind them, broadcast to `shape`; false: it does not fit. */
static bool widen(tp_graph *graph, tp_node_id *inout_node, const tp_shape *shape)
{
    tp_shape own = tp_loss_shape_of(graph, *inout_node);
    if (own.rank > shape->rank) return false;
    while (own.rank < shape->rank)
        own.dims[own.rank++] = 1;
    for (int i = 0; i < own.rank; i++)
        if (own.dims[i] != shape->dims[i] && own.dims[i] != 1) return false;
    *inout_node = tp_op_broadcast_to(graph, tp_op_reshape(graph, *inout_node, own), *shape);
    return true;
}

/* The shape that both are widened to. */
static tp_shape common_shape(tp_shape a, const tp_shape *b)
{
    while (a.rank < b->rank)
        a.dims[a.rank++] = 1;
    for (int i = 0; i < b->rank; i++)
        if (a.dims[i] == 1) a.dims[i] = b->dims[i];
    return a;
}

static tpucl_status misfit(const char *what, const tp_graph *graph, tp_node_id node,
                           const char *of_what, const tp_shape *shape)
{
    char found[TP_SHAPE_TEXT_MAX], wanted[TP_SHAPE_TEXT_MAX];
    const tp_shape own = tp_loss_shape_of(graph, node);
    tp_shape_format(&own, found, sizeof found);
    tp_shape_format(shape, wanted, sizeof wanted);
    return TP_FAIL(TPUCL_INVALID_CONFIG,
                   "%s is %s for each batch, %s is %s; expected the same axes", what, found,
                   of_what, wanted);
}

static tp_node_id as_f32(tp_graph *graph, tp_node_id node)
{
    return tp_op_convert(graph, node, TP_F32);
}

/* ---- losses ---- */

static tpucl_status build(tp_graph *graph, const tp_loss_input *input, const char *path,
                          const char *member, const char *text, char what[160],
                          tp_node_id *out_node)
{
    snprintf(what, 160, "%.120s.%s", path ? path : "loss", member);
    return tp_expression_build_batched(graph, what, text, input->names, input->name_count,
                                       out_node);
}

tpucl_status tp_loss_read_values(tp_graph *graph, tp_loss_input *input)
{
    char what[160];
    const tp_loss_options *options = input->options;
    if (!options || !options->expression)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "the loss 'expression' has no expression");
    TP_TRY(build(graph, input, options->path, "expression", options->expression, what,
                 &input->values));
    if (tp_graph_node(graph, input->values)->dtype == TP_PRED)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "%s gives a mask (pred), expected numbers: where(mask, x, 0)", what);
    input->values = as_f32(graph, input->values);
    return tp_graph_check(graph);
}

tpucl_status tp_loss_read_mask(tp_graph *graph, const tp_loss_input *input, tp_node_id mask,
                               tp_node_id *out_mask)
{
    char what[160];
    tp_node_id own = TP_NO_NODE;
    const tp_shape shape = tp_loss_element_shape(graph, input);
    *out_mask = mask;
    /* of other elements than the loss has, as of the steps of a sequence that it takes together */
    if (mask != TP_NO_NODE && input->kind == TP_MODEL_LOSS_EXPRESSION &&
        !widen(graph, out_mask, &shape))
        *out_mask = TP_NO_NODE;
    if (!input->options || !input->options->mask) return tp_graph_check(graph);
    TP_TRY(build(graph, input, input->options->path, "mask", input->options->mask, what, &own));
    if (tp_graph_node(graph, own)->dtype != TP_PRED)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "%s gives %s, expected a mask: compare it with something", what,
                       tp_dtype_name(tp_graph_node(graph, own)->dtype));
    const tp_node_id given = own;
    if (!widen(graph, &own, &shape)) return misfit(what, graph, given, "the loss", &shape);
    if (*out_mask != TP_NO_NODE && widen(graph, out_mask, &shape))
        own = tp_op_and(graph, own, *out_mask);
    *out_mask = own;
    return tp_graph_check(graph);
}

/* ---- metrics ---- */

/* The weight of each of the metric's elements, f32. */
static tpucl_status read_weight(tp_graph *graph, const tp_metric_options *options,
                                const tp_loss_input *input, const tp_loss_weights *weights,
                                tp_node_id *inout_values, tp_node_id *out_weight)
{
    char what[160];
    tp_node_id own;
    tp_shape shape = tp_loss_shape_of(graph, *inout_values);
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    *out_weight = weights->weight;
    if (!options->weight && widen(graph, out_weight, &shape)) return tp_graph_check(graph);
    *out_weight = input->sample_weight;
    if (!options->weight) {
        widen(graph, out_weight, &shape);
        return tp_graph_check(graph);
    }
    TP_TRY(build(graph, input, options->path, "weight", options->weight, what, &own));
    const tp_shape own_shape = tp_loss_shape_of(graph, own);
    const tp_node_id given = own;
    shape = common_shape(shape, &own_shape);
    if (!widen(graph, &own, &shape) || !widen(graph, inout_values, &shape))
        return misfit(what, graph, given, "the expression", &shape);
    widen(graph, out_weight, &shape);
    /* the own one may be NaN, infinite or below 0, in padding above all */
    own = as_f32(graph, own);
    const tp_node_id counts = tp_op_and(graph, tp_op_compare(graph, "GT", own, zero),
                                        tp_op_compare(graph, "GT", *out_weight, zero));
    *out_weight = tp_op_select(graph, counts, tp_op_multiply(graph, own, *out_weight), zero);
    return tp_graph_check(graph);
}

tpucl_status tp_metric_build_expression(tp_graph *graph, const tp_metric_options *options,
                                        const tp_loss_input *input, const tp_loss_weights *weights,
                                        tp_metric_parts *out_parts)
{
    char what[160];
    tp_node_id values, weight;
    *out_parts = (tp_metric_parts){.count = 0};
    if (!options->expression)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "a metric 'expression' has no expression");
    TP_TRY(build(graph, input, options->path, "expression", options->expression, what, &values));
    TP_TRY(read_weight(graph, options, input, weights, &values, &weight));
    out_parts->nodes[0] = tp_loss_weighted_sum(graph, weight, as_f32(graph, values));
    out_parts->nodes[1] = tp_op_reduce(graph, weight, "add", NULL, 0);
    out_parts->count = 2;
    return tp_graph_check(graph);
}
