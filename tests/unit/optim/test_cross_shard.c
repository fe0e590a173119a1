/* SPDX-License-Identifier: Apache-2.0
 * CrossShardOptimizer: group assignments, MEAN and SUM, sums within groups.
 */
#include "harness/graph_run.h"
#include "optim/cross_shard.h"

static tp_core_group group(const int64_t *cores, int64_t count)
{
    return (tp_core_group){cores, count};
}

Test(cross_shard, groups_that_are_right)
{
    static const int64_t a[] = {0, 3}, b[] = {2, 1};
    const tp_core_group groups[] = {group(a, 2), group(b, 2)};
    tp_cross_shard cross_shard = {.shards = 4};
    EXPECT_OK(tp_cross_shard_check(&cross_shard));
    cr_assert(tp_cross_shard_group_size(&cross_shard) == 4);
    cr_assert(tp_cross_shard_loss_scale(&cross_shard) == 1);
    cross_shard.reduction = TP_CROSS_SHARD_SUM;
    cr_assert(tp_cross_shard_loss_scale(&cross_shard) == 4);
    cross_shard.groups = groups;
    cross_shard.group_count = 2;
    EXPECT_OK(tp_cross_shard_check(&cross_shard));
    cr_assert(tp_cross_shard_group_size(&cross_shard) == 2);
    cr_assert(tp_cross_shard_loss_scale(&cross_shard) == 2);
}

static void expect_refused(int64_t shards, tp_core_group a, tp_core_group b, const char *part)
{
    const tp_core_group groups[] = {a, b};
    const tp_cross_shard cross_shard = {.shards = shards, .groups = groups, .group_count = 2};
    EXPECT_FAILURE(tp_cross_shard_check(&cross_shard), TPUCL_INVALID_CONFIG, part);
}

Test(cross_shard, groups_that_are_wrong)
{
    static const int64_t low[] = {0, 1}, high[] = {2, 3}, outside[] = {2, 4}, again[] = {1, 2},
                         one[] = {2};
    expect_refused(3, group(low, 2), group(one, 1), "sizes must be equal");
    expect_refused(4, group(low, 2), group(outside, 2), "names core 4, expected 0 to 3");
    expect_refused(4, group(low, 2), group(outside, 2), "core 3 is in no group");
    expect_refused(4, group(low, 2), group(again, 2), "names core 1, which has its place already");
    expect_refused(6, group(low, 2), group(high, 2), "core 5 is in no group");
    expect_refused(2, group(NULL, 0), group(NULL, 0), "is empty");
    const tp_cross_shard none = {.shards = 0};
    EXPECT_FAILURE(tp_cross_shard_check(&none), TPUCL_INVALID_CONFIG, "0 shards");
    const tp_cross_shard other = {.shards = 2, .reduction = (tp_cross_shard_reduction)7};
    EXPECT_FAILURE(tp_cross_shard_check(&other), TPUCL_INVALID_CONFIG, "mean or sum");
}

/* Four cores in two groups: each group's variable moves by the sum of its own cores' gradients. */
Test(cross_shard, gradients_are_summed_within_groups)
{
    tp_graph *graph;
    tp_reference *reference;
    const tp_shape shape = {.rank = 1, .dims = {2}};
    const tp_variable w = {.name = "w", .dtype = TP_F32, .shape = shape, .is_trainable = true};
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    tp_graph_add_variable(graph, &w);
    tp_optim_config config = tp_optim_defaults(TP_OPTIM_SGD);
    config.learning_rate = 1;
    const tp_optim_gradient gradient = {0, tp_graph_add_input(graph, "g", TP_F32, shape)};
    tp_cross_shard_apply(graph, &config, &gradient, 1);
    EXPECT_OK(tp_graph_check(graph));
    const tp_reference_options options = {.cores = 4, .group_cores = 2};
    EXPECT_OK(tp_reference_create(graph, &options, &reference));
    static const float fed[4][2] = {{1, 2}, {4, 8}, {16, 32}, {64, 128}};
    const void *inputs[] = {fed[0], fed[1], fed[2], fed[3]};
    EXPECT_OK(tp_reference_step(reference, inputs, 0));
    const float *first = tp_reference_variable(reference, 0, 0)->data;
    const float *second = tp_reference_variable(reference, 1, 0)->data;
    cr_assert(first[0] == -5 && first[1] == -10 && second[0] == -80 && second[1] == -160);
    tp_reference_destroy(reference);
    tp_graph_destroy(graph);
}
