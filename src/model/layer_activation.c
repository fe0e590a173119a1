/* SPDX-License-Identifier: Apache-2.0
 * Activation, ReLU, Softmax and Dropout: layers without weights that keep the shape.
 */
#include <math.h>

#include "graph/builder.h"
#include "model/layer.h"

static bool infer_same(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_set_output(layer, problems, layer->input.rank, layer->input.dims);
}

/* ---- Activation, Softmax ---- */

static const tp_layer_arg activation_arguments[] = {TP_LAYER_ROW_ACTIVATION(true), {0}};
static const tp_layer_arg softmax_arguments[] = {
    {"axis", TP_LAYER_INT, TP_LAYER_FIELD(axis), false, -1, -1, NULL, 0}, {0}};

static void set_softmax_defaults(tp_layer *layer)
{
    layer->activation = TP_ACTIVATION_SOFTMAX;
    layer->axis = -1;
}

static tp_node_id build_activation(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    const tp_activation activation = (tp_activation)layer->activation;
    const tp_node_id z = tp_op_convert(context->graph, x, TP_F32);
    if (activation == TP_ACTIVATION_SOFTMAX) context->logits = z;
    if (activation == TP_ACTIVATION_LINEAR) return x;
    return tp_activation_apply(context->graph, activation, z, context->dtype);
}

static bool infer_activation(tp_layer *layer, tp_problems *problems)
{
    if (layer->activation == TP_ACTIVATION_SOFTMAX && layer->input.rank < 1) {
        tp_problems_add(problems, "the input is a scalar, softmax needs at least one dimension");
        return false;
    }
    return infer_same(layer, problems);
}

/* ---- ReLU ---- */

static const tp_layer_arg relu_arguments[] = {
    {"max_value", TP_LAYER_LIMIT, TP_LAYER_FIELD(max_value), false, 0, 1e30, NULL, 0},
    TP_LAYER_ROW_NUMBER(negative_slope, 0, 1e30),
    TP_LAYER_ROW_NUMBER(threshold, 0, 1e30),
    {0}};

static void set_relu_defaults(tp_layer *layer)
{
    layer->max_value = INFINITY;
}

/* x >= max_value: max_value; threshold <= x: x; below: negative_slope * (x - threshold) */
static tp_node_id build_relu(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    tp_graph *graph = context->graph;
    if (x == TP_NO_NODE) return x;
    if (layer->negative_slope == 0 && layer->threshold == 0 && isinf(layer->max_value))
        return tp_op_maximum(graph, x, tp_op_scalar(graph, context->dtype, 0));
    const tp_node_id z = tp_op_convert(graph, x, TP_F32);
    const tp_node_id threshold = tp_op_scalar(graph, TP_F32, layer->threshold);
    const tp_node_id below =
        tp_op_multiply_scalar(graph, tp_op_subtract(graph, z, threshold), layer->negative_slope);
    tp_node_id y = tp_op_select(graph, tp_op_compare(graph, "GE", z, threshold), z, below);
    if (!isinf(layer->max_value))
        y = tp_op_minimum(graph, y, tp_op_scalar(graph, TP_F32, layer->max_value));
    return tp_op_convert(graph, y, context->dtype);
}

/* ---- Dropout ---- */

static const tp_layer_arg dropout_arguments[] = {
    {"rate", TP_LAYER_NUMBER, TP_LAYER_FIELD(rate), true, 0, 1, NULL, 0}, {0}};

/* Kept elements are scaled by 1 / (1 - rate) so that the expected sum stays the same. */
static tp_node_id build_dropout(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    tp_graph *graph = context->graph;
    if (!context->is_training || layer->rate == 0 || x == TP_NO_NODE) return x;
    const double keep = 1 - layer->rate;
    const tp_shape shape = tp_layer_batched(context, &layer->output);
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id kept = tp_op_bernoulli(graph, shape, keep, layer->stream);
    const tp_node_id scaled =
        tp_op_multiply_scalar(graph, tp_op_convert(graph, x, TP_F32), keep > 0 ? 1 / keep : 0);
    return tp_op_convert(graph, tp_op_select(graph, kept, scaled, zero), context->dtype);
}

const tp_layer_type tp_layer_activation = {"Activation", "activation",     activation_arguments,
                                           NULL,         infer_activation, build_activation};
const tp_layer_type tp_layer_softmax = {"Softmax",         "softmax",
                                        softmax_arguments, set_softmax_defaults,
                                        infer_activation,  build_activation};
const tp_layer_type tp_layer_relu = {"ReLU",     "re_lu",   relu_arguments, set_relu_defaults,
                                     infer_same, build_relu};
const tp_layer_type tp_layer_dropout = {"Dropout", "dropout",  dropout_arguments,
                                        NULL,      infer_same, build_dropout};
