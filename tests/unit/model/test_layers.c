/* SPDX-License-Identifier: Apache-2.0
 * Single layers: precision policies, pooling, dropout, batch normalisation's statistics.
 */
#include "model_run.h"

/* "prediction" of one f32 batch, with the variables as they start, or as `set` makes them. */
typedef struct prediction {
    model_run run;
    tp_model *model;
    const float *values;
} prediction;

static prediction predict(const char *layers, int rank, const int64_t *dims, int64_t batch,
                          const tp_model_options *options, const float *image,
                          void (*set)(const model_run *run))
{
    prediction p;
    tp_graph *graph;
    p.model = model_of(layers, f32_input(rank, dims), options);
    EXPECT_OK(tp_model_build_predict(p.model, batch, &graph));
    p.run = model_start(graph, 1, 0);
    if (set) set(&p.run);
    const void *in = image;
    EXPECT_OK(tp_reference_step(p.run.reference, &in, 0));
    p.values = model_output(&p.run, "prediction")->data;
    return p;
}

static void done(prediction *p)
{
    model_stop(&p->run);
    tp_model_destroy(p->model);
}

static int count_nodes(const tp_graph *graph, const char *op, tp_dtype dtype)
{
    int count = 0;
    for (int32_t i = 0; i < graph->node_count; i++)
        count += tp_node_is(&graph->nodes[i], op) && graph->nodes[i].dtype == dtype;
    return count;
}

/* ---- policies ---- */

static void set_kernel(const model_run *run)
{
    float *kernel = model_variable(run, "dense/kernel")->data;
    kernel[0] = 1.00390625f; /* 1 + 2^-8: rounds to 1 in bf16 */
    *(float *)model_variable(run, "dense/bias")->data = 0.0078125f; /* 2^-7 */
}

/* x * w + b = 1 * 1 + 2^-7 with operands rounded, 1.0117 in f32; the sum is rounded once. */
Test(layers, mixed_bfloat16_rounds_operands_and_result)
{
    static const char dense[] = "{\"type\": \"Dense\", \"units\": 1}";
    static const char own[] = "{\"type\": \"Dense\", \"units\": 1, \"dtype\": \"float32\"}";
    const float x = 1.00390625f;
    const int64_t one = 1;
    prediction p = predict(dense, 1, &one, 1, &float32_options, &x, set_kernel);
    cr_assert(p.values[0] == fmaf(x, x, 0) + 0.0078125f);
    done(&p);
    p = predict(dense, 1, &one, 1, &mixed_options, &x, set_kernel);
    cr_assert(p.values[0] == 1.0078125f);
    done(&p);
    p = predict(own, 1, &one, 1, &mixed_options, &x, set_kernel);
    cr_assert(p.values[0] == x * x + 0.0078125f, "a layer of its own dtype keeps it");
    done(&p);
    const tp_model_options passes = {TP_POLICY_FLOAT32, TP_PRECISION_DEFAULT};
    p = predict(dense, 1, &one, 1, &passes, &x, set_kernel);
    cr_assert(p.values[0] == 1.0078125f, "float32 with bf16 products");
    done(&p);
}

/* One convert to bf16 for each variable that is multiplied with, shared by forward and backward pass. */
Test(layers, one_convert_per_variable)
{
    tp_graph *graph;
    tp_model *model = model_of("{\"type\": \"Dense\", \"units\": 8, \"activation\": \"relu\"},"
                               "{\"type\": \"Dense\", \"units\": 3}",
                               f32_input(1, (int64_t[]){4}), &mixed_options);
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    const tp_cross_shard one = {.shards = 1};
    const tp_model_train train = {2, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true,
                                  &optimizer, &one};
    EXPECT_OK(tp_model_build_train(model, &train, &graph));
    int converts = 0;
    for (int32_t i = 0; i < graph->node_count; i++) {
        const tp_node *node = &graph->nodes[i];
        converts += tp_node_is(node, "convert") && node->dtype == TP_BF16 &&
                    tp_node_is(&graph->nodes[node->inputs[0]], "variable");
    }
    cr_assert(converts == 2, "%d", converts);
    for (int32_t i = 0; i < graph->variable_count; i++)
        cr_assert(graph->variables[i].dtype == TP_F32);
    /* Gradients reach the sum over the cores unrounded: from a product or a reduction, not a convert. */
    for (int32_t i = 0; i < graph->node_count; i++)
        if (tp_node_is(&graph->nodes[i], "all_reduce"))
            cr_assert(!tp_node_is(&graph->nodes[graph->nodes[i].inputs[0]], "convert"));
    cr_assert(count_nodes(graph, "maximum", TP_BF16) == 1, "relu works on the rounded value");
    tp_graph_destroy(graph);
    tp_model_destroy(model);
}

