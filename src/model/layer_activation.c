/* SPDX-License-Identifier: Apache-2.0
 * Activation, ReLU, Softmax and Dropout: layers without weights that keep the shape.
 */
#include <math.h>

#include "model/layer.h"

/* ---- Activation, Softmax ---- */

typedef struct activation_args {
    int32_t activation;
    int64_t axis; /* Softmax */
} activation_args;

static const tp_layer_arg activation_arguments[] = {
    {"activation", offsetof(activation_args, activation), TP_LAYER_ACTIVATION, TP_LAYER_REQUIRED},
    {0},
};
static const tp_layer_arg softmax_arguments[] = {
    {"axis", offsetof(activation_args, axis), TP_LAYER_INT, TP_LAYER_RANGE(-1, -1)},
    {0},
};

static void set_softmax_defaults(void *args)
{
    activation_args *softmax = args;
    softmax->activation = TP_ACTIVATION_SOFTMAX;
    softmax->axis = -1;
}

static bool infer_activation(tp_layer *layer, tp_problems *problems)
{
    const activation_args *args = layer->args;
    if (args->activation == TP_ACTIVATION_SOFTMAX && tp_layer_input(layer, 0)->rank < 1) {
        tp_problems_add(problems, "the input is a scalar, softmax needs at least one dimension");
        return false;
    }
    return tp_layer_same_output(layer, problems);
}

static void build_activation(tp_layer_context *context, const tp_layer *layer,
                             const tp_node_id *inputs, tp_node_id *outputs)
{
    const tp_activation activation =
        (tp_activation)((const activation_args *)layer->args)->activation;
    const tp_node_id z = tp_op_convert(context->graph, inputs[0], TP_F32);
    if (activation == TP_ACTIVATION_SOFTMAX) context->logits = z;
    outputs[0] = activation == TP_ACTIVATION_LINEAR
                     ? inputs[0]
                     : tp_activation_apply(context->graph, activation, z, context->dtype);
}

/* ---- ReLU ---- */

typedef struct relu_args {
    double max_value, negative_slope, threshold; /* max_value infinite: none */
} relu_args;

static const tp_layer_arg relu_arguments[] = {
    {"max_value", offsetof(relu_args, max_value), TP_LAYER_NUMBER, TP_LAYER_NULLABLE,
     TP_LAYER_RANGE(0, 1e30)},
    TP_LAYER_ROW_NUMBER(relu_args, negative_slope, 0, 1e30),
    TP_LAYER_ROW_NUMBER(relu_args, threshold, 0, 1e30),
    {0},
};

static void set_relu_defaults(void *args)
{
    ((relu_args *)args)->max_value = INFINITY;
}

/* x >= max_value: max_value; threshold <= x: x; below: negative_slope * (x - threshold) */
static void build_relu(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                       tp_node_id *outputs)
{
    const relu_args *relu = layer->args;
    tp_graph *graph = context->graph;
    const tp_node_id x = inputs[0];
    if (relu->negative_slope == 0 && relu->threshold == 0 && isinf(relu->max_value)) {
        outputs[0] = tp_op_maximum(graph, x, tp_op_scalar(graph, context->dtype, 0));
        return;
    }
    const tp_node_id z = tp_op_convert(graph, x, TP_F32);
    const tp_node_id threshold = tp_op_scalar(graph, TP_F32, relu->threshold);
    const tp_node_id below =
        tp_op_multiply_scalar(graph, tp_op_subtract(graph, z, threshold), relu->negative_slope);
    tp_node_id y = tp_op_select(graph, tp_op_compare(graph, "GE", z, threshold), z, below);
    if (!isinf(relu->max_value))
        y = tp_op_minimum(graph, y, tp_op_scalar(graph, TP_F32, relu->max_value));
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

/* ---- Dropout ---- */

typedef struct dropout_args {
    double rate;
} dropout_args;

static const tp_layer_arg dropout_arguments[] = {
    {"rate", offsetof(dropout_args, rate), TP_LAYER_NUMBER, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(0, 1)},
    {0},
};

/* Kept elements are scaled by 1 / (1 - rate) so that the expected sum stays the same. */
static void build_dropout(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    const double rate = ((const dropout_args *)layer->args)->rate;
    tp_graph *graph = context->graph;
    outputs[0] = inputs[0];
    if (!context->is_training || rate == 0) return;
    const double keep = 1 - rate;
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id kept = tp_op_bernoulli(graph, shape, keep, tp_layer_random_stream(context));
    const tp_node_id scaled = tp_op_multiply_scalar(graph, tp_op_convert(graph, inputs[0], TP_F32),
                                                    keep > 0 ? 1 / keep : 0);
    outputs[0] = tp_op_convert(graph, tp_op_select(graph, kept, scaled, zero), context->dtype);
}

const tp_layer_type tp_layer_activation = {.name = "Activation",
                                           .snake = "activation",
                                           .arguments = activation_arguments,
                                           .args_bytes = sizeof(activation_args),
                                           .mask = TP_LAYER_MASK_PASSES,
                                           .infer = infer_activation,
                                           .build = build_activation};
const tp_layer_type tp_layer_softmax = {.name = "Softmax",
                                        .snake = "softmax",
                                        .arguments = softmax_arguments,
                                        .args_bytes = sizeof(activation_args),
                                        .mask = TP_LAYER_MASK_PASSES,
                                        .set_defaults = set_softmax_defaults,
                                        .infer = infer_activation,
                                        .build = build_activation};
const tp_layer_type tp_layer_relu = {.name = "ReLU",
                                     .snake = "re_lu",
                                     .arguments = relu_arguments,
                                     .args_bytes = sizeof(relu_args),
                                     .mask = TP_LAYER_MASK_PASSES,
                                     .set_defaults = set_relu_defaults,
                                     .infer = tp_layer_same_output,
                                     .build = build_relu};
const tp_layer_type tp_layer_dropout = {.name = "Dropout",
                                        .snake = "dropout",
                                        .arguments = dropout_arguments,
                                        .args_bytes = sizeof(dropout_args),
                                        .mask = TP_LAYER_MASK_PASSES,
                                        .infer = tp_layer_same_output,
                                        .build = build_dropout};
