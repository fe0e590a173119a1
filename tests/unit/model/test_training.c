/* SPDX-License-Identifier: Apache-2.0
 * Whole nets through the reference interpreter: a convnet against float64, splits over cores, padding,
 * SUM and MEAN, groups, frozen layers, falling losses.
 */
#include "golden/model.h"
#include "model_run.h"

static const tp_model_loss sparse = TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;

static void fill(float *values, int64_t count, uint32_t seed)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = golden_value(seed, (uint32_t)i);
}

/* ---- a convnet against tests/golden/gen_model.py ---- */

static const char convnet[] =
    "{\"type\": \"Conv2D\", \"filters\": 3, \"kernel_size\": 3, \"padding\": \"same\","
    " \"activation\": \"relu\"},"
    "{\"type\": \"MaxPooling2D\"},"
    "{\"type\": \"BatchNormalization\"},"
    "{\"type\": \"Conv2D\", \"filters\": 2, \"kernel_size\": [2, 3], \"activation\": \"tanh\"},"
    "{\"type\": \"AveragePooling2D\", \"strides\": 1, \"padding\": \"same\"},"
    "{\"type\": \"Flatten\"},"
    "{\"type\": \"Dense\", \"units\": 5, \"activation\": \"gelu\"},"
    "{\"type\": \"Dense\", \"units\": 4}";

/* Trainable variables start from streams 30, 31, ..., halved. */
static void set_weights(const model_run *run)
{
    uint32_t seed = 30;
    for (int32_t i = 0; i < run->graph->variable_count; i++) {
        if (!run->graph->variables[i].is_trainable) continue;
        const tp_host_tensor *tensor = tp_reference_variable(run->reference, 0, i);
        const int64_t elems = tp_shape_elems(&tensor->shape);
        fill(tensor->data, elems, seed++);
        for (int64_t j = 0; j < elems; j++)
            ((float *)tensor->data)[j] /= 2;
    }
}

/* f32 against f64 after three steps of a net with sums of at most 150 terms: 1e-5 of the size of the
 * weights, about 1, leaves a factor of 5 over what was seen. */
static void expect_near(const char *what, int64_t i, float found, double expected)
{
    cr_assert(fabs((double)found - expected) <= 1e-5, "%s, element %lld: %.9g, expected %.9g", what,
              (long long)i, (double)found, expected);
}

Test(training, convnet_against_float64)
{
    static float image[6 * 8 * 8 * 2];
    static const float weight[6] = {1, 1, 1, 0.5f, 1, 0};
    static const int32_t label[6] = {0, 1, 2, 3, 0, 1};
    const tp_cross_shard one = {.shards = 1};
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = 0.1;
    optimizer.momentum = 0.9;
    tp_model *model = model_of(convnet, f32_input(3, (int64_t[]){8, 8, 2}), &float32_options);
    model_run run = train_start(model, 6, sparse, true, &optimizer, &one);
    set_weights(&run);
    fill(image, 6 * 8 * 8 * 2, 20);
    for (uint32_t step = 0; step < 3; step++) {
        model_step(&run, image, label, weight, step);
        expect_near("loss", step, model_scalar(&run, "loss_sum") / 4.5f, golden_losses[step]);
        cr_assert(model_scalar(&run, "weight_sum") == 4.5f);
        cr_assert(model_scalar(&run, "correct") == (float)golden_correct[step]);
    }
    int64_t at = 0;
    for (int32_t i = 0; i < run.graph->variable_count; i++) {
        if (!run.graph->variables[i].is_trainable) continue;
        const tp_host_tensor *tensor = tp_reference_variable(run.reference, 0, i);
        for (int64_t j = 0; j < tp_shape_elems(&tensor->shape); j++)
            expect_near(run.graph->variables[i].name, j, ((float *)tensor->data)[j],
                        golden_weights[at++]);
    }
    cr_assert(at == 190);
    const float *mean = model_variable(&run, "batch_normalization/moving_mean")->data;
    const float *variance = model_variable(&run, "batch_normalization/moving_variance")->data;
    for (int i = 0; i < 3; i++) {
        expect_near("moving mean", i, mean[i], golden_moving[i]);
        expect_near("moving variance", i, variance[i], golden_moving[3 + i]);
    }
    model_stop(&run);
    tp_model_destroy(model);
}

/* ---- splits of one batch ---- */

enum { BATCH = 32, FEATURES = 12 };
static const char mlp[] = "{\"type\": \"Dense\", \"units\": 16, \"activation\": \"relu\"},"
                          "{\"type\": \"Dense\", \"units\": 3}";

static float batch_image[BATCH * FEATURES];
static int32_t batch_label[BATCH];
static float batch_weight[BATCH];

