/* SPDX-License-Identifier: Apache-2.0
 * Convolution and its two gradients: see op_conv.h. All three are one product a group whose left operand is
 * a gather of patches: gather_row writes row m of it, +0 where a position does not exist, and the host
 * product of num/mxu.h does the rest, some rows at a time.
 */
#include "ops/op_conv.h"

#include <string.h>
#include "core/alloc.h"
#include "graph/attrs.h"
#include "graph/builder.h"
#include "graph/geometry.h"
#include "num/mxu.h"
#include "ops/host_values.h"
#include "ops/product.h"

#define CONV_SPECS                                                                                 \
    {"window_strides", TP_ATTR_INTS, true, NULL, "steps between windows, [2], default 1"},         \
        {"padding", TP_ATTR_INTS, true, NULL, "top, bottom, left, right; default 0"},              \
        {"rhs_dilation", TP_ATTR_INTS, true, NULL, "steps between filter cells, [2], default 1"},  \
        {"feature_group_count", TP_ATTR_INT, true, NULL,                                           \
         "groups of channels that are convolved by themselves, default 1"},                        \
        TP_PRODUCT_PRECISION_SPEC

static const tp_attr_spec forward_attrs[] = {CONV_SPECS, {0}};
static const tp_attr_spec input_grad_attrs[] = {
    CONV_SPECS, {"input_dims", TP_ATTR_INTS, false, NULL, "shape of the result"}, {0}};
static const tp_attr_spec filter_grad_attrs[] = {
    CONV_SPECS, {"filter_dims", TP_ATTR_INTS, false, NULL, "shape of the result"}, {0}};

static tpucl_status read_geometry(const tp_graph *graph, const tp_node *node, tp_conv_kind kind,
                                  tp_conv_geometry *out_geometry)
{
    return tp_conv_geometry_read(node, kind, &tp_graph_node(graph, node->inputs[0])->shape,
                                 &tp_graph_node(graph, node->inputs[1])->shape, out_geometry);
}

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_conv_kind kind,
                          tp_dtype *out_dtype, tp_shape *out_shape)
{
    TP_TRY(tp_product_check_dtypes(node, tp_graph_node(graph, node->inputs[0])->dtype,
                                   tp_graph_node(graph, node->inputs[1])->dtype));
    tp_conv_geometry g;
    TP_TRY(read_geometry(graph, node, kind, &g));
    *out_dtype = TP_F32;
    *out_shape = g.result;
    return TPUCL_OK;
}

static double flops(const tp_graph *graph, const tp_node *node, tp_conv_kind kind)
{
    tp_conv_geometry g;
    if (read_geometry(graph, node, kind, &g) != TPUCL_OK) return 0;
    return 2.0 * (double)g.m * (double)g.n * (double)g.k;
}

static tp_window window_of(const tp_conv_geometry *g)
{
    return (tp_window){.strides = {g->stride_h, g->stride_w},
                       .padding = {g->pad_top, g->pad_bottom, g->pad_left, g->pad_right},
                       .dilation = {g->dilation_h, g->dilation_w},
                       .groups = g->groups};
}

static void gradient(tp_graph *graph, tp_node_id id, tp_node_id d_result, tp_node_id *d_inputs)
{
    const tp_node node = *tp_graph_node(graph, id); /* a copy: adding nodes may move them */
    const tp_node_id x = node.inputs[0], w = node.inputs[1];
    const tp_shape x_shape = tp_graph_node(graph, x)->shape;
    const tp_shape w_shape = tp_graph_node(graph, w)->shape;
    const tp_dtype x_dtype = tp_graph_node(graph, x)->dtype;
    tp_conv_geometry g;
    if (read_geometry(graph, &node, TP_CONV_FORWARD, &g) != TPUCL_OK) {
        tp_graph_keep_error(graph);
        return;
    }
    const tp_window window = window_of(&g);
    const char *precision = tp_precision_name(g.precision);
    const tp_node_id d = tp_product_operand(graph, d_result);
    const tp_node_id d_x = tp_op_convolution_input_grad(graph, d, w, x_shape, &window, precision);
    d_inputs[0] = tp_op_convert(graph, d_x, x_dtype);
    d_inputs[1] = tp_op_convolution_filter_grad(graph, x, d, w_shape, &window, precision);
}

