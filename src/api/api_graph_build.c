/* SPDX-License-Identifier: Apache-2.0
 * From the forward pass to the graphs that are compiled. The loss of a core is
 *     sum(weight * loss) / denominator * scale
 * with weight 0 for padding and the denominator summed over the replica group, so that partial
 * batches and unequal shards count exactly (optim/cross_shard.h). */
#include "api/graph_internal.h"

#include "core/str.h"
#include "graph/builder.h"
#include "graph/rewrite.h"
#include "model/loss.h"

/* A copy of the forward pass; out_nodes (metric_count) are the metrics' nodes in it. */
static tpucl_status copy_forward(const tpucl_graph *graph, tp_node_id *out_nodes,
                                 tp_graph **out_graph)
{
    tp_rewrite *rewrite;
    TP_TRY(tp_rewrite_begin(graph->graph, &rewrite));
    for (tp_node_id id = 0; id < graph->graph->node_count; id++)
        tp_rewrite_copy(rewrite, id);
    for (int32_t i = 0; i < graph->metric_count; i++)
        out_nodes[i] = tp_rewrite_of(rewrite, graph->metrics[i].node);
    TP_TRY(tp_rewrite_finish(rewrite, out_graph));
    return TPUCL_OK;
}

/* Weights and the sums that are reported. *out_loss_sum is this core's. */
static tpucl_status add_sums(const tpucl_graph *from, tp_graph *graph, const tp_node_id *nodes,
                             tp_node_id *out_loss_sum)
{
    if (from->batch < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the graph has no input, so it has no batch");
    tp_shape rows = {.rank = 1, .dims = {from->batch}};
    tp_node_id weight = tp_graph_add_input(graph, "weight", TP_F32, rows);
    for (int32_t i = 0; i < from->metric_count; i++) {
        tp_node_id sum = tp_loss_weighted_sum(graph, weight, nodes[i]);
        if (i == 0) *out_loss_sum = sum;
        char *name = tp_arena_printf(graph->arena, "sum/%s", from->metrics[i].name);
        if (!name) return TPUCL_OUT_OF_MEMORY;
        tp_graph_add_output(graph, name, tp_op_all_reduce(graph, sum));
    }
    tp_graph_add_output(graph, "weight_sum",
                        tp_op_all_reduce(graph, tp_op_reduce(graph, weight, "add", NULL, 0)));
    TP_TRY(tp_graph_check(graph));
    return TPUCL_OK;
}

static tpucl_status add_updates(const tpucl_graph *from, tp_graph *graph, int32_t cores,
                                tp_node_id loss_sum)
{
    tp_cross_shard cross_shard = {from->reduction, cores, from->groups, from->group_count};
    TP_TRY(tp_cross_shard_check(&cross_shard));
    return tp_cross_shard_minimize(graph, &from->optimizer, &cross_shard, loss_sum);
}

tpucl_status tp_api_graph_train(const tpucl_graph *graph, int32_t cores, tp_graph **out_graph)
{
    tp_node_id nodes[TP_API_MAX_METRICS], loss_sum = TP_NO_NODE;
    tp_graph *train = NULL;
    tpucl_status status;
    *out_graph = NULL;
    TP_TRY(tp_graph_check(graph->graph));
    if (!graph->has_loss)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "the graph has nothing to minimise: call tpucl_graph_minimize before "
                       "compiling it for training");
    TP_TRY(copy_forward(graph, nodes, &train));
    TP_TRY_GOTO(status, add_sums(graph, train, nodes, &loss_sum), failed);
    TP_TRY_GOTO(status, add_updates(graph, train, cores, loss_sum), failed);
    *out_graph = train;
    return TPUCL_OK;
failed:
    tp_graph_destroy(train);
    return status;
}

tpucl_status tp_api_graph_evaluate(const tpucl_graph *graph, tp_graph **out_graph)
{
    tp_node_id nodes[TP_API_MAX_METRICS], loss_sum = TP_NO_NODE;
    tp_graph *evaluate = NULL;
    tpucl_status status;
    *out_graph = NULL;
    TP_TRY(tp_graph_check(graph->graph));
    TP_TRY(copy_forward(graph, nodes, &evaluate));
    TP_TRY_GOTO(status, add_sums(graph, evaluate, nodes, &loss_sum), failed);
    *out_graph = evaluate;
    return TPUCL_OK;
failed:
    tp_graph_destroy(evaluate);
    return status;
}
