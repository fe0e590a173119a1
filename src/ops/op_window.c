/* SPDX-License-Identifier: Apache-2.0
 * reduce_window and its two gradients: see op_window.h. All three walk the windows in rising order and,
 * in each, its cells in rising order; because a window adds at most once to an element, adding into an
 * array in that order is the same as summing element by element.
 */
#include "ops/op_window.h"

#include <string.h>

#include "core/alloc.h"
#include "graph/attrs.h"
#include "graph/builder.h"
#include "graph/geometry.h"
#include "num/reduce.h"
#include "ops/host_values.h"

#define WINDOW_SPECS                                                                               \
    {"window_dimensions", TP_ATTR_INTS, true, NULL, "cells in each dimension, default 1"},         \
        {"window_strides", TP_ATTR_INTS, true, NULL, "steps between windows, default 1"},          \
    {                                                                                              \
        "padding", TP_ATTR_INTS, true, NULL, "low, high of each dimension, default 0"              \
    }

static const tp_attr_spec reduce_attrs[] = {
    {"kind", TP_ATTR_TEXT, false, "add|max", "how elements are combined"}, WINDOW_SPECS, {0}};
static const tp_attr_spec scatter_attrs[] = {WINDOW_SPECS, {0}};
static const tp_attr_spec grad_attrs[] = {
    WINDOW_SPECS, {"input_dims", TP_ATTR_INTS, false, NULL, "shape of the result"}, {0}};

static bool is_max(const tp_node *node)
{
    return strcmp(tp_node_attr_text(node, "kind", ""), "max") == 0;
}

/* ---- rules ---- */

static tpucl_status check_float(const tp_node *node, tp_dtype dtype)
{
    if (tp_dtype_is_float(dtype)) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s of %s: the operand must be f32 or bf16",
                   node->def->name, tp_dtype_name(dtype));
}

static tpucl_status infer_reduce(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                 tp_shape *out_shape)
{
    const tp_node *x = tp_graph_node(graph, node->inputs[0]);
    TP_TRY(check_float(node, x->dtype));
    tp_window_geometry g;
    TP_TRY(tp_window_geometry_read(node, &x->shape, &g));
    *out_dtype = x->dtype;
    *out_shape = g.out;
    return TPUCL_OK;
}

/* d_y must have one element for each window over `in`. */
static tpucl_status check_gradient_shape(const tp_node *node, const tp_shape *in,
                                         const tp_shape *d_y)
{
    tp_window_geometry g;
    TP_TRY(tp_window_geometry_read(node, in, &g));
    if (tp_shape_equal(&g.out, d_y)) return TPUCL_OK;
    char expected[TP_SHAPE_TEXT_MAX], found[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&g.out, expected, sizeof expected);
    tp_shape_format(d_y, found, sizeof found);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: the gradient has shape %s, the windows are %s",
                   node->def->name, found, expected);
}

static tpucl_status infer_scatter(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                  tp_shape *out_shape)
{
    const tp_node *x = tp_graph_node(graph, node->inputs[0]);
    const tp_node *d_y = tp_graph_node(graph, node->inputs[1]);
    TP_TRY(check_float(node, x->dtype));
    TP_TRY(check_float(node, d_y->dtype));
    TP_TRY(check_gradient_shape(node, &x->shape, &d_y->shape));
    *out_dtype = x->dtype;
    *out_shape = x->shape;
    return TPUCL_OK;
}

static tpucl_status infer_grad(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                               tp_shape *out_shape)
{
    const tp_node *d_y = tp_graph_node(graph, node->inputs[0]);
    tp_shape in;
    TP_TRY(check_float(node, d_y->dtype));
    TP_TRY(tp_geometry_dims(node, "input_dims", &in));
    TP_TRY(check_gradient_shape(node, &in, &d_y->shape));
    *out_dtype = d_y->dtype;
    *out_shape = in;
    return TPUCL_OK;
}

