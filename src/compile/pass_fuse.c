/* SPDX-License-Identifier: Apache-2.0
 * What is stored and what is recomputed. Nodes are visited from the results backwards, so that each
 * one knows which launches would compute it if it were not stored, and how many elements they would
 * compute in all (a broadcast in between multiplies them).
 *
 * A node is stored when that is cheaper in a simple cost model in units of one byte of memory traffic:
 * an element-wise operation costs OP_COST times its weight, a value read or written its size, a launch
 * LAUNCH_COST.
 * What a loop reads of a node outside is computed in every turn when the node is not stored. Nothing of
 * a loop is computed outside of it: what leaves it is stored.
 *
 * Random numbers are never stored, and neither are broadcasts, reshapes, iota and scalar constants:
 * reading them again costs as much as making them again, or more. Of a bf16 value and the f32 value that
 * it is widened to, or that it was rounded from by nobody else's wish, the bf16 one is stored.
 */
#include "compile/pass.h"

#include "core/alloc.h"
#include "graph/loop.h"
#include "graph/opdef.h"
#include "graph/weight.h"

/* One launch takes about 3 us on the PoCL of a two-core machine (measured), in which that machine
 * moves about 40 kB. */
#define LAUNCH_COST 40000.0
/* An addition with its flush takes 0.043 ns an element on a core of that machine (measured with the data
 * in a first-level cache), a byte of a copy by both cores 0.13 ns of each. */
#define OP_COST 0.33
#define MAX_SINKS 6
#define MAX_SUBTREE 64

/* Which launches would compute the node: by the stored node or head that asks for it. */
typedef struct sink_set {
    int32_t count; /* MAX_SINKS + 1: more than that */
    tp_node_id ids[MAX_SINKS];
} sink_set;

typedef struct fuse_state {
    tp_fusion *fusion;
    sink_set *sinks; /* per node */
    double *evals;   /* per node: elements computed when it is not stored */
} fuse_state;

static void add_sink(sink_set *set, tp_node_id id)
{
    for (int32_t i = 0; i < set->count && i < MAX_SINKS; i++)
        if (set->ids[i] == id) return;
    if (set->count < MAX_SINKS) set->ids[set->count] = id;
    if (set->count <= MAX_SINKS) set->count++;
}

static void add_sinks(sink_set *set, const sink_set *other)
{
    for (int32_t i = 0; i < other->count && i < MAX_SINKS; i++)
        add_sink(set, other->ids[i]);
    if (other->count > MAX_SINKS) set->count = MAX_SINKS + 1;
}

static double elems_of(const tp_fusion *fusion, tp_node_id id)
{
    return (double)tp_shape_elems(&tp_graph_node(fusion->graph, id)->shape);
}

static size_t size_of(const tp_fusion *fusion, tp_node_id id)
{
    return tp_dtype_size(tp_graph_node(fusion->graph, id)->dtype);
}

static bool is_never_stored(const tp_fusion *fusion, tp_node_id id)
{
    const tp_node *node = tp_graph_node(fusion->graph, id);
    /* What it widens is smaller in memory. */
    if (tp_node_is(node, "convert") && size_of(fusion, node->inputs[0]) < size_of(fusion, id))
        return true;
    switch (node->def->op_class) {
    case TP_OP_SOURCE:
    case TP_OP_RANDOM:
    case TP_OP_BROADCAST:
    case TP_OP_RESHAPE:
        return true;
    default:
        return false;
    }
}

/* ---- cost ---- */

typedef struct subtree {
    tp_node_id seen[MAX_SUBTREE];
    int32_t count;
    double compute, bytes; /* for all elements of the top once */
    bool is_too_large;
} subtree;

/* What computing `id` from memory takes: operations of the nodes in between, bytes of what is read.
 * Operands are not decided yet (they come later in the walk backwards): what several nodes read is taken
 * to be stored where reading it is cheaper than making it, all else to be recomputed. */
