/* SPDX-License-Identifier: Apache-2.0
 * Conv1D and Conv3D: activation(x * kernel + bias), by the convolution of images. A sequence is an image of
 * width 1. A volume's convolution is one convolution of images for each depth of the kernel, over the slices
 * of the volume that it meets; they are added in f32 in rising depth.
 */
#include "model/layer.h"

enum { CAUSAL = 2 };
static const char *const causal_padding_names[] = {"valid", "same", "causal"};

typedef struct conv_args {
    int64_t filters, groups;
    tp_layer_windows windows;
    int32_t data_format, activation;
    bool use_bias;
    tp_initializer kernel_initializer, bias_initializer;
    tp_regularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    tp_constraint kernel_constraint, bias_constraint;
} conv_args;

#define ROW_FILTERS                                                                                \
    {                                                                                              \
        "filters", offsetof(conv_args, filters), TP_LAYER_INT, TP_LAYER_REQUIRED,                  \
            TP_LAYER_RANGE(1, 1 << 20)                                                             \
    }
#define ROW_KERNEL_SIZE(n)                                                                         \
    {                                                                                              \
        "kernel_size", offsetof(conv_args, windows.size), TP_LAYER_TUPLE, TP_LAYER_REQUIRED,       \
            TP_LAYER_RANGE(1, 1 << 16), .count = (n)                                               \
    }
/* What follows "padding" in both. */
#define ROWS_COMMON(n)                                                                             \
    TP_LAYER_ROW_WINDOWS(conv_args, "strides", strides, n), TP_LAYER_ROW_DATA_FORMAT(conv_args),   \
        TP_LAYER_ROW_WINDOWS(conv_args, "dilation_rate", dilation, n),                             \
        {"groups", offsetof(conv_args, groups), TP_LAYER_INT, TP_LAYER_RANGE(1, 1 << 10)},         \
        TP_LAYER_ROW_ACTIVATION(conv_args, activation), TP_LAYER_ROW_BOOL(conv_args, use_bias),    \
        TP_LAYER_ROW_INITIALIZER(conv_args, kernel_initializer),                                   \
        TP_LAYER_ROW_INITIALIZER(conv_args, bias_initializer),                                     \
        TP_LAYER_ROW_REGULARIZER(conv_args, kernel_regularizer),                                   \
        TP_LAYER_ROW_REGULARIZER(conv_args, bias_regularizer),                                     \
        TP_LAYER_ROW_REGULARIZER(conv_args, activity_regularizer),                                 \
        TP_LAYER_ROW_CONSTRAINT(conv_args, kernel_constraint),                                     \
        TP_LAYER_ROW_CONSTRAINT(conv_args, bias_constraint)

static const tp_layer_arg arguments1d[] = {
    ROW_FILTERS,
    ROW_KERNEL_SIZE(1),
    {"padding", offsetof(conv_args, windows.padding), TP_LAYER_CHOICE,
     TP_LAYER_CHOICES(causal_padding_names)},
    ROWS_COMMON(1),
    {0},
};
static const tp_layer_arg arguments3d[] = {
    ROW_FILTERS, ROW_KERNEL_SIZE(3), TP_LAYER_ROW_PADDING(conv_args), ROWS_COMMON(3), {0},
};

static void set_defaults(void *args)
{
    conv_args *conv = args;
    for (int i = 0; i < 3; i++)
        conv->windows.size[i] = conv->windows.strides[i] = conv->windows.dilation[i] = 1;
    conv->groups = 1;
    conv->use_bias = true;
    conv->kernel_initializer = tp_initializer_default("glorot_uniform");
    conv->bias_initializer = tp_initializer_default("zeros");
}

