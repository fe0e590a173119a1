/* SPDX-License-Identifier: Apache-2.0
 * The interpreter. Nodes run in the order of tp_loop_order(); those of a loop together, turn by turn.
 * A value lives from its node to its last user, in a loop to the loop's end, outputs and updates until
 * the step is over; values[node * cores + slot] holds one tensor per core, or per group in the first
 * slots for replicated nodes. */
#include "reference/reference.h"

#include <string.h>

#include "core/alloc.h"
#include "graph/loop.h"
#include "graph/rewrite.h"
#include "graph/verify.h"
#include "num/flush.h"
#include "num/init.h"
#include "num/reduce.h"
#include "reference/collective.h"

struct tp_reference {
    const tp_graph *graph;
    int32_t cores, group_cores, groups;
    uint64_t seed;
    bool *is_live, *is_replicated;
    tp_node_id *order;
    int32_t *last_use;         /* per node: place in `order`; node_count for outputs and updates */
    tp_host_tensor *values;    /* [node_count][cores]; data NULL: not there */
    tp_host_tensor *variables; /* [groups][variable_count] */
    bool has_outputs;
};

static tp_host_tensor *value_of(const tp_reference *reference, tp_node_id id, int32_t core)
{
    const int32_t slot = reference->is_replicated[id] ? core / reference->group_cores : core;
    return &reference->values[(int64_t)id * reference->cores + slot];
}

static int32_t slots_of(const tp_reference *reference, tp_node_id id)
{
    return reference->is_replicated[id] ? reference->groups : reference->cores;
}

