/* SPDX-License-Identifier: Apache-2.0
 * config.json of a .keras out of tpucl's "model" object. Everything is written as a Functional model in the schema
 * of Keras 3 (keras/src/models/functional.py, keras/src/saving/serialization_lib.py): layers with the calls they
 * have, calls with the tensors they take. */
#include <ctype.h>
#include <string.h>
#include "core/str.h"
#include "keras/export.h"
#include "keras/map_internal.h"

/* One call of a layer in the scope that is being written. */
typedef struct export_row {
    const tp_json *json;
    const char *name;   /* of this call's result */
    int32_t definition; /* row of the layer itself */
    int32_t node;       /* which call of the layer this is */
    bool is_model;
} export_row;

typedef struct export_scope {
    const tp_keras_input *inputs;
    int32_t input_count;
    const char *prefix; /* "encoder/" */
    const tp_json *json;
    export_row *rows;
    int32_t count;
} export_scope;

typedef struct exporter {
    const tp_keras_export_options *options;
    const tp_model *model; /* the same, for shapes */
    tp_arena *arena;
    tp_keras_export_layers *layers;
    tp_json_writer *writer;
} exporter;

/* ---- small things ---- */

/* he_normal to HeNormal; L2 stays. */
static const char *camel(tp_arena *arena, const char *snake)
{
    char *text = tp_arena_alloc(arena, strlen(snake) + 1), *at = text;
    bool begins = true;
    for (; text && *snake; snake++) {
        if (*snake != '_') *at++ = (char)(begins ? toupper((unsigned char)*snake) : *snake);
        begins = *snake == '_';
    }
    return text;
}

static void write_head(tp_json_writer *writer, const char *module, const char *class_name)
{
    tp_json_put_string(writer, "module", module);
    tp_json_put_string(writer, "class_name", class_name);
}

/* {"type": "he_normal", ...} to an object of the module. */
static tpucl_status write_object(exporter *ex, const char *module, const tp_json *value)
{
    const tp_json *type = tp_json_member(value, "type");
    tp_json_writer *writer = ex->writer;
    if (!type || type->kind != TP_JSON_STRING) {
        tp_json_write_value(writer, value);
        return TPUCL_OK;
    }
    const char *class_name = camel(ex->arena, type->string);
    if (!class_name) return TPUCL_OUT_OF_MEMORY;
    tp_json_begin_object(writer);
    write_head(writer, module, class_name);
    tp_json_key(writer, "config");
    tp_json_begin_object(writer);
    for (size_t i = 0; i < value->count; i++) {
        if (&value->items[i] == type) continue;
        tp_json_key(writer, value->items[i].key);
        tp_json_write_value(writer, &value->items[i]);
    }
    tp_json_end_object(writer);
    tp_json_put_string(writer, "registered_name", NULL);
    tp_json_end_object(writer);
    return TPUCL_OK;
}

