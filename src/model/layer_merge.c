/* SPDX-License-Identifier: Apache-2.0
 * Add, Subtract, Multiply, Average, Maximum, Minimum and Concatenate. The shapes of examples broadcast by
 * NumPy's rule, which is Keras' (keras/src/layers/merging/base_merge.py): an input with fewer dimensions gets
 * ones behind the batch. Floats are merged in f32, from the first input to the last, and rounded once;
 * integers stay what they are.
 */
#include "model/layer.h"

typedef tp_node_id (*merge_op)(tp_graph *graph, tp_node_id a, tp_node_id b);

/* ---- element by element ---- */

static bool infer_merge(tp_layer *layer, tp_problems *problems)
{
    tp_shape shape = *tp_layer_input(layer, 0);
    for (int32_t i = 1; i < layer->input_count; i++) {
        const tp_shape left = shape;
        if (tp_shape_broadcast(&left, tp_layer_input(layer, i), &shape) == TPUCL_OK) continue;
        char so_far[TP_SHAPE_TEXT_MAX], next[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&left, so_far, sizeof so_far);
        tp_shape_format(tp_layer_input(layer, i), next, sizeof next);
        tp_problems_add(problems, "input %d is %s, which does not fit %s of the inputs before it",
                        i, next, so_far);
        return false;
    }
    return tp_layer_add_output(layer, problems, shape.rank, shape.dims);
}

/* With ones behind the batch up to the output's rank. */
static tp_node_id align(tp_layer_context *context, const tp_layer *layer, int32_t index,
                        tp_node_id x)
{
    const tp_shape *input = tp_layer_input(layer, index);
    const int32_t rank = tp_layer_output(layer, 0)->rank;
    tp_shape shape = {.rank = rank + 1, .dims = {context->batch}};
    if (input->rank == rank) return x;
    for (int32_t i = 0; i < rank; i++) {
        const int32_t from = i - (rank - input->rank);
        shape.dims[i + 1] = from < 0 ? 1 : input->dims[from];
    }
    return tp_op_reshape(context->graph, x, shape);
}

static bool is_integer(const tp_graph *graph, tp_node_id node)
{
    const tp_dtype dtype = tp_graph_node(graph, node)->dtype;
    return dtype != TP_F32 && dtype != TP_BF16;
}

static bool are_integers(const tp_graph *graph, const tp_layer *layer, const tp_node_id *inputs)
{
    for (int32_t i = 0; i < layer->input_count; i++)
        if (!is_integer(graph, inputs[i])) return false;
    return true;
}

/* Keras: none where an input has none, else a step counts where it counts in one of them. */
static void merge_masks(tp_layer_context *context, const tp_layer *layer)
{
    tp_node_id mask = context->input_masks[0];
    for (int32_t i = 1; i < layer->input_count && mask != TP_NO_NODE; i++) {
        const tp_node_id other = context->input_masks[i];
        mask = other == TP_NO_NODE ? TP_NO_NODE : tp_op_or(context->graph, mask, other);
    }
    context->output_masks[0] = mask;
}

static tp_node_id merge(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                        merge_op op)
{
    tp_graph *graph = context->graph;
    const bool is_exact = are_integers(graph, layer, inputs);
    tp_node_id y = TP_NO_NODE;
    for (int32_t i = 0; i < layer->input_count; i++) {
        const tp_node_id x = align(context, layer, i, inputs[i]);
        const tp_node_id wide = is_exact ? x : tp_op_convert(graph, x, TP_F32);
        y = i == 0 ? wide : op(graph, y, wide);
    }
    merge_masks(context, layer);
    return y;
}

static tp_node_id finish(tp_layer_context *context, tp_node_id y)
{
    if (y == TP_NO_NODE || is_integer(context->graph, y)) return y;
    return tp_op_convert(context->graph, y, context->dtype);
}

