/* SPDX-License-Identifier: Apache-2.0
 * Two things that later passes rely on.
 *
 * Products: an operand whose batch, free or contracted axes cannot be walked with one stride each is
 * transposed to [batch..., free..., contracted...] first.
 *
 * Ports: the tensors behind outputs, updates and operands of all_reduce each have a place of their own
 * (outfeed record, variable, reduction range), so no node may be two of these, or be one and an input
 * at the same time. Where one would be, a reshape to the same shape stands between: a copy. The same
 * holds of what a loop stacks and carries, and of what a carry starts with: it is computed right into
 * the memory of stack or carry.
 */
#include "compile/pass.h"

#include <string.h>
#include "core/alloc.h"
#include "graph/attrs.h"
#include "graph/builder.h"
#include "graph/geometry.h"
#include "graph/opdef.h"
#include "graph/rewrite.h"

/* ---- products ---- */

static bool is_simple(const tp_index_map *a, const tp_index_map *b, const tp_index_map *c)
{
    int64_t stride;
    return tp_index_map_stride(a, &stride) && tp_index_map_stride(b, &stride) &&
           tp_index_map_stride(c, &stride);
}

/* The operand with its axes in the order batch, free, contracted. */
static tp_node_id reorder(tp_graph *graph, tp_node_id operand, const int32_t *batch,
                          int32_t batch_count, const int32_t *free_dims, int32_t free_count,
                          const int32_t *contract, int32_t contract_count)
{
    int64_t axes[TP_MAX_RANK];
    int32_t count = 0;
    for (int32_t i = 0; i < batch_count; i++)
        axes[count++] = batch[i];
    for (int32_t i = 0; i < free_count; i++)
        axes[count++] = free_dims[i];
    for (int32_t i = 0; i < contract_count; i++)
        axes[count++] = contract[i];
    return tp_op_transpose(graph, operand, axes);
}

static tpucl_status layout_dot(tp_rewrite *rewrite, const tp_graph *graph, tp_node_id id)
{
    const tp_node *node = tp_graph_node(graph, id);
    tp_graph *to = tp_rewrite_graph(rewrite);
    tp_dot_geometry g;
    TP_TRY(tp_dot_geometry_read(node, &tp_graph_node(graph, node->inputs[0])->shape,
                                &tp_graph_node(graph, node->inputs[1])->shape, &g));
    const bool a_is_simple = is_simple(&g.a_batch, &g.a_outer, &g.a_inner);
    const bool b_is_simple = is_simple(&g.b_batch, &g.b_outer, &g.b_inner);
    if (a_is_simple && b_is_simple) {
        tp_rewrite_copy(rewrite, id);
        return TPUCL_OK;
    }
    tp_dot_dims dims = {.batch_count = g.batch_count, .contract_count = g.contract_count};
    tp_node_id a = tp_rewrite_of(rewrite, node->inputs[0]);
    tp_node_id b = tp_rewrite_of(rewrite, node->inputs[1]);
    if (!a_is_simple)
        a = reorder(to, a, g.a_batch_dims, g.batch_count, g.a_free_dims, g.a_free_count,
                    g.a_contract_dims, g.contract_count);
    if (!b_is_simple)
        b = reorder(to, b, g.b_batch_dims, g.batch_count, g.b_free_dims, g.b_free_count,
                    g.b_contract_dims, g.contract_count);
    for (int32_t i = 0; i < g.batch_count; i++) {
        dims.lhs_batch[i] = a_is_simple ? g.a_batch_dims[i] : i;
        dims.rhs_batch[i] = b_is_simple ? g.b_batch_dims[i] : i;
    }
    for (int32_t i = 0; i < g.contract_count; i++) {
        dims.lhs_contract[i] =
            a_is_simple ? g.a_contract_dims[i] : g.batch_count + g.a_free_count + i;
        dims.rhs_contract[i] =
            b_is_simple ? g.b_contract_dims[i] : g.batch_count + g.b_free_count + i;
    }
    const char *precision = tp_node_attr_text(node, "precision", "default");
    tp_rewrite_map(rewrite, id, tp_op_dot_general(to, a, b, &dims, precision));
    return TPUCL_OK;
}

