/* SPDX-License-Identifier: Apache-2.0
 * DepthwiseConv2D and SeparableConv2D over images NHWC. Each channel has filters of its own: channel c and
 * multiplier m give channel c * depth_multiplier + m, as in Keras.
 */
#include "model/layer.h"

typedef struct depthwise_args {
    tp_layer_windows windows;
    int64_t depth_multiplier, filters; /* filters: SeparableConv2D */
    int32_t data_format, activation;
    bool use_bias;
    tp_initializer depthwise_initializer, pointwise_initializer, bias_initializer;
    tp_regularizer depthwise_regularizer, pointwise_regularizer, bias_regularizer,
        activity_regularizer;
    tp_constraint depthwise_constraint, pointwise_constraint, bias_constraint;
} depthwise_args;

#define SHARED_ROWS                                                                                \
    {"kernel_size",         offsetof(depthwise_args, windows.size),                                \
     TP_LAYER_TUPLE,        TP_LAYER_REQUIRED,                                                     \
     TP_LAYER_RANGE(1, 64), .count = 2},                                                           \
        TP_LAYER_ROW_WINDOWS(depthwise_args, "strides", strides, 2),                               \
        TP_LAYER_ROW_PADDING(depthwise_args), TP_LAYER_ROW_DATA_FORMAT(depthwise_args),            \
        TP_LAYER_ROW_WINDOWS(depthwise_args, "dilation_rate", dilation, 2),                        \
        {"depth_multiplier", offsetof(depthwise_args, depth_multiplier), TP_LAYER_INT,             \
         TP_LAYER_RANGE(1, 1 << 16)},                                                              \
        TP_LAYER_ROW_ACTIVATION(depthwise_args, activation),                                       \
        TP_LAYER_ROW_BOOL(depthwise_args, use_bias),                                               \
        TP_LAYER_ROW_INITIALIZER(depthwise_args, depthwise_initializer),                           \
        TP_LAYER_ROW_INITIALIZER(depthwise_args, bias_initializer),                                \
        TP_LAYER_ROW_REGULARIZER(depthwise_args, depthwise_regularizer),                           \
        TP_LAYER_ROW_REGULARIZER(depthwise_args, bias_regularizer),                                \
        TP_LAYER_ROW_REGULARIZER(depthwise_args, activity_regularizer),                            \
        TP_LAYER_ROW_CONSTRAINT(depthwise_args, depthwise_constraint),                             \
        TP_LAYER_ROW_CONSTRAINT(depthwise_args, bias_constraint)

static const tp_layer_arg depthwise_arguments[] = {
    SHARED_ROWS,
    {0},
};
static const tp_layer_arg separable_arguments[] = {
    {"filters", offsetof(depthwise_args, filters), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 20)},
    SHARED_ROWS,
    TP_LAYER_ROW_INITIALIZER(depthwise_args, pointwise_initializer),
    TP_LAYER_ROW_REGULARIZER(depthwise_args, pointwise_regularizer),
    TP_LAYER_ROW_CONSTRAINT(depthwise_args, pointwise_constraint),
    {0},
};

static void set_defaults(void *args)
{
    depthwise_args *depthwise = args;
    for (int i = 0; i < 2; i++)
        depthwise->windows.strides[i] = depthwise->windows.dilation[i] = 1;
    depthwise->depth_multiplier = 1;
    depthwise->use_bias = true;
    depthwise->depthwise_initializer = depthwise->pointwise_initializer =
        tp_initializer_default("glorot_uniform");
    depthwise->bias_initializer = tp_initializer_default("zeros");
}

/* ---- shapes ---- */

/* The filters of channels; the number of channels that they give, 0 after a problem. */
static int64_t infer_depthwise(tp_layer *layer, tp_problems *problems, const char *weight)
{
    depthwise_args *args = layer->args;
    if (!tp_layer_need_image(layer, problems) ||
        !tp_layer_infer_windows(layer, 2, &args->windows, problems))
        return 0;
    const int64_t channels = tp_layer_input(layer, 0)->dims[2];
    const int64_t dims[] = {args->windows.size[0], args->windows.size[1], channels,
                            args->depth_multiplier};
    int64_t out;
    if (!tp_size_multiply(channels, args->depth_multiplier, &out)) {
        tp_problems_add(problems, "the result has too many channels");
        return 0;
    }
    tp_layer_add_trained(layer, weight, 4, dims, &args->depthwise_initializer,
                         &args->depthwise_regularizer, &args->depthwise_constraint);
    return out;
}

