/* SPDX-License-Identifier: Apache-2.0
 * Reverse accumulation (Griewank and Walther, "Evaluating Derivatives", 2nd ed., chapter 3) over
 * the graph in id order, restricted to nodes that lie between `wrt` and `loss`. */
#include "graph/autodiff.h"

#include <string.h>

#include "core/alloc.h"
#include "graph/builder.h"
#include "graph/opdef.h"

/* Whether a gradient of another dtype may pass the op as it is. */
static bool hands_on_dtype(const tp_node *node)
{
    switch (node->def->op_class) {
    case TP_OP_BROADCAST:
    case TP_OP_RESHAPE:
    case TP_OP_REINDEX:
        return true;
    default:
        return tp_node_is(node, "convert");
    }
}

/* is_active[id]: the node depends on some of `wrt` by differentiable ops. */
static void mark_active(const tp_graph *graph, const tp_node_id *wrt, int32_t count,
                        tp_node_id last, bool *is_active)
{
    for (int32_t i = 0; i < count; ++i)
        if (wrt[i] <= last) is_active[wrt[i]] = true;
    for (tp_node_id id = 0; id <= last; ++id) {
        const tp_node *node = &graph->nodes[id];
        if (!node->def->gradient || !tp_dtype_is_float(node->dtype)) continue;
        for (int32_t i = 0; i < node->input_count; ++i)
            is_active[id] = is_active[id] || is_active[node->inputs[i]];
    }
}

/* Nodes of the gradient of "dense/add" are named "gradient/dense/multiply". */
static const char *enter_scope(tp_graph *graph, const char *name)
{
    const char *old_scope = graph->scope, *slash = strrchr(name, '/');
    const char *scope =
        tp_arena_printf(graph->arena, "gradient/%.*s", slash ? (int)(slash + 1 - name) : 0, name);
    if (scope) graph->scope = scope;
    return old_scope;
}

/* Adds one contribution to the gradient of `input`. */
static void accumulate(tp_graph *graph, tp_node_id input, tp_node_id contribution,
                       tp_node_id *gradients)
{
    const tp_node *node = &graph->nodes[input], *d = &graph->nodes[contribution];
    if (!tp_shape_equal(&node->shape, &d->shape) || !tp_dtype_is_float(d->dtype)) {
        char want[TP_SHAPE_TEXT_MAX], have[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&node->shape, want, sizeof want);
        tp_shape_format(&d->shape, have, sizeof have);
        tp_graph_fail(graph, "gradient of node %d ('%s') is %s%s, expected a float %s", input,
                      node->name, tp_dtype_name(d->dtype), have, want);
        return;
    }
    tp_node_id sum = gradients[input];
    if (sum == TP_NO_NODE) {
        gradients[input] = contribution;
        return;
    }
    if (graph->nodes[sum].dtype != d->dtype) {
        sum = tp_op_convert(graph, sum, TP_F32);
        contribution = tp_op_convert(graph, contribution, TP_F32);
    }
    gradients[input] = tp_op_add(graph, sum, contribution);
}

/* Lets the gradient of `id` flow to its active inputs. */
static void propagate(tp_graph *graph, tp_node_id id, const bool *is_active, tp_node_id *gradients)
{
    const tp_node node = graph->nodes[id]; /* a copy: the array moves as nodes are added */
    const char *old_scope = enter_scope(graph, node.name);
    tp_node_id d = gradients[id], d_inputs[TP_MAX_INPUTS];
    if (!hands_on_dtype(&node)) d = tp_op_convert(graph, d, node.dtype);
    for (int32_t i = 0; i < TP_MAX_INPUTS; ++i)
        d_inputs[i] = TP_NO_NODE;
    node.def->gradient(graph, id, d, d_inputs);
    for (int32_t i = 0; i < node.input_count && !graph->has_failed; ++i)
        if (d_inputs[i] != TP_NO_NODE && is_active[node.inputs[i]])
            accumulate(graph, node.inputs[i], d_inputs[i], gradients);
    tp_graph_pop_scope(graph, old_scope);
}

static bool is_valid_request(tp_graph *graph, tp_node_id loss, const tp_node_id *wrt, int32_t count)
{
    if (loss < 0 || loss >= graph->node_count) {
        tp_graph_fail(graph, "gradient of node %d, expected one of 0 to %d", loss,
                      graph->node_count - 1);
        return false;
    }
    const tp_node *node = &graph->nodes[loss];
    if (node->shape.rank != 0 || !tp_dtype_is_float(node->dtype)) {
        char text[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&node->shape, text, sizeof text);
        tp_graph_fail(graph, "gradient of %s%s, expected an f32 or bf16 scalar",
                      tp_dtype_name(node->dtype), text);
        return false;
    }
    for (int32_t i = 0; i < count; ++i)
        if (wrt[i] < 0 || wrt[i] >= graph->node_count) {
            tp_graph_fail(graph, "gradient with respect to node %d, expected one of 0 to %d",
                          wrt[i], graph->node_count - 1);
            return false;
        }
    return true;
}

void tp_graph_gradients(tp_graph *graph, tp_node_id loss, const tp_node_id *wrt, int32_t count,
                        tp_node_id *out_gradients)
{
    for (int32_t i = 0; i < count; ++i)
        out_gradients[i] = TP_NO_NODE;
    if (graph->has_failed || !is_valid_request(graph, loss, wrt, count)) return;

    bool *is_active = TP_NEW_ARRAY(bool, (size_t)loss + 1);
    tp_node_id *gradients = TP_NEW_ARRAY(tp_node_id, (size_t)loss + 1);
    if (!is_active || !gradients) {
        tp_graph_keep_error(graph);
        goto done;
    }
    for (tp_node_id id = 0; id <= loss; ++id)
        gradients[id] = TP_NO_NODE;
    mark_active(graph, wrt, count, loss, is_active);
    if (is_active[loss]) gradients[loss] = tp_op_scalar(graph, graph->nodes[loss].dtype, 1);
    for (tp_node_id id = loss; id >= 0 && !graph->has_failed; --id)
        if (gradients[id] != TP_NO_NODE && graph->nodes[id].def->gradient)
            propagate(graph, id, is_active, gradients);
    for (int32_t i = 0; i < count && !graph->has_failed; ++i)
        if (wrt[i] <= loss && gradients[wrt[i]] != TP_NO_NODE)
            out_gradients[i] = tp_op_convert(graph, gradients[wrt[i]], graph->nodes[wrt[i]].dtype);
done:
    tp_free(is_active);
    tp_free(gradients);
}
