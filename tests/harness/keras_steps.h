/* SPDX-License-Identifier: Apache-2.0
 * A model that Keras saved, predicting and training in the reference interpreter on the data of
 * tests/golden/keras_models.py, with the loss and the optimizer that compile() was given. Whoever uses it says what
 * happens on failure: need(status).
 */
#ifndef TESTS_HARNESS_KERAS_STEPS_H
#define TESTS_HARNESS_KERAS_STEPS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "golden/golden.h"
#include "keras/import.h"
#include "model/loss.h"
#include "reference/reference.h"
#include "topo/config.h"

enum { KERAS_STEPS_BATCH = 8, KERAS_STEPS_COUNT = 20, KERAS_STEPS_TOKENS = 16 };

typedef struct keras_steps {
    void (*need)(tpucl_status status);
    tp_keras_import *import;
    tp_config *config;
    tp_model *model; /* with the policy asked for */
    tp_graph *graph;
    tp_reference *reference;
} keras_steps;

/* ---- data ---- */

/* A whole number from 0, below `limit`. */
static inline int32_t keras_steps_below(uint32_t seed, uint32_t i, int32_t limit)
{
    const int32_t value = (int32_t)((golden_value(seed, i) + 1) / 2 * (float)limit);
    return value < limit ? value : limit - 1;
}

static inline void keras_steps_fill(const char *name, uint32_t seed, const tp_shape *shape,
                                    tp_dtype dtype, void *data)
{
    const uint32_t count = (uint32_t)tp_shape_elems(shape);
    const uint32_t length = (uint32_t)shape->dims[shape->rank - 1];
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = i % length, padding = i / length % 3;
        if (dtype == TP_F32)
            ((float *)data)[i] = golden_value(seed, i);
        else if (strcmp(name, "positions") == 0)
            ((int32_t *)data)[i] = (int32_t)place;
        else if (strcmp(name, "segments") == 0)
            ((int32_t *)data)[i] = place >= length / 2;
        else
            ((int32_t *)data)[i] = place >= length - padding
                                       ? 0
                                       : 1 + keras_steps_below(seed, i, KERAS_STEPS_TOKENS - 1);
    }
}

static inline void keras_steps_fill_label(const keras_steps *steps, uint32_t seed,
                                          const tp_shape *shape, tp_dtype dtype, void *data)
{
    const tp_shape *output = tp_model_output(steps->model);
    const int32_t classes = (int32_t)output->dims[output->rank - 1];
    for (uint32_t i = 0; i < (uint32_t)tp_shape_elems(shape); i++)
        if (dtype == TP_F32)
            ((float *)data)[i] = golden_value(seed, i) > 0 ? 1 : 0;
        else
            ((int32_t *)data)[i] = keras_steps_below(seed, i, classes);
}

/* ---- the model and its graphs ---- */

/* `policy`: a bf16 model has the same f32 weights. */
static inline keras_steps keras_steps_open(const char *path, tp_model_policy policy,
                                           void (*need)(tpucl_status status))
{
    /* for models that are not compiled, which only predict */
    static const char *const stand_ins[] = {"loss={\"name\":\"mean_squared_error\"}",
                                            "optimizer={\"name\":\"SGD\"}"};
    keras_steps steps = {.need = need};
    need(tp_keras_import_file(path, NULL, &steps.import));
    need(tp_keras_check_findings(&steps.import->mapped.findings, path));
    const tp_keras_model *mapped = &steps.import->mapped;
    need(tp_config_parse(steps.import->config, strlen(steps.import->config), path, stand_ins,
                         steps.import->has_loss ? 0 : 2, &steps.config));
    tp_model_input inputs[TP_MODEL_MAX_INPUTS];
    for (int32_t i = 0; i < mapped->input_count; i++)
        inputs[i] = (tp_model_input){.dtype = mapped->inputs[i].is_integer ? TP_S32 : TP_F32,
                                     .shape = mapped->inputs[i].shape,
                                     .scale = 1,
                                     .is_integer = mapped->inputs[i].is_integer,
                                     .name = mapped->inputs[i].name};
    const tp_model_options options = {policy, policy == TP_POLICY_FLOAT32 ? TP_PRECISION_F32
                                                                          : TP_PRECISION_DEFAULT};
    need(tp_model_create_many(steps.config->model, inputs, mapped->input_count, &options,
                              &steps.model));
    return steps;
}

static inline void keras_steps_end_graph(keras_steps *steps)
{
    tp_reference_destroy(steps->reference);
    tp_graph_destroy(steps->graph);
    steps->reference = NULL;
    steps->graph = NULL;
}

static inline void keras_steps_close(keras_steps *steps)
{
    keras_steps_end_graph(steps);
    tp_model_destroy(steps->model);
    tp_config_destroy(steps->config);
    tp_keras_import_destroy(steps->import);
}

