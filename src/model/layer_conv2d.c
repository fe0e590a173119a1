/* SPDX-License-Identifier: Apache-2.0
 * Conv2D: activation(x * kernel + bias), images NHWC, kernel [height, width, channels / groups, filters].
 */
#include "model/layer.h"

typedef struct conv2d_args {
    int64_t filters, groups;
    tp_layer_windows windows;
    int32_t data_format, activation;
    bool use_bias;
    tp_initializer kernel_initializer, bias_initializer;
    tp_regularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    tp_constraint kernel_constraint, bias_constraint;
} conv2d_args;

static const tp_layer_arg arguments[] = {
    {"filters", offsetof(conv2d_args, filters), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 20)},
    {"kernel_size", offsetof(conv2d_args, windows.size), TP_LAYER_TUPLE, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 16), .count = 2},
    TP_LAYER_ROW_WINDOWS(conv2d_args, "strides", strides, 2),
    TP_LAYER_ROW_PADDING(conv2d_args),
    TP_LAYER_ROW_DATA_FORMAT(conv2d_args),
    TP_LAYER_ROW_WINDOWS(conv2d_args, "dilation_rate", dilation, 2),
    {"groups", offsetof(conv2d_args, groups), TP_LAYER_INT, TP_LAYER_RANGE(1, 1 << 16)},
    TP_LAYER_ROW_ACTIVATION(conv2d_args, activation),
    TP_LAYER_ROW_BOOL(conv2d_args, use_bias),
    TP_LAYER_ROW_INITIALIZER(conv2d_args, kernel_initializer),
    TP_LAYER_ROW_INITIALIZER(conv2d_args, bias_initializer),
    TP_LAYER_ROW_REGULARIZER(conv2d_args, kernel_regularizer),
    TP_LAYER_ROW_REGULARIZER(conv2d_args, bias_regularizer),
    TP_LAYER_ROW_REGULARIZER(conv2d_args, activity_regularizer),
    TP_LAYER_ROW_CONSTRAINT(conv2d_args, kernel_constraint),
    TP_LAYER_ROW_CONSTRAINT(conv2d_args, bias_constraint),
    {0},
};

static void set_defaults(void *args)
{
    conv2d_args *conv = args;
    for (int i = 0; i < 2; i++)
        conv->windows.strides[i] = conv->windows.dilation[i] = 1;
    conv->groups = 1;
    conv->use_bias = true;
    conv->kernel_initializer = tp_initializer_default("glorot_uniform");
    conv->bias_initializer = tp_initializer_default("zeros");
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    conv2d_args *conv = layer->args;
    tp_layer_windows *windows = &conv->windows;
    if (!tp_layer_need_image(layer, problems) ||
        !tp_layer_infer_windows(layer, 2, windows, problems))
        return false;
    const int64_t channels = tp_layer_input(layer, 0)->dims[2];
    if (!tp_layer_need_groups(channels, conv->filters, conv->groups, problems)) return false;
    const int64_t dims[] = {windows->size[0], windows->size[1], channels / conv->groups,
                            conv->filters};
    tp_layer_add_trained(layer, "kernel", 4, dims, &conv->kernel_initializer,
                         &conv->kernel_regularizer, &conv->kernel_constraint);
    if (conv->use_bias)
        tp_layer_add_trained(layer, "bias", 1, &conv->filters, &conv->bias_initializer,
                             &conv->bias_regularizer, &conv->bias_constraint);
    return tp_layer_add_output(layer, problems, 3,
                               (const int64_t[]){windows->out[0], windows->out[1], conv->filters});
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const conv2d_args *conv = layer->args;
    tp_graph *graph = context->graph;
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    const tp_node_id bias = conv->use_bias ? context->variables[1] : TP_NO_NODE;
    tp_window window = tp_layer_window(&conv->windows);
    window.groups = conv->groups;
    const tp_node_id product =
        tp_op_convolution(graph, inputs[0], kernel, &window, context->precision);
    outputs[0] = tp_layer_finish_product(context, product, bias, (tp_activation)conv->activation);
    tp_layer_add_activity(context, &conv->activity_regularizer, outputs[0]);
}

const tp_layer_type tp_layer_conv2d = {.name = "Conv2D",
                                       .snake = "conv2d",
                                       .arguments = arguments,
                                       .args_bytes = sizeof(conv2d_args),
                                       .set_defaults = set_defaults,
                                       .infer = infer,
                                       .build = build};
