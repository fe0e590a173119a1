/* SPDX-License-Identifier: Apache-2.0
 * The wrappers of builder.h for loops and for conditional. */
#include <string.h>

#include "graph/attrs.h"
#include "graph/builder.h"
#include "graph/loop.h"

static bool is_node(const tp_graph *graph, tp_node_id id)
{
    return id >= 0 && id < graph->node_count;
}

int32_t tp_op_loop_new(tp_graph *graph)
{
    return ++graph->loop_count;
}

tp_node_id tp_op_loop_slice(tp_graph *graph, int32_t loop, tp_node_id xs, bool reverse)
{
    const bool has_rows = is_node(graph, xs) && graph->nodes[xs].shape.rank > 0;
    const tp_attr attrs[] = {tp_attr_int("loop", loop),
                             tp_attr_int("length", has_rows ? graph->nodes[xs].shape.dims[0] : 1),
                             tp_attr_int("reverse", reverse)};
    return tp_graph_add(graph, "loop_slice", &xs, 1, attrs, 3);
}

tp_node_id tp_op_loop_carry(tp_graph *graph, int32_t loop, int64_t length, tp_node_id init)
{
    int64_t index = 0;
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        if (graph->nodes[id].def->loop_part == TP_LOOP_CARRY && graph->nodes[id].loop == loop)
            ++index;
    const tp_attr attrs[] = {tp_attr_int("loop", loop), tp_attr_int("length", length),
                             tp_attr_int("index", index)};
    return tp_graph_add(graph, "loop_carry", &init, 1, attrs, 3);
}

/* The value as one of the loop that `anchor` is in, also when no turn changes it. */
static tp_node_id bring_in(tp_graph *graph, tp_node_id anchor, tp_node_id value)
{
    if (!is_node(graph, value) || !is_node(graph, anchor) || graph->nodes[value].loop) return value;
    const tp_shape scalar = {0};
    const uint8_t yes = 1;
    return tp_op_select(graph, tp_op_constant(graph, TP_PRED, scalar, &yes), value, anchor);
}

tp_node_id tp_op_loop_last(tp_graph *graph, tp_node_id carry, tp_node_id next)
{
    if (!is_node(graph, carry)) return tp_graph_fail(graph, "loop_last of node %d", carry);
    const tp_node node = graph->nodes[carry];
    const tp_attr attrs[] = {tp_attr_int("loop", node.loop),
                             tp_attr_int("length", tp_node_attr_int(&node, "length", 0))};
    if (is_node(graph, next) && graph->nodes[next].dtype == node.dtype &&
        tp_shape_equal(&graph->nodes[next].shape, &node.shape))
        next = bring_in(graph, carry, next);
    const tp_node_id inputs[] = {carry, next};
    return tp_graph_add(graph, "loop_last", inputs, 2, attrs, 2);
}

tp_node_id tp_op_loop_stack(tp_graph *graph, int32_t loop, tp_node_id value, bool reverse)
{
    const int64_t length = tp_loop_length(graph, loop);
    if (is_node(graph, value) && !graph->nodes[value].loop && length > 0) {
        tp_shape shape = graph->nodes[value].shape;
        int64_t axes[TP_MAX_RANK];
        if (shape.rank == TP_MAX_RANK)
            return tp_graph_fail(graph, "loop_stack of a value of rank %d", shape.rank);
        for (int32_t i = shape.rank; i > 0; --i) {
            shape.dims[i] = shape.dims[i - 1];
            axes[i - 1] = i;
        }
        shape.dims[0] = length;
        ++shape.rank;
        return tp_op_broadcast_in_dim(graph, value, shape, axes);
    }
    const tp_attr attrs[] = {tp_attr_int("loop", loop), tp_attr_int("length", length),
                             tp_attr_int("reverse", reverse)};
    return tp_graph_add(graph, "loop_stack", &value, 1, attrs, 3);
}

