/* SPDX-License-Identifier: Apache-2.0
 * Reading a model from JSON: names, arguments, shapes, weights. See model.h.
 */
#include "model/model.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "model/model_internal.h"

enum { MAX_LAYERS = 10000 };

/* ---- names ---- */

static bool is_name_taken(const tp_model *model, const char *name)
{
    for (int32_t i = 0; i < model->layer_count; i++)
        if (model->layers[i].name && strcmp(model->layers[i].name, name) == 0) return true;
    return false;
}

/* Keras' numbering: dense, dense_1, dense_2, passing over what the user took. */
static tpucl_status give_names(tp_model *model)
{
    for (int32_t i = 0; i < model->layer_count; i++) {
        tp_layer *layer = &model->layers[i];
        if (layer->name || !layer->type) continue;
        const char *candidate = layer->type->snake;
        for (int32_t number = 1; is_name_taken(model, candidate); number++) {
            candidate = tp_arena_printf(model->arena, "%s_%d", layer->type->snake, number);
            if (!candidate) return TPUCL_OUT_OF_MEMORY;
        }
        layer->name = candidate;
    }
    return TPUCL_OK;
}

static void check_names(const tp_model *model, const tp_json *layers, tp_problems *problems)
{
    for (int32_t i = 0; i < model->layer_count; i++)
        for (int32_t j = 0; j < i; j++) {
            const char *name = model->layers[i].name;
            if (!name || !model->layers[j].name || strcmp(name, model->layers[j].name) != 0)
                continue;
            char where[TP_JSON_WHERE_BYTES];
            tp_problems_add(problems, "%s: layer %d is named '%s', too",
                            tp_json_where(&layers->items[i], where), j, name);
        }
}

/* ---- layers ---- */

static void add_where(tp_problems *problems, const tp_json *value, const tp_layer *layer,
                      const tp_problems *found)
{
    char where[TP_JSON_WHERE_BYTES];
    tp_problems_add(problems, "%s: %s '%s': %s", tp_json_where(value, where), layer->type->name,
                    layer->name ? layer->name : layer->type->snake, found->text);
}

/* Shapes from the first layer to the last, as far as they are known. */
static void infer_layers(tp_model *model, const tp_json *layers, tp_problems *problems)
{
    const tp_shape *input = &model->input.shape;
    for (int32_t i = 0; i < model->layer_count; i++) {
        tp_layer *layer = &model->layers[i];
        tp_problems found = {0};
        layer->inputs = input;
        layer->input_count = 1;
        const bool is_fine = layer->type->infer(layer, &found);
        if (layer->is_out_of_memory) tp_problems_add_failed(&found, TPUCL_OUT_OF_MEMORY);
        problems->is_out_of_memory = problems->is_out_of_memory || found.is_out_of_memory;
        if (!is_fine || found.count) {
            add_where(problems, &layers->items[i], layer, &found);
            return;
        }
        input = &layer->outputs[0];
        const tp_shape shape = *input;
        if (shape.rank >= TP_MAX_RANK || tp_shape_elems(&shape) < 1) {
            char text[TP_SHAPE_TEXT_MAX];
            tp_shape_format(&shape, text, sizeof text);
            tp_problems_add(&found, "the result %s is empty or has too many dimensions", text);
            add_where(problems, &layers->items[i], layer, &found);
            return;
        }
    }
}

static tpucl_status read_layers(tp_model *model, const tp_json *layers, tp_problems *problems)
{
    char where[TP_JSON_WHERE_BYTES];
    if (layers->count < 1 || layers->count > MAX_LAYERS) {
        tp_problems_add(problems, "%s: %zu layers, expected 1 to %d", tp_json_where(layers, where),
                        layers->count, MAX_LAYERS);
        return TPUCL_OK;
    }
    model->layers = TP_ARENA_NEW_ARRAY(model->arena, tp_layer, layers->count);
    if (!model->layers) return TPUCL_OUT_OF_MEMORY;
    model->layer_count = (int32_t)layers->count;
    bool is_readable = true;
    for (int32_t i = 0; i < model->layer_count; i++) {
        tp_layer *layer = &model->layers[i];
        is_readable =
            tp_layer_read(&layers->items[i], model->arena, problems, layer) && is_readable;
    }
    check_names(model, layers, problems);
    TP_TRY(give_names(model));
    if (is_readable) infer_layers(model, layers, problems);
    return TPUCL_OK;
}

/* ---- input ---- */

/* A scale of 0 is chosen here: 1/255 for bytes, unless a Rescaling layer does it, and 1 for floats. */
static void resolve_scale(tp_model *model)
{
    if (model->input.scale != 0.0) return;
    const bool is_rescaled = model->layer_count > 0 && model->layers[0].type == &tp_layer_rescaling;
    model->input.scale = model->input.dtype == TP_U8 && !is_rescaled ? 1.0 / 255 : 1.0;
}

