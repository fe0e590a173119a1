/* SPDX-License-Identifier: Apache-2.0
 * The builder's mistakes, and what is made of a graph for training: run by the reference
 * interpreter, so no device is needed. */
#include <criterion/criterion.h>
#include "api/graph_internal.h"
#include "reference/reference.h"

enum { FEATURES = 3, CLASSES = 2, ROWS = 8 };

static tpucl_graph *new_graph(void)
{
    tpucl_graph *graph = NULL;
    cr_assert_eq(tpucl_graph_create(&graph), TPUCL_OK);
    return graph;
}

static void expect_mistake(tpucl_graph *graph, const char *text)
{
    cr_assert_eq(tpucl_graph_check(graph), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, text), "'%s' is not in '%s'", text,
              tpucl_last_error()->message);
    tpucl_graph_destroy(graph);
}

Test(graph, the_first_mistake_sticks)
{
    tpucl_graph *graph = new_graph();
    tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(4, 3));
    tpucl_tensor w = tpucl_graph_parameter(graph, "w", tpucl_shape2(5, 2), "zeros");
    tpucl_tensor bad = tpucl_matmul(graph, x, w);
    cr_assert_lt(bad.id, 0);
    cr_assert_lt(tpucl_relu(graph, bad).id, 0);
    cr_assert_lt(tpucl_graph_input(graph, "y", TPUCL_F32, tpucl_shape1(9)).id, 0);
    cr_assert_eq(tpucl_graph_shape(graph, bad).rank, -1);
    expect_mistake(graph, "[4,3]");
}

Test(graph, inputs_have_one_batch)
{
    tpucl_graph *graph = new_graph();
    tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(4, 3));
    tpucl_graph_input(graph, "y", TPUCL_S32, tpucl_shape1(5));
    expect_mistake(graph, "'y' has a batch of 5, the inputs before it have 4");
    graph = new_graph();
    tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape0());
    expect_mistake(graph, "has no batch");
    graph = new_graph();
    tpucl_graph_input(graph, "weight", TPUCL_F32, tpucl_shape1(4));
    expect_mistake(graph, "keeps this name");
}

Test(graph, other_mistakes_are_named)
{
    tpucl_graph *graph = new_graph();
    tpucl_graph_parameter(graph, "w", tpucl_shape2(5, 2), "glorot_unifrom");
    expect_mistake(graph, "glorot_uniform");
    graph = new_graph();
    tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(4, 3));
    tpucl_graph_minimize(graph, x, NULL);
    expect_mistake(graph, "the loss is f32[4,3], expected one value per example: f32[4]");
    graph = new_graph();
    x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(4, 3));
    tpucl_softmax_cross_entropy(graph, x, x);
    expect_mistake(graph, "expected f32[batch, classes] with s32[batch]");
    graph = new_graph();
    x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape4(4, 8, 8, 1));
    tpucl_tensor kernel = tpucl_graph_parameter(graph, "k", tpucl_shape4(3, 3, 1, 2), "zeros");
    tpucl_conv2d(graph, x, kernel, INT64_MAX, "same");
    expect_mistake(graph, "stride");
    graph = new_graph();
    tpucl_tensor stranger = {1234};
    tpucl_add(graph, stranger, stranger);
    expect_mistake(graph, "no tensor of this graph");
    graph = new_graph();
    x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape1(4));
    tpucl_optimizer_options options = tpucl_optimizer_options_default();
    options.kind = "rmsprob";
    tpucl_graph_minimize(graph, x, &options);
    expect_mistake(graph, "did you mean 'rmsprop'?");
    graph = new_graph();
    tpucl_graph_apply(graph, "abs", NULL, 0, NULL, 1);
    expect_mistake(graph, "NULL for its inputs");
}

