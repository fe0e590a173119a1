/* SPDX-License-Identifier: Apache-2.0
 * When clusters run. A reduction over cores ends a level: level L is first what runs once per device
 * (replicated), then what runs for every core, then the reduction. Per-core work runs at the earliest
 * level, replicated work at the latest one that its readers allow, so that the optimizer comes after
 * the last core is done. Within a level the order of the graph is kept as far as possible: it is the
 * order in which the model was written, backward after forward, and keeps few tensors alive.
 *
 * A loop's clusters run side by side: all of them wait for what any of them reads outside.
 *
 * A variable's update may be written into the variable itself when every other reader of the old value
 * comes earlier: those readers become predecessors, as long as that makes no circle.
 */
#include "compile/pass.h"

#include "core/alloc.h"
#include "graph/opdef.h"

typedef struct edge {
    int32_t from, to;
} edge;
TP_ARRAY_DEFINE(edge_list, edge)

typedef struct schedule {
    tp_fusion *fusion;
    edge_list extra;   /* readers before the writer of their variable */
    bool *is_seen;     /* per cluster, for walks */
    int32_t *position; /* per cluster, in the order */
    bool *is_done;
} schedule;

static tp_cluster *cluster_at(const schedule *s, int32_t index)
{
    return &s->fusion->clusters.items[index];
}

static int32_t cluster_count(const schedule *s)
{
    return (int32_t)s->fusion->clusters.count;
}

static bool is_in_loop(const schedule *s, int32_t index, int32_t loop)
{
    return !cluster_at(s, index)->is_dead && cluster_at(s, index)->loop == loop;
}

/* ---- predecessors ---- */

static bool walk_back(schedule *s, int32_t at, int32_t target)
{
    if (at == target) return true;
    if (s->is_seen[at]) return false;
    s->is_seen[at] = true;
    const tp_cluster *cluster = cluster_at(s, at);
    for (int32_t c = 0; cluster->loop && c < cluster_count(s); c++)
        if (is_in_loop(s, c, cluster->loop) && walk_back(s, c, target)) return true;
    for (size_t i = 0; i < cluster->reads.count; i++) {
        const int32_t producer = s->fusion->cluster_of[cluster->reads.items[i]];
        if (producer >= 0 && producer != at && walk_back(s, producer, target)) return true;
    }
    for (size_t i = 0; i < s->extra.count; i++)
        if (s->extra.items[i].to == at && walk_back(s, s->extra.items[i].from, target)) return true;
    return false;
}

static bool comes_before(schedule *s, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < cluster_count(s); i++)
        s->is_seen[i] = false;
    return walk_back(s, to, from);
}

/* ---- updates in place ---- */

static bool reads_node(const tp_cluster *cluster, tp_node_id node)
{
    for (size_t i = 0; i < cluster->reads.count; i++)
        if (cluster->reads.items[i] == node) return true;
    return false;
}

static tpucl_status writer_is_in_place(const schedule *s, int32_t writer, tp_node_id root,
                                       tp_node_id variable, bool *out_is)
{
    const tp_cluster *cluster = cluster_at(s, writer);
    *out_is = !reads_node(cluster, variable);
    if (*out_is || cluster->kind != TP_CLUSTER_MAP) return TPUCL_OK;
    const tp_vpu_target target = tp_fusion_target(s->fusion);
    return tp_vpu_map_is_in_place(&target, cluster->roots.items, (int32_t)cluster->roots.count,
                                  root, variable, out_is);
}

static tpucl_status plan_update(schedule *s, int32_t update)
{
    const tp_graph *graph = s->fusion->graph;
    const tp_node_id value = graph->updates[update].value;
    const tp_node_id variable = graph->variables[graph->updates[update].variable].node;
    const int32_t writer = s->fusion->cluster_of[value];
    bool *is_in_place = &s->fusion->is_in_place[update];
    *is_in_place = false;
    if (writer < 0) return TPUCL_OK;
    TP_TRY(writer_is_in_place(s, writer, value, variable, is_in_place));
    for (int32_t c = 0; c < cluster_count(s) && *is_in_place; c++) {
        if (c == writer || cluster_at(s, c)->is_dead || !reads_node(cluster_at(s, c), variable))
            continue;
        if (comes_before(s, writer, c)) *is_in_place = false;
    }
    if (!*is_in_place) return TPUCL_OK;
    for (int32_t c = 0; c < cluster_count(s); c++) {
        if (c == writer || cluster_at(s, c)->is_dead || !reads_node(cluster_at(s, c), variable))
            continue;
        TP_TRY(edge_list_push(&s->extra, (edge){.from = c, .to = writer}));
    }
    return TPUCL_OK;
}

/* ---- levels ---- */

