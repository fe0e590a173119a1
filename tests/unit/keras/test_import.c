/* SPDX-License-Identifier: Apache-2.0
 * Models that Keras wrote predict here what they predict there (tests/golden/gen_keras.py). */
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "keras/import.h"
#include "topo/config.h"
#include "../model/model_run.h"

#define GOLDEN TPUCL_SOURCE_DIR "/tests/golden/keras/"
enum { EXAMPLES = 3 };

static tp_keras_import *import_golden(const char *path, const char *weights)
{
    tp_keras_import *import = NULL;
    EXPECT_OK(tp_keras_import_file(path, weights, &import));
    EXPECT_OK(tp_keras_check_findings(&import->mapped.findings, path));
    cr_assert_not_null(import->config);
    return import;
}

/* The generator's inputs: (5 i mod 11 - 5) / 8, or class numbers 5 i mod 11. */
static void *make_input(const tp_keras_input *input)
{
    const int64_t count = EXAMPLES * tp_shape_elems(&input->shape);
    float *floats = malloc((size_t)count * sizeof *floats);
    for (int64_t i = 0; i < count; i++) {
        const int32_t number = (int32_t)(5 * i % 11);
        if (input->is_integer)
            memcpy(&floats[i], &number, sizeof number);
        else
            floats[i] = (float)(number - 5) / 8;
    }
    return floats;
}

static void set_variables(const tp_keras_import *import, const model_run *run)
{
    cr_assert_eq(import->tensor_count, run->graph->variable_count);
    for (int32_t i = 0; i < import->tensor_count; i++) {
        const tp_tensor_entry *tensor = &import->tensors[i];
        const int32_t variable = tp_graph_find_variable(run->graph, tensor->name);
        cr_assert_geq(variable, 0, "%s", tensor->name);
        memcpy(tp_reference_variable(run->reference, 0, variable)->data, tensor->data,
               tensor->bytes);
    }
}

/* The member `name` of a file of predictions: [EXAMPLES][outputs]. */
static void expect_predictions(const float *found, const char *file, const char *name,
                               double tolerance)
{
    tp_json_document *document;
    EXPECT_OK(tp_json_read_file(file, 1 << 20, &document));
    const tp_json *rows =
        tp_json_member(tp_json_member(tp_json_root(document), name), "prediction");
    cr_assert_eq(rows->count, EXAMPLES);
    for (size_t i = 0; i < EXAMPLES; i++)
        for (size_t k = 0; k < rows->items[i].count; k++) {
            const double expected = rows->items[i].items[k].number;
            const double value = found[i * rows->items[i].count + k];
            cr_assert_leq(fabs(value - expected), tolerance * (1 + fabs(expected)),
                          "%s, example %zu, output %zu: %.9g, Keras has %.9g", name, i, k, value,
                          expected);
        }
    tp_json_destroy(document);
}

static void check_within(const char *path, const char *weights, const char *predictions,
                         const char *name, double tolerance)
{
    tp_keras_import *import = import_golden(path, weights);
    tp_graph *graph = NULL;
    void *inputs[4];
    EXPECT_OK(tp_model_build_predict(import->model, EXAMPLES, &graph));
    model_run run = model_start(graph, 1, 1);
    set_variables(import, &run);
    cr_assert_eq(graph->input_count, import->mapped.input_count);
    for (int32_t i = 0; i < graph->input_count; i++) {
        cr_assert_str_eq(graph->inputs[i].name, import->mapped.inputs[i].name);
        inputs[i] = make_input(&import->mapped.inputs[i]);
    }
    EXPECT_OK(tp_reference_step(run.reference, (const void *const *)inputs, 0));
    expect_predictions(model_output(&run, graph->outputs[0].name)->data, predictions, name,
                       tolerance);
    for (int32_t i = 0; i < graph->input_count; i++)
        free(inputs[i]);
    model_stop(&run);
    tp_keras_import_destroy(import);
}

/* f32 here and there, sums in another order: some units of the last place. */
static void check(const char *path, const char *weights, const char *predictions, const char *name)
{
    check_within(path, weights, predictions, name, 2e-6);
}

Test(keras_import, sequential)
{
    check(GOLDEN "mlp.keras", NULL, GOLDEN "predictions.json", "mlp");
    check(GOLDEN "mlp.h5", NULL, GOLDEN "predictions.json", "mlp");
    check(GOLDEN "mlp.json", GOLDEN "mlp.weights.h5", GOLDEN "predictions.json", "mlp");
    check(GOLDEN "mlp.json", GOLDEN "mlp_sharded.weights.json", GOLDEN "predictions.json", "mlp");
    check(GOLDEN "old_mlp.keras", NULL, GOLDEN "old_predictions.json", "old_mlp");
}

Test(keras_import, images_and_batch_normalization)
{
    check(GOLDEN "conv.keras", NULL, GOLDEN "predictions.json", "conv");
}

Test(keras_import, nested_and_shared)
{
    check(GOLDEN "shared.keras", NULL, GOLDEN "predictions.json", "shared");
    check(GOLDEN "old_shared.h5", NULL, GOLDEN "old_predictions.json", "old_shared");
}

