/* SPDX-License-Identifier: Apache-2.0
 * Ops that take parts or put parts together; any dtype.
 *
 *   slice        start, limit, strides: per axis the indexes start, start + stride, ... below
 *                limit
 *   pad          (x, value): low, high, interior per axis: elements of the scalar `value` before,
 *                after and
 *                between the elements of x. A negative low or high cuts instead
 *   concatenate  axis: the parts one after the other
 */
#include "ops/op_shape.h"

#include <string.h>

#include "graph/attrs.h"
#include "graph/builder.h"
#include "ops/op_util.h"
#include "ops/op_view.h"

/* The numbers of an attribute that has one per axis of input 0. */
static tpucl_status read_per_axis(const tp_graph *graph, const tp_node *node, const char *name,
                                  const int64_t **out_ints)
{
    const tp_shape *shape = &tp_op_input(graph, node, 0)->shape;
    int32_t count;
    *out_ints = tp_node_attr_ints(node, name, &count);
    if (count == shape->rank) return TPUCL_OK;
    char text[TP_SHAPE_TEXT_MAX];
    tp_shape_format(shape, text, sizeof text);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' has %d numbers, expected one per axis of %s", name,
                   count, text);
}

static const int64_t *per_axis(const tp_node *node, const char *name)
{
    int32_t count;
    return tp_node_attr_ints(node, name, &count);
}

/* ---- slice ---- */
static tpucl_status slice_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    const tp_node *operand = tp_op_input(graph, node, 0);
    const int64_t *start, *limit, *strides;
    TP_TRY(read_per_axis(graph, node, "start", &start));
    TP_TRY(read_per_axis(graph, node, "limit", &limit));
    TP_TRY(read_per_axis(graph, node, "strides", &strides));
    *out_dtype = operand->dtype;
    *out_shape = operand->shape;
    for (int axis = 0; axis < operand->shape.rank; ++axis) {
        const int64_t dim = operand->shape.dims[axis];
        if (start[axis] < 0 || start[axis] > limit[axis] || limit[axis] > dim || strides[axis] < 1)
            return TP_FAIL(
                TPUCL_INVALID_ARGUMENT,
                "slice [%lld, %lld) with stride %lld of axis %d, which has %lld elements",
                (long long)start[axis], (long long)limit[axis], (long long)strides[axis], axis,
                (long long)dim);
        const int64_t span = limit[axis] - start[axis];
        out_shape->dims[axis] = span / strides[axis] + (span % strides[axis] != 0);
    }
    return TPUCL_OK;
}

static tpucl_status slice_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                   const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    if (tp_shape_elems(&out->shape) == 0) return TPUCL_OK;
    const int64_t *start = per_axis(node, "start"), *strides = per_axis(node, "strides");
    const size_t size = tp_dtype_size(out->dtype);
    int64_t view[TP_MAX_RANK], first = 0;
    tp_shape_strides(&inputs[0].shape, view);
    for (int axis = 0; axis < out->shape.rank; ++axis) {
        first += start[axis] * view[axis];
        view[axis] *= strides[axis];
    }
    tp_view_gather(&out->shape, size, (const char *)inputs[0].data + first * (int64_t)size, view,
                   out->data);
    return TPUCL_OK;
}

static void slice_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_shape from = tp_op_input(g, &g->nodes[y], 0)->shape, to = g->nodes[y].shape;
    const int64_t *start = per_axis(&g->nodes[y], "start"),
                  *strides = per_axis(&g->nodes[y], "strides");
    int64_t low[TP_MAX_RANK] = {0}, high[TP_MAX_RANK] = {0}, interior[TP_MAX_RANK] = {0};
    for (int axis = 0; axis < from.rank; ++axis) {
        const int64_t covered = to.dims[axis] ? (to.dims[axis] - 1) * strides[axis] + 1 : 0;
        low[axis] = start[axis];
        high[axis] = from.dims[axis] - start[axis] - covered;
        interior[axis] = strides[axis] - 1;
    }
    d_inputs[0] = tp_op_pad(g, d, tp_op_scalar(g, g->nodes[d].dtype, 0), low, high, interior);
}