/* What is NULL is not passed over: it would be missing from the graph. */
Test(graph, missing_arguments_are_mistakes)
{
    const int32_t cores[] = {0};
    for (int i = 0; i < 8; i++) {
        tpucl_graph *graph = new_graph();
        tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(4, 3));
        tpucl_tensor loss = tpucl_graph_input(graph, "loss", TPUCL_F32, tpucl_shape1(4));
        tpucl_optimizer_options groups = tpucl_optimizer_options_default();
        groups.groups = cores;
        groups.group_count = groups.group_size = 1 << 20;
        cr_assert_eq(tpucl_graph_check(graph), TPUCL_OK);
        if (i == 0) tpucl_graph_input(graph, NULL, TPUCL_F32, tpucl_shape1(4));
        if (i == 1) tpucl_graph_parameter(graph, NULL, tpucl_shape1(4), "zeros");
        if (i == 2) tpucl_graph_constant(graph, tpucl_shape1(4), NULL);
        if (i == 3) tpucl_graph_apply(graph, NULL, NULL, 0, &x, 1);
        if (i == 4) tpucl_graph_apply(graph, "add", NULL, 0, NULL, 2);
        if (i == 5) tpucl_graph_apply(graph, "transpose", NULL, 1, &x, 1);
        if (i == 6) tpucl_graph_metric(graph, NULL, loss);
        if (i == 7) tpucl_graph_minimize(graph, loss, &groups);
        expect_mistake(graph, i == 7 ? "cores in all" : "NULL");
    }
}

Test(graph, an_initialiser_may_have_parameters)
{
    tpucl_graph *graph = new_graph();
    tpucl_graph_parameter(graph, "w", tpucl_shape1(3), "{\"type\": \"constant\", \"value\": 2.5}");
    cr_assert_eq(tpucl_graph_check(graph), TPUCL_OK);
    cr_assert_eq(graph->graph->variables[0].init, TP_INIT_CONSTANT);
    cr_assert_eq(graph->graph->variables[0].init_a, 2.5);
    tpucl_graph_destroy(graph);
}

Test(graph, apply_reaches_any_op)
{
    tpucl_graph *graph = new_graph();
    tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(4, 3));
    const int64_t axes[] = {1};
    const tpucl_attribute attributes[] = {tpucl_attribute_ints("axes", axes, 1),
                                          tpucl_attribute_text("kind", "max")};
    tpucl_tensor y = tpucl_graph_apply(graph, "reduce", attributes, 2, &x, 1);
    cr_assert_eq(tpucl_graph_check(graph), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tpucl_graph_shape(graph, y).rank, 1);
    char *text = NULL;
    cr_assert_eq(tpucl_graph_print(graph, &text), TPUCL_OK);
    cr_assert(strstr(text, "reduce(%0)"));
    tpucl_free(text);
    tpucl_graph_apply(graph, "no_such_op", NULL, 0, &x, 1);
    expect_mistake(graph, "no_such_op");
}

/* ---- training graphs ---- */

static tpucl_graph *new_classifier(int64_t batch, bool minimize)
{
    tpucl_graph *graph = new_graph();
    tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(batch, FEATURES));
    tpucl_tensor label = tpucl_graph_input(graph, "label", TPUCL_S32, tpucl_shape1(batch));
    tpucl_tensor w =
        tpucl_graph_parameter(graph, "w", tpucl_shape2(FEATURES, CLASSES), "glorot_uniform");
    tpucl_tensor logits = tpucl_matmul(graph, x, w);
    tpucl_optimizer_options sgd = tpucl_optimizer_options_default();
    sgd.learning_rate = 0.5;
    tpucl_graph_metric(graph, "accuracy", tpucl_is_correct(graph, logits, label));
    if (minimize)
        tpucl_graph_minimize(graph, tpucl_softmax_cross_entropy(graph, logits, label), &sgd);
    cr_assert_eq(tpucl_graph_check(graph), TPUCL_OK, "%s", tpucl_last_error()->message);
    return graph;
}

/* Whole numbers, so that products are exact and only the order of sums can matter. */
static const float rows[ROWS][FEATURES] = {{1, 2, -1}, {0, 1, 3},  {2, -2, 1}, {4, 0, 1},
                                           {-3, 1, 1}, {1, 1, -2}, {2, 5, 0},  {-1, -1, 2}};
static const int32_t labels[ROWS] = {0, 1, 1, 0, 1, 0, 1, 0};

typedef struct outcome {
    double loss_sum, correct, weight_sum;
    float w[FEATURES * CLASSES];
} outcome;

static double output_named(const tp_reference *reference, const tp_graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->output_count; i++)
        if (!strcmp(graph->outputs[i].name, name))
            return *(const float *)tp_reference_output(reference, 0, i)->data;
    cr_assert_fail("no output '%s'", name);
    return 0;
}

/* One training step of `valid` rows on `cores` cores of ROWS / cores rows each; rows behind them
 * hold `padding`. */
