/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: what configurations of Keras mean. What was mapped must be a model object that tpucl's reader
 * takes or refuses with a sentence; what was refused must have findings or a sentence. */
#include <stdlib.h>
#include <string.h>
#include "keras/import.h"

static void require(bool condition)
{
    if (!condition) abort();
}

static void require_sentence(tpucl_status status)
{
    require(tpucl_last_error()->status == status && tpucl_last_error()->message[0]);
}

static void check_model(const tp_keras_model *mapped)
{
    tp_json_document *document;
    tp_model *model = NULL;
    tp_model_input inputs[TP_MODEL_MAX_INPUTS];
    const tp_model_options options = {TP_POLICY_FLOAT32, TP_PRECISION_F32};
    /* deeper than the reader allows is all that can be wrong with the text */
    const tpucl_status parsed =
        tp_json_parse(mapped->json, strlen(mapped->json), "mapped", &document);
    if (parsed != TPUCL_OK) {
        require_sentence(parsed);
        return;
    }
    if (mapped->input_count <= TP_MODEL_MAX_INPUTS) {
        for (int32_t i = 0; i < mapped->input_count; i++)
            inputs[i] = (tp_model_input){.dtype = mapped->inputs[i].is_integer ? TP_S32 : TP_F32,
                                         .shape = mapped->inputs[i].shape,
                                         .scale = 1,
                                         .is_integer = mapped->inputs[i].is_integer,
                                         .name = mapped->inputs[i].name};
        const tpucl_status status = tp_model_create_many(tp_json_root(document), inputs,
                                                         mapped->input_count, &options, &model);
        if (status != TPUCL_OK) require_sentence(status);
        tp_model_destroy(model);
    }
    tp_json_destroy(document);
}

static void check_map(const tp_json *config, const tp_keras_map_options *options)
{
    tp_arena *arena;
    tp_keras_model mapped;
    const char *compiled;
    require(tp_arena_create(0, &arena) == TPUCL_OK);
    tpucl_status status = tp_keras_map(config, options, arena, &mapped);
    if (status != TPUCL_OK)
        require_sentence(status);
    else if (mapped.json)
        check_model(&mapped);
    else
        require(tp_keras_check_findings(&mapped.findings, "fuzz") != TPUCL_OK);
    const tp_json *compile = tp_json_member(config, "compile_config");
    tp_keras_findings findings = {0};
    if (compile && compile->kind == TP_JSON_OBJECT) {
        status = tp_keras_map_compile(compile, arena, &findings, &compiled);
        if (status != TPUCL_OK) require_sentence(status);
    }
    tp_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tp_keras_map_options options = {tp_keras_has_type, tp_keras_has_argument};
    tp_json_document *document;
    const tpucl_status status = tp_json_parse((const char *)data, size, "fuzz", &document);
    if (status != TPUCL_OK) {
        require_sentence(status);
        return 0;
    }
    check_map(tp_json_root(document), &options);
    check_map(tp_json_root(document), NULL);
    tp_json_destroy(document);
    return 0;
}
