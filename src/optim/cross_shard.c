/* SPDX-License-Identifier: Apache-2.0
 * CrossShardOptimizer: see cross_shard.h.
 */
#include "optim/cross_shard.h"

#include "core/alloc.h"
#include "core/problems.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "optim/clip.h"

static void check_groups(tp_problems *problems, const tp_cross_shard *cross_shard, uint8_t *seen)
{
    const int64_t shards = cross_shard->shards;
    for (int32_t i = 0; i < cross_shard->group_count; i++) {
        const tp_core_group *group = &cross_shard->groups[i];
        if (group->count != cross_shard->groups[0].count)
            tp_problems_add(problems,
                            "group %d has %lld cores, group 0 has %lld: sizes must be equal", i,
                            (long long)group->count, (long long)cross_shard->groups[0].count);
        if (group->count < 1) tp_problems_add(problems, "group %d is empty", i);
        for (int64_t j = 0; j < group->count; j++) {
            const int64_t core = group->cores[j];
            if (core < 0 || core >= shards)
                tp_problems_add(problems, "group %d names core %lld, expected 0 to %lld", i,
                                (long long)core, (long long)shards - 1);
            else if (seen[core] == 0)
                seen[core] = 1;
            else
                tp_problems_add(problems, "group %d names core %lld, which has its place already",
                                i, (long long)core);
        }
    }
    for (int64_t core = 0; core < shards; core++)
        if (seen[core] == 0) tp_problems_add(problems, "core %lld is in no group", (long long)core);
}

tpucl_status tp_cross_shard_check(const tp_cross_shard *cross_shard)
{
    if (cross_shard->shards < 1)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "cross_shard: %lld shards, expected at least 1",
                       (long long)cross_shard->shards);
    if (cross_shard->reduction != TP_CROSS_SHARD_MEAN &&
        cross_shard->reduction != TP_CROSS_SHARD_SUM)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "cross_shard: reduction must be mean or sum");
    if (cross_shard->group_count == 0) return TPUCL_OK;
    uint8_t *seen = TP_NEW_ARRAY(uint8_t, (size_t)cross_shard->shards);
    if (!seen) return TPUCL_OUT_OF_MEMORY;
    tp_problems problems = {0};
    check_groups(&problems, cross_shard, seen);
    tp_free(seen);
    return tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "the group assignment");
}

int64_t tp_cross_shard_group_size(const tp_cross_shard *cross_shard)
{
    return cross_shard->group_count ? cross_shard->groups[0].count : cross_shard->shards;
}

double tp_cross_shard_loss_scale(const tp_cross_shard *cross_shard)
{
    return cross_shard->reduction == TP_CROSS_SHARD_SUM
               ? (double)tp_cross_shard_group_size(cross_shard)
               : 1.0;
}

/* As cores send it to each other: f32 of the precision of `dtype`. */
static tp_node_id on_wire(tp_graph *graph, tp_node_id value, tp_dtype dtype)
{
    return tp_op_convert(graph, tp_op_convert(graph, value, dtype), TP_F32);
}

static tp_node_id sum_over_cores(tp_graph *graph, tp_node_id gradient, tp_dtype dtype)
{
    const tp_node_id sum = tp_op_all_reduce(graph, on_wire(graph, gradient, dtype));
    return on_wire(graph, sum, dtype);
}

/* `factor`: what the summed gradients are multiplied with; TP_NO_NODE: nothing. */
static void apply_scaled(tp_graph *graph, const tp_optim_config *config,
                         const tp_optim_gradient *gradients, int32_t count, tp_node_id factor)
{
    tp_optim_gradient *summed =
        tp_arena_alloc_array(graph->arena, (size_t)count, sizeof *gradients);
    if (!summed) {
        tp_graph_keep_error(graph);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        summed[i] = gradients[i];
        if (summed[i].gradient != TP_NO_NODE)
            summed[i].gradient = tp_op_convert(graph, summed[i].gradient, TP_F32);
    }
    if (tp_optim_clips(config) && config->clip_at == TP_CLIP_PER_REPLICA)
        tp_optim_clip(graph, config, summed, count);
    for (int32_t i = 0; i < count; i++)
        if (summed[i].gradient != TP_NO_NODE)
            summed[i].gradient = sum_over_cores(graph, summed[i].gradient, config->gradients);
    for (int32_t i = 0; factor != TP_NO_NODE && i < count; i++)
        if (summed[i].gradient != TP_NO_NODE)
            summed[i].gradient = tp_op_multiply(graph, summed[i].gradient, factor);
    tp_optim_apply(graph, config, summed, count);
}

