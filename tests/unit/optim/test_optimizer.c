/* SPDX-License-Identifier: Apache-2.0
 * Optimizers: bits of three steps against tests/golden/gen_optim.py, slots, ranges, schedules.
 */
#include "harness/graph_run.h"
#include "golden/optim.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

static const float gradients[3][4] = {
    {0.5f, -0.25f, 0.125f, 3.0f}, {0.1f, -0.7f, 0.0f, -2.0f}, {-0.3f, -0.7f, 1e-3f, 0.9f}};
static const float start[4] = {1.0f, -2.0f, 0.5f, 0.0f};

typedef struct optim_run {
    tp_graph *graph;
    tp_reference *reference;
} optim_run;

/* One variable "w" of four elements whose gradient is fed. */
static void begin(optim_run *run, const tp_optim_config *config)
{
    const tp_shape shape = {.rank = 1, .dims = {4}};
    const tp_variable w = {.name = "w", .dtype = TP_F32, .shape = shape, .is_trainable = true};
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &run->graph));
    EXPECT_OK(tp_optim_check(config));
    tp_graph_add_variable(run->graph, &w);
    const tp_node_id fed = tp_graph_add_input(run->graph, "g", TP_F32, shape);
    const tp_optim_gradient gradient = {0, tp_op_all_reduce(run->graph, fed)};
    tp_optim_apply(run->graph, config, &gradient, 1);
    EXPECT_OK(tp_graph_check(run->graph));
    EXPECT_OK(tp_graph_verify(run->graph));
    const tp_reference_options options = {.cores = 1};
    EXPECT_OK(tp_reference_create(run->graph, &options, &run->reference));
    memcpy(tp_reference_variable(run->reference, 0, 0)->data, start, sizeof start);
}

static void end(optim_run *run)
{
    tp_reference_destroy(run->reference);
    tp_graph_destroy(run->graph);
}

static void expect_steps(const tp_optim_config *config, const uint32_t *golden)
{
    optim_run run;
    begin(&run, config);
    for (uint32_t step = 0; step < 3; step++) {
        const void *input = gradients[step];
        EXPECT_OK(tp_reference_step(run.reference, &input, step));
        const uint32_t *found = tp_reference_variable(run.reference, 0, 0)->data;
        for (int i = 0; i < 4; i++)
            cr_assert(found[i] == golden[4 * step + i], "step %u, element %d: %a, expected %a",
                      step, i, (double)tp_f32_from_bits(found[i]),
                      (double)tp_f32_from_bits(golden[4 * step + i]));
    }
    end(&run);
}

Test(optimizer, sgd_steps)
{
    tp_optim_config config = tp_optim_defaults(TP_OPTIM_SGD);
    cr_assert(config.learning_rate == 0.01 && config.momentum == 0);
    config.learning_rate = 0.1;
    expect_steps(&config, golden_sgd);
    config.momentum = 0.9;
    expect_steps(&config, golden_momentum);
    config.nesterov = true;
    expect_steps(&config, golden_nesterov);
}

Test(optimizer, adam_steps)
{
    tp_optim_config config = tp_optim_defaults(TP_OPTIM_ADAM);
    cr_assert(config.learning_rate == 0.001 && config.epsilon == 1e-7);
    expect_steps(&config, golden_adam);
    config = (tp_optim_config){.kind = TP_OPTIM_ADAM,
                               .learning_rate = 0.05,
                               .beta_1 = 0.8,
                               .beta_2 = 0.95,
                               .epsilon = 1e-3};
    expect_steps(&config, golden_adam_other);
}

Test(optimizer, slots)
{
    static const char *const names[] = {"w", "adam/beta_1_power", "adam/beta_2_power",
                                        "adam/w/momentum", "adam/w/velocity"};
    optim_run run;
    const tp_optim_config config = tp_optim_defaults(TP_OPTIM_ADAM);
    begin(&run, &config);
    cr_assert(run.graph->variable_count == 5);
    for (int i = 0; i < 5; i++) {
        const tp_variable *variable = &run.graph->variables[i];
        cr_assert_str_eq(variable->name, names[i]);
        cr_assert(variable->dtype == TP_F32 && !variable->is_model &&
                  variable->is_trainable == (i == 0));
    }
    end(&run);

    const tp_optim_config plain = tp_optim_defaults(TP_OPTIM_SGD);
    begin(&run, &plain);
    cr_assert(run.graph->variable_count == 1, "plain SGD keeps nothing");
    end(&run);
}

