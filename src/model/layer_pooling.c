/* SPDX-License-Identifier: Apache-2.0
 * MaxPooling2D, AveragePooling2D, GlobalAveragePooling2D over images NHWC. Padding takes no part: an
 * average divides by the number of cells that exist, as TensorFlow's does.
 */
#include "core/alloc.h"
#include "graph/builder.h"
#include "model/layer.h"

static const tp_layer_arg arguments[] = {TP_LAYER_ROW_PAIR(pool_size),
                                         /* 0 stands for the default, pool_size */
                                         TP_LAYER_ROW_PAIR(strides),
                                         TP_LAYER_ROW_PADDING,
                                         TP_LAYER_ROW_DATA_FORMAT,
                                         {0}};

static const tp_layer_arg global_arguments[] = {TP_LAYER_ROW_DATA_FORMAT, {0}};

static void set_defaults(tp_layer *layer)
{
    layer->pool_size[0] = layer->pool_size[1] = 2;
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    static const int64_t dilation[2] = {1, 1};
    int64_t size[2];
    for (int i = 0; i < 2; i++)
        if (layer->strides[i] == 0) layer->strides[i] = layer->pool_size[i];
    if (!tp_layer_need_image(layer, problems) ||
        !tp_layer_infer_windows(layer, layer->pool_size, dilation, problems, size))
        return false;
    return tp_layer_set_output(layer, problems, 3,
                               (const int64_t[]){size[0], size[1], layer->input.dims[2]});
}

static tp_window window_of(const tp_layer *layer)
{
    return (tp_window){.size = {layer->pool_size[0], layer->pool_size[1]},
                       .strides = {layer->strides[0], layer->strides[1]},
                       .padding = {layer->pad[0], layer->pad[1], layer->pad[2], layer->pad[3]}};
}

static tp_node_id build_max(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    const tp_window window = window_of(layer);
    return tp_op_reduce_window(context->graph, x, "max", &window);
}

/* Input positions that window number `o` covers in dimension d. */
static float covered(const tp_layer *layer, int d, int64_t o)
{
    const int64_t start = o * layer->strides[d] - layer->pad[2 * d];
    const int64_t end = start + layer->pool_size[d];
    const int64_t first = start > 0 ? start : 0;
    const int64_t last = end < layer->input.dims[d] ? end : layer->input.dims[d];
    return (float)(last - first);
}

/* Cells of each window, f32 [out height, out width, 1]; a scalar where all windows are whole. */
static tp_node_id cell_counts(tp_graph *graph, const tp_layer *layer)
{
    const int64_t height = layer->output.dims[0], width = layer->output.dims[1];
    if (layer->padding == TP_PADDING_VALID)
        return tp_op_scalar(graph, TP_F32,
                            (double)layer->pool_size[0] * (double)layer->pool_size[1]);
    float *counts = tp_arena_alloc_array(graph->arena, (size_t)(height * width), sizeof *counts);
    if (!counts) return tp_graph_keep_error(graph);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            counts[y * width + x] = covered(layer, 0, y) * covered(layer, 1, x);
    const tp_shape shape = {.rank = 3, .dims = {height, width, 1}};
    return tp_op_constant(graph, TP_F32, shape, counts);
}

static tp_node_id build_average(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    tp_graph *graph = context->graph;
    const tp_window window = window_of(layer);
    const tp_node_id wide = tp_op_convert(graph, x, TP_F32);
    const tp_node_id sum = tp_op_reduce_window(graph, wide, "add", &window);
    const tp_node_id mean = tp_op_divide(graph, sum, cell_counts(graph, layer));
    return tp_op_convert(graph, mean, context->dtype);
}

static bool infer_global(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_need_image(layer, problems) &&
           tp_layer_set_output(layer, problems, 1, &layer->input.dims[2]);
}

static tp_node_id build_global(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    static const int64_t axes[] = {1, 2};
    tp_graph *graph = context->graph;
    const double cells = (double)layer->input.dims[0] * (double)layer->input.dims[1];
    const tp_node_id wide = tp_op_convert(graph, x, TP_F32);
    const tp_node_id sum = tp_op_reduce(graph, wide, "add", axes, 2);
    const tp_node_id mean = tp_op_divide(graph, sum, tp_op_scalar(graph, TP_F32, cells));
    return tp_op_convert(graph, mean, context->dtype);
}

const tp_layer_type tp_layer_max_pooling2d = {"MaxPooling2D", "max_pooling2d", arguments,
                                              set_defaults,   infer,           build_max};
const tp_layer_type tp_layer_average_pooling2d = {
    "AveragePooling2D", "average_pooling2d", arguments, set_defaults, infer, build_average};
const tp_layer_type tp_layer_global_average_pooling2d = {"GlobalAveragePooling2D",
                                                         "global_average_pooling2d",
                                                         global_arguments,
                                                         NULL,
                                                         infer_global,
                                                         build_global};
