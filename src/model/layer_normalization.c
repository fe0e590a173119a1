/* SPDX-License-Identifier: Apache-2.0
 * Normalization: (x - mean) / max(sqrt(variance), 1e-7), or back again with `invert`, one mean and variance for
 * each position on the axes of `axis` (keras/src/layers/preprocessing/normalization.py). They are given, or are
 * weights that are not trained: what Keras' adapt() finds, read from a file.
 */
#include "model/layer.h"

#define LEAST 1e-7 /* keras: backend.epsilon() */

typedef struct normalization_args {
    tp_layer_ints axis; /* no items: one mean for everything */
    tp_layer_numbers mean, variance;
    bool invert;
    tp_initializer zeros, ones;
    tp_layer_axes axes; /* found by infer */
} normalization_args;

static const tp_layer_arg arguments[] = {
    {"axis", offsetof(normalization_args, axis), TP_LAYER_INTS,
     TP_LAYER_RANGE(-TP_MAX_RANK, TP_MAX_RANK), .count = TP_MAX_RANK},
    {TP_LAYER_ROW(normalization_args, mean, TP_LAYER_NUMBERS), TP_LAYER_RANGE(-1e30, 1e30)},
    {TP_LAYER_ROW(normalization_args, variance, TP_LAYER_NUMBERS), TP_LAYER_RANGE(0, 1e30)},
    TP_LAYER_ROW_BOOL(normalization_args, invert),
    {0},
};

static void set_defaults(void *args)
{
    static const int64_t last[] = {-1};
    normalization_args *normalization = args;
    normalization->axis = (tp_layer_ints){last, 1};
    normalization->zeros = tp_initializer_default("zeros");
    normalization->ones = tp_initializer_default("ones");
}

/* Sizes of the axes that have means of their own. */
static int32_t kept_dims(const tp_layer *layer, int64_t *out_dims)
{
    const tp_layer_axes *axes = &((const normalization_args *)layer->args)->axes;
    for (int32_t i = 0; i < axes->count; i++)
        out_dims[i] = tp_layer_input(layer, 0)->dims[axes->items[i]];
    return axes->count;
}

/* Given numbers: one, as many as the last of those axes has, or one for each position. */
static bool check_given(const tp_layer *layer, tp_problems *problems)
{
    const normalization_args *normalization = layer->args;
    const int32_t count = normalization->mean.count;
    int64_t dims[TP_MAX_RANK], all = 1;
    const int32_t kept = kept_dims(layer, dims);
    for (int32_t i = 0; i < kept; i++)
        all *= dims[i];
    if (count == normalization->variance.count &&
        (count == 1 || count == all || (kept > 0 && count == dims[kept - 1])))
        return true;
    tp_problems_add(problems, "'mean' has %d numbers and 'variance' %d, expected %lld each, or one",
                    count, normalization->variance.count, (long long)all);
    return false;
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    normalization_args *normalization = layer->args;
    int64_t dims[TP_MAX_RANK];
    if (normalization->axis.count &&
        !tp_layer_find_axes(layer, &normalization->axis, problems, &normalization->axes))
        return false;
    const int32_t kept = kept_dims(layer, dims);
    if (normalization->mean.items || normalization->variance.items) {
        if (!check_given(layer, problems)) return false;
        return tp_layer_same_output(layer, problems);
    }
    tp_layer_add_weight(layer, "mean", kept, dims, &normalization->zeros, false);
    tp_layer_add_weight(layer, "variance", kept, dims, &normalization->ones, false);
    tp_layer_add_weight(layer, "count", 0, NULL, &normalization->zeros, false);
    return tp_layer_same_output(layer, problems);
}

/* [1, example...] with 1 for the axes that have no means of their own; `last_only`: but for the last of them. */
static tp_shape thin_shape(const tp_layer *layer, bool last_only)
{
    const tp_layer_axes *axes = &((const normalization_args *)layer->args)->axes;
    const tp_shape *input = tp_layer_input(layer, 0);
    tp_shape thin = {.rank = input->rank + 1, .dims = {1}};
    for (int i = 1; i < thin.rank; i++)
        thin.dims[i] = 1;
    for (int32_t i = last_only ? axes->count - 1 : 0; i < axes->count; i++)
        thin.dims[axes->items[i] + 1] = input->dims[axes->items[i]];
    return thin;
}

static tp_node_id given(tp_graph *graph, const tp_layer *layer, const tp_layer_numbers *numbers)
{
    tp_shape shape = thin_shape(layer, false);
    float *items = TP_ARENA_NEW_ARRAY(graph->arena, float, (size_t)numbers->count);
    if (!items) return tp_graph_keep_error(graph);
    for (int32_t i = 0; i < numbers->count; i++)
        items[i] = (float)numbers->items[i];
    if (numbers->count == 1) return tp_op_scalar(graph, TP_F32, numbers->items[0]);
    if (tp_shape_elems(&shape) != numbers->count) shape = thin_shape(layer, true);
    return tp_op_constant(graph, TP_F32, shape, items);
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const normalization_args *normalization = layer->args;
    tp_graph *graph = context->graph;
    const bool is_given = normalization->mean.items != NULL;
    const tp_shape thin = thin_shape(layer, false);
    const tp_node_id mean = is_given ? given(graph, layer, &normalization->mean)
                                     : tp_op_reshape(graph, context->variables[0], thin);
    const tp_node_id variance = is_given ? given(graph, layer, &normalization->variance)
                                         : tp_op_reshape(graph, context->variables[1], thin);
    const tp_node_id deviation =
        tp_op_maximum(graph, tp_op_sqrt(graph, variance), tp_op_scalar(graph, TP_F32, LEAST));
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id y = normalization->invert
                             ? tp_op_add(graph, tp_op_multiply(graph, x, deviation), mean)
                             : tp_op_divide(graph, tp_op_subtract(graph, x, mean), deviation);
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

const tp_layer_type tp_layer_normalization = {.name = "Normalization",
                                              .snake = "normalization",
                                              .arguments = arguments,
                                              .args_bytes = sizeof(normalization_args),
                                              .mask = TP_LAYER_MASK_PASSES,
                                              .set_defaults = set_defaults,
                                              .infer = infer,
                                              .build = build};
