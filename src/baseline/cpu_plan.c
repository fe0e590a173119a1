/* SPDX-License-Identifier: Apache-2.0
 * Sorts a graph's nodes into clusters and single items. A cluster stays open while nodes of its size arrive;
 * it is closed (placed in the order) as soon as something else needs a value of it.
 */
#include <string.h>
#include "baseline/cpu_internal.h"

static tp_cpu_action action_of(const tp_node *node)
{
    switch (node->def->op_class) {
    case TP_OP_SOURCE:
        return strcmp(node->def->name, "iota") == 0 || strcmp(node->def->name, "step") == 0
                   ? TP_CPU_WHOLE
                   : TP_CPU_NOTHING;
    case TP_OP_RESHAPE:
    case TP_OP_COLLECTIVE:
        return TP_CPU_ALIAS;
    case TP_OP_ELEMENTWISE:
    case TP_OP_BROADCAST:
        return strcmp(node->def->name, "stop_gradient") == 0 ? TP_CPU_ALIAS : TP_CPU_TILED;
    default:
        return TP_CPU_WHOLE;
    }
}

static void mark_live(const tp_graph *graph, bool *is_live)
{
    for (int32_t i = 0; i < graph->update_count; i++)
        is_live[graph->updates[i].value] = true;
    for (int32_t i = 0; i < graph->output_count; i++)
        is_live[graph->outputs[i].node] = true;
    for (tp_node_id id = graph->node_count - 1; id >= 0; id--)
        for (int32_t i = 0; is_live[id] && i < graph->nodes[id].input_count; i++)
            is_live[graph->nodes[id].inputs[i]] = true;
}

/* The node whose elements an alias shows. */
static tp_node_id resolve(const tp_cpu_runner *runner, tp_node_id id)
{
    while (runner->actions[id] == TP_CPU_ALIAS)
        id = tp_cpu_node(runner, id)->inputs[0];
    return id;
}

/* Operands from other clusters come first; they are never open and waiting for this one, because a cluster
 * takes no node whose operands lie in an open cluster other than itself. */
static void close_cluster(tp_cpu_runner *runner, int32_t cluster, bool *is_closed)
{
    if (is_closed[cluster]) return;
    is_closed[cluster] = true;
    runner->items[runner->item_count++] = (tp_cpu_item){cluster, TP_NO_NODE};
}

static void close_operands(tp_cpu_runner *runner, const tp_node *node, int32_t but, bool *is_closed)
{
    for (int32_t i = 0; i < node->input_count; i++) {
        int32_t cluster = runner->cluster_of[resolve(runner, node->inputs[i])];
        if (cluster >= 0 && cluster != but) close_cluster(runner, cluster, is_closed);
    }
}

/* The open cluster of this size, or a new one; -1 when memory fails. */
static int32_t find_cluster(tp_cpu_runner *runner, int64_t elems, const bool *is_closed)
{
    for (int32_t i = runner->cluster_count - 1; i >= 0; i--)
        if (runner->clusters[i].elems == elems && !is_closed[i]) return i;
    tp_cpu_cluster *cluster = &runner->clusters[runner->cluster_count];
    cluster->nodes =
        TP_ARENA_NEW_ARRAY(runner->arena, tp_node_id, (size_t)runner->graph->node_count);
    if (!cluster->nodes) return -1;
    cluster->elems = elems;
    return runner->cluster_count++;
}

/* Inside a cluster a node may read only the same element of its operands; a broadcast, or an alias in
 * between, needs the whole value in memory first. */
static bool needs_stored_operand(const tp_cpu_runner *runner, const tp_node *node, int32_t cluster)
{
    for (int32_t i = 0; i < node->input_count; i++) {
        tp_node_id source = resolve(runner, node->inputs[i]);
        bool is_direct = source == node->inputs[i] && node->def->op_class == TP_OP_ELEMENTWISE;
        if (runner->cluster_of[source] == cluster && !is_direct) return true;
    }
    return false;
}

static tpucl_status place_tiled(tp_cpu_runner *runner, tp_node_id id, bool *is_closed)
{
    const tp_node *node = tp_cpu_node(runner, id);
    int64_t elems = tp_shape_elems(&node->shape);
    int32_t cluster = find_cluster(runner, elems, is_closed);
    if (cluster >= 0 && needs_stored_operand(runner, node, cluster)) {
        close_cluster(runner, cluster, is_closed);
        cluster = find_cluster(runner, elems, is_closed);
    }
    if (cluster < 0) return TPUCL_OUT_OF_MEMORY;
    close_operands(runner, node, cluster, is_closed);
    runner->cluster_of[id] = cluster;
    runner->slot_of[id] = runner->clusters[cluster].count;
    runner->clusters[cluster].nodes[runner->clusters[cluster].count++] = id;
    return TPUCL_OK;
}

