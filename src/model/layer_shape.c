/* SPDX-License-Identifier: Apache-2.0
 * Flatten, Reshape and Rescaling.
 */
#include "model/layer.h"

/* ---- Flatten, Reshape ---- */

typedef struct flatten_args {
    int32_t data_format;
} flatten_args;

static const tp_layer_arg flatten_arguments[] = {
    TP_LAYER_ROW_DATA_FORMAT(flatten_args),
    {0},
};

typedef struct reshape_args {
    tp_layer_ints target_shape; /* one may be -1 */
} reshape_args;

static const tp_layer_arg reshape_arguments[] = {
    {"target_shape", offsetof(reshape_args, target_shape), TP_LAYER_INTS, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(-1, 2147483648.0), .count = TP_MAX_RANK - 1},
    {0},
};

static bool infer_flatten(tp_layer *layer, tp_problems *problems)
{
    const int64_t elems = tp_shape_elems(tp_layer_input(layer, 0));
    return tp_layer_add_output(layer, problems, 1, &elems);
}

static bool infer_reshape(tp_layer *layer, tp_problems *problems)
{
    const tp_layer_ints *target = &((const reshape_args *)layer->args)->target_shape;
    const int64_t elems = tp_shape_elems(tp_layer_input(layer, 0));
    int64_t dims[TP_MAX_RANK], known = 1;
    int32_t open = -1, open_count = 0;
    for (int32_t i = 0; i < target->count; i++) {
        dims[i] = target->items[i];
        if (dims[i] == -1) {
            open = i;
            open_count++;
        } else if (!tp_size_multiply(known, dims[i], &known)) {
            known = -1;
        }
        if (known < 0) break;
    }
    if (open_count > 1) {
        tp_problems_add(problems, "only one dimension of 'target_shape' may be -1");
        return false;
    }
    if (open >= 0 && known > 0 && elems % known == 0) {
        dims[open] = elems / known;
        known = elems;
    }
    if (known == elems) return tp_layer_add_output(layer, problems, target->count, dims);
    char from[TP_SHAPE_TEXT_MAX];
    tp_shape_format(tp_layer_input(layer, 0), from, sizeof from);
    tp_problems_add(problems, "the input %s has %lld elements, which do not fit 'target_shape'",
                    from, (long long)elems);
    return false;
}

static void build_reshape(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    outputs[0] = tp_op_reshape(context->graph, inputs[0], shape);
}

/* ---- Rescaling ---- */

typedef struct rescaling_args {
    double scale, offset;
} rescaling_args;

static const tp_layer_arg rescaling_arguments[] = {
    {"scale", offsetof(rescaling_args, scale), TP_LAYER_NUMBER, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(-1e30, 1e30)},
    TP_LAYER_ROW_NUMBER(rescaling_args, offset, -1e30, 1e30),
    {0},
};

static void build_rescaling(tp_layer_context *context, const tp_layer *layer,
                            const tp_node_id *inputs, tp_node_id *outputs)
{
    const rescaling_args *rescaling = layer->args;
    tp_graph *graph = context->graph;
    tp_node_id y = tp_op_convert(graph, inputs[0], TP_F32);
    y = tp_op_multiply_scalar(graph, y, rescaling->scale);
    if (rescaling->offset != 0.0) y = tp_op_add_scalar(graph, y, rescaling->offset);
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

const tp_layer_type tp_layer_flatten = {.name = "Flatten",
                                        .snake = "flatten",
                                        .arguments = flatten_arguments,
                                        .args_bytes = sizeof(flatten_args),
                                        .infer = infer_flatten,
                                        .build = build_reshape};
const tp_layer_type tp_layer_reshape = {.name = "Reshape",
                                        .snake = "reshape",
                                        .arguments = reshape_arguments,
                                        .args_bytes = sizeof(reshape_args),
                                        .infer = infer_reshape,
                                        .build = build_reshape};
const tp_layer_type tp_layer_rescaling = {.name = "Rescaling",
                                          .snake = "rescaling",
                                          .arguments = rescaling_arguments,
                                          .args_bytes = sizeof(rescaling_args),
                                          .mask = TP_LAYER_MASK_PASSES,
                                          .infer = tp_layer_same_output,
                                          .build = build_rescaling};
