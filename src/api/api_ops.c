/* SPDX-License-Identifier: Apache-2.0
 * The frequent ops by name, over the internal builder, which broadcasts and keeps mistakes. */
#include "api/graph_internal.h"

#include "graph/builder.h"
#include "graph/geometry.h"
#include "model/activation.h"
#include "model/loss.h"

static tpucl_tensor wrap(tp_node_id id)
{
    return (tpucl_tensor){id};
}

/* The node behind a tensor, or NULL after recording what is wrong with it. */
static const tp_node *node_of(tpucl_graph *graph, const char *op, tpucl_tensor tensor)
{
    if (!graph || graph->graph->has_failed) return NULL;
    if (tensor.id >= 0 && tensor.id < graph->graph->node_count)
        return tp_graph_node(graph->graph, tensor.id);
    tp_graph_fail(graph->graph, "%s: operand is no tensor of this graph", op);
    return NULL;
}

#define DEFINE_BINARY(public_name, name)                                                           \
    tpucl_tensor tpucl_##public_name(tpucl_graph *graph, tpucl_tensor a, tpucl_tensor b)           \
    {                                                                                              \
        if (!node_of(graph, #public_name, a) || !node_of(graph, #public_name, b))                  \
            return wrap(TP_NO_NODE);                                                               \
        return wrap(tp_op_##name(graph->graph, a.id, b.id));                                       \
    }
DEFINE_BINARY(add, add)
DEFINE_BINARY(subtract, subtract)
DEFINE_BINARY(multiply, multiply)
DEFINE_BINARY(divide, divide)
DEFINE_BINARY(maximum, maximum)
#undef DEFINE_BINARY

#define DEFINE_UNARY(public_name, name)                                                            \
    tpucl_tensor tpucl_##public_name(tpucl_graph *graph, tpucl_tensor x)                           \
    {                                                                                              \
        if (!node_of(graph, #public_name, x)) return wrap(TP_NO_NODE);                             \
        return wrap(tp_op_##name(graph->graph, x.id));                                             \
    }
DEFINE_UNARY(exp, exponential)
DEFINE_UNARY(log, log)
DEFINE_UNARY(tanh, tanh)
DEFINE_UNARY(sigmoid, logistic)
#undef DEFINE_UNARY

tpucl_tensor tpucl_relu(tpucl_graph *graph, tpucl_tensor x)
{
    const tp_node *node = node_of(graph, "relu", x);
    if (!node) return wrap(TP_NO_NODE);
    return wrap(tp_activation_apply(graph->graph, TP_ACTIVATION_RELU, x.id, node->dtype));
}

tpucl_tensor tpucl_matmul(tpucl_graph *graph, tpucl_tensor a, tpucl_tensor b)
{
    if (!node_of(graph, "matmul", a) || !node_of(graph, "matmul", b)) return wrap(TP_NO_NODE);
    return wrap(tp_op_matmul(graph->graph, a.id, b.id, "default"));
}

tpucl_tensor tpucl_conv2d(tpucl_graph *graph, tpucl_tensor image, tpucl_tensor kernel,
                          int64_t stride, const char *padding)
{
    const tp_node *x = node_of(graph, "conv2d", image), *w = node_of(graph, "conv2d", kernel);
    if (!x || !w) return wrap(TP_NO_NODE);
    bool is_same = padding && !strcmp(padding, "same");
    if (!padding || (!is_same && strcmp(padding, "valid") != 0))
        return wrap(tp_graph_fail(graph->graph,
                                  "conv2d: padding is '%s', expected 'same' or 'valid'",
                                  padding ? padding : "NULL"));
    if (x->shape.rank != 4 || w->shape.rank != 4 || stride < 1 || stride > INT32_MAX)
        return wrap(tp_graph_fail(graph->graph,
                                  "conv2d: image of rank %d, kernel of rank %d, stride %lld; "
                                  "expected ranks of 4 and a stride of 1 to 2^31 - 1",
                                  x->shape.rank, w->shape.rank, (long long)stride));
    tp_window window = {.strides = {stride, stride}, .dilation = {1, 1}};
    for (int axis = 0; is_same && axis < 2; axis++)
        tp_geometry_same_padding(x->shape.dims[1 + axis], w->shape.dims[axis], stride, 1,
                                 &window.padding[2 * axis], &window.padding[2 * axis + 1]);
    return wrap(tp_op_convolution(graph->graph, image.id, kernel.id, &window, "default"));
}

tpucl_tensor tpucl_max_pool(tpucl_graph *graph, tpucl_tensor image, int64_t size)
{
    const tp_node *x = node_of(graph, "max_pool", image);
    if (!x) return wrap(TP_NO_NODE);
    if (size < 1)
        return wrap(tp_graph_fail(graph->graph, "max_pool: size is %lld, expected 1 or more",
                                  (long long)size));
    tp_window window = {.size = {size, size}, .strides = {size, size}};
    return wrap(tp_op_reduce_window(graph->graph, image.id, "max", &window));
}

tpucl_tensor tpucl_reshape(tpucl_graph *graph, tpucl_tensor x, tpucl_shape shape)
{
    tp_shape internal;
    if (!node_of(graph, "reshape", x)) return wrap(TP_NO_NODE);
    if (tp_api_shape(shape, &internal) != TPUCL_OK)
        return wrap(tp_graph_fail(graph->graph, "reshape: %s", tpucl_last_error()->message));
    return wrap(tp_op_reshape(graph->graph, x.id, internal));
}

tpucl_tensor tpucl_convert(tpucl_graph *graph, tpucl_tensor x, tpucl_dtype dtype)
{
    tp_dtype internal = TP_F32;
    if (!node_of(graph, "convert", x)) return wrap(TP_NO_NODE);
    if (tp_api_dtype(dtype, &internal) != TPUCL_OK)
        return wrap(tp_graph_fail(graph->graph, "convert: %s", tpucl_last_error()->message));
    return wrap(tp_op_convert(graph->graph, x.id, internal));
}

tpucl_tensor tpucl_scale(tpucl_graph *graph, tpucl_tensor x, double factor, double offset)
{
    if (!node_of(graph, "scale", x)) return wrap(TP_NO_NODE);
    tp_node_id value = tp_op_convert(graph->graph, x.id, TP_F32);
    if (factor != 1) value = tp_op_multiply_scalar(graph->graph, value, factor);
    if (offset != 0) value = tp_op_add_scalar(graph->graph, value, offset);
    return wrap(value);
}

/* ---- per example ---- */

static bool read_loss(tpucl_graph *graph, const char *op, tp_model_loss kind, tpucl_tensor result,
                      tpucl_tensor label, tp_loss_input *out)
{
    const tp_node *values = node_of(graph, op, result), *labels = node_of(graph, op, label);
    if (!values || !labels) return false;
    bool is_sparse = kind == TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;
    bool fits = values->dtype == TP_F32 && values->shape.rank >= 1;
    if (is_sparse)
        fits = fits && values->shape.rank == 2 && labels->dtype == TP_S32 &&
               labels->shape.rank == 1 && labels->shape.dims[0] == values->shape.dims[0];
    else
        fits = fits && labels->dtype == TP_F32 && tp_shape_equal(&values->shape, &labels->shape);
    if (!fits) {
        char a[TP_SHAPE_TEXT_MAX], b[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&values->shape, a, sizeof a);
        tp_shape_format(&labels->shape, b, sizeof b);
        tp_graph_fail(graph->graph, "%s: %s%s with %s%s, expected %s", op,
                      tp_dtype_name(values->dtype), a, tp_dtype_name(labels->dtype), b,
                      is_sparse ? "f32[batch, classes] with s32[batch]"
                                : "two f32 tensors of one shape");
        return false;
    }
    *out = (tp_loss_input){.kind = kind,
                           .result = result.id,
                           .logits = TP_NO_NODE,
                           .label = label.id,
                           .from_logits = true};
    return true;
}

tpucl_tensor tpucl_softmax_cross_entropy(tpucl_graph *graph, tpucl_tensor logits,
                                         tpucl_tensor labels)
{
    tp_loss_input input;
    if (!read_loss(graph, "softmax_cross_entropy", TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
                   logits, labels, &input))
        return wrap(TP_NO_NODE);
    return wrap(tp_loss_per_example(graph->graph, &input));
}

tpucl_tensor tpucl_is_correct(tpucl_graph *graph, tpucl_tensor logits, tpucl_tensor labels)
{
    tp_loss_input input;
    if (!read_loss(graph, "is_correct", TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, logits,
                   labels, &input))
        return wrap(TP_NO_NODE);
    return wrap(tp_loss_is_correct(graph->graph, &input));
}

tpucl_tensor tpucl_mean_squared_error(tpucl_graph *graph, tpucl_tensor prediction,
                                      tpucl_tensor target)
{
    tp_loss_input input;
    if (!read_loss(graph, "mean_squared_error", TP_MODEL_LOSS_MEAN_SQUARED_ERROR, prediction,
                   target, &input))
        return wrap(TP_NO_NODE);
    return wrap(tp_loss_per_example(graph->graph, &input));
}

/* ---- loops ---- */

typedef struct scan_call {
    tpucl_graph *graph;
    const tpucl_scan_options *options;
} scan_call;

static void wrap_all(const tp_node_id *ids, int32_t count, tpucl_tensor *out_tensors)
{
    for (int32_t i = 0; i < count; i++)
        out_tensors[i] = wrap(ids[i]);
}

static void unwrap_all(const tpucl_tensor *tensors, int32_t count, tp_node_id *out_ids)
{
    for (int32_t i = 0; i < count; i++)
        out_ids[i] = tensors[i].id;
}

static void call_body(void *user, tp_graph *inner, const tp_node_id *carries,
                      const tp_node_id *slices, tp_node_id *out_next, tp_node_id *out_stacked)
{
    const scan_call *call = user;
    const tpucl_scan_options *options = call->options;
    tpucl_tensor in[2][TP_SCAN_MAX], out[2][TP_SCAN_MAX];
    (void)inner;
    wrap_all(carries, options->carry_count, in[0]);
    wrap_all(slices, options->input_count, in[1]);
    for (int32_t i = 0; i < TP_SCAN_MAX; i++)
        out[0][i] = out[1][i] = wrap(TP_NO_NODE);
    options->body(options->user, call->graph, in[0], in[1], out[0], out[1]);
    unwrap_all(out[0], options->carry_count, out_next);
    unwrap_all(out[1], options->stack_count, out_stacked);
}

static bool is_scan(tpucl_graph *graph, const tpucl_scan_options *options,
                    const tpucl_tensor *out_last, const tpucl_tensor *out_stacks)
{
    if (!options || options->struct_size < sizeof *options || !options->body ||
        (options->carry_count > 0 && (!options->init || !out_last)) ||
        (options->input_count > 0 && !options->xs) || (options->stack_count > 0 && !out_stacks)) {
        tp_graph_fail(graph->graph, "scan: options, body or an array is missing");
        return false;
    }
    const int32_t counts[] = {options->carry_count, options->input_count, options->stack_count};
    for (int i = 0; i < 3; i++)
        if (counts[i] < 0 || counts[i] > TP_SCAN_MAX) {
            tp_graph_fail(graph->graph, "scan: %d carries, %d inputs, %d stacks, expected 0 to %d",
                          counts[0], counts[1], counts[2], TP_SCAN_MAX);
            return false;
        }
    return true;
}

void tpucl_scan(tpucl_graph *graph, const tpucl_scan_options *options, tpucl_tensor *out_last,
                tpucl_tensor *out_stacks)
{
    tp_node_id init[TP_SCAN_MAX], xs[TP_SCAN_MAX], last[TP_SCAN_MAX], stacks[TP_SCAN_MAX];
    for (int32_t i = 0; i < TP_SCAN_MAX; i++)
        last[i] = stacks[i] = TP_NO_NODE;
    if (options && out_last && options->carry_count <= TP_SCAN_MAX)
        wrap_all(last, options->carry_count, out_last);
    if (options && out_stacks && options->stack_count <= TP_SCAN_MAX)
        wrap_all(stacks, options->stack_count, out_stacks);
    if (!graph || !is_scan(graph, options, out_last, out_stacks)) return;
    unwrap_all(options->init, options->carry_count, init);
    unwrap_all(options->xs, options->input_count, xs);
    scan_call call = {.graph = graph, .options = options};
    const tp_scan scan = {.length = options->length,
                          .reverse = options->reverse,
                          .init = init,
                          .xs = xs,
                          .carry_count = options->carry_count,
                          .xs_count = options->input_count,
                          .stack_count = options->stack_count,
                          .body = call_body,
                          .user = &call};
    tp_op_scan(graph->graph, &scan, last, stacks);
    wrap_all(last, options->carry_count, out_last);
    wrap_all(stacks, options->stack_count, out_stacks);
}
