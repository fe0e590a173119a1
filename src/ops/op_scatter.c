/* SPDX-License-Identifier: Apache-2.0
 * scatter(operand, scatter_indices, updates): StableHLO's, with the four combiners that models use.
 *
 * Contract: the updates that lie at one element are combined with it in rising order of their row-major
 * number, r = ((operand op u1) op u2) op ..., f32 and bf16 in f32; the sum is flushed (and rounded) once
 * at its end. replace: the last one stays. add of integers wraps; max and min are those of reduce. An
 * element that no update reaches keeps its bits.
 * An update outside of the operand is left out, element by element (out_of_range "skip", the default and
 * StableHLO's rule), or its index is clamped as gather's is ("clamp", for gather's gradient). */
#include "ops/op_scatter.h"

#include <string.h>

#include "core/alloc.h"
#include "graph/builder.h"
#include "num/reduce.h"
#include "ops/host_values.h"
#include "ops/op_gather.h"
#include "ops/op_util.h"

static bool is_kind(const tp_node *node, const char *kind)
{
    return strcmp(tp_node_attr_text(node, "kind", ""), kind) == 0;
}

static bool clamps(const tp_node *node)
{
    return strcmp(tp_node_attr_text(node, "out_of_range", "skip"), "clamp") == 0;
}

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape)
{
    const tp_node *operand = tp_op_input(graph, node, 0), *indices = tp_op_input(graph, node, 1);
    const tp_node *updates = tp_op_input(graph, node, 2);
    const uint32_t dtypes =
        is_kind(node, "replace") ? TP_DTYPES_ALL : TP_DTYPES_FLOAT | TP_DTYPES_INT;
    tp_indexing ix;
    TP_TRY(tp_op_check_dtype(graph, node, 0, dtypes));
    TP_TRY(tp_indexing_check_indices(graph, node, 1));
    if (updates->dtype != operand->dtype)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the updates are %s, the operand is %s",
                       tp_dtype_name(updates->dtype), tp_dtype_name(operand->dtype));
    TP_TRY(tp_indexing_read(node, &operand->shape, &indices->shape, &updates->shape, &ix));
    *out_dtype = operand->dtype;
    *out_shape = operand->shape;
    return TPUCL_OK;
}

/* ---- evaluation ---- */

static tp_reduce_op reduce_op(const tp_node *node)
{
    return is_kind(node, "max")   ? TP_REDUCE_MAX
           : is_kind(node, "min") ? TP_REDUCE_MIN
                                  : TP_REDUCE_ADD;
}

static tpucl_status combine_floats(const tp_node *node, const tp_indexing *ix,
                                   const tp_host_tensor *inputs, tp_host_tensor *out)
{
    const int64_t elems = tp_shape_elems(&out->shape);
    const tp_reduce_op op = reduce_op(node);
    const bool is_clamping = clamps(node);
    float *sums = TP_NEW_ARRAY(float, (size_t)elems + 1);
    if (!sums) return TPUCL_OUT_OF_MEMORY;
    for (int64_t i = 0; i < elems; ++i)
        sums[i] = tp_host_load(&inputs[0], i);
    int64_t at[TP_MAX_RANK] = {0}, number = 0;
    if (tp_shape_elems(&ix->dense) > 0) do {
            int64_t offset;
            if (tp_indexing_locate(ix, &inputs[1], is_clamping, at, &offset))
                sums[offset] = tp_reduce_apply(op, sums[offset], tp_host_load(&inputs[2], number));
            ++number;
        } while (tp_indexing_advance(ix, at));
    for (int64_t i = 0; i < elems; ++i)
        tp_host_store(out, i, sums[i]);
    tp_free(sums);
    return TPUCL_OK;
}

static uint32_t combine_words(const tp_node *node, bool is_signed, uint32_t a, uint32_t b)
{
    if (is_kind(node, "add")) return a + b;
    const bool is_less = is_signed ? (int32_t)a < (int32_t)b : a < b;
    return is_less == is_kind(node, "max") ? b : a;
}

