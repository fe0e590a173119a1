/* SPDX-License-Identifier: Apache-2.0
 * Pooling of sequences [length, channels] and volumes [depth, height, width, channels], by windows over images.
 * A sequence is an image of width 1. A volume is pooled over height and width, slice by slice, then over depth:
 * the first maximum is found where one window over all three finds it. Padding takes no part.
 */
#include "model/layer.h"

typedef struct pooling_args {
    tp_layer_windows windows;
    int32_t data_format;
    bool keepdims; /* global ones */
} pooling_args;

#define ROWS(n)                                                                                    \
    TP_LAYER_ROW_WINDOWS(pooling_args, "pool_size", size, n),                                      \
        {"strides",                                                                                \
         offsetof(pooling_args, windows.strides),                                                  \
         TP_LAYER_TUPLE,                                                                           \
         TP_LAYER_NULLABLE,                                                                        \
         TP_LAYER_RANGE(1, 1 << 20),                                                               \
         .count = (n)},                                                                            \
        TP_LAYER_ROW_PADDING(pooling_args), TP_LAYER_ROW_DATA_FORMAT(pooling_args)

static const tp_layer_arg arguments1d[] = {ROWS(1), {0}};
static const tp_layer_arg arguments3d[] = {ROWS(3), {0}};

static void set_defaults(void *args)
{
    tp_layer_windows *windows = &((pooling_args *)args)->windows;
    for (int i = 0; i < 3; i++)
        windows->size[i] = 2;
}

static bool infer(tp_layer *layer, tp_problems *problems, int spatial)
{
    tp_layer_windows *windows = &((pooling_args *)layer->args)->windows;
    int64_t output[4];
    for (int i = 0; i < spatial; i++)
        if (windows->strides[i] == 0) windows->strides[i] = windows->size[i];
    if (!tp_layer_infer_windows(layer, spatial, windows, problems)) return false;
    for (int i = 0; i < spatial; i++)
        output[i] = windows->out[i];
    output[spatial] = tp_layer_input(layer, 0)->dims[spatial];
    return tp_layer_add_output(layer, problems, spatial + 1, output);
}

static bool infer1d(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_need_rank(layer, 2, "[length,channels]", problems) && infer(layer, problems, 1);
}

static bool infer3d(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_need_rank(layer, 4, "[depth,height,width,channels]", problems) &&
           infer(layer, problems, 3);
}

/* ---- windows ---- */

/* Over axis 1 of [batch, first dim, others...]. */
static tp_node_id pool_first(tp_layer_context *context, const tp_layer *layer, tp_node_id x,
                             const char *kind)
{
    const tp_layer_windows *windows = &((const pooling_args *)layer->args)->windows;
    const tp_window window = {.size = {windows->size[0], 1},
                              .strides = {windows->strides[0], 1},
                              .padding = {windows->pad[0], windows->pad[1]}};
    if (x == TP_NO_NODE) return x;
    const tp_shape shape = tp_graph_node(context->graph, x)->shape;
    const int64_t others = tp_shape_elems(&shape) / (shape.dims[0] * shape.dims[1]);
    const tp_shape image = {.rank = 4, .dims = {shape.dims[0], shape.dims[1], 1, others}};
    return tp_op_reduce_window(context->graph, tp_op_reshape(context->graph, x, image), kind,
                               &window);
}

/* Over height and width of a volume: [batch, depth, out height, out width, channels]. */
static tp_node_id pool_slices(tp_layer_context *context, const tp_layer *layer, tp_node_id x,
                              const char *kind)
{
    const tp_layer_windows *windows = &((const pooling_args *)layer->args)->windows;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const tp_window window = {
        .size = {windows->size[1], windows->size[2]},
        .strides = {windows->strides[1], windows->strides[2]},
        .padding = {windows->pad[2], windows->pad[3], windows->pad[4], windows->pad[5]}};
    const tp_shape images = {.rank = 4, .dims = {context->batch * in[0], in[1], in[2], in[3]}};
    const tp_shape volume = {
        .rank = 5, .dims = {context->batch, in[0], windows->out[1], windows->out[2], in[3]}};
    const tp_node_id pooled = tp_op_reduce_window(
        context->graph, tp_op_reshape(context->graph, x, images), kind, &window);
    return tp_op_reshape(context->graph, pooled, volume);
}

static tp_node_id pool(tp_layer_context *context, const tp_layer *layer, tp_node_id x,
                       const char *kind)
{
    if (tp_layer_input(layer, 0)->rank == 4) x = pool_slices(context, layer, x, kind);
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    return tp_op_reshape(context->graph, pool_first(context, layer, x, kind), shape);
}

static void build_max(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                      tp_node_id *outputs)
{
    outputs[0] = pool(context, layer, inputs[0], "max");
}

/* Input positions that window number `o` covers in dimension d. */
static int64_t covered(const tp_layer *layer, int d, int64_t o)
{
    const tp_layer_windows *windows = &((const pooling_args *)layer->args)->windows;
    const int64_t size = tp_layer_input(layer, 0)->dims[d];
    const int64_t start = o * windows->strides[d] - windows->pad[2 * d];
    const int64_t end = start + windows->size[d];
    return (end < size ? end : size) - (start > 0 ? start : 0);
}

