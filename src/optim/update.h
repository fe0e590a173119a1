/* SPDX-License-Identifier: Apache-2.0
 * What an optimizer provides, and what its file is written with. A new one is a row of TP_OPTIMIZER_LIST
 * (topo/config_choices.h), which names its keys, and an opt_<family>.c that defines tp_optim_<symbol>.
 */
#ifndef TP_OPTIM_UPDATE_H
#define TP_OPTIM_UPDATE_H

#include "graph/builder.h"
#include "optim/optimizer.h"

/* Scalars that an optimizer computes once per step for all variables, in its own order. */
enum { TP_OPTIM_SCALARS = 6 };

/* What the updates of all variables share. */
typedef struct tp_optim_update {
    tp_graph *graph;
    const tp_optim_config *config;
    tp_node_id learning_rate; /* f32 [] */
    tp_node_id step;          /* s32 []: from 0 */
    tp_node_id scalars[TP_OPTIM_SCALARS];
} tp_optim_update;

/* The variable in question. */
typedef struct tp_optim_target {
    tp_variable variable; /* a copy: adding slots moves the graph's */
    tp_node_id weight;    /* f32: its value, already decayed */
    bool is_excluded;     /* its name holds one of config->excluded */
} tp_optim_target;

typedef struct tp_optim_def {
    const char *scope;
    bool decays_itself; /* weight_decay is part of the formula, not a step before it */
    /* Fills update->scalars; may be NULL. */
    void (*begin)(tp_optim_update *update);
    /* g: f32, of the variable's shape. Adds slots and their updates, returns the new weight, f32. */
    tp_node_id (*apply)(const tp_optim_update *update, const tp_optim_target *target, tp_node_id g);
} tp_optim_def;

#define TP_OPTIM_DEF(id, symbol, name, keys) extern const tp_optim_def tp_optim_##symbol;
TP_OPTIMIZER_LIST(TP_OPTIM_DEF)
#undef TP_OPTIM_DEF

/* f32 [] */
tp_node_id tp_optim_scalar(const tp_optim_update *update, double value);
/* f32 []: the number of the step from 1, Keras' local_step. */
tp_node_id tp_optim_local_step(const tp_optim_update *update);

/* A slot beside the target's variable, of the dtype that the configuration has for its role: its value as f32.
 * Every element starts as `initial`. */
tp_node_id tp_optim_add_slot(const tp_optim_update *update, const tp_optim_target *target,
                             const char *name, tp_variable_role role, double initial);
/* The same of another shape. */
tp_node_id tp_optim_add_slot_shaped(const tp_optim_update *update, const tp_optim_target *target,
                                    const char *name, tp_variable_role role, tp_shape shape,
                                    double initial);
/* What a slot becomes: f32, rounded to the slot's dtype when it is kept. The step itself goes on with the
 * unrounded value, as optax does (optax/_src/transform.py, scale_by_adam: mu_dtype). */
void tp_optim_set_slot(tp_graph *graph, tp_node_id slot, tp_node_id value);

/* slot + (value - slot) * (1 - beta), kept in the slot: Keras' assign_add form of a moving average. */
tp_node_id tp_optim_move(const tp_optim_update *update, tp_node_id slot, tp_node_id value,
                         double beta);
/* rho * slot + (1 - rho) * value, kept in the slot: Keras' other form, of other bits. */
tp_node_id tp_optim_blend(const tp_optim_update *update, tp_node_id slot, tp_node_id value,
                          double rho);

/* A scalar variable that reads beta^t in step t = 1, 2, ...: it starts at beta and is multiplied by it at
 * the end of each step. */
tp_node_id tp_optim_power(const tp_optim_update *update, const char *name, double beta);

/* f32 []: square root of the sum of squares of all elements, and of their mean. */
tp_node_id tp_optim_norm(tp_graph *graph, tp_node_id value);
tp_node_id tp_optim_root_mean_square(tp_graph *graph, tp_node_id value);

#endif