static void measure(const tp_fusion *fusion, tp_node_id id, double top_elems, subtree *t)
{
    for (int32_t i = 0; i < t->count; i++)
        if (t->seen[i] == id) return;
    if (t->count == MAX_SUBTREE) {
        t->is_too_large = true;
        return;
    }
    const bool is_top = t->count == 0;
    t->seen[t->count++] = id;
    const tp_node *node = tp_graph_node(fusion->graph, id);
    const double elems = elems_of(fusion, id);
    const double turns = elems < top_elems ? elems : top_elems;
    const double read = turns * (double)size_of(fusion, id);
    if (fusion->is_stored[id] || !tp_fusion_is_fusible(fusion, id)) {
        t->bytes += read;
        return;
    }
    const int32_t count = t->count;
    const double compute = t->compute, bytes = t->bytes;
    t->compute += OP_COST * tp_op_weight(node) * turns;
    for (int32_t i = 0; i < node->input_count; i++)
        measure(fusion, node->inputs[i], top_elems, t);
    const bool is_shared = fusion->user_start[id + 1] - fusion->user_start[id] > 1;
    if (is_top || !is_shared || is_never_stored(fusion, id) ||
        t->compute + t->bytes - compute - bytes <= read)
        return;
    t->count = count;
    t->compute = compute;
    t->bytes = bytes + read;
}

static bool should_store(const fuse_state *state, tp_node_id id)
{
    const tp_fusion *fusion = state->fusion;
    const tp_node *node = tp_graph_node(fusion->graph, id);
    if (is_never_stored(fusion, id)) return false;
    const double elems = elems_of(fusion, id), evals = state->evals[id];
    const int32_t sinks = state->sinks[id].count;
    if (elems == 0 || (sinks <= 1 && evals <= elems)) return false;
    /* In the top's loop small things are computed as often as the top's elements are. */
    subtree t = {0};
    measure(fusion, id, elems, &t);
    if (t.is_too_large) return true;
    const double once = t.compute + t.bytes;
    const double factor = evals / elems;
    const double size = elems * (double)tp_dtype_size(node->dtype);
    /* Reading a small tensor through a broadcast stays in registers and caches. */
    const double reads = factor < (double)sinks ? factor : (double)sinks;
    const double inlined = factor * once;
    const double stored = once + size * (1 + reads) + LAUNCH_COST;
    return inlined > stored;
}

/* ---- the walk ---- */

static bool is_port_source(const tp_fusion *fusion, tp_node_id id)
{
    const tp_node *node = tp_graph_node(fusion->graph, id);
    return node->def->op_class == TP_OP_SOURCE && !tp_fusion_is_fusible(fusion, id);
}

static void force(tp_fusion *fusion, tp_node_id id)
{
    fusion->is_forced[id] = fusion->is_stored[id] = true;
}

/* Ports, sources, heads and their operands. MXU operands were forced by pass_precision. */
static void force_stored(tp_fusion *fusion)
{
    const tp_graph *graph = fusion->graph;
    for (int32_t i = 0; i < graph->update_count; i++)
        force(fusion, graph->updates[i].value);
    for (int32_t i = 0; i < graph->output_count; i++)
        force(fusion, graph->outputs[i].node);
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        const tp_node *node = tp_graph_node(graph, id);
        const tp_op_class op_class = node->def->op_class;
        if (is_port_source(fusion, id)) force(fusion, id);
        if (!fusion->is_live[id]) continue;
        if (op_class == TP_OP_WINDOW || op_class == TP_OP_MEMORY || op_class == TP_OP_COLLECTIVE ||
            op_class == TP_OP_LOOP) {
            force(fusion, id);
            for (int32_t i = 0; i < node->input_count; i++)
                if (!tp_fusion_is_fill(fusion, id, i)) force(fusion, node->inputs[i]);
            /* Each core brings its own, also when all have the same (see pass_layout). */
            if (op_class == TP_OP_COLLECTIVE) fusion->is_replicated[node->inputs[0]] = false;
            /* So does each core whose carry starts with it. */
            if (node->def->loop_part == TP_LOOP_CARRY)
                fusion->is_replicated[node->inputs[0]] = fusion->is_replicated[id];
        }
        /* For now; pass_fuse takes back what only its own epilogue reads. */
        if (op_class == TP_OP_MXU || op_class == TP_OP_REDUCE) fusion->is_stored[id] = true;
    }
}

