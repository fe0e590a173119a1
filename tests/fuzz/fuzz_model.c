/* SPDX-License-Identifier: Apache-2.0
 * A configuration's "model" object: whatever it holds, reading gives a model, whose graphs can be built or say
 * why not, or a message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_sentence(tpucl_status status)
{
    if (status != TPUCL_OK && tpucl_last_error()->message[0] == '\0') abort();
}

static void build(const tp_model *model)
{
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    const tp_cross_shard two = {.shards = 2};
    const tp_model_train train = {.batch = 2,
                                  .loss = TP_MODEL_LOSS_MEAN_SQUARED_ERROR,
                                  .optimizer = &optimizer,
                                  .cross_shard = &two};
    tp_graph *graph = NULL;
    tpucl_status status = tp_model_build_predict(model, 2, &graph);
    require_sentence(status);
    if (status == TPUCL_OK) tp_graph_destroy(graph);
    status = tp_model_build_train(model, &train, &graph);
    require_sentence(status);
    if (status == TPUCL_OK) tp_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tp_model_input inputs[] = {
        {.dtype = TP_F32, .shape = {.rank = 3, .dims = {8, 6, 4}}, .name = "image"},
        {.dtype = TP_S32, .shape = {.rank = 1, .dims = {6}}, .name = "words"}};
    const tp_model_options options = {TP_POLICY_MIXED_BFLOAT16, TP_PRECISION_DEFAULT};
    tp_json_document *document = NULL;
    tp_error_clear();
    tpucl_status status = tp_json_parse((const char *)data, size, "fuzz", &document);
    require_sentence(status);
    if (status != TPUCL_OK) return 0;
    const tp_json *root = tp_json_root(document);
    const int32_t count = tp_json_member(root, "inputs") ? 2 : 1;
    tp_model *model = NULL;
    status = tp_model_create_many(root, inputs, count, &options, &model);
    require_sentence(status);
    if (status == TPUCL_OK) {
        char *text = NULL;
        if (tp_model_summary(model, &text) != TPUCL_OK) abort();
        tp_free(text);
        build(model);
        tp_model_destroy(model);
    }
    tp_json_destroy(document);
    return 0;
}
