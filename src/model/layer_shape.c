/* SPDX-License-Identifier: Apache-2.0
 * Flatten, Reshape and Rescaling.
 */
#include "graph/builder.h"
#include "model/layer.h"

/* ---- Flatten, Reshape ---- */

static const tp_layer_arg flatten_arguments[] = {TP_LAYER_ROW_DATA_FORMAT, {0}};
static const tp_layer_arg reshape_arguments[] = {
    {"target_shape", TP_LAYER_DIMS, TP_LAYER_FIELD(target_shape), true, 0, 0, NULL, 0}, {0}};

static bool infer_flatten(tp_layer *layer, tp_problems *problems)
{
    const int64_t elems = tp_shape_elems(&layer->input);
    return tp_layer_set_output(layer, problems, 1, &elems);
}

static bool infer_reshape(tp_layer *layer, tp_problems *problems)
{
    const int64_t elems = tp_shape_elems(&layer->input);
    int64_t dims[TP_MAX_RANK], known = 1;
    int32_t open = -1;
    for (int32_t i = 0; i < layer->target_rank; i++) {
        dims[i] = layer->target_shape[i];
        if (dims[i] == -1)
            open = i;
        else if (!tp_size_multiply(known, dims[i], &known))
            known = -1;
        if (known < 0) break;
    }
    if (open >= 0 && known > 0 && elems % known == 0) {
        dims[open] = elems / known;
        known = elems;
    }
    if (known == elems) return tp_layer_set_output(layer, problems, layer->target_rank, dims);
    char from[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&layer->input, from, sizeof from);
    tp_problems_add(problems, "the input %s has %lld elements, which do not fit 'target_shape'",
                    from, (long long)elems);
    return false;
}

static tp_node_id build_reshape(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    return tp_op_reshape(context->graph, x, tp_layer_batched(context, &layer->output));
}

/* ---- Rescaling ---- */

static const tp_layer_arg rescaling_arguments[] = {
    {"scale", TP_LAYER_NUMBER, TP_LAYER_FIELD(scale), true, -1e30, 1e30, NULL, 0},
    TP_LAYER_ROW_NUMBER(offset, -1e30, 1e30),
    {0}};

static bool infer_rescaling(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_set_output(layer, problems, layer->input.rank, layer->input.dims);
}

static tp_node_id build_rescaling(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    tp_graph *graph = context->graph;
    tp_node_id y = tp_op_convert(graph, x, TP_F32);
    y = tp_op_multiply_scalar(graph, y, layer->scale);
    if (layer->offset != 0.0) y = tp_op_add_scalar(graph, y, layer->offset);
    return tp_op_convert(graph, y, context->dtype);
}

const tp_layer_type tp_layer_flatten = {"Flatten", "flatten",     flatten_arguments,
                                        NULL,      infer_flatten, build_reshape};
const tp_layer_type tp_layer_reshape = {"Reshape", "reshape",     reshape_arguments,
                                        NULL,      infer_reshape, build_reshape};
const tp_layer_type tp_layer_rescaling = {"Rescaling", "rescaling",     rescaling_arguments,
                                          NULL,        infer_rescaling, build_rescaling};
