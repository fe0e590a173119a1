/* SPDX-License-Identifier: Apache-2.0
 * What models are made of, for the tables of tools/coverage. A note "layer.golden Dense" is about the layer type
 * Dense; further parts are activation, loss, metric, optimizer and schedule. Columns, besides those of coverage.h:
 *     exists     there is such a thing: a row of the table
 *     keras      it goes into a Keras configuration and comes back as the same graph
 *     cores      several cores gave the value of one
 */
#ifndef TESTS_HARNESS_MODEL_COVERAGE_H
#define TESTS_HARNESS_MODEL_COVERAGE_H

#include <string.h>

#include "../../src/model/model_internal.h"
#include "harness/coverage.h"

/* Every layer type that the model calls; `column` is "layer.golden" and the like. */
static inline void coverage_note_model(const char *column, const tp_model *model)
{
    for (int32_t i = 0; i < model->call_count; i++)
        coverage_note(column, model->calls[i].layer.type->name);
}

/* Every activation that a model's JSON names; `column` is "activation.golden" and the like. */
static inline void coverage_note_activations(const char *column, const tp_json *model)
{
    for (size_t i = 0; i < model->count; i++) {
        const tp_json *item = &model->items[i];
        if (item->kind == TP_JSON_ARRAY || item->kind == TP_JSON_OBJECT)
            coverage_note_activations(column, item);
        else if (item->kind == TP_JSON_STRING && item->key && strstr(item->key, "activation"))
            coverage_note(column, item->string);
    }
}

#endif