/* Cells of each window, f32 [out..., 1]. */
static tp_node_id cell_counts(tp_graph *graph, const tp_layer *layer)
{
    tp_shape shape = *tp_layer_output(layer, 0);
    shape.dims[shape.rank - 1] = 1;
    const int64_t elems = tp_shape_elems(&shape);
    float *counts = TP_ARENA_NEW_ARRAY(graph->arena, float, (size_t)elems);
    if (!counts) return tp_graph_keep_error(graph);
    for (int64_t i = 0; i < elems; i++) {
        int64_t left = i, cells = 1;
        for (int d = shape.rank - 2; d >= 0; d--) {
            cells *= covered(layer, d, left % shape.dims[d]);
            left /= shape.dims[d];
        }
        counts[i] = (float)cells;
    }
    return tp_op_constant(graph, TP_F32, shape, counts);
}

static void build_average(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const tp_node_id wide = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id sum = pool(context, layer, wide, "add");
    const tp_node_id mean = tp_op_divide(graph, sum, cell_counts(graph, layer));
    outputs[0] = tp_op_convert(graph, mean, context->dtype);
}

/* ---- over everything ---- */

static const tp_layer_arg global_arguments[] = {
    TP_LAYER_ROW_DATA_FORMAT(pooling_args),
    TP_LAYER_ROW_BOOL(pooling_args, keepdims),
    {0},
};

static bool infer_global(tp_layer *layer, tp_problems *problems)
{
    const bool keepdims = ((const pooling_args *)layer->args)->keepdims;
    const tp_shape *input = tp_layer_input(layer, 0);
    int64_t dims[] = {1, 1, 1, 1};
    dims[keepdims ? input->rank - 1 : 0] = input->dims[input->rank - 1];
    return tp_layer_add_output(layer, problems, keepdims ? input->rank : 1, dims);
}

static bool infer_global1d(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_need_rank(layer, 2, "[length,channels]", problems) &&
           infer_global(layer, problems);
}

static bool infer_global3d(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_need_rank(layer, 4, "[depth,height,width,channels]", problems) &&
           infer_global(layer, problems);
}

static tp_node_id reduce_all(tp_layer_context *context, const tp_layer *layer, tp_node_id x,
                             const char *kind)
{
    static const int64_t axes[] = {1, 2, 3};
    const tp_node_id reduced =
        tp_op_reduce(context->graph, x, kind, axes, tp_layer_input(layer, 0)->rank - 1);
    return tp_op_reshape(context->graph, reduced,
                         tp_layer_batched(context, tp_layer_output(layer, 0)));
}

static void build_global_max(tp_layer_context *context, const tp_layer *layer,
                             const tp_node_id *inputs, tp_node_id *outputs)
{
    outputs[0] = reduce_all(context, layer, inputs[0], "max");
}

/* Of a sequence with a mask: the mean over the steps that count. Where none does the result is 0 (Keras: 0/0),
 * because padding of a batch has no steps and must not spoil gradients. */
static void build_global_average(tp_layer_context *context, const tp_layer *layer,
                                 const tp_node_id *inputs, tp_node_id *outputs)
{
    static const int64_t step_axes[] = {0, 1}, batch_axis[] = {0}, time_axis = 1;
    tp_graph *graph = context->graph;
    const tp_shape *input = tp_layer_input(layer, 0);
    const tp_shape whole = tp_layer_batched(context, input);
    const tp_shape result = tp_layer_batched(context, tp_layer_output(layer, 0));
    const tp_node_id mask = input->rank == 2 ? context->input_masks[0] : TP_NO_NODE;
    tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32), count;
    if (mask == TP_NO_NODE) {
        const int64_t channels = input->dims[input->rank - 1];
        count = tp_op_scalar(graph, TP_F32, (double)(tp_shape_elems(input) / channels));
    } else {
        const tp_node_id counts = tp_op_broadcast_in_dim(graph, mask, whole, step_axes);
        x = tp_op_select(graph, counts, x, tp_op_scalar(graph, TP_F32, 0));
        count = tp_op_reduce(graph, tp_op_convert(graph, mask, TP_F32), "add", &time_axis, 1);
        count = tp_op_maximum(graph, count, tp_op_scalar(graph, TP_F32, 1));
        count = tp_op_broadcast_in_dim(graph, count, result, batch_axis);
    }
    const tp_node_id mean = tp_op_divide(graph, reduce_all(context, layer, x, "add"), count);
    outputs[0] = tp_op_convert(graph, mean, context->dtype);
}

#define POOLING_TYPE(id, class_name, rows, defaults, infer_function, build_function)               \
    const tp_layer_type tp_layer_##id = {.name = class_name,                                       \
                                         .snake = #id,                                             \
                                         .arguments = rows,                                        \
                                         .args_bytes = sizeof(pooling_args),                       \
                                         .set_defaults = defaults,                                 \
                                         .infer = infer_function,                                  \
                                         .build = build_function}

POOLING_TYPE(max_pooling1d, "MaxPooling1D", arguments1d, set_defaults, infer1d, build_max);
POOLING_TYPE(average_pooling1d, "AveragePooling1D", arguments1d, set_defaults, infer1d,
             build_average);
POOLING_TYPE(max_pooling3d, "MaxPooling3D", arguments3d, set_defaults, infer3d, build_max);
POOLING_TYPE(average_pooling3d, "AveragePooling3D", arguments3d, set_defaults, infer3d,
             build_average);
POOLING_TYPE(global_max_pooling1d, "GlobalMaxPooling1D", global_arguments, NULL, infer_global1d,
             build_global_max);
POOLING_TYPE(global_max_pooling3d, "GlobalMaxPooling3D", global_arguments, NULL, infer_global3d,
             build_global_max);
POOLING_TYPE(global_average_pooling1d, "GlobalAveragePooling1D", global_arguments, NULL,
             infer_global1d, build_global_average);
POOLING_TYPE(global_average_pooling3d, "GlobalAveragePooling3D", global_arguments, NULL,
             infer_global3d, build_global_average);