/* Values that somebody outside their cluster reads are stored. */
static void mark_stored(const tp_cpu_runner *runner, const bool *is_live, bool *is_stored)
{
    const tp_graph *graph = runner->graph;
    for (tp_node_id id = 0; id < graph->node_count; id++)
        for (int32_t i = 0; is_live[id] && i < graph->nodes[id].input_count; i++) {
            tp_node_id input = graph->nodes[id].inputs[i];
            bool stays =
                runner->cluster_of[id] >= 0 && runner->cluster_of[id] == runner->cluster_of[input];
            if (!stays) is_stored[resolve(runner, input)] = true;
        }
    for (int32_t i = 0; i < graph->update_count; i++)
        is_stored[resolve(runner, graph->updates[i].value)] = true;
    for (int32_t i = 0; i < graph->output_count; i++)
        is_stored[resolve(runner, graph->outputs[i].node)] = true;
}

static tpucl_status allocate_values(tp_cpu_runner *runner, const bool *is_live,
                                    const bool *is_stored)
{
    const tp_graph *graph = runner->graph;
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        const tp_node *node = &graph->nodes[id];
        tp_host_tensor *value = &runner->values[id];
        *value = (tp_host_tensor){node->dtype, node->shape, value->data};
        if (!is_live[id]) continue;
        if (node->def->op_class == TP_OP_COLLECTIVE && strcmp(node->def->name, "all_reduce") != 0)
            return TP_FAIL(TPUCL_UNSUPPORTED, "node '%s' is %s; the CPU baseline has one core",
                           node->name, node->def->name);
        if (node->dtype == TP_BF16)
            return TP_FAIL(TPUCL_UNSUPPORTED, "node '%s' is bf16; the CPU baseline runs f32 graphs",
                           node->name);
        bool needs_memory = runner->actions[id] == TP_CPU_WHOLE ||
                            (runner->actions[id] == TP_CPU_TILED && is_stored[id]);
        if (!needs_memory) continue;
        uint64_t bytes = (uint64_t)tp_shape_bytes(&node->shape, node->dtype);
        value->data = tp_arena_alloc(runner->arena, bytes + 64);
        if (!value->data) return TPUCL_OUT_OF_MEMORY;
        int64_t columns = tp_cpu_column_elems(graph, node);
        if (columns > runner->column_elems) runner->column_elems = columns;
    }
    return TPUCL_OK;
}

static tpucl_status order_nodes(tp_cpu_runner *runner, const bool *is_live, bool *is_closed)
{
    const tp_graph *graph = runner->graph;
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        runner->actions[id] = is_live[id] ? action_of(&graph->nodes[id]) : TP_CPU_NOTHING;
        if (runner->actions[id] == TP_CPU_TILED) TP_TRY(place_tiled(runner, id, is_closed));
        if (runner->actions[id] != TP_CPU_WHOLE) continue;
        close_operands(runner, &graph->nodes[id], -1, is_closed);
        runner->items[runner->item_count++] = (tp_cpu_item){-1, id};
    }
    for (int32_t i = 0; i < runner->cluster_count; i++)
        close_cluster(runner, i, is_closed);
    return TPUCL_OK;
}

tpucl_status tp_cpu_plan(tp_cpu_runner *runner)
{
    size_t count = (size_t)runner->graph->node_count + 1;
    tp_arena *arena = runner->arena;
    bool *is_live = TP_ARENA_NEW_ARRAY(arena, bool, count);
    bool *is_closed = TP_ARENA_NEW_ARRAY(arena, bool, count);
    bool *is_stored = TP_ARENA_NEW_ARRAY(arena, bool, count);
    runner->actions = TP_ARENA_NEW_ARRAY(arena, tp_cpu_action, count);
    runner->cluster_of = TP_ARENA_NEW_ARRAY(arena, int32_t, count);
    runner->slot_of = TP_ARENA_NEW_ARRAY(arena, int32_t, count);
    runner->clusters = TP_ARENA_NEW_ARRAY(arena, tp_cpu_cluster, count);
    runner->items = TP_ARENA_NEW_ARRAY(arena, tp_cpu_item, 2 * count);
    if (!is_live || !is_closed || !is_stored || !runner->actions || !runner->cluster_of ||
        !runner->slot_of || !runner->clusters || !runner->items)
        return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        runner->cluster_of[i] = -1;
    mark_live(runner->graph, is_live);
    TP_TRY(order_nodes(runner, is_live, is_closed));
    mark_stored(runner, is_live, is_stored);
    return allocate_values(runner, is_live, is_stored);
}
