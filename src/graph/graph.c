/* SPDX-License-Identifier: Apache-2.0
 * Storage and construction of graphs. One function, tp_graph_add(), makes every node, whoever
 * asks: a wrapper, a gradient, a pass or the parser; so whatever is in a graph has been inferred
 * and checked. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/array.h"
#include "graph/attrs.h"
#include "graph/loop.h"

const tp_opdef *tp_op_table_find(const tp_op_table *table, const char *name)
{
    for (int32_t i = 0; i < table->count; ++i)
        if (strcmp(table->defs[i]->name, name) == 0) return table->defs[i];
    return NULL;
}

bool tp_node_is(const tp_node *node, const char *op)
{
    return strcmp(node->def->name, op) == 0;
}

tpucl_status tp_graph_create(const tp_op_table *ops, tp_graph **out_graph)
{
    tp_graph *graph = TP_NEW(tp_graph);
    if (!graph) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = tp_arena_create(0, &graph->arena);
    if (status != TPUCL_OK) {
        tp_free(graph);
        return status;
    }
    graph->ops = ops;
    graph->scope = "";
    *out_graph = graph;
    return TPUCL_OK;
}

void tp_graph_destroy(tp_graph *graph)
{
    if (!graph) return;
    tp_free(graph->nodes);
    tp_free(graph->variables);
    tp_free(graph->updates);
    tp_free(graph->inputs);
    tp_free(graph->outputs);
    tp_arena_destroy(graph->arena);
    tp_free(graph);
}

tpucl_status tp_graph_check(const tp_graph *graph)
{
    if (!graph->has_failed) return TPUCL_OK;
    tp_error_restore(&graph->first_error);
    return graph->first_error.status;
}

tp_node_id tp_graph_keep_error(tp_graph *graph)
{
    if (!graph->has_failed) {
        tp_error_capture(&graph->first_error);
        graph->has_failed = true;
    }
    return TP_NO_NODE;
}

tp_node_id tp_graph_fail(tp_graph *graph, const char *format, ...)
{
    if (graph->has_failed) return TP_NO_NODE;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s%s%s", graph->scope, *graph->scope ? ": " : "", text);
    return tp_graph_keep_error(graph);
}

/* Room for one more element in an array of the graph. */
static tpucl_status reserve_one(void **inout_items, int32_t count, int32_t *inout_capacity,
                                size_t size)
{
    if (count < *inout_capacity) return TPUCL_OK;
    if (count == INT32_MAX)
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "graph has %d entries, no room for more", (int)count);
    size_t capacity = tp_array_next_capacity((size_t)*inout_capacity, (size_t)count + 1);
    if (capacity > INT32_MAX) capacity = INT32_MAX;
    void *items = tp_alloc_grow(*inout_items, (size_t)count, capacity, size);
    if (!items) return TPUCL_OUT_OF_MEMORY;
    *inout_items = items;
    *inout_capacity = (int32_t)capacity;
    return TPUCL_OK;
}

#define RESERVE(graph, items, count, capacity)                                                     \
    reserve_one((void **)&(graph)->items, (graph)->count, &(graph)->capacity,                      \
                sizeof *(graph)->items)

static tpucl_status check_inputs(const tp_graph *graph, const tp_opdef *def,
                                 const tp_node_id *inputs, int32_t count)
{
    int32_t max = def->max_inputs < TP_MAX_INPUTS ? def->max_inputs : TP_MAX_INPUTS;
    if (count < def->min_inputs || count > max)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' takes %d to %d inputs, found %d", def->name,
                       def->min_inputs, max, count);
    for (int32_t i = 0; i < count; ++i)
        if (inputs[i] < 0 || inputs[i] >= graph->node_count)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "input %d of '%s' is node %d, expected one of 0 to %d", i, def->name,
                           inputs[i], graph->node_count - 1);
    return TPUCL_OK;
}

static tpucl_status append_node(tp_graph *graph, const char *op, const tp_node_id *inputs,
                                int32_t input_count, const tp_attr *attrs, int32_t attr_count)
{
    const tp_opdef *def = tp_op_table_find(graph->ops, op);
    if (!def) return TP_FAIL(TPUCL_INVALID_ARGUMENT, "there is no op '%s'", op);
    TP_TRY(check_inputs(graph, def, inputs, input_count));
    TP_TRY(tp_attrs_check(def, attrs, attr_count));

    tp_node node = {
        .def = def, .input_count = input_count, .attrs = attrs, .attr_count = attr_count};
    for (int32_t i = 0; i < TP_MAX_INPUTS; ++i)
        node.inputs[i] = i < input_count ? inputs[i] : TP_NO_NODE;
    node.name = "";
    TP_TRY(tp_loop_find(graph, &node, &node.loop));
    TP_TRY(def->infer(graph, &node, &node.dtype, &node.shape));
    TP_TRY(tp_attrs_copy(graph->arena, attrs, attr_count, &node.attrs));
    node.name = tp_arena_printf(graph->arena, "%s%s", graph->scope, op);
    if (!node.name) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(RESERVE(graph, nodes, node_count, node_capacity));
    graph->nodes[graph->node_count++] = node;
    if (node.loop > graph->loop_count) graph->loop_count = node.loop;
    return TPUCL_OK;
}

