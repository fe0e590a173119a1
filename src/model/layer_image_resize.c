/* SPDX-License-Identifier: Apache-2.0
 * Resizing, CenterCrop, RandomCrop, and what image layers share. Geometry is that of jax.image.resize without
 * antialiasing, half-pixel centres, which Keras uses; positions and weights are constants of the graph.
 */
#include <math.h>

#include "model/layer_image.h"

static const char *const interpolations[] = {"nearest", "bilinear"};

typedef struct size_args {
    int64_t height, width;
    int32_t interpolation, data_format;
} size_args;

#define ROW_SIDE(side)                                                                             \
    {                                                                                              \
#side, offsetof(size_args, side), TP_LAYER_INT, TP_LAYER_REQUIRED,                         \
            TP_LAYER_RANGE(1, 1 << 16)                                                             \
    }

static const tp_layer_arg resizing_arguments[] = {
    ROW_SIDE(height),
    ROW_SIDE(width),
    {"interpolation", offsetof(size_args, interpolation), TP_LAYER_CHOICE,
     TP_LAYER_CHOICES(interpolations)},
    TP_LAYER_ROW_DATA_FORMAT(size_args),
    {0},
};
static const tp_layer_arg crop_arguments[] = {
    ROW_SIDE(height),
    ROW_SIDE(width),
    TP_LAYER_ROW_DATA_FORMAT(size_args),
    {0},
};

static void set_resizing_defaults(void *args)
{
    ((size_args *)args)->interpolation = 1;
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    const size_args *size = layer->args;
    if (!tp_layer_need_image(layer, problems)) return false;
    const int64_t channels = tp_layer_input(layer, 0)->dims[2];
    return tp_layer_add_output(layer, problems, 3,
                               (const int64_t[]){size->height, size->width, channels});
}

/* ---- shared ---- */

/* For each of `count` positions: the input's position, moved by `step` and kept inside; s32 [count]. */
static tp_node_id positions(tp_graph *graph, int64_t in, int64_t count, bool is_bilinear,
                            int64_t step)
{
    int32_t *items = TP_ARENA_NEW_ARRAY(graph->arena, int32_t, (size_t)count);
    if (!items) return tp_graph_keep_error(graph);
    for (int64_t i = 0; i < count; i++) {
        const double at = ((double)i + 0.5) * (double)in / (double)count;
        const double place = floor(is_bilinear ? at - 0.5 : at) + (double)step;
        items[i] = (int32_t)fmin(fmax(place, 0), (double)(in - 1));
    }
    return tp_op_constant(graph, TP_S32, (tp_shape){.rank = 1, .dims = {count}}, items);
}

/* Weight of the later neighbour, f32 [count, 1, ...] so that it meets `axis` of an image. */
static tp_node_id fractions(tp_graph *graph, int64_t in, int64_t count, int axis)
{
    float *items = TP_ARENA_NEW_ARRAY(graph->arena, float, (size_t)count);
    if (!items) return tp_graph_keep_error(graph);
    for (int64_t i = 0; i < count; i++) {
        const double at = ((double)i + 0.5) * (double)in / (double)count - 0.5;
        items[i] = (float)(at - floor(at));
    }
    const tp_shape shape = {.rank = 4 - axis, .dims = {count, 1, 1}};
    return tp_op_constant(graph, TP_F32, shape, items);
}

static tp_node_id resize_axis(tp_graph *graph, tp_node_id x, int axis, int64_t count,
                              bool is_bilinear)
{
    if (x == TP_NO_NODE) return x;
    const int64_t in = tp_graph_node(graph, x)->shape.dims[axis];
    if (in == count) return x;
    const tp_node_id first =
        tp_op_take(graph, x, positions(graph, in, count, is_bilinear, 0), axis);
    if (!is_bilinear) return first;
    const tp_node_id second = tp_op_take(graph, x, positions(graph, in, count, true, 1), axis);
    const tp_node_id weight = fractions(graph, in, count, axis);
    const tp_node_id rest = tp_op_subtract(graph, tp_op_scalar(graph, TP_F32, 1), weight);
    return tp_op_add(graph, tp_op_multiply(graph, first, rest),
                     tp_op_multiply(graph, second, weight));
}

tp_node_id tp_image_resize(tp_graph *graph, tp_node_id x, int64_t height, int64_t width,
                           bool is_bilinear)
{
    const tp_node_id rows = resize_axis(graph, x, 1, height, is_bilinear);
    return resize_axis(graph, rows, 2, width, is_bilinear);
}

/* [top, top + height) x [left, left + width) */
static tp_node_id window(tp_graph *graph, tp_node_id x, int64_t top, int64_t left, int64_t height,
                         int64_t width)
{
    if (x == TP_NO_NODE) return x;
    tp_shape limit = tp_graph_node(graph, x)->shape;
    const int64_t start[] = {0, top, left, 0};
    limit.dims[1] = top + height;
    limit.dims[2] = left + width;
    return tp_op_slice(graph, x, start, limit.dims, NULL);
}

