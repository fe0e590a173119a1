/* SPDX-License-Identifier: Apache-2.0
 * ZeroPadding, Cropping, UpSampling of sequences [length, channels] and volumes [depth, height, width, channels].
 */
#include "model/layer.h"

typedef struct padding_args {
    int64_t pairs[3][2], size[3];
    int32_t data_format;
} padding_args;

#define ROW_PAIRS(key, n)                                                                          \
    {                                                                                              \
        key, offsetof(padding_args, pairs), TP_LAYER_PAIRS, TP_LAYER_RANGE(0, 1 << 20),            \
            .count = (n)                                                                           \
    }
#define ROW_SIZE(n)                                                                                \
    {                                                                                              \
        "size", offsetof(padding_args, size), TP_LAYER_TUPLE, TP_LAYER_RANGE(1, 1 << 16),          \
            .count = (n)                                                                           \
    }
#define ROW_FORMAT TP_LAYER_ROW_DATA_FORMAT(padding_args)

static const tp_layer_arg zero1d_arguments[] = {ROW_PAIRS("padding", 1), ROW_FORMAT, {0}};
static const tp_layer_arg zero3d_arguments[] = {ROW_PAIRS("padding", 3), ROW_FORMAT, {0}};
static const tp_layer_arg crop1d_arguments[] = {ROW_PAIRS("cropping", 1), {0}};
static const tp_layer_arg crop3d_arguments[] = {ROW_PAIRS("cropping", 3), ROW_FORMAT, {0}};
static const tp_layer_arg up1d_arguments[] = {ROW_SIZE(1), {0}};
static const tp_layer_arg up3d_arguments[] = {ROW_SIZE(3), ROW_FORMAT, {0}};

static void set_defaults(void *args)
{
    padding_args *padding = args;
    for (int i = 0; i < 3; i++) {
        padding->pairs[i][0] = padding->pairs[i][1] = 1;
        padding->size[i] = 2;
    }
}

static bool need_rank(const tp_layer *layer, int spatial, tp_problems *problems)
{
    return spatial == 1 ? tp_layer_need_rank(layer, 2, "[length,channels]", problems)
                        : tp_layer_need_rank(layer, 4, "[depth,height,width,channels]", problems);
}

/* ---- ZeroPadding (sign 1), Cropping (sign -1) ---- */

static bool infer_pairs(tp_layer *layer, tp_problems *problems, int spatial, int sign)
{
    const padding_args *padding = layer->args;
    if (!need_rank(layer, spatial, problems)) return false;
    tp_shape shape = *tp_layer_input(layer, 0);
    for (int i = 0; i < spatial; i++) {
        shape.dims[i] += sign * (padding->pairs[i][0] + padding->pairs[i][1]);
        if (shape.dims[i] > 0) continue;
        tp_problems_add(problems, "nothing is left of the input's %lld",
                        (long long)tp_layer_input(layer, 0)->dims[i]);
        return false;
    }
    return tp_layer_add_output(layer, problems, shape.rank, shape.dims);
}

static bool infer_zero1d(tp_layer *layer, tp_problems *problems)
{
    return infer_pairs(layer, problems, 1, 1);
}

static bool infer_zero3d(tp_layer *layer, tp_problems *problems)
{
    return infer_pairs(layer, problems, 3, 1);
}

static bool infer_crop1d(tp_layer *layer, tp_problems *problems)
{
    return infer_pairs(layer, problems, 1, -1);
}

static bool infer_crop3d(tp_layer *layer, tp_problems *problems)
{
    return infer_pairs(layer, problems, 3, -1);
}

