/* SPDX-License-Identifier: Apache-2.0
 * Adafactor (Shazeer and Stern 2018, algorithms 4 to 6; keras/src/optimizers/adafactor.py). In step t >= 1:
 *     rho = min(lr, 1 / sqrt(t));  alpha = max(epsilon_2, rms(w)) * rho
 *     b = 1 - t^beta_2_decay;  s = g * g + epsilon_1
 *     rank < 2    v = b * v + (1 - b) * s                                  slot "velocity"
 *     rank >= 2   r = b * r + (1 - b) * mean of s over the last axis       slot "row"
 *                 c = b * c + (1 - b) * mean of s over the axis before it  slot "column"
 *                 v = (r / mean of r over its last axis) * c
 *     u = g / sqrt(v);  w -= alpha * u / max(1, rms(u) / clip_threshold)
 * v of rank >= 2 is never kept, though Keras keeps it: an m x n matrix has m + n numbers of state. With
 * relative_step lr is min(lr, 1 / sqrt(t)) before all this, which changes nothing: rho is the same. Keras
 * names both factors after the variable alone.
 */
#include "optim/update.h"

enum { RHO, KEPT, FRESH };

static void begin(tp_optim_update *update)
{
    tp_graph *graph = update->graph;
    const tp_node_id one = tp_optim_scalar(update, 1.0);
    const tp_node_id time = tp_optim_local_step(update);
    const tp_node_id falling = tp_op_divide(graph, one, tp_op_sqrt(graph, time));
    const tp_node_id decay = tp_optim_scalar(update, update->config->beta_2_decay);
    update->scalars[RHO] = tp_op_minimum(graph, update->learning_rate, falling);
    update->scalars[KEPT] = tp_op_subtract(graph, one, tp_op_power(graph, time, decay));
    update->scalars[FRESH] = tp_op_subtract(graph, one, update->scalars[KEPT]);
}

static tp_node_id blend(const tp_optim_update *update, tp_node_id slot, tp_node_id value)
{
    tp_graph *graph = update->graph;
    const tp_node_id kept = tp_op_multiply(graph, update->scalars[KEPT], slot);
    const tp_node_id fresh = tp_op_multiply(graph, update->scalars[FRESH], value);
    const tp_node_id blended = tp_op_add(graph, kept, fresh);
    tp_optim_set_slot(graph, slot, blended);
    return blended;
}

/* Drops the axis. */
static tp_node_id mean(tp_graph *graph, tp_node_id value, int64_t axis)
{
    if (value == TP_NO_NODE) return value;
    const double count = (double)tp_graph_node(graph, value)->shape.dims[axis];
    const tp_node_id sum = tp_op_reduce(graph, value, "add", &axis, 1);
    return tp_op_divide(graph, sum, tp_op_scalar(graph, TP_F32, count));
}

static tp_shape without_axis(tp_shape shape, int axis)
{
    for (int i = axis; i + 1 < shape.rank; i++)
        shape.dims[i] = shape.dims[i + 1];
    shape.dims[--shape.rank] = 0;
    return shape;
}

/* With a dim of 1 before `axis`. */
static tp_node_id insert_axis(tp_graph *graph, tp_node_id value, int axis)
{
    if (value == TP_NO_NODE) return value;
    tp_shape shape = tp_graph_node(graph, value)->shape;
    for (int i = shape.rank++; i > axis; i--)
        shape.dims[i] = shape.dims[i - 1];
    shape.dims[axis] = 1;
    return tp_op_reshape(graph, value, shape);
}

/* v of the variable's shape. */
static tp_node_id factored(const tp_optim_update *update, const tp_optim_target *target,
                           tp_node_id square)
{
    tp_graph *graph = update->graph;
    const tp_shape shape = target->variable.shape;
    const int last = shape.rank - 1;
    const tp_node_id row = tp_optim_add_slot_shaped(update, target, "row", TP_ROLE_SECOND_MOMENT,
                                                    without_axis(shape, last), 0);
    const tp_node_id column = tp_optim_add_slot_shaped(
        update, target, "column", TP_ROLE_SECOND_MOMENT, without_axis(shape, last - 1), 0);
    const tp_node_id r = blend(update, row, mean(graph, square, last));
    const tp_node_id c = blend(update, column, mean(graph, square, last - 1));
    const tp_node_id level = insert_axis(graph, mean(graph, r, last - 1), last - 1);
    const tp_node_id share = tp_op_divide(graph, r, level);
    return tp_op_multiply(graph, insert_axis(graph, share, last), insert_axis(graph, c, last - 1));
}

static tp_node_id apply(const tp_optim_update *update, const tp_optim_target *target, tp_node_id g)
{
    tp_graph *graph = update->graph;
    const tp_optim_config *config = update->config;
    const tp_node_id square =
        tp_op_add(graph, tp_op_multiply(graph, g, g), tp_optim_scalar(update, config->epsilon_1));
    const tp_node_id v =
        target->variable.shape.rank >= 2
            ? factored(update, target, square)
            : blend(update, tp_optim_add_slot(update, target, "velocity", TP_ROLE_SECOND_MOMENT, 0),
                    square);
    const tp_node_id size = tp_op_maximum(graph, tp_optim_scalar(update, config->epsilon_2),
                                          tp_optim_root_mean_square(graph, target->weight));
    const tp_node_id alpha = tp_op_multiply(graph, size, update->scalars[RHO]);
    const tp_node_id u = tp_op_divide(graph, g, tp_op_sqrt(graph, v));
    const tp_node_id excess = tp_op_divide(graph, tp_optim_root_mean_square(graph, u),
                                           tp_optim_scalar(update, config->clip_threshold));
    const tp_node_id clipped =
        tp_op_divide(graph, u, tp_op_maximum(graph, tp_optim_scalar(update, 1.0), excess));
    return tp_op_subtract(graph, target->weight, tp_op_multiply(graph, alpha, clipped));
}

const tp_optim_def tp_optim_adafactor = {.scope = "adafactor", .begin = begin, .apply = apply};
