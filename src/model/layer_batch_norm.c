/* SPDX-License-Identifier: Apache-2.0
 * BatchNormalization over all axes but the last, in f32:
 *     y = (x - mean) * (gamma / sqrt(variance + epsilon)) + beta
 * Training: mean and variance (biased) of the core's own examples, those of weight 0 left out; the moving
 * statistics take momentum * moving + (1 - momentum) * (mean over all cores, each core weighing as many
 * elements as it has), as Keras' replicas do. Otherwise, and for a layer that is not trainable: the moving
 * statistics.
 */
#include "graph/builder.h"
#include "model/layer.h"

static const tp_layer_arg arguments[] = {
    {"axis", TP_LAYER_INT, TP_LAYER_FIELD(axis), false, -1, TP_MAX_RANK, NULL, 0},
    TP_LAYER_ROW_NUMBER(momentum, 0, 1),
    TP_LAYER_ROW_NUMBER(epsilon, 0, 1e30),
    TP_LAYER_ROW_BOOL(center),
    {"scale", TP_LAYER_BOOL, TP_LAYER_FIELD(use_scale), false, 0, 0, NULL, 0},
    TP_LAYER_ROW_INITIALIZER(beta_initializer),
    TP_LAYER_ROW_INITIALIZER(gamma_initializer),
    TP_LAYER_ROW_INITIALIZER(moving_mean_initializer),
    TP_LAYER_ROW_INITIALIZER(moving_variance_initializer),
    {0}};

static void set_defaults(tp_layer *layer)
{
    layer->axis = -1;
    layer->momentum = 0.99;
    layer->epsilon = 1e-3;
    layer->center = layer->use_scale = true;
    layer->beta_initializer = layer->moving_mean_initializer = tp_initializer_default("zeros");
    layer->gamma_initializer = layer->moving_variance_initializer = tp_initializer_default("ones");
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    const int rank = layer->input.rank;
    if (rank < 1) {
        tp_problems_add(problems, "the input is a scalar, expected at least one dimension");
        return false;
    }
    if (layer->axis != -1 && layer->axis != rank) { /* Keras counts the batch as axis 0 */
        tp_problems_add(problems, "'axis' is %lld, expected -1 or %d, the last one",
                        (long long)layer->axis, rank);
        return false;
    }
    const int64_t *channels = &layer->input.dims[rank - 1];
    if (layer->use_scale)
        tp_layer_add_weight(layer, "gamma", 1, channels, &layer->gamma_initializer, true);
    if (layer->center)
        tp_layer_add_weight(layer, "beta", 1, channels, &layer->beta_initializer, true);
    tp_layer_add_weight(layer, "moving_mean", 1, channels, &layer->moving_mean_initializer, false);
    tp_layer_add_weight(layer, "moving_variance", 1, channels, &layer->moving_variance_initializer,
                        false);
    return tp_layer_set_output(layer, problems, rank, layer->input.dims);
}

/* Nodes of the weights, TP_NO_NODE where the layer has none. */
typedef struct norm_weights {
    tp_node_id gamma, beta, moving_mean, moving_variance;
} norm_weights;

static norm_weights find_weights(const tp_layer_context *context, const tp_layer *layer)
{
    int32_t at = 0;
    norm_weights w = {TP_NO_NODE, TP_NO_NODE, TP_NO_NODE, TP_NO_NODE};
    if (layer->use_scale) w.gamma = context->variables[at++];
    if (layer->center) w.beta = context->variables[at++];
    w.moving_mean = context->variables[at++];
    w.moving_variance = context->variables[at];
    return w;
}

static tp_node_id normalise(tp_graph *graph, const tp_layer *layer, const norm_weights *w,
                            tp_node_id centred, tp_node_id variance)
{
    tp_node_id factor = tp_op_rsqrt(graph, tp_op_add_scalar(graph, variance, layer->epsilon));
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

static void update_moving(tp_graph *graph, const tp_layer *layer, tp_node_id moving, tp_node_id sum,
                          tp_node_id total)
{
    const tp_node_id mean = tp_op_divide(graph, tp_op_all_reduce(graph, sum), total);
    const tp_node_id old = tp_op_multiply_scalar(graph, moving, layer->momentum);
    const tp_node_id new = tp_op_multiply_scalar(graph, mean, 1 - layer->momentum);
    tp_graph_add_update(graph, moving, tp_op_add(graph, old, new));
}

static tp_node_id build_training(tp_layer_context *context, const tp_layer *layer,
                                 const norm_weights *w, tp_node_id x)
{
    static const int64_t batch_axis[] = {0};
    tp_graph *graph = context->graph;
    const tp_shape shape = tp_layer_batched(context, &layer->output);
    const double cells =
        (double)tp_shape_elems(&layer->output) / (double)layer->output.dims[layer->output.rank - 1];

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
    update_moving(graph, layer, w->moving_mean, sum, total);
    update_moving(graph, layer, w->moving_variance, square_sum, total);
    return normalise(graph, layer, w, centred, variance);
}

static tp_node_id build(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    tp_graph *graph = context->graph;
    const norm_weights w = find_weights(context, layer);
    const tp_node_id wide = tp_op_convert(graph, x, TP_F32);
    tp_node_id y;
    if (context->is_training && layer->trainable)
        y = build_training(context, layer, &w, wide);
    else
        y = normalise(graph, layer, &w, tp_op_subtract(graph, wide, w.moving_mean),
                      w.moving_variance);
    return tp_op_convert(graph, y, context->dtype);
}

const tp_layer_type tp_layer_batch_normalization = {
    "BatchNormalization", "batch_normalization", arguments, set_defaults, infer, build};
