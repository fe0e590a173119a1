/* SPDX-License-Identifier: Apache-2.0
 * Adam and its kin (Kingma and Ba 2015, Dozat 2016, Loshchilov and Hutter 2019; keras/src/optimizers/adam.py,
 * adamw.py, adamax.py, nadam.py). In step t = 1, 2, ..., b1 = beta_1, b2 = beta_2:
 *     m += (g - m) * (1 - b1)                                   slot "momentum"
 *     v += (g * g - v) * (1 - b2)                               slot "velocity"
 *   Adam, AdamW  alpha = lr * sqrt(1 - b2^t) / (1 - b1^t);  w -= m * alpha / (sqrt(v) + epsilon)
 *                amsgrad: v' = max(v', v) instead of v, slot "velocity_hat"
 *   Adamax       u = max(b2 * u, |g|), slot "norm";  w -= lr * m / ((1 - b1^t) * (u + epsilon))
 *   Nadam        u(t) = b1 * (1 - 0.5 * 0.96^t);  p(t) = u(1) * ... * u(t), the scalar "u_product"
 *                m' = u(t+1) * m / (1 - p(t) * u(t+1)) + (1 - u(t)) * g / (1 - p(t))
 *                w -= m' * lr / (sqrt(v / (1 - b2^t)) + epsilon)
 * The powers of b1 and b2 are the scalar variables "beta_1_power" and "beta_2_power". AdamW is Adam with a
 * weight decay.
 */
#include "optim/update.h"

typedef struct moments {
    tp_node_id m, v;
} moments;

static moments move_moments(const tp_optim_update *update, const tp_optim_target *target,
                            tp_node_id g)
{
    const tp_node_id m = tp_optim_add_slot(update, target, "momentum", TP_ROLE_FIRST_MOMENT, 0);
    const tp_node_id v = tp_optim_add_slot(update, target, "velocity", TP_ROLE_SECOND_MOMENT, 0);
    const tp_node_id square = tp_op_multiply(update->graph, g, g);
    return (moments){tp_optim_move(update, m, g, update->config->beta_1),
                     tp_optim_move(update, v, square, update->config->beta_2)};
}

/* sqrt(value) + epsilon */
static tp_node_id denominator(const tp_optim_update *update, tp_node_id value)
{
    const tp_node_id root = tp_op_sqrt(update->graph, value);
    return tp_op_add(update->graph, root, tp_optim_scalar(update, update->config->epsilon));
}

/* ---- Adam, AdamW ---- */

enum { ALPHA };

static void begin_adam(tp_optim_update *update)
{
    tp_graph *graph = update->graph;
    const tp_node_id power_1 = tp_optim_power(update, "beta_1_power", update->config->beta_1);
    const tp_node_id power_2 = tp_optim_power(update, "beta_2_power", update->config->beta_2);
    const tp_node_id one = tp_optim_scalar(update, 1.0);
    const tp_node_id root = tp_op_sqrt(graph, tp_op_subtract(graph, one, power_2));
    update->scalars[ALPHA] = tp_op_divide(graph, tp_op_multiply(graph, update->learning_rate, root),
                                          tp_op_subtract(graph, one, power_1));
}

static tp_node_id apply_adam(const tp_optim_update *update, const tp_optim_target *target,
                             tp_node_id g)
{
    tp_graph *graph = update->graph;
    moments now = move_moments(update, target, g);
    if (update->config->amsgrad) {
        const tp_node_id largest =
            tp_optim_add_slot(update, target, "velocity_hat", TP_ROLE_SECOND_MOMENT, 0);
        now.v = tp_op_maximum(graph, largest, now.v);
        tp_optim_set_slot(graph, largest, now.v);
    }
    const tp_node_id scaled = tp_op_multiply(graph, now.m, update->scalars[ALPHA]);
    const tp_node_id step = tp_op_divide(graph, scaled, denominator(update, now.v));
    return tp_op_subtract(graph, target->weight, step);
}

const tp_optim_def tp_optim_adam = {.scope = "adam", .begin = begin_adam, .apply = apply_adam};
const tp_optim_def tp_optim_adamw = {.scope = "adamw", .begin = begin_adam, .apply = apply_adam};

/* ---- Adamax ---- */

enum { REMAINDER };

static void begin_adamax(tp_optim_update *update)
{
    const tp_node_id power = tp_optim_power(update, "beta_1_power", update->config->beta_1);
    update->scalars[REMAINDER] = tp_op_subtract(update->graph, tp_optim_scalar(update, 1.0), power);
}