static outcome run_step(int32_t cores, int64_t valid, float padding)
{
    enum { MAX_CORES = 4 };
    int64_t batch = ROWS / cores;
    float x[ROWS][FEATURES], weight[ROWS], denominator = (float)valid;
    int32_t label[ROWS];
    for (int64_t i = 0; i < ROWS; i++) {
        weight[i] = i < valid;
        label[i] = i < valid ? labels[i] : 0;
        for (int64_t j = 0; j < FEATURES; j++)
            x[i][j] = i < valid ? rows[i][j] : padding;
    }
    tpucl_graph *graph = new_classifier(batch, true);
    tp_graph *train = NULL;
    cr_assert_eq(tp_api_graph_train(graph, cores, &train), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    tp_reference *reference = NULL;
    tp_reference_options options = {.cores = cores, .seed = 3};
    cr_assert_eq(tp_reference_create(train, &options, &reference), TPUCL_OK);
    const void *inputs[MAX_CORES * 4];
    cr_assert_eq(train->input_count, 4);
    cr_assert_str_eq(train->inputs[2].name, "weight");
    cr_assert_str_eq(train->inputs[3].name, "denominator");
    for (int32_t core = 0; core < cores; core++) {
        inputs[core * 4 + 0] = x[core * batch];
        inputs[core * 4 + 1] = label + core * batch;
        inputs[core * 4 + 2] = weight + core * batch;
        inputs[core * 4 + 3] = &denominator;
    }
    cr_assert_eq(tp_reference_step(reference, inputs, 0), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    outcome result = {output_named(reference, train, "sum/loss"),
                      output_named(reference, train, "sum/accuracy"),
                      output_named(reference, train, "weight_sum"),
                      {0}};
    memcpy(result.w, tp_reference_variable(reference, 0, 0)->data, sizeof result.w);
    tp_reference_destroy(reference);
    tp_graph_destroy(train);
    tpucl_graph_destroy(graph);
    return result;
}

Test(graph, a_step_on_more_cores_is_the_same_step)
{
    outcome one = run_step(1, ROWS, 0), four = run_step(4, ROWS, 0);
    cr_assert_eq(one.weight_sum, ROWS);
    cr_assert_eq(four.weight_sum, ROWS);
    cr_assert_eq(one.correct, four.correct);
    cr_assert_float_eq(one.loss_sum, four.loss_sum, 1e-5);
    for (int i = 0; i < FEATURES * CLASSES; i++)
        cr_assert_float_eq(one.w[i], four.w[i], 2e-6, "w[%d]: %g and %g", i, one.w[i], four.w[i]);
}

Test(graph, padding_counts_nowhere)
{
    outcome zeros = run_step(4, 5, 0), garbage = run_step(4, 5, -7.25f);
    cr_assert_eq(zeros.weight_sum, 5);
    cr_assert_eq(memcmp(&zeros, &garbage, sizeof zeros), 0, "what the padding holds changed a bit");
    outcome full = run_step(4, ROWS, 0);
    cr_assert_neq(memcmp(zeros.w, full.w, sizeof full.w), 0);
}

Test(graph, evaluation_has_no_updates_and_needs_no_loss)
{
    tpucl_graph *graph = new_classifier(4, false);
    tp_graph *evaluate = NULL, *train = NULL;
    cr_assert_eq(tp_api_graph_evaluate(graph, &evaluate), TPUCL_OK);
    cr_assert_eq(evaluate->update_count, 0);
    cr_assert_eq(evaluate->output_count, 2);
    cr_assert_eq(tp_api_graph_train(graph, 2, &train), TPUCL_INVALID_ARGUMENT);
    cr_assert_null(train);
    cr_assert(strstr(tpucl_last_error()->message, "nothing to minimise"));
    tp_graph_destroy(evaluate);
    tpucl_graph_destroy(graph);
}

Test(graph, every_optimizer_by_name)
{
    static const char *const kinds[] = {"sgd",   "adam",    "adamw",   "adamax",
                                        "nadam", "rmsprop", "adagrad", "adadelta",
                                        "lion",  "lamb",    "lars",    "adafactor"};
    static const char *const no_decay[] = {"bias"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tpucl_graph *graph = new_graph();
        tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape1(4));
        tpucl_tensor w = tpucl_graph_parameter(graph, "bias", tpucl_shape1(4), "zeros");
        tpucl_optimizer_options options = tpucl_optimizer_options_default();
        options.kind = kinds[i];
        options.weight_decay = 0.1;
        options.no_decay = no_decay;
        options.no_decay_count = 1;
        options.global_clipnorm = 1;
        options.clip_per_replica = i % 2;
        tpucl_graph_minimize(graph, tpucl_multiply(graph, x, w), &options);
        cr_assert_eq(tpucl_graph_check(graph), TPUCL_OK, "%s", tpucl_last_error()->message);
        tp_graph *train = NULL;
        cr_assert_eq(tp_api_graph_train(graph, 4, &train), TPUCL_OK, "%s",
                     tpucl_last_error()->message);
        tp_graph_destroy(train);
        tpucl_graph_destroy(graph);
    }
}

Test(graph, state_in_bf16)
{
    tpucl_optimizer_options options = tpucl_optimizer_options_default();
    options.kind = "adam";
    options.second_moment = TPUCL_BF16;
    tpucl_graph *graph = new_graph();
    tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape1(4));
    tpucl_tensor w = tpucl_graph_parameter(graph, "w", tpucl_shape1(4), "zeros");
    tpucl_graph_minimize(graph, tpucl_multiply(graph, x, w), &options);
    tp_graph *train = NULL;
    cr_assert_eq(tp_api_graph_train(graph, 4, &train), TPUCL_OK, "%s", tpucl_last_error()->message);
    const int32_t first = tp_graph_find_variable(train, "adam/w/momentum");
    const int32_t second = tp_graph_find_variable(train, "adam/w/velocity");
    cr_assert(first >= 0 && train->variables[first].dtype == TP_F32);
    cr_assert(second >= 0 && train->variables[second].dtype == TP_BF16);
    tp_graph_destroy(train);
    tpucl_graph_destroy(graph);

    options.gradients = TPUCL_S32;
    graph = new_graph();
    x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape1(4));
    tpucl_graph_minimize(graph, x, &options);
    cr_assert_eq(tpucl_graph_check(graph), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "gradients is s32, expected TPUCL_F32"));
    tpucl_graph_destroy(graph);
}