/* `examples` of the BATCH rows count; the others hold NaN. */
static void fill_batch(int examples)
{
    fill(batch_image, BATCH * FEATURES, 50);
    for (int i = 0; i < BATCH; i++) {
        batch_label[i] = i % 3;
        batch_weight[i] = i < examples ? 1.0f : 0.0f;
        batch_image[i * FEATURES] += (float)(i % 3);
        for (int j = 0; j < FEATURES && i >= examples; j++)
            batch_image[i * FEATURES + j] = NAN;
    }
}

typedef struct split_result {
    float loss, correct, weights[FEATURES * 16 + 16 + 48 + 3];
} split_result;

static split_result run_split(int32_t cores, tp_cross_shard_reduction reduction, double rate,
                              int steps)
{
    split_result result = {0};
    const tp_cross_shard cross_shard = {.shards = cores, .reduction = reduction};
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = rate;
    tp_model *model = model_of(mlp, f32_input(1, (int64_t[]){FEATURES}), &float32_options);
    model_run run = train_start(model, BATCH / cores, sparse, true, &optimizer, &cross_shard);
    for (int step = 0; step < steps; step++)
        model_step(&run, batch_image, batch_label, batch_weight, (uint32_t)step);
    result.loss = model_scalar(&run, "loss_sum") / model_scalar(&run, "weight_sum");
    result.correct = model_scalar(&run, "correct");
    int64_t at = 0;
    for (int32_t i = 0; i < run.graph->variable_count; i++) {
        const tp_host_tensor *tensor = tp_reference_variable(run.reference, 0, i);
        const int64_t elems = tp_shape_elems(&tensor->shape);
        memcpy(&result.weights[at], tensor->data, (size_t)elems * 4);
        at += elems;
    }
    cr_assert(at == sizeof result.weights / 4);
    model_stop(&run);
    tp_model_destroy(model);
    return result;
}

/* Equal to f32 rounding: sums of 32 terms below 1 in another order, a few steps of rate 0.5. */
static void expect_same(const split_result *a, const split_result *b)
{
    cr_assert(fabsf(a->loss - b->loss) <= 1e-6f, "%.9g, %.9g", (double)a->loss, (double)b->loss);
    cr_assert(a->correct == b->correct);
    for (size_t i = 0; i < sizeof a->weights / 4; i++)
        cr_assert(fabsf(a->weights[i] - b->weights[i]) <= 2e-6f, "weight %zu: %.9g, %.9g", i,
                  (double)a->weights[i], (double)b->weights[i]);
}

Test(training, one_core_and_eight_agree)
{
    fill_batch(BATCH);
    const split_result one = run_split(1, TP_CROSS_SHARD_MEAN, 0.5, 4);
    const split_result eight = run_split(8, TP_CROSS_SHARD_MEAN, 0.5, 4);
    expect_same(&one, &eight);
    cr_assert(memcmp(&one.weights, &eight.weights, sizeof one.weights) != 0,
              "equal to the bit: is the batch split at all?");
}

/* 21 examples on 8 cores of 4: five full ones, one of one example, two of none. What the padding holds,
 * NaN here, does not matter. */
Test(training, padded_batches_are_weighted_exactly)
{
    fill_batch(21);
    const split_result one = run_split(1, TP_CROSS_SHARD_MEAN, 0.5, 4);
    const split_result eight = run_split(8, TP_CROSS_SHARD_MEAN, 0.5, 4);
    expect_same(&one, &eight);
    cr_assert(one.loss > 0 && one.loss < 2);
}

/* SUM is MEAN with a learning rate as many times larger as there are shards. Powers of two: equal bits. */
Test(training, sum_and_mean)
{
    fill_batch(BATCH);
    const split_result mean = run_split(8, TP_CROSS_SHARD_MEAN, 0.5, 3);
    const split_result sum = run_split(8, TP_CROSS_SHARD_SUM, 0.0625, 3);
    cr_assert(memcmp(&mean, &sum, sizeof mean) == 0);
}

/* ---- training as such ---- */

static void expect_falling(const char *layers, const tp_model_options *options, tp_optim_kind kind,
                           double rate)
{
    fill_batch(BATCH);
    const tp_cross_shard cross_shard = {.shards = 2};
    tp_optim_config optimizer = tp_optim_defaults(kind);
    optimizer.learning_rate = rate;
    tp_model *model = model_of(layers, f32_input(1, (int64_t[]){FEATURES}), options);
    model_run run = train_start(model, BATCH / 2, sparse, false, &optimizer, &cross_shard);
    float first = 0, last = 0;
    for (uint32_t step = 0; step < 40; step++) {
        model_step(&run, batch_image, batch_label, batch_weight, step);
        last = model_scalar(&run, "loss_sum") / BATCH;
        if (step == 0) first = last;
    }
    cr_assert(last < first / 4, "from %g to %g", (double)first, (double)last);
    cr_assert(model_scalar(&run, "correct") >= BATCH - 1);
    model_stop(&run);
    tp_model_destroy(model);
}

