/* SPDX-License-Identifier: Apache-2.0
 * Learning-rate schedules: see schedule.h.
 */
#include "optim/schedule.h"

#include "graph/builder.h"

#define PI 3.14159265358979324

tp_node_id tp_optim_cosine_decay(tp_graph *graph, tp_node_id step, tp_node_id learning_rate,
                                 void *user)
{
    const tp_optim_cosine *cosine = user;
    if (cosine->decay_steps < 1 || cosine->decay_steps > 1 << 24)
        return tp_graph_fail(graph, "a cosine decay over %lld steps, expected 1 to %d",
                             (long long)cosine->decay_steps, 1 << 24);
    const tp_node_id last = tp_op_scalar(graph, TP_S32, (double)cosine->decay_steps);
    const tp_node_id steps = tp_op_convert(graph, tp_op_minimum(graph, step, last), TP_F32);
    const tp_node_id all = tp_op_scalar(graph, TP_F32, (double)cosine->decay_steps);
    const tp_node_id angle = tp_op_multiply_scalar(graph, tp_op_divide(graph, steps, all), PI);
    const tp_node_id wave = tp_op_add_scalar(graph, tp_op_cosine(graph, angle), 1);
    const tp_node_id part = tp_op_multiply_scalar(graph, wave, 0.5 * (1 - cosine->alpha));
    return tp_op_multiply(graph, learning_rate, tp_op_add_scalar(graph, part, cosine->alpha));
}