static tp_node_id apply_adamax(const tp_optim_update *update, const tp_optim_target *target,
                               tp_node_id g)
{
    tp_graph *graph = update->graph;
    const tp_optim_config *config = update->config;
    const tp_node_id m_slot =
        tp_optim_add_slot(update, target, "momentum", TP_ROLE_FIRST_MOMENT, 0);
    const tp_node_id u_slot = tp_optim_add_slot(update, target, "norm", TP_ROLE_SECOND_MOMENT, 0);
    const tp_node_id m = tp_optim_move(update, m_slot, g, config->beta_1);
    const tp_node_id kept = tp_op_multiply(graph, tp_optim_scalar(update, config->beta_2), u_slot);
    const tp_node_id u = tp_op_maximum(graph, kept, tp_op_abs(graph, g));
    tp_optim_set_slot(graph, u_slot, u);
    const tp_node_id below =
        tp_op_multiply(graph, update->scalars[REMAINDER],
                       tp_op_add(graph, u, tp_optim_scalar(update, config->epsilon)));
    const tp_node_id above = tp_op_multiply(graph, update->learning_rate, m);
    return tp_op_subtract(graph, target->weight, tp_op_divide(graph, above, below));
}

const tp_optim_def tp_optim_adamax = {
    .scope = "adamax", .begin = begin_adamax, .apply = apply_adamax};

/* ---- Nadam ---- */

enum { OF_MOMENT, OF_GRADIENT, BELOW_MOMENT, BELOW_GRADIENT, BELOW_SQUARES };

/* beta_1 * (1 - 0.5 * 0.96^time) */
static tp_node_id nadam_share(const tp_optim_update *update, tp_node_id time)
{
    tp_graph *graph = update->graph;
    const tp_node_id power = tp_op_power(graph, tp_optim_scalar(update, 0.96), time);
    const tp_node_id half = tp_op_multiply_scalar(graph, power, 0.5);
    const tp_node_id rest = tp_op_subtract(graph, tp_optim_scalar(update, 1.0), half);
    return tp_op_multiply(graph, tp_optim_scalar(update, update->config->beta_1), rest);
}

static void begin_nadam(tp_optim_update *update)
{
    tp_graph *graph = update->graph;
    const tp_node_id one = tp_optim_scalar(update, 1.0);
    const tp_node_id time = tp_optim_local_step(update);
    const tp_node_id share = nadam_share(update, time);
    const tp_node_id next = nadam_share(update, tp_op_add(graph, time, one));
    const tp_variable variable = {.name = "u_product", .dtype = TP_F32, .init = TP_INIT_ONES};
    const tp_node_id before = tp_graph_add_variable(graph, &variable);
    const tp_node_id product = tp_op_multiply(graph, before, share);
    tp_graph_add_update(graph, before, product);
    const tp_node_id power_2 = tp_optim_power(update, "beta_2_power", update->config->beta_2);
    update->scalars[OF_MOMENT] = next;
    update->scalars[OF_GRADIENT] = tp_op_subtract(graph, one, share);
    update->scalars[BELOW_MOMENT] =
        tp_op_subtract(graph, one, tp_op_multiply(graph, product, next));
    update->scalars[BELOW_GRADIENT] = tp_op_subtract(graph, one, product);
    update->scalars[BELOW_SQUARES] = tp_op_subtract(graph, one, power_2);
}

static tp_node_id apply_nadam(const tp_optim_update *update, const tp_optim_target *target,
                              tp_node_id g)
{
    tp_graph *graph = update->graph;
    const tp_node_id *scalars = update->scalars;
    const moments now = move_moments(update, target, g);
    const tp_node_id of_moment = tp_op_divide(
        graph, tp_op_multiply(graph, scalars[OF_MOMENT], now.m), scalars[BELOW_MOMENT]);
    const tp_node_id of_gradient = tp_op_divide(
        graph, tp_op_multiply(graph, scalars[OF_GRADIENT], g), scalars[BELOW_GRADIENT]);
    const tp_node_id m = tp_op_add(graph, of_moment, of_gradient);
    const tp_node_id v = tp_op_divide(graph, now.v, scalars[BELOW_SQUARES]);
    const tp_node_id above = tp_op_multiply(graph, m, update->learning_rate);
    return tp_op_subtract(graph, target->weight,
                          tp_op_divide(graph, above, denominator(update, v)));
}

const tp_optim_def tp_optim_nadam = {.scope = "nadam", .begin = begin_nadam, .apply = apply_nadam};
