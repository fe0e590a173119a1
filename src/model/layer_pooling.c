/* SPDX-License-Identifier: Apache-2.0
 * MaxPooling2D, AveragePooling2D and their global forms over images NHWC. Padding takes no part: an
 * average divides by the number of cells that exist, as TensorFlow's does.
 */
#include "model/layer.h"

typedef struct pooling_args {
    tp_layer_windows windows;
    int32_t data_format;
} pooling_args;

static const tp_layer_arg arguments[] = {
    TP_LAYER_ROW_WINDOWS(pooling_args, "pool_size", size, 2),
    /* 0 stands for the default, pool_size */
    {"strides", offsetof(pooling_args, windows.strides), TP_LAYER_TUPLE, TP_LAYER_NULLABLE,
     TP_LAYER_RANGE(1, 1 << 20), .count = 2},
    TP_LAYER_ROW_PADDING(pooling_args),
    TP_LAYER_ROW_DATA_FORMAT(pooling_args),
    {0},
};

static void set_defaults(void *args)
{
    tp_layer_windows *windows = &((pooling_args *)args)->windows;
    windows->size[0] = windows->size[1] = 2;
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    tp_layer_windows *windows = &((pooling_args *)layer->args)->windows;
    for (int i = 0; i < 2; i++)
        if (windows->strides[i] == 0) windows->strides[i] = windows->size[i];
    if (!tp_layer_need_image(layer, problems) ||
        !tp_layer_infer_windows(layer, 2, windows, problems))
        return false;
    const int64_t channels = tp_layer_input(layer, 0)->dims[2];
    return tp_layer_add_output(layer, problems, 3,
                               (const int64_t[]){windows->out[0], windows->out[1], channels});
}

static tp_window window_of(const tp_layer *layer)
{
    return tp_layer_window(&((const pooling_args *)layer->args)->windows);
}

static void build_max(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                      tp_node_id *outputs)
{
    const tp_window window = window_of(layer);
    outputs[0] = tp_op_reduce_window(context->graph, inputs[0], "max", &window);
}

/* Input positions that window number `o` covers in dimension d. */
static float covered(const tp_layer *layer, int d, int64_t o)
{
    const tp_layer_windows *windows = &((const pooling_args *)layer->args)->windows;
    const int64_t size = tp_layer_input(layer, 0)->dims[d];
    const int64_t start = o * windows->strides[d] - windows->pad[2 * d];
    const int64_t end = start + windows->size[d];
    const int64_t first = start > 0 ? start : 0;
    const int64_t last = end < size ? end : size;
    return (float)(last - first);
}

/* covered() for each window of dimension d: f32 [out, 1, 1], or [out, 1] for the width. */
static tp_node_id line_counts(tp_graph *graph, const tp_layer *layer, int d)
{
    const int64_t out = ((const pooling_args *)layer->args)->windows.out[d];
    float *counts = TP_ARENA_NEW_ARRAY(graph->arena, float, (size_t)out);
    if (!counts) return tp_graph_keep_error(graph);
    for (int64_t o = 0; o < out; o++)
        counts[o] = covered(layer, d, o);
    const tp_shape shape = d == 0 ? (tp_shape){.rank = 3, .dims = {out, 1, 1}}
                                  : (tp_shape){.rank = 2, .dims = {out, 1}};
    return tp_op_constant(graph, TP_F32, shape, counts);
}

/* Cells of each window, f32 [out height, out width, 1]; a scalar where all windows are whole. The table is
 * written out where it is small; the product of its sides is the same. */
static tp_node_id cell_counts(tp_graph *graph, const tp_layer *layer)
{
    enum { LARGE = 1 << 20 };
    const tp_layer_windows *windows = &((const pooling_args *)layer->args)->windows;
    const int64_t height = windows->out[0], width = windows->out[1];
    if (windows->padding == TP_PADDING_VALID)
        return tp_op_scalar(graph, TP_F32, (double)windows->size[0] * (double)windows->size[1]);
    if (height > LARGE / width)
        return tp_op_multiply(graph, line_counts(graph, layer, 0), line_counts(graph, layer, 1));
    float *counts = tp_arena_alloc_array(graph->arena, (size_t)(height * width), sizeof *counts);
    if (!counts) return tp_graph_keep_error(graph);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            counts[y * width + x] = covered(layer, 0, y) * covered(layer, 1, x);
    const tp_shape shape = {.rank = 3, .dims = {height, width, 1}};
    return tp_op_constant(graph, TP_F32, shape, counts);
}

