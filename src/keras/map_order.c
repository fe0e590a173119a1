/* SPDX-License-Identifier: Apache-2.0
 * What calls of one model take from each other: references with one way of counting, all of them to something, no
 * circle; the calls that the outputs need, each after those that it takes from.
 */
#include <string.h>
#include "keras/map_internal.h"

tp_keras_call *tp_keras_graph_call(const tp_keras_graph *graph, const tp_keras_ref *ref)
{
    size_t index;
    if (!tp_map_find(&graph->row_names, ref->layer, &index)) return NULL;
    const tp_keras_row *row = &graph->rows.items[index];
    if (ref->node < 0 || ref->node >= row->call_count) return NULL;
    return &graph->calls.items[row->first_call + ref->node];
}

/* Which node numbers references to each row have. */
typedef struct node_range {
    int64_t least, most; /* -1: no reference */
} node_range;

static void extend(const tp_keras_graph *graph, const tp_keras_refs *refs, node_range *ranges)
{
    for (size_t i = 0; i < refs->count; i++) {
        size_t row;
        if (!tp_map_find(&graph->row_names, refs->items[i].layer, &row)) continue;
        node_range *range = &ranges[row];
        if (range->least < 0 || refs->items[i].node < range->least)
            range->least = refs->items[i].node;
        if (refs->items[i].node > range->most) range->most = refs->items[i].node;
    }
}

/* The call with which a nested model was made is its node 0 in many files, so that the first call of the outer
 * model is node 1: in lists of inbound nodes always, in Keras 3 in the ends of Functional models, in its calls in
 * some versions. */
static int64_t base_of(const tp_keras_row *row, const node_range *range, bool is_end)
{
    const tp_json *nodes = tp_keras_member(row->json, "inbound_nodes");
    const bool is_new = nodes && nodes->count && nodes->items[0].kind == TP_JSON_OBJECT;
    if (!row->is_model || range->least <= 0) return 0;
    if (!is_new || range->most >= row->call_count) return 1;
    return is_end && strcmp(row->kind, "Sequential") != 0;
}

static void shift(const tp_keras_graph *graph, tp_keras_refs *refs, const node_range *ranges,
                  bool is_end)
{
    for (size_t i = 0; i < refs->count; i++) {
        size_t row;
        if (tp_map_find(&graph->row_names, refs->items[i].layer, &row))
            refs->items[i].node -= base_of(&graph->rows.items[row], &ranges[row], is_end);
    }
}

/* Afterwards node numbers of nested models count from 0, too. */
static tpucl_status count_nodes_from_zero(tp_keras_mapper *mapper, tp_keras_graph *graph)
{
    const size_t count = graph->rows.count;
    node_range *ranges = TP_ARENA_NEW_ARRAY(mapper->arena, node_range, 2 * count + 1);
    if (!ranges) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < 2 * count; i++)
        ranges[i] = (node_range){-1, -1};
    for (size_t i = 0; i < graph->calls.count; i++)
        extend(graph, &graph->calls.items[i].inputs, ranges);
    extend(graph, &graph->outputs, ranges + count);
    for (size_t i = 0; i < graph->calls.count; i++)
        shift(graph, &graph->calls.items[i].inputs, ranges, false);
    shift(graph, &graph->outputs, ranges + count, true);
    return TPUCL_OK;
}

static tpucl_status check_refs(const tp_keras_graph *graph, const tp_keras_refs *refs)
{
    for (size_t i = 0; i < refs->count; i++) {
        const tp_keras_ref *ref = &refs->items[i];
        if (!tp_keras_graph_call(graph, ref)) {
            char where[TP_JSON_WHERE_BYTES];
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "%s: something takes result %lld of call %lld of '%.100s', which is not "
                           "there",
                           tp_json_where(graph->json, where), (long long)ref->tensor,
                           (long long)ref->node, ref->layer);
        }
    }
    return TPUCL_OK;
}

typedef struct visit {
    int32_t call;
    size_t next; /* of its inputs */
} visit;

TP_ARRAY_DEFINE(visits, visit)

/* Depth first from one call, each after its inputs; `state`: 0 new, 1 begun, 2 done. */
static tpucl_status place(tp_keras_graph *graph, int32_t from, char *state, visits *stack)
{
    TP_TRY(visits_push(stack, (visit){from, 0}));
    while (stack->count) {
        visit *top = &stack->items[stack->count - 1];
        const tp_keras_call *call = &graph->calls.items[top->call];
        state[top->call] = 1;
        if (top->next < call->inputs.count) {
            const tp_keras_call *input =
                tp_keras_graph_call(graph, &call->inputs.items[top->next++]);
            const int32_t index = (int32_t)(input - graph->calls.items);
            if (state[index] == 1)
                return tp_keras_malformed(graph->json, "a model without circles");
            if (state[index] == 0) TP_TRY(visits_push(stack, (visit){index, 0}));
            continue;
        }
        state[top->call] = 2;
        graph->calls.items[top->call].is_needed = true;
        stack->count--;
    }
    return TPUCL_OK;
}

/* The calls that the outputs need; then all of them in the file's order, where that is possible. */
static tpucl_status sort(tp_keras_mapper *mapper, tp_keras_graph *graph)
{
    const size_t count = graph->calls.count;
    visits stack = {0};
    tpucl_status status = TPUCL_OK;
    char *state = tp_arena_alloc(mapper->arena, count + 1);
    graph->order = TP_ARENA_NEW_ARRAY(mapper->arena, int32_t, count + 1);
    if (!state || !graph->order) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->outputs.count && status == TPUCL_OK; i++) {
        const tp_keras_call *call = tp_keras_graph_call(graph, &graph->outputs.items[i]);
        const int32_t index = (int32_t)(call - graph->calls.items);
        if (state[index] == 0) status = place(graph, index, state, &stack);
    }
    visits_deinit(&stack);
    TP_TRY(status);
    /* Almost always one sweep does; each further one places at least one call. */
    memset(state, 0, count);
    for (bool is_moving = true; is_moving;) {
        is_moving = false;
        for (size_t i = 0; i < count; i++) {
            const tp_keras_call *call = &graph->calls.items[i];
            bool is_ready = call->is_needed && !state[i];
            for (size_t k = 0; is_ready && k < call->inputs.count; k++)
                is_ready =
                    state[tp_keras_graph_call(graph, &call->inputs.items[k]) - graph->calls.items];
            if (!is_ready) continue;
            state[i] = is_moving = true;
            if (!graph->rows.items[call->layer].is_input)
                graph->order[graph->order_count++] = (int32_t)i;
        }
    }
    return TPUCL_OK;
}

tpucl_status tp_keras_graph_order(tp_keras_mapper *mapper, tp_keras_graph *graph)
{
    TP_TRY(count_nodes_from_zero(mapper, graph));
    for (size_t i = 0; i < graph->calls.count; i++)
        TP_TRY(check_refs(graph, &graph->calls.items[i].inputs));
    TP_TRY(check_refs(graph, &graph->inputs));
    TP_TRY(check_refs(graph, &graph->outputs));
    return sort(mapper, graph);
}
