/* SPDX-License-Identifier: Apache-2.0
 * Regularizers, constraints and losses of activities: values, splits over cores, reading.
 */
#include "model/constraint.h"
#include "model/regularizer.h"
#include "model_run.h"

static const tp_model_loss squares = TP_MODEL_LOSS_MEAN_SQUARED_ERROR;

/* ---- in a training step ---- */

/* y = x . kernel without bias for x [4, 2], so that everything can be written down. */
typedef struct step_result {
    float loss;      /* mean over the examples, penalties included */
    float kernel[2]; /* after the step */
} step_result;

static step_result step(const char *arguments, int32_t cores)
{
    static const float x[8] = {1, 2, -1, 0.5f, 3, 1, 0.25f, -2}, target[4] = {-1, 0, 2, -1};
    static const float weight[4] = {1, 1, 1, 0.5f};
    char layers[512];
    snprintf(layers, sizeof layers, "{\"type\": \"Dense\", \"units\": 1, \"use_bias\": false%s}",
             arguments);
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = 0.5;
    const tp_cross_shard shards = {.shards = cores};
    tp_model *model = model_of(layers, f32_input(1, (int64_t[]){2}), &float32_options);
    model_run run = train_start(model, 4 / cores, squares, false, &optimizer, &shards);
    float *kernel = model_variable(&run, "dense/kernel")->data;
    kernel[0] = 0.5f;
    kernel[1] = -0.25f;
    model_step(&run, x, target, weight, 0);
    kernel = model_variable(&run, "dense/kernel")->data;
    step_result result = {model_scalar(&run, "loss_sum") / model_scalar(&run, "weight_sum"),
                          {kernel[0], kernel[1]}};
    model_stop(&run);
    tp_model_destroy(model);
    return result;
}

/* Sums of at most 8 terms of size 1 in f32. */
static void expect_close(const char *what, double found, double expected)
{
    cr_assert(fabs(found - expected) <= 2e-6, "%s: %.9g, expected %.9g", what, found, expected);
}

/* The penalty and its gradient times the learning rate, on one core as on two. */
static void expect_penalty(const char *arguments, double penalty, double step_0, double step_1)
{
    const step_result plain = step("", 1);
    for (int32_t cores = 1; cores <= 2; cores++) {
        const step_result found = step(arguments, cores);
        expect_close("loss", found.loss, (double)plain.loss + penalty);
        expect_close("kernel[0]", found.kernel[0], (double)plain.kernel[0] - step_0);
        expect_close("kernel[1]", found.kernel[1], (double)plain.kernel[1] - step_1);
    }
}

Test(penalties, regularizers)
{
    expect_penalty(", \"kernel_regularizer\": null", 0, 0, 0);
    expect_penalty(", \"kernel_regularizer\": \"l2\"", 0.01 * 0.3125, 0.5 * 0.01,
                   0.5 * 0.01 * -0.5);
    expect_penalty(", \"kernel_regularizer\": {\"type\": \"L1\", \"l1\": 0.5}", 0.5 * 0.75, 0.25,
                   -0.25);
    expect_penalty(", \"kernel_regularizer\": {\"type\": \"L1L2\", \"l1\": 0.5, \"l2\": 0.25}",
                   0.5 * 0.75 + 0.25 * 0.3125, 0.25 + 0.125, -0.25 - 0.0625);
}

/* y = 0, -0.625, 1.25, 0.625 with weights 1, 1, 1, 0.5: the mean of y^2 is 2.1484375 / 3.5. */
Test(penalties, activities_are_means_over_examples)
{
    expect_penalty(", \"activity_regularizer\": {\"type\": \"L2\", \"l2\": 0.5}",
                   0.5 * 2.1484375 / 3.5, 0.5 * (0.625 + 1.25 * 3 + 0.5 * 0.625 * 0.25) / 3.5,
                   0.5 * (-0.625 * 0.5 + 1.25 - 0.5 * 0.625 * 2) / 3.5);
}

Test(penalties, constraints_hold_after_the_step)
{
    const step_result plain = step("", 1);
    const double a = plain.kernel[0], b = plain.kernel[1], norm = sqrt(a * a + b * b);
    cr_assert(b < 0 || a < 0, "the case tests nothing");
    step_result found = step(", \"kernel_constraint\": \"non_neg\"", 2);
    expect_close("non_neg", found.kernel[0], a > 0 ? a : 0);
    expect_close("non_neg", found.kernel[1], b > 0 ? b : 0);
    found = step(", \"kernel_constraint\": \"UnitNorm\"", 1);
    expect_close("unit_norm", found.kernel[0], a / (1e-7 + norm));
    expect_close("unit_norm", found.kernel[1], b / (1e-7 + norm));
    found = step(", \"kernel_constraint\": {\"type\": \"MaxNorm\", \"max_value\": 0.125}", 1);
    expect_close("max_norm", found.kernel[0], a * 0.125 / (1e-7 + norm));
    found = step(", \"kernel_constraint\": {\"type\": \"MinMaxNorm\", \"min_value\": 8, "
                 "\"max_value\": 9, \"rate\": 0.25, \"axis\": [0, 1]}",
                 1);
    expect_close("min_max_norm", found.kernel[1], b * (0.25 * 8 + 0.75 * norm) / (1e-7 + norm));
}

/* ---- reading ---- */

Test(penalties, what_cannot_be_read)
{
    static const struct {
        const char *arguments, *part;
    } rows[] = {
        {"\"kernel_regularizer\": \"l3\"", "layers[0].kernel_regularizer"},
        {"\"kernel_regularizer\": {\"l1\": 1}", "'type'"},
        {"\"kernel_regularizer\": {\"type\": \"L2\", \"l1\": 1}", "'l2'"},
        {"\"kernel_regularizer\": {\"type\": \"L2\", \"l2\": -1}", "kernel_regularizer.l2"},
        {"\"kernel_constraint\": \"max_nrm\"", "'max_norm'"},
        {"\"kernel_constraint\": {\"type\": \"NonNeg\", \"axis\": 0}", "axis"},
        {"\"kernel_constraint\": {\"type\": \"MaxNorm\", \"axis\": []}", "0 axes"},
        {"\"bias_constraint\": 3", "layers[0].bias_constraint"},
        {"\"use_bias\": null", "layers[0].use_bias"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char layers[256];
        tp_model *model = NULL;
        const tp_model_input input = f32_input(1, (int64_t[]){2});
        snprintf(layers, sizeof layers, "{\"type\": \"Dense\", \"units\": 1, %s}",
                 rows[i].arguments);
        cr_assert(model_parse(layers, &input, &float32_options, &model) == TPUCL_INVALID_CONFIG);
        cr_assert(strstr(tpucl_last_error()->message, rows[i].part), "'%s' is not in:\n%s",
                  rows[i].part, tpucl_last_error()->message);
    }
}

/* An axis that the weight does not have is found when the graph is built. */
Test(penalties, axis_of_a_constraint)
{
    tp_graph *graph = NULL;
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    const tp_cross_shard one = {.shards = 1};
    tp_model *model = model_of("{\"type\": \"Dense\", \"units\": 1, \"kernel_constraint\": "
                               "{\"type\": \"MaxNorm\", \"axis\": 2}}",
                               f32_input(1, (int64_t[]){2}), &float32_options);
    const tp_model_train train = {1, squares, false, &optimizer, &one};
    cr_assert(tp_model_build_train(model, &train, &graph) != TPUCL_OK);
    cr_assert(strstr(tpucl_last_error()->message, "axis is 2"));
    tp_model_destroy(model);
}