static bool is_structure(const char *key)
{
    static const char *const keys[] = {"type",      "name",  "inputs",
                                       "trainable", "dtype", "use_causal_mask"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

static tpucl_status write_layer(exporter *ex, const tp_json *json, const char *name);

/* Arguments have Keras' names; objects are written as Keras' objects. */
static tpucl_status write_argument(exporter *ex, const tp_json *value)
{
    static const struct {
        const char *end, *module;
    } objects[] = {{"_initializer", "keras.initializers"},
                   {"_regularizer", "keras.regularizers"},
                   {"_constraint", "keras.constraints"}};
    if (is_structure(value->key)) return TPUCL_OK;
    tp_json_key(ex->writer, value->key);
    if (value->kind == TP_JSON_OBJECT) {
        for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
            if (tp_str_ends_with(value->key, objects[i].end))
                return write_object(ex, objects[i].module, value);
        if (tp_json_member(value, "type")) { /* the layer of a wrapper */
            tp_json_begin_object(ex->writer);
            TP_TRY(write_layer(ex, value, NULL));
            tp_json_end_object(ex->writer);
            return TPUCL_OK;
        }
    }
    tp_json_write_value(ex->writer, value);
    return TPUCL_OK;
}

/* Members of a layer's object, inbound_nodes left out. */
static tpucl_status write_layer(exporter *ex, const tp_json *json, const char *name)
{
    tp_json_writer *writer = ex->writer;
    const tp_json *type = tp_json_member(json, "type"), *own = tp_json_member(json, "name");
    const tp_json *trainable = tp_json_member(json, "trainable");
    const char *policy = tp_keras_policy_name(json);
    if (!name && own && own->kind == TP_JSON_STRING) name = own->string;
    write_head(writer, "keras.layers", type->string);
    tp_json_key(writer, "config");
    tp_json_begin_object(writer);
    if (name) tp_json_put_string(writer, "name", name);
    if (trainable) tp_json_put_bool(writer, "trainable", trainable->boolean);
    tp_json_put_string(writer, "dtype", policy ? policy : ex->options->policy);
    for (size_t i = 0; i < json->count; i++)
        TP_TRY(write_argument(ex, &json->items[i]));
    tp_json_end_object(writer);
    tp_json_put_string(writer, "registered_name", NULL);
    return TPUCL_OK;
}

/* ---- what rows take ---- */

typedef struct tensor_end {
    const char *layer;
    int32_t node;
    int64_t tensor;
    bool is_model;
} tensor_end;

static bool find_end(const export_scope *scope, const char *name, size_t length, tensor_end *out)
{
    for (int32_t i = 0; i < scope->count; i++) {
        const export_row *found = &scope->rows[i];
        if (strlen(found->name) != length || memcmp(found->name, name, length) != 0) continue;
        *out = (tensor_end){.layer = scope->rows[found->definition].name,
                            .node = found->node,
                            .is_model = scope->rows[found->definition].is_model};
        return true;
    }
    for (int32_t i = 0; i < scope->input_count; i++)
        if (strlen(scope->inputs[i].name) == length &&
            memcmp(scope->inputs[i].name, name, length) == 0) {
            *out = (tensor_end){.layer = scope->inputs[i].name};
            return true;
        }
    return false;
}

/* "name" or "name:1"; the model was read before, so that it means something. */
static tpucl_status resolve(const export_scope *scope, const char *text, tensor_end *out)
{
    const char *colon = strrchr(text, ':');
    int64_t tensor;
    if (find_end(scope, text, strlen(text), out)) return TPUCL_OK;
    if (colon && tp_str_parse_int64(tp_view_of(colon + 1), &tensor) == TPUCL_OK &&
        find_end(scope, text, (size_t)(colon - text), out)) {
        out->tensor = tensor;
        return TPUCL_OK;
    }
    return TP_FAIL(TPUCL_INVALID_CONFIG, "there is no layer or input '%.100s'", text);
}

static void write_tensor(tp_json_writer *writer, const tensor_end *from)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "class_name", "__keras_tensor__");
    tp_json_key(writer, "config");
    tp_json_begin_object(writer);
    /* Keras replaces shape and dtype by those of the tensor that keras_history means. */
    tp_json_key(writer, "shape");
    tp_json_begin_inline_array(writer);
    tp_json_write_null(writer);
    tp_json_end_array(writer);
    tp_json_put_string(writer, "dtype", "float32");
    tp_json_key(writer, "keras_history");
    tp_json_begin_inline_array(writer);
    tp_json_write_string(writer, from->layer);
    tp_json_write_int(writer, from->node);
    tp_json_write_int(writer, from->tensor);
    tp_json_end_array(writer);
    tp_json_end_object(writer);
    tp_json_end_object(writer);
}

/* Name of the i-th tensor that a row takes. */
static const char *input_name(const export_scope *scope, int32_t index, size_t i)
{
    const tp_json *inputs = tp_json_member(scope->rows[index].json, "inputs");
    if (!inputs) return index ? scope->rows[index - 1].name : scope->inputs[0].name;
    return inputs->kind == TP_JSON_ARRAY ? inputs->items[i].string : inputs->string;
}

/* Attention with heads takes query, value and key one by one, everything else several tensors as a list. */
static tpucl_status write_call(exporter *ex, const export_scope *scope, int32_t index)
{
    tp_json_writer *writer = ex->writer;
    const export_row *call = &scope->rows[index];
    const tp_json *inputs = tp_json_member(call->json, "inputs");
    const tp_json *type = tp_json_member(scope->rows[call->definition].json, "type");
    const bool is_list = inputs && inputs->kind == TP_JSON_ARRAY && inputs->count > 1;
    const bool is_spread = is_list && (strcmp(type->string, "MultiHeadAttention") == 0 ||
                                       strcmp(type->string, "GroupQueryAttention") == 0);
    const size_t count = is_list ? inputs->count : 1;
    tensor_end fourth, *mask = NULL;
    tp_json_begin_object(writer);
    tp_json_key(writer, "args");
    tp_json_begin_array(writer);
    if (is_list && !is_spread) tp_json_begin_array(writer);
    for (size_t i = 0; i < count; i++) {
        tensor_end from;
        const char *name = input_name(scope, index, i);
        TP_TRY(resolve(scope, name, &from));
        if (is_spread && i == 3) { /* query, value, key, attention_mask */
            fourth = from;
            mask = &fourth;
        } else {
            write_tensor(writer, &from);
        }
    }
    if (is_list && !is_spread) tp_json_end_array(writer);
    tp_json_end_array(writer);
    tp_json_key(writer, "kwargs");
    tp_json_begin_object(writer);
    const tp_json *causal = tp_json_member(scope->rows[call->definition].json, "use_causal_mask");
    if (causal && causal->kind == TP_JSON_BOOL && causal->boolean)
        tp_json_put_bool(writer, "use_causal_mask", true);
    if (mask) {
        tp_json_key(writer, "attention_mask");
        write_tensor(writer, mask);
    }
    tp_json_end_object(writer);
    tp_json_end_object(writer);
    return TPUCL_OK;
}

