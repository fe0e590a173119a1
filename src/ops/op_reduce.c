/* SPDX-License-Identifier: Apache-2.0
 * reduce, argmax, argmin: see op_reduce.h. Floats go through the contract's VPU reduction of
 * num/reduce.h; integers and pred are exact in any order.
 */
#include "ops/op_reduce.h"

#include <string.h>

#include "core/alloc.h"
#include "graph/attrs.h"
#include "graph/builder.h"
#include "graph/geometry.h"
#include "num/reduce.h"
#include "ops/host_values.h"

static const tp_attr_spec reduce_attrs[] = {
    {"kind", TP_ATTR_TEXT, false, "add|max|min|multiply|and|or", "how elements are combined"},
    {"axes", TP_ATTR_INTS, true, NULL, "dimensions that are reduced away; none: nothing is"},
    {0}};

static const tp_attr_spec arg_attrs[] = {
    {"axis", TP_ATTR_INT, false, NULL, "dimension that is searched and reduced away"}, {0}};

static bool is_kind(const tp_node *node, const char *kind)
{
    return strcmp(tp_node_attr_text(node, "kind", ""), kind) == 0;
}

static bool is_logical(const tp_node *node)
{
    return is_kind(node, "and") || is_kind(node, "or");
}

static tpucl_status infer_reduce(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                 tp_shape *out_shape)
{
    const tp_node *operand = tp_graph_node(graph, node->inputs[0]);
    const bool is_number = operand->dtype != TP_PRED && operand->dtype != TP_U8;
    if (is_logical(node) ? operand->dtype != TP_PRED : !is_number)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "reduce by '%s' of %s: add, max, min, multiply take f32, bf16, s32 and u32; "
                       "and, or take pred",
                       tp_node_attr_text(node, "kind", ""), tp_dtype_name(operand->dtype));
    tp_reduce_geometry g;
    TP_TRY(tp_reduce_geometry_read(node, &operand->shape, &g));
    *out_dtype = operand->dtype;
    *out_shape = g.result;
    return TPUCL_OK;
}

/* One per element of the operand. */
static double flops_operand(const tp_graph *graph, const tp_node *node)
{
    return (double)tp_shape_elems(&tp_graph_node(graph, node->inputs[0])->shape);
}

/* ---- gradient ---- */

static void gradient(tp_graph *graph, tp_node_id id, tp_node_id d_result, tp_node_id *d_inputs)
{
    const tp_node node = *tp_graph_node(graph, id); /* copies: adding nodes may move them */
    const tp_node operand = *tp_graph_node(graph, node.inputs[0]);
    tp_reduce_geometry g;
    if (tp_reduce_geometry_read(&node, &operand.shape, &g) != TPUCL_OK) {
        tp_graph_keep_error(graph);
        return;
    }
    if (is_logical(&node) || !tp_dtype_is_float(operand.dtype)) return;

    int32_t axis_count;
    const int64_t *reduced = tp_node_attr_ints(&node, "axes", &axis_count);
    if (axis_count == 0) { /* nothing was reduced */
        d_inputs[0] = d_result;
        return;
    }
    int64_t kept[TP_MAX_RANK];
    int32_t kept_count = 0;
    for (int64_t dim = 0; dim < operand.shape.rank; dim++) {
        bool is_reduced = false;
        for (int32_t i = 0; i < axis_count; i++)
            is_reduced = is_reduced || reduced[i] == dim;
        if (!is_reduced) kept[kept_count++] = dim;
    }
    const tp_shape shape = operand.shape;
    if (is_kind(&node, "add")) {
        d_inputs[0] = tp_op_broadcast_in_dim(graph, d_result, shape, kept);
        return;
    }
    const tp_node_id y = tp_op_broadcast_in_dim(graph, id, shape, kept);
    if (is_kind(&node, "multiply")) {
        const tp_node_id d = tp_op_broadcast_in_dim(graph, d_result, shape, kept);
        const tp_node_id others = tp_op_divide(graph, y, node.inputs[0]);
        d_inputs[0] = tp_op_multiply(graph, d, others);
        return;
    }
    const tp_node_id is_extreme = tp_op_compare(graph, "EQ", node.inputs[0], y);
    const tp_node_id ones = tp_op_convert(graph, is_extreme, TP_F32);
    const tp_node_id sharers = tp_op_reduce(graph, ones, "add", reduced, axis_count);
    const tp_node_id share = tp_op_divide(graph, tp_op_convert(graph, d_result, TP_F32), sharers);
    const tp_node_id d = tp_op_broadcast_in_dim(graph, share, shape, kept);
    const tp_node_id zero = tp_op_fill(graph, TP_F32, shape, 0.0);
    d_inputs[0] = tp_op_convert(graph, tp_op_select(graph, is_extreme, d, zero), operand.dtype);
}