static void build_zero(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                       tp_node_id *outputs)
{
    const padding_args *padding = layer->args;
    int64_t low[TP_MAX_RANK] = {0}, high[TP_MAX_RANK] = {0};
    for (int i = 0; i < tp_layer_input(layer, 0)->rank - 1; i++) {
        low[i + 1] = padding->pairs[i][0];
        high[i + 1] = padding->pairs[i][1];
    }
    const tp_node_id zero = tp_op_scalar(context->graph, context->dtype, 0);
    outputs[0] = tp_op_pad(context->graph, inputs[0], zero, low, high, NULL);
}

static void build_crop(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                       tp_node_id *outputs)
{
    const padding_args *padding = layer->args;
    tp_shape limit = tp_layer_batched(context, tp_layer_input(layer, 0));
    int64_t start[TP_MAX_RANK] = {0};
    for (int i = 0; i < tp_layer_input(layer, 0)->rank - 1; i++) {
        start[i + 1] = padding->pairs[i][0];
        limit.dims[i + 1] -= padding->pairs[i][1];
    }
    outputs[0] = tp_op_slice(context->graph, inputs[0], start, limit.dims, NULL);
}

/* ---- UpSampling: every position `size` times ---- */

static bool infer_up(tp_layer *layer, tp_problems *problems, int spatial)
{
    const padding_args *padding = layer->args;
    if (!need_rank(layer, spatial, problems)) return false;
    tp_shape shape = *tp_layer_input(layer, 0);
    for (int i = 0; i < spatial; i++)
        shape.dims[i] *= padding->size[i];
    return tp_layer_add_output(layer, problems, shape.rank, shape.dims);
}

static bool infer_up1d(tp_layer *layer, tp_problems *problems)
{
    return infer_up(layer, problems, 1);
}

static bool infer_up3d(tp_layer *layer, tp_problems *problems)
{
    return infer_up(layer, problems, 3);
}

/* [batch, d, h, w, c] -> [batch, d, size, h, size, w, size, c]: rank 8 for volumes, all there is. */
static void build_up(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                     tp_node_id *outputs)
{
    const padding_args *padding = layer->args;
    const tp_shape *input = tp_layer_input(layer, 0);
    const int spatial = input->rank - 1;
    tp_shape wide = {.rank = 2 * spatial + 2, .dims = {context->batch}};
    int64_t axes[TP_MAX_RANK] = {0};
    for (int i = 0; i < spatial; i++) {
        wide.dims[2 * i + 1] = input->dims[i];
        wide.dims[2 * i + 2] = padding->size[i];
        axes[i + 1] = 2 * i + 1;
    }
    wide.dims[2 * spatial + 1] = input->dims[spatial];
    axes[spatial + 1] = 2 * spatial + 1;
    const tp_node_id repeated = tp_op_broadcast_in_dim(context->graph, inputs[0], wide, axes);
    outputs[0] = tp_op_reshape(context->graph, repeated,
                               tp_layer_batched(context, tp_layer_output(layer, 0)));
}

#define PADDING_TYPE(id, class_name, rows, infer_function, build_function)                         \
    const tp_layer_type tp_layer_##id = {.name = class_name,                                       \
                                         .snake = #id,                                             \
                                         .arguments = rows,                                        \
                                         .args_bytes = sizeof(padding_args),                       \
                                         .set_defaults = set_defaults,                             \
                                         .infer = infer_function,                                  \
                                         .build = build_function}

PADDING_TYPE(zero_padding1d, "ZeroPadding1D", zero1d_arguments, infer_zero1d, build_zero);
PADDING_TYPE(zero_padding3d, "ZeroPadding3D", zero3d_arguments, infer_zero3d, build_zero);
PADDING_TYPE(cropping1d, "Cropping1D", crop1d_arguments, infer_crop1d, build_crop);
PADDING_TYPE(cropping3d, "Cropping3D", crop3d_arguments, infer_crop3d, build_crop);
PADDING_TYPE(up_sampling1d, "UpSampling1D", up1d_arguments, infer_up1d, build_up);
PADDING_TYPE(up_sampling3d, "UpSampling3D", up3d_arguments, infer_up3d, build_up);