/* ---- pooling ---- */

Test(layers, averages_divide_by_cells_that_exist)
{
    static const float image[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    prediction p = predict("{\"type\": \"AveragePooling2D\", \"padding\": \"same\"}", 3,
                           (int64_t[]){3, 3, 1}, 1, &float32_options, image, NULL);
    const float same[] = {3, 4.5f, 7.5f, 9};
    cr_assert(memcmp(p.values, same, sizeof same) == 0);
    done(&p);
    p = predict("{\"type\": \"AveragePooling2D\", \"strides\": 1}", 3, (int64_t[]){3, 3, 1}, 1,
                &float32_options, image, NULL);
    const float valid[] = {3, 4, 6, 7};
    cr_assert(memcmp(p.values, valid, sizeof valid) == 0);
    done(&p);
    p = predict("{\"type\": \"GlobalAveragePooling2D\"}", 3, (int64_t[]){3, 3, 1}, 1,
                &float32_options, image, NULL);
    cr_assert(p.values[0] == 5);
    done(&p);
    p = predict("{\"type\": \"MaxPooling2D\", \"padding\": \"same\"}", 3, (int64_t[]){3, 3, 1}, 1,
                &mixed_options, image, NULL);
    const float largest[] = {5, 6, 8, 9};
    cr_assert(memcmp(p.values, largest, sizeof largest) == 0);
    done(&p);
}

/* ---- ReLU ---- */

Test(layers, relu_arguments)
{
    static const float x[5] = {-4, 0.5f, 1, 3, 9};
    const int64_t five = 5;
    prediction p = predict("{\"type\": \"ReLU\", \"max_value\": 6, \"negative_slope\": 0.25,"
                           " \"threshold\": 1}",
                           1, &five, 1, &float32_options, x, NULL);
    const float expected[] = {-1.25f, -0.125f, 1, 3, 6};
    cr_assert(memcmp(p.values, expected, sizeof expected) == 0);
    done(&p);
    p = predict("{\"type\": \"ReLU\", \"max_value\": null}", 1, &five, 1, &float32_options, x,
                NULL);
    const float plain[] = {0, 0.5f, 1, 3, 9};
    cr_assert(memcmp(p.values, plain, sizeof plain) == 0);
    done(&p);
}

/* ---- Dropout ---- */

Test(layers, dropout)
{
    enum { WIDTH = 4000 };
    static float x[WIDTH], target[WIDTH];
    const int64_t width = WIDTH;
    for (int i = 0; i < WIDTH; i++)
        x[i] = 1;
    prediction p =
        predict("{\"type\": \"Dropout\", \"rate\": 0.25}", 1, &width, 1, &float32_options, x, NULL);
    cr_assert(memcmp(p.values, x, sizeof x) == 0, "prediction drops nothing");
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    const tp_cross_shard one = {.shards = 1};
    const float weight = 1;
    /* mean((y - 0)^2) of y = 4/3 with probability 3/4, else 0, is 4/3; its standard deviation over 4000
     * elements is (16/9) * sqrt(3/16) / sqrt(4000) = 0.012. */
    model_run run =
        train_start(p.model, 1, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false, &optimizer, &one);
    model_step(&run, x, target, &weight, 0);
    const float first = model_scalar(&run, "loss_sum");
    model_step(&run, x, target, &weight, 1);
    const float second = model_scalar(&run, "loss_sum");
    model_step(&run, x, target, &weight, 0);
    cr_assert(fabsf(first - 4.0f / 3) < 0.06f && fabsf(second - 4.0f / 3) < 0.06f, "%g %g",
              (double)first, (double)second);
    cr_assert(first != second, "every step draws anew");
    cr_assert(first == model_scalar(&run, "loss_sum"), "a step can be repeated");
    model_stop(&run);
    done(&p);
}

/* ---- BatchNormalization ---- */

static void set_norm(const model_run *run)
{
    *(float *)model_variable(run, "batch_normalization/gamma")->data = 2;
    *(float *)model_variable(run, "batch_normalization/beta")->data = 1;
    *(float *)model_variable(run, "batch_normalization/moving_mean")->data = 3;
    *(float *)model_variable(run, "batch_normalization/moving_variance")->data = 4;
}

Test(layers, batch_normalisation_predicts_with_moving_statistics)
{
    const float x = 5;
    const int64_t one = 1;
    prediction p = predict("{\"type\": \"BatchNormalization\", \"epsilon\": 0}", 1, &one, 1,
                           &float32_options, &x, set_norm);
    cr_assert(p.values[0] == (5 - 3) / 2.0f * 2 + 1);
    done(&p);
}

/* Three cores of two rows, one feature: core 0 has 2 and 4, core 1 has 10 alone, core 2 nothing. Means 3 and
 * 10, variances 1 and 0; over all three examples: mean (2*3 + 10) / 3, variance 2 * 1 / 3. */
Test(layers, batch_normalisation_counts_examples)
{
    static const float image[6] = {2, 4, 10, NAN, NAN, NAN}, weight[6] = {1, 1, 1, 0, 0, 0};
    static const float target[6] = {0};
    const tp_cross_shard three = {.shards = 3};
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = 1e-3;
    tp_model *model =
        model_of("{\"type\": \"BatchNormalization\", \"momentum\": 0.75, \"epsilon\": 0.0625}",
                 f32_input(1, (int64_t[]){1}), &float32_options);
    model_run run =
        train_start(model, 2, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false, &optimizer, &three);
    model_step(&run, image, target, weight, 0);
    /* Normalised: +-1 / sqrt(1.0625) on core 0, 0 on core 1; squared losses add up to 2 / 1.0625. */
    cr_assert(fabsf(model_scalar(&run, "loss_sum") - 2 / 1.0625f) < 1e-6f);
    const float mean = *(float *)model_variable(&run, "batch_normalization/moving_mean")->data;
    const float variance =
        *(float *)model_variable(&run, "batch_normalization/moving_variance")->data;
    cr_assert(fabsf(mean - 0.25f * 16 / 3) < 1e-6f, "%g", (double)mean);
    cr_assert(fabsf(variance - (0.75f + 0.25f * 2 / 3)) < 1e-6f, "%g", (double)variance);
    const float gamma = *(float *)model_variable(&run, "batch_normalization/gamma")->data;
    cr_assert(gamma < 1 && gamma > 0.9f, "the gradient is finite: %g", (double)gamma);
    model_stop(&run);
    tp_model_destroy(model);
}

/* Eight cores of two rows, of which the last three rows do not count. */
enum { NORM_CORES = 8, NORM_ROWS = 16, NORM_REAL = 13, NORM_FEATURES = 3 };

static float norm_values[NORM_ROWS * NORM_FEATURES], norm_targets[NORM_ROWS * NORM_FEATURES];
static float norm_weights[NORM_ROWS];

/* After two steps of SGD: gamma, beta, moving mean and variance, and the loss of both steps. */
typedef struct norm_result {
    float values[4][NORM_FEATURES], losses[2];
} norm_result;

static norm_result train_norm(const char *layer, int64_t cores)
{
    static const char *const names[] = {"gamma", "beta", "moving_mean", "moving_variance"};
    const tp_cross_shard shards = {.shards = cores};
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    norm_result result;
    optimizer.learning_rate = 0.5;
    /* A second normalisation behind the first: gradients go through both groups' sums. */
    char text[512];
    snprintf(text, sizeof text, "%s,{\"type\": \"Activation\", \"activation\": \"tanh\"},%s", layer,
             layer);
    tp_model *model = model_of(text, f32_input(1, (int64_t[]){NORM_FEATURES}), &float32_options);
    model_run run = train_start(model, NORM_ROWS / cores, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false,
                                &optimizer, &shards);
    for (int i = 0; i < NORM_ROWS * NORM_FEATURES; i++) {
        norm_values[i] = golden_value(3, (uint32_t)i) * (float)(1 + i % 5) + (float)(i / 12);
        norm_targets[i] = golden_value(4, (uint32_t)i);
        norm_weights[i / NORM_FEATURES] = i / NORM_FEATURES < NORM_REAL ? 1 : 0;
    }
    for (uint32_t step = 0; step < 2; step++) {
        model_step(&run, norm_values, norm_targets, norm_weights, step);
        result.losses[step] = model_scalar(&run, "loss_sum");
    }
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "batch_normalization/%s", names[i]);
        memcpy(result.values[i], model_variable(&run, name)->data, sizeof result.values[i]);
    }
    model_stop(&run);
    tp_model_destroy(model);
    return result;
}