/* One build for each op. */
#define MERGE_OPS(X) X(add) X(subtract) X(multiply) X(maximum) X(minimum)
#define DEFINE_BUILD(op)                                                                           \
    static void build_##op(tp_layer_context *context, const tp_layer *layer,                       \
                           const tp_node_id *inputs, tp_node_id *outputs)                          \
    {                                                                                              \
        outputs[0] = finish(context, merge(context, layer, inputs, tp_op_##op));                   \
    }
MERGE_OPS(DEFINE_BUILD)
#undef DEFINE_BUILD

static void build_average(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const tp_node_id sum = tp_op_convert(graph, merge(context, layer, inputs, tp_op_add), TP_F32);
    const tp_node_id count = tp_op_scalar(graph, TP_F32, layer->input_count);
    outputs[0] = tp_op_convert(graph, tp_op_divide(graph, sum, count), context->dtype);
}

/* ---- Concatenate ---- */

typedef struct concatenate_args {
    int64_t axis; /* Keras': the batch is axis 0 */
} concatenate_args;

static const tp_layer_arg concatenate_arguments[] = {
    {"axis", offsetof(concatenate_args, axis), TP_LAYER_INT,
     TP_LAYER_RANGE(-TP_MAX_RANK, TP_MAX_RANK)},
    {0},
};

static void set_concatenate_defaults(void *args)
{
    ((concatenate_args *)args)->axis = -1;
}

/* Of a batched tensor; 0 when there is no such axis of examples. */
static int64_t concatenate_axis(const tp_layer *layer)
{
    const int64_t axis = ((const concatenate_args *)layer->args)->axis;
    const int64_t rank = tp_layer_input(layer, 0)->rank + 1;
    const int64_t counted = axis < 0 ? axis + rank : axis;
    return counted >= 1 && counted < rank ? counted : 0;
}

static bool infer_concatenate(tp_layer *layer, tp_problems *problems)
{
    const int64_t axis = concatenate_axis(layer);
    tp_shape shape = *tp_layer_input(layer, 0);
    char first[TP_SHAPE_TEXT_MAX], other[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&shape, first, sizeof first);
    if (axis == 0) {
        tp_problems_add(problems, "'axis' is %lld, which is no axis of examples that are %s",
                        (long long)((const concatenate_args *)layer->args)->axis, first);
        return false;
    }
    for (int32_t i = 1; i < layer->input_count; i++) {
        const tp_shape *input = tp_layer_input(layer, i);
        bool fits = input->rank == shape.rank;
        for (int32_t d = 0; fits && d < shape.rank; d++)
            fits = d == axis - 1 || input->dims[d] == shape.dims[d];
        if (!fits) {
            tp_shape_format(input, other, sizeof other);
            tp_problems_add(problems, "input %d is %s, input 0 is %s: only axis %lld may differ", i,
                            other, first, (long long)axis);
            return false;
        }
        shape.dims[axis - 1] += input->dims[axis - 1];
    }
    return tp_layer_add_output(layer, problems, shape.rank, shape.dims);
}

/* Along the steps: one after the other, an input without a mask counting wholly. Along another axis: a step
 * counts where it counts in one input. */
static tp_node_id concatenate_masks(tp_layer_context *context, const tp_layer *layer)
{
    tp_graph *graph = context->graph;
    const bool is_time = concatenate_axis(layer) == 1;
    tp_node_id *masks = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, (size_t)layer->input_count);
    bool has_any = false;
    if (!masks) return tp_graph_keep_error(graph);
    for (int32_t i = 0; i < layer->input_count; i++)
        has_any = has_any || context->input_masks[i] != TP_NO_NODE;
    if (!has_any || tp_layer_input(layer, 0)->rank < 2) return TP_NO_NODE;
    for (int32_t i = 0; i < layer->input_count; i++) {
        const tp_shape steps = {.rank = 2,
                                .dims = {context->batch, tp_layer_input(layer, i)->dims[0]}};
        masks[i] = context->input_masks[i];
        if (masks[i] == TP_NO_NODE && !is_time) return TP_NO_NODE;
        if (masks[i] == TP_NO_NODE) masks[i] = tp_op_fill(graph, TP_PRED, steps, 1);
    }
    if (is_time) return tp_op_concatenate(graph, masks, layer->input_count, 1);
    for (int32_t i = 1; i < layer->input_count; i++)
        masks[0] = tp_op_or(graph, masks[0], masks[i]);
    return masks[0];
}

static void build_concatenate(tp_layer_context *context, const tp_layer *layer,
                              const tp_node_id *inputs, tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    tp_node_id *parts = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, (size_t)layer->input_count);
    const bool is_exact = are_integers(graph, layer, inputs);
    if (!parts) {
        tp_graph_keep_error(graph);
        return;
    }
    for (int32_t i = 0; i < layer->input_count; i++)
        parts[i] = is_exact ? inputs[i] : tp_op_convert(graph, inputs[i], context->dtype);
    outputs[0] = layer->input_count == 1
                     ? parts[0]
                     : tp_op_concatenate(graph, parts, layer->input_count, concatenate_axis(layer));
    context->output_masks[0] = concatenate_masks(context, layer);
}

#define DEFINE_TYPE(id, class, least, most)                                                        \
    const tp_layer_type tp_layer_##id = {.name = class,                                            \
                                         .snake = #id,                                             \
                                         .min_inputs = least,                                      \
                                         .max_inputs = most,                                       \
                                         .infer = infer_merge,                                     \
                                         .mask = TP_LAYER_MASK_OWN,                                \
                                         .build = build_##id};
DEFINE_TYPE(add, "Add", 2, TP_LAYER_ANY_INPUTS)
DEFINE_TYPE(subtract, "Subtract", 2, 2)
DEFINE_TYPE(multiply, "Multiply", 2, TP_LAYER_ANY_INPUTS)
DEFINE_TYPE(average, "Average", 2, TP_LAYER_ANY_INPUTS)
DEFINE_TYPE(maximum, "Maximum", 2, TP_LAYER_ANY_INPUTS)
DEFINE_TYPE(minimum, "Minimum", 2, TP_LAYER_ANY_INPUTS)
#undef DEFINE_TYPE

const tp_layer_type tp_layer_concatenate = {.name = "Concatenate",
                                            .snake = "concatenate",
                                            .arguments = concatenate_arguments,
                                            .args_bytes = sizeof(concatenate_args),
                                            .min_inputs = 2,
                                            .max_inputs = TP_LAYER_ANY_INPUTS,
                                            .set_defaults = set_concatenate_defaults,
                                            .infer = infer_concatenate,
                                            .mask = TP_LAYER_MASK_OWN,
                                            .build = build_concatenate};
