/* SPDX-License-Identifier: Apache-2.0
 * Where products read their operands. Transposes and reshapes of an operand are strides, as long as
 * one stride per role is enough; a convert to bf16 is left to the packing, where the f32 tensor is in
 * memory anyway (weights, inputs): the MXU rounds f32 operands just as the convert would. Likewise f32 made of
 * bf16 weights is read as those. At higher precision it would see more than the convert leaves, so there the
 * convert stays.
 */
#include "compile/pass.h"

#include <string.h>
#include "graph/attrs.h"
#include "graph/geometry.h"
#include "graph/opdef.h"

/* Strides of a node's axes in some tensor below it. */
typedef struct view {
    tp_shape shape;
    int64_t strides[TP_MAX_RANK];
} view;

#define MAX_CHAIN 16

/* The strides of `node` over its operand seen as `inner`; false when there are none. */
static bool view_reshape(const tp_node *node, const view *inner, view *out)
{
    /* As NumPy does it: groups of axes with equal products; within a group the inner axes must run
     * through memory as one. */
    int from = 0, to = 0;
    out->shape = node->shape;
    while (from < inner->shape.rank || to < node->shape.rank) {
        const int from_start = from, to_start = to;
        int64_t from_product = from < inner->shape.rank ? inner->shape.dims[from++] : 1;
        int64_t to_product = to < node->shape.rank ? node->shape.dims[to++] : 1;
        while (from_product != to_product) {
            if (from_product < to_product && from < inner->shape.rank)
                from_product *= inner->shape.dims[from++];
            else if (from_product > to_product && to < node->shape.rank)
                to_product *= node->shape.dims[to++];
            else
                return false;
        }
        int64_t stride = 1;
        bool has_stride = false;
        int64_t expected = 0;
        for (int i = from - 1; i >= from_start; i--) {
            if (inner->shape.dims[i] == 1) continue;
            if (!has_stride) {
                stride = inner->strides[i];
                has_stride = true;
            } else if (inner->strides[i] != expected) {
                return false;
            }
            expected = inner->strides[i] * inner->shape.dims[i];
        }
        for (int i = to - 1; i >= to_start; i--) {
            out->strides[i] = stride;
            stride *= node->shape.dims[i];
        }
    }
    return true;
}

static bool view_through(const tp_node *node, const view *inner, view *out)
{
    if (node->def->op_class == TP_OP_RESHAPE) return view_reshape(node, inner, out);
    *out = *inner;
    if (strcmp(node->def->name, "convert") == 0) return true;
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(node, "axes", &count);
    out->shape = node->shape;
    for (int32_t i = 0; i < count; i++)
        out->strides[i] = inner->strides[axes[i]];
    return true;
}

static bool is_view_op(const tp_node *node)
{
    return node->def->op_class == TP_OP_RESHAPE || strcmp(node->def->name, "transpose") == 0;
}

/* In memory whatever the passes decide. */
static bool is_hard_base(const tp_node *node)
{
    return (node->def->op_class == TP_OP_SOURCE &&
            (strcmp(node->def->name, "input") == 0 || strcmp(node->def->name, "variable") == 0)) ||
           node->def->op_class == TP_OP_COLLECTIVE || node->def->op_class == TP_OP_LOOP;
}

/* `operand` and what it is a view of, the operand first. Converts between f32 and bf16 are looked through
 * when `fold_convert`: the product rounds to bf16 itself, and what was widened is unchanged by that. */
static int32_t list_chain(const tp_fusion *fusion, tp_node_id operand, bool fold_convert,
                          tp_node_id *out_chain)
{
    int32_t count = 0;
    tp_node_id id = operand;
    for (;;) {
        out_chain[count++] = id;
        const tp_node *node = tp_graph_node(fusion->graph, id);
        const bool is_fold =
            fold_convert && strcmp(node->def->name, "convert") == 0 &&
            tp_dtype_is_float(node->dtype) &&
            tp_dtype_is_float(tp_graph_node(fusion->graph, node->inputs[0])->dtype);
        if (count == MAX_CHAIN || !(is_view_op(node) || is_fold)) return count;
        id = node->inputs[0];
    }
}

/* The view of chain[0] in chain[at]. */
static bool view_of(const tp_fusion *fusion, const tp_node_id *chain, int32_t at, view *out)
{
    out->shape = tp_graph_node(fusion->graph, chain[at])->shape;
    tp_shape_strides(&out->shape, out->strides);
    for (int32_t i = at - 1; i >= 0; i--) {
        const view inner = *out;
        if (!view_through(tp_graph_node(fusion->graph, chain[i]), &inner, out)) return false;
    }
    return true;
}

