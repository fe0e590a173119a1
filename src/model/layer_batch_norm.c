/* SPDX-License-Identifier: Apache-2.0
 * BatchNormalization over all axes but one (`axis`, the last by default), in f32:
 *     y = (x - mean) * (gamma / sqrt(variance + epsilon)) + beta
 * Training: mean and variance (biased) of the examples of the core, or of those of `cores_per_group`
 * neighbouring cores (`synchronized`: of all), as in the TPU's distributed batch normalisation (Ying et al.
 * 2018, "Image Classification at Supercomputer Scale", 3.2); examples of weight 0 and masked steps are left
 * out. The moving statistics take momentum * moving + (1 - momentum) * (mean over all cores, each core
 * weighing as many elements as it has), as Keras' replicas do. Otherwise, and for a layer that is not
 * trainable: the moving statistics.
 */
#include "model/layer.h"

typedef struct norm_args {
    int64_t axis, cores_per_group;
    double momentum, epsilon;
    bool center, scale, synchronized;
    int32_t channel_axis; /* of [batch, example...], from `axis` */
    tp_initializer beta_initializer, gamma_initializer, moving_mean_initializer,
        moving_variance_initializer;
    tp_regularizer beta_regularizer, gamma_regularizer;
    tp_constraint beta_constraint, gamma_constraint;
} norm_args;