static tpucl_status allocate(const tp_node *node, tp_host_tensor *out)
{
    out->dtype = node->dtype;
    out->shape = node->shape;
    out->data = tp_alloc_aligned((size_t)tp_shape_bytes(&node->shape, node->dtype) + 1, 64);
    return out->data ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static void release_node(tp_reference *reference, tp_node_id id)
{
    for (int32_t slot = 0; slot < reference->cores; ++slot) {
        tp_host_tensor *value = &reference->values[(int64_t)id * reference->cores + slot];
        tp_free(value->data);
        value->data = NULL;
    }
}

static void release_all(tp_reference *reference)
{
    for (tp_node_id id = 0; id < reference->graph->node_count; ++id)
        release_node(reference, id);
    reference->has_outputs = false;
}

/* ---- creation ---- */
/* Behind the last place of what runs together with the node at `place`: itself, or its loop. */
static int32_t end_of(const tp_reference *reference, int32_t place)
{
    const tp_graph *graph = reference->graph;
    const int32_t loop = tp_loop_unit(&graph->nodes[reference->order[place]]);
    int32_t end = place + 1;
    while (loop && end < graph->node_count &&
           tp_loop_unit(&graph->nodes[reference->order[end]]) == loop)
        ++end;
    return end;
}

static tpucl_status plan_lifetimes(tp_reference *reference)
{
    const tp_graph *graph = reference->graph;
    tp_graph_mark_live(graph, reference->is_live);
    tp_graph_mark_replicated(graph, reference->is_replicated);
    TP_TRY(tp_loop_order(graph, reference->order));
    for (int32_t place = 0; place < graph->node_count;) {
        const int32_t end = end_of(reference, place);
        for (; place < end; ++place) {
            const tp_node_id id = reference->order[place];
            reference->last_use[id] = end - 1;
            for (int32_t i = 0; reference->is_live[id] && i < graph->nodes[id].input_count; ++i)
                reference->last_use[graph->nodes[id].inputs[i]] = end - 1;
        }
    }
    for (int32_t i = 0; i < graph->update_count; ++i)
        reference->last_use[graph->updates[i].value] = graph->node_count;
    for (int32_t i = 0; i < graph->output_count; ++i)
        reference->last_use[graph->outputs[i].node] = graph->node_count;
    return TPUCL_OK;
}

static tpucl_status initialise_variables(tp_reference *reference)
{
    const tp_graph *graph = reference->graph;
    for (int32_t group = 0; group < reference->groups; ++group)
        for (int32_t i = 0; i < graph->variable_count; ++i) {
            const tp_variable *variable = &graph->variables[i];
            tp_host_tensor *tensor = tp_reference_variable(reference, group, i);
            TP_TRY(allocate(&graph->nodes[variable->node], tensor));
            TP_TRY(tp_init_fill(variable->init, variable->init_a, variable->init_b, variable->name,
                                reference->seed, variable->dtype, tp_shape_elems(&variable->shape),
                                tensor->data));
        }
    return TPUCL_OK;
}

tpucl_status tp_reference_create(const tp_graph *graph, const tp_reference_options *options,
                                 tp_reference **out_reference)
{
    const int32_t cores = options->cores;
    const int32_t group_cores = options->group_cores ? options->group_cores : cores;
    if (cores < 1 || group_cores < 1 || cores % group_cores != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%d cores in groups of %d: expected groups that divide them", cores,
                       group_cores);
    TP_TRY(tp_graph_verify(graph));
    TP_TRY(tp_reference_check_groups(graph, group_cores));
    tp_reference *reference = TP_NEW(tp_reference);
    if (!reference) return TPUCL_OUT_OF_MEMORY;
    reference->graph = graph;
    reference->cores = cores;
    reference->group_cores = group_cores;
    reference->groups = cores / group_cores;
    reference->seed = options->seed;
    const size_t nodes = (size_t)graph->node_count;
    reference->is_live = TP_NEW_ARRAY(bool, nodes);
    reference->is_replicated = TP_NEW_ARRAY(bool, nodes);
    reference->order = TP_NEW_ARRAY(tp_node_id, nodes);
    reference->last_use = TP_NEW_ARRAY(int32_t, nodes);
    reference->values = TP_NEW_ARRAY(tp_host_tensor, nodes * (size_t)cores);
    reference->variables =
        TP_NEW_ARRAY(tp_host_tensor, (size_t)reference->groups * (size_t)graph->variable_count);
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    if (!reference->is_live || !reference->is_replicated || !reference->order ||
        !reference->last_use || !reference->values || !reference->variables)
        goto failed;
    TP_TRY_GOTO(status, plan_lifetimes(reference), failed);
    TP_TRY_GOTO(status, initialise_variables(reference), failed);
    *out_reference = reference;
    return TPUCL_OK;
failed:
    tp_reference_destroy(reference);
    return status;
}

void tp_reference_destroy(tp_reference *reference)
{
    if (!reference) return;
    if (reference->values) release_all(reference);
    for (int32_t i = 0;
         reference->variables && i < reference->groups * reference->graph->variable_count; ++i)
        tp_free(reference->variables[i].data);
    tp_free(reference->is_live);
    tp_free(reference->is_replicated);
    tp_free(reference->order);
    tp_free(reference->last_use);
    tp_free(reference->values);
    tp_free(reference->variables);
    tp_free(reference);
}

/* ---- one step ---- */
static void copy_flushed(const void *src, tp_host_tensor *dst)
{
    const int64_t elems = tp_shape_elems(&dst->shape);
    if (!elems) return;
    memcpy(dst->data, src, (size_t)tp_shape_bytes(&dst->shape, dst->dtype));
    tp_flush_array(dst->dtype, dst->data, (uint64_t)elems);
}

static tpucl_status load_inputs(tp_reference *reference, const void *const *inputs)
{
    const tp_graph *graph = reference->graph;
    for (int32_t core = 0; core < reference->cores; ++core)
        for (int32_t i = 0; i < graph->input_count; ++i) {
            const void *src = inputs[(int64_t)core * graph->input_count + i];
            if (!src)
                return TP_FAIL(TPUCL_INVALID_ARGUMENT, "input '%s' of core %d is missing",
                               graph->inputs[i].name, core);
            tp_host_tensor *value = value_of(reference, graph->inputs[i].node, core);
            TP_TRY(allocate(&graph->nodes[graph->inputs[i].node], value));
            copy_flushed(src, value);
        }
    return TPUCL_OK;
}

/* The operand as `core` sees it; a variable is read in place. */
static tp_host_tensor operand(tp_reference *reference, tp_node_id id, int32_t core)
{
    if (!tp_node_is(&reference->graph->nodes[id], "variable"))
        return *value_of(reference, id, core);
    const int32_t index = tp_graph_variable_of(reference->graph, id);
    return *tp_reference_variable(reference, core / reference->group_cores, index);
}

tpucl_status tp_reference_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                   const tp_eval_context *context, tp_host_tensor *out)
{
    if (!node->def->evaluate)
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' cannot be evaluated on its own", node->def->name);
    return node->def->evaluate(node, inputs, context, out);
}

/* The operands of a core's whole group make its result. */
static tpucl_status evaluate_collective(tp_reference *reference, tp_node_id id, int32_t core,
                                        tp_host_tensor *out)
{
    const tp_node *node = &reference->graph->nodes[id];
    const int32_t count = reference->group_cores, first_core = core / count * count;
    tp_host_tensor *parts = TP_NEW_ARRAY(tp_host_tensor, (size_t)count);
    if (!parts) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; ++i)
        parts[i] = operand(reference, node->inputs[0], first_core + i);
    const tpucl_status status = tp_reference_collective(node, parts, count, core - first_core, out);
    tp_free(parts);
    return status;
}

