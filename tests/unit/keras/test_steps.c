/* SPDX-License-Identifier: Apache-2.0
 * ResNet-50, a U-Net, a BERT-style encoder and an LSTM, narrow ones, as Keras 3 saved them: the same outputs, and the
 * same losses in 20 steps of training from the same weights (tests/golden/gen_keras_steps.py).
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdio.h>
#include "harness/keras_steps.h"

#define GOLDEN TPUCL_SOURCE_DIR "/tests/golden/keras/"

static void need(tpucl_status status)
{
    cr_assert_eq(status, TPUCL_OK, "%s", tpucl_last_error()->message);
}

/* The numbers of a list of the golden file, and how many; the caller frees them. */
static double *golden_list(const char *name, const char *key, size_t *out_count)
{
    tp_json_document *document;
    need(tp_json_read_file(GOLDEN "steps.json", 1 << 20, &document));
    const tp_json *list = tp_json_member(tp_json_member(tp_json_root(document), name), key);
    double *numbers = calloc(list->count + 1, sizeof *numbers);
    for (size_t i = 0; i < list->count; i++)
        numbers[i] = list->items[i].number;
    *out_count = list->count;
    tp_json_destroy(document);
    return numbers;
}

static double predict(const char *name, tp_model_policy policy, double *out_bound)
{
    char path[512];
    size_t count;
    snprintf(path, sizeof path, GOLDEN "steps_%s.keras", name);
    double *expected = golden_list(name, "prediction", &count);
    keras_steps steps = keras_steps_open(path, policy, need);
    const tp_host_tensor *found = keras_steps_predict(&steps, NULL, 0);
    cr_assert_eq((size_t)tp_shape_elems(&found->shape), count);
    const double difference = keras_steps_difference(found->data, expected, (int64_t)count);
    *out_bound = keras_steps_bf16_bound(&steps);
    keras_steps_close(&steps);
    free(expected);
    return difference;
}

static void check(const char *name)
{
    double bound, losses[KERAS_STEPS_COUNT];
    char path[512];
    size_t count;
    const double f32 = predict(name, TP_POLICY_FLOAT32, &bound);
    cr_assert_leq(f32, 1e-4, "%s: f32 outputs differ by %.3g of the largest", name, f32);
    const double bf16 = predict(name, TP_POLICY_MIXED_BFLOAT16, &bound);
    cr_assert_leq(bf16, bound, "%s: bf16 outputs differ by %.3g, the bound is %.3g", name, bf16,
                  bound);
    cr_assert_gt(bf16, 1e-5, "%s: bf16 was not used", name);

    double *expected = golden_list(name, "losses", &count);
    cr_assert_eq(count, KERAS_STEPS_COUNT);
    snprintf(path, sizeof path, GOLDEN "steps_%s.keras", name);
    keras_steps steps = keras_steps_open(path, TP_POLICY_FLOAT32, need);
    keras_steps_train(&steps, losses);
    double largest = 0;
    for (int i = 0; i < KERAS_STEPS_COUNT; i++) {
        largest = fmax(largest, fabs(losses[i] - expected[i]));
        cr_assert_leq(fabs(losses[i] - expected[i]), 1e-3, "%s, step %d: loss %.7g, Keras has %.7g",
                      name, i + 1, losses[i], expected[i]);
    }
    cr_log_info("%s: outputs f32 %.2e, bf16 %.2e (bound %.2e), losses %.2e\n", name, f32, bf16,
                bound, largest);
    keras_steps_close(&steps);
    free(expected);
}

Test(keras_steps, resnet50)
{
    check("resnet50");
}

Test(keras_steps, unet)
{
    check("unet");
}

Test(keras_steps, encoder)
{
    check("encoder");
}

Test(keras_steps, lstm_text)
{
    check("lstm_text");
}
