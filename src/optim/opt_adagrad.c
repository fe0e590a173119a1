/* SPDX-License-Identifier: Apache-2.0
 * Adagrad and Adadelta (Duchi et al. 2011, Zeiler 2012; keras/src/optimizers/adagrad.py, adadelta.py):
 *   Adagrad    s += g * g;  w -= lr * g / sqrt(s + epsilon)
 *              slot "accumulator", which starts at initial_accumulator_value
 *   Adadelta   a = rho * a + (1 - rho) * g * g                slot "accumulated_grad"
 *              d = -sqrt(b + epsilon) * g / sqrt(a + epsilon)
 *              b = rho * b + (1 - rho) * d * d                slot "accumulated_delta_var"
 *              w += lr * d
 */
#include "optim/update.h"

/* sqrt(value + epsilon) */
static tp_node_id root(const tp_optim_update *update, tp_node_id value)
{
    const tp_node_id epsilon = tp_optim_scalar(update, update->config->epsilon);
    return tp_op_sqrt(update->graph, tp_op_add(update->graph, value, epsilon));
}

static tp_node_id apply_adagrad(const tp_optim_update *update, const tp_optim_target *target,
                                tp_node_id g)
{
    tp_graph *graph = update->graph;
    const tp_node_id slot = tp_optim_add_slot(update, target, "accumulator", TP_ROLE_SECOND_MOMENT,
                                              update->config->initial_accumulator_value);
    const tp_node_id sum = tp_op_add(graph, slot, tp_op_multiply(graph, g, g));
    tp_optim_set_slot(graph, slot, sum);
    const tp_node_id step = tp_op_multiply(graph, update->learning_rate, g);
    return tp_op_subtract(graph, target->weight, tp_op_divide(graph, step, root(update, sum)));
}

const tp_optim_def tp_optim_adagrad = {.scope = "adagrad", .apply = apply_adagrad};

static tp_node_id apply_adadelta(const tp_optim_update *update, const tp_optim_target *target,
                                 tp_node_id g)
{
    tp_graph *graph = update->graph;
    const double rho = update->config->rho;
    const tp_node_id grads =
        tp_optim_add_slot(update, target, "accumulated_grad", TP_ROLE_SECOND_MOMENT, 0);
    const tp_node_id deltas =
        tp_optim_add_slot(update, target, "accumulated_delta_var", TP_ROLE_SECOND_MOMENT, 0);
    const tp_node_id a = tp_optim_blend(update, grads, tp_op_multiply(graph, g, g), rho);
    const tp_node_id above = tp_op_multiply(graph, root(update, deltas), g);
    const tp_node_id delta = tp_op_negate(graph, tp_op_divide(graph, above, root(update, a)));
    tp_optim_blend(update, deltas, tp_op_multiply(graph, delta, delta), rho);
    return tp_op_add(graph, target->weight, tp_op_multiply(graph, update->learning_rate, delta));
}

const tp_optim_def tp_optim_adadelta = {.scope = "adadelta", .apply = apply_adadelta};
