/* SPDX-License-Identifier: Apache-2.0
 * RMSprop (Hinton 2012; keras/src/optimizers/rmsprop.py):
 *     v = rho * v + (1 - rho) * g * g                      slot "velocity"
 *     a = rho * a + (1 - rho) * g                          slot "average_gradient", with centered
 *     d = lr * g / sqrt(v + epsilon)                       centered: sqrt(v - a * a + epsilon)
 *     w -= d                                               momentum 0
 *     p = momentum * p + d;  w -= p                        slot "momentum"
 */
#include "optim/update.h"

static tp_node_id apply(const tp_optim_update *update, const tp_optim_target *target, tp_node_id g)
{
    tp_graph *graph = update->graph;
    const tp_optim_config *config = update->config;
    const tp_node_id velocity =
        tp_optim_add_slot(update, target, "velocity", TP_ROLE_SECOND_MOMENT, 0);
    tp_node_id below = tp_optim_blend(update, velocity, tp_op_multiply(graph, g, g), config->rho);
    if (config->centered) {
        const tp_node_id slot =
            tp_optim_add_slot(update, target, "average_gradient", TP_ROLE_FIRST_MOMENT, 0);
        const tp_node_id average = tp_optim_blend(update, slot, g, config->rho);
        below = tp_op_subtract(graph, below, tp_op_multiply(graph, average, average));
    }
    below = tp_op_add(graph, below, tp_optim_scalar(update, config->epsilon));
    const tp_node_id step = tp_op_divide(graph, tp_op_multiply(graph, update->learning_rate, g),
                                         tp_op_sqrt(graph, below));
    if (config->momentum == 0.0) return tp_op_subtract(graph, target->weight, step);

    const tp_node_id slot = tp_optim_add_slot(update, target, "momentum", TP_ROLE_FIRST_MOMENT, 0);
    const tp_node_id kept = tp_op_multiply(graph, tp_optim_scalar(update, config->momentum), slot);
    const tp_node_id moved = tp_op_add(graph, kept, step);
    tp_optim_set_slot(graph, slot, moved);
    return tp_op_subtract(graph, target->weight, moved);
}

const tp_optim_def tp_optim_rmsprop = {.scope = "rmsprop", .apply = apply};