/* The only reader of a head's result, when that is a convert to something smaller. */
static tp_node_id find_narrowing(const tp_fusion *fusion, tp_node_id head)
{
    const int32_t first = fusion->user_start[head], end = fusion->user_start[head + 1];
    if (fusion->is_forced[head] || first == end) return TP_NO_NODE;
    const tp_node_id user = fusion->users[first];
    for (int32_t u = first + 1; u < end; u++)
        if (fusion->users[u] != user) return TP_NO_NODE;
    const bool is_smaller = size_of(fusion, user) < size_of(fusion, head);
    return is_smaller && tp_node_is(tp_graph_node(fusion->graph, user), "convert") ? user
                                                                                   : TP_NO_NODE;
}

/* Heads are stored whatever they cost: as the smaller of themselves and what they are rounded to, which
 * the head's epilogue does. */
static void store_narrowed_heads(tp_fusion *fusion)
{
    for (tp_node_id id = 0; id < fusion->graph->node_count; id++) {
        const tp_op_class op_class = tp_graph_node(fusion->graph, id)->def->op_class;
        if (!fusion->is_live[id] || (op_class != TP_OP_MXU && op_class != TP_OP_REDUCE)) continue;
        const tp_node_id narrow = find_narrowing(fusion, id);
        if (narrow != TP_NO_NODE) fusion->is_stored[narrow] = true;
    }
}

/* How often a user asks for each element: in every turn, when it is in a loop and the node is not. */
static double turns_of_use(const tp_fusion *fusion, tp_node_id id, const tp_node *user)
{
    if (user->loop == tp_graph_node(fusion->graph, id)->loop) return 1;
    return (double)tp_loop_length(fusion->graph, user->loop);
}

/* Reads of an operand through the heads: a reduction computes each element of its operand once. */
static void gather_uses(fuse_state *state, tp_node_id id)
{
    const tp_fusion *fusion = state->fusion;
    for (int32_t u = fusion->user_start[id]; u < fusion->user_start[id + 1]; u++) {
        const tp_node_id user = fusion->users[u];
        const tp_node *node = tp_graph_node(fusion->graph, user);
        if (node->def->op_class == TP_OP_MXU || node->def->op_class == TP_OP_WINDOW ||
            node->def->op_class == TP_OP_MEMORY || node->def->op_class == TP_OP_COLLECTIVE ||
            node->def->op_class == TP_OP_LOOP)
            continue; /* they read memory, which is forced */
        const double turns = turns_of_use(fusion, id, node);
        if (node->def->op_class == TP_OP_REDUCE) {
            add_sink(&state->sinks[id], user);
            state->evals[id] += turns * elems_of(fusion, id);
        } else if (fusion->is_stored[user]) {
            add_sink(&state->sinks[id], user);
            state->evals[id] += turns * elems_of(fusion, user);
        } else {
            add_sinks(&state->sinks[id], &state->sinks[user]);
            state->evals[id] += turns * state->evals[user];
        }
    }
}

static tpucl_status decide(fuse_state *state)
{
    tp_fusion *fusion = state->fusion;
    force_stored(fusion);
    store_narrowed_heads(fusion);
    for (tp_node_id id = fusion->graph->node_count - 1; id >= 0; id--) {
        if (!fusion->is_live[id] || fusion->is_stored[id]) continue;
        gather_uses(state, id);
        if (should_store(state, id)) fusion->is_stored[id] = true;
    }
    return TPUCL_OK;
}

/* ---- first clusters ---- */

