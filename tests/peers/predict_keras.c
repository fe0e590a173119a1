/* SPDX-License-Identifier: Apache-2.0
 * predict_keras MODEL EXAMPLES: imports a Keras file and predicts through the reference interpreter, with the inputs
 * of tests/golden/gen_keras.py. The first output's numbers go to standard output, one a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "keras/import.h"
#include "reference/reference.h"

static void need(tpucl_status status)
{
    if (status == TPUCL_OK) return;
    fprintf(stderr, "%s\n", tpucl_last_error()->message);
    exit(1);
}

/* (5 i mod 11 - 5) / 8, or class numbers 5 i mod 11 */
static void *make_input(const tp_keras_input *input, int64_t examples)
{
    const int64_t count = examples * tp_shape_elems(&input->shape);
    float *floats = malloc((size_t)count * sizeof *floats);
    if (!floats) exit(1);
    for (int64_t i = 0; i < count; i++) {
        const int32_t number = (int32_t)(5 * i % 11);
        if (input->is_integer)
            memcpy(&floats[i], &number, sizeof number);
        else
            floats[i] = (float)(number - 5) / 8;
    }
    return floats;
}

static void set_variables(const tp_keras_import *import, const tp_graph *graph,
                          tp_reference *reference)
{
    for (int32_t i = 0; i < import->tensor_count; i++) {
        const tp_tensor_entry *tensor = &import->tensors[i];
        const int32_t variable = tp_graph_find_variable(graph, tensor->name);
        if (variable < 0) exit(1);
        memcpy(tp_reference_variable(reference, 0, variable)->data, tensor->data, tensor->bytes);
    }
}

int main(int argument_count, char **arguments)
{
    tp_keras_import *import;
    tp_graph *graph;
    tp_reference *reference;
    void *inputs[TP_MODEL_MAX_INPUTS];
    const int64_t examples = argument_count > 2 ? atol(arguments[2]) : 0;
    if (examples < 1) {
        fprintf(stderr, "usage: predict_keras MODEL EXAMPLES\n");
        return 2;
    }
    need(tp_keras_import_file(arguments[1], NULL, &import));
    need(tp_keras_check_findings(&import->mapped.findings, arguments[1]));
    need(tp_model_build_predict(import->model, examples, &graph));
    need(tp_reference_create(graph, &(tp_reference_options){.cores = 1, .seed = 1}, &reference));
    set_variables(import, graph, reference);
    for (int32_t i = 0; i < graph->input_count; i++)
        inputs[i] = make_input(&import->mapped.inputs[i], examples);
    need(tp_reference_step(reference, (const void *const *)inputs, 0));
    const tp_host_tensor *output = tp_reference_output(reference, 0, 0);
    for (int64_t i = 0; i < tp_shape_elems(&output->shape); i++)
        printf("%.9g\n", ((const float *)output->data)[i]);
    for (int32_t i = 0; i < graph->input_count; i++)
        free(inputs[i]);
    tp_reference_destroy(reference);
    tp_graph_destroy(graph);
    tp_keras_import_destroy(import);
    return 0;
}
