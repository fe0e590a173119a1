/* SPDX-License-Identifier: Apache-2.0
 * Invariants of a graph, one function per kind. */
#include "graph/verify.h"

#include <string.h>

#include "core/alloc.h"
#include "core/map.h"
#include "graph/attrs.h"
#include "graph/loop.h"

static tpucl_status verify_node(const tp_graph *graph, tp_node_id id)
{
    const tp_node *node = &graph->nodes[id];
    for (int32_t i = 0; i < node->input_count; ++i)
        if (node->inputs[i] < 0 || node->inputs[i] >= id)
            return TP_FAIL(TPUCL_INTERNAL, "input %d is node %d, expected one before it", i,
                           node->inputs[i]);
    TP_TRY(tp_attrs_check(node->def, node->attrs, node->attr_count));
    int32_t loop;
    tp_dtype dtype;
    tp_shape shape;
    TP_TRY(tp_loop_find(graph, node, &loop));
    if (loop != node->loop)
        return TP_FAIL(TPUCL_INTERNAL, "is in loop %d, its operands say %d", node->loop, loop);
    TP_TRY(node->def->infer(graph, node, &dtype, &shape));
    if (dtype != node->dtype || !tp_shape_equal(&shape, &node->shape)) {
        char have[TP_SHAPE_TEXT_MAX], want[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&node->shape, have, sizeof have);
        tp_shape_format(&shape, want, sizeof want);
        return TP_FAIL(TPUCL_INTERNAL, "is %s%s, its rule says %s%s", tp_dtype_name(node->dtype),
                       have, tp_dtype_name(dtype), want);
    }
    return TPUCL_OK;
}

/* An entry `name` of `table` must name a node of op `op` with this name; each such node once. */
static tpucl_status verify_port(const tp_graph *graph, const char *op, const char *name,
                                tp_node_id node, bool *inout_is_named)
{
    if (node < 0 || node >= graph->node_count || !tp_node_is(&graph->nodes[node], op))
        return TP_FAIL(TPUCL_INTERNAL, "%s '%s' is node %d, which is none", op, name, node);
    if (strcmp(tp_node_attr_text(&graph->nodes[node], "name", ""), name) != 0)
        return TP_FAIL(TPUCL_INTERNAL, "%s '%s' is node %d, whose name is '%s'", op, name, node,
                       tp_node_attr_text(&graph->nodes[node], "name", ""));
    if (inout_is_named[node])
        return TP_FAIL(TPUCL_INTERNAL, "%s '%s' is node %d, which has an entry already", op, name,
                       node);
    inout_is_named[node] = true;
    return TPUCL_OK;
}

static tpucl_status verify_ports(const tp_graph *graph, bool *is_named)
{
    for (int32_t i = 0; i < graph->input_count; ++i)
        TP_TRY(verify_port(graph, "input", graph->inputs[i].name, graph->inputs[i].node, is_named));
    for (int32_t i = 0; i < graph->variable_count; ++i) {
        const tp_variable *variable = &graph->variables[i];
        TP_TRY(verify_port(graph, "variable", variable->name, variable->node, is_named));
        const tp_node *node = &graph->nodes[variable->node];
        if (node->dtype != variable->dtype || !tp_shape_equal(&node->shape, &variable->shape))
            return TP_FAIL(TPUCL_INTERNAL, "variable '%s' and its node %d differ in type",
                           variable->name, variable->node);
        if ((unsigned)variable->init >= TP_INIT_KIND_COUNT)
            return TP_FAIL(TPUCL_INTERNAL, "variable '%s' has initialiser %d", variable->name,
                           (int)variable->init);
    }
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        if (!is_named[id] &&
            (tp_node_is(&graph->nodes[id], "input") || tp_node_is(&graph->nodes[id], "variable")))
            return TP_FAIL(TPUCL_INTERNAL, "node %d (%s '%s') has no entry", id,
                           graph->nodes[id].def->name, graph->nodes[id].name);
    return TPUCL_OK;
}

static tpucl_status verify_results(const tp_graph *graph, const bool *is_replicated,
                                   bool *is_updated)
{
    for (int32_t i = 0; i < graph->update_count; ++i) {
        const tp_update *update = &graph->updates[i];
        if (update->variable < 0 || update->variable >= graph->variable_count ||
            update->value < 0 || update->value >= graph->node_count)
            return TP_FAIL(TPUCL_INTERNAL, "update %d names variable %d and node %d", i,
                           update->variable, update->value);
        const tp_variable *variable = &graph->variables[update->variable];
        const tp_node *value = &graph->nodes[update->value];
        if (value->dtype != variable->dtype || !tp_shape_equal(&value->shape, &variable->shape))
            return TP_FAIL(TPUCL_INTERNAL, "update of '%s' by node %d differs in type",
                           variable->name, update->value);
        if (!is_replicated[update->value])
            return TP_FAIL(
                TPUCL_INTERNAL,
                "update of '%s' by node %d ('%s'), which differs from core to core; reduce its "
                "gradient with all_reduce",
                variable->name, update->value, value->name);
        if (is_updated[update->variable])
            return TP_FAIL(TPUCL_INTERNAL, "variable '%s' is updated twice", variable->name);
        is_updated[update->variable] = true;
    }
    for (int32_t i = 0; i < graph->output_count; ++i)
        if (graph->outputs[i].node < 0 || graph->outputs[i].node >= graph->node_count)
            return TP_FAIL(TPUCL_INTERNAL, "output '%s' is node %d", graph->outputs[i].name,
                           graph->outputs[i].node);
    return TPUCL_OK;
}

#define VERIFY_UNIQUE(map, items, count)                                                           \
    for (int32_t i = 0; i < (count); ++i)                                                          \
    TP_TRY(tp_map_add(&(map), (items)[i].name, (size_t)i))

static tpucl_status verify_names(const tp_graph *graph, tp_map maps[3])
{
    VERIFY_UNIQUE(maps[0], graph->inputs, graph->input_count);
    VERIFY_UNIQUE(maps[1], graph->variables, graph->variable_count);
    VERIFY_UNIQUE(maps[2], graph->outputs, graph->output_count);
    return TPUCL_OK;
}

tpucl_status tp_graph_verify(const tp_graph *graph)
{
    TP_TRY(tp_graph_check(graph));
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        if (verify_node(graph, id) != TPUCL_OK) {
            tp_error_note("node %d (%s '%s')", id, graph->nodes[id].def->name,
                          graph->nodes[id].name);
            return tpucl_last_error()->status;
        }
    tp_map maps[3] = {{0}, {0}, {0}};
    bool *flags =
        TP_NEW_ARRAY(bool, (size_t)graph->node_count * 2 + (size_t)graph->variable_count + 1);
    tpucl_status status = flags ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status != TPUCL_OK) return status;
    bool *is_replicated = flags + graph->node_count, *is_updated = flags + 2 * graph->node_count;
    tp_graph_mark_replicated(graph, is_replicated);
    TP_TRY_GOTO(status, tp_loop_verify(graph), done);
    TP_TRY_GOTO(status, verify_names(graph, maps), done);
    TP_TRY_GOTO(status, verify_ports(graph, flags), done);
    TP_TRY_GOTO(status, verify_results(graph, is_replicated, is_updated), done);
done:
    for (int i = 0; i < 3; ++i)
        tp_map_deinit(&maps[i]);
    tp_free(flags);
    return status;
}
