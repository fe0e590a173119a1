/* SPDX-License-Identifier: Apache-2.0
 * Ops that move elements: broadcast_in_dim, reshape, transpose, reverse. (op_shape_cut.c: slice,
 * pad, concatenate.) Any dtype; the bits of an element stay as they are.
 *
 *   broadcast_in_dim   shape: of the result; axes: the result's axis for each axis of the operand,
 *                      rising.
 *                      A dim of 1 is repeated; others must be equal
 *   reshape            shape: as many elements, same row-major order
 *   transpose          axes: a permutation; axis i of the result is axis axes[i] of the operand
 *   reverse            axes: those to turn round, each once
 */
#include "ops/op_shape.h"

#include <string.h>

#include "graph/attrs.h"
#include "graph/builder.h"
#include "ops/op_util.h"
#include "ops/op_view.h"

/* ---- broadcast_in_dim ---- */
static tpucl_status broadcast_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                    tp_shape *out_shape)
{
    const tp_node *operand = tp_op_input(graph, node, 0);
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    TP_TRY(tp_node_attr_shape(node, "shape", out_shape));
    *out_dtype = operand->dtype;
    char from[TP_SHAPE_TEXT_MAX], to[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&operand->shape, from, sizeof from);
    tp_shape_format(out_shape, to, sizeof to);
    if (count != operand->shape.rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "broadcast of %s needs %d axes, found %d", from,
                       operand->shape.rank, count);
    for (int32_t i = 0; i < count; ++i) {
        if (axes[i] < 0 || axes[i] >= out_shape->rank || (i > 0 && axes[i] <= axes[i - 1]))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "axis %lld at position %d is not rising within %s", (long long)axes[i],
                           i, to);
        const int64_t dim = operand->shape.dims[i], target = out_shape->dims[axes[i]];
        if (dim != 1 && dim != target)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "axis %d of %s does not broadcast to axis %lld of %s", i, from,
                           (long long)axes[i], to);
    }
    return TPUCL_OK;
}

static tpucl_status broadcast_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                       const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    int64_t own[TP_MAX_RANK], strides[TP_MAX_RANK] = {0};
    tp_shape_strides(&inputs[0].shape, own);
    for (int32_t i = 0; i < count; ++i)
        if (inputs[0].shape.dims[i] != 1) strides[axes[i]] = own[i];
    tp_view_gather(&out->shape, tp_dtype_size(out->dtype), inputs[0].data, strides, out->data);
    return TPUCL_OK;
}

/* Sum over what was repeated. */
static void broadcast_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_shape from = tp_op_input(g, &g->nodes[y], 0)->shape, to = g->nodes[y].shape;
    int32_t count, summed = 0;
    const int64_t *axes = tp_node_attr_ints(&g->nodes[y], "axes", &count);
    int64_t summed_axes[TP_MAX_RANK];
    for (int64_t axis = 0, i = 0; axis < to.rank; ++axis) {
        const bool is_mapped = i < count && axes[i] == axis;
        if (!is_mapped || (from.dims[i] == 1 && to.dims[axis] != 1)) summed_axes[summed++] = axis;
        i += is_mapped;
    }
    const tp_node_id sum = summed ? tp_op_reduce(g, d, "add", summed_axes, summed) : d;
    d_inputs[0] = tp_op_reshape(g, sum, from);
}

/* ---- reshape ---- */
static tpucl_status reshape_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                  tp_shape *out_shape)
{
    const tp_node *operand = tp_op_input(graph, node, 0);
    TP_TRY(tp_node_attr_shape(node, "shape", out_shape));
    *out_dtype = operand->dtype;
    const int64_t have = tp_shape_elems(&operand->shape), want = tp_shape_elems(out_shape);
    if (have == want) return TPUCL_OK;
    char from[TP_SHAPE_TEXT_MAX], to[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&operand->shape, from, sizeof from);
    tp_shape_format(out_shape, to, sizeof to);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "reshape of %s with %lld elements to %s with %lld", from,
                   (long long)have, to, (long long)want);
}

static tpucl_status reshape_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                     const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)context;
    const size_t bytes = (size_t)tp_shape_bytes(&out->shape, out->dtype);
    if (bytes) memcpy(out->data, inputs[0].data, bytes);
    return TPUCL_OK;
}

static void reshape_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    d_inputs[0] = tp_op_reshape(g, d, tp_op_input(g, &g->nodes[y], 0)->shape);
}

