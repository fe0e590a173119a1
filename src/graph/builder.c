/* SPDX-License-Identifier: Apache-2.0
 * The wrappers of builder.h that are more than one line of attributes: element-wise ops with their
 * broadcasts, constants, and the ops of reductions, windows and the MXU. Shapes: builder_shape.c.
 */
#include "graph/builder.h"

#include <math.h>
#include <string.h>

#include "graph/attrs.h"
#include "num/bf16.h"

static bool is_node(const tp_graph *graph, tp_node_id id)
{
    return id >= 0 && id < graph->node_count;
}

/* ---- sources ---- */
tp_node_id tp_op_constant(tp_graph *graph, tp_dtype dtype, tp_shape shape, const void *data)
{
    const tp_attr attrs[] = {tp_attr_text("dtype", tp_dtype_name(dtype)),
                             tp_attr_shape("shape", &shape),
                             tp_attr_data("value", data, (uint64_t)tp_shape_bytes(&shape, dtype))};
    return tp_graph_add(graph, "constant", NULL, 0, attrs, 3);
}

tp_node_id tp_op_scalar(tp_graph *graph, tp_dtype dtype, double value)
{
    const tp_shape scalar = {.rank = 0};
    union {
        float f32;
        tp_bf16 bf16;
        int32_t s32;
        uint32_t u32;
        uint8_t u8;
    } element = {.u32 = 0};
    double low = 0, high = 0;
    switch (dtype) {
    case TP_F32:
        element.f32 = tp_flush((float)value);
        return tp_op_constant(graph, dtype, scalar, &element);
    case TP_BF16:
        element.bf16 = tp_bf16_from_f32((float)value);
        return tp_op_constant(graph, dtype, scalar, &element);
    case TP_S32:
        low = INT32_MIN, high = INT32_MAX;
        break;
    case TP_U32:
        high = UINT32_MAX;
        break;
    case TP_U8:
        high = UINT8_MAX;
        break;
    default:
        high = 1;
        break;
    }
    if (!(value >= low && value <= high) || floor(value) != value)
        return tp_graph_fail(graph, "scalar %.17g is no %s", value, tp_dtype_name(dtype));
    if (dtype == TP_S32)
        element.s32 = (int32_t)value;
    else if (dtype == TP_U32)
        element.u32 = (uint32_t)value;
    else
        element.u8 = (uint8_t)value;
    return tp_op_constant(graph, dtype, scalar, &element);
}

tp_node_id tp_op_fill(tp_graph *graph, tp_dtype dtype, tp_shape shape, double value)
{
    return tp_op_broadcast_to(graph, tp_op_scalar(graph, dtype, value), shape);
}

tp_node_id tp_op_iota(tp_graph *graph, tp_dtype dtype, tp_shape shape, int64_t axis)
{
    const tp_attr attrs[] = {tp_attr_text("dtype", tp_dtype_name(dtype)),
                             tp_attr_shape("shape", &shape), tp_attr_int("axis", axis)};
    return tp_graph_add(graph, "iota", NULL, 0, attrs, 3);
}

tp_node_id tp_op_step(tp_graph *graph)
{
    return tp_graph_add(graph, "step", NULL, 0, NULL, 0);
}

static tp_node_id add_random(tp_graph *graph, const char *op, tp_dtype dtype, const tp_shape *shape,
                             int64_t stream)
{
    const tp_attr attrs[] = {tp_attr_text("dtype", tp_dtype_name(dtype)),
                             tp_attr_shape("shape", shape), tp_attr_int("stream", stream)};
    return tp_graph_add(graph, op, NULL, 0, attrs, 3);
}

tp_node_id tp_op_uniform(tp_graph *graph, tp_dtype dtype, tp_shape shape, int64_t stream)
{
    return add_random(graph, "uniform", dtype, &shape, stream);
}

tp_node_id tp_op_normal(tp_graph *graph, tp_dtype dtype, tp_shape shape, int64_t stream)
{
    return add_random(graph, "normal", dtype, &shape, stream);
}

tp_node_id tp_op_bernoulli(tp_graph *graph, tp_shape shape, double probability, int64_t stream)
{
    const tp_attr attrs[] = {tp_attr_shape("shape", &shape),
                             tp_attr_float("probability", (double)(float)probability),
                             tp_attr_int("stream", stream)};
    return tp_graph_add(graph, "bernoulli", NULL, 0, attrs, 3);
}