/* ---- evaluation ---- */

/* The index of the result position whose filter cell `cell` lies on input position `in`, or -1. */
static int64_t position_of(int64_t in, int64_t pad, int64_t cell, int64_t dilation, int64_t stride,
                           int64_t count)
{
    const int64_t at = in + pad - cell * dilation;
    if (at < 0 || at % stride != 0 || at / stride >= count) return -1;
    return at / stride;
}

/* One group's part of a row of channels: `first` .. `first` + `count` - 1 of `stride`. */
typedef struct channels {
    int64_t stride, first, count;
} channels;

/* Copies the channels of one position, +0 where there is none (`position` below 0). */
static float *gather_channels(const channels *c, const float *source, int64_t position, float *row)
{
    const float *src = position >= 0 ? source + position * c->stride + c->first : NULL;
    for (int64_t i = 0; i < c->count; i++)
        *row++ = src ? src[i] : 0.0f;
    return row;
}

/* Row m of x as patches: [kernel_h][kernel_w][in_c / groups] around result position m. */
static void gather_patch(const tp_conv_geometry *g, const channels *c, const float *x, int64_t m,
                         float *row)
{
    const int64_t ox = m % g->out_w, oy = m / g->out_w % g->out_h, image = m / g->out_w / g->out_h;
    for (int64_t ky = 0; ky < g->kernel_h; ky++) {
        const int64_t iy = oy * g->stride_h + ky * g->dilation_h - g->pad_top;
        for (int64_t kx = 0; kx < g->kernel_w; kx++) {
            const int64_t ix = ox * g->stride_w + kx * g->dilation_w - g->pad_left;
            const bool exists = iy >= 0 && iy < g->in_h && ix >= 0 && ix < g->in_w;
            row = gather_channels(c, x, exists ? (image * g->in_h + iy) * g->in_w + ix : -1, row);
        }
    }
}

/* Row m of dy as seen from input position m: [kernel_h][kernel_w][out_c / groups]. */
static void gather_result_patch(const tp_conv_geometry *g, const channels *c, const float *dy,
                                int64_t m, float *row)
{
    const int64_t ix = m % g->in_w, iy = m / g->in_w % g->in_h, image = m / g->in_w / g->in_h;
    for (int64_t ky = 0; ky < g->kernel_h; ky++) {
        const int64_t oy = position_of(iy, g->pad_top, ky, g->dilation_h, g->stride_h, g->out_h);
        for (int64_t kx = 0; kx < g->kernel_w; kx++) {
            const int64_t ox =
                position_of(ix, g->pad_left, kx, g->dilation_w, g->stride_w, g->out_w);
            const bool exists = oy >= 0 && ox >= 0;
            row =
                gather_channels(c, dy, exists ? (image * g->out_h + oy) * g->out_w + ox : -1, row);
        }
    }
}

/* Row m of x as seen from filter cell and channel m: [images][out_h][out_w]. */
static void gather_filter_row(const tp_conv_geometry *g, const channels *own, const float *x,
                              int64_t m, float *row)
{
    const int64_t kx = m / own->count % g->kernel_w, ky = m / own->count / g->kernel_w;
    const channels c = {own->stride, own->first + m % own->count, 1};
    for (int64_t image = 0; image < g->images; image++)
        for (int64_t oy = 0; oy < g->out_h; oy++) {
            const int64_t iy = oy * g->stride_h + ky * g->dilation_h - g->pad_top;
            for (int64_t ox = 0; ox < g->out_w; ox++) {
                const int64_t ix = ox * g->stride_w + kx * g->dilation_w - g->pad_left;
                const bool exists = iy >= 0 && iy < g->in_h && ix >= 0 && ix < g->in_w;
                row = gather_channels(&c, x, exists ? (image * g->in_h + iy) * g->in_w + ix : -1,
                                      row);
            }
        }
}