/* ---- ports ---- */

/* Nodes (of the new graph) that are a port already; grows with the graph. */
typedef struct claims {
    bool *is_claimed;
    int32_t capacity;
} claims;

static tpucl_status claim(claims *c, tp_node_id id, bool *out_was_claimed)
{
    if (id >= c->capacity) {
        const int32_t capacity = id + 64;
        bool *grown = tp_alloc_grow(c->is_claimed, (size_t)c->capacity, (size_t)capacity, 1);
        if (!grown) return TPUCL_OUT_OF_MEMORY;
        c->is_claimed = grown;
        c->capacity = capacity;
    }
    *out_was_claimed = c->is_claimed[id];
    c->is_claimed[id] = true;
    return TPUCL_OK;
}

/* Has the node memory that nobody else may decide about? */
static bool has_own_place(const tp_node *node)
{
    if (node->def->op_class == TP_OP_COLLECTIVE || node->def->op_class == TP_OP_LOOP) return true;
    return node->def->op_class == TP_OP_SOURCE && strcmp(node->def->name, "iota") != 0 &&
           strcmp(node->def->name, "step") != 0;
}

/* The node itself when it may be the port, else a copy of it. */
static tpucl_status claim_or_copy(tp_graph *graph, claims *c, tp_node_id id, tp_node_id *out_id)
{
    bool was_claimed = true;
    *out_id = id;
    if (!has_own_place(tp_graph_node(graph, id))) TP_TRY(claim(c, id, &was_claimed));
    if (!was_claimed) return TPUCL_OK;
    const tp_shape shape = tp_graph_node(graph, id)->shape;
    *out_id = tp_op_reshape(graph, id, shape);
    TP_TRY(tp_graph_check(graph));
    return claim(c, *out_id, &was_claimed);
}

/* all_reduce works element by element, so it may change places with a reshape, which then costs no
 * copy. A replicated operand is copied in any case: the sum wants one from each core. */
static tpucl_status layout_all_reduce(tp_rewrite *rewrite, const tp_graph *graph,
                                      const bool *is_replicated, claims *c, tp_node_id id)
{
    tp_graph *to = tp_rewrite_graph(rewrite);
    const tp_node *node = tp_graph_node(graph, id);
    tp_node_id operand = tp_rewrite_of(rewrite, node->inputs[0]);
    while (tp_graph_node(to, operand)->def->op_class == TP_OP_RESHAPE)
        operand = tp_graph_node(to, operand)->inputs[0];
    if (is_replicated[node->inputs[0]])
        operand = tp_op_reshape(to, operand, tp_graph_node(to, operand)->shape);
    TP_TRY(tp_graph_check(to));
    TP_TRY(claim_or_copy(to, c, operand, &operand));
    tp_node_id sum = tp_graph_add(to, node->def->name, &operand, 1, node->attrs, node->attr_count);
    TP_TRY(tp_graph_check(to));
    if (!tp_shape_equal(&tp_graph_node(to, sum)->shape, &node->shape))
        sum = tp_op_reshape(to, sum, node->shape);
    TP_TRY(tp_graph_check(to));
    tp_rewrite_map(rewrite, id, sum);
    return TPUCL_OK;
}

/* The operand that lives in the memory of stack or carry; -1: none. */
static int32_t hosted_operand(tp_loop_part part)
{
    if (part == TP_LOOP_SLICE) return -1;
    return part == TP_LOOP_LAST ? 1 : 0;
}

/* A single constant has no memory that a turn could take a slice of. */
static bool is_literal(const tp_node *node)
{
    return strcmp(node->def->name, "constant") == 0 && tp_shape_elems(&node->shape) == 1;
}