tp_node_id tp_graph_add(tp_graph *graph, const char *op, const tp_node_id *inputs,
                        int32_t input_count, const tp_attr *attrs, int32_t attr_count)
{
    if (graph->has_failed) return TP_NO_NODE;
    tpucl_status status = append_node(graph, op, inputs, input_count, attrs, attr_count);
    if (status == TPUCL_OK) return graph->node_count - 1;
    tp_error_note("node %d, %s%s", graph->node_count, graph->scope, op);
    return tp_graph_keep_error(graph);
}

/* Marks a failure of bookkeeping (out of memory, a name given twice) as the graph's. */
static bool kept(tp_graph *graph, tpucl_status status)
{
    if (status != TPUCL_OK) (void)tp_graph_keep_error(graph);
    return status != TPUCL_OK;
}

static tp_node_id add_port_node(tp_graph *graph, const char *op, const char *name, tp_dtype dtype,
                                const tp_shape *shape)
{
    const tp_attr attrs[] = {tp_attr_text("name", name),
                             tp_attr_text("dtype", tp_dtype_name(dtype)),
                             tp_attr_shape("shape", shape)};
    tp_node_id id = tp_graph_add(graph, op, NULL, 0, attrs, 3);
    if (id != TP_NO_NODE) graph->nodes[id].name = tp_node_attr_text(&graph->nodes[id], "name", "");
    return id;
}

void tp_graph_register_input(tp_graph *graph, tp_node_id node)
{
    if (graph->has_failed) return;
    if (node < 0 || node >= graph->node_count || !tp_node_is(&graph->nodes[node], "input")) {
        tp_graph_fail(graph, "node %d is no input", node);
        return;
    }
    const char *name = tp_node_attr_text(&graph->nodes[node], "name", "");
    for (int32_t i = 0; i < graph->input_count; ++i)
        if (strcmp(graph->inputs[i].name, name) == 0) {
            tp_graph_fail(graph, "input '%s' is added twice", name);
            return;
        }
    if (kept(graph, RESERVE(graph, inputs, input_count, input_capacity))) return;
    graph->inputs[graph->input_count++] = (tp_graph_input){.name = name, .node = node};
}

void tp_graph_register_variable(tp_graph *graph, const tp_variable *variable)
{
    if (graph->has_failed) return;
    const tp_node_id node = variable->node;
    if (node < 0 || node >= graph->node_count || !tp_node_is(&graph->nodes[node], "variable")) {
        tp_graph_fail(graph, "node %d is no variable", node);
        return;
    }
    const char *name = tp_node_attr_text(&graph->nodes[node], "name", "");
    if (tp_graph_find_variable(graph, name) >= 0) {
        tp_graph_fail(graph, "variable '%s' is added twice", name);
        return;
    }
    if (kept(graph, RESERVE(graph, variables, variable_count, variable_capacity))) return;
    tp_variable *added = &graph->variables[graph->variable_count++];
    *added = *variable;
    added->name = name;
    added->dtype = graph->nodes[node].dtype;
    added->shape = graph->nodes[node].shape;
}

tp_node_id tp_graph_add_input(tp_graph *graph, const char *name, tp_dtype dtype, tp_shape shape)
{
    const tp_node_id id = add_port_node(graph, "input", name, dtype, &shape);
    tp_graph_register_input(graph, id);
    return graph->has_failed ? TP_NO_NODE : id;
}

tp_node_id tp_graph_add_variable(tp_graph *graph, const tp_variable *variable)
{
    if (graph->has_failed) return TP_NO_NODE;
    char *name = tp_arena_printf(graph->arena, "%s%s", graph->scope, variable->name);
    if (!name) return tp_graph_keep_error(graph);
    tp_variable added = *variable;
    added.node = add_port_node(graph, "variable", name, variable->dtype, &variable->shape);
    tp_graph_register_variable(graph, &added);
    return graph->has_failed ? TP_NO_NODE : added.node;
}

