/* SPDX-License-Identifier: Apache-2.0
 * RandomRotation, RandomTranslation, RandomZoom (keras/src/layers/preprocessing/image_preprocessing): in
 * training, position (row, column) of the result is read at
 *     row' = b0 * column + b1 * row + b2,   column' = a0 * column + a1 * row + a2
 * of the example's image; otherwise the images pass. Everything is f32. With u, v uniform in [0, 1), one draw of
 * each for each example and step, and cx, cy = (width - 1) / 2, (height - 1) / 2:
 *     rotation      angle = 2 pi (low + (high - low) u); a0 = b1 = cos, a1 = -sin, b0 = sin;
 *                   a2 = cx - cx a0 - cy a1, b2 = cy - cx b0 - cy b1
 *     translation   a0 = b1 = 1; b2 = -height * (low + (high - low) u), a2 likewise from v and the width
 *     zoom          b1 = 1 + low + (high - low) u, a0 likewise from v, or b1; a2 = cx (1 - a0), b2 = cy (1 - b1)
 * Bilinear reads four neighbours, with floor(row') and floor(column') as the first; nearest rounds to even.
 * Outside of the image: reflect (d c b a | a b c d | d c b a), wrap, nearest, constant (fill_value).
 */
#include <math.h>

#include "model/layer_image.h"

#define PI 3.14159265358979324

typedef enum fill_mode { FILL_REFLECT, FILL_WRAP, FILL_CONSTANT, FILL_NEAREST } fill_mode;
static const char *const fill_modes[] = {"reflect", "wrap", "constant", "nearest"};
static const char *const interpolations[] = {"nearest", "bilinear"};

typedef struct affine_args {
    tp_layer_numbers factor, height_factor, width_factor;
    int32_t fill_mode, interpolation, data_format;
    double fill_value;
    double range[2], width_range[2]; /* found by infer */
} affine_args;

#define ROW_FACTOR(field)                                                                          \
    {                                                                                              \
        TP_LAYER_ROW(affine_args, field, TP_LAYER_NUMBERS), TP_LAYER_RANGE(-1, 1),                 \
            .count = 2, TP_LAYER_REQUIRED                                                          \
    }
#define ROWS_FILL                                                                                  \
    {"fill_mode", offsetof(affine_args, fill_mode), TP_LAYER_CHOICE,                               \
     TP_LAYER_CHOICES(fill_modes)},                                                                \
        {"interpolation", offsetof(affine_args, interpolation), TP_LAYER_CHOICE,                   \
         TP_LAYER_CHOICES(interpolations)},                                                        \
        TP_LAYER_ROW_NUMBER(affine_args, fill_value, -1e30, 1e30),                                 \
        TP_LAYER_ROW_DATA_FORMAT(affine_args)

static const tp_layer_arg rotation_arguments[] = {ROW_FACTOR(factor), ROWS_FILL, {0}};
static const tp_layer_arg translation_arguments[] = {
    ROW_FACTOR(height_factor), ROW_FACTOR(width_factor), ROWS_FILL, {0}};
static const tp_layer_arg zoom_arguments[] = {
    ROW_FACTOR(height_factor),
    {TP_LAYER_ROW(affine_args, width_factor, TP_LAYER_NUMBERS), TP_LAYER_RANGE(-1, 1), .count = 2},
    ROWS_FILL,
    {0},
};

static void set_defaults(void *args)
{
    ((affine_args *)args)->interpolation = 1;
}

static bool infer_rotation(tp_layer *layer, tp_problems *problems)
{
    affine_args *affine = layer->args;
    return tp_layer_need_image(layer, problems) &&
           tp_image_range(&affine->factor, "factor", -1, 1, problems, affine->range) &&
           tp_layer_same_output(layer, problems);
}

/* Translation, zoom. */
static bool infer_pair(tp_layer *layer, tp_problems *problems)
{
    affine_args *affine = layer->args;
    if (!tp_layer_need_image(layer, problems) ||
        !tp_image_range(&affine->height_factor, "height_factor", -1, 1, problems, affine->range))
        return false;
    if (affine->width_factor.items && !tp_image_range(&affine->width_factor, "width_factor", -1, 1,
                                                      problems, affine->width_range))
        return false;
    return tp_layer_same_output(layer, problems);
}