static const tp_layer_arg arguments[] = {
    {"axis", offsetof(norm_args, axis), TP_LAYER_INT, TP_LAYER_RANGE(-TP_MAX_RANK, TP_MAX_RANK)},
    {"cores_per_group", offsetof(norm_args, cores_per_group), TP_LAYER_INT,
     TP_LAYER_RANGE(1, 1 << 20)},
    TP_LAYER_ROW_BOOL(norm_args, synchronized),
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
    norm->cores_per_group = 1;
    norm->momentum = 0.99;
    norm->epsilon = 1e-3;
    norm->center = norm->scale = true;
    norm->beta_initializer = norm->moving_mean_initializer = tp_initializer_default("zeros");
    norm->gamma_initializer = norm->moving_variance_initializer = tp_initializer_default("ones");
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    norm_args *norm = layer->args;
    const tp_shape *input = tp_layer_input(layer, 0);
    const tp_layer_ints given = {&norm->axis, 1};
    tp_layer_axes axis;
    if (!tp_layer_need_features(layer, problems) ||
        !tp_layer_find_axes(layer, &given, problems, &axis))
        return false;
    if (norm->synchronized && norm->cores_per_group > 1) {
        tp_problems_add(problems,
                        "'synchronized' means all cores, so 'cores_per_group' has no place");
        return false;
    }
    norm->channel_axis = (int32_t)axis.items[0] + 1;
    const int64_t *channels = &input->dims[axis.items[0]];
    if (norm->scale)
        tp_layer_add_trained(layer, "gamma", 1, channels, &norm->gamma_initializer,
                             &norm->gamma_regularizer, &norm->gamma_constraint);
    if (norm->center)
        tp_layer_add_trained(layer, "beta", 1, channels, &norm->beta_initializer,
                             &norm->beta_regularizer, &norm->beta_constraint);
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

/* A vector of channels beside x of rank `rank`: as it is along the last axis, which builders spread by
 * themselves, else with 1 for every axis behind. */
static tp_node_id beside(tp_graph *graph, const norm_args *norm, tp_node_id vector, int32_t rank)
{
    if (vector == TP_NO_NODE || norm->channel_axis == rank - 1) return vector;
    const tp_shape from = tp_graph_node(graph, vector)->shape;
    if (from.rank == 0) return vector;
    tp_shape shape = {.rank = rank - norm->channel_axis, .dims = {from.dims[0]}};
    for (int32_t i = 1; i < shape.rank; i++)
        shape.dims[i] = 1;
    return tp_op_reshape(graph, vector, shape);
}

static tp_node_id normalise(tp_graph *graph, const norm_args *norm, const norm_weights *w,
                            tp_node_id centred, tp_node_id variance, int32_t rank)
{
    tp_node_id factor = tp_op_rsqrt(graph, tp_op_add_scalar(graph, variance, norm->epsilon));
    if (w->gamma != TP_NO_NODE) factor = tp_op_multiply(graph, factor, w->gamma);
    const tp_node_id y = tp_op_multiply(graph, centred, beside(graph, norm, factor, rank));
    return w->beta != TP_NO_NODE ? tp_op_add(graph, y, beside(graph, norm, w->beta, rank)) : y;
}

/* ---- training ---- */

/* Which elements count, and how many of them: [] or, with a mask, [channels]. */
typedef struct norm_counts {
    tp_node_id counts; /* pred, of x's shape */
    tp_node_id own;    /* of the core */
    tp_node_id group;  /* of the cores that are normalised together; at least 1 */
    tp_node_id total;  /* of all cores; at least 1 */
} norm_counts;

/* Sum over all axes but the channels' of values where they count. */
static tp_node_id masked_sum(tp_graph *graph, const norm_args *norm, const norm_counts *counts,
                             tp_node_id values, int32_t rank)
{
    int64_t axes[TP_MAX_RANK];
    int32_t count = 0;
    for (int32_t i = 0; i < rank; i++)
        if (i != norm->channel_axis) axes[count++] = i;
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    return tp_op_reduce(graph, tp_op_select(graph, counts->counts, values, zero), "add", axes,
                        count);
}

/* Cores that are normalised together. */
static int64_t group_cores(const tp_layer_context *context, const norm_args *norm)
{
    return norm->synchronized ? context->cores : norm->cores_per_group;
}

static tp_node_id sum_over_group(tp_layer_context *context, const norm_args *norm, tp_node_id own)
{
    const int64_t group = group_cores(context, norm);
    return group == 1 ? own : tp_op_cross_replica_sum(context->graph, own, group, context->cores);
}

static norm_counts count_elements(tp_layer_context *context, const tp_layer *layer)
{
    static const int64_t batch_axis[] = {0}, step_axes[] = {0, 1};
    const norm_args *norm = layer->args;
    tp_graph *graph = context->graph;
    const tp_shape *output = tp_layer_output(layer, 0);
    const tp_shape shape = tp_layer_batched(context, output);
    const double channels = (double)shape.dims[norm->channel_axis];
    const double cells = (double)tp_shape_elems(output) / channels;
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0), one = tp_op_scalar(graph, TP_F32, 1);
    const tp_node_id is_example = tp_op_compare(graph, "GT", context->weight, zero);
    norm_counts c = {.counts = tp_op_broadcast_in_dim(graph, is_example, shape, batch_axis)};
    if (context->input_masks[0] != TP_NO_NODE && output->rank >= 2) {
        const tp_node_id steps =
            tp_op_broadcast_in_dim(graph, context->input_masks[0], shape, step_axes);
        c.counts = tp_op_and(graph, c.counts, steps);
        c.own = masked_sum(graph, norm, &c, tp_op_fill(graph, TP_F32, shape, 1), shape.rank);
    } else {
        const tp_node_id examples =
            tp_op_reduce(graph, tp_op_convert(graph, is_example, TP_F32), "add", NULL, 0);
        c.own = tp_op_multiply_scalar(graph, examples, cells);
    }
    /* A core may have no example. */
    c.group = tp_op_maximum(graph, sum_over_group(context, norm, c.own), one);
    c.total = tp_op_maximum(graph, tp_op_all_reduce(graph, c.own), one);
    return c;
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
    const norm_args *norm = layer->args;
    tp_graph *graph = context->graph;
    const int32_t rank = tp_layer_output(layer, 0)->rank + 1;
    const int64_t group = group_cores(context, norm);
    if (context->cores % group != 0)
        return tp_graph_fail(graph,
                             "'cores_per_group' is %lld, which does not divide the %lld cores of a "
                             "replica group; predicting does not need it",
                             (long long)group, (long long)context->cores);
    const norm_counts counts = count_elements(context, layer);
    const tp_node_id sum = masked_sum(graph, norm, &counts, x, rank);
    const tp_node_id mean = tp_op_divide(graph, sum_over_group(context, norm, sum), counts.group);
    const tp_node_id centred = tp_op_subtract(graph, x, beside(graph, norm, mean, rank));
    /* The variance has no gradient by way of the mean: it would be -2/n times the sum of what is centred, which
     * is zero but for rounding, and would cost one more reading of x and of its gradient. */
    const tp_node_id fixed = tp_op_stop_gradient(graph, mean);
    const tp_node_id distance = tp_op_subtract(graph, x, beside(graph, norm, fixed, rank));
    const tp_node_id square = tp_op_multiply(graph, distance, distance);
    const tp_node_id square_sum = masked_sum(graph, norm, &counts, square, rank);
    const tp_node_id variance =
        tp_op_divide(graph, sum_over_group(context, norm, square_sum), counts.group);

    update_moving(graph, norm, w->moving_mean, sum, counts.total);
    update_moving(graph, norm, w->moving_variance, square_sum, counts.total);
    return normalise(graph, norm, w, centred, variance, rank);
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const norm_args *norm = layer->args;
    tp_graph *graph = context->graph;
    const int32_t rank = tp_layer_output(layer, 0)->rank + 1;
    const norm_weights w = find_weights(context, norm);
    const tp_node_id wide = tp_op_convert(graph, inputs[0], TP_F32);
    tp_node_id y;
    if (context->is_training && layer->trainable) {
        y = build_training(context, layer, &w, wide);
    } else {
        const tp_node_id mean = beside(graph, norm, w.moving_mean, rank);
        y = normalise(graph, norm, &w, tp_op_subtract(graph, wide, mean), w.moving_variance, rank);
    }
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