int32_t tp_graph_find_variable(const tp_graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->variable_count; ++i)
        if (strcmp(graph->variables[i].name, name) == 0) return i;
    return -1;
}

int32_t tp_graph_variable_of(const tp_graph *graph, tp_node_id node)
{
    for (int32_t i = 0; i < graph->variable_count; ++i)
        if (graph->variables[i].node == node) return i;
    return -1;
}

void tp_graph_add_update(tp_graph *graph, tp_node_id variable, tp_node_id value)
{
    if (graph->has_failed) return;
    int32_t index = tp_graph_variable_of(graph, variable);
    if (index < 0) {
        tp_graph_fail(graph, "update of node %d, which is no variable", variable);
        return;
    }
    const tp_variable *target = &graph->variables[index];
    for (int32_t i = 0; i < graph->update_count; ++i)
        if (graph->updates[i].variable == index) {
            tp_graph_fail(graph, "variable '%s' is updated twice in one step", target->name);
            return;
        }
    if (value < 0 || value >= graph->node_count) {
        tp_graph_fail(graph, "update of '%s' with node %d, expected one of 0 to %d", target->name,
                      value, graph->node_count - 1);
        return;
    }
    const tp_node *node = &graph->nodes[value];
    if (node->loop) {
        tp_graph_fail(graph, "update of '%s' with node %d, which has a value per turn of a loop",
                      target->name, value);
        return;
    }
    if (node->dtype != target->dtype || !tp_shape_equal(&node->shape, &target->shape)) {
        char want[TP_SHAPE_TEXT_MAX], have[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&target->shape, want, sizeof want);
        tp_shape_format(&node->shape, have, sizeof have);
        tp_graph_fail(graph, "update of '%s' is %s%s, expected %s%s like the variable",
                      target->name, tp_dtype_name(node->dtype), have, tp_dtype_name(target->dtype),
                      want);
        return;
    }
    if (kept(graph, RESERVE(graph, updates, update_count, update_capacity))) return;
    graph->updates[graph->update_count++] = (tp_update){.variable = index, .value = value};
}

void tp_graph_add_output(tp_graph *graph, const char *name, tp_node_id node)
{
    if (graph->has_failed) return;
    if (node < 0 || node >= graph->node_count) {
        tp_graph_fail(graph, "output '%s' is node %d, expected one of 0 to %d", name, node,
                      graph->node_count - 1);
        return;
    }
    if (graph->nodes[node].loop) {
        tp_graph_fail(graph, "output '%s' is node %d, which has a value per turn of a loop", name,
                      node);
        return;
    }
    for (int32_t i = 0; i < graph->output_count; ++i)
        if (strcmp(graph->outputs[i].name, name) == 0) {
            tp_graph_fail(graph, "output '%s' is added twice", name);
            return;
        }
    char *copy = tp_arena_strdup(graph->arena, name);
    if (kept(graph,
             copy ? RESERVE(graph, outputs, output_count, output_capacity) : TPUCL_OUT_OF_MEMORY))
        return;
    graph->outputs[graph->output_count++] = (tp_graph_output){.name = copy, .node = node};
}

const char *tp_graph_push_scope(tp_graph *graph, const char *name)
{
    const char *old_scope = graph->scope;
    const char *scope = tp_arena_printf(graph->arena, "%s%s/", old_scope, name);
    if (scope)
        graph->scope = scope;
    else
        (void)tp_graph_keep_error(graph);
    return old_scope;
}

void tp_graph_pop_scope(tp_graph *graph, const char *old_scope)
{
    graph->scope = old_scope;
}

/* One walk over the nodes: false where an operand is, and in loops where `out_is_replicated` says so
 * already of one of their nodes. */
static void mark_replicated_once(const tp_graph *graph, bool *out_is_replicated)
{
    for (tp_node_id id = 0; id < graph->node_count; ++id) {
        const tp_node *node = &graph->nodes[id];
        bool is_replicated =
            out_is_replicated[id] &&
            (node->def->op_class != TP_OP_RANDOM || node->def->is_equal_on_cores) &&
            !tp_node_is(node, "input");
        for (int32_t i = 0; i < node->input_count; ++i)
            is_replicated = is_replicated && out_is_replicated[node->inputs[i]];
        is_replicated = is_replicated || node->def->op_class == TP_OP_COLLECTIVE;
        out_is_replicated[id] = is_replicated && !node->def->depends_on_core;
    }
}

void tp_graph_mark_replicated(const tp_graph *graph, bool *out_is_replicated)
{
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        out_is_replicated[id] = true;
    do
        mark_replicated_once(graph, out_is_replicated);
    while (tp_loop_spread_per_core(graph, out_is_replicated));
}
