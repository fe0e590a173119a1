/* SPDX-License-Identifier: Apache-2.0
 * What is exported comes back the same. That Keras itself loads it and predicts the same is shown by
 * tests/peers/test_keras.sh. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/file.h"
#include "io/keras_file.h"
#include "keras/export.h"
#include "keras/import.h"

#define GOLDEN TPUCL_SOURCE_DIR "/tests/golden/keras/"

static char folder[64], config[80], params[96], model[96], weights[96];

static void make_folder(void)
{
    strcpy(folder, "/tmp/tpucl-export-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(config, sizeof config, "%s/run.json", folder);
    snprintf(params, sizeof params, "%s/params.safetensors", folder);
    snprintf(model, sizeof model, "%s/model.keras", folder);
    snprintf(weights, sizeof weights, "%s/model.weights.h5", folder);
}

static void drop_folder(void)
{
    const char *const files[] = {config, params, model, weights};
    for (size_t i = 0; i < 4; i++)
        unlink(files[i]);
    rmdir(folder);
}

TestSuite(keras_export, .init = make_folder, .fini = drop_folder);

static tp_keras_import *import(const char *path, const char *weights_path)
{
    tp_keras_import *import = NULL;
    cr_assert_eq(tp_keras_import_file(path, weights_path, &import), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(tp_keras_check_findings(&import->mapped.findings, path), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    return import;
}

static void expect_equal(const tp_keras_import *a, const tp_keras_import *b)
{
    cr_assert_gt(a->tensor_count, 0);
    cr_assert_eq(a->tensor_count, b->tensor_count);
    for (int32_t i = 0; i < a->tensor_count; i++) {
        int32_t k = 0;
        while (k < b->tensor_count && strcmp(a->tensors[i].name, b->tensors[k].name) != 0)
            k++;
        cr_assert_lt(k, b->tensor_count, "%s", a->tensors[i].name);
        cr_assert(tp_shape_equal(&a->tensors[i].shape, &b->tensors[k].shape));
        cr_assert_eq(memcmp(a->tensors[i].data, b->tensors[k].data, a->tensors[i].bytes), 0, "%s",
                     a->tensors[i].name);
    }
}

/* `functions`: layers that functions of keras.ops become, which have none in the golden file. */
static void check(const char *golden, int32_t functions)
{
    tp_keras_import *first = import(golden, NULL);
    cr_assert_eq(tp_keras_import_save(first, folder), TPUCL_OK);
    cr_assert_eq(tp_keras_export_run(config, params, model), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(tp_keras_export_run(config, params, weights), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    tp_keras_import *again = import(model, NULL), *apart = import(model, weights);
    expect_equal(first, again);
    expect_equal(first, apart);
    cr_assert_eq(first->mapped.input_count, again->mapped.input_count);
    cr_assert_eq(first->row_count + functions, again->row_count, "%d, then %d", first->row_count,
                 again->row_count);
    tp_keras_import_destroy(first);
    tp_keras_import_destroy(again);
    tp_keras_import_destroy(apart);
}

Test(keras_export, round_trips)
{
    check(GOLDEN "mlp.keras", 0);
    check(GOLDEN "conv.keras", 0);
    check(GOLDEN "shared.keras", 0);
    check(GOLDEN "old_shared.h5", 0);
    check(GOLDEN "lstm.keras", 0);
    check(GOLDEN "sequence.keras", 0);
    check(GOLDEN "functions.keras",
          24 + 6 * 3); /* a slice is three layers; one gelu stays a function */
    check(GOLDEN "translator.keras", 1 + 3);
}

/* Which cores share statistics is no matter of the model. */
Test(keras_export, groups_of_cores_stay_here)
{
    static const char text[] =
        "{\"name\": \"plain\", \"input_shape\": [2], \"model\": {\"layers\": "
        "[{\"type\": \"BatchNormalization\", \"cores_per_group\": 4, "
        "\"epsilon\": 0.5}]}}";
    static const char *const weights_of[] = {"gamma", "beta", "moving_mean", "moving_variance"};
    float values[2] = {1, 2};
    char names[4][40];
    tp_tensor_entry entries[4];
    for (int i = 0; i < 4; i++) {
        snprintf(names[i], sizeof names[i], "batch_normalization/%s", weights_of[i]);
        entries[i] =
            (tp_tensor_entry){names[i], TP_F32, {.rank = 1, .dims = {2}}, values, sizeof values};
    }
    cr_assert_eq(tp_safetensors_write(params, entries, 4, NULL, NULL, 0), TPUCL_OK);
    cr_assert_eq(tp_file_write_atomic(config, text, strlen(text)), TPUCL_OK);
    cr_assert_eq(tp_keras_export_run(config, params, model), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    tp_keras_import *back = import(model, NULL);
    cr_assert_null(strstr(back->config, "cores_per_group"), "%s", back->config);
    cr_assert_not_null(strstr(back->config, "\"epsilon\": 0.5"), "%s", back->config);
    tp_keras_import_destroy(back);
}

Test(keras_export, models_without_names_and_shapes)
{
    static const char text[] =
        "{\"name\": \"plain\", \"input_shape\": [4], \"model\": {\"layers\": [{\"type\": "
        "\"Dense\", "
        "\"units\": 3, \"kernel_initializer\": {\"type\": \"random_normal\", \"stddev\": 0.1}}, "
        "{\"type\": \"Dense\", \"units\": 2}]}}";
    float values[24] = {1, 2, 3};
    const char *const names[] = {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"};
    const int64_t dims[][2] = {{4, 3}, {3, 0}, {3, 2}, {2, 0}};
    tp_tensor_entry entries[4] = {{0}};
    for (int i = 0; i < 4; i++) {
        entries[i] = (tp_tensor_entry){.name = names[i], .dtype = TP_F32, .data = values};
        cr_assert_eq(tp_shape_init(&entries[i].shape, i % 2 ? 1 : 2, dims[i]), TPUCL_OK);
        entries[i].bytes = (uint64_t)tp_shape_bytes(&entries[i].shape, TP_F32);
    }
    cr_assert_eq(tp_safetensors_write(params, entries, 4, NULL, NULL, 0), TPUCL_OK);
    cr_assert_eq(tp_file_write_atomic(config, text, strlen(text)), TPUCL_OK);
    cr_assert_eq(tp_keras_export_run(config, params, model), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    tp_keras_import *back = import(model, NULL);
    cr_assert_eq(back->tensor_count, 4);
    cr_assert_not_null(strstr(back->config, "\"random_normal\""), "%s", back->config);
    cr_assert_not_null(strstr(back->config, "\"dense_1\""));
    tp_keras_import_destroy(back);

    /* weights of another model */
    entries[2].shape.dims[0] = 2;
    entries[2].bytes = 16;
    cr_assert_eq(tp_safetensors_write(params, entries, 3, NULL, NULL, 0), TPUCL_OK);
    cr_assert_eq(tp_keras_export_run(config, params, model), TPUCL_INVALID_CONFIG);
    cr_assert_not_null(strstr(tpucl_last_error()->message, "'dense_1/kernel' is f32[2,2]"), "%s",
                       tpucl_last_error()->message);
    cr_assert_not_null(strstr(tpucl_last_error()->message, "'dense_1/bias' is not in"), "%s",
                       tpucl_last_error()->message);
    cr_assert_eq(tp_keras_export_run(config, params, "model.txt"), TPUCL_UNSUPPORTED);
}