/* ---- transpose ---- */
static tpucl_status transpose_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                    tp_shape *out_shape)
{
    const tp_node *operand = tp_op_input(graph, node, 0);
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    char text[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&operand->shape, text, sizeof text);
    if (count != operand->shape.rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "transpose of %s needs %d axes, found %d", text,
                       operand->shape.rank, count);
    *out_dtype = operand->dtype;
    *out_shape = operand->shape;
    uint32_t seen = 0;
    for (int32_t i = 0; i < count; ++i) {
        if (axes[i] < 0 || axes[i] >= count || (seen >> axes[i] & 1u))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "axis %lld at position %d makes no permutation of the axes of %s",
                           (long long)axes[i], i, text);
        seen |= 1u << axes[i];
        out_shape->dims[i] = operand->shape.dims[axes[i]];
    }
    return TPUCL_OK;
}

static tpucl_status transpose_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                       const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    int64_t own[TP_MAX_RANK], strides[TP_MAX_RANK] = {0};
    tp_shape_strides(&inputs[0].shape, own);
    for (int32_t i = 0; i < count; ++i)
        strides[i] = own[axes[i]];
    tp_view_gather(&out->shape, tp_dtype_size(out->dtype), inputs[0].data, strides, out->data);
    return TPUCL_OK;
}

static void transpose_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(&g->nodes[y], "axes", &count);
    int64_t inverse[TP_MAX_RANK];
    for (int32_t i = 0; i < count; ++i)
        inverse[axes[i]] = i;
    d_inputs[0] = tp_op_transpose(g, d, inverse);
}

/* ---- reverse ---- */
static tpucl_status reverse_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                  tp_shape *out_shape)
{
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    *out_dtype = tp_op_input(graph, node, 0)->dtype;
    *out_shape = tp_op_input(graph, node, 0)->shape;
    uint32_t seen = 0;
    for (int32_t i = 0; i < count; ++i) {
        if (axes[i] < 0 || axes[i] >= out_shape->rank || (seen >> axes[i] & 1u))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "reverse of axis %lld: expected axes below %d, each once",
                           (long long)axes[i], out_shape->rank);
        seen |= 1u << axes[i];
    }
    return TPUCL_OK;
}

static tpucl_status reverse_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                     const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    if (tp_shape_elems(&out->shape) == 0) return TPUCL_OK;
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    const size_t size = tp_dtype_size(out->dtype);
    int64_t strides[TP_MAX_RANK], last = 0;
    tp_shape_strides(&out->shape, strides);
    for (int32_t i = 0; i < count; ++i) {
        last += (out->shape.dims[axes[i]] - 1) * strides[axes[i]];
        strides[axes[i]] = -strides[axes[i]];
    }
    tp_view_gather(&out->shape, size, (const char *)inputs[0].data + last * (int64_t)size, strides,
                   out->data);
    return TPUCL_OK;
}

static void reverse_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(&g->nodes[y], "axes", &count);
    d_inputs[0] = tp_op_reverse(g, d, axes, count);
}

/* ---- definitions ---- */
static const tp_attr_spec broadcast_attrs[] = {
    {"shape", TP_ATTR_INTS, false, NULL, "of the result"},
    {"axes", TP_ATTR_INTS, false, NULL, "the result's axis for each axis of the operand, rising"},
    {0}};
static const tp_attr_spec reshape_attrs[] = {{"shape", TP_ATTR_INTS, false, NULL, "of the result"},
                                             {0}};
static const tp_attr_spec transpose_attrs[] = {
    {"axes", TP_ATTR_INTS, false, NULL, "axis i of the result is axis axes[i] of the operand"},
    {0}};
static const tp_attr_spec reverse_attrs[] = {
    {"axes", TP_ATTR_INTS, false, NULL, "those to turn round"}, {0}};

const tp_opdef tp_opdef_broadcast_in_dim = {
    .name = "broadcast_in_dim",
    .op_class = TP_OP_BROADCAST,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Repeats the operand along new axes and along axes of 1.",
    .attrs = broadcast_attrs,
    .infer = broadcast_infer,
    .gradient = broadcast_gradient,
    .evaluate = broadcast_evaluate};
const tp_opdef tp_opdef_reshape = {.name = "reshape",
                                   .op_class = TP_OP_RESHAPE,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .doc =
                                       "The same elements in row-major order under another shape.",
                                   .attrs = reshape_attrs,
                                   .infer = reshape_infer,
                                   .gradient = reshape_gradient,
                                   .evaluate = reshape_evaluate};
const tp_opdef tp_opdef_transpose = {.name = "transpose",
                                     .op_class = TP_OP_REINDEX,
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .doc = "Reorders the axes.",
                                     .attrs = transpose_attrs,
                                     .infer = transpose_infer,
                                     .gradient = transpose_gradient,
                                     .evaluate = transpose_evaluate};
const tp_opdef tp_opdef_reverse = {.name = "reverse",
                                   .op_class = TP_OP_REINDEX,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .doc = "Turns the order along some axes round.",
                                   .attrs = reverse_attrs,
                                   .infer = reverse_infer,
                                   .gradient = reverse_gradient,
                                   .evaluate = reverse_evaluate};