Test(keras_import, recurrent_layers_wrappers_and_attention)
{
    check(GOLDEN "lstm.keras", NULL, GOLDEN "predictions.json", "lstm");
    check(GOLDEN "old_lstm.h5", NULL, GOLDEN "old_predictions.json", "old_lstm");
    check(GOLDEN "sequence.keras", NULL, GOLDEN "predictions.json", "sequence");
}

Test(keras_import, functions_and_arguments_of_calls)
{
    check(GOLDEN "functions.keras", NULL, GOLDEN "predictions.json", "functions");
    check(GOLDEN "translator.keras", NULL, GOLDEN "predictions.json", "translator");
    check(GOLDEN "masked.keras", NULL, GOLDEN "predictions.json", "masked");
}

/* Policies of layers. Results of four bf16 layers, each rounded once here and up to three times in Keras (product,
 * bias, activation), move a probability by an ulp of bf16 or so. */
Test(keras_import, policies)
{
    check_within(GOLDEN "pure.keras", NULL, GOLDEN "predictions.json", "pure", 0x1p-7);
    tp_keras_import *import = import_golden(GOLDEN "pure.keras", NULL);
    cr_assert(strstr(import->config, "\"precision\": \"bfloat16\""), "%s", import->config);
    cr_assert(strstr(import->config, "\"dtype\": \"mixed_bfloat16\""));
    cr_assert(strstr(import->config, "\"dtype\": \"float32\""));
    static const struct {
        const char *name;
        tp_dtype dtype;
    } expected[] = {{"dense/kernel", TP_BF16},
                    {"batch_normalization/gamma", TP_BF16},
                    {"batch_normalization/moving_mean", TP_F32},
                    {"dense_1/kernel", TP_F32},
                    {"classes/kernel", TP_F32}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        for (int32_t t = 0; t < import->tensor_count; t++)
            if (!strcmp(import->tensors[t].name, expected[i].name))
                cr_expect(import->tensors[t].dtype == expected[i].dtype, "%s is %s",
                          expected[i].name, tp_dtype_name(import->tensors[t].dtype));
    tp_keras_import_destroy(import);
}

Test(keras_import, the_configuration_is_one)
{
    tp_keras_import *import = import_golden(GOLDEN "mlp.keras", NULL);
    tp_config *config;
    EXPECT_OK(
        tp_config_parse(import->config, strlen(import->config), "run.json", NULL, 0, &config));
    cr_assert_eq(config->loss.name, TP_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY);
    cr_assert_eq(config->metrics.count, 1, "%s", strstr(import->config, "\"loss\""));
    cr_assert_float_eq(config->optimizer.learning_rate, 0.002, 1e-12);
    cr_assert_eq(config->input_shape.count, 2);
    cr_assert_eq(import->row_count, 5);
    cr_assert_str_eq(import->rows[1].source, "layers/dense");
    cr_assert_eq(import->rows[1].params, 65);
    tp_config_destroy(config);
    tp_keras_import_destroy(import);
}

Test(keras_import, files_are_written)
{
    char folder[] = "/tmp/tpucl-import-XXXXXX", path[64];
    cr_assert_not_null(mkdtemp(folder));
    tp_keras_import *import = import_golden(GOLDEN "shared.keras", NULL);
    EXPECT_OK(tp_keras_import_save(import, folder));
    tp_keras_import_destroy(import);
    tp_safetensors *file;
    snprintf(path, sizeof path, "%s/params.safetensors", folder);
    EXPECT_OK(tp_safetensors_open(path, &file));
    cr_assert_not_null(tp_safetensors_find(file, "encoder/norm/moving_mean"));
    cr_assert_not_null(tp_safetensors_find(file, "head/dense_1/kernel"));
    tp_safetensors_close(file);
    unlink(path);
    snprintf(path, sizeof path, "%s/run.json", folder);
    cr_assert(tp_file_exists(path));
    unlink(path);
    rmdir(folder);
}

Test(keras_import, weights_of_another_model_are_findings)
{
    tp_keras_import *import;
    EXPECT_OK(tp_keras_import_file(GOLDEN "conv.keras", GOLDEN "mlp.keras", &import));
    cr_assert_null(import->config);
    EXPECT_FAILURE(tp_keras_check_findings(&import->mapped.findings, "the model"),
                   TPUCL_INVALID_CONFIG, "Conv2D 'conv': it has 1 weights here and 0 in the file");
    EXPECT_FAILURE(tp_keras_import_save(import, "/nowhere"), TPUCL_INVALID_CONFIG, "'bn'");
    tp_keras_import_destroy(import);
    EXPECT_FAILURE(tp_keras_import_file(GOLDEN "mlp.weights.h5", NULL, &import),
                   TPUCL_INVALID_CONFIG, "weights alone");
}

Test(keras_import, lambda_is_refused_with_everything_else)
{
    tp_keras_import *import;
    EXPECT_OK(tp_keras_import_file(GOLDEN "custom.json", NULL, &import));
    cr_assert_null(import->config);
    cr_assert_null(import->model);
    cr_assert_eq(import->mapped.findings.count, 3);
    tp_keras_import_destroy(import);
}
