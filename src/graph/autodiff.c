/* SPDX-License-Identifier: Apache-2.0
 * Reverse accumulation (Griewank and Walther, "Evaluating Derivatives", 2nd ed., chapter 3) over
 * the graph in id order, restricted to nodes that lie between `wrt` and `loss`. */
#include "graph/autodiff.h"

#include <string.h>

#include "core/alloc.h"
#include "graph/autodiff_internal.h"
#include "graph/builder.h"
#include "graph/loop.h"

bool tp_autodiff_hands_on_dtype(const tp_node *node)
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

static void mark_active_once(const tp_autodiff *ad)
{
    for (tp_node_id id = 0; id < ad->node_count; ++id) {
        const tp_node *node = &ad->graph->nodes[id];
        if ((!node->def->gradient && !node->def->loop_part) || !tp_dtype_is_float(node->dtype))
            continue;
        for (int32_t i = 0; i < node->input_count; ++i)
            ad->is_active[id] = ad->is_active[id] || ad->is_active[node->inputs[i]];
    }
}

/* A carry depends on what it was in the turn before. True when that made one active. */
static bool turn_active(const tp_autodiff *ad)
{
    bool has_changed = false;
    for (tp_node_id id = 0; ad->graph->loop_count > 0 && id < ad->node_count; ++id) {
        const tp_node *node = &ad->graph->nodes[id];
        if (node->def->loop_part != TP_LOOP_LAST || !ad->is_active[node->inputs[1]] ||
            ad->is_active[node->inputs[0]])
            continue;
        ad->is_active[node->inputs[0]] = has_changed = true;
    }
    return has_changed;
}

/* is_active[id]: the node depends on some of `wrt` by differentiable ops. */
static void mark_active(const tp_autodiff *ad, const tp_node_id *wrt, int32_t count)
{
    for (int32_t i = 0; i < count; ++i)
        ad->is_active[wrt[i]] = true;
    do
        mark_active_once(ad);
    while (turn_active(ad));
}

const char *tp_autodiff_enter_scope(tp_graph *graph, const char *name)
{
    const char *old_scope = graph->scope, *slash = strrchr(name, '/');
    const char *scope =
        tp_arena_printf(graph->arena, "gradient/%.*s", slash ? (int)(slash + 1 - name) : 0, name);
    if (scope) graph->scope = scope;
    return old_scope;
}

void tp_autodiff_accumulate(tp_graph *graph, tp_node_id input, tp_node_id contribution,
                            tp_node_id *gradients)
{
    if (graph->has_failed) return;
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
static void propagate(const tp_autodiff *ad, tp_node_id id)
{
    tp_graph *graph = ad->graph;
    const tp_node node = graph->nodes[id]; /* a copy: the array moves as nodes are added */
    if (ad->gradients[id] == TP_NO_NODE || !node.def->gradient) return;
    const char *old_scope = tp_autodiff_enter_scope(graph, node.name);
    tp_node_id d = ad->gradients[id], d_inputs[TP_MAX_INPUTS];
    if (!tp_autodiff_hands_on_dtype(&node)) d = tp_op_convert(graph, d, node.dtype);
    for (int32_t i = 0; i < TP_MAX_INPUTS; ++i)
        d_inputs[i] = TP_NO_NODE;
    node.def->gradient(graph, id, d, d_inputs);
    for (int32_t i = 0; i < node.input_count && !graph->has_failed; ++i)
        if (d_inputs[i] != TP_NO_NODE && ad->is_active[node.inputs[i]])
            tp_autodiff_accumulate(graph, node.inputs[i], d_inputs[i], ad->gradients);
    tp_graph_pop_scope(graph, old_scope);
}

static void walk(tp_autodiff *ad)
{
    for (int32_t place = ad->node_count - 1; place >= 0 && !ad->graph->has_failed; --place) {
        const tp_node_id id = ad->order[place];
        const int32_t loop = tp_loop_unit(&ad->graph->nodes[id]);
        if (!loop) {
            propagate(ad, id);
            continue;
        }
        while (place > 0 && tp_loop_unit(&ad->graph->nodes[ad->order[place - 1]]) == loop)
            --place;
        tp_autodiff_loop(ad, loop);
    }
}

static bool is_outside_of_loops(tp_graph *graph, tp_node_id id)
{
    if (!graph->nodes[id].loop) return true;
    tp_graph_fail(graph, "gradient of or for node %d ('%s'), which has a value per turn of a loop",
                  id, graph->nodes[id].name);
    return false;
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
    for (int32_t i = 0; i < count; ++i)
        if (!is_outside_of_loops(graph, wrt[i])) return false;
    return is_outside_of_loops(graph, loss);
}

void tp_graph_gradients(tp_graph *graph, tp_node_id loss, const tp_node_id *wrt, int32_t count,
                        tp_node_id *out_gradients)
{
    for (int32_t i = 0; i < count; ++i)
        out_gradients[i] = TP_NO_NODE;
    if (graph->has_failed || !is_valid_request(graph, loss, wrt, count)) return;

    const size_t nodes = (size_t)graph->node_count;
    tp_autodiff ad = {.graph = graph, .node_count = graph->node_count};
    ad.is_active = TP_NEW_ARRAY(bool, nodes);
    ad.gradients = TP_NEW_ARRAY(tp_node_id, nodes);
    ad.order = TP_NEW_ARRAY(tp_node_id, nodes);
    if (!ad.is_active || !ad.gradients || !ad.order || tp_loop_order(graph, ad.order) != TPUCL_OK) {
        tp_graph_keep_error(graph);
        goto done;
    }
    for (tp_node_id id = 0; id < ad.node_count; ++id)
        ad.gradients[id] = TP_NO_NODE;
    mark_active(&ad, wrt, count);
    if (ad.is_active[loss]) ad.gradients[loss] = tp_op_scalar(graph, graph->nodes[loss].dtype, 1);
    walk(&ad);
    for (int32_t i = 0; i < count && !graph->has_failed; ++i)
        if (ad.gradients[wrt[i]] != TP_NO_NODE)
            out_gradients[i] =
                tp_op_convert(graph, ad.gradients[wrt[i]], graph->nodes[wrt[i]].dtype);
done:
    tp_free(ad.is_active);
    tp_free(ad.gradients);
    tp_free(ad.order);
}