static bool is_scan(tp_graph *graph, const tp_scan *scan)
{
    if (graph->has_failed) return false;
    const int32_t counts[] = {scan->carry_count, scan->xs_count, scan->stack_count};
    for (int i = 0; i < 3; ++i)
        if (counts[i] < 0 || counts[i] > TP_SCAN_MAX) {
            tp_graph_fail(graph, "a scan of %d carries, %d inputs and %d stacks, expected 0 to %d",
                          counts[0], counts[1], counts[2], TP_SCAN_MAX);
            return false;
        }
    for (int32_t i = 0; i < scan->xs_count; ++i) {
        const tp_shape *shape =
            is_node(graph, scan->xs[i]) ? &graph->nodes[scan->xs[i]].shape : NULL;
        if (shape && shape->rank > 0 && shape->dims[0] == scan->length) continue;
        char text[TP_SHAPE_TEXT_MAX] = "missing";
        if (shape) tp_shape_format(shape, text, sizeof text);
        tp_graph_fail(graph, "input %d of a scan over %lld turns is %s", i, (long long)scan->length,
                      text);
        return false;
    }
    return true;
}

void tp_op_scan(tp_graph *graph, const tp_scan *scan, tp_node_id *out_last, tp_node_id *out_stacks)
{
    tp_node_id carries[TP_SCAN_MAX], slices[TP_SCAN_MAX], next[TP_SCAN_MAX], stacked[TP_SCAN_MAX];
    for (int32_t i = 0; i < scan->carry_count && i < TP_SCAN_MAX; ++i)
        out_last[i] = next[i] = TP_NO_NODE;
    for (int32_t i = 0; i < scan->stack_count && i < TP_SCAN_MAX; ++i)
        out_stacks[i] = stacked[i] = TP_NO_NODE;
    if (!is_scan(graph, scan)) return;
    const int32_t loop = tp_op_loop_new(graph);
    for (int32_t i = 0; i < scan->carry_count; ++i)
        carries[i] = tp_op_loop_carry(graph, loop, scan->length, scan->init[i]);
    for (int32_t i = 0; i < scan->xs_count; ++i)
        slices[i] = tp_op_loop_slice(graph, loop, scan->xs[i], scan->reverse);
    if (graph->has_failed) return;
    scan->body(scan->user, graph, carries, slices, next, stacked);
    for (int32_t i = 0; i < scan->carry_count; ++i)
        out_last[i] = tp_op_loop_last(graph, carries[i], next[i]);
    for (int32_t i = 0; i < scan->stack_count; ++i)
        out_stacks[i] = tp_op_loop_stack(graph, loop, stacked[i], scan->reverse);
}

#define MAX_RESULTS 32

void tp_op_conditional(tp_graph *graph, tp_node_id pred, tp_branch on_true, tp_branch on_false,
                       void *user, int32_t result_count, tp_node_id *out_results)
{
    tp_node_id yes[MAX_RESULTS], no[MAX_RESULTS];
    if (graph->has_failed) return;
    if (result_count < 1 || result_count > MAX_RESULTS || !is_node(graph, pred) ||
        graph->nodes[pred].dtype != TP_PRED || graph->nodes[pred].shape.rank != 0) {
        tp_graph_fail(graph, "a conditional with %d results, expected 1 to %d by a pred scalar",
                      result_count, MAX_RESULTS);
        return;
    }
    for (int32_t i = 0; i < result_count; ++i)
        yes[i] = no[i] = TP_NO_NODE;
    on_true(user, graph, yes);
    on_false(user, graph, no);
    for (int32_t i = 0; i < result_count && !graph->has_failed; ++i) {
        if (is_node(graph, yes[i]) && is_node(graph, no[i]) &&
            !tp_shape_equal(&graph->nodes[yes[i]].shape, &graph->nodes[no[i]].shape)) {
            char left[TP_SHAPE_TEXT_MAX], right[TP_SHAPE_TEXT_MAX];
            tp_shape_format(&graph->nodes[yes[i]].shape, left, sizeof left);
            tp_shape_format(&graph->nodes[no[i]].shape, right, sizeof right);
            tp_graph_fail(graph, "result %d of a conditional is %s in one branch, %s in the other",
                          i, left, right);
            return;
        }
        out_results[i] = tp_op_select(graph, pred, yes[i], no[i]);
    }
}
