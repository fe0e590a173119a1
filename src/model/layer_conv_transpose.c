/* SPDX-License-Identifier: Apache-2.0
 * Conv1DTranspose, Conv2DTranspose, Conv3DTranspose: the gradient of a convolution with respect to its images,
 * as a layer. Kernel [size..., filters, channels]. With kernels k = (size - 1) * dilation + 1, strides s and an
 * input of n the result has, as in Keras,
 *     output_padding  valid                   same
 *     none            (n - 1) s + max(k, s)   n s
 *     p               (n - 1) s + k + p       (n - 1) s + k mod 2 + p
 * A sequence is an image of width 1. A volume's is one of images for each depth of the kernel, over all slices
 * of the volume; their results are put where they belong, strides apart, and added in f32 in rising depth.
 */
#include "graph/geometry.h"
#include "model/layer.h"

typedef struct transpose_args {
    int64_t filters, output_padding[3]; /* below 0: none given */
    /* of the convolution that it is the gradient of; out: the result's size */
    tp_layer_windows windows;
    int32_t data_format, activation;
    bool use_bias;
    tp_initializer kernel_initializer, bias_initializer;
    tp_regularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    tp_constraint kernel_constraint, bias_constraint;
} transpose_args;

#define ROWS(n)                                                                                    \
    {"filters", offsetof(transpose_args, filters), TP_LAYER_INT, TP_LAYER_REQUIRED,                \
     TP_LAYER_RANGE(1, 1 << 20)},                                                                  \
        {"kernel_size",                                                                            \
         offsetof(transpose_args, windows.size),                                                   \
         TP_LAYER_TUPLE,                                                                           \
         TP_LAYER_REQUIRED,                                                                        \
         TP_LAYER_RANGE(1, 1 << 16),                                                               \
         .count = (n)},                                                                            \
        TP_LAYER_ROW_WINDOWS(transpose_args, "strides", strides, n),                               \
        TP_LAYER_ROW_PADDING(transpose_args),                                                      \
        {"output_padding",                                                                         \
         offsetof(transpose_args, output_padding),                                                 \
         TP_LAYER_TUPLE,                                                                           \
         TP_LAYER_NULLABLE,                                                                        \
         TP_LAYER_RANGE(0, 1 << 20),                                                               \
         .count = (n)},                                                                            \
        TP_LAYER_ROW_DATA_FORMAT(transpose_args),                                                  \
        TP_LAYER_ROW_WINDOWS(transpose_args, "dilation_rate", dilation, n),                        \
        TP_LAYER_ROW_ACTIVATION(transpose_args, activation),                                       \
        TP_LAYER_ROW_BOOL(transpose_args, use_bias),                                               \
        TP_LAYER_ROW_INITIALIZER(transpose_args, kernel_initializer),                              \
        TP_LAYER_ROW_INITIALIZER(transpose_args, bias_initializer),                                \
        TP_LAYER_ROW_REGULARIZER(transpose_args, kernel_regularizer),                              \
        TP_LAYER_ROW_REGULARIZER(transpose_args, bias_regularizer),                                \
        TP_LAYER_ROW_REGULARIZER(transpose_args, activity_regularizer),                            \
        TP_LAYER_ROW_CONSTRAINT(transpose_args, kernel_constraint),                                \
        TP_LAYER_ROW_CONSTRAINT(transpose_args, bias_constraint)

static const tp_layer_arg arguments1d[] = {ROWS(1), {0}};
static const tp_layer_arg arguments2d[] = {ROWS(2), {0}};
static const tp_layer_arg arguments3d[] = {ROWS(3), {0}};

static void set_defaults(void *args)
{
    transpose_args *conv = args;
    for (int i = 0; i < 3; i++) {
        conv->windows.size[i] = conv->windows.strides[i] = conv->windows.dilation[i] = 1;
        conv->output_padding[i] = -1;
    }
    conv->use_bias = true;
    conv->kernel_initializer = tp_initializer_default("glorot_uniform");
    conv->bias_initializer = tp_initializer_default("zeros");
}

