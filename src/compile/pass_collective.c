/* SPDX-License-Identifier: Apache-2.0
 * Writes the ops across cores down in terms of one of them, all_reduce, and of replica_id, which says a core
 * where it stands:
 *
 *   all_gather           each core puts its operand into a tensor of all cores', at its own place; elsewhere is
 *                        -0, and x + -0 is x for every x, bit for bit, so that the sum is the collection
 *   reduce_scatter       a dynamic slice of the sum
 *   cross_replica_sum    of all cores: the sum; of some: likewise, with a place for each group, of which the
 *                        core takes its own
 *   collective_permute   of everything gathered, what the core's source gave; a table says which that is
 *
 * Every core's memory then holds what all cores have: these are for small tensors (statistics, embeddings of
 * a batch), as all_reduce's semantics on devices that hold several cores suggest.
 */
#include "compile/pass.h"

#include "graph/builder.h"
#include "graph/opdef.h"
#include "graph/rewrite.h"

/* Sums over the cores of x [...], each core's at its place (u32 scalar `own`) of `places` along a new axis, -0
 * elsewhere: [.., places, ..]; f32, replicated. */
static tp_node_id sum_places(tp_graph *g, tp_node_id x, int64_t axis, int64_t places,
                             tp_node_id own)
{
    if (x == TP_NO_NODE) return x;
    tp_shape shape = tp_graph_node(g, x)->shape;
    int64_t axes[TP_MAX_RANK];
    if (shape.rank == TP_MAX_RANK)
        return tp_graph_fail(g, "collectives take tensors of at most %d dims", TP_MAX_RANK - 1);
    for (int32_t i = shape.rank; i > axis; i--)
        shape.dims[i] = shape.dims[i - 1];
    shape.dims[axis] = places;
    shape.rank++;
    for (int32_t i = 0; i < shape.rank - 1; i++)
        axes[i] = i < axis ? i : i + 1;
    const tp_node_id wide = tp_op_broadcast_in_dim(g, tp_op_convert(g, x, TP_F32), shape, axes);
    const tp_node_id is_own = tp_op_compare(g, "EQ", tp_op_broadcast_to(g, own, shape),
                                            tp_op_iota(g, TP_U32, shape, axis));
    return tp_op_all_reduce(g, tp_op_select(g, is_own, wide, tp_op_fill(g, TP_F32, shape, -0.0)));
}

/* The cores' x [...], one after the other along a new axis: [.., cores, ..]; f32, replicated. */
static tp_node_id gather_cores(tp_graph *g, tp_node_id x, int64_t axis, int64_t cores)
{
    return sum_places(g, x, axis, cores, tp_op_replica_id(g, cores));
}

static tp_node_id expand_all_gather(tp_graph *g, const tp_node *node, tp_node_id x)
{
    const int64_t cores = tp_node_attr_int(node, "cores", 0);
    const tp_node_id all = gather_cores(g, x, tp_node_attr_int(node, "all_gather_dim", 0), cores);
    return tp_op_convert(g, tp_op_reshape(g, all, node->shape), node->dtype);
}

static tp_node_id expand_reduce_scatter(tp_graph *g, const tp_node *node, tp_node_id x)
{
    const int64_t dim = tp_node_attr_int(node, "scatter_dimension", 0);
    const tp_shape vector = {.rank = 1, .dims = {node->shape.rank}};
    const tp_node_id id = tp_op_replica_id(g, tp_node_attr_int(node, "cores", 0));
    const tp_node_id first =
        tp_op_multiply(g, id, tp_op_scalar(g, TP_U32, (double)node->shape.dims[dim]));
    const tp_node_id is_dim = tp_op_compare(g, "EQ", tp_op_iota(g, TP_U32, vector, 0),
                                            tp_op_fill(g, TP_U32, vector, (double)dim));
    const tp_node_id start = tp_op_select(g, is_dim, first, tp_op_fill(g, TP_U32, vector, 0));
    return tp_op_dynamic_slice(g, tp_op_all_reduce(g, x), start, node->shape.dims);
}