static void check_input(const tp_model_input *input, tp_problems *problems)
{
    char shape[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&input->shape, shape, sizeof shape);
    if (input->dtype != TP_U8 && input->dtype != TP_F32)
        tp_problems_add(problems, "the input is %s, expected u8 or f32",
                        tp_dtype_name(input->dtype));
    if (input->shape.rank >= TP_MAX_RANK || tp_shape_elems(&input->shape) < 1)
        tp_problems_add(problems,
                        "an input example is %s, expected 1 or more elements in fewer than %d "
                        "dimensions",
                        shape, TP_MAX_RANK);
    if (!(fabs(input->scale) <= FLT_MAX) || !(fabs(input->offset) <= FLT_MAX))
        tp_problems_add(problems,
                        "the input's scale is %g and its offset %g, expected finite numbers",
                        input->scale, input->offset);
}

/* ---- create, destroy ---- */

static tpucl_status read_model(tp_model *model, const tp_json *config, tp_problems *problems)
{
    static const char *const keys[] = {"name", "layers"};
    const char *name = "model";
    check_input(&model->input, problems);
    if (!tp_problems_add_failed(problems, tp_json_expect(config, TP_JSON_OBJECT))) return TPUCL_OK;
    tp_problems_add_failed(problems, tp_json_check_keys(config, keys, 2));
    tp_problems_add_failed(problems, tp_json_get_string(config, "name", &name));
    model->name = tp_arena_strdup(model->arena, name);
    if (!model->name) return TPUCL_OUT_OF_MEMORY;
    const tp_json *layers;
    if (!tp_problems_add_failed(problems,
                                tp_json_require(config, "layers", TP_JSON_ARRAY, &layers)))
        return TPUCL_OK;
    TP_TRY(read_layers(model, layers, problems));
    resolve_scale(model);
    return TPUCL_OK;
}

tpucl_status tp_model_create(const tp_json *config, const tp_model_input *input,
                             const tp_model_options *options, tp_model **out_model)
{
    tp_problems problems = {0};
    tpucl_status status;
    tp_model *model = TP_NEW(tp_model);
    if (!model) return TPUCL_OUT_OF_MEMORY;
    model->input = *input;
    model->options = *options;
    TP_TRY_GOTO(status, tp_arena_create(0, &model->arena), done);
    TP_TRY_GOTO(status, read_model(model, config, &problems), done);
    TP_TRY_GOTO(status, tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "the model"), done);
    *out_model = model;
    return TPUCL_OK;
done:
    tp_model_destroy(model);
    return status;
}

void tp_model_destroy(tp_model *model)
{
    if (!model) return;
    tp_arena_destroy(model->arena);
    tp_free(model);
}

/* ---- questions ---- */

const tp_shape *tp_model_output(const tp_model *model)
{
    return &model->layers[model->layer_count - 1].outputs[0];
}

bool tp_model_layer_is_bfloat16(const tp_model *model, const tp_layer *layer)
{
    if (layer->dtype) return layer->dtype == 2;
    return model->options.policy == TP_POLICY_MIXED_BFLOAT16;
}

const char *tp_model_name(const tp_model *model)
{
    return model->name;
}

int32_t tp_model_row_count(const tp_model *model)
{
    return model->layer_count;
}

tp_model_row tp_model_row_at(const tp_model *model, int32_t index)
{
    const tp_layer *layer = &model->layers[index];
    tp_model_row row = {
        .name = layer->name, .type = layer->type->name, .output = layer->outputs[0]};
    for (int32_t i = 0; i < layer->weight_count; i++) {
        const int64_t elems = tp_shape_elems(&layer->weights[i].shape);
        row.params += elems;
        if (layer->trainable && layer->weights[i].is_trainable) row.trainable_params += elems;
    }
    return row;
}

tpucl_status tp_model_summary(const tp_model *model, char **out_text)
{
    tp_str_builder text = {0};
    int64_t params = 0, trainable = 0;
    tp_str_builder_printf(&text, "Model: %s\n%-34s %-24s %12s\n", model->name, "Layer (type)",
                          "Output shape", "Params");
    for (int32_t i = 0; i < model->layer_count; i++) {
        const tp_model_row row = tp_model_row_at(model, i);
        char shape[TP_SHAPE_TEXT_MAX], label[96];
        tp_shape_format(&row.output, shape, sizeof shape);
        snprintf(label, sizeof label, "%s (%s)", row.name, row.type);
        tp_str_builder_printf(&text, "%-34s %-24s %12lld\n", label, shape, (long long)row.params);
        params += row.params;
        trainable += row.trainable_params;
    }
    tp_str_builder_printf(&text, "Params: %lld, of which trainable: %lld\n", (long long)params,
                          (long long)trainable);
    return tp_str_builder_finish(&text, out_text, NULL);
}
