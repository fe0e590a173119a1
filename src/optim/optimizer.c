/* SPDX-License-Identifier: Apache-2.0
 * SGD, momentum and Adam as graph nodes: see optimizer.h.
 */
#include "optim/optimizer.h"

#include "core/problems.h"
#include "graph/builder.h"

const char *tp_optim_name(tp_optim_kind kind)
{
    return kind == TP_OPTIM_ADAM ? "adam" : "sgd";
}

tp_optim_config tp_optim_defaults(tp_optim_kind kind)
{
    return (tp_optim_config){.kind = kind,
                             .learning_rate = kind == TP_OPTIM_ADAM ? 0.001 : 0.01,
                             .beta_1 = 0.9,
                             .beta_2 = 0.999,
                             .epsilon = 1e-7};
}

static void check_unit(tp_problems *problems, const char *name, double value)
{
    if (!(value >= 0.0 && value < 1.0))
        tp_problems_add(problems, "'%s' is %g, expected 0 or more and less than 1", name, value);
}

static void check_positive(tp_problems *problems, const char *name, double value)
{
    if (!(value > 0.0 && value <= 1e30))
        tp_problems_add(problems, "'%s' is %g, expected more than 0", name, value);
}

tpucl_status tp_optim_check(const tp_optim_config *config)
{
    tp_problems problems = {0};
    check_positive(&problems, "learning_rate", config->learning_rate);
    if (config->kind == TP_OPTIM_ADAM) {
        check_unit(&problems, "beta_1", config->beta_1);
        check_unit(&problems, "beta_2", config->beta_2);
        check_positive(&problems, "epsilon", config->epsilon);
    } else {
        check_unit(&problems, "momentum", config->momentum);
        if (config->nesterov && config->momentum == 0.0)
            tp_problems_add(&problems, "'nesterov' needs a 'momentum' above 0");
    }
    return tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "the optimizer");
}

/* What the update of every variable uses. */
typedef struct update_context {
    tp_graph *graph;
    const tp_optim_config *config;
    tp_node_id learning_rate; /* f32 [] */
    tp_node_id alpha;         /* Adam: f32 [] */
} update_context;

static tp_node_id scalar(tp_graph *graph, double value)
{
    return tp_op_scalar(graph, TP_F32, value);
}

static tp_node_id learning_rate(tp_graph *graph, const tp_optim_config *config)
{
    const tp_node_id base = scalar(graph, config->learning_rate);
    if (!config->schedule) return base;
    return config->schedule(graph, tp_op_step(graph), base, config->schedule_user);
}

/* A slot of zeros beside variable `of`. Returns its node. */
static tp_node_id add_slot(tp_graph *graph, const tp_variable *of, const char *name)
{
    char *full = tp_arena_printf(graph->arena, "%s/%s", of->name, name);
    if (!full) return tp_graph_keep_error(graph);
    const tp_variable slot = {
        .name = full, .dtype = TP_F32, .shape = of->shape, .init = TP_INIT_ZEROS};
    return tp_graph_add_variable(graph, &slot);
}

static tp_node_id update_sgd(const update_context *u, tp_variable variable, tp_node_id g)
{
    tp_graph *graph = u->graph;
    const tp_node_id w = variable.node;
    const tp_node_id step = tp_op_multiply(graph, u->learning_rate, g);
    if (u->config->momentum == 0.0) return tp_op_subtract(graph, w, step);

    const tp_node_id momentum = scalar(graph, u->config->momentum);
    const tp_node_id slot = add_slot(graph, &variable, "momentum");
    const tp_node_id v = tp_op_subtract(graph, tp_op_multiply(graph, momentum, slot), step);
    tp_graph_add_update(graph, slot, v);
    if (!u->config->nesterov) return tp_op_add(graph, w, v);
    const tp_node_id ahead = tp_op_subtract(graph, tp_op_multiply(graph, momentum, v), step);
    return tp_op_add(graph, w, ahead);
}

/* slot + (target - slot) * (1 - beta), kept in the slot. */
static tp_node_id moving_average(tp_graph *graph, tp_node_id slot, tp_node_id target, double beta)
{
    const tp_node_id distance = tp_op_subtract(graph, target, slot);
    const tp_node_id step = tp_op_multiply(graph, distance, scalar(graph, 1.0 - beta));
    const tp_node_id value = tp_op_add(graph, slot, step);
    tp_graph_add_update(graph, slot, value);
    return value;
}

static tp_node_id update_adam(const update_context *u, tp_variable variable, tp_node_id g)
{
    tp_graph *graph = u->graph;
    const tp_node_id m_slot = add_slot(graph, &variable, "momentum");
    const tp_node_id v_slot = add_slot(graph, &variable, "velocity");
    const tp_node_id m = moving_average(graph, m_slot, g, u->config->beta_1);
    const tp_node_id v =
        moving_average(graph, v_slot, tp_op_multiply(graph, g, g), u->config->beta_2);
    const tp_node_id below =
        tp_op_add(graph, tp_op_sqrt(graph, v), scalar(graph, u->config->epsilon));
    const tp_node_id step = tp_op_divide(graph, tp_op_multiply(graph, m, u->alpha), below);
    return tp_op_subtract(graph, variable.node, step);
}

/* A scalar variable that reads beta^t in step t = 1, 2, ... */
static tp_node_id beta_power(tp_graph *graph, const char *name, double beta)
{
    const tp_variable variable = {
        .name = name, .dtype = TP_F32, .init = TP_INIT_CONSTANT, .init_a = beta};
    const tp_node_id power = tp_graph_add_variable(graph, &variable);
    tp_graph_add_update(graph, power, tp_op_multiply(graph, power, scalar(graph, beta)));
    return power;
}

/* lr * sqrt(1 - beta_2^t) / (1 - beta_1^t) */
static tp_node_id adam_alpha(tp_graph *graph, const tp_optim_config *config, tp_node_id lr)
{
    const tp_node_id power_1 = beta_power(graph, "beta_1_power", config->beta_1);
    const tp_node_id power_2 = beta_power(graph, "beta_2_power", config->beta_2);
    const tp_node_id one = scalar(graph, 1.0);
    const tp_node_id root = tp_op_sqrt(graph, tp_op_subtract(graph, one, power_2));
    return tp_op_divide(graph, tp_op_multiply(graph, lr, root),
                        tp_op_subtract(graph, one, power_1));
}

void tp_optim_apply(tp_graph *graph, const tp_optim_config *config,
                    const tp_optim_gradient *gradients, int32_t count)
{
    const char *outer = tp_graph_push_scope(graph, tp_optim_name(config->kind));
    update_context u = {.graph = graph, .config = config};
    u.learning_rate = learning_rate(graph, config);
    if (config->kind == TP_OPTIM_ADAM) u.alpha = adam_alpha(graph, config, u.learning_rate);
    for (int32_t i = 0; i < count; i++) {
        if (gradients[i].gradient == TP_NO_NODE) continue;
        const tp_variable variable = graph->variables[gradients[i].variable];
        const tp_node_id value = config->kind == TP_OPTIM_ADAM
                                     ? update_adam(&u, variable, gradients[i].gradient)
                                     : update_sgd(&u, variable, gradients[i].gradient);
        tp_graph_add_update(graph, variable.node, value);
    }
    tp_graph_pop_scope(graph, outer);
}