static tpucl_status add_cluster(tp_fusion *fusion, tp_node_id id)
{
    const tp_node *node = tp_graph_node(fusion->graph, id);
    tp_cluster cluster = {.is_replicated = fusion->is_replicated[id], .loop = tp_loop_unit(node)};
    switch (node->def->op_class) {
    case TP_OP_REDUCE:
        cluster.kind = TP_CLUSTER_REDUCE;
        break;
    case TP_OP_MXU:
        cluster.kind = TP_CLUSTER_MXU;
        break;
    case TP_OP_WINDOW:
        cluster.kind = TP_CLUSTER_WINDOW;
        break;
    case TP_OP_MEMORY:
        cluster.kind = TP_CLUSTER_MEMORY;
        break;
    case TP_OP_COLLECTIVE:
        cluster.kind = TP_CLUSTER_ALL_REDUCE;
        break;
    case TP_OP_LOOP:
        cluster.kind = TP_CLUSTER_LOOP;
        break;
    default:
        cluster.kind = TP_CLUSTER_MAP;
    }
    TP_TRY(tp_cluster_list_push(&fusion->clusters, cluster));
    const int32_t index = (int32_t)fusion->clusters.count - 1;
    tp_cluster *added = &fusion->clusters.items[index];
    if (cluster.kind != TP_CLUSTER_MAP) TP_TRY(tp_node_list_push(&added->heads, id));
    TP_TRY(tp_node_list_push(&added->roots, id));
    fusion->cluster_of[id] = index;
    return TPUCL_OK;
}

/* Of one element, and yet in memory, because a memory op or window reads it there: among the constants. */
static bool is_stored_constant(const tp_fusion *fusion, tp_node_id id)
{
    return fusion->is_stored[id] && tp_node_is(tp_graph_node(fusion->graph, id), "constant");
}

static tpucl_status create_clusters(tp_fusion *fusion)
{
    for (tp_node_id id = 0; id < fusion->graph->node_count; id++) {
        if (!fusion->is_live[id] || !fusion->is_stored[id] || is_port_source(fusion, id) ||
            is_stored_constant(fusion, id))
            continue;
        TP_TRY(add_cluster(fusion, id));
    }
    for (size_t i = 0; i < fusion->clusters.count; i++)
        TP_TRY(tp_cluster_find_reads(fusion, (int32_t)i));
    return TPUCL_OK;
}

/* ---- clusters that read too much ---- */

/* Nodes that the cluster recomputes, each once, from its roots and heads down. */
static tpucl_status list_inlined(const tp_fusion *fusion, tp_node_id id, bool *is_seen,
                                 tp_node_list *out)
{
    if (is_seen[id] || fusion->is_stored[id] || !tp_fusion_is_fusible(fusion, id)) return TPUCL_OK;
    is_seen[id] = true;
    TP_TRY(tp_node_list_push(out, id));
    const tp_node *node = tp_graph_node(fusion->graph, id);
    for (int32_t i = 0; i < node->input_count; i++)
        TP_TRY(list_inlined(fusion, node->inputs[i], is_seen, out));
    return TPUCL_OK;
}

/* Of the inlined nodes, the one that reads most without reading too much itself. */
static tpucl_status find_cut(tp_fusion *fusion, const tp_node_list *inlined, tp_node_id *out_cut)
{
    size_t most = 1;
    *out_cut = TP_NO_NODE;
    for (size_t i = 0; i < inlined->count; i++) {
        const tp_node_id id = inlined->items[i];
        if (is_never_stored(fusion, id)) continue;
        fusion->is_stored[id] = true;
        TP_TRY(add_cluster(fusion, id));
        const int32_t index = (int32_t)fusion->clusters.count - 1;
        TP_TRY(tp_cluster_find_reads(fusion, index));
        tp_cluster *trial = &fusion->clusters.items[index];
        if (trial->reads.count > most && trial->reads.count <= TP_FUSE_MAX_READS) {
            most = trial->reads.count;
            *out_cut = id;
        }
        trial->is_dead = true;
        trial->roots.count = trial->reads.count = 0;
        fusion->is_stored[id] = false;
        fusion->cluster_of[id] = -1;
    }
    return TPUCL_OK;
}