static void gather_row(const tp_conv_geometry *g, tp_conv_kind kind, int64_t group,
                       const float *source, int64_t m, float *row)
{
    const int64_t stride = kind == TP_CONV_INPUT_GRAD ? g->out_c : g->in_c;
    const channels own = {stride, group * (stride / g->groups), stride / g->groups};
    if (kind == TP_CONV_FORWARD)
        gather_patch(g, &own, source, m, row);
    else if (kind == TP_CONV_INPUT_GRAD)
        gather_result_patch(g, &own, source, m, row);
    else
        gather_filter_row(g, &own, source, m, row);
}

/* A group's B as [k][n / groups]: filters and dy lie so already but for the other groups; the input
 * gradient needs ci and co exchanged. */
static void load_second(const tp_conv_geometry *g, tp_conv_kind kind, int64_t group,
                        const tp_host_tensor *tensor, float *b)
{
    const int64_t own_in = g->in_c / g->groups, own_out = g->out_c / g->groups;
    const int64_t first = group * own_out;
    if (kind != TP_CONV_INPUT_GRAD) {
        for (int64_t k = 0; k < g->k; k++)
            for (int64_t co = 0; co < own_out; co++)
                *b++ = tp_host_load(tensor, k * g->out_c + first + co);
        return;
    }
    for (int64_t cell = 0; cell < g->kernel_h * g->kernel_w; cell++)
        for (int64_t co = 0; co < own_out; co++)
            for (int64_t ci = 0; ci < own_in; ci++)
                *b++ = tp_host_load(tensor, (cell * own_in + ci) * g->out_c + first + co);
}

/* Scratch of an evaluation: the gathered operand whole, rows of A, a group's B, the group's results. */
typedef struct scratch {
    float *source, *a, *b, *c;
    int64_t rows;
} scratch;

static tpucl_status evaluate_group(const tp_conv_geometry *g, tp_conv_kind kind, int64_t group,
                                   const tp_host_tensor *second, scratch *s, float *out)
{
    const int64_t n = g->n / g->groups;
    load_second(g, kind, group, second, s->b);
    for (int64_t row = 0; row < g->m; row += s->rows) {
        const int64_t rows = g->m - row < s->rows ? g->m - row : s->rows;
        for (int64_t i = 0; i < rows; i++)
            gather_row(g, kind, group, s->source, row + i, s->a + i * g->k);
        TP_TRY(tp_mxu_matmul(g->precision, rows, n, g->k, s->a, s->b, s->c));
        for (int64_t i = 0; i < rows; i++)
            memcpy(out + (row + i) * g->n + group * n, s->c + i * n, (size_t)n * sizeof *out);
    }
    return TPUCL_OK;
}

static tpucl_status evaluate(const tp_node *node, tp_conv_kind kind, const tp_host_tensor *inputs,
                             tp_host_tensor *out)
{
    tp_conv_geometry g;
    TP_TRY(tp_conv_geometry_read(node, kind, &inputs[0].shape, &inputs[1].shape, &g));
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    const int64_t source_elems = tp_shape_elems(&inputs[0].shape), n = g.n / g.groups;
    scratch s = {.rows = tp_product_rows_at_once(g.m, g.k)};
    s.source = TP_NEW_ARRAY(float, (size_t)source_elems);
    s.a = TP_NEW_ARRAY(float, (size_t)(s.rows * g.k));
    s.b = TP_NEW_ARRAY(float, (size_t)(g.k * n));
    s.c = TP_NEW_ARRAY(float, (size_t)(s.rows * n));
    if (!s.source || !s.a || !s.b || !s.c) goto done;

    status = TPUCL_OK;
    for (int64_t i = 0; i < source_elems; i++)
        s.source[i] = tp_host_load(&inputs[0], i);
    for (int64_t group = 0; group < g.groups; group++)
        TP_TRY_GOTO(status, evaluate_group(&g, kind, group, &inputs[1], &s, out->data), done);
done:
    tp_free(s.source);
    tp_free(s.a);
    tp_free(s.b);
    tp_free(s.c);
    return status;
}