/* The bias, and the output with so many channels. */
static bool finish_infer(tp_layer *layer, tp_problems *problems, int64_t channels)
{
    const depthwise_args *args = layer->args;
    const int64_t dims[] = {args->windows.out[0], args->windows.out[1], channels};
    if (args->use_bias)
        tp_layer_add_trained(layer, "bias", 1, &channels, &args->bias_initializer,
                             &args->bias_regularizer, &args->bias_constraint);
    return tp_layer_add_output(layer, problems, 3, dims);
}

static bool infer_depthwise_conv(tp_layer *layer, tp_problems *problems)
{
    const int64_t channels = infer_depthwise(layer, problems, "kernel");
    return channels && finish_infer(layer, problems, channels);
}

static bool infer_separable(tp_layer *layer, tp_problems *problems)
{
    const depthwise_args *args = layer->args;
    const int64_t channels = infer_depthwise(layer, problems, "depthwise_kernel");
    if (!channels) return false;
    tp_layer_add_trained(
        layer, "pointwise_kernel", 4, (const int64_t[]){1, 1, channels, args->filters},
        &args->pointwise_initializer, &args->pointwise_regularizer, &args->pointwise_constraint);
    return finish_infer(layer, problems, args->filters);
}

/* ---- nodes ---- */

/* f32 [batch, out height, out width, channels * multiplier]: a convolution with a group per channel. The
 * kernel [.., channels, multiplier] has a convolution's order already. */
static tp_node_id convolve(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    const depthwise_args *args = layer->args;
    tp_graph *graph = context->graph;
    const int64_t channels = tp_layer_input(layer, 0)->dims[2];
    const tp_shape shape = {.rank = 4,
                            .dims = {args->windows.size[0], args->windows.size[1], 1,
                                     channels * args->depth_multiplier}};
    tp_window window = tp_layer_window(&args->windows);
    window.groups = channels;
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    return tp_op_convolution(graph, x, tp_op_reshape(graph, kernel, shape), &window,
                             context->precision);
}

static void build_depthwise(tp_layer_context *context, const tp_layer *layer,
                            const tp_node_id *inputs, tp_node_id *outputs)
{
    const depthwise_args *args = layer->args;
    const tp_node_id bias = args->use_bias ? context->variables[1] : TP_NO_NODE;
    const tp_node_id product = convolve(context, layer, inputs[0]);
    outputs[0] = tp_layer_finish_product(context, product, bias, (tp_activation)args->activation);
    tp_layer_add_activity(context, &args->activity_regularizer, outputs[0]);
}

static void build_separable(tp_layer_context *context, const tp_layer *layer,
                            const tp_node_id *inputs, tp_node_id *outputs)
{
    const depthwise_args *args = layer->args;
    tp_graph *graph = context->graph;
    const tp_window window = {.strides = {1, 1}, .dilation = {1, 1}};
    const tp_node_id bias = args->use_bias ? context->variables[2] : TP_NO_NODE;
    const tp_node_id kernel = tp_op_convert(graph, context->variables[1], context->dtype);
    const tp_node_id depthwise =
        tp_op_convert(graph, convolve(context, layer, inputs[0]), context->dtype);
    const tp_node_id product =
        tp_op_convolution(graph, depthwise, kernel, &window, context->precision);
    outputs[0] = tp_layer_finish_product(context, product, bias, (tp_activation)args->activation);
    tp_layer_add_activity(context, &args->activity_regularizer, outputs[0]);
}

const tp_layer_type tp_layer_depthwise_conv2d = {.name = "DepthwiseConv2D",
                                                 .snake = "depthwise_conv2d",
                                                 .arguments = depthwise_arguments,
                                                 .args_bytes = sizeof(depthwise_args),
                                                 .set_defaults = set_defaults,
                                                 .infer = infer_depthwise_conv,
                                                 .build = build_depthwise};
const tp_layer_type tp_layer_separable_conv2d = {.name = "SeparableConv2D",
                                                 .snake = "separable_conv2d",
                                                 .arguments = separable_arguments,
                                                 .args_bytes = sizeof(depthwise_args),
                                                 .set_defaults = set_defaults,
                                                 .infer = infer_separable,
                                                 .build = build_separable};
