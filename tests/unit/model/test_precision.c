/* SPDX-License-Identifier: Apache-2.0
 * Precision policies: of the model, of one layer, and what the optimizer keeps.
 */
#include "golden/golden.h"
#include "model_run.h"
#include "num/bf16.h"

static const tp_model_options pure_options = {TP_POLICY_BFLOAT16, TP_PRECISION_DEFAULT};
static const tp_model_loss sparse = TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;
static const tp_cross_shard one_core = {.shards = 1};

enum { BATCH = 32, FEATURES = 12 };
static float image[BATCH * FEATURES], weight[BATCH];
static int32_t label[BATCH];

static void fill_batch(void)
{
    for (uint32_t i = 0; i < BATCH * FEATURES; i++)
        image[i] = golden_value(50, i);
    for (int i = 0; i < BATCH; i++) {
        label[i] = i % 3;
        weight[i] = 1;
        image[i * FEATURES] += (float)(i % 3);
    }
}

static tp_model *make(const char *layers, const tp_model_options *options)
{
    return model_of(layers, f32_input(1, (int64_t[]){FEATURES}), options);
}

static tp_dtype dtype_of(const tp_graph *graph, const char *name)
{
    const int32_t index = tp_graph_find_variable(graph, name);
    cr_assert(index >= 0, "there is no variable '%s'", name);
    return graph->variables[index].dtype;
}

/* ---- the model's policy and a layer's ---- */

static const char three[] =
    "{\"type\": \"Dense\", \"name\": \"a\", \"units\": 8, \"activation\": \"relu\"},"
    "{\"type\": \"BatchNormalization\", \"name\": \"n\"},"
    "{\"type\": \"Dense\", \"name\": \"b\", \"units\": 8, \"dtype\": \"mixed_bfloat16\"},"
    "{\"type\": \"Dense\", \"name\": \"c\", \"units\": 3, \"activation\": \"softmax\","
    " \"dtype\": {\"module\": \"keras\", \"class_name\": \"DTypePolicy\","
    " \"config\": {\"name\": \"float32\"}, \"registered_name\": null}}";

Test(precision, variables_have_the_dtype_of_their_layer)
{
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAM);
    tp_model *model = make(three, &pure_options);
    model_run run = train_start(model, BATCH, sparse, false, &optimizer, &one_core);
    static const struct {
        const char *name;
        tp_dtype dtype;
    } expected[] = {{"a/kernel", TP_BF16},         {"a/bias", TP_BF16},
                    {"n/gamma", TP_BF16},          {"n/moving_mean", TP_F32},
                    {"n/moving_variance", TP_F32}, {"b/kernel", TP_F32},
                    {"c/kernel", TP_F32},          {"adam/a/kernel/momentum", TP_F32}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        cr_expect(dtype_of(run.graph, expected[i].name) == expected[i].dtype, "%s is %s",
                  expected[i].name, tp_dtype_name(dtype_of(run.graph, expected[i].name)));
    model_stop(&run);
    tp_model_destroy(model);
}

Test(precision, a_wrapper_and_its_layer_have_one)
{
    static const char layers[] =
        "{\"type\": \"Reshape\", \"target_shape\": [4, 3]},"
        "{\"type\": \"Bidirectional\", \"name\": \"both\", \"layer\": {\"type\": \"LSTM\","
        " \"units\": 2, \"dtype\": \"bfloat16\"}}, {\"type\": \"Dense\", \"units\": 3}";
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    tp_model *model = make(layers, &float32_options);
    model_run run = train_start(model, BATCH, sparse, true, &optimizer, &one_core);
    int narrow = 0;
    for (int32_t i = 0; i < run.graph->variable_count; i++)
        narrow += run.graph->variables[i].dtype == TP_BF16;
    cr_expect_eq(narrow, 6);
    cr_expect(dtype_of(run.graph, "dense/kernel") == TP_F32);
    model_stop(&run);
    tp_model_destroy(model);

    const tp_model_input input = f32_input(2, (int64_t[]){4, 3});
    EXPECT_FAILURE(model_parse("{\"type\": \"TimeDistributed\", \"dtype\": \"float32\", \"layer\": "
                               "{\"type\": \"Dense\", \"units\": 2, \"dtype\": \"bfloat16\"}}",
                               &input, &float32_options, &model),
                   TPUCL_INVALID_CONFIG, "that of its wrapper float32");
}

/* Of the results of a prediction: how many are no bf16 numbers. */
static int unrounded(const char *layers, const tp_model_options *options)
{
    tp_graph *graph = NULL;
    tp_model *model = make(layers, options);
    EXPECT_OK(tp_model_build_predict(model, BATCH, &graph));
    model_run run = model_start(graph, 1, 1);
    const void *inputs[] = {image};
    fill_batch();
    EXPECT_OK(tp_reference_step(run.reference, inputs, 0));
    const tp_host_tensor *found = model_output(&run, "prediction");
    cr_assert(found->dtype == TP_F32);
    int count = 0;
    for (int64_t i = 0; i < tp_shape_elems(&found->shape); i++) {
        const float value = ((const float *)found->data)[i];
        count += tp_bf16_to_f32(tp_bf16_from_f32(value)) != value;
    }
    model_stop(&run);
    tp_model_destroy(model);
    return count;
}