static void expect_norm(const norm_result *found, const norm_result *expected, const char *what)
{
    for (int i = 0; i < 2; i++)
        cr_expect(fabsf(found->losses[i] - expected->losses[i]) < 1e-5f * expected->losses[0],
                  "%s: loss %g, expected %g", what, (double)found->losses[i],
                  (double)expected->losses[i]);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < NORM_FEATURES; k++)
            cr_expect(fabsf(found->values[i][k] - expected->values[i][k]) < 5e-6f,
                      "%s: value %d of feature %d is %g, expected %g", what, i, k,
                      (double)found->values[i][k], (double)expected->values[i][k]);
}

#define NORM(more) "{\"type\": \"BatchNormalization\", \"momentum\": 0.75" more "}"

/* A core with all rows, and groups of the same rows on more cores: the same up to the order of sums. */
Test(layers, batch_normalisation_over_groups_of_cores)
{
    const norm_result whole = train_norm(NORM(""), 1);
    const norm_result eight = train_norm(NORM(", \"cores_per_group\": 8"), 8);
    const norm_result all = train_norm(NORM(", \"synchronized\": true"), 8);
    const norm_result two = train_norm(NORM(", \"cores_per_group\": 2"), 2);
    expect_norm(&eight, &whole, "8 of 8 cores");
    expect_norm(&two, &whole, "2 of 2 cores");
    cr_expect(memcmp(&eight, &all, sizeof all) == 0, "synchronized is all cores");
    /* Groups of 4 of 8 cores are 2 cores with groups of one; those of 2 are 4 cores'. */
    const norm_result halves = train_norm(NORM(""), 2), quarters = train_norm(NORM(""), 4);
    const norm_result fours = train_norm(NORM(", \"cores_per_group\": 4"), 8);
    const norm_result pairs = train_norm(NORM(", \"cores_per_group\": 2"), 8);
    expect_norm(&fours, &halves, "4 of 8 cores");
    expect_norm(&pairs, &quarters, "2 of 8 cores");
    cr_expect(fabsf(halves.losses[0] - whole.losses[0]) > 1e-2f, "the groups make a difference");
    /* In double precision: the first step's moving mean and variance, and loss. */
    norm_result plain = {.losses = {0}};
    for (int k = 0; k < NORM_FEATURES; k++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < NORM_REAL; i++)
            sum += (double)norm_values[i * NORM_FEATURES + k];
        for (int i = 0; i < NORM_REAL; i++)
            squares += pow((double)norm_values[i * NORM_FEATURES + k] - sum / NORM_REAL, 2);
        /* two equal steps: 0.75 * 0.25 + 0.25 of what they see */
        plain.values[2][k] = (float)(0.4375 * sum / NORM_REAL);
        plain.values[3][k] = (float)(0.5625 + 0.4375 * squares / NORM_REAL);
        cr_expect(fabsf(eight.values[2][k] - plain.values[2][k]) < 1e-6f);
        cr_expect(fabsf(eight.values[3][k] - plain.values[3][k]) < 4e-6f);
    }
}

