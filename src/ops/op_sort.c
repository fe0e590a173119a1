/* SPDX-License-Identifier: Apache-2.0
 * sort and top_k; any dtype. A node has one result, so `result` says which: the values in order, or (s32)
 * where they were. Operands that are carried along are taken by those indices (tp_op_take_along_axis).
 *
 *   sort    along `axis`, stable: equal elements keep their order. Zeros of both signs are equal, NaN comes
 *           last in both directions (NumPy's rule for rising order)
 *   top_k   the k largest along the last axis, largest first, of equal ones the first: what k rounds of
 *           argmax would find, so NaN is larger than infinity, and +0 larger than -0
 *
 * Each element has a 32-bit key whose order as an unsigned number is the op's; pairs (key, index) are all
 * different, so there is one result. kernels/memory/sort_keys.cl has the same keys. */
#include "ops/op_sort.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/builder.h"
#include "num/bf16.h"
#include "ops/op_util.h"

typedef enum sort_order { RISING, FALLING, LARGEST_FIRST } sort_order;

static bool wants_indices(const tp_node *node)
{
    return strcmp(tp_node_attr_text(node, "result", ""), "indices") == 0;
}

static bool is_top_k(const tp_node *node)
{
    return tp_node_is(node, "top_k");
}

static sort_order order_of(const tp_node *node)
{
    if (is_top_k(node)) return LARGEST_FIRST;
    return strcmp(tp_node_attr_text(node, "direction", ""), "descending") == 0 ? FALLING : RISING;
}

static int64_t axis_of(const tp_node *node, const tp_shape *operand)
{
    return is_top_k(node) ? operand->rank - 1 : tp_node_attr_int(node, "axis", 0);
}

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape)
{
    const tp_node *x = tp_op_input(graph, node, 0);
    const int64_t axis = axis_of(node, &x->shape);
    if (axis < 0 || axis >= x->shape.rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s along axis %lld of a tensor of rank %d",
                       node->def->name, (long long)axis, x->shape.rank);
    const int64_t n = x->shape.dims[axis], k = tp_node_attr_int(node, "k", n);
    if (n > INT32_MAX)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s of %lld elements, the limit is %d",
                       node->def->name, (long long)n, INT32_MAX);
    if (k < 0 || k > n)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "top_k of %lld of %lld elements", (long long)k,
                       (long long)n);
    *out_dtype = wants_indices(node) ? TP_S32 : x->dtype;
    *out_shape = x->shape;
    out_shape->dims[axis] = k;
    return TPUCL_OK;
}

/* ---- evaluation ---- */

/* The bits of f32 numbers (not NaN) in the order of their values. */
static uint32_t float_key(uint32_t bits, sort_order order)
{
    if ((bits & 0x7fffffffu) > 0x7f800000u) return order == LARGEST_FIRST ? 0 : UINT32_MAX;
    if (order != LARGEST_FIRST && bits == 0x80000000u) bits = 0;
    const uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000u;
    return order == RISING ? rising : ~rising;
}

static uint32_t key_of(const tp_host_tensor *x, int64_t at, sort_order order)
{
    uint32_t rising = 0;
    switch (x->dtype) {
    case TP_F32:
    case TP_S32:
    case TP_U32:
        rising = ((const uint32_t *)x->data)[at];
        if (x->dtype == TP_F32) return float_key(rising, order);
        if (x->dtype == TP_S32) rising ^= 0x80000000u;
        break;
    case TP_BF16:
        return float_key((uint32_t)((const uint16_t *)x->data)[at] << 16, order);
    default:
        rising = ((const uint8_t *)x->data)[at];
    }
    return order == RISING ? rising : ~rising;
}

