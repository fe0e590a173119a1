/* SPDX-License-Identifier: Apache-2.0
 * A model's inputs and outputs, making and asking a model. See model.h; its layers are read by model_scope.c
 * and model_link.c.
 */
#include "model/model.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "model/model_scope.h"

/* ---- inputs ---- */

/* A scale of 0 is chosen here: 1/255 for bytes, unless a Rescaling layer takes them, and 1 for others. */
static void resolve_scale(tp_model *model, int32_t index)
{
    tp_model_input *input = &model->inputs[index];
    if (input->scale != 0.0) return;
    bool is_rescaled = false;
    for (int32_t i = 0; i < model->call_count; i++)
        for (int32_t j = 0; j < model->calls[i].layer.input_count; j++)
            is_rescaled = is_rescaled || (model->calls[i].inputs[j] == index &&
                                          model->calls[i].layer.type == &tp_layer_rescaling);
    const bool is_bytes = input->dtype == TP_U8 && !input->is_integer;
    input->scale = is_bytes && !is_rescaled ? 1.0 / 255 : 1.0;
}

static void check_input(const tp_model_input *input, tp_problems *problems)
{
    char shape[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&input->shape, shape, sizeof shape);
    if (input->dtype != TP_U8 && input->dtype != TP_S32 && !tp_dtype_is_float(input->dtype))
        tp_problems_add(problems, "the input is %s, expected u8, s32, f32 or bf16",
                        tp_dtype_name(input->dtype));
    if (input->is_integer && tp_dtype_is_float(input->dtype))
        tp_problems_add(problems, "the input is %s, the model takes integers",
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

/* The data for an input of this name; any name will do where there is one of each. */
static const tp_model_input *find_given(const tp_model_input *given, int32_t given_count,
                                        const tp_json *inputs, const char *name)
{
    if (given_count == 1 && inputs->count == 1) return given;
    for (int32_t i = 0; i < given_count; i++)
        if (strcmp(given[i].name, name) == 0) return &given[i];
    return NULL;
}

/* "shape" is a reshape of what the data hold: arrays of [n, time, features] are images of one channel to
 * the source, and a sequence to the model that says so. */
static void read_shape(const tp_json *value, tp_problems *problems, tp_shape *in_out)
{
    const tp_json *shape = tp_json_member(value, "shape");
    const tp_shape given = *in_out;
    char text[TP_SHAPE_TEXT_MAX], where[TP_JSON_WHERE_BYTES];
    int64_t dims[TP_MAX_RANK];
    if (!shape || !tp_problems_add_failed(problems, tp_json_expect(shape, TP_JSON_ARRAY))) return;
    const bool has_room = shape->count < TP_MAX_RANK; /* the batch comes in front */
    for (size_t i = 0; has_room && i < shape->count; i++)
        if (!tp_problems_add_failed(problems,
                                    tp_json_as_int64(&shape->items[i], 1, INT32_MAX, &dims[i])))
            return;
    if (has_room && tp_shape_init(in_out, (int)shape->count, dims) == TPUCL_OK &&
        tp_shape_elems(in_out) == tp_shape_elems(&given))
        return;
    *in_out = given;
    tp_shape_format(&given, text, sizeof text);
    tp_problems_add(problems, "%s: the data's examples are %s, expected as many elements",
                    tp_json_where(shape, where), text);
}

/* One element of "inputs". */
static void read_input(const tp_json *inputs, size_t index, const tp_model_input *given,
                       int32_t given_count, tp_problems *problems, tp_model_input *out,
                       const char **out_name)
{
    static const char *const keys[] = {"name", "shape", "dtype"};
    static const char *const dtypes[] = {"float32", "int32"};
    const tp_json *value = &inputs->items[index], *member;
    char where[TP_JSON_WHERE_BYTES];
    *out_name = "";
    if (!tp_problems_add_failed(problems, tp_json_expect(value, TP_JSON_OBJECT))) return;
    tp_problems_add_failed(problems, tp_json_check_keys(value, keys, 3));
    if (!tp_problems_add_failed(problems, tp_json_require(value, "name", TP_JSON_STRING, &member)))
        return;
    *out_name = member->string;
    const tp_model_input *found = find_given(given, given_count, inputs, member->string);
    if (!found) {
        tp_problems_add(problems, "%s: the data have no array '%.64s'",
                        tp_json_where(member, where), member->string);
        return;
    }
    *out = *found;
    out->is_integer = out->is_integer || out->dtype == TP_S32;
    read_shape(value, problems, &out->shape);
    const tp_json *dtype = tp_json_member(value, "dtype");
    size_t choice;
    if (!dtype || !tp_problems_add_failed(problems, tp_json_as_choice(dtype, dtypes, 2, &choice)))
        return;
    out->is_integer = choice == 1;
    if (choice == 1 && tp_dtype_is_float(found->dtype))
        tp_problems_add(problems, "%s: the data are %s", tp_json_where(dtype, where),
                        tp_dtype_name(found->dtype));
}

/* model->inputs, and the names that layers call them by. */
static tpucl_status read_inputs(tp_model *model, const tp_json *config, const tp_model_input *given,
                                int32_t given_count, tp_problems *problems, const char ***out_names)
{
    const tp_json *inputs = tp_json_member(config, "inputs");
    if (inputs && (!tp_problems_add_failed(problems, tp_json_expect(inputs, TP_JSON_ARRAY)) ||
                   inputs->count < 1 || inputs->count > TP_MODEL_MAX_INPUTS)) {
        char where[TP_JSON_WHERE_BYTES];
        if (inputs->kind == TP_JSON_ARRAY)
            tp_problems_add(problems, "%s: %zu inputs, expected 1 to %d",
                            tp_json_where(inputs, where), inputs->count, TP_MODEL_MAX_INPUTS);
        inputs = NULL;
    }
    const size_t count = inputs ? inputs->count : (size_t)given_count;
    model->inputs = TP_ARENA_NEW_ARRAY(model->arena, tp_model_input, count);
    *out_names = TP_ARENA_NEW_ARRAY(model->arena, const char *, count);
    if (!model->inputs || !*out_names) return TPUCL_OUT_OF_MEMORY;
    model->input_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        model->inputs[i] = given[i < (size_t)given_count ? i : 0];
        model->inputs[i].is_integer =
            model->inputs[i].is_integer || model->inputs[i].dtype == TP_S32;
        (*out_names)[i] = model->inputs[i].name;
        if (inputs)
            read_input(inputs, i, given, given_count, problems, &model->inputs[i],
                       &(*out_names)[i]);
        (*out_names)[i] = tp_arena_strdup(model->arena, (*out_names)[i]);
        model->inputs[i].name = tp_arena_strdup(model->arena, model->inputs[i].name);
        if (!(*out_names)[i] || !model->inputs[i].name) return TPUCL_OUT_OF_MEMORY;
    }
    return TPUCL_OK;
}

/* ---- layers ---- */

static tpucl_status link_model(tp_model_reader *reader, tp_model_scope *scope)
{
    tp_model *model = reader->model;
    const tp_model_place top = {.prefix = "", .weights_prefix = "", .trainable = true};
    const size_t outputs = (size_t)scope->output_count;
    int32_t inputs[TP_MODEL_MAX_INPUTS];
    int32_t *values = TP_ARENA_NEW_ARRAY(model->arena, int32_t, outputs + 1);
    model->outputs = TP_ARENA_NEW_ARRAY(model->arena, tp_model_port, outputs + 1);
    if (!values || !model->outputs) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < model->input_count; i++) {
        inputs[i] = i;
        TP_TRY(tp_model_add_value(model, &model->inputs[i].shape, -1));
    }
    TP_TRY(tp_model_scope_link(reader, scope, &top, inputs, values));
    model->output_count = scope->output_count;
    for (int32_t i = 0; i < model->output_count; i++)
        model->outputs[i] = (tp_model_port){scope->output_names[i], values[i]};
    return TPUCL_OK;
}