Test(layers, batch_normalisation_over_cores_that_are_not_there_is_refused)
{
    const tp_cross_shard six = {.shards = 6};
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    const tp_model_train train = {2, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false, &optimizer, &six};
    tp_graph *graph = NULL;
    tp_model *model =
        model_of(NORM(", \"cores_per_group\": 4"), f32_input(1, (int64_t[]){3}), &float32_options);
    EXPECT_FAILURE(tp_model_build_train(model, &train, &graph), TPUCL_INVALID_ARGUMENT,
                   "'cores_per_group' is 4, which does not divide the 6 cores");
    tp_model_destroy(model);
}

Test(layers, frozen_batch_normalisation_does_not_move)
{
    static const float image[2] = {2, 4}, weight[2] = {1, 1}, target[2] = {0};
    const tp_cross_shard one = {.shards = 1};
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    tp_model *model = model_of("{\"type\": \"BatchNormalization\", \"trainable\": false}",
                               f32_input(1, (int64_t[]){1}), &float32_options);
    model_run run =
        train_start(model, 2, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false, &optimizer, &one);
    model_step(&run, image, target, weight, 0);
    cr_assert(*(float *)model_variable(&run, "batch_normalization/moving_mean")->data == 0);
    cr_assert(*(float *)model_variable(&run, "batch_normalization/moving_variance")->data == 1);
    cr_assert(model_scalar(&run, "loss_sum") > 10, "normalised with the moving statistics");
    model_stop(&run);
    tp_model_destroy(model);
}

