/* SPDX-License-Identifier: Apache-2.0
 * CrossShardOptimizer: see cross_shard.h.
 */
#include "optim/cross_shard.h"

#include "core/alloc.h"
#include "core/problems.h"
#include "graph/builder.h"

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

void tp_cross_shard_apply(tp_graph *graph, const tp_optim_config *config,
                          const tp_optim_gradient *gradients, int32_t count)
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
            summed[i].gradient = tp_op_all_reduce(graph, summed[i].gradient);
    }
    tp_optim_apply(graph, config, summed, count);
}
