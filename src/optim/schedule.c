/* SPDX-License-Identifier: Apache-2.0
 * Learning-rate schedules: see schedule.h.
 */
#include "optim/schedule.h"

#include "graph/builder.h"

#define PI 3.14159265358979324
enum { MAX_STEPS = 1 << 24 };

typedef tp_node_id rate_function(tp_graph *graph, const tp_optim_schedule *schedule,
                                 tp_node_id step, tp_node_id rate);

static tp_node_id scalar(tp_graph *graph, double value)
{
    return tp_op_scalar(graph, TP_F32, value);
}

static bool are_steps(tp_graph *graph, const char *what, int64_t steps)
{
    if (steps >= 1 && steps <= MAX_STEPS) return true;
    tp_graph_fail(graph, "a %s over %lld steps, expected 1 to %d", what, (long long)steps,
                  (int)MAX_STEPS);
    return false;
}

/* min(step, all) / all */
static tp_node_id done_part(tp_graph *graph, tp_node_id step, int64_t all)
{
    const tp_node_id last = tp_op_scalar(graph, TP_S32, (double)all);
    const tp_node_id steps = tp_op_convert(graph, tp_op_minimum(graph, step, last), TP_F32);
    return tp_op_divide(graph, steps, scalar(graph, (double)all));
}

static tp_node_id constant(tp_graph *graph, const tp_optim_schedule *schedule, tp_node_id step,
                           tp_node_id rate)
{
    (void)graph;
    (void)schedule;
    (void)step;
    return rate;
}

static tp_node_id cosine(tp_graph *graph, const tp_optim_schedule *schedule, tp_node_id step,
                         tp_node_id rate)
{
    if (!are_steps(graph, "cosine decay", schedule->decay_steps)) return TP_NO_NODE;
    const tp_node_id done = done_part(graph, step, schedule->decay_steps);
    const tp_node_id angle = tp_op_multiply_scalar(graph, done, PI);
    const tp_node_id wave = tp_op_add_scalar(graph, tp_op_cosine(graph, angle), 1);
    const tp_node_id part = tp_op_multiply_scalar(graph, wave, 0.5 * (1 - schedule->alpha));
    return tp_op_multiply(graph, rate, tp_op_add_scalar(graph, part, schedule->alpha));
}

/* (1 - t_mul^i) / (1 - t_mul): in first periods, where period i begins */
static tp_node_id period_start(tp_graph *graph, double t_mul, tp_node_id i)
{
    const tp_node_id power = tp_op_power(graph, scalar(graph, t_mul), i);
    return tp_op_divide(graph, tp_op_subtract(graph, scalar(graph, 1), power),
                        scalar(graph, 1 - t_mul));
}

/* The number of the period that `time`, in first periods, is in. */
static tp_node_id period_of(tp_graph *graph, double t_mul, tp_node_id time)
{
    if (t_mul == 1) return tp_op_floor(graph, time);
    const tp_node_id grown =
        tp_op_subtract(graph, scalar(graph, 1), tp_op_multiply_scalar(graph, time, 1 - t_mul));
    const tp_node_id logs =
        tp_op_divide(graph, tp_op_log(graph, grown), tp_op_log(graph, scalar(graph, t_mul)));
    const tp_node_id i = tp_op_floor(graph, logs);
    /* the quotient of logarithms may round to just below a whole number in a period's first step */
    const tp_node_id next = tp_op_add_scalar(graph, i, 1);
    const tp_node_id has_begun = tp_op_compare(graph, "LE", period_start(graph, t_mul, next), time);
    return tp_op_select(graph, has_begun, next, i);
}

static tp_node_id cosine_restarts(tp_graph *graph, const tp_optim_schedule *schedule,
                                  tp_node_id step, tp_node_id rate)
{
    if (!are_steps(graph, "first period", schedule->first_decay_steps)) return TP_NO_NODE;
    const double t_mul = schedule->t_mul;
    const tp_node_id time = tp_op_divide(graph, tp_op_convert(graph, step, TP_F32),
                                         scalar(graph, (double)schedule->first_decay_steps));
    const tp_node_id i = period_of(graph, t_mul, time);
    tp_node_id done;
    if (t_mul == 1) {
        done = tp_op_subtract(graph, time, i);
    } else {
        const tp_node_id since = tp_op_subtract(graph, time, period_start(graph, t_mul, i));
        done = tp_op_divide(graph, since, tp_op_power(graph, scalar(graph, t_mul), i));
    }
    const tp_node_id top = tp_op_power(graph, scalar(graph, schedule->m_mul), i);
    const tp_node_id angle = tp_op_multiply_scalar(graph, done, PI);
    const tp_node_id wave = tp_op_add_scalar(graph, tp_op_cosine(graph, angle), 1);
    const tp_node_id half = tp_op_multiply(graph, tp_op_multiply_scalar(graph, top, 0.5), wave);
    const tp_node_id part = tp_op_multiply_scalar(graph, half, 1 - schedule->alpha);
    return tp_op_multiply(graph, rate, tp_op_add_scalar(graph, part, schedule->alpha));
}

