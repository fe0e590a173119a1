/* SPDX-License-Identifier: Apache-2.0
 * compile_config of Keras 3 and training_config of Keras 2. */
#include <criterion/criterion.h>
#include <string.h>
#include "keras/map.h"

static void expect(const char *compile, const char *expected, int findings)
{
    tp_json_document *document;
    tp_arena *arena;
    tp_keras_findings found = {0};
    const char *text;
    char squeezed[1024], *at = squeezed;
    cr_assert_eq(tp_arena_create(0, &arena), TPUCL_OK);
    cr_assert_eq(tp_json_parse(compile, strlen(compile), "test", &document), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(tp_keras_map_compile(tp_json_root(document), arena, &found, &text), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    for (const char *c = text; *c; c++)
        if (!strchr(" \n", *c)) *at++ = *c;
    *at = 0;
    cr_assert_str_eq(squeezed, expected);
    cr_assert_eq(found.count, findings, "%s", found.count ? found.items[0].what : "none");
    tp_json_destroy(document);
    tp_arena_destroy(arena);
}

Test(keras_map_compile, keras_3)
{
    expect("{\"optimizer\":{\"module\":\"keras.optimizers\",\"class_name\":\"Adam\",\"config\":"
           "{\"name\":\"adam\",\"learning_rate\":0.0020000000949949026,\"weight_decay\":null,"
           "\"use_ema\":false,\"ema_momentum\":0.99,\"beta_1\":0.9,\"beta_2\":0.999,"
           "\"epsilon\":1e-07,\"amsgrad\":false}},\"loss\":\"sparse_categorical_crossentropy\","
           "\"metrics\":[\"accuracy\"]}",
           "{\"loss\":{\"name\":\"sparse_categorical_crossentropy\"},\"optimizer\":{\"name\":"
           "\"Adam\",\"learning_rate\":0.002,\"beta_1\":0.9,\"beta_2\":0.999,\"epsilon\":1e-07},"
           "\"metrics\":[\"accuracy\"]}",
           0);
    expect("{\"optimizer\":\"sgd\",\"loss\":{\"class_name\":\"SparseCategoricalCrossentropy\","
           "\"config\":{\"from_logits\":true,\"ignore_class\":null}},\"metrics\":null}",
           "{\"loss\":{\"name\":\"sparse_categorical_crossentropy\",\"from_logits\":true},"
           "\"optimizer\":{\"name\":\"SGD\"}}",
           0);
}

Test(keras_map_compile, keras_2)
{
    expect("{\"loss\":[\"mse\"],\"metrics\":[[{\"class_name\":\"MeanMetricWrapper\",\"config\":"
           "{\"name\":\"accuracy\",\"dtype\":\"float32\",\"fn\":\"categorical_accuracy\"}}]],"
           "\"optimizer_config\":{\"class_name\":\"Custom>SGD\",\"config\":{\"name\":\"SGD\","
           "\"jit_compile\":false,\"learning_rate\":0.10000000149011612,\"momentum\":0.9,"
           "\"nesterov\":false}}}",
           "{\"loss\":{\"name\":\"mean_squared_error\"},\"optimizer\":{\"name\":\"SGD\","
           "\"learning_rate\":0.1,\"momentum\":0.9},\"metrics\":[\"accuracy\"]}",
           0);
}

Test(keras_map_compile, by_name_of_output)
{
    expect(
        "{\"loss\":{\"box\":\"mse\",\"kind\":{\"class_name\":\"SparseCategoricalCrossentropy\","
        "\"config\":{\"from_logits\":true,\"ignore_class\":0}}},\"loss_weights\":{\"box\":0.5,"
        "\"kind\":2},"
        "\"metrics\":{\"box\":\"mae\",\"kind\":[\"acc\",\"auc\"]}}",
        "{\"loss\":{\"name\":\"mean_squared_error\"},\"losses\":{\"box\":{\"name\":"
        "\"mean_squared_error\",\"weight\":0.5},\"kind\":{\"name\":"
        "\"sparse_categorical_crossentropy\",\"from_logits\":true,\"ignore_class\":0.0,\"weight\":"
        "2.0}},"
        "\"metrics\":{\"box\":[\"mean_absolute_error\"],\"kind\":[\"accuracy\",\"auc\"]}}",
        0);
    expect("{\"loss\":{\"box\":\"mse\",\"kind\":3}}", "{}", 1);
    expect("{\"loss\":\"mse\",\"loss_weights\":[2]}",
           "{\"loss\":{\"name\":\"mean_squared_error\"}}", 1);
}

Test(keras_map_compile, what_has_no_equal_is_noted)
{
    expect("{\"loss\":[\"mse\",\"mae\"]}", "{}", 1);
    expect("{\"loss\":3}", "{}", 1);
    expect("{\"optimizer\":{\"class_name\":\"LossScaleOptimizer\",\"config\":{\"inner_optimizer\":"
           "{\"class_name\":\"RMSprop\",\"config\":{\"rho\":0.9}}}}}",
           "{\"optimizer\":{\"name\":\"RMSprop\",\"rho\":0.9}}", 0);
    expect("{\"optimizer\":{\"class_name\":\"Adam\",\"config\":{\"learning_rate\":{\"class_name\":"
           "\"CosineDecay\",\"config\":{\"initial_learning_rate\":0.01}}}}}",
           "{\"optimizer\":{\"name\":\"Adam\",\"learning_rate\":0.01,\"schedule\":\"cosine\"}}", 1);
}
