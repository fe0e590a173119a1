/* SPDX-License-Identifier: Apache-2.0
 * Learning-rate schedules for tp_optim_config.schedule: graph nodes over the step number. Names, arguments
 * and formulas of keras/src/optimizers/schedules; `rate` is the configured learning rate, s the step from 0:
 *   constant             rate
 *   CosineDecay          rate * ((1 - alpha) * 0.5 * (1 + cos(pi * min(s, decay_steps) / decay_steps)) + alpha)
 *                        (Loshchilov and Hutter 2017, equation 5, one period)
 *   CosineDecayRestarts  the same in periods of first_decay_steps * t_mul^i steps, which begin at
 *                        m_mul^i of the rate: rate * ((1 - alpha) * 0.5 * m_mul^i * (1 + cos(pi * done)) + alpha)
 *   ExponentialDecay     rate * decay_rate^(s / decay_steps)
 *   InverseTimeDecay     rate / (1 + decay_rate * s / decay_steps)
 *                        both with staircase: floor(s / decay_steps)
 *   PolynomialDecay      (rate - end) * (1 - min(s, decay_steps) / decay_steps)^power + end; with cycle s is
 *                        not cut, decay_steps becomes its first multiple that is not below s
 *   PiecewiseConstantDecay  values[i] for the first i with s <= boundaries[i], else the last value
 * Warm-up, as in Keras' CosineDecay, but for all of them: in the first warmup_steps steps
 *     (warmup_target - rate) * s / warmup_steps + rate
 * and then the schedule, with warmup_target for the rate and s counted from the end of warm-up.
 */
#ifndef TP_OPTIM_SCHEDULE_H
#define TP_OPTIM_SCHEDULE_H

#include <stdbool.h>
#include "graph/graph.h"
#include "topo/config_choices.h"

typedef enum tp_optim_schedule_kind {
#define TP_OPTIM_SCHEDULE_KIND(id, symbol, name, keys) TP_OPTIM_SCHEDULE_##id,
    TP_SCHEDULE_LIST(TP_OPTIM_SCHEDULE_KIND)
#undef TP_OPTIM_SCHEDULE_KIND
} tp_optim_schedule_kind;

typedef struct tp_optim_schedule {
    tp_optim_schedule_kind kind;
    /* Those that the kind has mean something. Numbers of steps: 1 to 2^24, which f32 counts exactly. */
#define TP_OPTIM_NUMBER(field, low, high, open, meaning) double field;
#define TP_OPTIM_FLAG(field, meaning) bool field;
#define TP_OPTIM_COUNT(field, low, high, meaning) int64_t field;
    TP_SCHEDULE_KEYS(TP_OPTIM_NUMBER, TP_OPTIM_FLAG, TP_OPTIM_COUNT)
#undef TP_OPTIM_NUMBER
#undef TP_OPTIM_FLAG
#undef TP_OPTIM_COUNT
    const double *boundaries,
        *values; /* [boundary_count], [boundary_count + 1]; whole numbers, rising */
    int32_t boundary_count;
    int64_t warmup_steps; /* 0: none */
    double warmup_target;
} tp_optim_schedule;

/* For tp_optim_config.schedule; `user` is a tp_optim_schedule, read during the call. Values out of range are
 * mistakes of the graph. */
tp_node_id tp_optim_schedule_rate(tp_graph *graph, tp_node_id step, tp_node_id learning_rate,
                                  void *user);

#endif