static int32_t early_level(schedule *s, int32_t index);

/* The earliest level behind what the cluster reads; producers of its own loop do not count. */
static int32_t level_after_reads(schedule *s, int32_t index)
{
    const tp_cluster *cluster = cluster_at(s, index);
    int32_t level = 0;
    for (size_t i = 0; i < cluster->reads.count; i++) {
        const int32_t producer = s->fusion->cluster_of[cluster->reads.items[i]];
        if (producer < 0 || producer == index) continue;
        if (cluster->loop && cluster_at(s, producer)->loop == cluster->loop) continue;
        const bool is_sum = cluster_at(s, producer)->kind == TP_CLUSTER_ALL_REDUCE;
        const int32_t after = early_level(s, producer) + (is_sum ? 1 : 0);
        if (after > level) level = after;
    }
    return level;
}

static void early_level_of_loop(schedule *s, int32_t loop)
{
    int32_t level = 0;
    for (int32_t c = 0; c < cluster_count(s); c++) {
        const int32_t own = is_in_loop(s, c, loop) ? level_after_reads(s, c) : 0;
        if (own > level) level = own;
    }
    for (int32_t c = 0; c < cluster_count(s); c++) {
        if (!is_in_loop(s, c, loop)) continue;
        cluster_at(s, c)->level = level;
        s->is_done[c] = true;
    }
}

static int32_t early_level(schedule *s, int32_t index)
{
    tp_cluster *cluster = cluster_at(s, index);
    if (s->is_done[index]) return cluster->level;
    if (cluster->loop) {
        early_level_of_loop(s, cluster->loop);
        return cluster->level;
    }
    cluster->level = level_after_reads(s, index);
    s->is_done[index] = true;
    return cluster->level;
}

/* A cluster goes to an earlier level, and its loop with it. */
static void lower_level(schedule *s, int32_t index, int32_t level)
{
    cluster_at(s, index)->level = level;
    const int32_t loop = cluster_at(s, index)->loop;
    for (int32_t c = 0; loop && c < cluster_count(s); c++)
        if (is_in_loop(s, c, loop)) cluster_at(s, c)->level = level;
}

/* Replicated clusters go as late as their readers allow. An all_reduce stays with its operand. */
static void sink_levels(schedule *s)
{
    const tp_fusion *fusion = s->fusion;
    int32_t last = 0;
    for (int32_t c = 0; c < cluster_count(s); c++) {
        const tp_cluster *cluster = cluster_at(s, c);
        if (cluster->is_dead) continue;
        const bool ends_level = !cluster->is_replicated || cluster->kind == TP_CLUSTER_ALL_REDUCE;
        const int32_t needs = cluster->level + (ends_level ? 1 : 0);
        if (needs > last) last = needs;
    }
    s->fusion->level_count = last + 1;
    /* Readers have to be settled before what they read: repeat until nothing moves. */
    for (int32_t c = 0; c < cluster_count(s); c++)
        if (cluster_at(s, c)->is_replicated && cluster_at(s, c)->kind != TP_CLUSTER_ALL_REDUCE)
            cluster_at(s, c)->level = last;
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int32_t c = 0; c < cluster_count(s); c++) {
            const tp_cluster *reader = cluster_at(s, c);
            if (reader->is_dead) continue;
            for (size_t i = 0; i < reader->reads.count; i++) {
                const int32_t p = fusion->cluster_of[reader->reads.items[i]];
                if (p < 0 || p == c) continue;
                tp_cluster *producer = cluster_at(s, p);
                if (!producer->is_replicated || producer->kind == TP_CLUSTER_ALL_REDUCE ||
                    producer->level <= reader->level)
                    continue;
                lower_level(s, p, reader->level);
                has_moved = true;
            }
        }
    }
}

/* ---- order ---- */

static tp_node_id anchor(const tp_cluster *cluster)
{
    return cluster->heads.count > 0 ? cluster->heads.items[0] : cluster->roots.items[0];
}

/* 0: replicated, 1: per core, 2: the reduction. */
static int phase_of(const tp_cluster *cluster)
{
    if (cluster->kind == TP_CLUSTER_ALL_REDUCE) return 2;
    return cluster->is_replicated ? 0 : 1;
}

static bool is_before_phase(const tp_cluster *a, const tp_cluster *b)
{
    if (a->level != b->level) return a->level < b->level;
    return phase_of(a) < phase_of(b);
}

