/* SPDX-License-Identifier: Apache-2.0
 * A model and the models inside it, written as tpucl's "model" object.
 */
#include "keras/map.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/problems.h"
#include "core/str.h"
#include "keras/map_internal.h"

/* ---- findings ---- */

static const struct {
    const char *name;
    bool is_error;
} rules[] = {
#define RULE_ROW(id, name, is_error) {name, is_error},
    TP_KERAS_RULES(RULE_ROW)
#undef RULE_ROW
};

const char *tp_keras_rule_name(tp_keras_rule rule)
{
    return rules[rule].name;
}

tpucl_status tp_keras_find(tp_arena *arena, tp_keras_findings *findings, tp_keras_rule rule,
                           const char *layer, const char *kind, const char *remedy,
                           const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (findings->count == findings->capacity) {
        const int32_t capacity = findings->capacity ? 2 * findings->capacity : 8;
        tp_keras_finding *more = TP_ARENA_NEW_ARRAY(arena, tp_keras_finding, (size_t)capacity);
        if (!more) return TPUCL_OUT_OF_MEMORY;
        if (findings->count) memcpy(more, findings->items, (size_t)findings->count * sizeof *more);
        findings->items = more;
        findings->capacity = capacity;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tp_keras_finding *finding = &findings->items[findings->count];
    *finding = (tp_keras_finding){.rule = rule,
                                  .is_error = rules[rule].is_error,
                                  .layer = tp_arena_strdup(arena, layer),
                                  .kind = tp_arena_strdup(arena, kind),
                                  .what = tp_arena_strdup(arena, text),
                                  .remedy = tp_arena_strdup(arena, remedy)};
    if (!finding->layer || !finding->kind || !finding->what || !finding->remedy)
        return TPUCL_OUT_OF_MEMORY;
    findings->count++;
    return TPUCL_OK;
}

tpucl_status tp_keras_check_findings(const tp_keras_findings *findings, const char *what)
{
    tp_problems problems = {0};
    for (int32_t i = 0; i < findings->count; i++) {
        const tp_keras_finding *f = &findings->items[i];
        if (!f->is_error) continue;
        tp_problems_add(&problems, "%s%s%s%s%s%s%s%s", f->kind, *f->kind ? " " : "",
                        *f->layer ? "'" : "", f->layer, *f->layer ? "': " : "", f->what,
                        *f->remedy ? "; " : "", f->remedy);
    }
    return tp_problems_result(&problems, TPUCL_INVALID_CONFIG, what);
}

/* ---- inputs ---- */

/* The shape of one example. A dimension that is not known is a finding. */
static bool is_set(const tp_json *config, const char *key)
{
    const tp_json *value = tp_keras_member(config, key);
    return value && value->kind == TP_JSON_BOOL && value->boolean;
}

/* What an input holds that tensors here cannot, or hold otherwise. */
static tpucl_status check_input(tp_keras_mapper *mapper, const tp_keras_row *row)
{
    const char *dtype = row->json ? tp_keras_policy_name(row->config) : NULL;
    const char *odd = is_set(row->config, "ragged")   ? "ragged"
                      : is_set(row->config, "sparse") ? "sparse"
                                                      : NULL;
    if (odd)
        TP_TRY(tp_keras_find(
            mapper->arena, mapper->findings, TP_KERAS_DYNAMIC_SHAPE, row->name, "InputLayer",
            "pad to the longest and mask (Masking, mask_zero of an Embedding)",
            "it is %s: how long it is depends on the example; shapes are fixed on a "
            "TPU and here",
            odd));
    if (dtype && strcmp(dtype, "string") == 0)
        return tp_keras_find(
            mapper->arena, mapper->findings, TP_KERAS_TEXT, row->name, "InputLayer",
            "feed class numbers, made while preparing the data",
            "it takes strings, which a TPU does not have; tensors here hold no text");
    if (dtype && (strstr(dtype, "int64") || strcmp(dtype, "uint32") == 0))
        return tp_keras_find(
            mapper->arena, mapper->findings, TP_KERAS_WIDE, row->name, "InputLayer",
            "give it dtype='int32'; larger numbers need another form",
            "its dtype is %s; a TPU has no 64-bit integers, and here it is int32", dtype);
    if (dtype && strcmp(dtype, "float64") == 0)
        return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_WIDE, row->name,
                             "InputLayer", "give it dtype='float32'",
                             "its dtype is float64, which a TPU does not have; here it is float32");
    return TPUCL_OK;
}

