/* SPDX-License-Identifier: Apache-2.0
 * Reading models: names, shapes, weights, initial values, and every problem at once.
 */
#include "core/alloc.h"
#include "harness/alloc_loop.h"
#include "model/initializer.h"
#include "model_run.h"

static const char convnet[] =
    "{\"type\": \"Conv2D\", \"filters\": 8, \"kernel_size\": 3, \"strides\": [2, 1], \"padding\": "
    "\"same\"},"
    "{\"type\": \"ReLU\"},"
    "{\"type\": \"MaxPooling2D\", \"pool_size\": [3, 2]},"
    "{\"type\": \"Conv2D\", \"filters\": 4, \"kernel_size\": [1, 3], \"use_bias\": false},"
    "{\"type\": \"BatchNormalization\", \"name\": \"norm\", \"scale\": false},"
    "{\"type\": \"AveragePooling2D\", \"strides\": 1, \"padding\": \"same\"},"
    "{\"type\": \"GlobalAveragePooling2D\"},"
    "{\"type\": \"Reshape\", \"target_shape\": [2, -1]},"
    "{\"type\": \"Flatten\"},"
    "{\"type\": \"Dense\", \"units\": 6, \"trainable\": false},"
    "{\"type\": \"Dense\", \"units\": 3}";

Test(model, rows)
{
    static const struct {
        const char *name, *shape;
        int64_t params, trainable;
    } rows[] = {{"conv2d", "[5,12,8]", 3 * 3 * 2 * 8 + 8, 152},
                {"re_lu", "[5,12,8]", 0, 0},
                {"max_pooling2d", "[1,6,8]", 0, 0},
                {"conv2d_1", "[1,4,4]", 96, 96},
                {"norm", "[1,4,4]", 12, 4},
                {"average_pooling2d", "[1,4,4]", 0, 0},
                {"global_average_pooling2d", "[4]", 0, 0},
                {"reshape", "[2,2]", 0, 0},
                {"flatten", "[4]", 0, 0},
                {"dense", "[6]", 30, 0},
                {"dense_1", "[3]", 21, 21}};
    tp_model *model = model_of(convnet, f32_input(3, (int64_t[]){10, 12, 2}), &float32_options);
    cr_assert(tp_model_row_count(model) == 11);
    for (int32_t i = 0; i < 11; i++) {
        const tp_model_row row = tp_model_row_at(model, i);
        char shape[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&row.output, shape, sizeof shape);
        cr_assert_str_eq(row.name, rows[i].name);
        cr_assert_str_eq(shape, rows[i].shape);
        cr_assert(row.params == rows[i].params && row.trainable_params == rows[i].trainable,
                  "%s: %lld, %lld", row.name, (long long)row.params,
                  (long long)row.trainable_params);
    }
    char *text;
    EXPECT_OK(tp_model_summary(model, &text));
    cr_assert(strstr(text, "norm (BatchNormalization)"));
    cr_assert(strstr(text, "Params: 311, of which trainable: 273"));
    tp_free(text);
    tp_model_destroy(model);
}

Test(model, variables_in_keras_order)
{
    static const char *const names[] = {"conv2d/kernel", "conv2d/bias",      "conv2d_1/kernel",
                                        "norm/beta",     "norm/moving_mean", "norm/moving_variance",
                                        "dense/kernel",  "dense/bias",       "dense_1/kernel",
                                        "dense_1/bias"};
    tp_model *model = model_of(convnet, f32_input(3, (int64_t[]){10, 12, 2}), &float32_options);
    tp_graph *graph;
    EXPECT_OK(tp_model_build_predict(model, 2, &graph));
    cr_assert(graph->variable_count == 10);
    for (int i = 0; i < 10; i++) {
        cr_assert_str_eq(graph->variables[i].name, names[i]);
        cr_assert(graph->variables[i].is_model && graph->variables[i].dtype == TP_F32);
        cr_assert(graph->variables[i].is_trainable == (i <= 3 || i >= 8), "%s", names[i]);
    }
    tp_graph_destroy(graph);
    tp_model_destroy(model);
}

