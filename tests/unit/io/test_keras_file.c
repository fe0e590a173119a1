/* SPDX-License-Identifier: Apache-2.0
 * Files that Keras wrote (tests/golden/gen_keras.py); their weights follow a formula. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "io/keras_file.h"

#define GOLDEN TPUCL_SOURCE_DIR "/tests/golden/keras/"

static tp_keras_file *open_golden(const char *path, const char *weights)
{
    tp_keras_file *file = NULL;
    cr_assert_eq(tp_keras_open(path, weights, &file), TPUCL_OK, "%s: %s", path,
                 tpucl_last_error()->message);
    return file;
}

static const char *class_of(const tp_keras_file *file)
{
    const tp_json *name = tp_json_member(tp_keras_config(file), "class_name");
    cr_assert_not_null(name);
    return name->string;
}

/* Elements of the n-th weight of the model as the generator filled them. */
static void expect_weight(tp_keras_file *file, const char *owner, int32_t index, int n,
                          const char *shape, bool is_variance)
{
    char text[TP_SHAPE_TEXT_MAX];
    int32_t first = -1;
    cr_assert_gt(tp_keras_owner_weights(file, owner, &first), index, "%s", owner);
    const tp_keras_weight *weight = tp_keras_weight_at(file, first + index);
    tp_shape_format(&weight->shape, text, sizeof text);
    cr_assert_str_eq(text, shape, "%s", weight->path);
    cr_assert_eq(weight->dtype, TP_F32);
    const int64_t count = tp_shape_elems(&weight->shape);
    float *values = malloc((size_t)count * sizeof *values);
    cr_assert_eq(tp_keras_read(file, weight, values), TPUCL_OK, "%s", tpucl_last_error()->message);
    for (int64_t i = 0; i < count; i++) {
        float expected = (float)((7 * i + 3 * n) % 13 - 6) / 16;
        if (is_variance) expected = fabsf(expected) + 0.5f;
        cr_assert_float_eq(values[i], expected, 0, "%s[%d] is %g, expected %g", weight->path,
                           (int)i, values[i], expected);
    }
    free(values);
}

static void expect_mlp_places(tp_keras_file *file)
{
    cr_assert_eq(tp_keras_weight_layout(file), TP_KERAS_OBJECTS);
    expect_weight(file, "layers/dense", 0, 0, "[12,5]", false);
    expect_weight(file, "layers/dense", 1, 1, "[5]", false);
    expect_weight(file, "layers/batch_normalization", 2, 4, "[5]", false);
    expect_weight(file, "layers/batch_normalization", 3, 5, "[5]", true);
    expect_weight(file, "layers/dense_1", 1, 7, "[3]", false);
}

Test(keras_file, keras_archive)
{
    tp_keras_file *file = open_golden(GOLDEN "mlp.keras", NULL);
    cr_assert_str_eq(class_of(file), "Sequential");
    cr_assert_eq(strncmp(tp_keras_version(file), "3.", 2), 0);
    cr_assert_not_null(tp_json_member(tp_keras_compile_config(file), "optimizer"));
    expect_mlp_places(file);
    int32_t first;
    cr_assert_eq(tp_keras_owner_weights(file, "optimizer", &first), 0);
    tp_keras_close(file);
}

Test(keras_file, legacy_hdf5)
{
    tp_keras_file *file = open_golden(GOLDEN "mlp.h5", NULL);
    cr_assert_str_eq(class_of(file), "Sequential");
    cr_assert_not_null(tp_json_member(tp_keras_compile_config(file), "optimizer_config"));
    cr_assert_eq(tp_keras_weight_layout(file), TP_KERAS_NAMES);
    cr_assert_eq(tp_keras_weight_count(file), 8);
    expect_weight(file, "batch_normalization", 3, 5, "[5]", true);
    expect_weight(file, "classes", 0, 6, "[5,3]", false);
    tp_keras_close(file);
}

Test(keras_file, keras_2_hdf5)
{
    tp_keras_file *file = open_golden(GOLDEN "old_shared.h5", NULL);
    cr_assert_str_eq(class_of(file), "Functional");
    cr_assert_null(tp_keras_compile_config(file));
    int32_t first;
    cr_assert_eq(tp_keras_owner_weights(file, "encoder", &first), 6);
    cr_assert_str_eq(tp_keras_weight_at(file, first + 4)->name, "norm/moving_mean:0");
    expect_weight(file, "encoder", 0, 0, "[6,4]", false);
    cr_assert_eq(tp_keras_owner_weights(file, "both", &first), 1);
    tp_keras_close(file);
}