/* ---- evaluation ---- */

static tp_reduce_op float_kind(const tp_node *node)
{
    if (is_kind(node, "max")) return TP_REDUCE_MAX;
    if (is_kind(node, "min")) return TP_REDUCE_MIN;
    return is_kind(node, "multiply") ? TP_REDUCE_MULTIPLY : TP_REDUCE_ADD;
}

static void reduce_floats(const tp_node *node, const tp_reduce_geometry *g, const int64_t *offsets,
                          const tp_host_tensor *src, tp_host_tensor *out)
{
    for (int64_t o = 0; o < g->kept_elems; o++) {
        const int64_t base = tp_index_map_offset(&g->kept, o);
        tp_vpu_reduction reduction;
        tp_vpu_reduction_begin(&reduction, float_kind(node));
        for (int64_t r = 0; r < g->reduced_elems; r++)
            tp_vpu_reduction_add(&reduction, tp_host_load(src, base + offsets[r]));
        tp_host_store(out, o, tp_vpu_reduction_end(&reduction));
    }
}

/* add and multiply wrap in u32 and so do in s32; max and min look at the sign when it is s32. */
static void reduce_integers(const tp_node *node, const tp_reduce_geometry *g,
                            const int64_t *offsets, const tp_host_tensor *src, tp_host_tensor *out)
{
    const tp_reduce_op kind = float_kind(node);
    const uint32_t flip = src->dtype == TP_S32 ? 0x80000000u : 0; /* orders s32 as u32 */
    const uint32_t *elements = src->data;
    for (int64_t o = 0; o < g->kept_elems; o++) {
        const int64_t base = tp_index_map_offset(&g->kept, o);
        uint32_t value = kind == TP_REDUCE_MULTIPLY ? 1u : kind == TP_REDUCE_MIN ? ~0u : 0u;
        for (int64_t r = 0; r < g->reduced_elems; r++) {
            const uint32_t x = elements[base + offsets[r]];
            if (kind == TP_REDUCE_ADD) value += x;
            if (kind == TP_REDUCE_MULTIPLY) value *= x;
            if (kind == TP_REDUCE_MAX && (x ^ flip) > value) value = x ^ flip;
            if (kind == TP_REDUCE_MIN && (x ^ flip) < value) value = x ^ flip;
        }
        const bool is_ordered = kind == TP_REDUCE_MAX || kind == TP_REDUCE_MIN;
        ((uint32_t *)out->data)[o] = is_ordered ? value ^ flip : value;
    }
}

static void reduce_preds(const tp_node *node, const tp_reduce_geometry *g, const int64_t *offsets,
                         const tp_host_tensor *src, tp_host_tensor *out)
{
    const bool is_and = is_kind(node, "and");
    for (int64_t o = 0; o < g->kept_elems; o++) {
        const int64_t base = tp_index_map_offset(&g->kept, o);
        bool value = is_and;
        for (int64_t r = 0; r < g->reduced_elems; r++) {
            const bool x = ((const uint8_t *)src->data)[base + offsets[r]] != 0;
            value = is_and ? value && x : value || x;
        }
        ((uint8_t *)out->data)[o] = value;
    }
}

static int64_t *offsets_new(const tp_reduce_geometry *g)
{
    int64_t *offsets = TP_NEW_ARRAY(int64_t, (size_t)g->reduced_elems);
    for (int64_t r = 0; offsets && r < g->reduced_elems; r++)
        offsets[r] = tp_index_map_offset(&g->reduced, r);
    return offsets;
}

