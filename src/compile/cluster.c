/* SPDX-License-Identifier: Apache-2.0
 * Clusters as a graph of their own: who reads what, who comes before whom.
 */
#include "compile/pass.h"

#include <inttypes.h>
#include <string.h>
#include "core/alloc.h"
#include "graph/opdef.h"
#include "graph/rewrite.h"

static tpucl_status index_users(tp_fusion *fusion)
{
    const tp_graph *graph = fusion->graph;
    const size_t nodes = (size_t)graph->node_count;
    int32_t total = 0;
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        if (!fusion->is_live[id]) continue;
        const tp_node *node = tp_graph_node(graph, id);
        for (int32_t i = 0; i < node->input_count; i++)
            fusion->user_start[node->inputs[i] + 1]++;
        total += node->input_count;
    }
    for (size_t i = 0; i < nodes; i++)
        fusion->user_start[i + 1] += fusion->user_start[i];
    fusion->users = TP_ARENA_NEW_ARRAY(fusion->arena, tp_node_id, (size_t)total + 1);
    int32_t *fill = TP_ARENA_NEW_ARRAY(fusion->arena, int32_t, nodes + 1);
    if (!fusion->users || !fill) return TPUCL_OUT_OF_MEMORY;
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        if (!fusion->is_live[id]) continue;
        const tp_node *node = tp_graph_node(graph, id);
        for (int32_t i = 0; i < node->input_count; i++) {
            const tp_node_id input = node->inputs[i];
            fusion->users[fusion->user_start[input] + fill[input]++] = id;
        }
    }
    return TPUCL_OK;
}

static tpucl_status allocate(tp_fusion *fusion)
{
    tp_arena *arena = fusion->arena;
    const size_t nodes = (size_t)fusion->graph->node_count;
    fusion->is_live = TP_ARENA_NEW_ARRAY(arena, bool, nodes + 1);
    fusion->is_replicated = TP_ARENA_NEW_ARRAY(arena, bool, nodes + 1);
    fusion->is_stored = TP_ARENA_NEW_ARRAY(arena, bool, nodes + 1);
    fusion->is_forced = TP_ARENA_NEW_ARRAY(arena, bool, nodes + 1);
    fusion->cluster_of = TP_ARENA_NEW_ARRAY(arena, int32_t, nodes + 1);
    fusion->user_start = TP_ARENA_NEW_ARRAY(arena, int32_t, nodes + 2);
    fusion->operands = TP_ARENA_NEW_ARRAY(arena, tp_operand_view, 2 * nodes + 1);
    if (!fusion->is_live || !fusion->is_replicated || !fusion->is_stored || !fusion->is_forced ||
        !fusion->cluster_of || !fusion->user_start || !fusion->operands)
        return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < nodes; i++)
        fusion->cluster_of[i] = -1;
    tp_graph_mark_live(fusion->graph, fusion->is_live);
    tp_graph_mark_replicated(fusion->graph, fusion->is_replicated);
    return index_users(fusion);
}

tpucl_status tp_fusion_create(const tp_graph *graph, const tp_device_caps *caps,
                              tp_fusion **out_fusion)
{
    *out_fusion = NULL;
    tp_arena *arena;
    TP_TRY(tp_arena_create(64 << 10, &arena));
    tp_fusion *fusion = TP_ARENA_NEW(arena, tp_fusion);
    if (!fusion) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    fusion->arena = arena;
    fusion->graph = graph;
    fusion->caps = caps;
    const tpucl_status status = allocate(fusion);
    if (status != TPUCL_OK) {
        tp_fusion_destroy(fusion);
        return status;
    }
    *out_fusion = fusion;
    return TPUCL_OK;
}