/* ---- shapes ---- */

static int64_t covered_by(const tp_layer_windows *windows, int axis)
{
    return (windows->size[axis] - 1) * windows->dilation[axis] + 1;
}

/* Padding `same` with an output padding: what Keras (3.x, conv_transpose_padding of its JAX backend) takes away
 * in front, half of what the kernel overhangs. */
static int64_t cut_in_front(int64_t covered, int64_t output_padding)
{
    const int64_t total = covered + covered % 2 - 2 + output_padding;
    const int64_t kept = total / 2 + total % 2;
    return kept < covered - 1 ? covered - 1 - kept : 0;
}

/* The images of the convolution along one axis: their size, and the padding that gives the input's `in` back. */
static bool infer_axis(transpose_args *conv, int axis, int64_t in, tp_problems *problems)
{
    tp_layer_windows *windows = &conv->windows;
    const int64_t covered = covered_by(windows, axis), stride = windows->strides[axis];
    const int64_t extra = conv->output_padding[axis];
    int64_t *low = &windows->pad[2 * axis], *high = low + 1, size;
    if (!tp_size_multiply(in, stride, &size)) {
        tp_problems_add(problems, "the result is too large");
        return false;
    }
    if (extra >= stride) {
        tp_problems_add(problems, "'output_padding' is %lld, expected less than the stride of %lld",
                        (long long)extra, (long long)stride);
        return false;
    }
    const bool is_same = windows->padding == TP_PADDING_SAME;
    *low = *high = 0;
    if (is_same && extra < 0) {
        tp_geometry_same_padding(size, windows->size[axis], stride, windows->dilation[axis], low,
                                 high);
    } else if (is_same) {
        size = size - stride + covered % 2 + extra;
        *low = cut_in_front(covered, extra);
        const int64_t rest = (in - 1) * stride + covered - size - *low;
        *high = rest > 0 ? rest : 0;
    } else if (extra >= 0) {
        size += covered - stride + extra;
    } else if (covered > stride) {
        size += covered - stride;
    }
    windows->out[axis] = size;
    return true;
}

