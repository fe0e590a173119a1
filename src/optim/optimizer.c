/* SPDX-License-Identifier: Apache-2.0
 * A step of any optimizer: see optimizer.h for its order.
 */
#include "optim/optimizer.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "core/problems.h"
#include "optim/clip.h"
#include "optim/update.h"

static const tp_optim_def *const defs[] = {
#define DEF(id, symbol, name, keys) &tp_optim_##symbol,
    TP_OPTIMIZER_LIST(DEF)
#undef DEF
};

static const char *const default_keys[] = {
#define KEYS(id, symbol, name, keys) keys,
    TP_OPTIMIZER_LIST(KEYS)
#undef KEYS
};

/* TP_OPTIMIZER_KEYS as data. */
typedef struct param {
    const char *name;
    size_t offset; /* in tp_optim_config */
    bool is_flag;
    double low, high;
    int open; /* 'l', 'h' or 0: the end that is left out */
} param;

static const param params[] = {
#define NUMBER(field, low, high, open, meaning)                                                    \
    {#field, offsetof(tp_optim_config, field), false, low, high, open},
#define FLAG(field, meaning) {#field, offsetof(tp_optim_config, field), true, 0, 1, 0},
    TP_OPTIMIZER_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
};
enum { PARAM_COUNT = sizeof params / sizeof params[0] };

static void set(tp_optim_config *config, const param *p, double value)
{
    char *field = (char *)config + p->offset;
    if (p->is_flag)
        *(bool *)field = value != 0;
    else
        *(double *)(void *)field = value;
}

const char *tp_optim_name(tp_optim_kind kind)
{
    return defs[kind]->scope;
}

tp_optim_config tp_optim_defaults(tp_optim_kind kind)
{
    tp_optim_config config = {.kind = kind, .ema_momentum = 0.99};
    for (int i = 0; i < PARAM_COUNT; i++) {
        double value;
        if (tp_choice_number(default_keys[kind], params[i].name, &value))
            set(&config, &params[i], value);
    }
    return config;
}

static void check_range(tp_problems *problems, const tp_optim_config *config, const param *p)
{
    const double value = *(const double *)(const void *)((const char *)config + p->offset);
    const bool above = p->open == 'l' ? value > p->low : value >= p->low;
    const bool below = p->open == 'h' ? value < p->high : value <= p->high;
    if (above && below) return;
    tp_problems_add(problems, "'%s' is %g, expected %s%g and %s%g", p->name, value,
                    p->open == 'l' ? "more than " : "at least ", p->low,
                    p->open == 'h' ? "less than " : "at most ", p->high);
}

static void check_common(tp_problems *problems, const tp_optim_config *config)
{
    if ((config->clipnorm > 0) + (config->clipvalue > 0) + (config->global_clipnorm > 0) > 1)
        tp_problems_add(problems, "of 'clipnorm', 'clipvalue' and 'global_clipnorm' at most one "
                                  "may be given");
    if (config->use_ema && !(config->ema_momentum >= 0 && config->ema_momentum <= 1))
        tp_problems_add(problems, "'ema_momentum' is %g, expected 0 to 1", config->ema_momentum);
    if (config->ema_overwrite_frequency < 0 || config->ema_overwrite_frequency > INT32_MAX)
        tp_problems_add(problems, "'ema_overwrite_frequency' is %lld, expected 0 to %d",
                        (long long)config->ema_overwrite_frequency, INT32_MAX);
}

tpucl_status tp_optim_check(const tp_optim_config *config)
{
    tp_problems problems = {0};
    for (int i = 0; i < PARAM_COUNT; i++) {
        double fallback;
        const bool is_ours =
            tp_choice_number(default_keys[config->kind], params[i].name, &fallback);
        const bool may_be_none = params[i].offset == offsetof(tp_optim_config, weight_decay) &&
                                 isnan(config->weight_decay);
        if (is_ours && !params[i].is_flag && !may_be_none)
            check_range(&problems, config, &params[i]);
    }
    if (config->nesterov && config->momentum == 0.0)
        tp_problems_add(&problems, "'nesterov' needs a 'momentum' above 0");
    check_common(&problems, config);
    return tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "the optimizer");
}

/* ---- the step ---- */

static tp_node_id learning_rate(tp_graph *graph, const tp_optim_config *config, tp_node_id step)
{
    const tp_node_id base = tp_op_scalar(graph, TP_F32, config->learning_rate);
    return config->schedule ? config->schedule(graph, step, base, config->schedule_user) : base;
}

static bool is_excluded(const tp_optim_config *config, const char *name)
{
    for (int32_t i = 0; i < config->excluded_count; i++)
        if (strstr(name, config->excluded[i])) return true;
    return false;
}