void tp_fusion_destroy(tp_fusion *fusion)
{
    if (!fusion) return;
    for (size_t i = 0; i < fusion->clusters.count; i++) {
        tp_node_list_deinit(&fusion->clusters.items[i].heads);
        tp_node_list_deinit(&fusion->clusters.items[i].roots);
        tp_node_list_deinit(&fusion->clusters.items[i].reads);
    }
    tp_cluster_list_deinit(&fusion->clusters);
    tp_arena_destroy(fusion->arena);
}

tp_vpu_target tp_fusion_target(const tp_fusion *fusion)
{
    return (tp_vpu_target){.arena = fusion->arena,
                           .graph = fusion->graph,
                           .is_stored = fusion->is_stored,
                           .caps = fusion->caps};
}

bool tp_fusion_is_fusible(const tp_fusion *fusion, tp_node_id id)
{
    const tp_node *node = tp_graph_node(fusion->graph, id);
    switch (node->def->op_class) {
    case TP_OP_ELEMENTWISE:
    case TP_OP_RANDOM:
    case TP_OP_BROADCAST:
    case TP_OP_RESHAPE:
    case TP_OP_REINDEX:
        return true;
    case TP_OP_SOURCE:
        if (strcmp(node->def->name, "constant") == 0) return tp_shape_elems(&node->shape) == 1;
        return strcmp(node->def->name, "iota") == 0 || strcmp(node->def->name, "step") == 0;
    default:
        return false;
    }
}

/* ---- reads ---- */

typedef struct read_walk {
    tp_fusion *fusion;
    int32_t cluster;
    bool *is_seen; /* per node */
    bool *is_own;  /* per node: heads and roots of the cluster */
    tp_node_list *reads;
} read_walk;

static tpucl_status walk(read_walk *w, tp_node_id id)
{
    if (w->is_seen[id]) return TPUCL_OK;
    w->is_seen[id] = true;
    const tp_fusion *fusion = w->fusion;
    if (fusion->is_stored[id] && !w->is_own[id]) return tp_node_list_push(w->reads, id);
    if (!tp_fusion_is_fusible(fusion, id)) return TPUCL_OK; /* a head of this cluster */
    const tp_node *node = tp_graph_node(fusion->graph, id);
    for (int32_t i = 0; i < node->input_count; i++)
        TP_TRY(walk(w, node->inputs[i]));
    return TPUCL_OK;
}

static tpucl_status walk_cluster(read_walk *w)
{
    const tp_fusion *fusion = w->fusion;
    const tp_cluster *cluster = &fusion->clusters.items[w->cluster];
    for (size_t i = 0; i < cluster->heads.count; i++)
        w->is_own[cluster->heads.items[i]] = true;
    for (size_t i = 0; i < cluster->roots.count; i++)
        w->is_own[cluster->roots.items[i]] = true;
    for (size_t i = 0; i < cluster->heads.count; i++) {
        const tp_node_id head = cluster->heads.items[i];
        const tp_node *node = tp_graph_node(fusion->graph, head);
        for (int32_t k = 0; k < node->input_count; k++) {
            const tp_node_id from = cluster->kind == TP_CLUSTER_MXU
                                        ? fusion->operands[2 * head + k].base
                                        : node->inputs[k];
            TP_TRY(walk(w, from));
        }
    }
    for (size_t i = 0; i < cluster->roots.count; i++)
        TP_TRY(walk(w, cluster->roots.items[i]));
    return TPUCL_OK;
}

tpucl_status tp_cluster_find_reads(tp_fusion *fusion, int32_t index)
{
    tp_cluster *cluster = &fusion->clusters.items[index];
    const size_t nodes = (size_t)fusion->graph->node_count;
    bool *flags = TP_NEW_ARRAY(bool, 2 * nodes);
    if (!flags) return TPUCL_OUT_OF_MEMORY;
    cluster->reads.count = 0;
    read_walk w = {.fusion = fusion,
                   .cluster = index,
                   .is_seen = flags,
                   .is_own = flags + nodes,
                   .reads = &cluster->reads};
    const tpucl_status status = walk_cluster(&w);
    tp_free(flags);
    return status;
}

