/* SPDX-License-Identifier: Apache-2.0
 * Warnings of state in bf16, each once found and once not; and the list of state.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "check/check.h"
#include "harness/graph_run.h"
#include "optim/cross_shard.h"

/* A run of one 200 x 100 kernel and its bias. */
typedef struct one_run {
    tp_config *config;
    tp_topology topology;
    tp_graph *graph;
    tp_check_report *report;
} one_run;

static one_run check(const char *optimizer, const char *precision, int32_t cores)
{
    one_run run = {.topology = {.name = "many", .cores = cores}};
    char text[1024];
    snprintf(text, sizeof text,
             "{\"model\": {\"layers\": []}, \"loss\": \"mean_squared_error\", \"optimizer\": %s, "
             "\"precision\": %s, \"per_core_batch\": 12, \"epochs\": 10}",
             optimizer, precision);
    EXPECT_OK(tp_config_parse(text, strlen(text), "test", NULL, 0, &run.config));
    EXPECT_OK(tp_config_resolve(run.config, &run.topology));
    const tp_config *config = run.config;
    tp_optim_config settings = tp_optim_defaults((tp_optim_kind)config->optimizer.name);
    settings.first_moment = config->precision.first_moment ? TP_BF16 : TP_F32;
    settings.second_moment = config->precision.second_moment ? TP_BF16 : TP_F32;
    settings.use_ema = config->optimizer.use_ema;
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &run.graph));
    const tp_shape shapes[2] = {{2, {200, 100}}, {1, {100}}};
    tp_optim_gradient gradients[2];
    for (int i = 0; i < 2; i++) {
        const tp_variable variable = {.name = i ? "dense/bias" : "dense/kernel",
                                      .dtype = config->precision.weights ? TP_BF16 : TP_F32,
                                      .shape = shapes[i],
                                      .init = i ? TP_INIT_ZEROS : TP_INIT_UNIFORM,
                                      .init_a = -0.25,
                                      .init_b = 0.25,
                                      .is_trainable = true,
                                      .is_model = true};
        tp_graph_add_variable(run.graph, &variable);
        gradients[i].variable = i;
        gradients[i].gradient = tp_graph_add_input(run.graph, i ? "db" : "dw", TP_F32, shapes[i]);
    }
    tp_cross_shard_apply(run.graph, &settings, gradients, 2);
    EXPECT_OK(tp_graph_check(run.graph));
    const tp_check_input input = {
        .train = run.graph, .config = config, .topology = &run.topology, .train_examples = 60000};
    EXPECT_OK(tp_check_create(&run.report));
    EXPECT_OK(tp_check_run(&input, run.report));
    return run;
}

static void finish(one_run *run)
{
    tp_check_destroy(run->report);
    tp_graph_destroy(run->graph);
    tp_config_destroy(run->config);
}

static const tp_finding *find(const one_run *run, const char *rule)
{
    for (size_t i = 0; i < run->report->findings.count; i++)
        if (!strcmp(run->report->findings.items[i].rule, rule))
            return &run->report->findings.items[i];
    return NULL;
}