/* ---- pad ---- */
static tpucl_status pad_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                              tp_shape *out_shape)
{
    const tp_node *operand = tp_op_input(graph, node, 0), *value = tp_op_input(graph, node, 1);
    if (value->dtype != operand->dtype || value->shape.rank != 0)
        return TP_FAIL(
            TPUCL_INVALID_ARGUMENT, "padding value is %s of rank %d, expected a %s scalar",
            tp_dtype_name(value->dtype), value->shape.rank, tp_dtype_name(operand->dtype));
    const int64_t *low, *high, *interior;
    TP_TRY(read_per_axis(graph, node, "low", &low));
    TP_TRY(read_per_axis(graph, node, "high", &high));
    TP_TRY(read_per_axis(graph, node, "interior", &interior));
    int64_t dims[TP_MAX_RANK] = {0};
    for (int axis = 0; axis < operand->shape.rank; ++axis) {
        const int64_t dim = operand->shape.dims[axis];
        int64_t between = 0;
        bool is_bad = interior[axis] < 0 || low[axis] < -TP_MAX_ELEMS || low[axis] > TP_MAX_ELEMS ||
                      high[axis] < -TP_MAX_ELEMS || high[axis] > TP_MAX_ELEMS;
        if (!is_bad && dim > 1) is_bad = !tp_size_multiply(dim - 1, interior[axis], &between);
        if (!is_bad) is_bad = between > TP_MAX_ELEMS;
        if (!is_bad) dims[axis] = low[axis] + dim + between + high[axis];
        if (is_bad || dims[axis] < 0)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "padding axis %d of %lld elements by low %lld, high %lld, interior %lld",
                           axis, (long long)dim, (long long)low[axis], (long long)high[axis],
                           (long long)interior[axis]);
    }
    *out_dtype = operand->dtype;
    return tp_shape_init(out_shape, operand->shape.rank, dims);
}

static void fill_elements(size_t size, int64_t count, const void *value, void *dst)
{
    for (int64_t i = 0; i < count; ++i)
        memcpy((char *)dst + i * (int64_t)size, value, size);
}

static tpucl_status pad_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                 const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    const int64_t *low = per_axis(node, "low"), *interior = per_axis(node, "interior");
    const size_t size = tp_dtype_size(out->dtype);
    fill_elements(size, tp_shape_elems(&out->shape), inputs[1].data, out->data);

    /* The part of x that is not cut: indexes first .. of each axis. */
    tp_shape kept = inputs[0].shape;
    int64_t src_strides[TP_MAX_RANK], dst_strides[TP_MAX_RANK], src_at = 0, dst_at = 0;
    tp_shape_strides(&inputs[0].shape, src_strides);
    tp_shape_strides(&out->shape, dst_strides);
    for (int axis = 0; axis < kept.rank; ++axis) {
        const int64_t step = interior[axis] + 1;
        const int64_t first = low[axis] < 0 ? (-low[axis] + step - 1) / step : 0;
        const int64_t room =
            out->shape.dims[axis] - 1 - low[axis]; /* last place, counted from x[0] */
        const int64_t last = room < 0 ? -1 : room / step;
        const int64_t end = last < kept.dims[axis] - 1 ? last + 1 : kept.dims[axis];
        kept.dims[axis] = end > first ? end - first : 0;
        src_at += first * src_strides[axis];
        dst_at += (low[axis] + first * step) * dst_strides[axis];
        dst_strides[axis] *= step;
    }
    if (tp_shape_elems(&kept) == 0) return TPUCL_OK;
    tp_view_copy(&kept, size, (const char *)inputs[0].data + src_at * (int64_t)size, src_strides,
                 (char *)out->data + dst_at * (int64_t)size, dst_strides);
    return TPUCL_OK;
}

/* x: undo the edges (negative padding), then pick every (interior + 1)th. value: the sum of d where
 * nothing of x came to lie. */
static void pad_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_shape from = tp_op_input(g, &g->nodes[y], 0)->shape;
    const tp_dtype dtype = g->nodes[d].dtype;
    const int64_t *low = per_axis(&g->nodes[y], "low"), *high = per_axis(&g->nodes[y], "high");
    const int64_t *interior = per_axis(&g->nodes[y], "interior");
    int64_t undo_low[TP_MAX_RANK] = {0}, undo_high[TP_MAX_RANK] = {0}, start[TP_MAX_RANK] = {0};
    int64_t limit[TP_MAX_RANK] = {0}, strides[TP_MAX_RANK] = {0};
    for (int axis = 0; axis < from.rank; ++axis) {
        undo_low[axis] = -low[axis];
        undo_high[axis] = -high[axis];
        strides[axis] = interior[axis] + 1;
        limit[axis] = from.dims[axis] ? (from.dims[axis] - 1) * strides[axis] + 1 : 0;
    }
    const tp_node_id zero = tp_op_scalar(g, dtype, 0);
    const tp_node_id spread = tp_op_pad(g, d, zero, undo_low, undo_high, NULL);
    d_inputs[0] = tp_op_slice(g, spread, start, limit, strides);
    const tp_node_id is_value =
        tp_op_pad(g, tp_op_fill(g, dtype, from, 0), tp_op_scalar(g, dtype, 1), low, high, interior);
    d_inputs[1] = tp_op_reduce(g, tp_op_multiply(g, d, is_value), "add", NULL, 0);
}

