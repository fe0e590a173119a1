/* SPDX-License-Identifier: Apache-2.0
 * Which node is in which loop, and what must hold of loops. */
#include "graph/loop.h"

#include "core/alloc.h"

int32_t tp_loop_unit(const tp_node *node)
{
    if (node->def->loop_part == TP_LOOP_NONE) return node->loop;
    return (int32_t)tp_node_attr_int(node, "loop", 0);
}

/* The loop that all operands in a loop share; 0: none is. */
static tpucl_status common_loop(const tp_graph *graph, const tp_node *node, int32_t *out_loop)
{
    *out_loop = 0;
    for (int32_t i = 0; i < node->input_count; ++i) {
        const int32_t loop = graph->nodes[node->inputs[i]].loop;
        if (loop && *out_loop && loop != *out_loop)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "'%s' mixes values of loops %d and %d; a value leaves its loop by "
                           "loop_stack or loop_last",
                           node->def->name, *out_loop, loop);
        if (loop) *out_loop = loop;
    }
    return TPUCL_OK;
}

static tpucl_status find_of_part(const tp_graph *graph, const tp_node *node, int32_t operands_loop,
                                 int32_t *out_loop)
{
    const int64_t loop = tp_node_attr_int(node, "loop", 0);
    const int64_t length = tp_node_attr_int(node, "length", 0);
    if (loop < 1 || loop > TP_MAX_LOOPS)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "loop is %lld, expected 1 to %d", (long long)loop,
                       TP_MAX_LOOPS);
    if (length < 1 || length > INT32_MAX)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "a loop of %lld turns, expected 1 to %d",
                       (long long)length, INT32_MAX);
    if (node->def->loop_part == TP_LOOP_SLICE || node->def->loop_part == TP_LOOP_CARRY) {
        if (operands_loop)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "'%s' of loop %lld reads a value of loop %d: loops do not nest; write "
                           "the inner one out, or scan over both axes as one",
                           node->def->name, (long long)loop, operands_loop);
        *out_loop = (int32_t)loop;
        return TPUCL_OK;
    }
    for (int32_t i = 0; i < node->input_count; ++i)
        if (graph->nodes[node->inputs[i]].loop != loop)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "operand %d of '%s' is not computed in loop %lld", i, node->def->name,
                           (long long)loop);
    *out_loop = 0;
    return TPUCL_OK;
}

tpucl_status tp_loop_find(const tp_graph *graph, const tp_node *node, int32_t *out_loop)
{
    int32_t loop;
    TP_TRY(common_loop(graph, node, &loop));
    if (node->def->loop_part != TP_LOOP_NONE) return find_of_part(graph, node, loop, out_loop);
    if (loop && node->def->op_class == TP_OP_COLLECTIVE)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "'%s' in a loop; take it of the loop's result instead", node->def->name);
    *out_loop = loop;
    return TPUCL_OK;
}

int64_t tp_loop_length(const tp_graph *graph, int32_t loop)
{
    for (tp_node_id id = 0; id < graph->node_count; ++id) {
        const tp_node *node = &graph->nodes[id];
        if (node->def->loop_part != TP_LOOP_NONE && tp_loop_unit(node) == loop)
            return tp_node_attr_int(node, "length", 0);
    }
    return 0;
}

tp_node_id tp_loop_last_of(const tp_graph *graph, tp_node_id carry)
{
    for (tp_node_id id = carry + 1; id < graph->node_count; ++id)
        if (graph->nodes[id].def->loop_part == TP_LOOP_LAST && graph->nodes[id].inputs[0] == carry)
            return id;
    return TP_NO_NODE;
}

/* ---- order ---- */

typedef struct ordering {
    const tp_graph *graph;
    bool *is_placed; /* per node */
    bool *is_asked;  /* per loop: in this pass */
    tp_node_id *order;
    int32_t count;
} ordering;

/* Operands outside of the node's own loop are there. */
static bool is_ready(const ordering *o, tp_node_id id)
{
    const tp_node *node = &o->graph->nodes[id];
    const int32_t unit = tp_loop_unit(node);
    for (int32_t i = 0; i < node->input_count; ++i) {
        const tp_node_id input = node->inputs[i];
        if (!o->is_placed[input] && !(unit && o->graph->nodes[input].loop == unit)) return false;
    }
    return true;
}

static void place(ordering *o, tp_node_id id)
{
    o->is_placed[id] = true;
    o->order[o->count++] = id;
}

static void place_loop(ordering *o, int32_t loop)
{
    const int32_t nodes = o->graph->node_count;
    for (tp_node_id id = 0; id < nodes; ++id)
        if (tp_loop_unit(&o->graph->nodes[id]) == loop && !is_ready(o, id)) return;
    for (tp_node_id id = 0; id < nodes; ++id)
        if (tp_loop_unit(&o->graph->nodes[id]) == loop) place(o, id);
}