/* ---- where an element is read ---- */

typedef struct affine_map {
    tp_node_id a0, a1, a2, b0, b1, b2; /* f32 [batch]; a1, b0 TP_NO_NODE: 0 */
} affine_map;

/* f32 [batch, height, width]: x * column + y * row + offset, in this order; y or x may be TP_NO_NODE. */
static tp_node_id coordinates(tp_layer_context *context, const tp_layer *layer, tp_node_id x,
                              tp_node_id y, tp_node_id offset)
{
    tp_graph *graph = context->graph;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const tp_shape plane = {.rank = 3, .dims = {context->batch, in[0], in[1]}};
    const tp_shape own = {.rank = 3, .dims = {context->batch, 1, 1}};
    const tp_node_id factors[] = {x, y};
    tp_node_id sum = TP_NO_NODE;
    for (int i = 0; i < 2; i++) {
        if (factors[i] == TP_NO_NODE) continue;
        const tp_node_id index = tp_op_iota(graph, TP_F32, plane, i == 0 ? 2 : 1);
        const tp_node_id term = tp_op_multiply(graph, index, tp_op_reshape(graph, factors[i], own));
        sum = sum == TP_NO_NODE ? term : tp_op_add(graph, sum, term);
    }
    return tp_op_add(graph, sum, tp_op_reshape(graph, offset, own));
}

/* s32 indices below 0 or at `size` and above brought inside. */
static tp_node_id fix_index(tp_graph *graph, tp_node_id index, int64_t size, fill_mode mode)
{
    const tp_node_id zero = tp_op_scalar(graph, TP_S32, 0);
    const tp_node_id last = tp_op_scalar(graph, TP_S32, (double)(size - 1));
    if (mode == FILL_REFLECT || mode == FILL_WRAP) {
        const tp_node_id period =
            tp_op_scalar(graph, TP_S32, (double)(mode == FILL_WRAP ? size : 2 * size));
        const tp_node_id rest = tp_op_remainder(graph, index, period);
        const tp_node_id is_negative = tp_op_compare(graph, "LT", rest, zero);
        index = tp_op_select(graph, is_negative, tp_op_add(graph, rest, period), rest);
        if (mode == FILL_WRAP) return index;
        const tp_node_id mirrored =
            tp_op_subtract(graph, tp_op_scalar(graph, TP_S32, (double)(2 * size - 1)), index);
        return tp_op_minimum(graph, index, mirrored);
    }
    return tp_op_minimum(graph, tp_op_maximum(graph, index, zero), last);
}

static tp_node_id is_inside(tp_graph *graph, tp_node_id index, int64_t size)
{
    const tp_node_id zero = tp_op_scalar(graph, TP_S32, 0);
    const tp_node_id end = tp_op_scalar(graph, TP_S32, (double)size);
    return tp_op_and(graph, tp_op_compare(graph, "GE", index, zero),
                     tp_op_compare(graph, "LT", index, end));
}

