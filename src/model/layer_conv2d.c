/* SPDX-License-Identifier: Apache-2.0
 * Conv2D: activation(x * kernel + bias), images NHWC, kernel [height, width, channels, filters].
 */
#include "graph/builder.h"
#include "model/layer.h"

static const tp_layer_arg arguments[] = {
    {"filters", TP_LAYER_INT, TP_LAYER_FIELD(filters), true, 1, 1 << 20, NULL, 0},
    {"kernel_size", TP_LAYER_PAIR, TP_LAYER_FIELD(kernel_size), true, 1, 1 << 16, NULL, 0},
    TP_LAYER_ROW_PAIR(strides),
    TP_LAYER_ROW_PADDING,
    TP_LAYER_ROW_DATA_FORMAT,
    TP_LAYER_ROW_PAIR(dilation_rate),
    TP_LAYER_ROW_ACTIVATION(false),
    TP_LAYER_ROW_BOOL(use_bias),
    TP_LAYER_ROW_INITIALIZER(kernel_initializer),
    TP_LAYER_ROW_INITIALIZER(bias_initializer),
    {0}};

static void set_defaults(tp_layer *layer)
{
    layer->strides[0] = layer->strides[1] = 1;
    layer->dilation_rate[0] = layer->dilation_rate[1] = 1;
    layer->use_bias = true;
    layer->kernel_initializer = tp_initializer_default("glorot_uniform");
    layer->bias_initializer = tp_initializer_default("zeros");
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    int64_t size[2];
    if (!tp_layer_need_image(layer, problems) ||
        !tp_layer_infer_windows(layer, layer->kernel_size, layer->dilation_rate, problems, size))
        return false;
    const int64_t channels = layer->input.dims[2];
    const int64_t kernel[] = {layer->kernel_size[0], layer->kernel_size[1], channels,
                              layer->filters};
    tp_layer_add_weight(layer, "kernel", 4, kernel, &layer->kernel_initializer, true);
    if (layer->use_bias)
        tp_layer_add_weight(layer, "bias", 1, &layer->filters, &layer->bias_initializer, true);
    return tp_layer_set_output(layer, problems, 3,
                               (const int64_t[]){size[0], size[1], layer->filters});
}

static tp_node_id build(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    tp_graph *graph = context->graph;
    const tp_window window = {
        .strides = {layer->strides[0], layer->strides[1]},
        .padding = {layer->pad[0], layer->pad[1], layer->pad[2], layer->pad[3]},
        .dilation = {layer->dilation_rate[0], layer->dilation_rate[1]}};
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    const tp_node_id product = tp_op_convolution(graph, x, kernel, &window, context->precision);
    return tp_layer_finish_product(context, layer, product);
}

const tp_layer_type tp_layer_conv2d = {"Conv2D", "conv2d", arguments, set_defaults, infer, build};
