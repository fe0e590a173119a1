/* SPDX-License-Identifier: Apache-2.0
 * Learning-rate schedules for tp_optim_config.schedule: graph nodes over the step number.
 */
#ifndef TP_OPTIM_SCHEDULE_H
#define TP_OPTIM_SCHEDULE_H

#include "graph/graph.h"

/* Keras' CosineDecay (keras/optimizers/schedules; Loshchilov and Hutter 2017, equation 5, one period):
 *     done = min(step, decay_steps) / decay_steps
 *     rate = learning_rate * ((1 - alpha) * 0.5 * (1 + cos(pi * done)) + alpha) */
typedef struct tp_optim_cosine {
    int64_t decay_steps; /* 1 to 2^24: f32 counts them exactly */
    double alpha;        /* share of the rate that is left at the end, 0 to 1 */
} tp_optim_cosine;

/* `user` is a tp_optim_cosine, read during the call. */
tp_node_id tp_optim_cosine_decay(tp_graph *graph, tp_node_id step, tp_node_id learning_rate,
                                 void *user);

#endif