/* ---- what does not fit ---- */

typedef struct impossible {
    const char *layer; /* over [6,4,2], after a Reshape where it begins with another shape */
    const char *message;
} impossible;

Test(layers, what_does_not_fit_is_said)
{
    static const impossible cases[] = {
        {"{\"type\": \"LayerNormalization\", \"axis\": [1, 1]}", "'axis' has 1"},
        {"{\"type\": \"LayerNormalization\", \"axis\": 0}", "'axis' has 0"},
        {"{\"type\": \"LayerNormalization\", \"axis\": []}", "'axis' is empty"},
        {"{\"type\": \"Softmax\", \"axis\": 4}", "'axis' has 4"},
        {"{\"type\": \"BatchNormalization\", \"axis\": 0}", "'axis' has 0"},
        {"{\"type\": \"BatchNormalization\", \"synchronized\": true, \"cores_per_group\": 2}",
         "'synchronized' means all cores"},
        {"{\"type\": \"Conv2DTranspose\", \"filters\": 2, \"kernel_size\": 3, \"strides\": 2,"
         " \"output_padding\": 2}",
         "'output_padding' is 2, expected less than the stride of 2"},
        {"{\"type\": \"GroupNormalization\", \"groups\": 3}", "do not split into 3 'groups'"},
        {"{\"type\": \"GroupNormalization\", \"groups\": 0}", "do not split into 0 'groups'"},
        {"{\"type\": \"Permute\", \"dims\": [1, 2, 2]}", "each of 1 to 3 once"},
        {"{\"type\": \"Permute\", \"dims\": [8, 2, 1]}", "each of 1 to 3 once"},
        {"{\"type\": \"RepeatVector\", \"n\": 2}", "expected [features]"},
        {"{\"type\": \"Masking\"}", "expected [time,features]"},
        {"{\"type\": \"AlphaDropout\", \"rate\": 1}", "'rate' is 1"},
        {"{\"type\": \"Dropout\", \"rate\": 0.5, \"noise_shape\": [1, 2]}", "2 dimensions"},
        {"{\"type\": \"Dropout\", \"rate\": 0.5, \"noise_shape\": [null, 6, 3, 1]}", "has 3"},
        {"{\"type\": \"Conv1D\", \"filters\": 2, \"kernel_size\": 2}", "[length,channels]"},
        {"{\"type\": \"Reshape\", \"target_shape\": [6, 8]},"
         "{\"type\": \"Conv1D\", \"filters\": 4, \"kernel_size\": 2, \"groups\": 3}",
         "do not split into 3 'groups'"},
        {"{\"type\": \"Reshape\", \"target_shape\": [6, 8]},"
         "{\"type\": \"Cropping1D\", \"cropping\": [3, 3]}",
         "nothing is left"},
        {"{\"type\": \"Reshape\", \"target_shape\": [6, 8]},"
         "{\"type\": \"MaxPooling1D\", \"pool_size\": 7}",
         "a window of 7 does not fit"},
        {"{\"type\": \"Reshape\", \"target_shape\": [1, 6, 4, 2]},"
         "{\"type\": \"Conv3D\", \"filters\": 1048576, \"kernel_size\": 65536,"
         " \"padding\": \"same\"}",
         "more than"},
        {"{\"type\": \"UpSampling1D\"}", "[length,channels]"},
        {"{\"type\": \"Embedding\", \"input_dim\": 9, \"output_dim\": 2, \"mask_zero\": true}",
         "expected [time] with 'mask_zero'"},
        {"{\"type\": \"Embedding\", \"input_dim\": 2147483647, \"output_dim\": 1000000000}",
         "more than"},
        {"{\"type\": \"EinsumDense\", \"equation\": \"ab,bc->ac\", \"output_shape\": 3}",
         "does not fit an input of 3 dimensions"},
        {"{\"type\": \"EinsumDense\", \"equation\": \"abcd,de->abc\", \"output_shape\": [6, 4]}",
         "does not fit"},
        {"{\"type\": \"EinsumDense\", \"equation\": \"....,b->\", \"output_shape\": 3}",
         "does not fit"},
        {"{\"type\": \"EinsumDense\", \"equation\": \"...d,de->...e\", \"output_shape\": [6, 4]}",
         "'output_shape' has 2 sizes, the equation needs 1"},
        {"{\"type\": \"EinsumDense\", \"equation\": \"...d,de->...e\", \"output_shape\": 2,"
         " \"bias_axes\": \"x\"}",
         "'bias_axes' has 'x'"},
        {"{\"type\": \"EinsumDense\", \"equation\": \"abcd,defg->abcefg\","
         " \"output_shape\": [6, 4, 1000000000, 1000000000, 1000000000]}",
         "more than"},
        {"{\"type\": \"TimeDistributed\", \"layer\": {\"type\": \"Conv2D\", \"filters\": 2,"
         " \"kernel_size\": 2}}",
         "its Conv2D"},
        {"{\"type\": \"Normalization\", \"mean\": [1, 2, 3], \"variance\": [1, 2, 3]}",
         "'mean' has 3 numbers"},
        {"{\"type\": \"Normalization\", \"mean\": 1}", "'variance' 0"},
        {"{\"type\": \"RandomRotation\", \"factor\": []}", "'factor' is empty"},
        {"{\"type\": \"RandomContrast\", \"factor\": 0.5, \"value_range\": 1}",
         "'value_range' is not a list of two"},
        {"{\"type\": \"Activation\", \"activation\": \"glu\"},"
         "{\"type\": \"Activation\", \"activation\": \"glu\"}",
         "glu halves the last dimension, which is 1"},
    };
    const tp_model_input input = f32_input(3, (int64_t[]){6, 4, 2});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_model *model = NULL;
        const tpucl_status status = model_parse(cases[i].layer, &input, &float32_options, &model);
        cr_assert(status == TPUCL_INVALID_CONFIG, "%s", cases[i].layer);
        const char *message = tpucl_last_error()->message;
        cr_assert(strstr(message, cases[i].message), "%s: %s", cases[i].layer, message);
    }
}

Test(layers, attention_that_does_not_fit_is_said)
{
    static const impossible cases[] = {
        {"\"num_heads\": 2, \"key_dim\": 3", "input 0 has 3 dimensions"},
        {"\"num_heads\": 65536, \"key_dim\": 1048576, \"output_shape\": 64", "more than"},
        {"\"num_heads\": 2, \"key_dim\": 3, \"output_shape\": [1000000000, 1000000000]",
         "more than"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        tp_model *model = NULL;
        const tp_model_input input = f32_input(3, (int64_t[]){6, 4, 2});
        snprintf(text, sizeof text,
                 "{\"type\": \"Reshape\", \"name\": \"x\", \"target_shape\": %s},"
                 "{\"type\": \"MultiHeadAttention\", \"inputs\": [\"x\", \"x\"], %s}",
                 i == 0 ? "[6, 4, 2]" : "[6, 8]", cases[i].layer);
        cr_assert(model_parse(text, &input, &float32_options, &model) == TPUCL_INVALID_CONFIG);
        const char *message = tpucl_last_error()->message;
        cr_assert(strstr(message, cases[i].message), "%s: %s", cases[i].layer, message);
    }
}
