/* SPDX-License-Identifier: Apache-2.0
 * Optimizers whose step follows the norm of each variable, for very large batches.
 *   Lamb (You et al. 2020; keras/src/optimizers/lamb.py), in step t = 1, 2, ...:
 *     m += (g - m) * (1 - beta_1)                          slot "momentum"
 *     v += (g * g - v) * (1 - beta_2)                      slot "velocity"
 *     u = (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon)
 *     w -= ratio * lr * u, where ratio = |w| / |u|, or 1 where one of them is 0
 *   LARS (You, Gitman and Ginsburg 2017, algorithm 1; the LARSOptimizer of the MLPerf submissions for TPUs,
 *   mlcommons/training image_classification/tensorflow2/lars_optimizer.py). Keras has none.
 *     ratio = trust_coefficient * |w| / (|g| + weight_decay * |w|), or 1 where |w| or |g| is 0
 *     s = lr * ratio * (g + weight_decay * w)
 *     v = momentum * v + s;  w -= v                        slot "momentum"
 *     nesterov                  w -= momentum * v + s
 *   Excluded variables take no decay and, with LARS, ratio 1. The norms are those of whole variables, here
 *   of all cores' summed gradient.
 */
#include <math.h>
#include "optim/update.h"

/* above / below where both norms are over 0, else 1. */
static tp_node_id ratio_or_one(const tp_optim_update *update, tp_node_id above, tp_node_id below,
                               tp_node_id norm_a, tp_node_id norm_b)
{
    tp_graph *graph = update->graph;
    const tp_node_id zero = tp_optim_scalar(update, 0.0), one = tp_optim_scalar(update, 1.0);
    const tp_node_id are_positive = tp_op_and(graph, tp_op_compare(graph, "GT", norm_a, zero),
                                              tp_op_compare(graph, "GT", norm_b, zero));
    return tp_op_select(graph, are_positive, tp_op_divide(graph, above, below), one);
}

enum { REST_1, REST_2 };

static void begin_lamb(tp_optim_update *update)
{
    const tp_node_id one = tp_optim_scalar(update, 1.0);
    const tp_node_id power_1 = tp_optim_power(update, "beta_1_power", update->config->beta_1);
    const tp_node_id power_2 = tp_optim_power(update, "beta_2_power", update->config->beta_2);
    update->scalars[REST_1] = tp_op_subtract(update->graph, one, power_1);
    update->scalars[REST_2] = tp_op_subtract(update->graph, one, power_2);
}

static tp_node_id apply_lamb(const tp_optim_update *update, const tp_optim_target *target,
                             tp_node_id g)
{
    tp_graph *graph = update->graph;
    const tp_optim_config *config = update->config;
    const tp_node_id m_slot =
        tp_optim_add_slot(update, target, "momentum", TP_ROLE_FIRST_MOMENT, 0);
    const tp_node_id v_slot =
        tp_optim_add_slot(update, target, "velocity", TP_ROLE_SECOND_MOMENT, 0);
    const tp_node_id m = tp_optim_move(update, m_slot, g, config->beta_1);
    const tp_node_id v = tp_optim_move(update, v_slot, tp_op_multiply(graph, g, g), config->beta_2);
    const tp_node_id root = tp_op_sqrt(graph, tp_op_divide(graph, v, update->scalars[REST_2]));
    const tp_node_id u =
        tp_op_divide(graph, tp_op_divide(graph, m, update->scalars[REST_1]),
                     tp_op_add(graph, root, tp_optim_scalar(update, config->epsilon)));
    const tp_node_id w_norm = tp_optim_norm(graph, target->weight);
    const tp_node_id u_norm = tp_optim_norm(graph, u);
    const tp_node_id ratio = ratio_or_one(update, w_norm, u_norm, w_norm, u_norm);
    const tp_node_id rate = tp_op_multiply(graph, ratio, update->learning_rate);
    return tp_op_subtract(graph, target->weight, tp_op_multiply(graph, rate, u));
}

const tp_optim_def tp_optim_lamb = {.scope = "lamb", .begin = begin_lamb, .apply = apply_lamb};

static tp_node_id apply_lars(const tp_optim_update *update, const tp_optim_target *target,
                             tp_node_id g)
{
    tp_graph *graph = update->graph;
    const tp_optim_config *config = update->config;
    const double decay =
        target->is_excluded || isnan(config->weight_decay) ? 0 : config->weight_decay;
    tp_node_id rate = update->learning_rate;
    if (!target->is_excluded) {
        const tp_node_id w_norm = tp_optim_norm(graph, target->weight);
        const tp_node_id g_norm = tp_optim_norm(graph, g);
        const tp_node_id decayed = tp_op_multiply(graph, tp_optim_scalar(update, decay), w_norm);
        const tp_node_id above =
            tp_op_multiply(graph, tp_optim_scalar(update, config->trust_coefficient), w_norm);
        const tp_node_id ratio =
            ratio_or_one(update, above, tp_op_add(graph, g_norm, decayed), w_norm, g_norm);
        rate = tp_op_multiply(graph, rate, ratio);
    }
    if (decay > 0)
        g = tp_op_add(graph, g,
                      tp_op_multiply(graph, tp_optim_scalar(update, decay), target->weight));
    const tp_node_id step = tp_op_multiply(graph, rate, g);
    const tp_node_id momentum = tp_optim_scalar(update, config->momentum);
    const tp_node_id slot = tp_optim_add_slot(update, target, "momentum", TP_ROLE_FIRST_MOMENT, 0);
    const tp_node_id v = tp_op_add(graph, tp_op_multiply(graph, momentum, slot), step);
    tp_optim_set_slot(graph, slot, v);
    if (!config->nesterov) return tp_op_subtract(graph, target->weight, v);
    const tp_node_id ahead = tp_op_add(graph, tp_op_multiply(graph, momentum, v), step);
    return tp_op_subtract(graph, target->weight, ahead);
}

const tp_optim_def tp_optim_lars = {.scope = "lars", .decays_itself = true, .apply = apply_lars};
