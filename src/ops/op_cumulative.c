/* SPDX-License-Identifier: Apache-2.0
 * cumulative: kind (add multiply max min) along an axis; f32, bf16, s32, u32.
 *
 * Contract: one after the other, s[0] = x[0], s[i] = s[i-1] op x[i], in f32 for bf16, and never flushed or
 * rounded on the way; what is stored is (y[i] = s[i], or s[i-1] when exclusive, y[0] being the neutral
 * element). reverse: the same from the last element to the first. max and min are those of reduce.
 * Integers wrap. */
#include "ops/op_cumulative.h"

#include <string.h>

#include "graph/attrs.h"
#include "graph/builder.h"
#include "num/reduce.h"
#include "ops/host_values.h"
#include "ops/op_util.h"

static bool is_kind(const tp_node *node, const char *kind)
{
    return strcmp(tp_node_attr_text(node, "kind", ""), kind) == 0;
}

static bool has_flag(const tp_node *node, const char *name)
{
    return tp_node_attr_int(node, name, 0) != 0;
}

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape)
{
    const tp_node *x = tp_op_input(graph, node, 0);
    const int64_t axis = tp_node_attr_int(node, "axis", 0);
    TP_TRY(tp_op_check_dtype(graph, node, 0, TP_DTYPES_FLOAT | TP_DTYPES_INT));
    if (axis < 0 || axis >= x->shape.rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "cumulative along axis %lld of a tensor of rank %d",
                       (long long)axis, x->shape.rank);
    *out_dtype = x->dtype;
    *out_shape = x->shape;
    return TPUCL_OK;
}

/* ---- evaluation ---- */

static tp_reduce_op reduce_op(const tp_node *node)
{
    return is_kind(node, "max")        ? TP_REDUCE_MAX
           : is_kind(node, "min")      ? TP_REDUCE_MIN
           : is_kind(node, "multiply") ? TP_REDUCE_MULTIPLY
                                       : TP_REDUCE_ADD;
}

static uint32_t combine_words(tp_reduce_op op, bool is_signed, uint32_t a, uint32_t b)
{
    if (op == TP_REDUCE_ADD) return a + b;
    if (op == TP_REDUCE_MULTIPLY) return a * b;
    const bool is_less = is_signed ? (int32_t)a < (int32_t)b : a < b;
    return is_less == (op == TP_REDUCE_MAX) ? b : a;
}

static uint32_t neutral_word(tp_reduce_op op, bool is_signed)
{
    switch (op) {
    case TP_REDUCE_MULTIPLY:
        return 1;
    case TP_REDUCE_MAX:
        return is_signed ? 0x80000000u : 0;
    case TP_REDUCE_MIN:
        return is_signed ? 0x7fffffffu : 0xffffffffu;
    case TP_REDUCE_ADD:
    default:
        return 0;
    }
}

/* n elements from `at`, each `step` after the one before. */
static void run_floats(tp_reduce_op op, bool is_exclusive, const tp_host_tensor *x, int64_t at,
                       int64_t step, int64_t n, tp_host_tensor *out)
{
    float sum = tp_reduce_identity(op);
    for (int64_t i = 0; i < n; ++i, at += step) {
        const float before = sum, element = tp_host_load(x, at);
        sum = i == 0 ? element : tp_reduce_apply(op, sum, element);
        tp_host_store(out, at, is_exclusive ? before : sum);
    }
}

static void run_words(tp_reduce_op op, bool is_exclusive, const tp_host_tensor *x, int64_t at,
                      int64_t step, int64_t n, tp_host_tensor *out)
{
    const bool is_signed = x->dtype == TP_S32;
    uint32_t sum = neutral_word(op, is_signed);
    for (int64_t i = 0; i < n; ++i, at += step) {
        const uint32_t before = sum, element = ((const uint32_t *)x->data)[at];
        sum = combine_words(op, is_signed, sum, element);
        ((uint32_t *)out->data)[at] = is_exclusive ? before : sum;
    }
}