Test(check_bfloat16, warnings)
{
    static const char adam[] = "\"Adam\"", pure[] = "\"bfloat16\"";
    static const char first[] = "{\"policy\": \"bfloat16\", \"first_moment\": \"bfloat16\"}";
    static const char second[] = "{\"policy\": \"bfloat16\", \"second_moment\": \"bfloat16\"}";
    static const char wire[] = "{\"policy\": \"float32\", \"gradients\": \"bfloat16\"}";
    static const char by_chance[] =
        "{\"policy\": \"bfloat16\", \"weights_rounding\": \"stochastic\"}";
    static const char weights[] = "bfloat16-weights", moment[] = "bfloat16-moment";
    static const struct {
        const char *optimizer, *precision;
        int32_t cores;
        const char *rule, *part; /* part: of the text, NULL: it is not found */
    } cases[] = {
        {adam, pure, 8, weights, NULL}, /* 0.001 * 512 is more than any weight */
        {"{\"name\": \"Adam\", \"learning_rate\": 1e-4}", pure, 8, weights, "79 % of the 2"},
        {"{\"name\": \"Adam\", \"learning_rate\": 1e-4}", by_chance, 8, weights, NULL},
        {"{\"name\": \"Adam\", \"learning_rate\": 1e-4}", "\"mixed_bfloat16\"", 8, weights, NULL},
        {"{\"name\": \"Lion\", \"learning_rate\": 1e-4}", pure, 8, weights, "79 %"},
        {"{\"name\": \"Adam\", \"learning_rate\": 1e-4, \"schedule\": {\"name\": \"constant\","
         "\"warmup_steps\": 9, \"warmup_target\": 0.01}}",
         pure, 8, weights, NULL},
        {"\"SGD\"", pure, 8, weights, "below 0.195 of its bf16 weight"},
        {"{\"name\": \"SGD\", \"momentum\": 0.9}", pure, 8, weights, "the rate 0.1 a"},
        {"\"Adafactor\"", pure, 8, weights, "0.001 of the size"},
        {"{\"name\": \"Adafactor\", \"learning_rate\": 0.01}", pure, 8, weights, NULL},
        {adam, second, 8, moment, "beta_2 is 0.999: the average loses 0.001"},
        {"{\"name\": \"Adam\", \"beta_2\": 0.99}", second, 8, moment, NULL},
        {adam, first, 8, moment, NULL},
        {"{\"name\": \"SGD\", \"momentum\": 0.999}", first, 8, moment, "momentum is 0.999"},
        {"\"RMSprop\"", second, 8, moment, NULL},
        {"\"Adagrad\"", second, 8, moment, "about 512"},
        {"\"Adafactor\"", second, 8, moment, "from step 2435 on of 6250"},
        {"\"Adafactor\"", second, 64, moment, NULL}, /* 790 steps */
        {adam, wire, 8, "bfloat16-gradients", NULL},
        {adam, wire, 64, "bfloat16-gradients", "gradients of 64 cores"},
        {adam, "\"bfloat16\"", 64, "bfloat16-gradients", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        one_run run = check(cases[i].optimizer, cases[i].precision, cases[i].cores);
        const tp_finding *found = find(&run, cases[i].rule);
        cr_expect(!found == !cases[i].part, "case %zu: %s", i, found ? found->text : "not found");
        cr_expect(!found || !cases[i].part || strstr(found->text, cases[i].part), "case %zu: %s", i,
                  found ? found->text : "");
        cr_expect(!found || (found->severity == TP_SEVERITY_WARNING && *found->remedy));
        finish(&run);
    }
}

/* The batch of 12 is no hazard. */
Test(check_bfloat16, hazards_are_a_part_of_all)
{
    one_run run = check("{\"name\": \"Adam\", \"learning_rate\": 1e-4}",
                        "{\"policy\": \"bfloat16\", \"second_moment\": \"bfloat16\"}", 8);
    const tp_check_input input = {.train = run.graph,
                                  .config = run.config,
                                  .topology = &run.topology,
                                  .train_examples = 60000};
    tp_check_report *hazards;
    EXPECT_OK(tp_check_create(&hazards));
    EXPECT_OK(tp_check_run_hazards(&input, hazards));
    cr_expect_eq(hazards->findings.count, 2);
    cr_expect_str_eq(hazards->findings.items[0].where, "dense/kernel");
    cr_expect_gt(run.report->findings.count, 2);
    tp_check_destroy(hazards);
    finish(&run);
}

static int64_t elems_of(const one_run *run, const char *kind, const char *of)
{
    int64_t elems = 0;
    for (size_t i = 0; i < run->report->states.count; i++) {
        const tp_check_state *state = &run->report->states.items[i];
        cr_expect_eq(state->bytes, state->elems * (strcmp(state->dtype, "bf16") ? 4 : 2));
        if (!strcmp(state->kind, kind) && (!of || !strcmp(state->of, of))) elems += state->elems;
    }
    return elems;
}

/* Adafactor's state for an m x n matrix is m + n numbers, whatever their dtype; Adam's 2 m n. */
Test(check_bfloat16, state)
{
    static const char *const precisions[] = {
        "\"mixed_bfloat16\"", "{\"policy\": \"bfloat16\", \"second_moment\": \"bfloat16\"}"};
    for (int i = 0; i < 2; i++) {
        one_run run = check("\"Adafactor\"", precisions[i], 8);
        cr_expect_eq(elems_of(&run, "weight", NULL), 20100);
        cr_expect_eq(elems_of(&run, "second_moment", "dense/kernel"), 200 + 100);
        cr_expect_eq(elems_of(&run, "second_moment", "dense/bias"), 100);
        cr_expect_eq(elems_of(&run, "first_moment", NULL), 0);
        const tp_check_state *row = &run.report->states.items[2];
        cr_expect_str_eq(row->name, "adafactor/dense/kernel/row");
        cr_expect_str_eq(row->dtype, i ? "bf16" : "f32");
        cr_expect_str_eq(row->shape, "[200]");
        finish(&run);
    }
    one_run run = check("{\"name\": \"Adam\", \"use_ema\": true}", "\"float32\"", 8);
    cr_expect_eq(elems_of(&run, "first_moment", "dense/kernel"), 20000);
    cr_expect_eq(elems_of(&run, "second_moment", "dense/kernel"), 20000);
    cr_expect_eq(elems_of(&run, "average", NULL), 20100);
    cr_expect_eq(elems_of(&run, "scalar", NULL), 2);
    finish(&run);
}