/* In the order of ids, what can be placed. A loop that has to wait is tried again in the next pass. */
static void run_pass(ordering *o)
{
    for (int32_t loop = 0; loop <= o->graph->loop_count; ++loop)
        o->is_asked[loop] = false;
    for (tp_node_id id = 0; id < o->graph->node_count; ++id) {
        const int32_t unit = tp_loop_unit(&o->graph->nodes[id]);
        if (o->is_placed[id] || o->is_asked[unit]) continue;
        if (!unit) {
            if (is_ready(o, id)) place(o, id);
            continue;
        }
        o->is_asked[unit] = true;
        place_loop(o, unit);
    }
}

tpucl_status tp_loop_order(const tp_graph *graph, tp_node_id *out_order)
{
    ordering o = {.graph = graph, .order = out_order};
    o.is_placed = TP_NEW_ARRAY(bool, (size_t)graph->node_count + 1);
    o.is_asked = TP_NEW_ARRAY(bool, (size_t)graph->loop_count + 1);
    tpucl_status status = o.is_placed && o.is_asked ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    for (int32_t before = -1; status == TPUCL_OK && o.count < graph->node_count;) {
        if (o.count == before)
            status = TP_FAIL(TPUCL_INVALID_ARGUMENT,
                             "a loop reads a value that depends on a result of the same loop");
        before = o.count;
        run_pass(&o);
    }
    tp_free(o.is_placed);
    tp_free(o.is_asked);
    return status;
}

/* ---- liveness, replication ---- */

bool tp_loop_keep_carries(const tp_graph *graph, bool *inout_is_live)
{
    bool has_changed = false;
    if (!graph->loop_count) return false;
    for (tp_node_id id = 0; id < graph->node_count; ++id) {
        const tp_node *node = &graph->nodes[id];
        if (node->def->loop_part != TP_LOOP_LAST || inout_is_live[id] ||
            !inout_is_live[node->inputs[0]])
            continue;
        inout_is_live[id] = has_changed = true;
    }
    return has_changed;
}

bool tp_loop_spread_per_core(const tp_graph *graph, bool *inout_is_replicated)
{
    bool has_changed = false;
    for (int32_t loop = 1; loop <= graph->loop_count; ++loop) {
        bool is_replicated = true, is_mixed = false;
        for (tp_node_id id = 0; id < graph->node_count; ++id)
            if (tp_loop_unit(&graph->nodes[id]) == loop)
                is_replicated = is_replicated && inout_is_replicated[id];
        for (tp_node_id id = 0; id < graph->node_count && !is_replicated; ++id)
            if (tp_loop_unit(&graph->nodes[id]) == loop && inout_is_replicated[id]) {
                inout_is_replicated[id] = false;
                is_mixed = true;
            }
        has_changed = has_changed || is_mixed;
    }
    return has_changed;
}

/* ---- rules ---- */

static tpucl_status verify_carry(const tp_graph *graph, tp_node_id carry)
{
    int32_t count = 0;
    for (tp_node_id id = carry + 1; id < graph->node_count; ++id)
        if (graph->nodes[id].def->loop_part == TP_LOOP_LAST && graph->nodes[id].inputs[0] == carry)
            ++count;
    if (count == 1) return TPUCL_OK;
    return TP_FAIL(TPUCL_INTERNAL, "carry %d ('%s') has %d loop_last, expected one", carry,
                   graph->nodes[carry].name, count);
}

static tpucl_status verify_all(const tp_graph *graph, int64_t *lengths)
{
    for (tp_node_id id = 0; id < graph->node_count; ++id) {
        const tp_node *node = &graph->nodes[id];
        if (node->def->loop_part == TP_LOOP_NONE) continue;
        const int64_t length = tp_node_attr_int(node, "length", 0);
        int64_t *known = &lengths[tp_loop_unit(node)];
        if (*known && *known != length)
            return TP_FAIL(TPUCL_INTERNAL, "node %d says that loop %d has %lld turns, others %lld",
                           id, tp_loop_unit(node), (long long)length, (long long)*known);
        *known = length;
        if (node->def->loop_part == TP_LOOP_CARRY) TP_TRY(verify_carry(graph, id));
    }
    return TPUCL_OK;
}

tpucl_status tp_loop_verify(const tp_graph *graph)
{
    if (!graph->loop_count) return TPUCL_OK;
    int64_t *lengths = TP_NEW_ARRAY(int64_t, (size_t)graph->loop_count + 1);
    tp_node_id *order = TP_NEW_ARRAY(tp_node_id, (size_t)graph->node_count);
    tpucl_status status = lengths && order ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) status = verify_all(graph, lengths);
    if (status == TPUCL_OK) status = tp_loop_order(graph, order);
    tp_free(lengths);
    tp_free(order);
    return status;
}