/* Starts `graph`, which is adopted, from tensors; slots of optimizers stay what they are. */
static inline void keras_steps_start(keras_steps *steps, tp_graph *graph,
                                     const tp_tensor_entry *tensors, int32_t count)
{
    keras_steps_end_graph(steps);
    steps->graph = graph;
    steps->need(tp_reference_create(graph, &(tp_reference_options){.cores = 1, .seed = 1},
                                    &steps->reference));
    for (int32_t i = 0; i < count; i++) {
        const int32_t variable = tp_graph_find_variable(graph, tensors[i].name);
        if (variable >= 0)
            memcpy(tp_reference_variable(steps->reference, 0, variable)->data, tensors[i].data,
                   tensors[i].bytes);
    }
}

/* One step on the data of `step`. */
static inline void keras_steps_run(keras_steps *steps, uint32_t step)
{
    const tp_graph *graph = steps->graph;
    const void *inputs[TP_MODEL_MAX_INPUTS + 3];
    for (int32_t i = 0; i < graph->input_count; i++) {
        const tp_node *node = tp_graph_node(graph, graph->inputs[i].node);
        const char *name = graph->inputs[i].name;
        float *data = calloc((size_t)tp_shape_elems(&node->shape) + 1, sizeof *data);
        if (strcmp(name, "label") == 0)
            keras_steps_fill_label(steps, 100 * step + 50, &node->shape, node->dtype, data);
        else if (strcmp(name, "weight") == 0)
            for (int k = 0; k < KERAS_STEPS_BATCH; k++)
                data[k] = 1;
        else if (strcmp(name, "denominator") == 0)
            data[0] = KERAS_STEPS_BATCH;
        else
            keras_steps_fill(name, 100 * step + (uint32_t)i, &node->shape, node->dtype, data);
        inputs[i] = data;
    }
    steps->need(tp_reference_step(steps->reference, inputs, step ? step - 1 : 0));
    for (int32_t i = 0; i < graph->input_count; i++)
        free((void *)(uintptr_t)inputs[i]);
}

/* An output by name, or the first one. */
static inline const tp_host_tensor *keras_steps_output(const keras_steps *steps, const char *name)
{
    for (int32_t i = 0; i < steps->graph->output_count; i++)
        if (!name || strcmp(steps->graph->outputs[i].name, name) == 0)
            return tp_reference_output(steps->reference, 0, i);
    return NULL;
}

/* What it predicts for the data of step 0; NULL tensors: with the weights of the file. */
static inline const tp_host_tensor *
keras_steps_predict(keras_steps *steps, const tp_tensor_entry *tensors, int32_t count)
{
    tp_graph *graph = NULL;
    steps->need(tp_model_build_predict(steps->model, KERAS_STEPS_BATCH, &graph));
    keras_steps_start(steps, graph, tensors ? tensors : steps->import->tensors,
                      tensors ? count : steps->import->tensor_count);
    keras_steps_run(steps, 0);
    return keras_steps_output(steps, NULL);
}

/* Losses of the steps, each before its update; the trained variables stay in steps->reference. */
static inline void keras_steps_train(keras_steps *steps, double losses[KERAS_STEPS_COUNT])
{
    const tp_config *config = steps->config;
    tp_optim_config optimizer = tp_optim_defaults((tp_optim_kind)config->optimizer.name);
#define NUMBER(field, low, high, open, meaning) optimizer.field = config->optimizer.field;
#define FLAG(field, meaning) optimizer.field = config->optimizer.field;
    TP_OPTIMIZER_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
    const tp_cross_shard alone = {.shards = 1};
    const tp_model_train train = {.batch = KERAS_STEPS_BATCH,
                                  .loss = (tp_model_loss)config->loss.name,
                                  .from_logits = config->loss.from_logits,
                                  .optimizer = &optimizer,
                                  .cross_shard = &alone};
    tp_graph *graph = NULL;
    steps->need(tp_model_build_train(steps->model, &train, &graph));
    keras_steps_start(steps, graph, steps->import->tensors, steps->import->tensor_count);
    for (uint32_t step = 1; step <= KERAS_STEPS_COUNT; step++) {
        keras_steps_run(steps, step);
        losses[step - 1] = (double)*(const float *)keras_steps_output(steps, "loss_sum")->data /
                           (double)*(const float *)keras_steps_output(steps, "weight_sum")->data;
    }
}

/* Largest difference, as a part of the largest expected value. */
static inline double keras_steps_difference(const float *found, const double *expected,
                                            int64_t count)
{
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(expected[i]));
        const double own = fabs((double)found[i] - expected[i]);
        difference = isnan(own) ? INFINITY : fmax(difference, own);
    }
    return difference / largest;
}

/* A bound of what bf16 changes. Each layer rounds its result, and each product its two operands, to 8 bits: by at most
 * 2^-8 of the value. Roundings are independent of each other, so that n of them one after the other add up to about
 * sqrt(n) of one (N. Higham, T. Mary, "A new approach to probabilistic rounding error analysis", 2019: sqrt(n) in place
 * of n). n: three for each layer with weights, one for every other. */
static inline double keras_steps_bf16_bound(const keras_steps *steps)
{
    double roundings = 0;
    for (int32_t i = 0; i < tp_model_row_count(steps->model); i++)
        roundings += tp_model_row_at(steps->model, i).params ? 3 : 1;
    return sqrt(roundings) / 256;
}

#endif