static tpucl_status read_model(tp_model *model, const tp_json *config, const tp_model_input *inputs,
                               int32_t input_count, tp_problems *problems)
{
    const char *name = "model";
    const char **names = NULL;
    for (int32_t i = 0; i < input_count; i++)
        check_input(&inputs[i], problems);
    if (!tp_problems_add_failed(problems, tp_json_expect(config, TP_JSON_OBJECT))) return TPUCL_OK;
    tp_problems_add_failed(problems, tp_json_get_string(config, "name", &name));
    model->name = tp_arena_strdup(model->arena, name);
    if (!model->name) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(read_inputs(model, config, inputs, input_count, problems, &names));
    tp_model_reader reader = {.model = model, .problems = problems};
    tp_model_scope scope;
    const bool is_readable = problems->count == 0;
    TP_TRY(tp_model_scope_read(&reader, config, names, model->input_count, &scope));
    if (is_readable) TP_TRY(link_model(&reader, &scope));
    for (int32_t i = 0; i < model->input_count; i++)
        resolve_scale(model, i);
    return TPUCL_OK;
}

/* ---- create, destroy ---- */

tpucl_status tp_model_create(const tp_json *config, const tp_model_input *input,
                             const tp_model_options *options, tp_model **out_model)
{
    tp_model_input named = *input;
    if (!named.name) named.name = "image";
    return tp_model_create_many(config, &named, 1, options, out_model);
}

tpucl_status tp_model_create_many(const tp_json *config, const tp_model_input *inputs,
                                  int32_t input_count, const tp_model_options *options,
                                  tp_model **out_model)
{
    tp_problems problems = {0};
    tpucl_status status;
    tp_model *model = TP_NEW(tp_model);
    if (!model) return TPUCL_OUT_OF_MEMORY;
    model->options = *options;
    TP_TRY_GOTO(status, tp_arena_create(0, &model->arena), done);
    TP_TRY_GOTO(status, read_model(model, config, inputs, input_count, &problems), done);
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
    return &model->values[model->outputs[0].value].shape;
}

int32_t tp_model_input_count(const tp_model *model)
{
    return model->input_count;
}

const tp_model_input *tp_model_input_at(const tp_model *model, int32_t index)
{
    return &model->inputs[index];
}

int32_t tp_model_output_count(const tp_model *model)
{
    return model->output_count;
}

const char *tp_model_output_name(const tp_model *model, int32_t index)
{
    return model->outputs[index].name;
}

const tp_shape *tp_model_output_shape(const tp_model *model, int32_t index)
{
    return &model->values[model->outputs[index].value].shape;
}

tp_model_policy tp_model_layer_policy(const tp_model *model, const tp_layer *layer)
{
    return layer->has_policy ? layer->policy : model->options.policy;
}

const char *tp_model_name(const tp_model *model)
{
    return model->name;
}

int32_t tp_model_row_count(const tp_model *model)
{
    return model->call_count;
}

tp_model_row tp_model_row_at(const tp_model *model, int32_t index)
{
    const tp_layer *layer = &model->calls[index].layer;
    const bool is_owner = model->calls[index].owner == index; /* weights count once */
    tp_model_row row = {
        .name = layer->name, .type = layer->type->name, .output = layer->outputs[0]};
    for (int32_t i = 0; is_owner && i < layer->weight_count; i++) {
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
    for (int32_t i = 0; i < model->call_count; i++) {
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