/* w - w * weight_decay * lr, where that applies. */
static tp_node_id decayed(const tp_optim_update *u, const tp_optim_target *target)
{
    const double decay = u->config->weight_decay;
    if (!(decay > 0) || target->is_excluded || defs[u->config->kind]->decays_itself)
        return target->weight;
    const tp_node_id share = tp_op_multiply(u->graph, target->weight, tp_optim_scalar(u, decay));
    return tp_op_subtract(u->graph, target->weight,
                          tp_op_multiply(u->graph, share, u->learning_rate));
}

/* Keeps the average of w; gives what w becomes. */
static tp_node_id averaged(const tp_optim_update *u, const tp_optim_target *target, tp_node_id w)
{
    tp_graph *graph = u->graph;
    const tp_optim_config *config = u->config;
    const tp_node_id slot = tp_optim_add_slot(u, target, "average", TP_ROLE_AVERAGE, 0);
    const tp_node_id one = tp_optim_scalar(u, 1.0), none = tp_op_scalar(graph, TP_S32, 0);
    const tp_node_id momentum =
        tp_op_select(graph, tp_op_compare(graph, "NE", u->step, none),
                     tp_optim_scalar(u, config->ema_momentum), tp_optim_scalar(u, 0.0));
    const tp_node_id average =
        tp_op_add(graph, tp_op_multiply(graph, momentum, slot),
                  tp_op_multiply(graph, tp_op_subtract(graph, one, momentum), w));
    tp_optim_set_slot(graph, slot, average);
    if (config->ema_overwrite_frequency == 0) return w;
    const tp_node_id period = tp_op_scalar(graph, TP_S32, (double)config->ema_overwrite_frequency);
    const tp_node_id next = tp_op_add_scalar(graph, u->step, 1);
    const tp_node_id is_due =
        tp_op_compare(graph, "EQ", tp_op_remainder(graph, next, period), none);
    return tp_op_select(graph, is_due, average, w);
}

/* The f32 weight as the variable holds it. Random bits are the variable's own in every step, equal on all
 * cores. */
static tp_node_id rounded(const tp_optim_update *u, const tp_variable *variable, int32_t index,
                          tp_node_id w)
{
    if (variable->dtype != TP_BF16 || !u->config->rounds_stochastically)
        return tp_op_convert(u->graph, w, variable->dtype);
    return tp_op_stochastic_round(u->graph, w, tp_op_random_bits(u->graph, variable->shape, index));
}

static void update_variable(const tp_optim_update *u, int32_t index, tp_node_id gradient)
{
    tp_graph *graph = u->graph;
    tp_optim_target target = {.variable = graph->variables[index]};
    const tp_node_id g = tp_op_convert(graph, gradient, TP_F32);
    target.is_excluded = is_excluded(u->config, target.variable.name);
    target.weight = tp_op_convert(graph, target.variable.node, TP_F32);
    target.weight = decayed(u, &target);
    tp_node_id w = defs[u->config->kind]->apply(u, &target, g);
    if (u->config->use_ema) w = averaged(u, &target, w);
    tp_graph_add_update(graph, target.variable.node, rounded(u, &target.variable, index, w));
}

/* The gradients as f32, clipped; NULL when there is no memory. */
static tp_optim_gradient *clipped(tp_graph *graph, const tp_optim_config *config,
                                  const tp_optim_gradient *gradients, int32_t count)
{
    tp_optim_gradient *out = tp_arena_alloc_array(graph->arena, (size_t)count, sizeof *out);
    if (!out) {
        tp_graph_keep_error(graph);
        return NULL;
    }
    for (int32_t i = 0; i < count; i++) {
        out[i] = gradients[i];
        if (out[i].gradient != TP_NO_NODE)
            out[i].gradient = tp_op_convert(graph, out[i].gradient, TP_F32);
    }
    tp_optim_clip(graph, config, out, count);
    return out;
}

void tp_optim_apply(tp_graph *graph, const tp_optim_config *config,
                    const tp_optim_gradient *gradients, int32_t count)
{
    const tp_optim_def *def = defs[config->kind];
    const char *outer = tp_graph_push_scope(graph, def->scope);
    tp_optim_update u = {.graph = graph, .config = config, .step = tp_op_step(graph)};
    if (tp_optim_clips(config) && config->clip_at == TP_CLIP_AFTER_SUM)
        gradients = clipped(graph, config, gradients, count);
    u.learning_rate = learning_rate(graph, config, u.step);
    if (def->begin) def->begin(&u);
    for (int32_t i = 0; gradients && i < count; i++)
        if (gradients[i].gradient != TP_NO_NODE)
            update_variable(&u, gradients[i].variable, gradients[i].gradient);
    tp_graph_pop_scope(graph, outer);
}

bool tp_optim_average_name(tp_optim_kind kind, const char *variable, char *out, size_t size)
{
    const int length = snprintf(out, size, "%s/%s/average", defs[kind]->scope, variable);
    return length >= 0 && (size_t)length < size;
}
