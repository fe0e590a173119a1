/* SPDX-License-Identifier: Apache-2.0
 * Pieces that several optimizers are made of: see update.h.
 */
#include "optim/update.h"

tp_node_id tp_optim_scalar(const tp_optim_update *update, double value)
{
    return tp_op_scalar(update->graph, TP_F32, value);
}

tp_node_id tp_optim_local_step(const tp_optim_update *update)
{
    const tp_node_id step = tp_op_convert(update->graph, update->step, TP_F32);
    return tp_op_add_scalar(update->graph, step, 1);
}

tp_node_id tp_optim_add_slot_shaped(const tp_optim_update *update, const tp_optim_target *target,
                                    const char *name, tp_variable_role role, tp_shape shape,
                                    double initial)
{
    tp_graph *graph = update->graph;
    const tp_optim_config *config = update->config;
    tp_dtype dtype = TP_F32;
    if (role == TP_ROLE_FIRST_MOMENT) dtype = config->first_moment;
    if (role == TP_ROLE_SECOND_MOMENT) dtype = config->second_moment;
    char *full = tp_arena_printf(graph->arena, "%s/%s", target->variable.name, name);
    if (!full) return tp_graph_keep_error(graph);
    const tp_variable slot = {.name = full,
                              .dtype = dtype,
                              .shape = shape,
                              .role = role,
                              .slot_of = target->variable.name,
                              .init = initial == 0 ? TP_INIT_ZEROS : TP_INIT_CONSTANT,
                              .init_a = initial};
    return tp_op_convert(graph, tp_graph_add_variable(graph, &slot), TP_F32);
}

tp_node_id tp_optim_add_slot(const tp_optim_update *update, const tp_optim_target *target,
                             const char *name, tp_variable_role role, double initial)
{
    return tp_optim_add_slot_shaped(update, target, name, role, target->variable.shape, initial);
}

void tp_optim_set_slot(tp_graph *graph, tp_node_id slot, tp_node_id value)
{
    if (slot == TP_NO_NODE) return;
    const tp_node *node = tp_graph_node(graph, slot);
    const tp_node_id variable = tp_node_is(node, "convert") ? node->inputs[0] : slot;
    const tp_dtype dtype = tp_graph_node(graph, variable)->dtype;
    tp_graph_add_update(graph, variable, tp_op_convert(graph, value, dtype));
}

tp_node_id tp_optim_move(const tp_optim_update *update, tp_node_id slot, tp_node_id value,
                         double beta)
{
    tp_graph *graph = update->graph;
    const tp_node_id distance = tp_op_subtract(graph, value, slot);
    const tp_node_id step = tp_op_multiply(graph, distance, tp_optim_scalar(update, 1.0 - beta));
    const tp_node_id moved = tp_op_add(graph, slot, step);
    tp_optim_set_slot(graph, slot, moved);
    return moved;
}

tp_node_id tp_optim_blend(const tp_optim_update *update, tp_node_id slot, tp_node_id value,
                          double rho)
{
    tp_graph *graph = update->graph;
    const tp_node_id kept = tp_op_multiply(graph, tp_optim_scalar(update, rho), slot);
    const tp_node_id fresh = tp_op_multiply(graph, tp_optim_scalar(update, 1.0 - rho), value);
    const tp_node_id blended = tp_op_add(graph, kept, fresh);
    tp_optim_set_slot(graph, slot, blended);
    return blended;
}

tp_node_id tp_optim_power(const tp_optim_update *update, const char *name, double beta)
{
    tp_graph *graph = update->graph;
    const tp_variable variable = {
        .name = name, .dtype = TP_F32, .init = TP_INIT_CONSTANT, .init_a = beta};
    const tp_node_id power = tp_graph_add_variable(graph, &variable);
    tp_graph_add_update(graph, power, tp_op_multiply(graph, power, tp_optim_scalar(update, beta)));
    return power;
}

static tp_node_id sum_of_squares(tp_graph *graph, tp_node_id value)
{
    return tp_op_reduce(graph, tp_op_multiply(graph, value, value), "add", NULL, 0);
}

tp_node_id tp_optim_norm(tp_graph *graph, tp_node_id value)
{
    return tp_op_sqrt(graph, sum_of_squares(graph, value));
}

tp_node_id tp_optim_root_mean_square(tp_graph *graph, tp_node_id value)
{
    if (value == TP_NO_NODE) return value;
    const double elems = (double)tp_shape_elems(&tp_graph_node(graph, value)->shape);
    const tp_node_id sum = sum_of_squares(graph, value);
    return tp_op_sqrt(graph, tp_op_divide(graph, sum, tp_op_scalar(graph, TP_F32, elems)));
}