Test(keras_file, weights_beside_the_configuration)
{
    tp_keras_file *file = open_golden(GOLDEN "mlp.json", GOLDEN "mlp.weights.h5");
    cr_assert_str_eq(class_of(file), "Sequential");
    expect_mlp_places(file);
    tp_keras_close(file);
    file = open_golden(GOLDEN "mlp.json", NULL);
    cr_assert_eq(tp_keras_weight_layout(file), TP_KERAS_NO_WEIGHTS);
    tp_keras_close(file);
    file = open_golden(GOLDEN "mlp.weights.h5", NULL);
    cr_assert_null(tp_keras_config(file));
    tp_keras_close(file);
    file = open_golden(GOLDEN "mlp.h5", GOLDEN "mlp.keras");
    expect_mlp_places(file);
    tp_keras_close(file);
}

Test(keras_file, shards)
{
    tp_keras_file *file = open_golden(GOLDEN "mlp.json", GOLDEN "mlp_sharded.weights.json");
    expect_mlp_places(file);
    tp_keras_close(file);
}

Test(keras_file, nested_places)
{
    tp_keras_file *file = open_golden(GOLDEN "shared.keras", NULL);
    expect_weight(file, "layers/functional/layers/dense", 0, 0, "[6,4]", false);
    int32_t first;
    cr_assert_eq(
        tp_keras_owner_weights(file, "layers/functional/layers/batch_normalization", &first), 4);
    tp_keras_close(file);
    file = open_golden(GOLDEN "lstm.keras", NULL);
    expect_weight(file, "layers/lstm/cell", 2, 3, "[12]", false);
    tp_keras_close(file);
}

Test(keras_file, bfloat16_weights)
{
    tp_keras_file *file = open_golden(GOLDEN "half.weights.h5", NULL);
    int32_t first;
    uint16_t bias[2];
    cr_assert_eq(tp_keras_owner_weights(file, "layers/dense", &first), 2);
    const tp_keras_weight *weight = tp_keras_weight_at(file, first + 1);
    cr_assert_eq(weight->dtype, TP_BF16);
    cr_assert_eq(tp_keras_read(file, weight, bias), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(bias[0], 0xbe40); /* -3/16 */
    cr_assert_eq(bias[1], 0x3e80); /* 4/16 */
    tp_keras_close(file);
}

Test(keras_file, what_is_written_is_read)
{
    char path[] = "/tmp/tpucl-keras-XXXXXX";
    const float kernel[6] = {1, 2, 3, 4, 5, 6};
    float read[6];
    tp_keras_tensor tensor = {.path = "layers/dense/vars/0", .dtype = TP_F32, .elements = kernel};
    int32_t first;
    close(mkstemp(path));
    cr_assert_eq(tp_shape_init(&tensor.shape, 2, (int64_t[]){2, 3}), TPUCL_OK);
    cr_assert_eq(tp_keras_write_model(path, "{\"class_name\": \"Sequential\"}", &tensor, 1),
                 TPUCL_OK);
    tp_keras_file *file = open_golden(path, NULL);
    cr_assert_eq(tp_keras_owner_weights(file, "layers/dense", &first), 1);
    cr_assert_eq(tp_keras_read(file, tp_keras_weight_at(file, first), read), TPUCL_OK);
    cr_assert_arr_eq(read, kernel, sizeof kernel);
    tp_keras_close(file);
    unlink(path);
}

static void expect_failure(const char *text, tpucl_status status, const char *sentence)
{
    char path[] = "/tmp/tpucl-keras-XXXXXX";
    tp_keras_file *file;
    close(mkstemp(path));
    cr_assert_eq(tp_file_write_atomic(path, text, strlen(text)), TPUCL_OK);
    cr_assert_eq(tp_keras_open(path, NULL, &file), status, "%s: %s", text,
                 tpucl_last_error()->message);
    cr_assert_not_null(strstr(tpucl_last_error()->message, sentence), "'%s' in '%s'", sentence,
                       tpucl_last_error()->message);
    unlink(path);
}

Test(keras_file, other_files_are_refused)
{
    tp_keras_file *file;
    expect_failure("hello", TPUCL_UNSUPPORTED, "no file of Keras");
    expect_failure("", TPUCL_UNSUPPORTED, "no file of Keras");
    expect_failure("{\"a\": 1}", TPUCL_INVALID_CONFIG, "class_name");
    expect_failure("{\"a\": NaN}", TPUCL_INVALID_CONFIG, ":1:7");
    expect_failure("{\"weight_map\": {\"a\": \"../b.h5\"}}", TPUCL_CORRUPT_DATA, "same folder");
    expect_failure("{\"weight_map\": {\"a\": [3]}}", TPUCL_INVALID_CONFIG, "found 3");
    cr_assert_eq(tp_keras_open("/nowhere/model.keras", NULL, &file), TPUCL_NOT_FOUND);
}
