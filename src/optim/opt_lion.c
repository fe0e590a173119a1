/* SPDX-License-Identifier: Apache-2.0
 * Lion (Chen et al. 2023; keras/src/optimizers/lion.py):
 *     w -= lr * sign(m * beta_1 + g * (1 - beta_1))
 *     m = m * beta_2 + g * (1 - beta_2)                    slot "momentum"
 */
#include "optim/update.h"

static tp_node_id apply(const tp_optim_update *update, const tp_optim_target *target, tp_node_id g)
{
    tp_graph *graph = update->graph;
    const tp_optim_config *config = update->config;
    const tp_node_id slot = tp_optim_add_slot(update, target, "momentum", TP_ROLE_FIRST_MOMENT, 0);
    const tp_node_id kept = tp_op_multiply(graph, slot, tp_optim_scalar(update, config->beta_1));
    const tp_node_id fresh =
        tp_op_multiply(graph, g, tp_optim_scalar(update, 1.0 - config->beta_1));
    const tp_node_id direction = tp_op_sign(graph, tp_op_add(graph, kept, fresh));
    tp_optim_blend(update, slot, g, config->beta_2);
    const tp_node_id step = tp_op_multiply(graph, update->learning_rate, direction);
    return tp_op_subtract(graph, target->weight, step);
}

const tp_optim_def tp_optim_lion = {.scope = "lion", .apply = apply};