static void expect_problems(const char *layers, int rank, const int64_t *dims, int count,
                            const char *const *parts)
{
    tp_model *model = NULL;
    const tp_model_input input = f32_input(rank, dims);
    const tpucl_status status = model_parse(layers, &input, &float32_options, &model);
    cr_assert(status == TPUCL_INVALID_CONFIG, "status %d", (int)status);
    for (int i = 0; i < count; i++)
        cr_assert(strstr(tpucl_last_error()->message, parts[i]), "'%s' is not in:\n%s", parts[i],
                  tpucl_last_error()->message);
}

Test(model, all_problems_at_once)
{
    static const char layers[] =
        "{\"type\": \"Danse\", \"units\": 3},"
        "{\"type\": \"Dense\", \"unit\": 3},"
        "{\"type\": \"Dense\", \"units\": 0, \"activation\": \"relo\"},"
        "{\"type\": \"Conv2D\", \"filters\": 2, \"kernel_size\": [1, 2, 3]},"
        "{\"type\": \"Dropout\", \"rate\": 1.5, \"name\": \"a/b\"},"
        "{\"units\": 3},"
        "{\"type\": \"Dense\", \"units\": 1, \"kernel_initializer\": \"he_norm\"},"
        "{\"type\": \"Activation\"}";
    static const char *const parts[] = {"9 problems",
                                        "layers[0].type",
                                        "'Dense'",
                                        "layers[1].unit",
                                        "did you mean 'units'",
                                        "Dense needs the argument 'units'",
                                        "layers[2].units",
                                        "'relu'",
                                        "layers[3].kernel_size",
                                        "layers[4].rate",
                                        "the name is 'a/b'",
                                        "layers[5]",
                                        "'he_normal'",
                                        "Activation needs the argument 'activation'"};
    expect_problems(layers, 1, (int64_t[]){4}, 1, (const char *const[]){"problems"});
    for (int i = 1; i < 14; i++)
        expect_problems(layers, 1, (int64_t[]){4}, 1, &parts[i]);
}

Test(model, shapes_that_do_not_fit)
{
    expect_problems("{\"type\": \"Conv2D\", \"filters\": 2, \"kernel_size\": 3}", 2,
                    (int64_t[]){28, 28}, 3,
                    (const char *const[]){"layers[0]", "Conv2D 'conv2d'", "Reshape before it"});
    expect_problems("{\"type\": \"Flatten\"}, {\"type\": \"MaxPooling2D\"}", 3,
                    (int64_t[]){4, 4, 1}, 1, (const char *const[]){"the input is [16]"});
    expect_problems(
        "{\"type\": \"MaxPooling2D\", \"pool_size\": 5}", 3, (int64_t[]){4, 4, 1}, 1,
        (const char *const[]){"a window of 5 does not fit into the input's height of 4"});
    expect_problems("{\"type\": \"Reshape\", \"target_shape\": [3, -1]}", 1, (int64_t[]){4}, 1,
                    (const char *const[]){"do not fit 'target_shape'"});
    expect_problems("{\"type\": \"BatchNormalization\", \"axis\": 4}", 3, (int64_t[]){4, 4, 1}, 1,
                    (const char *const[]){"'axis' has 4, expected different ones of 1 to 3"});
}

Test(model, names)
{
    expect_problems("{\"type\": \"Dense\", \"units\": 2, \"name\": \"a\"},"
                    "{\"type\": \"Dense\", \"units\": 2, \"name\": \"a\"}",
                    1, (int64_t[]){4}, 2,
                    (const char *const[]){"layers[1]", "layer 0 is named 'a', too"});
    tp_model *model = model_of("{\"type\": \"Dense\", \"units\": 2},"
                               "{\"type\": \"Dense\", \"units\": 2, \"name\": \"dense_1\"},"
                               "{\"type\": \"Dense\", \"units\": 2}",
                               f32_input(1, (int64_t[]){4}), &float32_options);
    cr_assert_str_eq(tp_model_row_at(model, 0).name, "dense");
    cr_assert_str_eq(tp_model_row_at(model, 2).name, "dense_2");
    tp_model_destroy(model);
}