static int compare_pairs(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* Lines of n elements, `step` apart; the first k of each go to `out`, as far apart. */
static void sort_lines(const tp_node *node, const tp_host_tensor *x, int64_t n, int64_t k,
                       int64_t step, uint64_t *pairs, tp_host_tensor *out)
{
    const int64_t lines = tp_shape_elems(&x->shape) / n;
    const size_t size = tp_dtype_size(out->dtype);
    for (int64_t line = 0; line < lines; ++line) {
        const int64_t from = line / step * step * n + line % step;
        const int64_t to = line / step * step * k + line % step;
        for (int64_t i = 0; i < n; ++i)
            pairs[i] = (uint64_t)key_of(x, from + i * step, order_of(node)) << 32 | (uint64_t)i;
        qsort(pairs, (size_t)n, sizeof *pairs, compare_pairs);
        for (int64_t i = 0; i < k; ++i) {
            const int32_t index = (int32_t)(uint32_t)pairs[i];
            const void *value = (const char *)x->data + (size_t)(from + index * step) * size;
            memcpy((char *)out->data + (size_t)(to + i * step) * size,
                   wants_indices(node) ? (const void *)&index : value, size);
        }
    }
}

static tpucl_status evaluate(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    const tp_host_tensor *x = &inputs[0];
    const int64_t axis = axis_of(node, &x->shape), n = x->shape.dims[axis];
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(&x->shape, strides);
    if (tp_shape_elems(&out->shape) == 0) return TPUCL_OK;
    uint64_t *pairs = TP_NEW_ARRAY(uint64_t, (size_t)n);
    if (!pairs) return TPUCL_OUT_OF_MEMORY;
    sort_lines(node, x, n, out->shape.dims[axis], strides[axis], pairs, out);
    tp_free(pairs);
    return TPUCL_OK;
}

/* ---- gradient ---- */

/* Each value's gradient goes back to where the value was. */
static void gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node node = g->nodes[y]; /* a copy: adding nodes may move them */
    const tp_shape shape = tp_op_input(g, &node, 0)->shape;
    const int64_t axis = axis_of(&node, &shape);
    const tp_node_id zeros = tp_op_fill(g, g->nodes[d].dtype, shape, 0);
    const tp_node_id from =
        is_top_k(&node) ? tp_op_top_k_indices(g, node.inputs[0], node.shape.dims[axis])
                        : tp_op_argsort(g, node.inputs[0], axis, order_of(&node) == FALLING);
    d_inputs[0] = tp_op_put_along_axis(g, zeros, from, d, axis, "add");
}

/* Comparisons: n log2 n a line. */
static double flops(const tp_graph *graph, const tp_node *node)
{
    const tp_shape *shape = &tp_op_input(graph, node, 0)->shape;
    const int64_t n = shape->dims[axis_of(node, shape)];
    double rounds = 0;
    for (int64_t width = 1; width < n; width *= 2)
        ++rounds;
    return (double)tp_shape_elems(shape) * rounds;
}

static const tp_attr_spec sort_attrs[] = {
    {"axis", TP_ATTR_INT, false, NULL, "along which"},
    {"direction", TP_ATTR_TEXT, false, "ascending|descending", "which comes first"},
    {"result", TP_ATTR_TEXT, false, "values|indices", "the elements, or where they were (s32)"},
    {0}};
static const tp_attr_spec top_k_attrs[] = {
    {"k", TP_ATTR_INT, false, NULL, "how many"},
    {"result", TP_ATTR_TEXT, false, "values|indices", "the elements, or where they are (s32)"},
    {0}};

const tp_opdef tp_opdef_sort = {
    .name = "sort",
    .op_class = TP_OP_MEMORY,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Sorts along an axis; stable, NaN last in both directions.",
    .attrs = sort_attrs,
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .flops = flops,
};

const tp_opdef tp_opdef_top_k = {
    .name = "top_k",
    .op_class = TP_OP_MEMORY,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc =
        "The k largest along the last axis, in falling order, of equal ones the first; NaN is the "
        "largest.",
    .attrs = top_k_attrs,
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .flops = flops,
};