static tpucl_status layout_loop(tp_rewrite *rewrite, const tp_graph *graph, const int32_t *uses,
                                claims *c, tp_node_id id)
{
    tp_graph *to = tp_rewrite_graph(rewrite);
    const tp_node *node = tp_graph_node(graph, id);
    const int32_t hosted = hosted_operand(node->def->loop_part);
    tp_node_id inputs[TP_MAX_INPUTS];
    for (int32_t i = 0; i < node->input_count; i++) {
        inputs[i] = tp_rewrite_of(rewrite, node->inputs[i]);
        const bool is_shared = node->def->loop_part == TP_LOOP_CARRY && uses[node->inputs[i]] > 1;
        if (is_shared || (i != hosted && is_literal(tp_graph_node(to, inputs[i]))))
            inputs[i] = tp_op_reshape(to, inputs[i], tp_graph_node(to, inputs[i])->shape);
        TP_TRY(tp_graph_check(to));
        if (i == hosted) TP_TRY(claim_or_copy(to, c, inputs[i], &inputs[i]));
    }
    const tp_node_id copy =
        tp_graph_add(to, node->def->name, inputs, node->input_count, node->attrs, node->attr_count);
    TP_TRY(tp_graph_check(to));
    to->nodes[copy].name = tp_arena_strdup(to->arena, node->name);
    if (!to->nodes[copy].name) return TPUCL_OUT_OF_MEMORY;
    tp_rewrite_map(rewrite, id, copy);
    return TPUCL_OK;
}

static tpucl_status layout_ports(tp_graph *graph, claims *c)
{
    for (int32_t i = 0; i < graph->update_count; i++)
        TP_TRY(claim_or_copy(graph, c, graph->updates[i].value, &graph->updates[i].value));
    for (int32_t i = 0; i < graph->output_count; i++)
        TP_TRY(claim_or_copy(graph, c, graph->outputs[i].node, &graph->outputs[i].node));
    return TPUCL_OK;
}

static tpucl_status layout_nodes(tp_rewrite *rewrite, const tp_graph *graph,
                                 const bool *is_replicated, const int32_t *uses, claims *c)
{
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        if (!tp_rewrite_is_live(rewrite, id)) continue;
        const tp_node *node = tp_graph_node(graph, id);
        if (strcmp(node->def->name, "dot_general") == 0)
            TP_TRY(layout_dot(rewrite, graph, id));
        else if (node->def->op_class == TP_OP_COLLECTIVE)
            TP_TRY(layout_all_reduce(rewrite, graph, is_replicated, c, id));
        else if (node->def->op_class == TP_OP_LOOP)
            TP_TRY(layout_loop(rewrite, graph, uses, c, id));
        else
            tp_rewrite_copy(rewrite, id);
        TP_TRY(tp_graph_check(tp_rewrite_graph(rewrite)));
    }
    return TPUCL_OK;
}

tpucl_status tp_pass_layout(const tp_graph *graph, tp_graph **out_graph)
{
    claims c = {0};
    tp_rewrite *rewrite = NULL;
    tpucl_status status;
    *out_graph = NULL;
    bool *is_replicated = TP_NEW_ARRAY(bool, (size_t)graph->node_count);
    int32_t *uses = TP_NEW_ARRAY(int32_t, (size_t)graph->node_count);
    TP_TRY_GOTO(status, is_replicated && uses ? TPUCL_OK : TPUCL_OUT_OF_MEMORY, done);
    tp_graph_mark_replicated(graph, is_replicated);
    tp_graph_count_uses(graph, uses);
    TP_TRY_GOTO(status, tp_rewrite_begin(graph, &rewrite), done);
    TP_TRY_GOTO(status, layout_nodes(rewrite, graph, is_replicated, uses, &c), done);
    tp_rewrite *const finished = rewrite;
    rewrite = NULL;
    TP_TRY_GOTO(status, tp_rewrite_finish(finished, out_graph), done);
    TP_TRY_GOTO(status, layout_ports(*out_graph, &c), done);
done:
    tp_rewrite_cancel(rewrite);
    tp_free(is_replicated);
    tp_free(uses);
    tp_free(c.is_claimed);
    if (status != TPUCL_OK) {
        tp_graph_destroy(*out_graph);
        *out_graph = NULL;
    }
    return status;
}
