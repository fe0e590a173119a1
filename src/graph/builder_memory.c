/* SPDX-License-Identifier: Apache-2.0
 * The wrappers of builder.h for gather, scatter and what is made of them. */
#include "graph/builder.h"

#include "graph/attrs.h"

static bool is_node(const tp_graph *graph, tp_node_id id)
{
    return id >= 0 && id < graph->node_count;
}

static int32_t rank_of(const tp_graph *graph, tp_node_id id)
{
    return is_node(graph, id) ? graph->nodes[id].shape.rank : 0;
}

/* Whether `a` has the axis; else the mistake is recorded. */
static bool has_axis(tp_graph *graph, tp_node_id a, int64_t axis)
{
    if (graph->has_failed) return false;
    if (is_node(graph, a) && axis >= 0 && axis < rank_of(graph, a)) return true;
    tp_graph_fail(graph, "axis %lld of a tensor of rank %d", (long long)axis, rank_of(graph, a));
    return false;
}

tp_node_id tp_op_gather(tp_graph *graph, tp_node_id operand, tp_node_id indices,
                        const tp_index_dims *dims, const int64_t *slice_sizes,
                        const char *out_of_range)
{
    const tp_node_id inputs[] = {operand, indices};
    tp_attr attrs[8];
    int32_t count = tp_index_dims_attrs(dims, false, attrs);
    attrs[count++] = tp_attr_ints("slice_sizes", slice_sizes, rank_of(graph, operand));
    attrs[count++] = tp_attr_text("out_of_range", out_of_range);
    return tp_graph_add(graph, "gather", inputs, 2, attrs, count);
}

tp_node_id tp_op_scatter(tp_graph *graph, tp_node_id operand, tp_node_id indices,
                         tp_node_id updates, const tp_index_dims *dims, const char *kind,
                         const char *out_of_range)
{
    const tp_node_id inputs[] = {operand, indices, updates};
    tp_attr attrs[8];
    int32_t count = tp_index_dims_attrs(dims, true, attrs);
    attrs[count++] = tp_attr_text("kind", kind);
    attrs[count++] = tp_attr_text("out_of_range", out_of_range);
    return tp_graph_add(graph, "scatter", inputs, 3, attrs, count);
}

tp_node_id tp_op_take(tp_graph *graph, tp_node_id a, tp_node_id indices, int64_t axis)
{
    if (!has_axis(graph, a, axis)) return TP_NO_NODE;
    const tp_shape shape = graph->nodes[a].shape;
    const int32_t index_rank = rank_of(graph, indices);
    tp_index_dims dims = {.collapsed = {axis},
                          .collapsed_count = 1,
                          .map = {axis},
                          .map_count = 1,
                          .vector_dim = index_rank};
    int64_t slices[TP_MAX_RANK] = {0};
    for (int32_t dim = 0; dim < shape.rank; ++dim) {
        slices[dim] = dim == axis ? (shape.dims[dim] > 0) : shape.dims[dim];
        if (dim != axis) dims.window[dims.window_count++] = dim < axis ? dim : dim - 1 + index_rank;
    }
    return tp_op_gather(graph, a, indices, &dims, slices, "clamp");
}

/* Every dim but `axis` goes with the same dim of the indices. */
static tp_index_dims dims_along_axis(int32_t rank, int64_t axis)
{
    tp_index_dims dims = {.collapsed = {axis},
                          .collapsed_count = 1,
                          .map = {axis},
                          .map_count = 1,
                          .vector_dim = rank};
    for (int32_t dim = 0; dim < rank; ++dim)
        if (dim != axis) {
            dims.batch[dims.batch_count] = dim;
            dims.index_batch[dims.batch_count++] = dim;
        }
    return dims;
}

tp_node_id tp_op_take_along_axis(tp_graph *graph, tp_node_id a, tp_node_id indices, int64_t axis)
{
    if (!has_axis(graph, a, axis)) return TP_NO_NODE;
    const tp_shape shape = graph->nodes[a].shape;
    const tp_index_dims dims = dims_along_axis(shape.rank, axis);
    int64_t slices[TP_MAX_RANK] = {0};
    for (int32_t dim = 0; dim < shape.rank; ++dim)
        slices[dim] = shape.dims[dim] > 0;
    return tp_op_gather(graph, a, indices, &dims, slices, "clamp");
}

tp_node_id tp_op_put_along_axis(tp_graph *graph, tp_node_id a, tp_node_id indices,
                                tp_node_id updates, int64_t axis, const char *kind)
{
    if (!has_axis(graph, a, axis)) return TP_NO_NODE;
    const tp_index_dims dims = dims_along_axis(rank_of(graph, a), axis);
    return tp_op_scatter(graph, a, indices, updates, &dims, kind, "skip");
}

tp_node_id tp_op_one_hot(tp_graph *graph, tp_node_id indices, int64_t depth, tp_dtype dtype)
{
    const int32_t rank = rank_of(graph, indices);
    if (graph->has_failed || !is_node(graph, indices) || rank == TP_MAX_RANK || depth < 0)
        return tp_graph_fail(graph, "one_hot of depth %lld of a tensor of rank %d",
                             (long long)depth, rank);
    tp_shape shape = graph->nodes[indices].shape;
    int64_t axes[TP_MAX_RANK];
    for (int32_t i = 0; i < rank; ++i)
        axes[i] = i;
    shape.dims[shape.rank++] = depth;
    const tp_node_id numbers = tp_op_iota(graph, graph->nodes[indices].dtype, shape, rank);
    const tp_node_id wide = tp_op_broadcast_in_dim(graph, indices, shape, axes);
    return tp_op_convert(graph, tp_op_compare(graph, "EQ", wide, numbers), dtype);
}
