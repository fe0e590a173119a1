/* SPDX-License-Identifier: Apache-2.0
 * Building a graph from another one. */
#include "graph/rewrite.h"

#include <string.h>

#include "core/alloc.h"
#include "graph/attrs.h"
#include "graph/loop.h"
#include "graph/verify.h"

struct tp_rewrite {
    const tp_graph *from;
    tp_graph *to;
    tp_node_id *map; /* old id -> new id, TP_NO_NODE: not yet */
    bool *is_live;
};

void tp_graph_mark_live(const tp_graph *graph, bool *out_is_live)
{
    memset(out_is_live, 0, (size_t)graph->node_count * sizeof(bool));
    for (int32_t i = 0; i < graph->update_count; ++i)
        out_is_live[graph->updates[i].value] = true;
    for (int32_t i = 0; i < graph->output_count; ++i)
        out_is_live[graph->outputs[i].node] = true;
    do
        for (tp_node_id id = graph->node_count - 1; id >= 0; --id)
            for (int32_t i = 0; out_is_live[id] && i < graph->nodes[id].input_count; ++i)
                out_is_live[graph->nodes[id].inputs[i]] = true;
    while (tp_loop_keep_carries(graph, out_is_live));
}

void tp_graph_count_uses(const tp_graph *graph, int32_t *out_counts)
{
    memset(out_counts, 0, (size_t)graph->node_count * sizeof(int32_t));
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        for (int32_t i = 0; i < graph->nodes[id].input_count; ++i)
            ++out_counts[graph->nodes[id].inputs[i]];
    for (int32_t i = 0; i < graph->update_count; ++i)
        ++out_counts[graph->updates[i].value];
    for (int32_t i = 0; i < graph->output_count; ++i)
        ++out_counts[graph->outputs[i].node];
}

tpucl_status tp_rewrite_begin(const tp_graph *from, tp_rewrite **out_rewrite)
{
    TP_TRY(tp_graph_check(from));
    tp_rewrite *rewrite = TP_NEW(tp_rewrite);
    if (!rewrite) return TPUCL_OUT_OF_MEMORY;
    rewrite->from = from;
    rewrite->map = TP_NEW_ARRAY(tp_node_id, (size_t)from->node_count);
    rewrite->is_live = TP_NEW_ARRAY(bool, (size_t)from->node_count);
    tpucl_status status = rewrite->map && rewrite->is_live ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) status = tp_graph_create(from->ops, &rewrite->to);
    if (status != TPUCL_OK) {
        tp_rewrite_cancel(rewrite);
        return status;
    }
    for (tp_node_id id = 0; id < from->node_count; ++id)
        rewrite->map[id] = TP_NO_NODE;
    tp_graph_mark_live(from, rewrite->is_live);
    for (int32_t i = 0; i < from->input_count; ++i)
        rewrite->is_live[from->inputs[i].node] = true;
    for (int32_t i = 0; i < from->variable_count; ++i)
        rewrite->is_live[from->variables[i].node] = true;
    *out_rewrite = rewrite;
    return TPUCL_OK;
}

void tp_rewrite_cancel(tp_rewrite *rewrite)
{
    if (!rewrite) return;
    tp_graph_destroy(rewrite->to);
    tp_free(rewrite->map);
    tp_free(rewrite->is_live);
    tp_free(rewrite);
}

tp_graph *tp_rewrite_graph(tp_rewrite *rewrite)
{
    return rewrite->to;
}

bool tp_rewrite_is_live(const tp_rewrite *rewrite, tp_node_id old_id)
{
    return rewrite->is_live[old_id];
}

tp_node_id tp_rewrite_of(const tp_rewrite *rewrite, tp_node_id old_id)
{
    return rewrite->map[old_id];
}

tp_node_id tp_rewrite_copy(tp_rewrite *rewrite, tp_node_id old_id)
{
    if (rewrite->map[old_id] != TP_NO_NODE) return rewrite->map[old_id];
    const tp_node *old = &rewrite->from->nodes[old_id];
    tp_node_id inputs[TP_MAX_INPUTS];
    for (int32_t i = 0; i < old->input_count; ++i)
        inputs[i] = rewrite->map[old->inputs[i]];
    const tp_node_id id = tp_graph_add(rewrite->to, old->def->name, inputs, old->input_count,
                                       old->attrs, old->attr_count);
    if (id == TP_NO_NODE) return id;
    const char *name = tp_arena_strdup(rewrite->to->arena, old->name);
    if (!name) return tp_graph_keep_error(rewrite->to);
    rewrite->to->nodes[id].name = name;
    rewrite->map[old_id] = id;
    return id;
}

void tp_rewrite_map(tp_rewrite *rewrite, tp_node_id old_id, tp_node_id new_id)
{
    tp_graph *to = rewrite->to;
    if (to->has_failed) return;
    const tp_node *old = &rewrite->from->nodes[old_id];
    if (new_id < 0 || new_id >= to->node_count || to->nodes[new_id].dtype != old->dtype ||
        !tp_shape_equal(&to->nodes[new_id].shape, &old->shape)) {
        tp_graph_fail(to, "node %d ('%s') cannot stand for node %d ('%s') of another type", new_id,
                      new_id >= 0 && new_id < to->node_count ? to->nodes[new_id].name : "", old_id,
                      old->name);
        return;
    }
    rewrite->map[old_id] = new_id;
}

/* Entries of inputs and variables, updates and outputs. */
static void copy_entries(tp_rewrite *rewrite)
{
    const tp_graph *from = rewrite->from;
    tp_graph *to = rewrite->to;
    for (int32_t i = 0; i < from->input_count; ++i)
        tp_graph_register_input(to, rewrite->map[from->inputs[i].node]);
    for (int32_t i = 0; i < from->variable_count; ++i) {
        tp_variable variable = from->variables[i];
        variable.node = rewrite->map[variable.node];
        tp_graph_register_variable(to, &variable);
    }
    for (int32_t i = 0; i < from->update_count; ++i)
        tp_graph_add_update(to, rewrite->map[from->variables[from->updates[i].variable].node],
                            rewrite->map[from->updates[i].value]);
    for (int32_t i = 0; i < from->output_count; ++i)
        tp_graph_add_output(to, from->outputs[i].name, rewrite->map[from->outputs[i].node]);
}

tpucl_status tp_rewrite_finish(tp_rewrite *rewrite, tp_graph **out_graph)
{
    tpucl_status status = TPUCL_OK;
    for (tp_node_id id = 0; id < rewrite->from->node_count && !rewrite->to->has_failed; ++id)
        if (rewrite->is_live[id]) tp_rewrite_copy(rewrite, id);
    if (!rewrite->to->has_failed) copy_entries(rewrite);
    TP_TRY_GOTO(status, tp_graph_check(rewrite->to), done);
    TP_TRY_GOTO(status, tp_graph_verify(rewrite->to), done);
    *out_graph = rewrite->to;
    rewrite->to = NULL;
done:
    tp_rewrite_cancel(rewrite);
    return status;
}

tpucl_status tp_graph_compact(const tp_graph *graph, tp_graph **out_graph)
{
    tp_rewrite *rewrite;
    TP_TRY(tp_rewrite_begin(graph, &rewrite));
    TP_TRY(tp_rewrite_finish(rewrite, out_graph));
    return TPUCL_OK;
}