Test(graph, groups_must_cover_the_cores)
{
    tpucl_graph *graph = new_graph();
    tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape1(4));
    const int32_t groups[] = {0, 1, 2, 2};
    tpucl_optimizer_options options = tpucl_optimizer_options_default();
    options.groups = groups;
    options.group_count = options.group_size = 2;
    tpucl_graph_minimize(graph, x, &options);
    cr_assert_eq(tpucl_graph_check(graph), TPUCL_OK);
    tp_graph *train = NULL;
    cr_assert_eq(tp_api_graph_train(graph, 4, &train), TPUCL_INVALID_CONFIG);
    cr_assert_null(train);
    tpucl_graph_destroy(graph);
}

/* ---- loops ---- */

static void add_up(void *user, tpucl_graph *graph, const tpucl_tensor *carries,
                   const tpucl_tensor *slices, tpucl_tensor *next, tpucl_tensor *stacked)
{
    (*(int *)user)++;
    next[0] = tpucl_add(graph, carries[0], slices[0]);
    stacked[0] = next[0];
}

Test(graph, scan_is_a_loop)
{
    tpucl_graph *graph = new_graph();
    int calls = 0;
    const float zeros[3] = {0};
    const tpucl_tensor init = tpucl_graph_constant(graph, tpucl_shape1(3), zeros);
    const tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(4, 3));
    tpucl_tensor last, stack;
    tpucl_scan_options options = tpucl_scan_options_default();
    options.length = 4;
    options.init = &init;
    options.xs = &x;
    options.carry_count = options.input_count = options.stack_count = 1;
    options.body = add_up;
    options.user = &calls;
    tpucl_scan(graph, &options, &last, &stack);
    cr_assert_eq(tpucl_graph_check(graph), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(calls, 1);
    const tp_node *sums = tp_graph_node(graph->graph, stack.id);
    cr_assert(sums->shape.rank == 2 && sums->shape.dims[0] == 4 && sums->shape.dims[1] == 3);
    cr_assert_eq(tp_graph_node(graph->graph, last.id)->shape.rank, 1);
    options.body = NULL;
    tpucl_scan(graph, &options, &last, &stack);
    cr_assert_eq(tpucl_graph_check(graph), TPUCL_INVALID_ARGUMENT);
    tpucl_graph_destroy(graph);
}