static void gradient(tp_graph *graph, tp_node_id id, tp_node_id d_result, tp_node_id *d_inputs)
{
    const tp_node node = *tp_graph_node(graph, id); /* a copy: adding nodes may move them */
    const tp_node_id x = node.inputs[0];
    tp_attr attrs[4]; /* the window's three, then the shape */
    int32_t count = 0;
    for (int32_t i = 0; i < node.attr_count; i++)
        if (strcmp(node.attrs[i].name, "kind") != 0) attrs[count++] = node.attrs[i];
    if (is_max(&node)) {
        const tp_node_id inputs[] = {x, d_result};
        d_inputs[0] = tp_graph_add(graph, "select_and_scatter", inputs, 2, attrs, count);
        return;
    }
    const tp_shape shape = tp_graph_node(graph, x)->shape;
    attrs[count++] = tp_attr_shape("input_dims", &shape);
    d_inputs[0] = tp_graph_add(graph, "reduce_window_grad", &d_result, 1, attrs, count);
}

/* Cells of all windows. */
static double window_cells(const tp_node *node, const tp_shape *in)
{
    tp_window_geometry g;
    if (tp_window_geometry_read(node, in, &g) != TPUCL_OK) return 0;
    double cells = (double)tp_shape_elems(&g.out);
    for (int32_t i = 0; i < g.rank; i++)
        cells *= (double)g.window[i];
    return cells;
}

static double flops_operand(const tp_graph *graph, const tp_node *node)
{
    return window_cells(node, &tp_graph_node(graph, node->inputs[0])->shape);
}

static double flops_result(const tp_graph *graph, const tp_node *node)
{
    (void)graph;
    return window_cells(node, &node->shape);
}

/* ---- walking ---- */

/* Calls visit(context, o, cells, count) for each window in rising order: `cells` are the offsets of its
 * existing cells in `in`, rising. */
typedef void (*visit_function)(void *context, int64_t o, const int64_t *cells, int64_t count);

/* Steps the tuple `index` below `sizes` to its row-major successor; false after the last. */
static bool advance(int32_t rank, int64_t *index, const int64_t *sizes)
{
    for (int32_t d = rank - 1; d >= 0; d--) {
        if (++index[d] < sizes[d]) return true;
        index[d] = 0;
    }
    return false;
}

/* Offsets of the existing cells of the window at `out_index`, rising. Returns how many. */
static int64_t list_cells(const tp_window_geometry *g, const int64_t *strides,
                          const int64_t *out_index, int64_t *cells)
{
    int64_t first[TP_MAX_RANK], sizes[TP_MAX_RANK], cell[TP_MAX_RANK] = {0}, base = 0, count = 0;
    for (int32_t d = 0; d < g->rank; d++) {
        const int64_t start = out_index[d] * g->stride[d] - g->pad_low[d];
        const int64_t end = start + g->window[d];
        first[d] = start > 0 ? start : 0;
        sizes[d] = (end < g->in.dims[d] ? end : g->in.dims[d]) - first[d];
        if (sizes[d] <= 0) return 0;
        base += first[d] * strides[d];
    }
    do {
        int64_t offset = base;
        for (int32_t d = 0; d < g->rank; d++)
            offset += cell[d] * strides[d];
        cells[count++] = offset;
    } while (advance(g->rank, cell, sizes));
    return count;
}

static tpucl_status walk(const tp_window_geometry *g, visit_function visit, void *context)
{
    int64_t strides[TP_MAX_RANK], out_index[TP_MAX_RANK] = {0};
    size_t most = 1;
    for (int32_t d = 0; d < g->rank; d++) /* a window has no more cells than the operand */
        most *= (size_t)(g->window[d] < g->in.dims[d] ? g->window[d] : g->in.dims[d]);
    int64_t *cells = TP_NEW_ARRAY(int64_t, most);
    if (!cells) return TPUCL_OUT_OF_MEMORY;
    tp_shape_strides(&g->in, strides);
    const int64_t windows = tp_shape_elems(&g->out);
    for (int64_t o = 0; o < windows; o++) {
        visit(context, o, cells, list_cells(g, strides, out_index, cells));
        advance(g->rank, out_index, g->out.dims);
    }
    tp_free(cells);
    return TPUCL_OK;
}

/* ---- evaluation ---- */

typedef struct walk_state {
    tp_reduce_op kind;
    const tp_host_tensor *x, *d_y;
    tp_host_tensor *out; /* reduce_window */
    float *sums;         /* the gradients: one per element of x */
} walk_state;

