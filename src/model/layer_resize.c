/* SPDX-License-Identifier: Apache-2.0
 * ZeroPadding2D, Cropping2D and UpSampling2D over images NHWC.
 */
#include "model/layer.h"

/* ---- ZeroPadding2D, Cropping2D ---- */

typedef struct border_args {
    int64_t border[2][2]; /* top and bottom, left and right */
    int32_t data_format;
} border_args;

static const tp_layer_arg padding_arguments[] = {
    {"padding", offsetof(border_args, border), TP_LAYER_PAIRS, TP_LAYER_RANGE(0, 1 << 20),
     .count = 2},
    TP_LAYER_ROW_DATA_FORMAT(border_args),
    {0},
};
static const tp_layer_arg cropping_arguments[] = {
    {"cropping", offsetof(border_args, border), TP_LAYER_PAIRS, TP_LAYER_RANGE(0, 1 << 20),
     .count = 2},
    TP_LAYER_ROW_DATA_FORMAT(border_args),
    {0},
};

static void set_padding_defaults(void *args)
{
    border_args *border = args;
    for (int i = 0; i < 4; i++)
        border->border[i / 2][i % 2] = 1;
}

/* sign 1: the borders are added, -1: taken away. */
static bool infer_border(tp_layer *layer, tp_problems *problems, int sign)
{
    const border_args *args = layer->args;
    if (!tp_layer_need_image(layer, problems)) return false;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    int64_t dims[3] = {in[0], in[1], in[2]};
    for (int i = 0; i < 2; i++) {
        dims[i] += sign * (args->border[i][0] + args->border[i][1]);
        if (dims[i] >= 1) continue;
        tp_problems_add(problems, "nothing is left of the input's %s of %lld",
                        i ? "width" : "height", (long long)in[i]);
        return false;
    }
    return tp_layer_add_output(layer, problems, 3, dims);
}

static bool infer_padding(tp_layer *layer, tp_problems *problems)
{
    return infer_border(layer, problems, 1);
}

static bool infer_cropping(tp_layer *layer, tp_problems *problems)
{
    return infer_border(layer, problems, -1);
}

static void build_padding(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    const border_args *args = layer->args;
    tp_graph *graph = context->graph;
    const int64_t low[] = {0, args->border[0][0], args->border[1][0], 0};
    const int64_t high[] = {0, args->border[0][1], args->border[1][1], 0};
    const tp_dtype dtype = tp_graph_node(graph, inputs[0])->dtype;
    outputs[0] = tp_op_pad(graph, inputs[0], tp_op_scalar(graph, dtype, 0), low, high, NULL);
}

static void build_cropping(tp_layer_context *context, const tp_layer *layer,
                           const tp_node_id *inputs, tp_node_id *outputs)
{
    const border_args *args = layer->args;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const int64_t start[] = {0, args->border[0][0], args->border[1][0], 0};
    const int64_t limit[] = {context->batch, in[0] - args->border[0][1], in[1] - args->border[1][1],
                             in[2]};
    outputs[0] = tp_op_slice(context->graph, inputs[0], start, limit, NULL);
}

/* ---- UpSampling2D ---- */

typedef enum interpolation { NEAREST, BILINEAR } interpolation;
static const char *const interpolation_names[] = {"nearest", "bilinear"};

typedef struct upsampling_args {
    int64_t size[2];
    int32_t data_format, interpolation;
} upsampling_args;

static const tp_layer_arg upsampling_arguments[] = {
    {"size", offsetof(upsampling_args, size), TP_LAYER_TUPLE, TP_LAYER_RANGE(1, 1 << 16),
     .count = 2},
    {"interpolation", offsetof(upsampling_args, interpolation), TP_LAYER_CHOICE,
     TP_LAYER_CHOICES(interpolation_names)},
    TP_LAYER_ROW_DATA_FORMAT(upsampling_args),
    {0},
};

static void set_upsampling_defaults(void *args)
{
    upsampling_args *upsampling = args;
    upsampling->size[0] = upsampling->size[1] = 2;
}

static bool infer_upsampling(tp_layer *layer, tp_problems *problems)
{
    const upsampling_args *args = layer->args;
    if (!tp_layer_need_image(layer, problems)) return false;
    int64_t dims[3] = {0, 0, tp_layer_input(layer, 0)->dims[2]};
    for (int i = 0; i < 2; i++)
        if (!tp_size_multiply(tp_layer_input(layer, 0)->dims[i], args->size[i], &dims[i])) {
            tp_problems_add(problems, "the result is too large");
            return false;
        }
    return tp_layer_add_output(layer, problems, 3, dims);
}

/* [batch, height, width, channels] with an axis of `size` behind axis 1 + d. */
static tp_shape spread(const tp_shape *image, int d, int64_t size)
{
    tp_shape shape = {.rank = 5, .dims = {image->dims[0], image->dims[1]}};
    shape.dims[2] = d == 0 ? size : image->dims[2];
    shape.dims[3] = d == 0 ? image->dims[2] : size;
    shape.dims[4] = image->dims[3];
    return shape;
}

static tp_node_id merge_spread(tp_graph *graph, tp_node_id x, const tp_shape *image, int d,
                               int64_t size)
{
    tp_shape shape = *image;
    shape.dims[1 + d] *= size;
    return tp_op_reshape(graph, x, shape);
}

