/* SPDX-License-Identifier: Apache-2.0
 * BatchNormalization over all axes but the last, in f32:
 *     y = (x - mean) * (gamma / sqrt(variance + epsilon)) + beta
 * Training: mean and variance (biased) of the core's own examples, those of weight 0 left out; the moving
 * statistics take momentum * moving + (1 - momentum) * (mean over all cores, each core weighing as many
 * elements as it has), as Keras' replicas do. Otherwise, and for a layer that is not trainable: the moving
 * statistics.
 */
#include "model/layer.h"

typedef struct norm_args {
    int64_t axis;
    double momentum, epsilon;
    bool center, scale;
    tp_initializer beta_initializer, gamma_initializer, moving_mean_initializer,
        moving_variance_initializer;
    tp_regularizer beta_regularizer, gamma_regularizer;
    tp_constraint beta_constraint, gamma_constraint;
} norm_args;

static const tp_layer_arg arguments[] = {
    {"axis", offsetof(norm_args, axis), TP_LAYER_INT, TP_LAYER_RANGE(-1, TP_MAX_RANK)},
    TP_LAYER_ROW_NUMBER(norm_args, momentum, 0, 1),
    TP_LAYER_ROW_NUMBER(norm_args, epsilon, 0, 1e30),
    TP_LAYER_ROW_BOOL(norm_args, center),
    TP_LAYER_ROW_BOOL(norm_args, scale),
    TP_LAYER_ROW_INITIALIZER(norm_args, beta_initializer),
    TP_LAYER_ROW_INITIALIZER(norm_args, gamma_initializer),
    TP_LAYER_ROW_INITIALIZER(norm_args, moving_mean_initializer),
    TP_LAYER_ROW_INITIALIZER(norm_args, moving_variance_initializer),
    TP_LAYER_ROW_REGULARIZER(norm_args, beta_regularizer),
    TP_LAYER_ROW_REGULARIZER(norm_args, gamma_regularizer),
    TP_LAYER_ROW_CONSTRAINT(norm_args, beta_constraint),
    TP_LAYER_ROW_CONSTRAINT(norm_args, gamma_constraint),
    {0},
};

static void set_defaults(void *args)
{
    norm_args *norm = args;
    norm->axis = -1;
    norm->momentum = 0.99;
    norm->epsilon = 1e-3;
    norm->center = norm->scale = true;
    norm->beta_initializer = norm->moving_mean_initializer = tp_initializer_default("zeros");
    norm->gamma_initializer = norm->moving_variance_initializer = tp_initializer_default("ones");
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    const norm_args *norm = layer->args;
    const tp_shape *input = tp_layer_input(layer, 0);
    const int rank = input->rank;
    if (!tp_layer_need_features(layer, problems)) return false;
    if (norm->axis != -1 && norm->axis != rank) { /* Keras counts the batch as axis 0 */
        tp_problems_add(problems, "'axis' is %lld, expected -1 or %d, the last one",
                        (long long)norm->axis, rank);
        return false;
    }
    const int64_t *channels = &input->dims[rank - 1];
    if (norm->scale) {
        tp_layer_weight *gamma =
            tp_layer_add_weight(layer, "gamma", 1, channels, &norm->gamma_initializer, true);
        gamma->regularizer = &norm->gamma_regularizer;
        gamma->constraint = &norm->gamma_constraint;
    }
    if (norm->center) {
        tp_layer_weight *beta =
            tp_layer_add_weight(layer, "beta", 1, channels, &norm->beta_initializer, true);
        beta->regularizer = &norm->beta_regularizer;
        beta->constraint = &norm->beta_constraint;
    }
    tp_layer_add_weight(layer, "moving_mean", 1, channels, &norm->moving_mean_initializer, false);
    tp_layer_add_weight(layer, "moving_variance", 1, channels, &norm->moving_variance_initializer,
                        false);
    return tp_layer_same_output(layer, problems);
}

/* Nodes of the weights, TP_NO_NODE where the layer has none. */
typedef struct norm_weights {
    tp_node_id gamma, beta, moving_mean, moving_variance;
} norm_weights;

static norm_weights find_weights(const tp_layer_context *context, const norm_args *norm)
{
    int32_t at = 0;
    norm_weights w = {TP_NO_NODE, TP_NO_NODE, TP_NO_NODE, TP_NO_NODE};
    if (norm->scale) w.gamma = context->variables[at++];
    if (norm->center) w.beta = context->variables[at++];
    w.moving_mean = context->variables[at++];
    w.moving_variance = context->variables[at];
    return w;
}