/* keras: smart_resize */
tp_node_id tp_image_fit(tp_graph *graph, tp_node_id x, int64_t height, int64_t width)
{
    if (x == TP_NO_NODE) return x;
    const tp_shape shape = tp_graph_node(graph, x)->shape;
    const int64_t h = shape.dims[1], w = shape.dims[2];
    int64_t crop_h = w * height / width, crop_w = h * width / height;
    crop_h = crop_h < 1 ? 1 : crop_h < h ? crop_h : h;
    crop_w = crop_w < 1 ? 1 : crop_w < w ? crop_w : w;
    const tp_node_id middle = window(graph, x, (h - crop_h) / 2, (w - crop_w) / 2, crop_h, crop_w);
    return tp_image_resize(graph, middle, height, width, true);
}

tp_node_id tp_image_uniform(tp_layer_context *context, double low, double high)
{
    tp_graph *graph = context->graph;
    const tp_shape shape = {.rank = 1, .dims = {context->batch}};
    const tp_node_id u = tp_op_uniform(graph, TP_F32, shape, tp_layer_random_stream(context));
    return tp_op_add_scalar(graph, tp_op_multiply_scalar(graph, u, high - low), low);
}

bool tp_image_range(const tp_layer_numbers *factor, const char *name, double least, double most,
                    tp_problems *problems, double out_range[2])
{
    for (int32_t i = 0; i < factor->count; i++)
        if (factor->items[i] < least || factor->items[i] > most) {
            tp_problems_add(problems, "'%s' is %g, expected %g to %g", name, factor->items[i],
                            least, most);
            return false;
        }
    if (factor->count == 0) {
        tp_problems_add(problems, "'%s' is empty", name);
        return false;
    }
    const double a = factor->items[0], b = factor->count > 1 ? factor->items[1] : -a;
    out_range[0] = fmax(fmin(a, b), least);
    out_range[1] = fmax(a, b);
    return true;
}

/* ---- nodes ---- */

static void build_resizing(tp_layer_context *context, const tp_layer *layer,
                           const tp_node_id *inputs, tp_node_id *outputs)
{
    const size_args *size = layer->args;
    const tp_node_id x = tp_op_convert(context->graph, inputs[0], TP_F32);
    const tp_node_id y =
        tp_image_resize(context->graph, x, size->height, size->width, size->interpolation == 1);
    outputs[0] = tp_op_convert(context->graph, y, context->dtype);
}

static bool is_larger(const tp_layer *layer)
{
    const size_args *size = layer->args;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    return in[0] >= size->height && in[1] >= size->width;
}

static tp_node_id fit(tp_layer_context *context, const tp_layer *layer, tp_node_id input)
{
    const size_args *size = layer->args;
    const tp_node_id x = tp_op_convert(context->graph, input, TP_F32);
    return tp_op_convert(context->graph, tp_image_fit(context->graph, x, size->height, size->width),
                         context->dtype);
}

static void build_center_crop(tp_layer_context *context, const tp_layer *layer,
                              const tp_node_id *inputs, tp_node_id *outputs)
{
    const size_args *size = layer->args;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    outputs[0] = is_larger(layer) ? window(context->graph, inputs[0], (in[0] - size->height) / 2,
                                           (in[1] - size->width) / 2, size->height, size->width)
                                  : fit(context, layer, inputs[0]);
}

/* Training: a window of the size asked for, at one place for all examples of a core's step; both coordinates
 * are floor(u * places) of one draw each. Otherwise, and where the image is too small: the largest window of
 * that aspect ratio, resized. */
static void build_random_crop(tp_layer_context *context, const tp_layer *layer,
                              const tp_node_id *inputs, tp_node_id *outputs)
{
    const size_args *size = layer->args;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    tp_graph *graph = context->graph;
    if (!context->is_training || !is_larger(layer)) {
        outputs[0] = fit(context, layer, inputs[0]);
        return;
    }
    const tp_shape four = {.rank = 1, .dims = {4}};
    const float places[] = {0, (float)(in[0] - size->height + 1), (float)(in[1] - size->width + 1),
                            0};
    const tp_node_id u = tp_op_uniform(graph, TP_F32, four, tp_layer_random_stream(context));
    const tp_node_id scaled = tp_op_multiply(graph, u, tp_op_constant(graph, TP_F32, four, places));
    const tp_node_id start = tp_op_convert(graph, tp_op_floor(graph, scaled), TP_S32);
    const int64_t sizes[] = {context->batch, size->height, size->width, in[2]};
    outputs[0] = tp_op_dynamic_slice(graph, inputs[0], start, sizes);
}

const tp_layer_type tp_layer_resizing = {.name = "Resizing",
                                         .snake = "resizing",
                                         .arguments = resizing_arguments,
                                         .args_bytes = sizeof(size_args),
                                         .set_defaults = set_resizing_defaults,
                                         .infer = infer,
                                         .build = build_resizing};
const tp_layer_type tp_layer_center_crop = {.name = "CenterCrop",
                                            .snake = "center_crop",
                                            .arguments = crop_arguments,
                                            .args_bytes = sizeof(size_args),
                                            .infer = infer,
                                            .build = build_center_crop};
const tp_layer_type tp_layer_random_crop = {.name = "RandomCrop",
                                            .snake = "random_crop",
                                            .arguments = crop_arguments,
                                            .args_bytes = sizeof(size_args),
                                            .infer = infer,
                                            .build = build_random_crop};