Test(model, configuration_that_is_no_model)
{
    static const char *const texts[] = {
        "[]", "{}", "{\"layers\": []}", "{\"layers\": 3}", "{\"layers\": [3]}", "{\"layer\": []}"};
    const tp_model_input input = f32_input(1, (int64_t[]){4});
    for (int i = 0; i < 6; i++) {
        tp_json_document *document;
        tp_model *model = NULL;
        EXPECT_OK(tp_json_parse(texts[i], strlen(texts[i]), "test.json", &document));
        cr_assert(tp_model_create(tp_json_root(document), &input, &float32_options, &model) ==
                      TPUCL_INVALID_CONFIG,
                  "%s", texts[i]);
        tp_json_destroy(document);
    }
}

Test(model, inputs_that_are_wrong)
{
    tp_model *model = NULL;
    tp_model_input input = f32_input(1, (int64_t[]){0});
    static const char layers[] = "{\"type\": \"Dense\", \"units\": 2}";
    EXPECT_FAILURE(model_parse(layers, &input, &float32_options, &model), TPUCL_INVALID_CONFIG,
                   "an input example is [0]");
    input = f32_input(1, (int64_t[]){3});
    input.dtype = TP_U32;
    EXPECT_FAILURE(model_parse(layers, &input, &float32_options, &model), TPUCL_INVALID_CONFIG,
                   "the input is u32, expected u8, s32, f32 or bf16");
    input.dtype = TP_F32;
    input.scale = (double)NAN;
    EXPECT_FAILURE(model_parse(layers, &input, &float32_options, &model), TPUCL_INVALID_CONFIG,
                   "expected finite numbers");
}

/* keras/initializers: limit = sqrt(3 * scale / fan), stddev = sqrt(scale / fan) / .87962566103423978 */
Test(model, initializers)
{
    static const struct {
        const char *name;
        tp_init_kind kind;
        double a, b;
    } rows[] = {{"zeros", TP_INIT_ZEROS, 0, 0},
                {"random_uniform", TP_INIT_UNIFORM, -0.05, 0.05},
                {"random_normal", TP_INIT_NORMAL, 0, 0.05},
                {"glorot_uniform", TP_INIT_UNIFORM, -0.21821789023599236, 0.21821789023599236},
                {"glorot_normal", TP_INIT_TRUNCATED_NORMAL, 0, 0.14322928860625667},
                {"he_uniform", TP_INIT_UNIFORM, -0.36514837167011072, 0.36514837167011072},
                {"he_normal", TP_INIT_TRUNCATED_NORMAL, 0, 0.2396684408115349},
                {"lecun_normal", TP_INIT_TRUNCATED_NORMAL, 0, 0.16947117973424303}};
    const tp_shape kernel = {.rank = 4, .dims = {3, 3, 5, 9}}; /* fan_in 45, fan_out 81 */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tp_initializer initializer = tp_initializer_default(rows[i].name);
        tp_init_kind kind;
        double a, b;
        tp_initializer_resolve(&initializer, &kernel, &kind, &a, &b);
        cr_assert(kind == rows[i].kind, "%s", rows[i].name);
        cr_assert(fabs(a - rows[i].a) < 1e-12 && fabs(b - rows[i].b) < 1e-12, "%s: %.17g %.17g",
                  rows[i].name, a, b);
    }
}