static tp_node_id expand_cross_replica_sum(tp_graph *g, const tp_node *node, tp_node_id x)
{
    const int64_t cores = tp_node_attr_int(node, "cores", 0);
    const int64_t group = tp_node_attr_int(node, "group", 0);
    if (group == 1) return x;
    if (group == cores) return tp_op_all_reduce(g, x);
    const tp_shape vector = {.rank = 1, .dims = {node->shape.rank + 1}};
    const tp_node_id own =
        tp_op_divide(g, tp_op_replica_id(g, cores), tp_op_scalar(g, TP_U32, (double)group));
    const tp_node_id is_first =
        tp_op_compare(g, "EQ", tp_op_iota(g, TP_U32, vector, 0), tp_op_fill(g, TP_U32, vector, 0));
    const tp_node_id start = tp_op_select(g, is_first, own, tp_op_fill(g, TP_U32, vector, 0));
    const tp_node_id sums = sum_places(g, x, 0, cores / group, own);
    if (sums == TP_NO_NODE) return sums;
    tp_shape one = tp_graph_node(g, sums)->shape;
    one.dims[0] = 1;
    return tp_op_reshape(g, tp_op_dynamic_slice(g, sums, start, one.dims), node->shape);
}

static tp_node_id expand_permute(tp_graph *g, const tp_node *node, tp_node_id x)
{
    int32_t numbers;
    const int64_t *pairs = tp_node_attr_ints(node, "source_target_pairs", &numbers);
    const int64_t cores = tp_node_attr_int(node, "cores", 0);
    const tp_shape table_shape = {.rank = 1, .dims = {cores}};
    int32_t *sources = tp_arena_alloc(g->arena, (size_t)cores * sizeof *sources);
    if (!sources) return tp_graph_keep_error(g);
    for (int64_t i = 0; i < cores; i++)
        sources[i] = -1;
    for (int32_t i = 0; i + 1 < numbers; i += 2)
        sources[pairs[i + 1]] = (int32_t)pairs[i];
    const tp_node_id table = tp_op_constant(g, TP_S32, table_shape, sources);
    const tp_node_id source = tp_op_take(g, table, tp_op_replica_id(g, cores), 0);
    const tp_node_id all = gather_cores(g, x, 0, cores);
    const tp_shape shape = node->shape;
    tp_index_dims dims = {.collapsed_count = 1, .map_count = 1, .window_count = shape.rank};
    int64_t slices[TP_MAX_RANK] = {1};
    for (int32_t i = 0; i < shape.rank; i++) {
        dims.window[i] = i;
        slices[i + 1] = shape.dims[i];
    }
    /* -1 lies outside: zeros. */
    return tp_op_convert(g, tp_op_gather(g, all, source, &dims, slices, "zero"), node->dtype);
}

tpucl_status tp_pass_collective(const tp_graph *graph, tp_graph **out_graph)
{
    static const struct {
        const char *op;
        tp_node_id (*expand)(tp_graph *g, const tp_node *node, tp_node_id x);
    } expansions[] = {{"all_gather", expand_all_gather},
                      {"reduce_scatter", expand_reduce_scatter},
                      {"cross_replica_sum", expand_cross_replica_sum},
                      {"collective_permute", expand_permute}};
    tp_rewrite *rewrite = NULL;
    TP_TRY(tp_rewrite_begin(graph, &rewrite));
    tp_graph *to = tp_rewrite_graph(rewrite);
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        const tp_node *node = tp_graph_node(graph, id);
        if (!tp_rewrite_is_live(rewrite, id)) continue;
        tp_node_id mapped = TP_NO_NODE;
        for (size_t i = 0; i < sizeof expansions / sizeof *expansions; i++)
            if (tp_node_is(node, expansions[i].op))
                mapped = expansions[i].expand(to, node, tp_rewrite_of(rewrite, node->inputs[0]));
        if (mapped != TP_NO_NODE)
            tp_rewrite_map(rewrite, id, mapped);
        else if (!to->has_failed)
            tp_rewrite_copy(rewrite, id);
    }
    return tp_rewrite_finish(rewrite, out_graph);
}