/* ---- scopes ---- */

/* Names that the model's reader gave to rows without one are not in the JSON: they come from the layer's type, as
 * there (model/model_scope.c), numbered. */
static const char *default_name(exporter *ex, const export_scope *scope, int32_t index)
{
    const export_row *own = &scope->rows[index];
    const tp_json *type = tp_json_member(own->json, "type");
    const char *base = own->definition != index ? scope->rows[own->definition].name
                       : own->is_model && strcmp(type->string, "Sequential") != 0
                           ? "functional"
                           : tp_keras_snake(ex->arena, type->string);
    const char *candidate = base;
    for (int32_t number = 1; candidate; number++) {
        bool is_taken = false;
        for (int32_t i = 0; i < scope->count; i++)
            is_taken =
                is_taken || (scope->rows[i].name && strcmp(scope->rows[i].name, candidate) == 0);
        for (int32_t i = 0; i < scope->input_count; i++)
            is_taken = is_taken || strcmp(scope->inputs[i].name, candidate) == 0;
        if (!is_taken) break;
        candidate = tp_arena_printf(ex->arena, "%s_%d", base, number);
    }
    return candidate;
}

static tpucl_status read_scope(exporter *ex, const tp_json *json, export_scope *into)
{
    into->json = json;
    const tp_json *layers = tp_json_member(json, "layers");
    into->count = (int32_t)layers->count;
    into->rows = TP_ARENA_NEW_ARRAY(ex->arena, export_row, layers->count + 1);
    if (!into->rows) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < into->count; i++) {
        export_row *own = &into->rows[i];
        const tp_json *name = tp_json_member(&layers->items[i], "name");
        *own = (export_row){.json = &layers->items[i], .definition = i};
        own->name = name ? name->string : NULL;
        own->is_model = tp_json_member(own->json, "layers") != NULL;
    }
    /* calls after all definitions have names */
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < into->count; i++) {
            export_row *own = &into->rows[i];
            const tp_json *layer = tp_json_member(own->json, "layer");
            const bool is_call = !tp_json_member(own->json, "type") && layer;
            if (is_call != (pass == 1)) continue;
            for (int32_t k = 0; is_call && k < into->count; k++)
                if (into->rows[k].name && k != i && strcmp(into->rows[k].name, layer->string) == 0)
                    own->definition = k;
            if (!own->name) own->name = default_name(ex, into, i);
            if (!own->name) return TPUCL_OUT_OF_MEMORY;
        }
    for (int32_t i = 0; i < into->count; i++)
        for (int32_t k = 0; k < i; k++)
            if (into->rows[k].definition == into->rows[i].definition) into->rows[i].node++;
    return TPUCL_OK;
}

static tpucl_status write_scope(exporter *ex, const export_scope *scope, const char *name,
                                const char *place);

static tpucl_status add_layer(exporter *ex, const char *name, const char *place,
                              const tp_json *json)
{
    tp_keras_export_layers *layers = ex->layers;
    if (layers->count == layers->capacity) {
        const int32_t capacity = layers->capacity ? 2 * layers->capacity : 16;
        tp_keras_export_layer *more =
            TP_ARENA_NEW_ARRAY(ex->arena, tp_keras_export_layer, (size_t)capacity);
        if (!more) return TPUCL_OUT_OF_MEMORY;
        if (layers->count) memcpy(more, layers->items, (size_t)layers->count * sizeof *more);
        layers->items = more;
        layers->capacity = capacity;
    }
    layers->items[layers->count++] = (tp_keras_export_layer){name, place, json};
    return TPUCL_OK;
}

/* What a tensor of the scope looks like: of an input, or the first result of a layer as the model knows it; the
 * result of a nested model is that of a layer in it. */
