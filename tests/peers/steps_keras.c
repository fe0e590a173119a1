/* SPDX-License-Identifier: Apache-2.0
 * steps_keras MODEL RESULT PARAMS: what tpucl makes of a model that Keras saved, on the data of
 * tests/golden/keras_models.py, in the reference interpreter. RESULT (JSON): its outputs under both policies, the bound
 * for bf16, the losses of 20 steps of training, the outputs after them; PARAMS: the trained weights (safetensors). */
#include <stdio.h>
#include "core/alloc.h"
#include "core/file.h"
#include "core/json_write.h"
#include "harness/keras_steps.h"

static void need(tpucl_status status)
{
    if (status == TPUCL_OK) return;
    fprintf(stderr, "%s\n", tpucl_last_error()->message);
    exit(1);
}

static void put_numbers(tp_json_writer *writer, const char *key, const tp_host_tensor *tensor)
{
    tp_json_key(writer, key);
    tp_json_begin_inline_array(writer);
    for (int64_t i = 0; i < tp_shape_elems(&tensor->shape); i++)
        tp_json_write_double(writer, (double)((const float *)tensor->data)[i]);
    tp_json_end_array(writer);
}

static void put_mixed(tp_json_writer *writer, const char *path)
{
    keras_steps steps = keras_steps_open(path, TP_POLICY_MIXED_BFLOAT16, need);
    put_numbers(writer, "bf16", keras_steps_predict(&steps, NULL, 0));
    tp_json_put_double(writer, "bf16_bound", keras_steps_bf16_bound(&steps));
    keras_steps_close(&steps);
}

/* The model's variables as they are now, in memory of their own. */
static int32_t copy_variables(const keras_steps *steps, tp_tensor_entry *out)
{
    int32_t count = 0;
    for (int32_t i = 0; i < steps->graph->variable_count; i++) {
        const tp_variable *variable = &steps->graph->variables[i];
        const tp_host_tensor *now = tp_reference_variable(steps->reference, 0, i);
        if (!variable->is_model) continue;
        const uint64_t bytes = (uint64_t)tp_shape_bytes(&now->shape, now->dtype);
        void *data = malloc(bytes + 1);
        if (!data) exit(1);
        memcpy(data, now->data, bytes);
        out[count++] = (tp_tensor_entry){.name = tp_alloc_strdup(variable->name),
                                         .dtype = now->dtype,
                                         .shape = now->shape,
                                         .data = data,
                                         .bytes = bytes};
    }
    return count;
}

static void put_training(tp_json_writer *writer, keras_steps *steps, const char *params)
{
    double losses[KERAS_STEPS_COUNT];
    tp_tensor_entry *trained = calloc((size_t)steps->import->tensor_count + 1, sizeof *trained);
    keras_steps_train(steps, losses);
    tp_json_key(writer, "losses");
    tp_json_begin_inline_array(writer);
    for (int i = 0; i < KERAS_STEPS_COUNT; i++)
        tp_json_write_double(writer, losses[i]);
    tp_json_end_array(writer);
    const int32_t count = copy_variables(steps, trained);
    need(tp_safetensors_write(params, trained, count, NULL, NULL, 0));
    put_numbers(writer, "trained", keras_steps_predict(steps, trained, count));
    for (int32_t i = 0; i < count; i++) {
        tp_free((void *)(uintptr_t)trained[i].name);
        free((void *)(uintptr_t)trained[i].data);
    }
    free(trained);
}

int main(int argument_count, char **arguments)
{
    tp_json_writer writer = {0};
    char *text;
    if (argument_count != 4) {
        fprintf(stderr, "usage: steps_keras MODEL RESULT PARAMS\n");
        return 2;
    }
    keras_steps steps = keras_steps_open(arguments[1], TP_POLICY_FLOAT32, need);
    tp_json_begin_object(&writer);
    put_numbers(&writer, "prediction", keras_steps_predict(&steps, NULL, 0));
    put_mixed(&writer, arguments[1]);
    if (steps.import->has_loss) put_training(&writer, &steps, arguments[3]);
    tp_json_end_object(&writer);
    need(tp_json_writer_finish(&writer, &text));
    need(tp_file_write_atomic(arguments[2], text, strlen(text)));
    tp_free(text);
    tp_json_writer_deinit(&writer);
    keras_steps_close(&steps);
    return 0;
}