static tpucl_status evaluate_reduce(const tp_node *node, const tp_host_tensor *inputs,
                                    const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    tp_reduce_geometry g;
    TP_TRY(tp_reduce_geometry_read(node, &inputs[0].shape, &g));
    int64_t *offsets = offsets_new(&g);
    if (!offsets) return TPUCL_OUT_OF_MEMORY;
    if (inputs[0].dtype == TP_PRED)
        reduce_preds(node, &g, offsets, &inputs[0], out);
    else if (tp_dtype_is_float(inputs[0].dtype))
        reduce_floats(node, &g, offsets, &inputs[0], out);
    else
        reduce_integers(node, &g, offsets, &inputs[0], out);
    tp_free(offsets);
    return TPUCL_OK;
}

/* ---- argmax, argmin ---- */

static tpucl_status infer_arg(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                              tp_shape *out_shape)
{
    const tp_node *operand = tp_graph_node(graph, node->inputs[0]);
    if (!tp_dtype_is_float(operand->dtype) && operand->dtype != TP_S32)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s of %s: the operand must be f32, bf16 or s32",
                       node->def->name, tp_dtype_name(operand->dtype));
    tp_reduce_geometry g;
    TP_TRY(tp_reduce_geometry_read(node, &operand->shape, &g));
    if (g.reduced_elems < 1 || g.reduced_elems > INT32_MAX)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s over %lld elements, expected 1 to %d",
                       node->def->name, (long long)g.reduced_elems, INT32_MAX);
    *out_dtype = TP_S32;
    *out_shape = g.result;
    return TPUCL_OK;
}

/* Whether `x` takes the place of the earlier `best`: combining them gives x's bits, not best's. NaN
 * stays once it is there. */
static bool replaces(tp_reduce_op kind, float best, float x)
{
    if (best != best) return false;
    if (x != x) return true;
    return tp_f32_bits(best) != tp_f32_bits(x) &&
           tp_f32_bits(tp_reduce_apply(kind, best, x)) == tp_f32_bits(x);
}

static bool replaces_s32(tp_reduce_op kind, int32_t best, int32_t x)
{
    return kind == TP_REDUCE_MAX ? x > best : x < best;
}

static tpucl_status evaluate_arg(const tp_node *node, tp_reduce_op kind, const tp_host_tensor *src,
                                 tp_host_tensor *out)
{
    tp_reduce_geometry g;
    TP_TRY(tp_reduce_geometry_read(node, &src->shape, &g));
    const int64_t stride = g.reduced.strides[0];
    const bool is_integer = src->dtype == TP_S32;
    for (int64_t o = 0; o < g.kept_elems; o++) {
        const int64_t base = tp_index_map_offset(&g.kept, o);
        int64_t best = 0;
        for (int64_t r = 1; r < g.reduced_elems; r++) {
            const int64_t a = base + best * stride, b = base + r * stride;
            const int32_t *integers = src->data;
            const bool takes = is_integer
                                   ? replaces_s32(kind, integers[a], integers[b])
                                   : replaces(kind, tp_host_load(src, a), tp_host_load(src, b));
            if (takes) best = r;
        }
        ((int32_t *)out->data)[o] = (int32_t)best;
    }
    return TPUCL_OK;
}

static tpucl_status evaluate_argmax(const tp_node *node, const tp_host_tensor *inputs,
                                    const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    return evaluate_arg(node, TP_REDUCE_MAX, &inputs[0], out);
}

static tpucl_status evaluate_argmin(const tp_node *node, const tp_host_tensor *inputs,
                                    const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    return evaluate_arg(node, TP_REDUCE_MIN, &inputs[0], out);
}

const tp_opdef tp_opdef_reduce = {
    .name = "reduce",
    .op_class = TP_OP_REDUCE,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Combines the elements along some dimensions in the VPU's order; keeps the dtype.",
    .attrs = reduce_attrs,
    .infer = infer_reduce,
    .gradient = gradient,
    .evaluate = evaluate_reduce,
    .flops = flops_operand,
};

const tp_opdef tp_opdef_argmax = {
    .name = "argmax",
    .op_class = TP_OP_REDUCE,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Index (s32) of the first largest element along a dimension; NaN is the largest.",
    .attrs = arg_attrs,
    .infer = infer_arg,
    .evaluate = evaluate_argmax,
    .flops = flops_operand,
};

const tp_opdef tp_opdef_argmin = {
    .name = "argmin",
    .op_class = TP_OP_REDUCE,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "Index (s32) of the first smallest element along a dimension; NaN is the smallest.",
    .attrs = arg_attrs,
    .infer = infer_arg,
    .evaluate = evaluate_argmin,
    .flops = flops_operand,
};