static void combine_integers(const tp_node *node, const tp_indexing *ix,
                             const tp_host_tensor *inputs, tp_host_tensor *out)
{
    uint32_t *words = out->data;
    const bool is_signed = out->dtype == TP_S32, is_clamping = clamps(node);
    int64_t at[TP_MAX_RANK] = {0}, number = 0;
    if (tp_shape_elems(&ix->dense) == 0) return;
    do {
        int64_t offset;
        if (tp_indexing_locate(ix, &inputs[1], is_clamping, at, &offset))
            words[offset] = combine_words(node, is_signed, words[offset],
                                          ((const uint32_t *)inputs[2].data)[number]);
        ++number;
    } while (tp_indexing_advance(ix, at));
}

static tpucl_status evaluate(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    tp_indexing ix;
    TP_TRY(tp_indexing_read(node, &inputs[0].shape, &inputs[1].shape, &inputs[2].shape, &ix));
    if (tp_dtype_is_float(out->dtype) && !is_kind(node, "replace"))
        return combine_floats(node, &ix, inputs, out);
    memcpy(out->data, inputs[0].data, (size_t)tp_shape_bytes(&out->shape, out->dtype));
    if (is_kind(node, "replace"))
        tp_indexing_copy(&ix, &inputs[1], clamps(node), tp_dtype_size(out->dtype), out->data,
                         inputs[2].data, true);
    else
        combine_integers(node, &ix, inputs, out);
    return TPUCL_OK;
}

/* ---- gradient ---- */

typedef struct scatter_parts {
    tp_node_id operand, indices, updates, y, d;
    tp_index_dims dims;
    int64_t slices[TP_MAX_RANK];
    const char *gather_rule, *scatter_rule;
} scatter_parts;

/* Slice sizes of the gather that reads what the scatter wrote. */
static void slices_of(const tp_graph *g, scatter_parts *p)
{
    const tp_shape *operand = &g->nodes[p->operand].shape, *updates = &g->nodes[p->updates].shape;
    for (int32_t dim = 0, next = 0; dim < operand->rank; ++dim) {
        bool is_dropped = false;
        for (int32_t i = 0; i < p->dims.collapsed_count; ++i)
            is_dropped = is_dropped || p->dims.collapsed[i] == dim;
        for (int32_t i = 0; i < p->dims.batch_count; ++i)
            is_dropped = is_dropped || p->dims.batch[i] == dim;
        p->slices[dim] = is_dropped ? (operand->dims[dim] < 1 ? operand->dims[dim] : 1)
                                    : updates->dims[p->dims.window[next++]];
    }
}

static tp_node_id gather_back(tp_graph *g, const scatter_parts *p, tp_node_id from)
{
    return tp_op_gather(g, from, p->indices, &p->dims, p->slices, p->gather_rule);
}

static tp_node_id zeros_like(tp_graph *g, tp_node_id node)
{
    return tp_op_fill(g, g->nodes[node].dtype, g->nodes[node].shape, 0);
}

/* What was replaced gets nothing, and of several updates of one element only the last gets something:
 * the one whose number is found there when the numbers are scattered. */
static void replace_gradient(tp_graph *g, const scatter_parts *p, tp_node_id *d_inputs)
{
    const tp_shape shape = g->nodes[p->updates].shape;
    const tp_shape flat = {1, {tp_shape_elems(&shape)}};
    const tp_node_id numbers = tp_op_reshape(g, tp_op_iota(g, TP_S32, flat, 0), shape);
    const tp_node_id none = tp_op_fill(g, TP_S32, g->nodes[p->operand].shape, -1);
    const tp_node_id last =
        tp_op_scatter(g, none, p->indices, numbers, &p->dims, "replace", p->scatter_rule);
    d_inputs[0] = tp_op_select(g, tp_op_compare(g, "EQ", last, none), p->d, zeros_like(g, p->d));
    const tp_node_id d_updates = gather_back(g, p, p->d);
    d_inputs[2] = tp_op_select(g, tp_op_compare(g, "EQ", gather_back(g, p, last), numbers),
                               d_updates, zeros_like(g, d_updates));
}