static bool infer(tp_layer *layer, tp_problems *problems, int spatial)
{
    conv_args *conv = layer->args;
    tp_layer_windows *windows = &conv->windows;
    int64_t kernel_dims[5], output[4];
    /* All padding before the first step, so that no result sees a later one. */
    if (windows->padding == CAUSAL) windows->pad[0] = (windows->size[0] - 1) * windows->dilation[0];
    if (!tp_layer_infer_windows(layer, spatial, windows, problems)) return false;
    const int64_t channels = tp_layer_input(layer, 0)->dims[spatial];
    if (!tp_layer_need_groups(channels, conv->filters, conv->groups, problems)) return false;
    for (int i = 0; i < spatial; i++) {
        kernel_dims[i] = windows->size[i];
        output[i] = windows->out[i];
    }
    kernel_dims[spatial] = channels / conv->groups;
    kernel_dims[spatial + 1] = output[spatial] = conv->filters;
    tp_layer_add_trained(layer, "kernel", spatial + 2, kernel_dims, &conv->kernel_initializer,
                         &conv->kernel_regularizer, &conv->kernel_constraint);
    if (conv->use_bias)
        tp_layer_add_trained(layer, "bias", 1, &conv->filters, &conv->bias_initializer,
                             &conv->bias_regularizer, &conv->bias_constraint);
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

/* ---- nodes ---- */

static void finish(tp_layer_context *context, const tp_layer *layer, tp_node_id product,
                   tp_node_id *outputs)
{
    const conv_args *conv = layer->args;
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    const tp_node_id bias = conv->use_bias ? context->variables[1] : TP_NO_NODE;
    const tp_node_id shaped = tp_op_reshape(context->graph, product, shape);
    outputs[0] = tp_layer_finish_product(context, shaped, bias, (tp_activation)conv->activation);
    tp_layer_add_activity(context, &conv->activity_regularizer, outputs[0]);
}

static void build1d(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                    tp_node_id *outputs)
{
    const conv_args *conv = layer->args;
    tp_graph *graph = context->graph;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const tp_shape image = {.rank = 4, .dims = {context->batch, in[0], 1, in[1]}};
    const tp_shape kernel_shape = {
        .rank = 4, .dims = {conv->windows.size[0], 1, in[1] / conv->groups, conv->filters}};
    const tp_node_id x = tp_op_reshape(graph, inputs[0], image);
    const tp_node_id kernel = tp_op_reshape(
        graph, tp_op_convert(graph, context->variables[0], context->dtype), kernel_shape);
    tp_window window = tp_layer_window(&conv->windows);
    window.groups = conv->groups;
    finish(context, layer, tp_op_convolution(graph, x, kernel, &window, context->precision),
           outputs);
}

/* What depth `k` of the kernel meets, as images: [batch * out depth, height, width, channels]. */
static tp_node_id slices_at(tp_layer_context *context, const tp_layer *layer, tp_node_id x,
                            int64_t k)
{
    const tp_layer_windows *windows = &((const conv_args *)layer->args)->windows;
    const int64_t *in = tp_layer_input(layer, 0)->dims, depth = windows->out[0];
    const int64_t first = k * windows->dilation[0];
    const int64_t start[] = {0, first, 0, 0, 0}, strides[] = {1, windows->strides[0], 1, 1, 1};
    const int64_t limit[] = {context->batch, first + (depth - 1) * windows->strides[0] + 1, in[1],
                             in[2], in[3]};
    const tp_shape images = {.rank = 4, .dims = {context->batch * depth, in[1], in[2], in[3]}};
    return tp_op_reshape(context->graph, tp_op_slice(context->graph, x, start, limit, strides),
                         images);
}

/* The kernel at depth `k`, [height, width, channels / groups, filters]. */
static tp_node_id kernel_plane(tp_graph *graph, tp_node_id kernel, int64_t k, tp_shape shape)
{
    if (kernel == TP_NO_NODE) return TP_NO_NODE;
    tp_shape limit = tp_graph_node(graph, kernel)->shape;
    const int64_t start[5] = {k};
    limit.dims[0] = k + 1;
    return tp_op_reshape(graph, tp_op_slice(graph, kernel, start, limit.dims, NULL), shape);
}

static void build3d(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                    tp_node_id *outputs)
{
    const conv_args *conv = layer->args;
    const tp_layer_windows *windows = &conv->windows;
    tp_graph *graph = context->graph;
    const int64_t low[5] = {0, windows->pad[0]}, high[5] = {0, windows->pad[1]};
    const int64_t channels = tp_layer_input(layer, 0)->dims[3] / conv->groups;
    const tp_shape kernel_shape = {
        .rank = 4, .dims = {windows->size[1], windows->size[2], channels, conv->filters}};
    const tp_window window = {
        .strides = {windows->strides[1], windows->strides[2]},
        .padding = {windows->pad[2], windows->pad[3], windows->pad[4], windows->pad[5]},
        .dilation = {windows->dilation[1], windows->dilation[2]},
        .groups = conv->groups};
    const tp_node_id zero = tp_op_scalar(graph, context->dtype, 0);
    const tp_node_id x =
        low[1] || high[1] ? tp_op_pad(graph, inputs[0], zero, low, high, NULL) : inputs[0];
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    tp_node_id sum = TP_NO_NODE;
    for (int64_t k = 0; k < windows->size[0]; k++) {
        const tp_node_id plane = kernel_plane(graph, kernel, k, kernel_shape);
        const tp_node_id slices = slices_at(context, layer, x, k);
        const tp_node_id product =
            tp_op_convolution(graph, slices, plane, &window, context->precision);
        sum = k == 0 ? product : tp_op_add(graph, sum, product);
    }
    finish(context, layer, sum, outputs);
}

const tp_layer_type tp_layer_conv1d = {.name = "Conv1D",
                                       .snake = "conv1d",
                                       .arguments = arguments1d,
                                       .args_bytes = sizeof(conv_args),
                                       .set_defaults = set_defaults,
                                       .infer = infer1d,
                                       .build = build1d};
const tp_layer_type tp_layer_conv3d = {.name = "Conv3D",
                                       .snake = "conv3d",
                                       .arguments = arguments3d,
                                       .args_bytes = sizeof(conv_args),
                                       .set_defaults = set_defaults,
                                       .infer = infer3d,
                                       .build = build3d};