static tpucl_status evaluate(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    const int64_t axis = tp_node_attr_int(node, "axis", 0), n = out->shape.dims[axis];
    const bool is_reverse = has_flag(node, "reverse");
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(&out->shape, strides);
    const int64_t step = strides[axis];
    const int64_t lines = n ? tp_shape_elems(&out->shape) / n : 0;
    for (int64_t line = 0; line < lines; ++line) {
        const int64_t first = line / step * step * n + line % step;
        const int64_t at = is_reverse ? first + (n - 1) * step : first;
        (tp_dtype_is_float(out->dtype) ? run_floats : run_words)(
            reduce_op(node), has_flag(node, "exclusive"), &inputs[0], at, is_reverse ? -step : step,
            n, out);
    }
    return TPUCL_OK;
}

/* ---- gradient ---- */

/* Where each running extreme comes from: the last element up to i that equals it, because then none
 * after it does. */
static tp_node_id sources(tp_graph *g, tp_node_id x, const char *kind, int64_t axis)
{
    const tp_shape shape = g->nodes[x].shape;
    const tp_node_id y = tp_op_cumulative(g, x, kind, axis, false, false);
    const tp_node_id numbers = tp_op_iota(g, TP_S32, shape, axis);
    const tp_node_id marks =
        tp_op_select(g, tp_op_compare(g, "EQ", x, y), numbers, tp_op_fill(g, TP_S32, shape, 0));
    return tp_op_cumulative(g, marks, "max", axis, false, false);
}

/* d of element i + 1 at i: exclusive sums are those of one element earlier. */
static tp_node_id shift(tp_graph *g, tp_node_id d, int64_t axis)
{
    int64_t low[TP_MAX_RANK] = {0}, high[TP_MAX_RANK] = {0};
    low[axis] = -1;
    high[axis] = 1;
    return tp_op_pad(g, d, tp_op_scalar(g, g->nodes[d].dtype, 0), low, high, NULL);
}

static tp_node_id extreme_gradient(tp_graph *g, const tp_node *node, tp_node_id d)
{
    const int64_t axis = tp_node_attr_int(node, "axis", 0);
    const bool is_reverse = has_flag(node, "reverse");
    const tp_shape shape = g->nodes[d].shape;
    if (shape.dims[axis] == 0) return d;
    tp_node_id x = node->inputs[0];
    if (is_reverse) {
        x = tp_op_reverse(g, x, &axis, 1);
        d = tp_op_reverse(g, d, &axis, 1);
    }
    if (has_flag(node, "exclusive")) d = shift(g, d, axis);
    const tp_node_id from = sources(g, x, tp_node_attr_text(node, "kind", ""), axis);
    const tp_node_id zeros = tp_op_fill(g, g->nodes[d].dtype, shape, 0);
    const tp_node_id d_x = tp_op_put_along_axis(g, zeros, from, d, axis, "add");
    return is_reverse ? tp_op_reverse(g, d_x, &axis, 1) : d_x;
}

/* add: the same sums from the other end. multiply: sums of d * y from the other end, over x (not for
 * an x of zero, where it gives no number). */
static void gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node node = g->nodes[y]; /* a copy: adding nodes may move them */
    const int64_t axis = tp_node_attr_int(&node, "axis", 0);
    const bool is_exclusive = has_flag(&node, "exclusive"), is_reverse = has_flag(&node, "reverse");
    if (!tp_dtype_is_float(node.dtype)) return;
    if (is_kind(&node, "max") || is_kind(&node, "min")) {
        d_inputs[0] = extreme_gradient(g, &node, d);
        return;
    }
    const bool is_product = is_kind(&node, "multiply");
    const tp_node_id terms = is_product ? tp_op_multiply(g, d, y) : d;
    const tp_node_id sums = tp_op_cumulative(g, terms, "add", axis, is_exclusive, !is_reverse);
    d_inputs[0] = is_product ? tp_op_divide(g, sums, node.inputs[0]) : sums;
}

static const tp_attr_spec attrs[] = {
    {"kind", TP_ATTR_TEXT, false, "add|multiply|max|min", "how elements are combined"},
    {"axis", TP_ATTR_INT, false, NULL, "along which"},
    {"exclusive", TP_ATTR_INT, true, NULL, "1: without the element itself; default 0"},
    {"reverse", TP_ATTR_INT, true, NULL, "1: from the last element to the first; default 0"},
    {0}};

const tp_opdef tp_opdef_cumulative = {
    .name = "cumulative",
    .op_class = TP_OP_MEMORY,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Running sum, product, maximum or minimum along an axis, one element after the other.",
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
};