/* The operand's element and the updates that equal the result share its gradient, as in reduce. */
static void extreme_gradient(tp_graph *g, const scatter_parts *p, tp_node_id *d_inputs)
{
    const tp_node_id is_kept = tp_op_compare(g, "EQ", p->operand, p->y);
    const tp_node_id is_taken = tp_op_compare(g, "EQ", p->updates, gather_back(g, p, p->y));
    const tp_node_id sharers =
        tp_op_scatter(g, tp_op_convert(g, is_kept, TP_F32), p->indices,
                      tp_op_convert(g, is_taken, TP_F32), &p->dims, "add", p->scatter_rule);
    const tp_node_id share = tp_op_divide(g, tp_op_convert(g, p->d, TP_F32), sharers);
    const tp_node_id theirs = gather_back(g, p, share);
    d_inputs[0] = tp_op_convert(g, tp_op_select(g, is_kept, share, zeros_like(g, share)),
                                g->nodes[p->d].dtype);
    d_inputs[2] = tp_op_convert(g, tp_op_select(g, is_taken, theirs, zeros_like(g, theirs)),
                                g->nodes[p->d].dtype);
}

static void gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node node = g->nodes[y]; /* a copy: adding nodes may move them */
    scatter_parts p = {.operand = node.inputs[0],
                       .indices = node.inputs[1],
                       .updates = node.inputs[2],
                       .y = y,
                       .d = d,
                       .gather_rule = clamps(&node) ? "clamp" : "zero",
                       .scatter_rule = clamps(&node) ? "clamp" : "skip"};
    if (tp_index_dims_read(&node, &p.dims) != TPUCL_OK) {
        tp_graph_keep_error(g);
        return;
    }
    slices_of(g, &p);
    if (is_kind(&node, "replace")) {
        replace_gradient(g, &p, d_inputs);
    } else if (is_kind(&node, "add")) {
        d_inputs[0] = d;
        d_inputs[2] = gather_back(g, &p, d);
    } else {
        extreme_gradient(g, &p, d_inputs);
    }
}

/* One per update. */
static double flops(const tp_graph *graph, const tp_node *node)
{
    return is_kind(node, "replace") ? 0
                                    : (double)tp_shape_elems(&tp_op_input(graph, node, 2)->shape);
}

static const tp_attr_spec attrs[] = {
    {"update_window_dims", TP_ATTR_INTS, false, NULL, "update dims that run through the slices"},
    {"inserted_window_dims", TP_ATTR_INTS, false, NULL, "operand dims that the updates lack"},
    {"input_batching_dims", TP_ATTR_INTS, true, NULL,
     "operand dims that go with dims of the indices"},
    {"scatter_indices_batching_dims", TP_ATTR_INTS, true, NULL, "those dims of the indices"},
    {"scatter_dims_to_operand_dims", TP_ATTR_INTS, false, NULL,
     "operand dim of each component of an index"},
    {"index_vector_dim", TP_ATTR_INT, false, NULL,
     "dim of the indices that holds the components; their rank: one component"},
    {"kind", TP_ATTR_TEXT, false, "add|max|min|replace", "how an update meets what is there"},
    {"out_of_range", TP_ATTR_TEXT, true, "skip|clamp", "indices outside, default skip"},
    {0}};

const tp_opdef tp_opdef_scatter = {
    .name = "scatter",
    .op_class = TP_OP_MEMORY,
    .min_inputs = 3,
    .max_inputs = 3,
    .doc =
        "The operand with updates combined into the places that the indices (s32 or u32) say, in "
        "rising order of the updates.",
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .flops = flops,
};