static tp_node_id repeat(tp_graph *graph, tp_node_id x, int d, int64_t size)
{
    const tp_shape image = tp_graph_node(graph, x)->shape;
    const tp_node_id single = tp_op_reshape(graph, x, spread(&image, d, 1));
    const tp_node_id many = tp_op_broadcast_to(graph, single, spread(&image, d, size));
    return merge_spread(graph, many, &image, d, size);
}

/* x moved by one along axis 1 + d, the border doubled: what lies before (after) each position. */
static tp_node_id neighbour(tp_graph *graph, tp_node_id x, int d, bool is_after)
{
    const tp_shape image = tp_graph_node(graph, x)->shape;
    int64_t start[4] = {0, 0, 0, 0}, limit[4], border_start[4] = {0, 0, 0, 0}, border_limit[4];
    const int axis = 1 + d;
    for (int i = 0; i < 4; i++)
        limit[i] = border_limit[i] = image.dims[i];
    if (is_after) {
        start[axis] = 1;
        border_start[axis] = image.dims[axis] - 1;
    } else {
        limit[axis] = image.dims[axis] - 1;
        border_limit[axis] = 1;
    }
    if (image.dims[axis] == 1) return x;
    const tp_node_id inner = tp_op_slice(graph, x, start, limit, NULL);
    const tp_node_id border = tp_op_slice(graph, x, border_start, border_limit, NULL);
    const tp_node_id parts[] = {is_after ? inner : border, is_after ? border : inner};
    return tp_op_concatenate(graph, parts, 2, axis);
}

/* Weights of phase p of `size` along axis 1 + d, [size] with ones behind for the axes that follow: pixel
 * centres at (p + 0.5) / size - 0.5 (tf.image.resize, half_pixel_centers). `which`: before, at, after. */
static tp_node_id phase_weights(tp_graph *graph, int d, int64_t size, int which)
{
    float *weights = TP_ARENA_NEW_ARRAY(graph->arena, float, (size_t)size);
    if (!weights) return tp_graph_keep_error(graph);
    for (int64_t p = 0; p < size; p++) {
        const double centre = ((double)p + 0.5) / (double)size - 0.5;
        const double before = centre < 0 ? -centre : 0, after = centre > 0 ? centre : 0;
        weights[p] = (float)(which == 0 ? before : which == 2 ? after : 1 - before - after);
    }
    const tp_shape shape = d == 0 ? (tp_shape){.rank = 3, .dims = {size, 1, 1}}
                                  : (tp_shape){.rank = 2, .dims = {size, 1}};
    return tp_op_constant(graph, TP_F32, shape, weights);
}

static tp_node_id interpolate(tp_graph *graph, tp_node_id x, int d, int64_t size)
{
    const tp_shape image = tp_graph_node(graph, x)->shape;
    const tp_node_id sources[] = {neighbour(graph, x, d, false), x, neighbour(graph, x, d, true)};
    tp_node_id sum = TP_NO_NODE;
    for (int i = 0; i < 3; i++) {
        const tp_node_id single = tp_op_reshape(graph, sources[i], spread(&image, d, 1));
        const tp_node_id share = tp_op_multiply(graph, single, phase_weights(graph, d, size, i));
        sum = i == 0 ? share : tp_op_add(graph, sum, share);
    }
    return merge_spread(graph, sum, &image, d, size);
}

static void build_upsampling(tp_layer_context *context, const tp_layer *layer,
                             const tp_node_id *inputs, tp_node_id *outputs)
{
    const upsampling_args *args = layer->args;
    tp_graph *graph = context->graph;
    const bool is_bilinear = args->interpolation == BILINEAR;
    tp_node_id x = is_bilinear ? tp_op_convert(graph, inputs[0], TP_F32) : inputs[0];
    for (int d = 0; d < 2 && !graph->has_failed; d++)
        if (args->size[d] > 1)
            x = is_bilinear ? interpolate(graph, x, d, args->size[d])
                            : repeat(graph, x, d, args->size[d]);
    outputs[0] = is_bilinear ? tp_op_convert(graph, x, context->dtype) : x;
}

const tp_layer_type tp_layer_zero_padding2d = {.name = "ZeroPadding2D",
                                               .snake = "zero_padding2d",
                                               .arguments = padding_arguments,
                                               .args_bytes = sizeof(border_args),
                                               .set_defaults = set_padding_defaults,
                                               .infer = infer_padding,
                                               .build = build_padding};
const tp_layer_type tp_layer_cropping2d = {.name = "Cropping2D",
                                           .snake = "cropping2d",
                                           .arguments = cropping_arguments,
                                           .args_bytes = sizeof(border_args),
                                           .infer = infer_cropping,
                                           .build = build_cropping};
const tp_layer_type tp_layer_up_sampling2d = {.name = "UpSampling2D",
                                              .snake = "up_sampling2d",
                                              .arguments = upsampling_arguments,
                                              .args_bytes = sizeof(upsampling_args),
                                              .set_defaults = set_upsampling_defaults,
                                              .infer = infer_upsampling,
                                              .build = build_upsampling};