/* ---- the three ops ---- */

#define DEFINE_RULES(name, kind)                                                                   \
    static tpucl_status infer_##name(const tp_graph *graph, const tp_node *node,                   \
                                     tp_dtype *out_dtype, tp_shape *out_shape)                     \
    {                                                                                              \
        return infer(graph, node, kind, out_dtype, out_shape);                                     \
    }                                                                                              \
    static tpucl_status evaluate_##name(const tp_node *node, const tp_host_tensor *inputs,         \
                                        const tp_eval_context *context, tp_host_tensor *out)       \
    {                                                                                              \
        (void)context;                                                                             \
        return evaluate(node, kind, inputs, out);                                                  \
    }                                                                                              \
    static double flops_##name(const tp_graph *graph, const tp_node *node)                         \
    {                                                                                              \
        return flops(graph, node, kind);                                                           \
    }

DEFINE_RULES(forward, TP_CONV_FORWARD)
DEFINE_RULES(input_grad, TP_CONV_INPUT_GRAD)
DEFINE_RULES(filter_grad, TP_CONV_FILTER_GRAD)

const tp_opdef tp_opdef_convolution = {
    .name = "convolution",
    .op_class = TP_OP_MXU,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc =
        "Images (NHWC) with filters (HWIO); k runs over filter row, column, input channel (of the "
        "group); f32.",
    .attrs = forward_attrs,
    .infer = infer_forward,
    .gradient = gradient,
    .evaluate = evaluate_forward,
    .flops = flops_forward,
};

/* y = input_grad(d, w) is linear in both: <e, y> = <convolution(e, w), d>. */
static void input_grad_gradient(tp_graph *graph, tp_node_id id, tp_node_id d_result,
                                tp_node_id *d_inputs)
{
    const tp_node node = *tp_graph_node(graph, id); /* a copy: adding nodes may move them */
    const tp_node_id d = node.inputs[0], w = node.inputs[1];
    const tp_shape w_shape = tp_graph_node(graph, w)->shape;
    const tp_dtype d_dtype = tp_graph_node(graph, d)->dtype;
    tp_conv_geometry g;
    if (read_geometry(graph, &node, TP_CONV_INPUT_GRAD, &g) != TPUCL_OK) {
        tp_graph_keep_error(graph);
        return;
    }
    const tp_window window = window_of(&g);
    const char *precision = tp_precision_name(g.precision);
    const tp_node_id e = tp_product_operand(graph, d_result);
    const tp_node_id d_d = tp_op_convolution(graph, e, w, &window, precision);
    d_inputs[0] = tp_op_convert(graph, d_d, d_dtype);
    d_inputs[1] = tp_op_convolution_filter_grad(graph, e, d, w_shape, &window, precision);
}

const tp_opdef tp_opdef_convolution_input_grad = {
    .name = "convolution_input_grad",
    .op_class = TP_OP_MXU,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc = "Gradient of a convolution's images from that of its result and the filters; f32.",
    .attrs = input_grad_attrs,
    .infer = infer_input_grad,
    .gradient = input_grad_gradient,
    .evaluate = evaluate_input_grad,
    .flops = flops_input_grad,
};

const tp_opdef tp_opdef_convolution_filter_grad = {
    .name = "convolution_filter_grad",
    .op_class = TP_OP_MXU,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc =
        "Gradient of a convolution's filters from its images and the gradient of its result; f32.",
    .attrs = filter_grad_attrs,
    .infer = infer_filter_grad,
    .evaluate = evaluate_filter_grad,
    .flops = flops_filter_grad,
};