tp_node_id tp_op_random_bits(tp_graph *graph, tp_shape shape, int64_t stream)
{
    const tp_attr attrs[] = {tp_attr_shape("shape", &shape), tp_attr_int("stream", stream)};
    return tp_graph_add(graph, "random_bits", NULL, 0, attrs, 2);
}

/* ---- element-wise ---- */
#define DEFINE_UNARY(name)                                                                         \
    tp_node_id tp_op_##name(tp_graph *graph, tp_node_id a)                                         \
    {                                                                                              \
        return tp_graph_add(graph, #name, &a, 1, NULL, 0);                                         \
    }
TP_UNARY_OPS(DEFINE_UNARY)

tp_node_id tp_op_convert(tp_graph *graph, tp_node_id a, tp_dtype dtype)
{
    if (is_node(graph, a) && graph->nodes[a].dtype == dtype) return a;
    const tp_attr attrs[] = {tp_attr_text("dtype", tp_dtype_name(dtype))};
    return tp_graph_add(graph, "convert", &a, 1, attrs, 1);
}

tp_node_id tp_op_stochastic_round(tp_graph *graph, tp_node_id a, tp_node_id bits)
{
    const tp_node_id operands[] = {a, bits};
    return tp_graph_add(graph, "stochastic_round", operands, 2, NULL, 0);
}

tp_node_id tp_op_stop_gradient(tp_graph *graph, tp_node_id a)
{
    return tp_graph_add(graph, "stop_gradient", &a, 1, NULL, 0);
}

/* Brings operands to their common shape; leaves wrong ids for tp_graph_add to report. */
static void broadcast_operands(tp_graph *graph, const char *op, tp_node_id *operands, int32_t count)
{
    for (int32_t i = 0; i < count; ++i)
        if (!is_node(graph, operands[i])) return;
    tp_shape shape = graph->nodes[operands[0]].shape;
    for (int32_t i = 1; i < count; ++i) {
        const tp_shape other = graph->nodes[operands[i]].shape;
        tp_shape common;
        if (tp_shape_broadcast(&shape, &other, &common) != TPUCL_OK) {
            char left[TP_SHAPE_TEXT_MAX], right[TP_SHAPE_TEXT_MAX];
            tp_shape_format(&shape, left, sizeof left);
            tp_shape_format(&other, right, sizeof right);
            tp_graph_fail(graph, "%s: operands %s and %s do not broadcast", op, left, right);
            return;
        }
        shape = common;
    }
    for (int32_t i = 0; i < count; ++i)
        operands[i] = tp_op_broadcast_to(graph, operands[i], shape);
}

static tp_node_id add_binary(tp_graph *graph, const char *op, tp_node_id a, tp_node_id b)
{
    tp_node_id operands[] = {a, b};
    broadcast_operands(graph, op, operands, 2);
    return tp_graph_add(graph, op, operands, 2, NULL, 0);
}

#define DEFINE_BINARY(name)                                                                        \
    tp_node_id tp_op_##name(tp_graph *graph, tp_node_id a, tp_node_id b)                           \
    {                                                                                              \
        return add_binary(graph, #name, a, b);                                                     \
    }
TP_BINARY_OPS(DEFINE_BINARY)

tp_node_id tp_op_compare(tp_graph *graph, const char *direction, tp_node_id a, tp_node_id b)
{
    tp_node_id operands[] = {a, b};
    broadcast_operands(graph, "compare", operands, 2);
    const tp_attr attrs[] = {tp_attr_text("direction", direction)};
    return tp_graph_add(graph, "compare", operands, 2, attrs, 1);
}

tp_node_id tp_op_select(tp_graph *graph, tp_node_id pred, tp_node_id on_true, tp_node_id on_false)
{
    tp_node_id operands[] = {pred, on_true, on_false};
    broadcast_operands(graph, "select", operands, 3);
    return tp_graph_add(graph, "select", operands, 3, NULL, 0);
}

tp_node_id tp_op_clamp(tp_graph *graph, tp_node_id low, tp_node_id a, tp_node_id high)
{
    tp_node_id operands[] = {low, a, high};
    broadcast_operands(graph, "clamp", operands, 3);
    return tp_graph_add(graph, "clamp", operands, 3, NULL, 0);
}

static tp_node_id scalar_like(tp_graph *graph, tp_node_id a, double value)
{
    return is_node(graph, a) ? tp_op_scalar(graph, graph->nodes[a].dtype, value) : TP_NO_NODE;
}

tp_node_id tp_op_add_scalar(tp_graph *graph, tp_node_id a, double value)
{
    return tp_op_add(graph, a, scalar_like(graph, a, value));
}

tp_node_id tp_op_multiply_scalar(tp_graph *graph, tp_node_id a, double value)
{
    return tp_op_multiply(graph, a, scalar_like(graph, a, value));
}

/* ---- reductions and windows ---- */
tp_node_id tp_op_reduce(tp_graph *graph, tp_node_id a, const char *kind, const int64_t *axes,
                        int32_t count)
{
    int64_t all[TP_MAX_RANK];
    if (count == 0 && is_node(graph, a)) {
        count = graph->nodes[a].shape.rank;
        for (int32_t i = 0; i < count; ++i)
            all[i] = i;
        axes = all;
    }
    const tp_attr attrs[] = {tp_attr_text("kind", kind), tp_attr_ints("axes", axes, count)};
    return tp_graph_add(graph, "reduce", &a, 1, attrs, 2);
}

/* A window over an image as one over all four dimensions. */
typedef struct window_attrs {
    int64_t dimensions[4], strides[4], padding[8];
    tp_attr attrs[4];
} window_attrs;

static void fill_window_attrs(const tp_window *window, window_attrs *out)
{
    *out = (window_attrs){.dimensions = {1, window->size[0], window->size[1], 1},
                          .strides = {1, window->strides[0], window->strides[1], 1},
                          .padding = {0, 0, window->padding[0], window->padding[1],
                                      window->padding[2], window->padding[3], 0, 0}};
    out->attrs[0] = tp_attr_ints("window_dimensions", out->dimensions, 4);
    out->attrs[1] = tp_attr_ints("window_strides", out->strides, 4);
    out->attrs[2] = tp_attr_ints("padding", out->padding, 8);
}

tp_node_id tp_op_reduce_window(tp_graph *graph, tp_node_id a, const char *kind,
                               const tp_window *window)
{
    window_attrs all;
    fill_window_attrs(window, &all);
    all.attrs[3] = tp_attr_text("kind", kind);
    return tp_graph_add(graph, "reduce_window", &a, 1, all.attrs, 4);
}

tp_node_id tp_op_select_and_scatter(tp_graph *graph, tp_node_id a, tp_node_id d,
                                    const tp_window *window)
{
    const tp_node_id inputs[] = {a, d};
    window_attrs all;
    fill_window_attrs(window, &all);
    return tp_graph_add(graph, "select_and_scatter", inputs, 2, all.attrs, 3);
}

tp_node_id tp_op_reduce_window_grad(tp_graph *graph, tp_node_id d, tp_shape input_shape,
                                    const tp_window *window)
{
    window_attrs all;
    fill_window_attrs(window, &all);
    all.attrs[3] = tp_attr_shape("input_dims", &input_shape);
    return tp_graph_add(graph, "reduce_window_grad", &d, 1, all.attrs, 4);
}

static tp_node_id add_arg(tp_graph *graph, const char *op, tp_node_id a, int64_t axis)
{
    const tp_attr attrs[] = {tp_attr_int("axis", axis)};
    return tp_graph_add(graph, op, &a, 1, attrs, 1);
}

tp_node_id tp_op_argmax(tp_graph *graph, tp_node_id a, int64_t axis)
{
    return add_arg(graph, "argmax", a, axis);
}

tp_node_id tp_op_argmin(tp_graph *graph, tp_node_id a, int64_t axis)
{
    return add_arg(graph, "argmin", a, axis);
}

/* ---- MXU ---- */
tp_node_id tp_op_dot_general(tp_graph *graph, tp_node_id lhs, tp_node_id rhs,
                             const tp_dot_dims *dims, const char *precision)
{
    const tp_node_id inputs[] = {lhs, rhs};
    const tp_attr attrs[] = {
        tp_attr_ints("lhs_batching_dimensions", dims->lhs_batch, dims->batch_count),
        tp_attr_ints("rhs_batching_dimensions", dims->rhs_batch, dims->batch_count),
        tp_attr_ints("lhs_contracting_dimensions", dims->lhs_contract, dims->contract_count),
        tp_attr_ints("rhs_contracting_dimensions", dims->rhs_contract, dims->contract_count),
        tp_attr_text("precision", precision)};
    return tp_graph_add(graph, "dot_general", inputs, 2, attrs, 5);
}

tp_node_id tp_op_attention(tp_graph *graph, tp_node_id query, tp_node_id key, tp_node_id value,
                           tp_node_id mask, const tp_attention_options *options,
                           const char *precision)
{
    const tp_node_id inputs[] = {query, key, value, mask};
    const tp_attr attrs[] = {tp_attr_float("scale", (float)options->scale),
                             tp_attr_int("causal", options->is_causal),
                             tp_attr_int("window", options->window),
                             tp_attr_float("dropout", (float)options->dropout),
                             tp_attr_int("stream", options->stream),
                             tp_attr_text("precision", precision)};
    const tp_node_id all =
        tp_graph_add(graph, "attention", inputs, mask == TP_NO_NODE ? 3 : 4, attrs, 6);
    if (!is_node(graph, all)) return TP_NO_NODE;
    const int64_t start[4] = {0};
    tp_shape seen = graph->nodes[all].shape;
    seen.dims[3] -= 2; /* the statistics */
    return tp_op_slice(graph, all, start, seen.dims, NULL);
}

tp_node_id tp_op_matmul(tp_graph *graph, tp_node_id lhs, tp_node_id rhs, const char *precision)
{
    tp_dot_dims dims = {.contract_count = 1};
    if (is_node(graph, lhs)) dims.lhs_contract[0] = graph->nodes[lhs].shape.rank - 1;
    return tp_op_dot_general(graph, lhs, rhs, &dims, precision);
}

/* The attributes of all three ops; out_dilation backs one of them. One group is not written down. */
static int32_t convolution_attrs(const tp_window *window, const char *precision,
                                 int64_t out_dilation[2], tp_attr out_attrs[5])
{
    for (int i = 0; i < 2; ++i)
        out_dilation[i] = window->dilation[i] ? window->dilation[i] : 1;
    out_attrs[0] = tp_attr_ints("window_strides", window->strides, 2);
    out_attrs[1] = tp_attr_ints("padding", window->padding, 4);
    out_attrs[2] = tp_attr_ints("rhs_dilation", out_dilation, 2);
    out_attrs[3] = tp_attr_text("precision", precision);
    if (window->groups == 0 || window->groups == 1) return 4;
    out_attrs[4] = tp_attr_int("feature_group_count", window->groups);
    return 5;
}

tp_node_id tp_op_convolution(tp_graph *graph, tp_node_id x, tp_node_id w, const tp_window *window,
                             const char *precision)
{
    const tp_node_id inputs[] = {x, w};
    int64_t dilation[2];
    tp_attr attrs[5];
    const int32_t count = convolution_attrs(window, precision, dilation, attrs);
    return tp_graph_add(graph, "convolution", inputs, 2, attrs, count);
}

tp_node_id tp_op_convolution_input_grad(tp_graph *graph, tp_node_id d, tp_node_id w,
                                        tp_shape input_shape, const tp_window *window,
                                        const char *precision)
{
    const tp_node_id inputs[] = {d, w};
    int64_t dilation[2];
    tp_attr attrs[6];
    const int32_t count = convolution_attrs(window, precision, dilation, attrs);
    attrs[count] = tp_attr_shape("input_dims", &input_shape);
    return tp_graph_add(graph, "convolution_input_grad", inputs, 2, attrs, count + 1);
}

tp_node_id tp_op_convolution_filter_grad(tp_graph *graph, tp_node_id x, tp_node_id d,
                                         tp_shape filter_shape, const tp_window *window,
                                         const char *precision)
{
    const tp_node_id inputs[] = {x, d};
    int64_t dilation[2];
    tp_attr attrs[6];
    const int32_t count = convolution_attrs(window, precision, dilation, attrs);
    attrs[count] = tp_attr_shape("filter_dims", &filter_shape);
    return tp_graph_add(graph, "convolution_filter_grad", inputs, 2, attrs, count + 1);
}

/* ---- cross-core ---- */
tp_node_id tp_op_all_reduce(tp_graph *graph, tp_node_id a)
{
    const tp_attr attrs[] = {tp_attr_text("kind", "add")};
    return tp_graph_add(graph, "all_reduce", &a, 1, attrs, 1);
}