Test(precision, a_last_layer_in_f32)
{
    static const char plain[] = "{\"type\": \"Dense\", \"units\": 3, \"activation\": \"softmax\"}";
    static const char wide[] = "{\"type\": \"Dense\", \"units\": 3},"
                               "{\"type\": \"Softmax\", \"dtype\": \"float32\"}";
    static const char narrow[] = "{\"type\": \"Dense\", \"units\": 3, \"dtype\": \"bfloat16\"}";
    cr_expect_eq(unrounded(plain, &pure_options), 0);
    cr_expect_gt(unrounded(wide, &pure_options), BATCH);
    cr_expect_gt(unrounded(plain, &float32_options), BATCH);
    cr_expect_eq(unrounded(narrow, &float32_options), 0);
}

/* The same weights give the same results, whether kept in bf16 or rounded to it for a product. */
Test(precision, bf16_weights_are_what_mixed_precision_multiplies_with)
{
    static const char layers[] = "{\"type\": \"Dense\", \"units\": 16, \"use_bias\": false},"
                                 "{\"type\": \"Dense\", \"units\": 3, \"use_bias\": false}";
    static const char *const names[] = {"dense/kernel", "dense_1/kernel"};
    tp_model *models[] = {make(layers, &mixed_options), make(layers, &pure_options)};
    float results[2][BATCH * 3];
    fill_batch();
    for (int m = 0; m < 2; m++) {
        tp_graph *graph = NULL;
        EXPECT_OK(tp_model_build_predict(models[m], BATCH, &graph));
        model_run run = model_start(graph, 1, 1);
        for (int v = 0; v < 2; v++) { /* mixed ones unrounded */
            tp_host_tensor *tensor = model_variable(&run, names[v]);
            for (uint32_t i = 0; i < tp_shape_elems(&tensor->shape); i++) {
                const float value = golden_value(70 + (uint32_t)v, i);
                if (m)
                    ((tp_bf16 *)tensor->data)[i] = tp_bf16_from_f32(value);
                else
                    ((float *)tensor->data)[i] = value;
            }
        }
        const void *inputs[] = {image};
        EXPECT_OK(tp_reference_step(run.reference, inputs, 0));
        memcpy(results[m], model_output(&run, "prediction")->data, sizeof results[m]);
        model_stop(&run);
        tp_model_destroy(models[m]);
    }
    cr_expect_arr_eq(results[0], results[1], sizeof results[0]);
}

Test(precision, policies_that_are_wrong)
{
    static const struct {
        const char *dtype, *part;
    } cases[] = {{"\"float16\"", "found the string 'float16'"},
                 {"{\"class_name\": \"DTypePolicy\"}", "config"},
                 {"{\"config\": {\"name\": \"int8\"}}", "found the string 'int8'"},
                 {"{\"config\": {\"name\": \"float32\"}, \"size\": 3}", "size"}};
    const tp_model_input input = f32_input(1, (int64_t[]){FEATURES});
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char layers[256];
        tp_model *model = NULL;
        snprintf(layers, sizeof layers, "{\"type\": \"Dense\", \"units\": 3, \"dtype\": %s}",
                 cases[i].dtype);
        EXPECT_FAILURE(model_parse(layers, &input, &float32_options, &model), TPUCL_INVALID_CONFIG,
                       cases[i].part);
    }
}

/* ---- training ---- */

static const char mlp[] = "{\"type\": \"Dense\", \"units\": 16, \"activation\": \"relu\"},"
                          "{\"type\": \"Dense\", \"units\": 3}";

typedef struct outcome {
    float loss, weights[FEATURES * 16 + 16 + 48 + 3];
} outcome;

static outcome train(int32_t cores, const tp_optim_config *optimizer, int steps)
{
    outcome out = {0};
    const tp_cross_shard cross_shard = {.shards = cores};
    tp_model *model = make(mlp, &pure_options);
    model_run run = train_start(model, BATCH / cores, sparse, true, optimizer, &cross_shard);
    fill_batch();
    for (int step = 0; step < steps; step++)
        model_step(&run, image, label, weight, (uint32_t)step);
    out.loss = model_scalar(&run, "loss_sum") / BATCH;
    size_t at = 0;
    for (int32_t i = 0; i < run.graph->variable_count; i++) {
        if (!run.graph->variables[i].is_model) continue;
        const tp_host_tensor *tensor = tp_reference_variable(run.reference, 0, i);
        for (int64_t j = 0; j < tp_shape_elems(&tensor->shape); j++)
            out.weights[at++] = tp_bf16_to_f32(((const tp_bf16 *)tensor->data)[j]);
    }
    cr_assert(at == sizeof out.weights / sizeof(float));
    model_stop(&run);
    tp_model_destroy(model);
    return out;
}