static tpucl_status read_shape(tp_keras_mapper *mapper, const tp_json *config, const char *name,
                               tp_shape *out_shape)
{
    static const char *const keys[] = {"batch_shape", "batch_input_shape", "build_input_shape",
                                       "input_shape"};
    static const char remedy[] =
        "give the model a fixed shape (keras.Input(shape=...)) and save it again";
    const tp_json *value = NULL;
    int64_t dims[TP_MAX_RANK];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!value) value = tp_keras_member(config, keys[i]);
    *out_shape = (tp_shape){0};
    if (!value || value->kind != TP_JSON_ARRAY || value->count < 1)
        return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_DYNAMIC_SHAPE, name,
                             "InputLayer", remedy, "the file does not say the shape of this input");
    if (value->count > TP_MAX_RANK)
        return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_DYNAMIC_SHAPE, name,
                             "InputLayer", "", "it has %zu dimensions, expected at most %d",
                             value->count, TP_MAX_RANK);
    for (size_t i = 1; i < value->count; i++) {
        if (value->items[i].kind == TP_JSON_NULL)
            return tp_keras_find(
                mapper->arena, mapper->findings, TP_KERAS_DYNAMIC_SHAPE, name, "InputLayer", remedy,
                "dimension %zu of the input is open (None); shapes are fixed on a TPU "
                "and here",
                i);
        TP_TRY(tp_json_as_int64(&value->items[i], 1, TP_MAX_ELEMS, &dims[i - 1]));
    }
    return tp_shape_init(out_shape, (int)value->count - 1, dims);
}

/* Class numbers and positions: by the input's dtype, or because an Embedding takes it, whatever Keras' default
 * of float32 says. */
static bool is_integer_input(const tp_keras_graph *graph, const tp_keras_row *row)
{
    const char *dtype = tp_keras_policy_name(row->config);
    if (row->json && dtype && strstr(dtype, "int") && strcmp(dtype, "uint8") != 0) return true;
    for (size_t i = 0; i < graph->calls.count; i++) {
        const tp_keras_call *call = &graph->calls.items[i];
        if (strcmp(graph->rows.items[call->layer].kind, "Embedding") != 0) continue;
        for (size_t k = 0; k < call->inputs.count; k++)
            if (strcmp(call->inputs.items[k].layer, row->file_name) == 0) return true;
    }
    return false;
}

static tpucl_status write_inputs(tp_keras_mapper *mapper, tp_keras_graph *graph,
                                 tp_json_writer *writer, tp_keras_model *model)
{
    tp_keras_input *inputs = TP_ARENA_NEW_ARRAY(mapper->arena, tp_keras_input, graph->inputs.count);
    if (!inputs) return TPUCL_OUT_OF_MEMORY;
    tp_json_key(writer, "inputs");
    tp_json_begin_array(writer);
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const tp_keras_call *call = tp_keras_graph_call(graph, &graph->inputs.items[i]);
        const tp_keras_row *row = &graph->rows.items[call->layer];
        inputs[i].name = row->name;
        inputs[i].is_integer = is_integer_input(graph, row);
        TP_TRY(check_input(mapper, row));
        TP_TRY(read_shape(mapper, row->config, row->name, &inputs[i].shape));
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "name", row->name);
        tp_json_key(writer, "shape");
        tp_json_begin_inline_array(writer);
        for (int d = 0; d < inputs[i].shape.rank; d++)
            tp_json_write_int(writer, inputs[i].shape.dims[d]);
        tp_json_end_array(writer);
        tp_json_put_string(writer, "dtype", inputs[i].is_integer ? "int32" : "float32");
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
    model->inputs = inputs;
    model->input_count = (int32_t)graph->inputs.count;
    return TPUCL_OK;
}

/* ---- calls ---- */

/* "name" or "name:1" of what a reference means. */
static const char *ref_name(const tp_keras_mapper *mapper, const tp_keras_graph *graph,
                            const tp_keras_ref *ref)
{
    const tp_keras_call *call = tp_keras_graph_call(graph, ref);
    const tp_keras_row *row = &graph->rows.items[call->layer];
    const char *name = row->is_input ? row->name : call->name;
    if (ref->tensor == 0) return name;
    return tp_arena_printf(mapper->arena, "%s:%lld", name, (long long)ref->tensor);
}

static bool is_layer_name(const tp_keras_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->rows.count; i++)
        if (strcmp(graph->rows.items[i].name, name) == 0) return true;
    return false;
}