/* lr / (1 + step) */
static tp_node_id inverse_time(tp_graph *graph, tp_node_id step, tp_node_id learning_rate,
                               void *user)
{
    *(int *)user += 1;
    const tp_node_id time = tp_op_add_scalar(graph, tp_op_convert(graph, step, TP_F32), 1);
    return tp_op_divide(graph, learning_rate, time);
}

Test(optimizer, schedule)
{
    int calls = 0;
    optim_run run;
    tp_optim_config config = tp_optim_defaults(TP_OPTIM_SGD);
    config.learning_rate = 0.5;
    config.schedule = inverse_time;
    config.schedule_user = &calls;
    begin(&run, &config);
    cr_assert(calls == 1);
    const float ones[4] = {1, 1, 1, 1};
    const void *input = ones;
    EXPECT_OK(tp_reference_step(run.reference, &input, 0));
    EXPECT_OK(tp_reference_step(run.reference, &input, 1));
    const float *found = tp_reference_variable(run.reference, 0, 0)->data;
    cr_assert(found[3] == -0.75f, "after 1/2 and 1/4: %g", (double)found[3]);
    end(&run);
}

/* Against double; the rates are below 1, so 1e-6 allows for some ten roundings. */
Test(optimizer, cosine_decay)
{
    static const uint32_t steps[] = {0, 1, 5, 7, 10, 11, 1000};
    tp_optim_schedule cosine = {
        .kind = TP_OPTIM_SCHEDULE_COSINE_DECAY, .decay_steps = 10, .alpha = 0.1};
    optim_run run;
    tp_optim_config config = tp_optim_defaults(TP_OPTIM_SGD);
    config.learning_rate = 0.5;
    config.schedule = tp_optim_schedule_rate;
    config.schedule_user = &cosine;
    begin(&run, &config);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const float ones[4] = {1, 1, 1, 1};
        const void *input = ones;
        float *w = tp_reference_variable(run.reference, 0, 0)->data;
        w[0] = 0;
        EXPECT_OK(tp_reference_step(run.reference, &input, steps[i]));
        w = tp_reference_variable(run.reference, 0, 0)->data;
        const double done = fmin(steps[i], 10) / 10;
        const double rate = 0.5 * (0.9 * 0.5 * (1 + cos(3.14159265358979324 * done)) + 0.1);
        cr_assert(fabs(rate + (double)w[0]) < 1e-6, "step %u: %g, expected %g", steps[i],
                  -(double)w[0], rate);
    }
    end(&run);

    tp_graph *graph;
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    cosine.decay_steps = 0;
    tp_optim_schedule_rate(graph, TP_NO_NODE, TP_NO_NODE, &cosine);
    EXPECT_FAILURE(tp_graph_check(graph), TPUCL_INVALID_ARGUMENT, "over 0 steps");
    tp_graph_destroy(graph);
}

Test(optimizer, a_variable_without_gradient_is_left_alone)
{
    tp_graph *graph;
    const tp_variable w = {.name = "w", .dtype = TP_F32, .is_trainable = true};
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    tp_graph_add_variable(graph, &w);
    const tp_optim_config config = tp_optim_defaults(TP_OPTIM_SGD);
    const tp_optim_gradient none = {0, TP_NO_NODE};
    tp_optim_apply(graph, &config, &none, 1);
    EXPECT_OK(tp_graph_check(graph));
    cr_assert(graph->update_count == 0);
    tp_graph_destroy(graph);
}

Test(optimizer, ranges)
{
    tp_optim_config config = tp_optim_defaults(TP_OPTIM_ADAM);
    config.learning_rate = 0;
    config.beta_1 = 1;
    config.epsilon = -1;
    EXPECT_FAILURE(tp_optim_check(&config), TPUCL_INVALID_CONFIG, "3 problems");
    config = tp_optim_defaults(TP_OPTIM_SGD);
    config.nesterov = true;
    EXPECT_FAILURE(tp_optim_check(&config), TPUCL_INVALID_CONFIG, "'nesterov' needs a 'momentum'");
    config.momentum = (double)NAN;
    EXPECT_FAILURE(tp_optim_check(&config), TPUCL_INVALID_CONFIG, "'momentum' is");
}