void tp_cross_shard_apply(tp_graph *graph, const tp_optim_config *config,
                          const tp_optim_gradient *gradients, int32_t count)
{
    apply_scaled(graph, config, gradients, count, TP_NO_NODE);
}

static tp_node_id scaled_loss(tp_graph *graph, const tp_cross_shard *cross_shard,
                              tp_node_id loss_sum)
{
    const tp_node_id denominator =
        tp_graph_add_input(graph, "denominator", TP_F32, (tp_shape){.rank = 0});
    const tp_node_id loss = tp_op_divide(graph, loss_sum, denominator);
    const double scale = tp_cross_shard_loss_scale(cross_shard);
    return scale == 1.0 ? loss : tp_op_multiply_scalar(graph, loss, scale);
}

/* What a variable's gradient is taken of: the f32 node that it is widened to, where that is all that is read
 * of it, so that the gradient reaches the sum unrounded. */
static tp_node_id read_as(const tp_graph *graph, const tp_variable *variable)
{
    tp_node_id reader = TP_NO_NODE;
    int32_t readers = 0;
    if (variable->dtype == TP_F32) return variable->node;
    for (tp_node_id id = 0; id < graph->node_count; id++)
        for (int32_t i = 0; i < graph->nodes[id].input_count; i++)
            if (graph->nodes[id].inputs[i] == variable->node) {
                reader = id;
                readers++;
            }
    if (readers != 1) return variable->node;
    const tp_node *node = tp_graph_node(graph, reader);
    return tp_node_is(node, "convert") && node->dtype == TP_F32 ? reader : variable->node;
}

/* Gradients of the loss with respect to every trainable variable, summed, and the updates. */
static tpucl_status minimize(tp_graph *graph, const tp_optim_config *config, tp_node_id loss,
                             tp_node_id factor)
{
    TP_TRY(tp_graph_check(graph));
    const size_t variables = (size_t)graph->variable_count;
    tp_node_id *wrt = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, variables);
    tp_node_id *found = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, variables);
    tp_optim_gradient *gradients = TP_ARENA_NEW_ARRAY(graph->arena, tp_optim_gradient, variables);
    if (!wrt || !found || !gradients) return TPUCL_OUT_OF_MEMORY;
    int32_t count = 0;
    for (int32_t i = 0; i < graph->variable_count; i++) {
        if (!graph->variables[i].is_trainable) continue;
        wrt[count] = read_as(graph, &graph->variables[i]);
        gradients[count++].variable = i;
    }
    const char *outer = tp_graph_push_scope(graph, "gradient");
    tp_graph_gradients(graph, loss, wrt, count, found);
    tp_graph_pop_scope(graph, outer);
    TP_TRY(tp_graph_check(graph));
    for (int32_t i = 0; i < count; i++)
        gradients[i].gradient = found[i];
    apply_scaled(graph, config, gradients, count, factor);
    return tp_graph_check(graph);
}

tpucl_status tp_cross_shard_minimize(tp_graph *graph, const tp_optim_config *config,
                                     const tp_cross_shard *cross_shard, tp_node_id loss_sum)
{
    return minimize(graph, config, scaled_loss(graph, cross_shard, loss_sum), TP_NO_NODE);
}

tpucl_status tp_cross_shard_minimize_counted(tp_graph *graph, const tp_optim_config *config,
                                             const tp_cross_shard *cross_shard, tp_node_id loss_sum,
                                             tp_node_id weight_sum, double most)
{
    const double all = most * (double)tp_cross_shard_group_size(cross_shard);
    const double scale = tp_cross_shard_loss_scale(cross_shard) / all;
    const tp_node_id loss = tp_op_multiply_scalar(graph, loss_sum, scale);
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0), one = tp_op_scalar(graph, TP_F32, 1);
    const tp_node_id sum = tp_op_all_reduce(graph, weight_sum);
    const tp_node_id counts = tp_op_compare(graph, "GT", sum, zero);
    const tp_node_id below = tp_op_select(graph, counts, sum, one);
    const tp_node_id factor = tp_op_divide(graph, tp_op_scalar(graph, TP_F32, all), below);
    return minimize(graph, config, loss, tp_op_select(graph, counts, factor, zero));
}