static tpucl_status find_value(const exporter *ex, const export_scope *scope, const char *name,
                               tp_keras_input *out)
{
    const tp_json *inside = NULL;
    for (int32_t i = 0; i < scope->input_count; i++)
        if (strcmp(scope->inputs[i].name, name) == 0) {
            *out = scope->inputs[i];
            return TPUCL_OK;
        }
    for (int32_t i = 0; i < scope->count; i++)
        if (strcmp(scope->rows[i].name, name) == 0 &&
            scope->rows[scope->rows[i].definition].is_model)
            inside = scope->rows[scope->rows[i].definition].json;
    const char *full = tp_arena_printf(ex->arena, "%s%s", scope->prefix, name);
    while (full && inside) {
        const tp_json *outputs = tp_json_member(inside, "outputs");
        const tp_json *layers = tp_json_member(inside, "layers");
        const tp_json *last = &layers->items[layers->count - 1];
        const tp_json *end = !outputs                          ? tp_json_member(last, "name")
                             : outputs->kind == TP_JSON_STRING ? outputs
                             : outputs->count                  ? &outputs->items[0]
                                                               : NULL;
        inside = NULL;
        if (!end || end->kind != TP_JSON_STRING) break;
        full = tp_arena_printf(ex->arena, "%s/%s", full, end->string);
        for (size_t i = 0; i < layers->count; i++) {
            const tp_json *own = tp_json_member(&layers->items[i], "name");
            if (own && own->kind == TP_JSON_STRING && strcmp(own->string, end->string) == 0 &&
                tp_json_member(&layers->items[i], "layers"))
                inside = &layers->items[i];
        }
    }
    if (!full) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < tp_model_row_count(ex->model); i++) {
        const tp_model_row found = tp_model_row_at(ex->model, i);
        if (strcmp(found.name, full) != 0) continue;
        *out = (tp_keras_input){.name = name, .shape = found.output};
        return TPUCL_OK;
    }
    return TP_FAIL(
        TPUCL_UNSUPPORTED,
        "the shape of '%.200s', which a nested model takes, cannot be told from its name", full);
}

static tpucl_status write_nested(exporter *ex, const export_scope *outer, int32_t index,
                                 const char *place)
{
    const export_row *own = &outer->rows[index];
    const tp_json *names = tp_json_member(own->json, "model_inputs");
    const size_t count = names ? names->count : 1;
    tp_keras_input *inputs = TP_ARENA_NEW_ARRAY(ex->arena, tp_keras_input, count + 1);
    export_scope inner = {.inputs = inputs,
                          .input_count = (int32_t)count,
                          .prefix = tp_arena_printf(ex->arena, "%s%s/", outer->prefix, own->name)};
    const char *inner_place = tp_arena_printf(ex->arena, "%s/", place);
    if (!inputs || !inner.prefix || !inner_place) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        TP_TRY(find_value(ex, outer, input_name(outer, index, i), &inputs[i]));
        inputs[i].name = names ? names->items[i].string : "input";
    }
    TP_TRY(read_scope(ex, own->json, &inner));
    return write_scope(ex, &inner, own->name, inner_place);
}

/* Keras' class, and "layers/dense_1": the number counts layers of that class before it. */
static const char *class_of(const export_row *own)
{
    return own->is_model ? "Functional" : tp_json_member(own->json, "type")->string;
}

static const char *place_of(exporter *ex, const export_scope *scope, int32_t index,
                            const char *place)
{
    int number = 0;
    for (int32_t i = 0; i < index; i++)
        number += scope->rows[i].definition == i &&
                  strcmp(class_of(&scope->rows[i]), class_of(&scope->rows[index])) == 0;
    const char *snake = tp_keras_snake(ex->arena, class_of(&scope->rows[index]));
    if (!snake) return NULL;
    return number ? tp_arena_printf(ex->arena, "%slayers/%s_%d", place, snake, number)
                  : tp_arena_printf(ex->arena, "%slayers/%s", place, snake);
}

static tpucl_status write_definition(exporter *ex, const export_scope *scope, int32_t index,
                                     const char *place)
{
    tp_json_writer *writer = ex->writer;
    const export_row *own = &scope->rows[index];
    const char *own_place = place_of(ex, scope, index, place);
    const char *full = tp_arena_printf(ex->arena, "%s%s", scope->prefix, own->name);
    if (!own_place || !full) return TPUCL_OUT_OF_MEMORY;
    tp_json_begin_object(writer);
    if (own->is_model) {
        TP_TRY(write_nested(ex, scope, index, own_place));
    } else {
        TP_TRY(write_layer(ex, own->json, own->name));
        TP_TRY(add_layer(ex, full, own_place, own->json));
    }
    tp_json_put_string(writer, "name", own->name);
    tp_json_key(writer, "inbound_nodes");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < scope->count; i++)
        if (scope->rows[i].definition == index) TP_TRY(write_call(ex, scope, i));
    tp_json_end_array(writer);
    tp_json_end_object(writer);
    return TPUCL_OK;
}