Test(model, initializer_with_arguments)
{
    tp_model *model = model_of("{\"type\": \"Dense\", \"units\": 2, \"kernel_initializer\":"
                               "{\"type\": \"constant\", \"value\": 0.25}}",
                               f32_input(1, (int64_t[]){3}), &float32_options);
    tp_graph *graph;
    EXPECT_OK(tp_model_build_predict(model, 1, &graph));
    cr_assert(graph->variables[0].init == TP_INIT_CONSTANT && graph->variables[0].init_a == 0.25);
    tp_graph_destroy(graph);
    tp_model_destroy(model);
    static const char wrong[] = "{\"type\": \"Dense\", \"units\": 2, \"bias_initializer\":"
                                "{\"type\": \"random_normal\", \"stdev\": 1}}";
    expect_problems(wrong, 1, (int64_t[]){3}, 1, (const char *const[]){"stddev"});
}

/* Scale 0 is chosen: 1/255 for bytes unless a Rescaling comes first. */
Test(model, bytes_are_rescaled_once)
{
    static const char *const models[] = {
        "{\"type\": \"Flatten\"}", "{\"type\": \"Rescaling\", \"scale\": 0.5, \"offset\": 1}"};
    const float expected[] = {1.0f, 128.5f};
    for (int i = 0; i < 2; i++) {
        tp_model_input input = f32_input(1, (int64_t[]){1});
        input.dtype = TP_U8;
        tp_model *model = model_of(models[i], input, &float32_options);
        tp_graph *graph;
        EXPECT_OK(tp_model_build_predict(model, 1, &graph));
        model_run run = model_start(graph, 1, 0);
        const uint8_t byte = 255;
        const void *in = &byte;
        EXPECT_OK(tp_reference_step(run.reference, &in, 0));
        cr_assert(model_scalar(&run, "prediction") == expected[i], "%g",
                  (double)model_scalar(&run, "prediction"));
        model_stop(&run);
        tp_model_destroy(model);
    }
}

Test(model, losses_that_do_not_fit)
{
    tp_model *model = model_of("{\"type\": \"Dense\", \"units\": 1}", f32_input(1, (int64_t[]){3}),
                               &float32_options);
    tp_graph *graph = NULL;
    EXPECT_FAILURE(tp_model_build_evaluate(model, 4, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
                                           true, &graph),
                   TPUCL_INVALID_CONFIG, "a cross-entropy needs [classes]");
    EXPECT_FAILURE(
        tp_model_build_evaluate(model, 0, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, true, &graph),
        TPUCL_INVALID_CONFIG, "a batch of 0");
    EXPECT_OK(tp_model_build_evaluate(model, 4, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, true, &graph));
    tp_graph_destroy(graph);
    tp_model_destroy(model);
}

/* Reading, all three graphs, everything destroyed. */
static tpucl_status whole_life(void *user)
{
    tp_json_document *document = NULL;
    tp_model *model = NULL;
    tp_graph *graphs[3] = {NULL, NULL, NULL};
    const tp_model_input *input = user;
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAM);
    const tp_cross_shard cross_shard = {.shards = 2};
    const tp_model_loss loss = TP_MODEL_LOSS_CATEGORICAL_CROSSENTROPY;
    const tp_model_train train = {4, loss, true, &optimizer, &cross_shard};
    char text[2048];
    snprintf(text, sizeof text, "{\"layers\": [%s]}", convnet);
    tpucl_status status = tp_json_parse(text, strlen(text), "test.json", &document);
    if (status == TPUCL_OK)
        status = tp_model_create(tp_json_root(document), input, &mixed_options, &model);
    if (status == TPUCL_OK) status = tp_model_build_train(model, &train, &graphs[0]);
    if (status == TPUCL_OK) status = tp_model_build_evaluate(model, 4, loss, true, &graphs[1]);
    if (status == TPUCL_OK) status = tp_model_build_predict(model, 4, &graphs[2]);
    for (int i = 0; i < 3; i++)
        tp_graph_destroy(graphs[i]);
    tp_model_destroy(model);
    tp_json_destroy(document);
    return status;
}

Test(model, every_allocation_may_fail)
{
    tp_model_input input = f32_input(3, (int64_t[]){10, 12, 2});
    alloc_loop_run(whole_life, &input);
}