/* All predecessors in the same phase are placed, but for those in `loop`. */
static bool has_predecessors(const schedule *s, int32_t index, int32_t loop)
{
    const tp_cluster *cluster = cluster_at(s, index);
    for (size_t i = 0; i < cluster->reads.count; i++) {
        const int32_t producer = s->fusion->cluster_of[cluster->reads.items[i]];
        if (producer < 0 || producer == index || s->is_done[producer]) continue;
        if (!loop || cluster_at(s, producer)->loop != loop) return false;
    }
    for (size_t i = 0; i < s->extra.count; i++) {
        const edge e = s->extra.items[i];
        if (e.to == index && !s->is_done[e.from] &&
            !is_before_phase(cluster, cluster_at(s, e.from)))
            return false;
    }
    return true;
}

/* `open_loop`: the loop that has begun and not ended, 0: none. */
static bool is_ready(const schedule *s, int32_t index, int32_t open_loop)
{
    const int32_t loop = cluster_at(s, index)->loop;
    if (loop != open_loop) {
        if (open_loop) return false;
        for (int32_t c = 0; c < cluster_count(s); c++)
            if (is_in_loop(s, c, loop) && !has_predecessors(s, c, loop)) return false;
    }
    return has_predecessors(s, index, 0);
}

static bool is_finished(const schedule *s, int32_t loop)
{
    for (int32_t c = 0; c < cluster_count(s); c++)
        if (is_in_loop(s, c, loop) && !s->is_done[c]) return false;
    return true;
}

static bool is_earlier(const tp_cluster *a, const tp_cluster *b)
{
    if (is_before_phase(a, b)) return true;
    if (is_before_phase(b, a)) return false;
    return anchor(a) < anchor(b);
}

static tpucl_status place_all(schedule *s)
{
    tp_fusion *fusion = s->fusion;
    fusion->order = TP_ARENA_NEW_ARRAY(fusion->arena, int32_t, fusion->clusters.count + 1);
    if (!fusion->order) return TPUCL_OUT_OF_MEMORY;
    int32_t live = 0, open_loop = 0;
    for (int32_t c = 0; c < cluster_count(s); c++) {
        s->is_done[c] = false;
        s->position[c] = -1;
        if (!cluster_at(s, c)->is_dead) live++;
    }
    while (fusion->order_count < live) {
        int32_t best = -1;
        for (int32_t c = 0; c < cluster_count(s); c++) {
            if (cluster_at(s, c)->is_dead || s->is_done[c] || !is_ready(s, c, open_loop)) continue;
            if (best < 0 || is_earlier(cluster_at(s, c), cluster_at(s, best))) best = c;
        }
        if (best < 0) return TP_FAIL(TPUCL_INTERNAL, "clusters wait for each other in a circle");
        s->is_done[best] = true;
        s->position[best] = fusion->order_count;
        fusion->order[fusion->order_count++] = best;
        open_loop = cluster_at(s, best)->loop;
        if (open_loop && is_finished(s, open_loop)) open_loop = 0;
    }
    return TPUCL_OK;
}

/* Levels may have put a reader behind the writer after all. */
static void check_updates(const schedule *s)
{
    const tp_graph *graph = s->fusion->graph;
    for (int32_t u = 0; u < graph->update_count; u++) {
        const tp_node_id variable = graph->variables[graph->updates[u].variable].node;
        const int32_t writer = s->fusion->cluster_of[graph->updates[u].value];
        if (!s->fusion->is_in_place[u]) continue;
        for (int32_t c = 0; c < cluster_count(s); c++) {
            const tp_cluster *cluster = cluster_at(s, c);
            if (c == writer || cluster->is_dead || !reads_node(cluster, variable)) continue;
            if (s->position[c] > s->position[writer]) s->fusion->is_in_place[u] = false;
        }
    }
}

static tpucl_status run(schedule *s)
{
    const tp_graph *graph = s->fusion->graph;
    for (int32_t u = 0; u < graph->update_count; u++)
        TP_TRY(plan_update(s, u));
    for (int32_t c = 0; c < cluster_count(s); c++)
        if (!cluster_at(s, c)->is_dead) early_level(s, c);
    sink_levels(s);
    TP_TRY(place_all(s));
    check_updates(s);
    return TPUCL_OK;
}

tpucl_status tp_pass_schedule(tp_fusion *fusion)
{
    const size_t clusters = fusion->clusters.count + 1;
    schedule s = {.fusion = fusion,
                  .is_seen = TP_ARENA_NEW_ARRAY(fusion->arena, bool, clusters),
                  .position = TP_ARENA_NEW_ARRAY(fusion->arena, int32_t, clusters),
                  .is_done = TP_ARENA_NEW_ARRAY(fusion->arena, bool, clusters)};
    fusion->is_in_place =
        TP_ARENA_NEW_ARRAY(fusion->arena, bool, (size_t)fusion->graph->update_count + 1);
    if (!s.is_seen || !s.position || !s.is_done || !fusion->is_in_place) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = run(&s);
    edge_list_deinit(&s.extra);
    return status;
}