/* The images at s32 positions row, column: f32 [batch, height, width, channels]. */
static tp_node_id read_at(tp_layer_context *context, const tp_layer *layer, tp_node_id images,
                          tp_node_id row, tp_node_id column)
{
    static const int64_t plane_axes[] = {0, 1, 2};
    const affine_args *affine = layer->args;
    const fill_mode mode = (fill_mode)affine->fill_mode;
    tp_graph *graph = context->graph;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const tp_shape flat = {.rank = 3, .dims = {context->batch, in[0] * in[1], in[2]}};
    const tp_shape places = {.rank = 2, .dims = {context->batch, in[0] * in[1]}};
    const tp_shape whole = tp_layer_batched(context, tp_layer_input(layer, 0));
    const tp_index_dims dims = {.window = {2},
                                .window_count = 1,
                                .collapsed = {1},
                                .collapsed_count = 1,
                                .batch = {0},
                                .index_batch = {0},
                                .batch_count = 1,
                                .map = {1},
                                .map_count = 1,
                                .vector_dim = 2};
    const int64_t slices[] = {1, 1, in[2]};
    const tp_node_id width = tp_op_scalar(graph, TP_S32, (double)in[1]);
    const tp_node_id index =
        tp_op_add(graph, tp_op_multiply(graph, fix_index(graph, row, in[0], mode), width),
                  fix_index(graph, column, in[1], mode));
    const tp_node_id gathered =
        tp_op_gather(graph, tp_op_reshape(graph, images, flat), tp_op_reshape(graph, index, places),
                     &dims, slices, "clamp");
    const tp_node_id found = tp_op_reshape(graph, gathered, whole);
    if (mode != FILL_CONSTANT) return found;
    const tp_node_id inside =
        tp_op_and(graph, is_inside(graph, row, in[0]), is_inside(graph, column, in[1]));
    return tp_op_select(graph, tp_op_broadcast_in_dim(graph, inside, whole, plane_axes), found,
                        tp_op_scalar(graph, TP_F32, affine->fill_value));
}

/* weight [batch, height, width] * images */
static tp_node_id weighted(tp_layer_context *context, const tp_layer *layer, tp_node_id weight,
                           tp_node_id images)
{
    static const int64_t plane_axes[] = {0, 1, 2};
    const tp_shape whole = tp_layer_batched(context, tp_layer_input(layer, 0));
    const tp_node_id wide = tp_op_broadcast_in_dim(context->graph, weight, whole, plane_axes);
    return tp_op_multiply(context->graph, images, wide);
}

/* Sum over the four neighbours, rows outer, earlier ones first. */
static tp_node_id read_bilinear(tp_layer_context *context, const tp_layer *layer, tp_node_id images,
                                tp_node_id row, tp_node_id column)
{
    tp_graph *graph = context->graph;
    const tp_node_id at[] = {row, column};
    tp_node_id index[2][2], weight[2][2], sum = TP_NO_NODE;
    for (int i = 0; i < 2; i++) {
        const tp_node_id below = tp_op_floor(graph, at[i]);
        weight[i][1] = tp_op_subtract(graph, at[i], below);
        weight[i][0] = tp_op_subtract(graph, tp_op_scalar(graph, TP_F32, 1), weight[i][1]);
        index[i][0] = tp_op_convert(graph, below, TP_S32);
        index[i][1] = tp_op_add_scalar(graph, index[i][0], 1);
    }
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 2; c++) {
            const tp_node_id found = read_at(context, layer, images, index[0][r], index[1][c]);
            const tp_node_id w = tp_op_multiply(graph, weight[0][r], weight[1][c]);
            const tp_node_id term = weighted(context, layer, w, found);
            sum = sum == TP_NO_NODE ? term : tp_op_add(graph, sum, term);
        }
    return sum;
}