static tp_node_id normalise(tp_graph *graph, const norm_args *norm, const norm_weights *w,
                            tp_node_id centred, tp_node_id variance)
{
    tp_node_id factor = tp_op_rsqrt(graph, tp_op_add_scalar(graph, variance, norm->epsilon));
    if (w->gamma != TP_NO_NODE) factor = tp_op_multiply(graph, factor, w->gamma);
    const tp_node_id y = tp_op_multiply(graph, centred, factor);
    return w->beta != TP_NO_NODE ? tp_op_add(graph, y, w->beta) : y;
}

/* Sum over all axes but the last of values where the example counts. */
static tp_node_id masked_sum(tp_graph *graph, tp_node_id counts, tp_node_id values, int rank)
{
    static const int64_t axes[TP_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    return tp_op_reduce(graph, tp_op_select(graph, counts, values, zero), "add", axes, rank - 1);
}

static void update_moving(tp_graph *graph, const norm_args *norm, tp_node_id moving, tp_node_id sum,
                          tp_node_id total)
{
    const tp_node_id mean = tp_op_divide(graph, tp_op_all_reduce(graph, sum), total);
    const tp_node_id old = tp_op_multiply_scalar(graph, moving, norm->momentum);
    const tp_node_id new = tp_op_multiply_scalar(graph, mean, 1 - norm->momentum);
    tp_graph_add_update(graph, moving, tp_op_add(graph, old, new));
}

static tp_node_id build_training(tp_layer_context *context, const tp_layer *layer,
                                 const norm_weights *w, tp_node_id x)
{
    static const int64_t batch_axis[] = {0};
    const norm_args *norm = layer->args;
    tp_graph *graph = context->graph;
    const tp_shape *output = tp_layer_output(layer, 0);
    const tp_shape shape = tp_layer_batched(context, output);
    const double cells = (double)tp_shape_elems(output) / (double)output->dims[output->rank - 1];

    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0), one = tp_op_scalar(graph, TP_F32, 1);
    const tp_node_id is_example = tp_op_compare(graph, "GT", context->weight, zero);
    const tp_node_id examples =
        tp_op_reduce(graph, tp_op_convert(graph, is_example, TP_F32), "add", NULL, 0);
    const tp_node_id count = tp_op_multiply_scalar(graph, examples, cells);
    const tp_node_id divisor = tp_op_maximum(graph, count, one); /* a core may have no example */
    const tp_node_id counts = tp_op_broadcast_in_dim(graph, is_example, shape, batch_axis);

    const tp_node_id sum = masked_sum(graph, counts, x, shape.rank);
    const tp_node_id mean = tp_op_divide(graph, sum, divisor);
    const tp_node_id centred = tp_op_subtract(graph, x, mean);
    const tp_node_id square = tp_op_multiply(graph, centred, centred);
    const tp_node_id square_sum = masked_sum(graph, counts, square, shape.rank);
    const tp_node_id variance = tp_op_divide(graph, square_sum, divisor);

    const tp_node_id total = tp_op_maximum(graph, tp_op_all_reduce(graph, count), one);
    update_moving(graph, norm, w->moving_mean, sum, total);
    update_moving(graph, norm, w->moving_variance, square_sum, total);
    return normalise(graph, norm, w, centred, variance);
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const norm_args *norm = layer->args;
    tp_graph *graph = context->graph;
    const norm_weights w = find_weights(context, norm);
    const tp_node_id wide = tp_op_convert(graph, inputs[0], TP_F32);
    tp_node_id y;
    if (context->is_training && layer->trainable)
        y = build_training(context, layer, &w, wide);
    else
        y = normalise(graph, norm, &w, tp_op_subtract(graph, wide, w.moving_mean),
                      w.moving_variance);
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

const tp_layer_type tp_layer_batch_normalization = {.name = "BatchNormalization",
                                                    .snake = "batch_normalization",
                                                    .arguments = arguments,
                                                    .args_bytes = sizeof(norm_args),
                                                    .mask = TP_LAYER_MASK_PASSES,
                                                    .set_defaults = set_defaults,
                                                    .infer = infer,
                                                    .build = build};