static tpucl_status evaluate_slot(tp_reference *reference, tp_node_id id, int32_t slot,
                                  uint32_t step, int64_t turn)
{
    const tp_node *node = &reference->graph->nodes[id];
    const int32_t core = reference->is_replicated[id] ? slot * reference->group_cores : slot;
    tp_host_tensor *out = &reference->values[(int64_t)id * reference->cores + slot];
    if (!out->data) TP_TRY(allocate(node, out)); /* there from an earlier turn */
    if (node->def->op_class == TP_OP_COLLECTIVE)
        return evaluate_collective(reference, id, core, out);
    tp_host_tensor inputs[TP_MAX_INPUTS];
    for (int32_t i = 0; i < node->input_count; ++i)
        inputs[i] = operand(reference, node->inputs[i], core);
    const tp_eval_context context = {.seed = reference->seed,
                                     .core = (uint32_t)core,
                                     .step = step,
                                     .turn = turn,
                                     .position = (uint32_t)(core % reference->group_cores)};
    return tp_reference_evaluate(node, inputs, &context, out);
}

/* An output may be a variable: its value from before the updates. */
static tpucl_status keep_variable(tp_reference *reference, tp_node_id id)
{
    for (int32_t group = 0; group < reference->groups; ++group) {
        const tp_host_tensor now = operand(reference, id, group * reference->group_cores);
        tp_host_tensor *kept = value_of(reference, id, group * reference->group_cores);
        TP_TRY(allocate(&reference->graph->nodes[id], kept));
        memcpy(kept->data, now.data, (size_t)tp_shape_bytes(&now.shape, now.dtype));
    }
    return TPUCL_OK;
}

static tpucl_status evaluate_node(tp_reference *reference, tp_node_id id, uint32_t step,
                                  int64_t turn)
{
    const tp_node *node = &reference->graph->nodes[id];
    for (int32_t slot = 0; slot < slots_of(reference, id); ++slot)
        if (evaluate_slot(reference, id, slot, step, turn) != TPUCL_OK) {
            tp_error_note("node %d (%s '%s')", id, node->def->name, node->name);
            return tpucl_last_error()->status;
        }
    return TPUCL_OK;
}

static tpucl_status evaluate_single(tp_reference *reference, tp_node_id id, uint32_t step)
{
    const tp_node *node = &reference->graph->nodes[id];
    if (tp_node_is(node, "input")) return TPUCL_OK;
    if (!tp_node_is(node, "variable")) return evaluate_node(reference, id, step, 0);
    return reference->last_use[id] == reference->graph->node_count ? keep_variable(reference, id)
                                                                   : TPUCL_OK;
}

/* ---- loops ---- */
/* The live nodes of a loop at order[first .. end - 1] that are of the part, or of all but it. */
static tpucl_status evaluate_part(tp_reference *reference, int32_t first, int32_t end,
                                  tp_loop_part part, bool is_all_but, uint32_t step, int64_t turn)
{
    for (int32_t place = first; place < end; ++place) {
        const tp_node_id id = reference->order[place];
        const tp_loop_part own = reference->graph->nodes[id].def->loop_part;
        if (!reference->is_live[id] || (own == part) == is_all_but) continue;
        if (own == TP_LOOP_CARRY && turn > 0) continue; /* has its value */
        TP_TRY(evaluate_node(reference, id, step, turn));
    }
    return TPUCL_OK;
}

/* Each loop_last holds the next value of its carry: they change places. */
static void advance_carries(tp_reference *reference, int32_t first, int32_t end)
{
    for (int32_t place = first; place < end; ++place) {
        const tp_node_id id = reference->order[place];
        const tp_node *node = &reference->graph->nodes[id];
        if (!reference->is_live[id] || node->def->loop_part != TP_LOOP_LAST) continue;
        for (int32_t slot = 0; slot < slots_of(reference, id); ++slot) {
            tp_host_tensor *last = &reference->values[(int64_t)id * reference->cores + slot];
            tp_host_tensor *carry =
                &reference->values[(int64_t)node->inputs[0] * reference->cores + slot];
            void *next = last->data;
            last->data = carry->data;
            carry->data = next;
        }
    }
}

static tpucl_status evaluate_loop(tp_reference *reference, int32_t first, int32_t end,
                                  uint32_t step)
{
    const tp_graph *graph = reference->graph;
    const int64_t length =
        tp_loop_length(graph, tp_loop_unit(&graph->nodes[reference->order[first]]));
    for (int64_t turn = 0; turn < length; ++turn) {
        TP_TRY(evaluate_part(reference, first, end, TP_LOOP_LAST, true, step, turn));
        TP_TRY(evaluate_part(reference, first, end, TP_LOOP_LAST, false, step, turn));
        if (turn + 1 < length) advance_carries(reference, first, end);
    }
    return TPUCL_OK;
}

