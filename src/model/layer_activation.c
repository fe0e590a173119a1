/* SPDX-License-Identifier: Apache-2.0
 * Activation, Softmax, Identity and ReLU.
 */
#include <math.h>

#include "model/layer.h"

/* ---- Activation, Softmax ---- */

typedef struct activation_args {
    int32_t activation;
    tp_layer_ints axis; /* Softmax */
    tp_layer_axes axes; /* of the example; found by infer */
} activation_args;

/* glu halves the last axis: Activation alone takes it, because other layers say their result's shape. */
#define ACTIVATION_NAME(id, name) name,
static const char *const activation_names[] = {TP_ACTIVATION_LIST(ACTIVATION_NAME) "glu"};
#undef ACTIVATION_NAME
enum { GLU = TP_ACTIVATION_COUNT };

static const tp_layer_arg activation_arguments[] = {
    {"activation", offsetof(activation_args, activation), TP_LAYER_CHOICE, TP_LAYER_REQUIRED,
     TP_LAYER_CHOICES(activation_names)},
    {0},
};
static const tp_layer_arg softmax_arguments[] = {
    {"axis", offsetof(activation_args, axis), TP_LAYER_INTS,
     TP_LAYER_RANGE(-TP_MAX_RANK, TP_MAX_RANK), .count = TP_MAX_RANK},
    {0},
};

static void set_softmax_defaults(void *args)
{
    activation_args *softmax = args;
    softmax->activation = TP_ACTIVATION_SOFTMAX;
}

static bool infer_glu(tp_layer *layer, tp_problems *problems)
{
    tp_shape half = *tp_layer_input(layer, 0);
    const int last = half.rank - 1;
    if (!tp_layer_need_features(layer, problems)) return false;
    if (half.dims[last] % 2 != 0) {
        tp_problems_add(problems, "glu halves the last dimension, which is %lld",
                        (long long)half.dims[last]);
        return false;
    }
    half.dims[last] /= 2;
    return tp_layer_add_output(layer, problems, half.rank, half.dims);
}

static bool infer_activation(tp_layer *layer, tp_problems *problems)
{
    const int32_t activation = ((const activation_args *)layer->args)->activation;
    if (activation == GLU) return infer_glu(layer, problems);
    if (tp_activation_is_row_wise((tp_activation)activation) &&
        !tp_layer_need_features(layer, problems))
        return false;
    return tp_layer_same_output(layer, problems);
}

/* The first half of the last axis times the logistic function of the second (Dauphin et al. 2017). */
static tp_node_id build_glu(tp_graph *graph, tp_node_id z)
{
    if (z == TP_NO_NODE) return z;
    tp_shape limit = tp_graph_node(graph, z)->shape;
    int64_t start[TP_MAX_RANK] = {0};
    const int last = limit.rank - 1;
    const int64_t width = limit.dims[last];
    limit.dims[last] = width / 2;
    const tp_node_id a = tp_op_slice(graph, z, start, limit.dims, NULL);
    start[last] = width / 2;
    limit.dims[last] = width;
    const tp_node_id gate = tp_op_slice(graph, z, start, limit.dims, NULL);
    return tp_op_multiply(graph, a, tp_op_logistic(graph, gate));
}

static void build_activation(tp_layer_context *context, const tp_layer *layer,
                             const tp_node_id *inputs, tp_node_id *outputs)
{
    const int32_t kind = ((const activation_args *)layer->args)->activation;
    const tp_activation activation = (tp_activation)kind;
    const tp_node_id z = tp_op_convert(context->graph, inputs[0], TP_F32);
    if (kind == GLU) {
        outputs[0] = tp_op_convert(context->graph, build_glu(context->graph, z), context->dtype);
        return;
    }
    if (activation == TP_ACTIVATION_SOFTMAX) context->logits = z;
    outputs[0] = activation == TP_ACTIVATION_LINEAR
                     ? inputs[0]
                     : tp_activation_apply(context->graph, activation, z, context->dtype);
}

/* ---- Softmax ---- */

static bool infer_softmax(tp_layer *layer, tp_problems *problems)
{
    activation_args *softmax = layer->args;
    return tp_layer_need_features(layer, problems) &&
           tp_layer_find_axes(layer, &softmax->axis, problems, &softmax->axes) &&
           tp_layer_same_output(layer, problems);
}

/* One distribution over all the axes together. */
static void build_softmax(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    const tp_layer_axes *axes = &((const activation_args *)layer->args)->axes;
    tp_graph *graph = context->graph;
    tp_shape thin = tp_layer_batched(context, tp_layer_input(layer, 0));
    int64_t items[TP_MAX_RANK];
    if (axes->count == 1 && axes->items[0] == thin.rank - 2) {
        build_activation(context, layer, inputs, outputs);
        return;
    }
    for (int32_t i = 0; i < axes->count; i++) {
        items[i] = axes->items[i] + 1;
        thin.dims[items[i]] = 1;
    }
    const tp_node_id z = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id largest =
        tp_op_reshape(graph, tp_op_reduce(graph, z, "max", items, axes->count), thin);
    const tp_node_id e =
        tp_op_exponential(graph, tp_op_subtract(graph, z, tp_op_stop_gradient(graph, largest)));
    const tp_node_id sum =
        tp_op_reshape(graph, tp_op_reduce(graph, e, "add", items, axes->count), thin);
    outputs[0] = tp_op_convert(graph, tp_op_divide(graph, e, sum), context->dtype);
}

/* ---- Identity ---- */

static void build_identity(tp_layer_context *context, const tp_layer *layer,
                           const tp_node_id *inputs, tp_node_id *outputs)
{
    (void)context;
    (void)layer;
    outputs[0] = inputs[0];
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
                                        .infer = infer_softmax,
                                        .build = build_softmax};
const tp_layer_type tp_layer_relu = {.name = "ReLU",
                                     .snake = "re_lu",
                                     .arguments = relu_arguments,
                                     .args_bytes = sizeof(relu_args),
                                     .mask = TP_LAYER_MASK_PASSES,
                                     .set_defaults = set_relu_defaults,
                                     .infer = tp_layer_same_output,
                                     .build = build_relu};
const tp_layer_type tp_layer_identity = {.name = "Identity",
                                         .snake = "identity",
                                         .mask = TP_LAYER_MASK_PASSES,
                                         .infer = tp_layer_same_output,
                                         .build = build_identity};
