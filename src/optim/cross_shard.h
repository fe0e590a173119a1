/* SPDX-License-Identifier: Apache-2.0
 * CrossShardOptimizer: sums each gradient over the cores of its replica group, then applies the wrapped
 * optimizer. Semantics of tensorflow/python/tpu/tpu_optimizer.py:
 *   MEAN  the loss is scaled by 1 / shards before it is differentiated, gradients are summed
 *   SUM   the loss is not scaled
 * Here every core's loss is sum(weight * example loss) / (sum of weights over the group's cores), so the
 * sum over cores already is the mean over the group's batch, for any split and padding; MEAN scales it by
 * 1, SUM by the number of shards in the group. With equal shards both equal TensorFlow's.
 * Gradients that are clipped before they are summed (TP_CLIP_PER_REPLICA, what a user of TensorFlow's
 * optimizer does between compute_gradients and apply_gradients) are therefore about 1/shards of the mean
 * gradient's size with MEAN, so that a threshold is reached that much later.
 */
#ifndef TP_OPTIM_CROSS_SHARD_H
#define TP_OPTIM_CROSS_SHARD_H

#include "optim/optimizer.h"

typedef enum tp_cross_shard_reduction {
    TP_CROSS_SHARD_MEAN,
    TP_CROSS_SHARD_SUM
} tp_cross_shard_reduction;

typedef struct tp_core_group {
    const int64_t *cores;
    int64_t count;
} tp_core_group;

typedef struct tp_cross_shard {
    tp_cross_shard_reduction reduction;
    int64_t shards;              /* cores in all, >= 1 */
    const tp_core_group *groups; /* replica groups; group_count 0: one group of all cores */
    int32_t group_count;
} tp_cross_shard;

/* Groups must be of equal size and hold each of 0 .. shards - 1 exactly once. All problems at once,
 * TPUCL_INVALID_CONFIG. */
tpucl_status tp_cross_shard_check(const tp_cross_shard *cross_shard) TPUCL_MUST_CHECK;

/* Cores that one gradient is summed over. */
int64_t tp_cross_shard_group_size(const tp_cross_shard *cross_shard);

/* Factor for a core's loss before it is differentiated: 1 for MEAN, the group's size for SUM. */
double tp_cross_shard_loss_scale(const tp_cross_shard *cross_shard);

/* Clips per replica where the configuration says so; all_reduce of every gradient (f32, or f32 of bf16
 * numbers as config->gradients says), then tp_optim_apply. Gradients that are TP_NO_NODE stay so. */
void tp_cross_shard_apply(tp_graph *graph, const tp_optim_config *config,
                          const tp_optim_gradient *gradients, int32_t count);

/* All of it, for a graph whose forward pass stands: the input "denominator" (f32 []: the sum of weights over
 * the replica group in this step), the loss `loss_sum` / denominator * scale, its gradients with respect to
 * every trainable variable, their sums and the updates. `loss_sum`: f32 [], this core's sum of weight times
 * loss. */
tpucl_status tp_cross_shard_minimize(tp_graph *graph, const tp_optim_config *config,
                                     const tp_cross_shard *cross_shard,
                                     tp_node_id loss_sum) TPUCL_MUST_CHECK;

/* The same where the sum of weights is known on the cores only (masked elements): no input is added.
 * `weight_sum`: f32 [], this core's. The loss is `loss_sum` / (most * cores of the group) * scale, and the
 * summed gradients are multiplied by most * cores / (sum of weight_sum over the group), 0 where that sum is 0.
 * So gradients that are clipped per replica are as large as if all weights were 1. most: what weight_sum is
 * at most then, > 0. */
tpucl_status tp_cross_shard_minimize_counted(tp_graph *graph, const tp_optim_config *config,
                                             const tp_cross_shard *cross_shard, tp_node_id loss_sum,
                                             tp_node_id weight_sum, double most) TPUCL_MUST_CHECK;

#endif