/* ---- concatenate ---- */
static tpucl_status concatenate_infer(const tp_graph *graph, const tp_node *node,
                                      tp_dtype *out_dtype, tp_shape *out_shape)
{
    const tp_node *first = tp_op_input(graph, node, 0);
    const int64_t axis = tp_node_attr_int(node, "axis", 0);
    tp_shape shape = first->shape;
    if (axis < 0 || axis >= shape.rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "concatenate along axis %lld of tensors of rank %d",
                       (long long)axis, shape.rank);
    for (int32_t i = 1; i < node->input_count; ++i) {
        const tp_node *part = tp_op_input(graph, node, i);
        tp_shape want = first->shape;
        if (part->shape.rank == want.rank) want.dims[axis] = part->shape.dims[axis];
        if (part->dtype != first->dtype || !tp_shape_equal(&part->shape, &want)) {
            char have_text[TP_SHAPE_TEXT_MAX], want_text[TP_SHAPE_TEXT_MAX];
            tp_shape_format(&part->shape, have_text, sizeof have_text);
            tp_shape_format(&first->shape, want_text, sizeof want_text);
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "concatenate: input %d is %s%s, expected %s%s but for axis %lld", i,
                           tp_dtype_name(part->dtype), have_text, tp_dtype_name(first->dtype),
                           want_text, (long long)axis);
        }
        shape.dims[axis] += part->shape.dims[axis];
    }
    *out_dtype = first->dtype;
    return tp_shape_init(out_shape, shape.rank, shape.dims);
}

static tpucl_status concatenate_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                         const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    const int64_t axis = tp_node_attr_int(node, "axis", 0);
    const size_t size = tp_dtype_size(out->dtype);
    int64_t src_strides[TP_MAX_RANK], dst_strides[TP_MAX_RANK], at = 0;
    tp_shape_strides(&out->shape, dst_strides);
    for (int32_t i = 0; i < node->input_count; ++i) {
        tp_shape_strides(&inputs[i].shape, src_strides);
        if (tp_shape_elems(&inputs[i].shape))
            tp_view_copy(&inputs[i].shape, size, inputs[i].data, src_strides,
                         (char *)out->data + at * dst_strides[axis] * (int64_t)size, dst_strides);
        at += inputs[i].shape.dims[axis];
    }
    return TPUCL_OK;
}

static void concatenate_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const int64_t axis = tp_node_attr_int(&g->nodes[y], "axis", 0);
    const int32_t count = g->nodes[y].input_count;
    int64_t start[TP_MAX_RANK] = {0};
    for (int32_t i = 0; i < count; ++i) {
        const tp_shape part = tp_op_input(g, &g->nodes[y], i)->shape;
        int64_t limit[TP_MAX_RANK];
        memcpy(limit, part.dims, sizeof limit);
        limit[axis] += start[axis];
        d_inputs[i] = tp_op_slice(g, d, start, limit, NULL);
        start[axis] = limit[axis];
    }
}

/* ---- definitions ---- */
static const tp_attr_spec slice_attrs[] = {
    {"start", TP_ATTR_INTS, false, NULL, "first index of each axis"},
    {"limit", TP_ATTR_INTS, false, NULL, "end of each axis, not included"},
    {"strides", TP_ATTR_INTS, false, NULL, "from one index to the next, 1 or more"},
    {0}};
static const tp_attr_spec pad_attrs[] = {
    {"low", TP_ATTR_INTS, false, NULL, "elements before each axis; negative cuts"},
    {"high", TP_ATTR_INTS, false, NULL, "elements after each axis; negative cuts"},
    {"interior", TP_ATTR_INTS, false, NULL, "elements between neighbours of each axis"},
    {0}};
static const tp_attr_spec concatenate_attrs[] = {
    {"axis", TP_ATTR_INT, false, NULL, "along which the parts follow each other"}, {0}};

const tp_opdef tp_opdef_slice = {.name = "slice",
                                 .op_class = TP_OP_REINDEX,
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .doc = "Every stride-th element of a box.",
                                 .attrs = slice_attrs,
                                 .infer = slice_infer,
                                 .gradient = slice_gradient,
                                 .evaluate = slice_evaluate};
const tp_opdef tp_opdef_pad = {.name = "pad",
                               .op_class = TP_OP_REINDEX,
                               .min_inputs = 2,
                               .max_inputs = 2,
                               .doc = "Puts a scalar around and between the elements.",
                               .attrs = pad_attrs,
                               .infer = pad_infer,
                               .gradient = pad_gradient,
                               .evaluate = pad_evaluate};
const tp_opdef tp_opdef_concatenate = {.name = "concatenate",
                                       .op_class = TP_OP_REINDEX,
                                       .min_inputs = 1,
                                       .max_inputs = TP_MAX_INPUTS,
                                       .doc = "The parts one after the other along an axis.",
                                       .attrs = concatenate_attrs,
                                       .infer = concatenate_infer,
                                       .gradient = concatenate_gradient,
                                       .evaluate = concatenate_evaluate};