static void visit_reduce(void *context, int64_t o, const int64_t *cells, int64_t count)
{
    const walk_state *state = context;
    float value = tp_reduce_identity(state->kind);
    for (int64_t i = 0; i < count; i++)
        value = tp_reduce_apply(state->kind, value, tp_host_load(state->x, cells[i]));
    tp_host_store(state->out, o, value);
}

/* Whether x, later in the window, is larger than best: NaN above all, +0 above -0. */
static bool is_larger(float x, float best)
{
    if (best != best) return false;
    if (x != x) return true;
    return x > best || (x == best && (tp_f32_bits(best) >> 31) > (tp_f32_bits(x) >> 31));
}

static void visit_scatter(void *context, int64_t o, const int64_t *cells, int64_t count)
{
    const walk_state *state = context;
    if (count == 0) return;
    int64_t best = cells[0];
    for (int64_t i = 1; i < count; i++)
        if (is_larger(tp_host_load(state->x, cells[i]), tp_host_load(state->x, best)))
            best = cells[i];
    state->sums[best] += tp_host_load(state->d_y, o);
}

static void visit_grad(void *context, int64_t o, const int64_t *cells, int64_t count)
{
    const walk_state *state = context;
    const float d = tp_host_load(state->d_y, o);
    for (int64_t i = 0; i < count; i++)
        state->sums[cells[i]] += d;
}

static tpucl_status evaluate_reduce(const tp_node *node, const tp_host_tensor *inputs,
                                    const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    tp_window_geometry g;
    TP_TRY(tp_window_geometry_read(node, &inputs[0].shape, &g));
    walk_state state = {
        .kind = is_max(node) ? TP_REDUCE_MAX : TP_REDUCE_ADD, .x = &inputs[0], .out = out};
    return walk(&g, visit_reduce, &state);
}

static tpucl_status evaluate_sums(const tp_node *node, const tp_host_tensor *x,
                                  const tp_host_tensor *d_y, visit_function visit,
                                  tp_host_tensor *out)
{
    tp_window_geometry g;
    TP_TRY(tp_window_geometry_read(node, &out->shape, &g));
    const int64_t elems = tp_shape_elems(&out->shape);
    float *sums = TP_NEW_ARRAY(float, (size_t)elems);
    if (!sums) return TPUCL_OUT_OF_MEMORY;
    walk_state state = {.x = x, .d_y = d_y, .sums = sums};
    const tpucl_status status = walk(&g, visit, &state);
    for (int64_t i = 0; status == TPUCL_OK && i < elems; i++)
        tp_host_store(out, i, sums[i]);
    tp_free(sums);
    return status;
}

static tpucl_status evaluate_scatter(const tp_node *node, const tp_host_tensor *inputs,
                                     const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    return evaluate_sums(node, &inputs[0], &inputs[1], visit_scatter, out);
}

static tpucl_status evaluate_grad(const tp_node *node, const tp_host_tensor *inputs,
                                  const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    return evaluate_sums(node, NULL, &inputs[0], visit_grad, out);
}

const tp_opdef tp_opdef_reduce_window = {
    .name = "reduce_window",
    .op_class = TP_OP_WINDOW,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Combines the elements of each window, in rising order; padding takes no part.",
    .attrs = reduce_attrs,
    .infer = infer_reduce,
    .gradient = gradient,
    .evaluate = evaluate_reduce,
    .flops = flops_operand,
};

const tp_opdef tp_opdef_select_and_scatter = {
    .name = "select_and_scatter",
    .op_class = TP_OP_WINDOW,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc = "Gradient of a max window: each value goes to the first largest element of its window.",
    .attrs = scatter_attrs,
    .infer = infer_scatter,
    .evaluate = evaluate_scatter,
    .flops = flops_operand,
};

const tp_opdef tp_opdef_reduce_window_grad = {
    .name = "reduce_window_grad",
    .op_class = TP_OP_WINDOW,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Gradient of an add window: each value goes to every element of its window.",
    .attrs = grad_attrs,
    .infer = infer_grad,
    .evaluate = evaluate_grad,
    .flops = flops_result,
};