/* Later calls of a layer have names of their own: both_again, both_again_2. */
static tpucl_status name_call(const tp_keras_mapper *mapper, const tp_keras_graph *graph,
                              const tp_keras_row *row, tp_keras_call *call)
{
    call->name = row->name;
    if (row->definition < 0) return TPUCL_OK;
    int32_t number = call->node;
    do {
        call->name = number == 1 ? tp_arena_printf(mapper->arena, "%s_again", row->name)
                                 : tp_arena_printf(mapper->arena, "%s_again_%d", row->name, number);
        if (!call->name) return TPUCL_OUT_OF_MEMORY;
        number += 1000;
    } while (is_layer_name(graph, call->name));
    return TPUCL_OK;
}

/* A layer that takes what the row before it gives (`before`, or the only input) need not say so. */
static tpucl_status write_call_inputs(const tp_keras_mapper *mapper, const tp_keras_graph *graph,
                                      const tp_keras_call *call, const char *before,
                                      tp_json_writer *writer)
{
    const char *first = NULL;
    if (call->inputs.count == 1) first = ref_name(mapper, graph, &call->inputs.items[0]);
    if (call->inputs.count == 1 && !first) return TPUCL_OUT_OF_MEMORY;
    if (first && before && strcmp(first, before) == 0) return TPUCL_OK;
    tp_json_key(writer, "inputs");
    if (first) {
        tp_json_write_string(writer, first);
        return TPUCL_OK;
    }
    tp_json_begin_inline_array(writer);
    for (size_t i = 0; i < call->inputs.count; i++) {
        const char *name = ref_name(mapper, graph, &call->inputs.items[i]);
        if (!name) return TPUCL_OUT_OF_MEMORY;
        tp_json_write_string(writer, name);
    }
    tp_json_end_array(writer);
    return TPUCL_OK;
}

/* ---- layers, models ---- */

static tpucl_status write_graph(tp_keras_mapper *mapper, tp_keras_graph *graph,
                                const tp_keras_place *place, tp_json_writer *writer);

/* Where the models inside a layer's row stand. */
static tpucl_status inner_place(const tp_keras_mapper *mapper, const tp_keras_row *row,
                                const tp_keras_place *place, const char *own_place,
                                tp_keras_place *out)
{
    *out = (tp_keras_place){.prefix =
                                tp_arena_printf(mapper->arena, "%s%s/", place->prefix, row->name),
                            .place = tp_arena_printf(mapper->arena, "%s/", own_place),
                            .owner = place->owner ? place->owner : row->file_name,
                            .is_trainable = place->is_trainable,
                            .depth = place->depth + 1};
    const tp_json *trainable = tp_keras_member(row->config, "trainable");
    if (trainable && trainable->kind == TP_JSON_BOOL && !trainable->boolean)
        out->is_trainable = false;
    return out->prefix && out->place ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status write_nested(tp_keras_mapper *mapper, const tp_keras_row *row,
                                 const tp_keras_place *place, tp_json_writer *writer)
{
    tp_keras_graph graph;
    if (place->depth > TP_KERAS_MAX_NESTING)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "'%s' is a model inside more than %d others",
                       place->prefix, TP_KERAS_MAX_NESTING);
    tpucl_status status = tp_keras_graph_read(mapper, row->json, place->prefix, &graph);
    if (status == TPUCL_OK) {
        tp_json_put_string(writer, "type", graph.is_sequential ? "Sequential" : "Functional");
        tp_json_key(writer, "model_inputs");
        tp_json_begin_inline_array(writer);
        for (size_t i = 0; i < graph.inputs.count; i++)
            tp_json_write_string(
                writer,
                graph.rows.items[tp_keras_graph_call(&graph, &graph.inputs.items[i])->layer].name);
        tp_json_end_array(writer);
        status = write_graph(mapper, &graph, place, writer);
    }
    tp_keras_graph_deinit(&graph);
    return status;
}

/* "layers/dense_1": number among the layers of the model that have the same class. */
static const char *place_of(const tp_keras_mapper *mapper, const tp_keras_graph *graph,
                            int32_t index, const tp_keras_place *place)
{
    int number = 0;
    const char *kind = graph->rows.items[index].kind;
    for (int32_t i = 0; i < index; i++)
        if (!graph->rows.items[i].is_op && strcmp(graph->rows.items[i].kind, kind) == 0) number++;
    const char *snake = tp_keras_container(mapper->arena, kind);
    if (!snake) return NULL;
    return number ? tp_arena_printf(mapper->arena, "%slayers/%s_%d", place->place, snake, number)
                  : tp_arena_printf(mapper->arena, "%slayers/%s", place->place, snake);
}