/* A bf16 weight's gradient is f32 up to the optimizer: after one step the momentum, which is kept in f32, is the
 * rate times it, and has more than 8 bits. Not so when cores exchange bf16. */
Test(precision, gradients_are_not_rounded)
{
    for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
        tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
        optimizer.learning_rate = 0.5;
        optimizer.momentum = 0.9;
        optimizer.gradients = is_narrow ? TP_BF16 : TP_F32;
        tp_model *model = make(mlp, &pure_options);
        model_run run = train_start(model, BATCH, sparse, true, &optimizer, &one_core);
        fill_batch();
        model_step(&run, image, label, weight, 0);
        const float *momentum = model_variable(&run, "sgd/dense/kernel/momentum")->data;
        int unrounded_count = 0;
        for (int i = 0; i < FEATURES * 16; i++)
            unrounded_count += tp_bf16_to_f32(tp_bf16_from_f32(momentum[i])) != momentum[i];
        cr_expect(is_narrow ? unrounded_count == 0 : unrounded_count > FEATURES * 8, "%d",
                  unrounded_count);
        model_stop(&run);
        tp_model_destroy(model);
    }
}

/* The norm of each column of a bf16 kernel is at most 0.5, but for the rounding: half an ulp of each of 12 numbers,
 * or a whole one by chance. */
Test(precision, constraints_hold)
{
    static const char layers[] =
        "{\"type\": \"Dense\", \"units\": 3, \"kernel_constraint\": {\"type\": \"max_norm\","
        " \"max_value\": 0.5}}";
    for (int is_stochastic = 0; is_stochastic < 2; is_stochastic++) {
        tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
        optimizer.rounds_stochastically = is_stochastic;
        tp_model *model = make(layers, &pure_options);
        model_run run = train_start(model, BATCH, sparse, true, &optimizer, &one_core);
        fill_batch();
        model_step(&run, image, label, weight, 0);
        const tp_bf16 *kernel = model_variable(&run, "dense/kernel")->data;
        for (int column = 0; column < 3; column++) {
            float squares = 0;
            for (int i = 0; i < FEATURES; i++) {
                const float value = tp_bf16_to_f32(kernel[3 * i + column]);
                squares += value * value;
            }
            cr_expect(sqrtf(squares) <= 0.5f * (1 + 0x1p-7f), "%g", (double)sqrtf(squares));
            cr_expect_gt(squares, 0.2f, "no column is cut");
        }
        model_stop(&run);
        tp_model_destroy(model);
    }
}

/* The gradients of a split differ in the last bits of f32, so a weight of size 1 or less may now and then be
 * rounded the other way: by an ulp of bf16, 2^-8, in few of 259 weights. */
Test(precision, one_core_and_eight_agree)
{
    for (int is_stochastic = 0; is_stochastic < 2; is_stochastic++) {
        tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
        optimizer.learning_rate = 0.5;
        optimizer.rounds_stochastically = is_stochastic;
        const outcome one = train(1, &optimizer, 1), eight = train(8, &optimizer, 1);
        int differing = 0;
        cr_expect(fabsf(one.loss - eight.loss) <= 1e-6f);
        for (size_t i = 0; i < sizeof one.weights / sizeof(float); i++) {
            differing += one.weights[i] != eight.weights[i];
            cr_expect(fabsf(one.weights[i] - eight.weights[i]) <= 0x1p-8f, "weight %zu: %g, %g", i,
                      (double)one.weights[i], (double)eight.weights[i]);
        }
        cr_expect_leq(differing, 2);
    }
}

Test(precision, losses_fall)
{
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAM);
    optimizer.learning_rate = 0.02;
    optimizer.first_moment = optimizer.gradients = TP_BF16;
    const float first = train(2, &optimizer, 1).loss;
    cr_expect_lt(train(2, &optimizer, 40).loss, first / 4);
    optimizer.rounds_stochastically = true;
    cr_expect_lt(train(2, &optimizer, 40).loss, first / 4);
}

/* A rate whose steps are below half an ulp of most weights: rounding to nearest stops there, rounding by chance
 * goes on as f32 weights do. */
Test(precision, small_steps_need_stochastic_rounding)
{
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAM);
    optimizer.learning_rate = 1e-4;
    const outcome start = train(2, &optimizer, 1);
    const outcome nearest = train(2, &optimizer, 150);
    optimizer.rounds_stochastically = true;
    const outcome stochastic = train(2, &optimizer, 150);
    int stuck = 0, moved = 0;
    for (size_t i = 0; i < FEATURES * 16; i++) {
        stuck += nearest.weights[i] == start.weights[i];
        moved += stochastic.weights[i] != start.weights[i];
    }
    cr_expect_gt(stuck, FEATURES * 16 * 3 / 4, "%d stuck", stuck);
    cr_expect_gt(moved, FEATURES * 16 * 3 / 4, "%d moved", moved);
    cr_expect_lt(stochastic.loss, start.loss - 2 * (start.loss - nearest.loss), "%g, %g, %g",
                 (double)start.loss, (double)nearest.loss, (double)stochastic.loss);
}