/* ---- order ---- */

static bool has_ancestor(const tp_fusion *fusion, int32_t at, int32_t from, bool *is_seen);

static bool loop_has_ancestor(const tp_fusion *fusion, int32_t loop, int32_t from, bool *is_seen)
{
    for (size_t i = 0; i < fusion->clusters.count; i++) {
        const tp_cluster *cluster = &fusion->clusters.items[i];
        if (cluster->is_dead || cluster->loop != loop || is_seen[i]) continue;
        is_seen[i] = true;
        if (has_ancestor(fusion, (int32_t)i, from, is_seen)) return true;
    }
    return false;
}

/* Backwards from `at`: is `from` among its ancestors? */
static bool has_ancestor(const tp_fusion *fusion, int32_t at, int32_t from, bool *is_seen)
{
    const tp_cluster *cluster = &fusion->clusters.items[at];
    if (cluster->loop && cluster->loop != fusion->clusters.items[from].loop &&
        loop_has_ancestor(fusion, cluster->loop, from, is_seen))
        return true;
    for (size_t i = 0; i < cluster->reads.count; i++) {
        const int32_t producer = fusion->cluster_of[cluster->reads.items[i]];
        if (producer < 0 || producer == at || is_seen[producer]) continue;
        if (producer == from) return true;
        is_seen[producer] = true;
        if (has_ancestor(fusion, producer, from, is_seen)) return true;
    }
    return false;
}

tpucl_status tp_cluster_reaches(tp_fusion *fusion, int32_t from, int32_t to, bool *out_reaches)
{
    bool *is_seen = TP_NEW_ARRAY(bool, fusion->clusters.count);
    if (!is_seen) return TPUCL_OUT_OF_MEMORY;
    *out_reaches = has_ancestor(fusion, to, from, is_seen);
    tp_free(is_seen);
    return TPUCL_OK;
}

tpucl_status tp_cluster_merge(tp_fusion *fusion, int32_t a, int32_t b)
{
    tp_cluster *into = &fusion->clusters.items[a], *from = &fusion->clusters.items[b];
    TP_TRY(tp_node_list_append(&into->heads, from->heads.items, from->heads.count));
    TP_TRY(tp_node_list_append(&into->roots, from->roots.items, from->roots.count));
    for (size_t i = 0; i < from->heads.count; i++)
        fusion->cluster_of[from->heads.items[i]] = a;
    for (size_t i = 0; i < from->roots.count; i++)
        fusion->cluster_of[from->roots.items[i]] = a;
    from->heads.count = from->roots.count = from->reads.count = 0;
    from->is_dead = true;
    return tp_cluster_find_reads(fusion, a);
}

/* ---- listing ---- */

static void print_nodes(const char *title, const tp_node_list *list, tp_str_builder *out)
{
    if (list->count == 0) return;
    tp_str_append(out, title);
    for (size_t i = 0; i < list->count; i++)
        tp_str_builder_printf(out, " %%%" PRId32, list->items[i]);
}

tpucl_status tp_fusion_print(const tp_fusion *fusion, tp_str_builder *out)
{
    static const char *const kinds[] = {"map",    "reduce",     "mxu", "window",
                                        "memory", "all_reduce", "loop"};
    for (size_t i = 0; i < fusion->clusters.count; i++) {
        const tp_cluster *cluster = &fusion->clusters.items[i];
        if (cluster->is_dead) continue;
        tp_str_builder_printf(out, "cluster %zu %s %s level %" PRId32, i, kinds[cluster->kind],
                              cluster->is_replicated ? "replicated" : "per core", cluster->level);
        if (cluster->loop) tp_str_builder_printf(out, " loop %" PRId32, cluster->loop);
        print_nodes(" heads", &cluster->heads, out);
        print_nodes(" roots", &cluster->roots, out);
        print_nodes(" reads", &cluster->reads, out);
        tp_str_append(out, "\n");
    }
    return out->status;
}
