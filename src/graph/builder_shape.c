/* SPDX-License-Identifier: Apache-2.0
 * The wrappers of builder.h for ops that only move elements. They read ranks from their operands,
 * so a wrong id is passed on to tp_graph_add(), which reports it. */
#include "graph/builder.h"

#include "graph/attrs.h"

static int32_t rank_of(const tp_graph *graph, tp_node_id id)
{
    return id >= 0 && id < graph->node_count ? graph->nodes[id].shape.rank : 0;
}

tp_node_id tp_op_broadcast_in_dim(tp_graph *graph, tp_node_id a, tp_shape shape,
                                  const int64_t *axes)
{
    const tp_attr attrs[] = {tp_attr_shape("shape", &shape),
                             tp_attr_ints("axes", axes, rank_of(graph, a))};
    return tp_graph_add(graph, "broadcast_in_dim", &a, 1, attrs, 2);
}

tp_node_id tp_op_broadcast_to(tp_graph *graph, tp_node_id a, tp_shape shape)
{
    const int32_t rank = rank_of(graph, a);
    if (a >= 0 && a < graph->node_count && tp_shape_equal(&graph->nodes[a].shape, &shape)) return a;
    int64_t axes[TP_MAX_RANK];
    for (int32_t i = 0; i < rank; ++i)
        axes[i] = shape.rank - rank + i;
    return tp_op_broadcast_in_dim(graph, a, shape, axes);
}

tp_node_id tp_op_reshape(tp_graph *graph, tp_node_id a, tp_shape shape)
{
    const tp_attr attrs[] = {tp_attr_shape("shape", &shape)};
    return tp_graph_add(graph, "reshape", &a, 1, attrs, 1);
}

tp_node_id tp_op_transpose(tp_graph *graph, tp_node_id a, const int64_t *axes)
{
    const tp_attr attrs[] = {tp_attr_ints("axes", axes, rank_of(graph, a))};
    return tp_graph_add(graph, "transpose", &a, 1, attrs, 1);
}

tp_node_id tp_op_slice(tp_graph *graph, tp_node_id a, const int64_t *start, const int64_t *limit,
                       const int64_t *strides)
{
    static const int64_t ones[TP_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int32_t rank = rank_of(graph, a);
    const tp_attr attrs[] = {tp_attr_ints("start", start, rank), tp_attr_ints("limit", limit, rank),
                             tp_attr_ints("strides", strides ? strides : ones, rank)};
    return tp_graph_add(graph, "slice", &a, 1, attrs, 3);
}

tp_node_id tp_op_pad(tp_graph *graph, tp_node_id a, tp_node_id value, const int64_t *low,
                     const int64_t *high, const int64_t *interior)
{
    static const int64_t zeros[TP_MAX_RANK];
    const int32_t rank = rank_of(graph, a);
    const tp_node_id inputs[] = {a, value};
    const tp_attr attrs[] = {tp_attr_ints("low", low, rank), tp_attr_ints("high", high, rank),
                             tp_attr_ints("interior", interior ? interior : zeros, rank)};
    return tp_graph_add(graph, "pad", inputs, 2, attrs, 3);
}

tp_node_id tp_op_concatenate(tp_graph *graph, const tp_node_id *parts, int32_t count, int64_t axis)
{
    const tp_attr attrs[] = {tp_attr_int("axis", axis)};
    int32_t first = count < TP_MAX_INPUTS ? count : TP_MAX_INPUTS;
    tp_node_id result = tp_graph_add(graph, "concatenate", parts, first, attrs, 1);
    while (first < count && result != TP_NO_NODE) {
        tp_node_id next[TP_MAX_INPUTS] = {result};
        int32_t taken = 1;
        while (taken < TP_MAX_INPUTS && first < count)
            next[taken++] = parts[first++];
        result = tp_graph_add(graph, "concatenate", next, taken, attrs, 1);
    }
    return result;
}

tp_node_id tp_op_reverse(tp_graph *graph, tp_node_id a, const int64_t *axes, int32_t count)
{
    const tp_attr attrs[] = {tp_attr_ints("axes", axes, count)};
    return tp_graph_add(graph, "reverse", &a, 1, attrs, 1);
}