/* What nobody needs after the place. */
static void release_unused(tp_reference *reference, tp_node_id id, int32_t place)
{
    const tp_node *node = &reference->graph->nodes[id];
    for (int32_t i = 0; i < node->input_count; ++i)
        if (reference->last_use[node->inputs[i]] == place) release_node(reference, node->inputs[i]);
}

static tpucl_status evaluate_nodes(tp_reference *reference, uint32_t step)
{
    const tp_graph *graph = reference->graph;
    for (int32_t place = 0; place < graph->node_count;) {
        const tp_node_id id = reference->order[place];
        const int32_t first = place, end = end_of(reference, place);
        if (tp_loop_unit(&graph->nodes[id]))
            TP_TRY(evaluate_loop(reference, first, end, step));
        else if (reference->is_live[id])
            TP_TRY(evaluate_single(reference, id, step));
        for (; place < end; ++place)
            if (reference->is_live[reference->order[place]])
                release_unused(reference, reference->order[place], end - 1);
    }
    return TPUCL_OK;
}

/* All new values are computed by now; a value that is another variable's old one must be taken
 * before that one changes, so updates go through copies. */
static tpucl_status apply_updates(tp_reference *reference)
{
    const tp_graph *graph = reference->graph;
    const size_t count = (size_t)graph->update_count * (size_t)reference->groups;
    tp_host_tensor *fresh = TP_NEW_ARRAY(tp_host_tensor, count);
    tpucl_status status = fresh ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; status == TPUCL_OK && i < count; ++i) {
        const tp_update *update = &graph->updates[i / (size_t)reference->groups];
        const int32_t group = (int32_t)(i % (size_t)reference->groups);
        const tp_host_tensor value =
            operand(reference, update->value, group * reference->group_cores);
        status = allocate(&graph->nodes[update->value], &fresh[i]);
        if (status == TPUCL_OK)
            memcpy(fresh[i].data, value.data, (size_t)tp_shape_bytes(&value.shape, value.dtype));
    }
    for (size_t i = 0; i < count && fresh; ++i) {
        const tp_update *update = &graph->updates[i / (size_t)reference->groups];
        tp_host_tensor *variable = tp_reference_variable(
            reference, (int32_t)(i % (size_t)reference->groups), update->variable);
        if (status == TPUCL_OK) {
            void *old = variable->data;
            variable->data = fresh[i].data;
            fresh[i].data = old;
        }
        tp_free(fresh[i].data);
    }
    tp_free(fresh);
    return status;
}

tpucl_status tp_reference_step(tp_reference *reference, const void *const *inputs, uint32_t step)
{
    release_all(reference);
    tpucl_status status = load_inputs(reference, inputs);
    if (status == TPUCL_OK) status = evaluate_nodes(reference, step);
    if (status == TPUCL_OK) status = apply_updates(reference);
    if (status == TPUCL_OK)
        reference->has_outputs = true;
    else
        release_all(reference);
    return status;
}

/* ---- access ---- */
const tp_host_tensor *tp_reference_output(const tp_reference *reference, int32_t core,
                                          int32_t output)
{
    if (!reference->has_outputs || core < 0 || core >= reference->cores || output < 0 ||
        output >= reference->graph->output_count)
        return NULL;
    return value_of(reference, reference->graph->outputs[output].node, core);
}

tp_host_tensor *tp_reference_variable(tp_reference *reference, int32_t group, int32_t variable)
{
    return &reference->variables[(int64_t)group * reference->graph->variable_count + variable];
}

tpucl_status tp_reference_copy_variables(const tp_reference *from, tp_reference *to)
{
    if (from->groups != to->groups)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "copy of the variables of %d replica groups to %d",
                       from->groups, to->groups);
    for (int32_t i = 0; i < to->graph->variable_count; ++i) {
        const tp_variable *variable = &to->graph->variables[i];
        const int32_t index = tp_graph_find_variable(from->graph, variable->name);
        if (index < 0)
            return TP_FAIL(TPUCL_NOT_FOUND, "there is no variable '%s' to copy", variable->name);
        for (int32_t group = 0; group < to->groups; ++group) {
            const tp_host_tensor *src =
                &from->variables[(int64_t)group * from->graph->variable_count + index];
            tp_host_tensor *dst = tp_reference_variable(to, group, i);
            if (src->dtype != dst->dtype || !tp_shape_equal(&src->shape, &dst->shape))
                return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                               "variable '%s' has another type where it comes from",
                               variable->name);
            memcpy(dst->data, src->data, (size_t)tp_shape_bytes(&src->shape, src->dtype));
        }
    }
    return TPUCL_OK;
}
