/* SPDX-License-Identifier: Apache-2.0
 * GroupNormalization: the channels in groups of neighbours, each example's group normalised over all its
 * positions, in f32 (Wu & He 2018; keras/src/layers/normalization/group_normalization.py):
 *     (x - mean) * (gamma / sqrt(variance + epsilon)) + beta, variance biased
 */
#include "model/layer.h"

typedef struct group_args {
    int64_t groups;
    tp_layer_ints axis;
    double epsilon;
    bool center, scale;
    tp_initializer beta_initializer, gamma_initializer;
    tp_regularizer beta_regularizer, gamma_regularizer;
    tp_constraint beta_constraint, gamma_constraint;
    int64_t channel_axis; /* of the example; found by infer */
} group_args;

static const tp_layer_arg arguments[] = {
    {"groups", offsetof(group_args, groups), TP_LAYER_INT, TP_LAYER_RANGE(-1, 1 << 30)},
    {"axis", offsetof(group_args, axis), TP_LAYER_INTS, TP_LAYER_RANGE(-TP_MAX_RANK, TP_MAX_RANK),
     .count = 1},
    TP_LAYER_ROW_NUMBER(group_args, epsilon, 0, 1e30),
    TP_LAYER_ROW_BOOL(group_args, center),
    TP_LAYER_ROW_BOOL(group_args, scale),
    TP_LAYER_ROW_INITIALIZER(group_args, beta_initializer),
    TP_LAYER_ROW_INITIALIZER(group_args, gamma_initializer),
    TP_LAYER_ROW_REGULARIZER(group_args, beta_regularizer),
    TP_LAYER_ROW_REGULARIZER(group_args, gamma_regularizer),
    TP_LAYER_ROW_CONSTRAINT(group_args, beta_constraint),
    TP_LAYER_ROW_CONSTRAINT(group_args, gamma_constraint),
    {0},
};

static void set_defaults(void *args)
{
    group_args *group = args;
    group->groups = 32;
    group->epsilon = 1e-3;
    group->center = group->scale = true;
    group->beta_initializer = tp_initializer_default("zeros");
    group->gamma_initializer = tp_initializer_default("ones");
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    group_args *group = layer->args;
    tp_layer_axes axes;
    if (!tp_layer_need_features(layer, problems) ||
        !tp_layer_find_axes(layer, &group->axis, problems, &axes))
        return false;
    group->channel_axis = axes.items[0];
    const int64_t *channels = &tp_layer_input(layer, 0)->dims[group->channel_axis];
    if (group->groups == -1) group->groups = *channels; /* instance normalisation */
    if (group->groups < 1 || *channels % group->groups != 0) {
        tp_problems_add(problems, "%lld channels do not split into %lld 'groups'",
                        (long long)*channels, (long long)group->groups);
        return false;
    }
    if (tp_layer_input(layer, 0)->rank + 2 > TP_MAX_RANK) {
        tp_problems_add(problems, "the input has %d dimensions, expected at most %d",
                        tp_layer_input(layer, 0)->rank, TP_MAX_RANK - 2);
        return false;
    }
    if (group->scale)
        tp_layer_add_trained(layer, "gamma", 1, channels, &group->gamma_initializer,
                             &group->gamma_regularizer, &group->gamma_constraint);
    if (group->center)
        tp_layer_add_trained(layer, "beta", 1, channels, &group->beta_initializer,
                             &group->beta_regularizer, &group->beta_constraint);
    return tp_layer_same_output(layer, problems);
}

/* [batch, example...] with the channel axis as groups and channels of one. */
static tp_shape split_shape(const tp_layer_context *context, const tp_layer *layer)
{
    const group_args *group = layer->args;
    const tp_shape whole = tp_layer_batched(context, tp_layer_input(layer, 0));
    const int64_t axis = group->channel_axis + 1;
    tp_shape split = {.rank = whole.rank + 1};
    for (int i = 0; i < whole.rank; i++)
        split.dims[i + (i > axis)] = whole.dims[i];
    split.dims[axis] = group->groups;
    split.dims[axis + 1] = whole.dims[axis] / group->groups;
    return split;
}

/* Mean over all axes but the batch and the groups; they stay with size 1. x: split. */
static tp_node_id mean_of(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    tp_shape thin = split_shape(context, layer);
    const int64_t groups_axis = ((const group_args *)layer->args)->channel_axis + 1;
    int64_t axes[TP_MAX_RANK];
    int32_t count = 0;
    double cells = 1;
    for (int i = 1; i < thin.rank; i++) {
        if (i == groups_axis) continue;
        axes[count++] = i;
        cells *= (double)thin.dims[i];
        thin.dims[i] = 1;
    }
    const tp_node_id sum = tp_op_reduce(context->graph, x, "add", axes, count);
    return tp_op_divide(context->graph, tp_op_reshape(context->graph, sum, thin),
                        tp_op_scalar(context->graph, TP_F32, cells));
}

/* A weight [channels], as it meets a split x. */
static tp_node_id shaped(tp_layer_context *context, const tp_layer *layer, tp_node_id weight)
{
    const int64_t axis = ((const group_args *)layer->args)->channel_axis + 1;
    tp_shape thin = split_shape(context, layer);
    for (int i = 0; i < thin.rank; i++)
        if (i != axis && i != axis + 1) thin.dims[i] = 1;
    return tp_op_reshape(context->graph, weight, thin);
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const group_args *group = layer->args;
    tp_graph *graph = context->graph;
    const tp_node_id *weight = context->variables;
    const tp_node_id wide = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id x = tp_op_reshape(graph, wide, split_shape(context, layer));
    const tp_node_id centred = tp_op_subtract(graph, x, mean_of(context, layer, x));
    const tp_node_id variance = mean_of(context, layer, tp_op_multiply(graph, centred, centred));
    tp_node_id factor = tp_op_rsqrt(graph, tp_op_add_scalar(graph, variance, group->epsilon));
    if (group->scale) factor = tp_op_multiply(graph, factor, shaped(context, layer, *weight++));
    tp_node_id y = tp_op_multiply(graph, centred, factor);
    if (group->center) y = tp_op_add(graph, y, shaped(context, layer, *weight));
    y = tp_op_reshape(graph, y, tp_layer_batched(context, tp_layer_output(layer, 0)));
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

const tp_layer_type tp_layer_group_normalization = {.name = "GroupNormalization",
                                                    .snake = "group_normalization",
                                                    .arguments = arguments,
                                                    .args_bytes = sizeof(group_args),
                                                    .mask = TP_LAYER_MASK_PASSES,
                                                    .set_defaults = set_defaults,
                                                    .infer = infer,
                                                    .build = build};
