/* SPDX-License-Identifier: Apache-2.0
 * Names and values: classes, snake case, initializers, regularizers, constraints, activations.
 */
#include <ctype.h>
#include <string.h>
#include "core/str.h"
#include "keras/map_internal.h"

const char *tp_keras_class(const tp_json *object)
{
    const tp_json *name = tp_keras_member(object, "class_name");
    if (!name || name->kind != TP_JSON_STRING) return "";
    const char *package = strrchr(name->string, '>');
    return package ? package + 1 : name->string;
}

/* keras/src/utils/naming.py, to_snake_case: "(.)([A-Z][a-z]+)", then "([a-z])([A-Z])". */
const char *tp_keras_snake(tp_arena *arena, const char *class_name)
{
    const size_t length = strlen(class_name);
    char *snake = tp_arena_alloc(arena, 2 * length + 1);
    size_t used = 0;
    for (size_t i = 0; snake && i < length; i++) {
        const unsigned char c = (unsigned char)class_name[i];
        if (!isalnum(c) && c != '_') continue;
        const bool begins_word = i > 0 && isupper(c) &&
                                 (islower((unsigned char)class_name[i + 1]) ||
                                  islower((unsigned char)class_name[i - 1]));
        if (begins_word) snake[used++] = '_';
        snake[used++] = (char)tolower(c);
    }
    return snake;
}

/* ---- objects of Keras: {"class_name", "config"}, or a name alone ---- */

/* Members of a config that say how an object was made or called, not what it does. */
static bool is_bookkeeping(const char *key)
{
    static const char *const keys[] = {"seed",       "name",        "dtype",
                                       "input_axes", "output_axes", "reduction"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* {"type": ..., members of config...} */
static void write_typed(const char *type, const tp_json *config, tp_json_writer *writer)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "type", type);
    for (size_t i = 0; config && config->kind == TP_JSON_OBJECT && i < config->count; i++) {
        const tp_json *member = &config->items[i];
        if (is_bookkeeping(member->key) || member->kind == TP_JSON_NULL) continue;
        tp_json_key(writer, member->key);
        tp_json_write_value(writer, member);
    }
    tp_json_end_object(writer);
}

static bool has_parameters(const tp_json *config)
{
    for (size_t i = 0; config && config->kind == TP_JSON_OBJECT && i < config->count; i++)
        if (!is_bookkeeping(config->items[i].key) && config->items[i].kind != TP_JSON_NULL)
            return true;
    return false;
}

/* VarianceScaling with the arguments that make it one of the named ones. */
static const char *variance_scaling_name(const tp_json *config)
{
    static const struct {
        double scale;
        const char *mode, *distribution, *name;
    } named[] = {{1, "fan_avg", "uniform", "glorot_uniform"},
                 {1, "fan_avg", "truncated_normal", "glorot_normal"},
                 {2, "fan_in", "uniform", "he_uniform"},
                 {2, "fan_in", "truncated_normal", "he_normal"},
                 {1, "fan_in", "uniform", "lecun_uniform"},
                 {1, "fan_in", "truncated_normal", "lecun_normal"}};
    const tp_json *scale = tp_keras_member(config, "scale"),
                  *mode = tp_keras_member(config, "mode");
    const tp_json *distribution = tp_keras_member(config, "distribution");
    if (!scale || !mode || !distribution || mode->kind != TP_JSON_STRING ||
        distribution->kind != TP_JSON_STRING)
        return NULL;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (scale->number == named[i].scale && strcmp(mode->string, named[i].mode) == 0 &&
            strcmp(distribution->string, named[i].distribution) == 0)
            return named[i].name;
    return NULL;
}

static tpucl_status write_initializer(tp_keras_mapper *mapper, const char *layer, const char *kind,
                                      const tp_json *value, tp_json_writer *writer)
{
    const tp_json *config = tp_keras_member(value, "config");
    const char *class_name = tp_keras_class(value);
    const char *name = tp_keras_snake(mapper->arena, class_name);
    if (!name) return TPUCL_OUT_OF_MEMORY;
    if (strcmp(class_name, "VarianceScaling") == 0) {
        name = variance_scaling_name(config);
        config = NULL;
        /* The weights are in the file; what drew them first matters for a training from nothing alone. */
        if (!name) {
            name = "glorot_uniform";
            TP_TRY(tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_CHANGED, layer, kind, "",
                                 "%s is VarianceScaling with arguments that have no name; "
                                 "glorot_uniform stands for it",
                                 value->key));
        }
    }
    if (has_parameters(config))
        write_typed(name, config, writer);
    else
        tp_json_write_string(writer, name);
    return TPUCL_OK;
}

/* The name of an activation; NULL when it is not one alone. */
static const char *activation_name(const tp_json *value)
{
    if (value->kind == TP_JSON_STRING) return value->string;
    const tp_json *config = tp_keras_member(value, "config");
    /* {"module": "builtins", "class_name": "function", "config": "relu"} */
    if (strcmp(tp_keras_class(value), "function") == 0 && config && config->kind == TP_JSON_STRING)
        return config->string;
    return NULL;
}

static tpucl_status write_activation(tp_keras_mapper *mapper, const char *layer, const char *kind,
                                     const tp_json *value, tp_json_writer *writer)
{
    const char *name = activation_name(value);
    const char *class_name = tp_keras_class(value);
    if (value->kind == TP_JSON_NULL) name = "linear";
    /* An activation layer as an activation: its class, as long as it has only its defaults. */
    if (!name && *class_name) name = tp_keras_snake(mapper->arena, class_name);
    if (!name) name = "linear";
    if (strcmp(name, "re_lu") == 0) name = "relu";
    if (strcmp(class_name, "function") != 0 && *class_name)
        TP_TRY(tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_ARGUMENT, layer, kind,
                             "put the activation into a layer of its own",
                             "its activation is a %s object, expected the name of a function",
                             class_name));
    tp_json_write_string(writer, name);
    return TPUCL_OK;
}

tpucl_status tp_keras_write_value(tp_keras_mapper *mapper, const char *layer, const char *kind,
                                  const tp_json *value, tp_json_writer *writer)
{
    const char *key = value->key;
    if (tp_str_ends_with(key, "activation"))
        return write_activation(mapper, layer, kind, value, writer);
    if (value->kind != TP_JSON_OBJECT) {
        tp_json_write_value(writer, value);
        return TPUCL_OK;
    }
    if (tp_str_ends_with(key, "_initializer"))
        return write_initializer(mapper, layer, kind, value, writer);
    const bool is_penalty = tp_str_ends_with(key, "_regularizer");
    if ((is_penalty || tp_str_ends_with(key, "_constraint")) && *tp_keras_class(value)) {
        write_typed(tp_keras_class(value), tp_keras_member(value, "config"), writer);
        return TPUCL_OK;
    }
    tp_json_write_value(writer, value);
    return TPUCL_OK;
}
