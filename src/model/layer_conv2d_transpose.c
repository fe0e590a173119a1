/* SPDX-License-Identifier: Apache-2.0
 * Conv2DTranspose: the gradient of a convolution with respect to its images, as a layer. Kernel
 * [height, width, filters, channels]; `same` gives size * stride, `valid` size * stride +
 * max(kernel - stride, 0), as in Keras without output_padding.
 */
#include "graph/geometry.h"
#include "model/layer.h"

typedef struct transpose_args {
    int64_t filters;
    tp_layer_windows
        windows; /* of the convolution that it is the gradient of; out: the result's size */
    int32_t data_format, activation;
    bool use_bias;
    tp_initializer kernel_initializer, bias_initializer;
    tp_regularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    tp_constraint kernel_constraint, bias_constraint;
} transpose_args;

static const tp_layer_arg arguments[] = {
    {"filters", offsetof(transpose_args, filters), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 20)},
    {"kernel_size", offsetof(transpose_args, windows.size), TP_LAYER_TUPLE, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 16), .count = 2},
    TP_LAYER_ROW_WINDOWS(transpose_args, "strides", strides, 2),
    TP_LAYER_ROW_PADDING(transpose_args),
    TP_LAYER_ROW_DATA_FORMAT(transpose_args),
    TP_LAYER_ROW_WINDOWS(transpose_args, "dilation_rate", dilation, 2),
    TP_LAYER_ROW_ACTIVATION(transpose_args, activation),
    TP_LAYER_ROW_BOOL(transpose_args, use_bias),
    TP_LAYER_ROW_INITIALIZER(transpose_args, kernel_initializer),
    TP_LAYER_ROW_INITIALIZER(transpose_args, bias_initializer),
    TP_LAYER_ROW_REGULARIZER(transpose_args, kernel_regularizer),
    TP_LAYER_ROW_REGULARIZER(transpose_args, bias_regularizer),
    TP_LAYER_ROW_REGULARIZER(transpose_args, activity_regularizer),
    TP_LAYER_ROW_CONSTRAINT(transpose_args, kernel_constraint),
    TP_LAYER_ROW_CONSTRAINT(transpose_args, bias_constraint),
    {0},
};

static void set_defaults(void *args)
{
    transpose_args *conv = args;
    for (int i = 0; i < 2; i++)
        conv->windows.strides[i] = conv->windows.dilation[i] = 1;
    conv->use_bias = true;
    conv->kernel_initializer = tp_initializer_default("glorot_uniform");
    conv->bias_initializer = tp_initializer_default("zeros");
}

/* The images of the convolution: their size, and the padding that gives the input's size back. */
static bool infer_size(const tp_layer *layer, tp_layer_windows *windows, tp_problems *problems)
{
    for (int i = 0; i < 2; i++) {
        const int64_t covered = (windows->size[i] - 1) * windows->dilation[i] + 1;
        int64_t size;
        if (!tp_size_multiply(tp_layer_input(layer, 0)->dims[i], windows->strides[i], &size)) {
            tp_problems_add(problems, "the result is too large");
            return false;
        }
        if (windows->padding == TP_PADDING_SAME)
            tp_geometry_same_padding(size, windows->size[i], windows->strides[i],
                                     windows->dilation[i], &windows->pad[2 * i],
                                     &windows->pad[2 * i + 1]);
        else if (covered > windows->strides[i])
            size += covered - windows->strides[i];
        windows->out[i] = size;
    }
    return true;
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    transpose_args *conv = layer->args;
    tp_layer_windows *windows = &conv->windows;
    if (!tp_layer_need_image(layer, problems) || !infer_size(layer, windows, problems))
        return false;
    const int64_t dims[] = {windows->size[0], windows->size[1], conv->filters,
                            tp_layer_input(layer, 0)->dims[2]};
    tp_layer_weight *kernel =
        tp_layer_add_weight(layer, "kernel", 4, dims, &conv->kernel_initializer, true);
    kernel->regularizer = &conv->kernel_regularizer;
    kernel->constraint = &conv->kernel_constraint;
    if (conv->use_bias) {
        tp_layer_weight *bias =
            tp_layer_add_weight(layer, "bias", 1, &conv->filters, &conv->bias_initializer, true);
        bias->regularizer = &conv->bias_regularizer;
        bias->constraint = &conv->bias_constraint;
    }
    return tp_layer_add_output(layer, problems, 3,
                               (const int64_t[]){windows->out[0], windows->out[1], conv->filters});
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const transpose_args *conv = layer->args;
    tp_graph *graph = context->graph;
    const tp_window window = tp_layer_window(&conv->windows);
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    const tp_node_id bias = conv->use_bias ? context->variables[1] : TP_NO_NODE;
    const tp_node_id product =
        tp_op_convolution_input_grad(graph, inputs[0], kernel, shape, &window, context->precision);
    outputs[0] = tp_layer_finish_product(context, product, bias, (tp_activation)conv->activation);
    tp_layer_add_activity(context, &conv->activity_regularizer, outputs[0]);
}

const tp_layer_type tp_layer_conv2d_transpose = {.name = "Conv2DTranspose",
                                                 .snake = "conv2d_transpose",
                                                 .arguments = arguments,
                                                 .args_bytes = sizeof(transpose_args),
                                                 .set_defaults = set_defaults,
                                                 .infer = infer,
                                                 .build = build};