/* step / decay_steps, with staircase rounded down */
static tp_node_id decays(tp_graph *graph, const tp_optim_schedule *schedule, tp_node_id step)
{
    const tp_node_id count = tp_op_divide(graph, tp_op_convert(graph, step, TP_F32),
                                          scalar(graph, (double)schedule->decay_steps));
    return schedule->staircase ? tp_op_floor(graph, count) : count;
}

static tp_node_id exponential(tp_graph *graph, const tp_optim_schedule *schedule, tp_node_id step,
                              tp_node_id rate)
{
    if (!are_steps(graph, "decay", schedule->decay_steps)) return TP_NO_NODE;
    const tp_node_id base = scalar(graph, schedule->decay_rate);
    return tp_op_multiply(graph, rate, tp_op_power(graph, base, decays(graph, schedule, step)));
}

static tp_node_id inverse_time(tp_graph *graph, const tp_optim_schedule *schedule, tp_node_id step,
                               tp_node_id rate)
{
    if (!are_steps(graph, "decay", schedule->decay_steps)) return TP_NO_NODE;
    const tp_node_id grown =
        tp_op_multiply(graph, scalar(graph, schedule->decay_rate), decays(graph, schedule, step));
    return tp_op_divide(graph, rate, tp_op_add(graph, scalar(graph, 1), grown));
}

static tp_node_id polynomial(tp_graph *graph, const tp_optim_schedule *schedule, tp_node_id step,
                             tp_node_id rate)
{
    if (!are_steps(graph, "decay", schedule->decay_steps)) return TP_NO_NODE;
    const tp_node_id one = scalar(graph, 1), end = scalar(graph, schedule->end_learning_rate);
    tp_node_id done;
    if (schedule->cycle) {
        const tp_node_id time = tp_op_convert(graph, step, TP_F32);
        const tp_node_id steps = scalar(graph, (double)schedule->decay_steps);
        const tp_node_id cycles =
            tp_op_maximum(graph, tp_op_ceil(graph, tp_op_divide(graph, time, steps)), one);
        done = tp_op_divide(graph, time, tp_op_multiply(graph, steps, cycles));
    } else {
        done = done_part(graph, step, schedule->decay_steps);
    }
    const tp_node_id rest = tp_op_subtract(graph, one, done);
    const tp_node_id part = tp_op_power(graph, rest, scalar(graph, schedule->power));
    const tp_node_id range = tp_op_subtract(graph, rate, end);
    return tp_op_add(graph, tp_op_multiply(graph, range, part), end);
}

static tp_node_id piecewise(tp_graph *graph, const tp_optim_schedule *schedule, tp_node_id step,
                            tp_node_id rate)
{
    (void)rate;
    const int32_t count = schedule->boundary_count;
    tp_node_id value = scalar(graph, schedule->values[count]);
    for (int32_t i = count - 1; i >= 0; i--) {
        const double boundary = schedule->boundaries[i];
        if (!(boundary >= 0 && boundary <= MAX_STEPS) || boundary != (double)(int64_t)boundary ||
            (i > 0 && !(schedule->boundaries[i - 1] < boundary)))
            return tp_graph_fail(graph,
                                 "boundary %d of the learning rate is %g, expected whole numbers "
                                 "from 0 to %d, each larger than the one before",
                                 i, boundary, (int)MAX_STEPS);
        const tp_node_id is_before =
            tp_op_compare(graph, "LE", step, tp_op_scalar(graph, TP_S32, boundary));
        value = tp_op_select(graph, is_before, scalar(graph, schedule->values[i]), value);
    }
    return value;
}

static rate_function *const functions[] = {
#define FUNCTION(id, symbol, name, keys) symbol,
    TP_SCHEDULE_LIST(FUNCTION)
#undef FUNCTION
};

tp_node_id tp_optim_schedule_rate(tp_graph *graph, tp_node_id step, tp_node_id learning_rate,
                                  void *user)
{
    const tp_optim_schedule *schedule = user;
    rate_function *const function = functions[schedule->kind];
    if (schedule->warmup_steps == 0) return function(graph, schedule, step, learning_rate);
    if (!are_steps(graph, "warm-up", schedule->warmup_steps)) return TP_NO_NODE;
    const tp_node_id begin = tp_op_scalar(graph, TP_S32, (double)schedule->warmup_steps);
    const tp_node_id target = scalar(graph, schedule->warmup_target);
    const tp_node_id rise = tp_op_subtract(graph, target, learning_rate);
    const tp_node_id part = done_part(graph, step, schedule->warmup_steps);
    const tp_node_id warming = tp_op_add(graph, tp_op_multiply(graph, rise, part), learning_rate);
    const tp_node_id since =
        tp_op_maximum(graph, tp_op_subtract(graph, step, begin), tp_op_scalar(graph, TP_S32, 0));
    const tp_node_id is_warming = tp_op_compare(graph, "LT", step, begin);
    return tp_op_select(graph, is_warming, warming, function(graph, schedule, since, target));
}