static tpucl_status write_definition(tp_keras_mapper *mapper, tp_keras_graph *graph, int32_t index,
                                     const tp_keras_place *place, tp_json_writer *writer)
{
    tp_keras_row *row = &graph->rows.items[index];
    const char *own = place_of(mapper, graph, index, place);
    if (!own) return TPUCL_OUT_OF_MEMORY;
    tp_json_put_string(writer, "name", row->name);
    const tp_json *trainable = tp_keras_member(row->config, "trainable");
    const bool is_frozen = trainable && trainable->kind == TP_JSON_BOOL && !trainable->boolean;
    if (is_frozen) tp_json_put_bool(writer, "trainable", false);
    if (row->is_model) {
        tp_keras_place inner;
        TP_TRY(inner_place(mapper, row, place, own, &inner));
        row->nested_first = (int32_t)mapper->layers.count;
        TP_TRY(write_nested(mapper, row, &inner, writer));
        row->nested_count = (int32_t)mapper->layers.count - row->nested_first;
        return TPUCL_OK;
    }
    const char *name = tp_arena_printf(mapper->arena, "%s%s", place->prefix, row->name);
    if (!name) return TPUCL_OUT_OF_MEMORY;
    return tp_keras_write_layer(mapper, row, name, writer);
}

static tpucl_status write_calls(tp_keras_mapper *mapper, tp_keras_graph *graph,
                                const tp_keras_place *place, tp_json_writer *writer)
{
    const char *before = NULL;
    if (graph->inputs.count == 1) before = ref_name(mapper, graph, &graph->inputs.items[0]);
    tp_json_key(writer, "layers");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < graph->order_count; i++) {
        tp_keras_call *call = &graph->calls.items[graph->order[i]];
        tp_keras_row *row = &graph->rows.items[call->layer];
        TP_TRY(name_call(mapper, graph, row, call));
        tp_json_begin_object(writer);
        if (row->definition < 0) {
            row->definition = graph->order[i];
            TP_TRY(write_definition(mapper, graph, call->layer, place, writer));
        } else {
            tp_json_put_string(writer, "layer", row->name);
            tp_json_put_string(writer, "name", call->name);
        }
        TP_TRY(write_call_inputs(mapper, graph, call, before, writer));
        tp_json_end_object(writer);
        before = call->name;
    }
    tp_json_end_array(writer);
    return TPUCL_OK;
}

static tpucl_status list_layer(tp_keras_mapper *mapper, const tp_keras_graph *graph, int32_t index,
                               const tp_keras_place *place)
{
    const tp_keras_row *row = &graph->rows.items[index];
    const tp_json *trainable = tp_keras_member(row->config, "trainable");
    const bool is_frozen = trainable && trainable->kind == TP_JSON_BOOL && !trainable->boolean;
    const tp_keras_layer layer = {
        .name = tp_arena_printf(mapper->arena, "%s%s", place->prefix, row->name),
        .kind = tp_arena_strdup(mapper->arena, row->kind),
        .place = place_of(mapper, graph, index, place),
        .owner = tp_arena_strdup(mapper->arena, place->owner ? place->owner : row->file_name),
        .is_trainable = place->is_trainable && !is_frozen};
    if (!layer.name || !layer.kind || !layer.place || !layer.owner) return TPUCL_OUT_OF_MEMORY;
    return tp_keras_layers_push(&mapper->layers, layer);
}

/* All layers of the model in the file's order, those of nested models where these stand: the order of weights by
 * names. Nested models have been written before, and so their layers are at the end of the list already. */
static tpucl_status list_layers(tp_keras_mapper *mapper, const tp_keras_graph *graph,
                                const tp_keras_place *place, size_t first)
{
    const size_t count = mapper->layers.count - first;
    tp_keras_layer *nested = TP_ARENA_NEW_ARRAY(mapper->arena, tp_keras_layer, count + 1);
    if (!nested) return TPUCL_OUT_OF_MEMORY;
    if (count) memcpy(nested, mapper->layers.items + first, count * sizeof *nested);
    mapper->layers.count = first;
    for (int32_t i = 0; i < (int32_t)graph->rows.count; i++) {
        const tp_keras_row *row = &graph->rows.items[i];
        if (row->is_input || row->is_op || row->definition < 0) continue;
        if (!row->is_model)
            TP_TRY(list_layer(mapper, graph, i, place));
        else
            TP_TRY(tp_keras_layers_append(&mapper->layers, nested + (row->nested_first - first),
                                          (size_t)row->nested_count));
    }
    return TPUCL_OK;
}

