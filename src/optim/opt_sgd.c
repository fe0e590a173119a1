/* SPDX-License-Identifier: Apache-2.0
 * SGD (keras/src/optimizers/sgd.py), m its momentum:
 *     w -= lr * g                                   m = 0: no slot
 *     v = m * v - lr * g;  w += v                   slot "momentum"
 *     v = m * v - lr * g;  w += m * v - lr * g      nesterov
 */
#include "optim/update.h"

static tp_node_id apply(const tp_optim_update *update, const tp_optim_target *target, tp_node_id g)
{
    tp_graph *graph = update->graph;
    const tp_optim_config *config = update->config;
    const tp_node_id step = tp_op_multiply(graph, update->learning_rate, g);
    if (config->momentum == 0.0) return tp_op_subtract(graph, target->weight, step);

    const tp_node_id momentum = tp_optim_scalar(update, config->momentum);
    const tp_node_id slot = tp_optim_add_slot(update, target, "momentum", TP_ROLE_FIRST_MOMENT, 0);
    const tp_node_id v = tp_op_subtract(graph, tp_op_multiply(graph, momentum, slot), step);
    tp_optim_set_slot(graph, slot, v);
    if (!config->nesterov) return tp_op_add(graph, target->weight, v);
    const tp_node_id ahead = tp_op_subtract(graph, tp_op_multiply(graph, momentum, v), step);
    return tp_op_add(graph, target->weight, ahead);
}

const tp_optim_def tp_optim_sgd = {.scope = "sgd", .apply = apply};