static void build_average(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const tp_window window = window_of(layer);
    const tp_node_id wide = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id sum = tp_op_reduce_window(graph, wide, "add", &window);
    const tp_node_id mean = tp_op_divide(graph, sum, cell_counts(graph, layer));
    outputs[0] = tp_op_convert(graph, mean, context->dtype);
}

/* ---- over the whole image ---- */

typedef struct global_args {
    bool keepdims;
    int32_t data_format;
} global_args;

static const tp_layer_arg global_arguments[] = {
    TP_LAYER_ROW_BOOL(global_args, keepdims),
    TP_LAYER_ROW_DATA_FORMAT(global_args),
    {0},
};

static bool infer_global(tp_layer *layer, tp_problems *problems)
{
    const global_args *args = layer->args;
    if (!tp_layer_need_image(layer, problems)) return false;
    const int64_t channels = tp_layer_input(layer, 0)->dims[2];
    return args->keepdims
               ? tp_layer_add_output(layer, problems, 3, (const int64_t[]){1, 1, channels})
               : tp_layer_add_output(layer, problems, 1, &channels);
}

static tp_node_id reduce_image(tp_layer_context *context, const tp_layer *layer, tp_node_id x,
                               const char *kind)
{
    static const int64_t axes[] = {1, 2};
    const tp_node_id y = tp_op_reduce(context->graph, x, kind, axes, 2);
    if (!((const global_args *)layer->args)->keepdims) return y;
    return tp_op_reshape(context->graph, y, tp_layer_batched(context, tp_layer_output(layer, 0)));
}

static void build_global_average(tp_layer_context *context, const tp_layer *layer,
                                 const tp_node_id *inputs, tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const int64_t *dims = tp_layer_input(layer, 0)->dims;
    const double cells = (double)dims[0] * (double)dims[1];
    const tp_node_id wide = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id sum = reduce_image(context, layer, wide, "add");
    const tp_node_id mean = tp_op_divide(graph, sum, tp_op_scalar(graph, TP_F32, cells));
    outputs[0] = tp_op_convert(graph, mean, context->dtype);
}

static void build_global_max(tp_layer_context *context, const tp_layer *layer,
                             const tp_node_id *inputs, tp_node_id *outputs)
{
    outputs[0] = reduce_image(context, layer, inputs[0], "max");
}

const tp_layer_type tp_layer_max_pooling2d = {.name = "MaxPooling2D",
                                              .snake = "max_pooling2d",
                                              .arguments = arguments,
                                              .args_bytes = sizeof(pooling_args),
                                              .set_defaults = set_defaults,
                                              .infer = infer,
                                              .build = build_max};
const tp_layer_type tp_layer_average_pooling2d = {.name = "AveragePooling2D",
                                                  .snake = "average_pooling2d",
                                                  .arguments = arguments,
                                                  .args_bytes = sizeof(pooling_args),
                                                  .set_defaults = set_defaults,
                                                  .infer = infer,
                                                  .build = build_average};
const tp_layer_type tp_layer_global_average_pooling2d = {.name = "GlobalAveragePooling2D",
                                                         .snake = "global_average_pooling2d",
                                                         .arguments = global_arguments,
                                                         .args_bytes = sizeof(global_args),
                                                         .infer = infer_global,
                                                         .build = build_global_average};
const tp_layer_type tp_layer_global_max_pooling2d = {.name = "GlobalMaxPooling2D",
                                                     .snake = "global_max_pooling2d",
                                                     .arguments = global_arguments,
                                                     .args_bytes = sizeof(global_args),
                                                     .infer = infer_global,
                                                     .build = build_global_max};