/* "layers" and "outputs" as members of the object that is open. */
static tpucl_status write_graph(tp_keras_mapper *mapper, tp_keras_graph *graph,
                                const tp_keras_place *place, tp_json_writer *writer)
{
    const size_t first = mapper->layers.count;
    TP_TRY(write_calls(mapper, graph, place, writer));
    tp_json_key(writer, "outputs");
    tp_json_begin_inline_array(writer);
    for (size_t i = 0; i < graph->outputs.count; i++) {
        const char *name = ref_name(mapper, graph, &graph->outputs.items[i]);
        if (!name) return TPUCL_OUT_OF_MEMORY;
        tp_json_write_string(writer, name);
    }
    tp_json_end_array(writer);
    return list_layers(mapper, graph, place, first);
}

/* ---- the whole ---- */

/* A class of the user's own that was made like a Functional model can be read as one; others hold code. */
static tpucl_status check_class(tp_keras_mapper *mapper, const tp_json *config, bool *out_is_model)
{
    const char *kind = tp_keras_class(config);
    const tp_json *inner = tp_keras_member(config, "config");
    const bool has_layers =
        inner && (inner->kind == TP_JSON_ARRAY ||
                  (tp_keras_member(inner, "layers") &&
                   (strcmp(kind, "Sequential") == 0 || tp_keras_member(inner, "output_layers"))));
    *out_is_model = has_layers;
    if (has_layers) return TPUCL_OK;
    if (!*kind || !inner)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "the configuration has no 'class_name' and 'config': no Keras model");
    return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_PYTHON, "", kind,
                         "write the model with keras.Sequential or keras.Model(inputs, outputs)",
                         "it is a class of your own; its code is not in the file");
}

static tpucl_status write_model(tp_keras_mapper *mapper, const tp_json *config,
                                tp_json_writer *writer, tp_keras_model *model)
{
    static const tp_keras_place top = {.prefix = "", .place = "", .is_trainable = true};
    tp_keras_graph graph;
    tpucl_status status = tp_keras_graph_read(mapper, config, "", &graph);
    if (status == TPUCL_OK) {
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "name", model->name);
        status = write_inputs(mapper, &graph, writer, model);
        if (status == TPUCL_OK) status = write_graph(mapper, &graph, &top, writer);
        tp_json_end_object(writer);
    }
    tp_keras_graph_deinit(&graph);
    return status;
}

static tpucl_status finish(tp_keras_mapper *mapper, tp_json_writer *writer, tp_keras_model *model)
{
    char *text;
    bool has_errors = false;
    TP_TRY(tp_json_writer_finish(writer, &text));
    for (int32_t i = 0; i < model->findings.count; i++)
        has_errors = has_errors || model->findings.items[i].is_error;
    model->json = has_errors ? NULL : tp_arena_strdup(mapper->arena, text);
    tp_free(text);
    if (!has_errors && !model->json) return TPUCL_OUT_OF_MEMORY;
    model->policy = mapper->policy ? mapper->policy : "float32";
    model->layer_count = (int32_t)mapper->layers.count;
    tp_keras_layer *layers =
        TP_ARENA_NEW_ARRAY(mapper->arena, tp_keras_layer, mapper->layers.count + 1);
    if (!layers) return TPUCL_OUT_OF_MEMORY;
    if (model->layer_count)
        memcpy(layers, mapper->layers.items, mapper->layers.count * sizeof *layers);
    model->layers = layers;
    return TPUCL_OK;
}

tpucl_status tp_keras_map(const tp_json *config, const tp_keras_map_options *options,
                          tp_arena *arena, tp_keras_model *out_model)
{
    tp_keras_mapper mapper = {.arena = arena, .options = options};
    tp_json_writer writer = {0};
    bool is_model = false;
    *out_model = (tp_keras_model){.name = "model"};
    mapper.findings = &out_model->findings;
    const tp_json *inner = tp_keras_member(config, "config");
    const tp_json *name = inner ? tp_keras_member(inner, "name") : NULL;
    if (name && name->kind == TP_JSON_STRING && *name->string)
        out_model->name = tp_arena_strdup(arena, name->string);
    tpucl_status status = out_model->name ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) status = check_class(&mapper, config, &is_model);
    if (status == TPUCL_OK && is_model) status = write_model(&mapper, config, &writer, out_model);
    if (status == TPUCL_OK && is_model) status = finish(&mapper, &writer, out_model);
    tp_json_writer_deinit(&writer);
    tp_keras_layers_deinit(&mapper.layers);
    return status;
}