static bool role_stride(const view *v, const int32_t *dims, int32_t count, int64_t *out_stride)
{
    tp_index_map map = {.count = count};
    for (int32_t i = 0; i < count; i++) {
        map.sizes[i] = v->shape.dims[dims[i]];
        map.strides[i] = v->strides[dims[i]];
    }
    return tp_index_map_stride(&map, out_stride);
}

typedef struct role_dims {
    const int32_t *batch, *outer, *inner;
    int32_t batch_count, outer_count, inner_count;
} role_dims;

static bool view_strides(const view *v, const role_dims *roles, tp_operand_view *out)
{
    return role_stride(v, roles->batch, roles->batch_count, &out->stride_batch) &&
           role_stride(v, roles->outer, roles->outer_count, &out->stride_outer) &&
           role_stride(v, roles->inner, roles->inner_count, &out->stride_inner);
}

/* Among the chain: the deepest tensor that is in memory anyway; without one, the deepest that is
 * reached without a convert. */
static tpucl_status choose_base(tp_fusion *fusion, tp_node_id operand, bool fold_convert,
                                const role_dims *roles, tp_operand_view *out)
{
    tp_node_id chain[MAX_CHAIN];
    const int32_t count = list_chain(fusion, operand, fold_convert, chain);
    bool is_found = false, is_past_convert = false;
    for (int32_t i = 0; i < count; i++) {
        const tp_node *node = tp_graph_node(fusion->graph, chain[i]);
        view v;
        tp_operand_view candidate = {.base = chain[i]};
        const bool is_usable = view_of(fusion, chain, i, &v) && view_strides(&v, roles, &candidate);
        if (is_usable && (!is_past_convert || is_hard_base(node))) {
            *out = candidate;
            is_found = true;
        }
        if (strcmp(node->def->name, "convert") == 0) is_past_convert = true;
    }
    if (!is_found)
        return TP_FAIL(TPUCL_INTERNAL, "operand %%%d of a product has no single stride per role",
                       (int)operand);
    fusion->is_forced[out->base] = fusion->is_stored[out->base] = true;
    return TPUCL_OK;
}

static tpucl_status resolve_dot(tp_fusion *fusion, tp_node_id id)
{
    const tp_node *node = tp_graph_node(fusion->graph, id);
    tp_dot_geometry g;
    TP_TRY(tp_dot_geometry_read(node, &tp_graph_node(fusion->graph, node->inputs[0])->shape,
                                &tp_graph_node(fusion->graph, node->inputs[1])->shape, &g));
    const bool fold = g.precision == TP_PRECISION_DEFAULT;
    const role_dims a = {g.a_batch_dims, g.a_free_dims,  g.a_contract_dims,
                         g.batch_count,  g.a_free_count, g.contract_count};
    const role_dims b = {g.b_batch_dims, g.b_free_dims,  g.b_contract_dims,
                         g.batch_count,  g.b_free_count, g.contract_count};
    TP_TRY(choose_base(fusion, node->inputs[0], fold, &a, &fusion->operands[2 * id]));
    return choose_base(fusion, node->inputs[1], fold, &b, &fusion->operands[2 * id + 1]);
}

/* Convolutions read their operands as they lie: NHWC, HWIO. All axes as one role of stride 1. */
static tpucl_status resolve_conv(tp_fusion *fusion, tp_node_id id)
{
    static const int32_t all[TP_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    const tp_node *node = tp_graph_node(fusion->graph, id);
    const bool fold = strcmp(tp_node_attr_text(node, "precision", "default"), "default") == 0;
    for (int i = 0; i < 2; i++) {
        const role_dims roles = {
            .outer = all, .outer_count = tp_graph_node(fusion->graph, node->inputs[i])->shape.rank};
        TP_TRY(choose_base(fusion, node->inputs[i], fold, &roles, &fusion->operands[2 * id + i]));
        const int64_t stride = fusion->operands[2 * id + i].stride_outer;
        if (stride > 1) {
            /* A transposed view that happens to have one stride: read the operand itself. */
            fusion->operands[2 * id + i].base = node->inputs[i];
            fusion->is_forced[node->inputs[i]] = fusion->is_stored[node->inputs[i]] = true;
        }
    }
    return TPUCL_OK;
}

tpucl_status tp_pass_precision(tp_fusion *fusion)
{
    for (tp_node_id id = 0; id < fusion->graph->node_count; id++) {
        const tp_node *node = tp_graph_node(fusion->graph, id);
        if (!fusion->is_live[id] || node->def->op_class != TP_OP_MXU) continue;
        if (strcmp(node->def->name, "dot_general") == 0)
            TP_TRY(resolve_dot(fusion, id));
        else
            TP_TRY(resolve_conv(fusion, id));
    }
    return TPUCL_OK;
}
