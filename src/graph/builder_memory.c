/* SPDX-License-Identifier: Apache-2.0
 * The wrappers of builder.h for memory, order and exchange between cores. */
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

tp_node_id tp_op_dynamic_slice(tp_graph *graph, tp_node_id a, tp_node_id start,
                               const int64_t *slice_sizes)
{
    const tp_node_id inputs[] = {a, start};
    const tp_attr attrs[] = {tp_attr_ints("slice_sizes", slice_sizes, rank_of(graph, a))};
    return tp_graph_add(graph, "dynamic_slice", inputs, 2, attrs, 1);
}

tp_node_id tp_op_dynamic_update_slice(tp_graph *graph, tp_node_id a, tp_node_id update,
                                      tp_node_id start)
{
    const tp_node_id inputs[] = {a, update, start};
    return tp_graph_add(graph, "dynamic_update_slice", inputs, 3, NULL, 0);
}

tp_node_id tp_op_cumulative(tp_graph *graph, tp_node_id a, const char *kind, int64_t axis,
                            bool exclusive, bool reverse)
{
    const tp_attr attrs[] = {tp_attr_text("kind", kind), tp_attr_int("axis", axis),
                             tp_attr_int("exclusive", exclusive), tp_attr_int("reverse", reverse)};
    return tp_graph_add(graph, "cumulative", &a, 1, attrs, 4);
}

static tp_node_id add_sort(tp_graph *graph, tp_node_id a, int64_t axis, bool descending,
                           const char *result)
{
    const tp_attr attrs[] = {tp_attr_int("axis", axis),
                             tp_attr_text("direction", descending ? "descending" : "ascending"),
                             tp_attr_text("result", result)};
    return tp_graph_add(graph, "sort", &a, 1, attrs, 3);
}

tp_node_id tp_op_sort(tp_graph *graph, tp_node_id a, int64_t axis, bool descending)
{
    return add_sort(graph, a, axis, descending, "values");
}

tp_node_id tp_op_argsort(tp_graph *graph, tp_node_id a, int64_t axis, bool descending)
{
    return add_sort(graph, a, axis, descending, "indices");
}

static tp_node_id add_top_k(tp_graph *graph, tp_node_id a, int64_t k, const char *result)
{
    const tp_attr attrs[] = {tp_attr_int("k", k), tp_attr_text("result", result)};
    return tp_graph_add(graph, "top_k", &a, 1, attrs, 2);
}

tp_node_id tp_op_top_k_indices(tp_graph *graph, tp_node_id a, int64_t k)
{
    return add_top_k(graph, a, k, "indices");
}

/* With the indices there, taking the values by them saves sorting twice. */
tp_node_id tp_op_top_k(tp_graph *graph, tp_node_id a, int64_t k, tp_node_id *out_indices)
{
    if (!out_indices) return add_top_k(graph, a, k, "values");
    *out_indices = tp_op_top_k_indices(graph, a, k);
    return tp_op_take_along_axis(graph, a, *out_indices, rank_of(graph, a) - 1);
}

/* ---- cross-core ---- */

tp_node_id tp_op_all_gather(tp_graph *graph, tp_node_id a, int64_t axis, int64_t cores)
{
    const tp_attr attrs[] = {tp_attr_int("all_gather_dim", axis), tp_attr_int("cores", cores)};
    return tp_graph_add(graph, "all_gather", &a, 1, attrs, 2);
}

tp_node_id tp_op_reduce_scatter(tp_graph *graph, tp_node_id a, int64_t axis, int64_t cores)
{
    const tp_attr attrs[] = {tp_attr_text("kind", "add"), tp_attr_int("scatter_dimension", axis),
                             tp_attr_int("cores", cores)};
    return tp_graph_add(graph, "reduce_scatter", &a, 1, attrs, 3);
}

tp_node_id tp_op_collective_permute(tp_graph *graph, tp_node_id a, const int64_t *pairs,
                                    int32_t pair_count, int64_t cores)
{
    const tp_attr attrs[] = {tp_attr_ints("source_target_pairs", pairs, 2 * pair_count),
                             tp_attr_int("cores", cores)};
    return tp_graph_add(graph, "collective_permute", &a, 1, attrs, 2);
}

tp_node_id tp_op_cross_replica_sum(tp_graph *graph, tp_node_id a, int64_t group, int64_t cores)
{
    const tp_attr attrs[] = {tp_attr_int("group", group), tp_attr_int("cores", cores)};
    return tp_graph_add(graph, "cross_replica_sum", &a, 1, attrs, 2);
}

tp_node_id tp_op_replica_id(tp_graph *graph, int64_t cores)
{
    const tp_attr attr = tp_attr_int("cores", cores);
    return tp_graph_add(graph, "replica_id", NULL, 0, &attr, 1);
}
