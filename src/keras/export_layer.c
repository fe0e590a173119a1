/* SPDX-License-Identifier: Apache-2.0
 * One layer of tpucl's as the members of Keras 3's object: class, name, precision, arguments.
 */
#include <ctype.h>
#include <string.h>
#include "core/str.h"
#include "keras/export_internal.h"

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

void tp_keras_write_head(tp_json_writer *writer, const char *module, const char *class_name)
{
    tp_json_put_string(writer, "module", module);
    tp_json_put_string(writer, "class_name", class_name);
}

/* {"type": "he_normal", ...} to an object of the module. */
static tpucl_status write_object(tp_keras_exporter *ex, const char *module, const tp_json *value)
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
    tp_keras_write_head(writer, module, class_name);
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

/* Written elsewhere, or (cores_per_group) of the machine that trains and nothing that Keras has. */
static bool is_structure(const char *key)
{
    static const char *const keys[] = {
        "type", "name", "inputs", "trainable", "dtype", "use_causal_mask", "cores_per_group"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

static bool is_approximate_gelu(const tp_json *value)
{
    return value && value->kind == TP_JSON_STRING && strcmp(value->string, "gelu_approximate") == 0;
}

/* keras.ops.gelu(x), the one activation that Keras has as a function alone. */
static void write_gelu(tp_keras_exporter *ex, const char *name)
{
    tp_json_writer *writer = ex->writer;
    tp_keras_write_head(writer, "keras.src.ops.nn", "Gelu");
    tp_json_key(writer, "config");
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "name", name);
    tp_json_put_bool(writer, "approximate", true);
    tp_json_end_object(writer);
    tp_json_put_string(writer, "registered_name", "Gelu");
}

/* Arguments have Keras' names; objects are written as Keras' objects. */
static tpucl_status write_argument(tp_keras_exporter *ex, const tp_json *value)
{
    static const struct {
        const char *end, *module;
    } objects[] = {{"_initializer", "keras.initializers"},
                   {"_regularizer", "keras.regularizers"},
                   {"_constraint", "keras.constraints"}};
    if (is_structure(value->key)) return TPUCL_OK;
    if (is_approximate_gelu(value))
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "Keras has no activation '%s' by name; give it a layer of its own "
                       "({\"type\": \"Activation\"}), which becomes a function of keras.ops",
                       value->string);
    tp_json_key(ex->writer, value->key);
    if (value->kind == TP_JSON_OBJECT) {
        for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
            if (tp_str_ends_with(value->key, objects[i].end))
                return write_object(ex, objects[i].module, value);
        if (tp_json_member(value, "type")) { /* the layer of a wrapper */
            tp_json_begin_object(ex->writer);
            TP_TRY(tp_keras_export_layer_members(ex, value, NULL));
            tp_json_end_object(ex->writer);
            return TPUCL_OK;
        }
    }
    tp_json_write_value(ex->writer, value);
    return TPUCL_OK;
}

tpucl_status tp_keras_export_layer_members(tp_keras_exporter *ex, const tp_json *json,
                                           const char *name)
{
    tp_json_writer *writer = ex->writer;
    const tp_json *type = tp_json_member(json, "type"), *own = tp_json_member(json, "name");
    const tp_json *trainable = tp_json_member(json, "trainable");
    const char *policy = tp_keras_policy_name(json);
    if (!name && own && own->kind == TP_JSON_STRING) name = own->string;
    if (name && strcmp(type->string, "Activation") == 0 &&
        is_approximate_gelu(tp_json_member(json, "activation"))) {
        write_gelu(ex, name);
        return TPUCL_OK;
    }
    tp_keras_write_head(writer, "keras.layers", type->string);
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