static bool infer(tp_layer *layer, tp_problems *problems, int spatial)
{
    transpose_args *conv = layer->args;
    tp_layer_windows *windows = &conv->windows;
    int64_t dims[5], output[4];
    for (int i = 0; i < spatial; i++) {
        if (!infer_axis(conv, i, tp_layer_input(layer, 0)->dims[i], problems)) return false;
        dims[i] = windows->size[i];
        output[i] = windows->out[i];
    }
    dims[spatial] = output[spatial] = conv->filters;
    dims[spatial + 1] = tp_layer_input(layer, 0)->dims[spatial];
    tp_layer_add_trained(layer, "kernel", spatial + 2, dims, &conv->kernel_initializer,
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

static bool infer2d(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_need_image(layer, problems) && infer(layer, problems, 2);
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
    const transpose_args *conv = layer->args;
    const tp_node_id bias = conv->use_bias ? context->variables[1] : TP_NO_NODE;
    outputs[0] = tp_layer_finish_product(context, product, bias, (tp_activation)conv->activation);
    tp_layer_add_activity(context, &conv->activity_regularizer, outputs[0]);
}

static void build1d(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                    tp_node_id *outputs)
{
    const transpose_args *conv = layer->args;
    tp_graph *graph = context->graph;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const tp_shape image = {.rank = 4, .dims = {context->batch, in[0], 1, in[1]}};
    const tp_shape result = {.rank = 4,
                             .dims = {context->batch, conv->windows.out[0], 1, conv->filters}};
    const tp_shape kernel_shape = {.rank = 4,
                                   .dims = {conv->windows.size[0], 1, conv->filters, in[1]}};
    const tp_window window = tp_layer_window(&conv->windows);
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    const tp_node_id product = tp_op_convolution_input_grad(
        graph, tp_op_reshape(graph, inputs[0], image), tp_op_reshape(graph, kernel, kernel_shape),
        result, &window, context->precision);
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    finish(context, layer, tp_op_reshape(graph, product, shape), outputs);
}

static void build2d(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                    tp_node_id *outputs)
{
    const transpose_args *conv = layer->args;
    const tp_window window = tp_layer_window(&conv->windows);
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    const tp_node_id kernel = tp_op_convert(context->graph, context->variables[0], context->dtype);
    const tp_node_id product = tp_op_convolution_input_grad(context->graph, inputs[0], kernel,
                                                            shape, &window, context->precision);
    finish(context, layer, product, outputs);
}

/* The kernel at depth `k`, [height, width, filters, channels]. */
static tp_node_id kernel_plane(tp_graph *graph, tp_node_id kernel, int64_t k)
{
    if (kernel == TP_NO_NODE) return TP_NO_NODE;
    const tp_shape shape = tp_graph_node(graph, kernel)->shape;
    const tp_shape plane = {.rank = 4,
                            .dims = {shape.dims[1], shape.dims[2], shape.dims[3], shape.dims[4]}};
    const int64_t start[5] = {k};
    const int64_t limit[5] = {k + 1, shape.dims[1], shape.dims[2], shape.dims[3], shape.dims[4]};
    return tp_op_reshape(graph, tp_op_slice(graph, kernel, start, limit, NULL), plane);
}

static void build3d(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                    tp_node_id *outputs)
{
    const transpose_args *conv = layer->args;
    const tp_layer_windows *w = &conv->windows;
    tp_graph *graph = context->graph;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const tp_shape images = {.rank = 4, .dims = {context->batch * in[0], in[1], in[2], in[3]}};
    const tp_shape planes = {.rank = 4,
                             .dims = {images.dims[0], w->out[1], w->out[2], conv->filters}};
    const tp_shape volume = {.rank = 5,
                             .dims = {context->batch, in[0], w->out[1], w->out[2], conv->filters}};
    const tp_window window = {.strides = {w->strides[1], w->strides[2]},
                              .padding = {w->pad[2], w->pad[3], w->pad[4], w->pad[5]},
                              .dilation = {w->dilation[1], w->dilation[2]}};
    const int64_t apart = (in[0] - 1) * w->strides[0] + 1, between[5] = {0, w->strides[0] - 1};
    const tp_node_id x = tp_op_reshape(graph, inputs[0], images);
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    tp_node_id sum = TP_NO_NODE;
    for (int64_t k = 0; k < w->size[0] && !graph->has_failed; k++) {
        const int64_t first = k * w->dilation[0] - w->pad[0];
        const int64_t low[5] = {0, first}, high[5] = {0, w->out[0] - apart - first};
        const tp_node_id product = tp_op_convolution_input_grad(
            graph, x, kernel_plane(graph, kernel, k), planes, &window, context->precision);
        const tp_node_id placed =
            tp_op_pad(graph, tp_op_reshape(graph, product, volume), zero, low, high, between);
        sum = k == 0 ? placed : tp_op_add(graph, sum, placed);
    }
    finish(context, layer, sum, outputs);
}

#define DEFINE_TYPE(n)                                                                             \
    const tp_layer_type tp_layer_conv##n##d_transpose = {.name = "Conv" #n "DTranspose",           \
                                                         .snake = "conv" #n "d_transpose",         \
                                                         .arguments = arguments##n##d,             \
                                                         .args_bytes = sizeof(transpose_args),     \
                                                         .set_defaults = set_defaults,             \
                                                         .infer = infer##n##d,                     \
                                                         .build = build##n##d};
DEFINE_TYPE(1)
DEFINE_TYPE(2)
DEFINE_TYPE(3)