static void write_input(exporter *ex, const tp_keras_input *input)
{
    tp_json_writer *writer = ex->writer;
    tp_json_begin_object(writer);
    write_head(writer, "keras.layers", "InputLayer");
    tp_json_key(writer, "config");
    tp_json_begin_object(writer);
    tp_json_key(writer, "batch_shape");
    tp_json_begin_inline_array(writer);
    tp_json_write_null(writer);
    for (int i = 0; i < input->shape.rank; i++)
        tp_json_write_int(writer, input->shape.dims[i]);
    tp_json_end_array(writer);
    tp_json_put_string(writer, "dtype", input->is_integer ? "int32" : "float32");
    tp_json_put_string(writer, "name", input->name);
    tp_json_end_object(writer);
    tp_json_put_string(writer, "registered_name", NULL);
    tp_json_put_string(writer, "name", input->name);
    tp_json_key(writer, "inbound_nodes");
    tp_json_begin_array(writer);
    tp_json_end_array(writer);
    tp_json_end_object(writer);
}

/* Ends count calls of nested Functional models from 1 (see map_graph.c). */
static void write_end(tp_json_writer *writer, const tensor_end *at)
{
    tp_json_begin_inline_array(writer);
    tp_json_write_string(writer, at->layer);
    tp_json_write_int(writer, at->node + (at->is_model ? 1 : 0));
    tp_json_write_int(writer, at->tensor);
    tp_json_end_array(writer);
}

static tpucl_status write_outputs(exporter *ex, const export_scope *scope)
{
    const tp_json *outputs = tp_json_member(scope->json, "outputs");
    const bool is_list = outputs && outputs->kind == TP_JSON_ARRAY;
    const size_t count = is_list ? outputs->count : 1;
    tp_json_key(ex->writer, "output_layers");
    tp_json_begin_array(ex->writer);
    for (size_t i = 0; i < count; i++) {
        tensor_end at;
        TP_TRY(resolve(scope,
                       is_list   ? outputs->items[i].string
                       : outputs ? outputs->string
                                 : scope->rows[scope->count - 1].name,
                       &at));
        write_end(ex->writer, &at);
    }
    tp_json_end_array(ex->writer);
    return TPUCL_OK;
}

/* The members of a model's object; the caller opens and closes it. */
static tpucl_status write_scope(exporter *ex, const export_scope *scope, const char *name,
                                const char *place)
{
    tp_json_writer *writer = ex->writer;
    const tp_json *trainable = tp_json_member(scope->json, "trainable");
    write_head(writer, "keras.src.models.functional", "Functional");
    tp_json_key(writer, "config");
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "name", name);
    tp_json_put_bool(writer, "trainable", !trainable || trainable->boolean);
    tp_json_key(writer, "layers");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < scope->input_count; i++)
        write_input(ex, &scope->inputs[i]);
    for (int32_t i = 0; i < scope->count; i++)
        if (scope->rows[i].definition == i) TP_TRY(write_definition(ex, scope, i, place));
    tp_json_end_array(writer);
    tp_json_key(writer, "input_layers");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < scope->input_count; i++)
        write_end(writer, &(tensor_end){.layer = scope->inputs[i].name});
    tp_json_end_array(writer);
    TP_TRY(write_outputs(ex, scope));
    tp_json_end_object(writer);
    tp_json_put_string(writer, "registered_name", "Functional");
    return TPUCL_OK;
}

tpucl_status tp_keras_export_config(const tp_keras_export_options *options, const tp_model *model,
                                    tp_arena *arena, tp_keras_export_layers *out_layers,
                                    char **out_text)
{
    tp_json_writer writer = {0};
    exporter ex = {options, model, arena, out_layers, &writer};
    export_scope top = {
        .inputs = options->inputs, .input_count = options->input_count, .prefix = ""};
    tpucl_status status = read_scope(&ex, options->model, &top);
    tp_json_begin_object(&writer);
    if (status == TPUCL_OK) status = write_scope(&ex, &top, options->name, "");
    tp_json_end_object(&writer);
    if (status == TPUCL_OK) status = tp_json_writer_finish(&writer, out_text);
    tp_json_writer_deinit(&writer);
    return status;
}