/* A kernel takes only so many tensors: stores what is in the middle, until it is few enough. */
static tpucl_status split_cluster(tp_fusion *fusion, int32_t index)
{
    tp_node_list inlined = {0};
    tpucl_status status = TPUCL_OK;
    bool *is_seen = TP_NEW_ARRAY(bool, (size_t)fusion->graph->node_count);
    if (!is_seen) return TPUCL_OUT_OF_MEMORY;
    /* The root, or the head's operand; clusters have one of each here. */
    const tp_node_id root = fusion->clusters.items[index].roots.items[0];
    const tp_node *node = tp_graph_node(fusion->graph, root);
    for (int32_t i = 0; i < node->input_count && status == TPUCL_OK; i++)
        status = list_inlined(fusion, node->inputs[i], is_seen, &inlined);
    tp_node_id cut = TP_NO_NODE;
    if (status == TPUCL_OK) status = find_cut(fusion, &inlined, &cut);
    tp_node_list_deinit(&inlined);
    tp_free(is_seen);
    TP_TRY(status);
    if (cut == TP_NO_NODE)
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' reads %zu tensors at once, a kernel takes %d",
                       node->def->name, fusion->clusters.items[index].reads.count,
                       TP_FUSE_MAX_READS);
    fusion->is_stored[cut] = true;
    TP_TRY(add_cluster(fusion, cut));
    TP_TRY(tp_cluster_find_reads(fusion, (int32_t)fusion->clusters.count - 1));
    return tp_cluster_find_reads(fusion, index);
}

static tpucl_status split_large_clusters(tp_fusion *fusion)
{
    for (size_t i = 0; i < fusion->clusters.count; i++) {
        const tp_cluster_kind kind = fusion->clusters.items[i].kind;
        if (kind != TP_CLUSTER_MAP && kind != TP_CLUSTER_REDUCE) continue;
        while (fusion->clusters.items[i].reads.count > TP_FUSE_MAX_READS)
            TP_TRY(split_cluster(fusion, (int32_t)i));
    }
    return TPUCL_OK;
}

/* ---- what turned out not to need memory ---- */

static bool is_read_elsewhere(const tp_fusion *fusion, tp_node_id id)
{
    const int32_t own = fusion->cluster_of[id];
    for (size_t c = 0; c < fusion->clusters.count; c++) {
        const tp_cluster *cluster = &fusion->clusters.items[c];
        if (cluster->is_dead || (int32_t)c == own) continue;
        for (size_t i = 0; i < cluster->reads.count; i++)
            if (cluster->reads.items[i] == id) return true;
    }
    return false;
}

/* Roots that only their own cluster reads stay in registers. */
static void drop_private_roots(tp_fusion *fusion)
{
    for (size_t c = 0; c < fusion->clusters.count; c++) {
        tp_cluster *cluster = &fusion->clusters.items[c];
        if (cluster->is_dead) continue;
        size_t kept = 0;
        for (size_t i = 0; i < cluster->roots.count; i++) {
            const tp_node_id id = cluster->roots.items[i];
            if (fusion->is_forced[id] || is_read_elsewhere(fusion, id)) {
                cluster->roots.items[kept++] = id;
            } else {
                fusion->is_stored[id] = false;
                fusion->cluster_of[id] = -1;
            }
        }
        cluster->roots.count = kept;
        if (kept == 0) cluster->is_dead = true;
    }
}

tpucl_status tp_pass_fuse(tp_fusion *fusion)
{
    const size_t nodes = (size_t)fusion->graph->node_count + 1;
    fuse_state state = {.fusion = fusion,
                        .sinks = TP_ARENA_NEW_ARRAY(fusion->arena, sink_set, nodes),
                        .evals = TP_ARENA_NEW_ARRAY(fusion->arena, double, nodes)};
    if (!state.sinks || !state.evals) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(decide(&state));
    TP_TRY(create_clusters(fusion));
    TP_TRY(split_large_clusters(fusion));
    TP_TRY(tp_fuse_attach(fusion));
    drop_private_roots(fusion);
    for (size_t i = 0; i < fusion->clusters.count; i++)
        if (!fusion->clusters.items[i].is_dead) TP_TRY(tp_cluster_find_reads(fusion, (int32_t)i));
    return TPUCL_OK;
}