static void apply(tp_layer_context *context, const tp_layer *layer, tp_node_id input,
                  const affine_map *map, tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const tp_node_id x = tp_op_convert(graph, input, TP_F32);
    const tp_node_id row = coordinates(context, layer, map->b0, map->b1, map->b2);
    const tp_node_id column = coordinates(context, layer, map->a0, map->a1, map->a2);
    tp_node_id y;
    if (((const affine_args *)layer->args)->interpolation == 1) {
        y = read_bilinear(context, layer, x, row, column);
    } else {
        const tp_node_id r = tp_op_convert(graph, tp_op_round_nearest_even(graph, row), TP_S32);
        const tp_node_id c = tp_op_convert(graph, tp_op_round_nearest_even(graph, column), TP_S32);
        y = read_at(context, layer, x, r, c);
    }
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

/* ---- the layers ---- */

/* middle - cx * x - cy * y */
static tp_node_id centred(tp_graph *graph, double middle, double cx, tp_node_id x, double cy,
                          tp_node_id y)
{
    const tp_node_id left = tp_op_add_scalar(graph, tp_op_multiply_scalar(graph, x, -cx), middle);
    return tp_op_subtract(graph, left, tp_op_multiply_scalar(graph, y, cy));
}

static void build_rotation(tp_layer_context *context, const tp_layer *layer,
                           const tp_node_id *inputs, tp_node_id *outputs)
{
    const affine_args *affine = layer->args;
    tp_graph *graph = context->graph;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const double cx = (double)(in[1] - 1) / 2, cy = (double)(in[0] - 1) / 2;
    outputs[0] = inputs[0];
    if (!context->is_training) return;
    const tp_node_id angle =
        tp_image_uniform(context, 2 * PI * affine->range[0], 2 * PI * affine->range[1]);
    const tp_node_id cosine = tp_op_cosine(graph, angle), sine = tp_op_sine(graph, angle);
    affine_map map = {.a0 = cosine, .a1 = tp_op_negate(graph, sine), .b0 = sine, .b1 = cosine};
    map.a2 = centred(graph, cx, cx, map.a0, cy, map.a1);
    map.b2 = centred(graph, cy, cx, map.b0, cy, map.b1);
    apply(context, layer, inputs[0], &map, outputs);
}

static void build_translation(tp_layer_context *context, const tp_layer *layer,
                              const tp_node_id *inputs, tp_node_id *outputs)
{
    const affine_args *affine = layer->args;
    tp_graph *graph = context->graph;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const tp_shape batch = {.rank = 1, .dims = {context->batch}};
    outputs[0] = inputs[0];
    if (!context->is_training) return;
    const tp_node_id one = tp_op_fill(graph, TP_F32, batch, 1);
    affine_map map = {.a0 = one, .a1 = TP_NO_NODE, .b0 = TP_NO_NODE, .b1 = one};
    map.b2 = tp_op_multiply_scalar(
        graph, tp_image_uniform(context, affine->range[0], affine->range[1]), -(double)in[0]);
    map.a2 = tp_op_multiply_scalar(
        graph, tp_image_uniform(context, affine->width_range[0], affine->width_range[1]),
        -(double)in[1]);
    apply(context, layer, inputs[0], &map, outputs);
}

/* middle * (1 - zoom) */
static tp_node_id zoom_offset(tp_graph *graph, double middle, tp_node_id zoom)
{
    const tp_node_id rest = tp_op_subtract(graph, tp_op_scalar(graph, TP_F32, 1), zoom);
    return tp_op_multiply_scalar(graph, rest, middle);
}

static void build_zoom(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                       tp_node_id *outputs)
{
    const affine_args *affine = layer->args;
    tp_graph *graph = context->graph;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    outputs[0] = inputs[0];
    if (!context->is_training) return;
    affine_map map = {.a1 = TP_NO_NODE, .b0 = TP_NO_NODE};
    map.b1 = tp_image_uniform(context, 1 + affine->range[0], 1 + affine->range[1]);
    map.a0 = affine->width_factor.items
                 ? tp_image_uniform(context, 1 + affine->width_range[0], 1 + affine->width_range[1])
                 : map.b1;
    map.a2 = zoom_offset(graph, (double)(in[1] - 1) / 2, map.a0);
    map.b2 = zoom_offset(graph, (double)(in[0] - 1) / 2, map.b1);
    apply(context, layer, inputs[0], &map, outputs);
}

#define AFFINE_TYPE(id, class_name, rows, infer_function, build_function)                          \
    const tp_layer_type tp_layer_##id = {.name = class_name,                                       \
                                         .snake = #id,                                             \
                                         .arguments = rows,                                        \
                                         .args_bytes = sizeof(affine_args),                        \
                                         .set_defaults = set_defaults,                             \
                                         .infer = infer_function,                                  \
                                         .build = build_function}

AFFINE_TYPE(random_rotation, "RandomRotation", rotation_arguments, infer_rotation, build_rotation);
AFFINE_TYPE(random_translation, "RandomTranslation", translation_arguments, infer_pair,
            build_translation);
AFFINE_TYPE(random_zoom, "RandomZoom", zoom_arguments, infer_pair, build_zoom);