Test(training, losses_fall)
{
    static const char softmax[] =
        "{\"type\": \"Dense\", \"units\": 32, \"activation\": \"relu\"},"
        "{\"type\": \"Dense\", \"units\": 3, \"activation\": \"softmax\"}";
    static const char deep[] = "{\"type\": \"Dense\", \"units\": 32, \"activation\": \"swish\"}, "
                               "{\"type\": \"BatchNormalization\"},"
                               "{\"type\": \"Dropout\", \"rate\": 0.1}, {\"type\": \"Dense\", "
                               "\"units\": 3}, {\"type\": \"Softmax\"}";
    expect_falling(softmax, &float32_options, TP_OPTIM_SGD, 0.5);
    expect_falling(softmax, &mixed_options, TP_OPTIM_ADAM, 0.02);
    expect_falling(deep, &float32_options, TP_OPTIM_ADAM, 0.02);
    expect_falling(deep, &mixed_options, TP_OPTIM_ADAM, 0.02);
}

Test(training, regression)
{
    float image[BATCH], target[BATCH], weight[BATCH];
    for (int i = 0; i < BATCH; i++) {
        image[i] = golden_value(60, (uint32_t)i);
        target[i] = 3 * image[i] - 1;
        weight[i] = 1;
    }
    const tp_cross_shard one = {.shards = 1};
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = 0.5;
    tp_model *model = model_of("{\"type\": \"Dense\", \"units\": 1}", f32_input(1, (int64_t[]){1}),
                               &float32_options);
    model_run run =
        train_start(model, BATCH, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false, &optimizer, &one);
    for (uint32_t step = 0; step < 60; step++)
        model_step(&run, image, target, weight, step);
    cr_assert(run.graph->output_count == 2, "a regression has no accuracy");
    cr_assert(fabsf(*(float *)model_variable(&run, "dense/kernel")->data - 3) < 1e-4f);
    cr_assert(fabsf(*(float *)model_variable(&run, "dense/bias")->data + 1) < 1e-4f);
    model_stop(&run);
    tp_model_destroy(model);
}

Test(training, frozen_layers_stay)
{
    fill_batch(BATCH);
    const tp_cross_shard one = {.shards = 1};
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAM);
    tp_model *model = model_of("{\"type\": \"Dense\", \"units\": 4, \"trainable\": false},"
                               "{\"type\": \"Dense\", \"units\": 3}",
                               f32_input(1, (int64_t[]){FEATURES}), &float32_options);
    model_run run = train_start(model, BATCH, sparse, true, &optimizer, &one);
    float before[FEATURES * 4], after[12];
    memcpy(before, model_variable(&run, "dense/kernel")->data, sizeof before);
    memcpy(after, model_variable(&run, "dense_1/kernel")->data, sizeof after);
    model_step(&run, batch_image, batch_label, batch_weight, 0);
    cr_assert(memcmp(before, model_variable(&run, "dense/kernel")->data, sizeof before) == 0);
    cr_assert(memcmp(after, model_variable(&run, "dense_1/kernel")->data, sizeof after) != 0);
    cr_assert(tp_graph_find_variable(run.graph, "adam/dense/kernel/momentum") < 0);
    model_stop(&run);
    tp_model_destroy(model);
}

/* Evaluation of what was trained: the same variables by name, the same loss as a training step sees. */
Test(training, evaluation_takes_the_variables)
{
    fill_batch(27);
    const tp_cross_shard cross_shard = {.shards = 4};
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAM);
    tp_model *model = model_of(mlp, f32_input(1, (int64_t[]){FEATURES}), &mixed_options);
    model_run train = train_start(model, BATCH / 4, sparse, true, &optimizer, &cross_shard);
    tp_graph *graph;
    EXPECT_OK(tp_model_build_evaluate(model, BATCH / 4, sparse, true, &graph));
    model_run evaluate = model_start(graph, 4, 4);
    model_step(&train, batch_image, batch_label, batch_weight, 0);
    EXPECT_OK(tp_reference_copy_variables(train.reference, evaluate.reference));
    model_step(&evaluate, batch_image, batch_label, batch_weight, 0);
    model_step(&train, batch_image, batch_label, batch_weight, 1);
    cr_assert(model_scalar(&train, "loss_sum") == model_scalar(&evaluate, "loss_sum"));
    cr_assert(model_scalar(&train, "correct") == model_scalar(&evaluate, "correct"));
    cr_assert(model_scalar(&evaluate, "weight_sum") == 27);
    model_stop(&train);
    model_stop(&evaluate);
    tp_model_destroy(model);
}
