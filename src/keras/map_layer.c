/* SPDX-License-Identifier: Apache-2.0
 * One layer: its precision and its arguments in tpucl's terms. Most arguments have the same name here and there;
 * what is left out on purpose stands in the tables below.
 */
#include <string.h>
#include "core/str.h"
#include "keras/map_internal.h"

/* ---- precision ---- */

const char *tp_keras_policy_name(const tp_json *config)
{
    const tp_json *dtype = tp_keras_member(config, "dtype");
    if (!dtype) return NULL;
    if (dtype->kind == TP_JSON_OBJECT)
        dtype = tp_keras_member(tp_keras_member(dtype, "config"), "name");
    return dtype && dtype->kind == TP_JSON_STRING ? dtype->string : NULL;
}

/* tpucl's name of a policy: NULL for what it has none of. */
static const char *policy_of(const char *name)
{
    if (!name || strcmp(name, "float32") == 0 || strcmp(name, "float64") == 0) return "float32";
    if (strcmp(name, "mixed_bfloat16") == 0 || strcmp(name, "bfloat16") == 0 ||
        strcmp(name, "mixed_float16") == 0 || strcmp(name, "float16") == 0)
        return "mixed_bfloat16";
    return NULL;
}

/* The first layer's policy becomes the model's, others that differ stand with their layers. */
static tpucl_status write_policy(tp_keras_mapper *mapper, const tp_keras_row *row, const char *name,
                                 tp_json_writer *writer)
{
    const char *found = tp_keras_policy_name(row->config);
    const char *policy = policy_of(found);
    if (!policy) {
        policy = "float32";
        if (strstr(found, "int") == NULL)
            TP_TRY(tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_POLICY, name, row->kind,
                                 "use float32 or mixed_bfloat16", "its dtype policy is '%.60s'",
                                 found));
    }
    if (found && strcmp(found, policy) != 0 && strstr(found, "float"))
        TP_TRY(tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_CHANGED, name, row->kind, "",
                             "%s becomes %s", found, policy));
    if (!mapper->policy) mapper->policy = policy;
    if (strcmp(mapper->policy, policy) != 0) tp_json_put_string(writer, "dtype", policy);
    return TPUCL_OK;
}

/* ---- arguments ---- */

/* What says how a layer was made, fed or computed, and changes no result. */
static bool is_bookkeeping(const char *key)
{
    static const char *const keys[] = {"name",
                                       "trainable",
                                       "dtype",
                                       "batch_input_shape",
                                       "batch_shape",
                                       "seed",
                                       "autocast",
                                       "implementation",
                                       "quantization_config",
                                       "input_length",
                                       "input_shape",
                                       "batch_size",
                                       "sparse",
                                       "ragged",
                                       "time_major",
                                       "force_generator",
                                       "unroll",
                                       "fused",
                                       "virtual_batch_size",
                                       "optional",
                                       "renorm_clipping",
                                       "renorm_momentum",
                                       "experimental_run_tf_function",
                                       "flash_attention",
                                       "lora_rank",
                                       "lora_alpha",
                                       "input_dtype"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* Values with which an argument does nothing, so that it may be missing here. */
static bool is_neutral(const tp_json *value)
{
    static const struct {
        const char *key;
        double number;
    } numbers[] = {{"groups", 1}, {"dilation_rate", 1}, {"output_padding", 0}, {"sigma", 0}};
    switch (value->kind) {
    case TP_JSON_NULL:
        return true;
    case TP_JSON_BOOL:
        return !value->boolean;
    case TP_JSON_INTEGER:
    case TP_JSON_NUMBER:
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if (strcmp(value->key, numbers[i].key) == 0) return value->number == numbers[i].number;
        return value->number == 0;
    case TP_JSON_STRING:
        return strcmp(value->string, "linear") == 0 || strcmp(value->string, "channels_last") == 0;
    case TP_JSON_ARRAY:
        for (size_t i = 0; i < value->count; i++)
            if (value->items[i].kind != TP_JSON_INTEGER || value->items[i].integer != 1)
                return false;
        return strcmp(value->key, "dilation_rate") == 0 || value->count == 0;
    default:
        return value->count == 0;
    }
}

static bool has_argument(const tp_keras_mapper *mapper, const char *type, const char *key)
{
    return !mapper->options || !mapper->options->has_argument ||
           mapper->options->has_argument(type, key);
}

/* Old names of arguments. */
static const char *argument_name(const tp_keras_row *row, const char *key)
{
    if (strcmp(row->kind, "LeakyReLU") == 0 && strcmp(key, "alpha") == 0) return "negative_slope";
    return key;
}

static tpucl_status write_argument(tp_keras_mapper *mapper, const tp_keras_row *row,
                                   const char *name, const tp_json *value, tp_json_writer *writer)
{
    const char *key = argument_name(row, value->key);
    if (is_bookkeeping(key)) return TPUCL_OK;
    if (strcmp(key, "data_format") == 0) {
        if (value->kind == TP_JSON_STRING && strcmp(value->string, "channels_first") == 0)
            return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_CHANNELS_FIRST, name,
                                 row->kind, "build the model with data_format='channels_last'",
                                 "its data_format is channels_first");
        return TPUCL_OK; /* the only one here */
    }
    /* Keras 2 writes the axis of a BatchNormalization as a list. */
    const tp_json *single = strcmp(key, "axis") == 0 &&
                                    strcmp(row->kind, "BatchNormalization") == 0 &&
                                    value->kind == TP_JSON_ARRAY && value->count == 1
                                ? &value->items[0]
                                : NULL;
    if (!has_argument(mapper, tp_keras_type(row), key)) {
        char found[TP_JSON_FOUND_BYTES];
        if (is_neutral(value)) return TPUCL_OK;
        return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_ARGUMENT, name, row->kind,
                             "build the model without it",
                             "its argument '%s' is %s, which has no "
                             "equal here",
                             key, tp_json_found(value, found));
    }
    const bool is_null = value->kind == TP_JSON_NULL;
    if (is_null && !tp_keras_null_counts(tp_keras_type(row), key)) return TPUCL_OK; /* the default */
    tp_json_key(writer, key);
    if (single) {
        tp_json_write_value(writer, single);
        return TPUCL_OK;
    }
    return tp_keras_write_value(mapper, name, row->kind, value, writer);
}

/* A layer inside a wrapper, as an object of its own. */
static tpucl_status write_wrapped(tp_keras_mapper *mapper, const tp_keras_row *row,
                                  const char *name, const tp_json *value, tp_json_writer *writer)
{
    tp_keras_row inner = {
        .json = value, .config = tp_keras_member(value, "config"), .kind = tp_keras_class(value)};
    if (!*inner.kind || !inner.config || inner.config->kind != TP_JSON_OBJECT)
        return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_LAYER, name, row->kind,
                             "save the model again", "the layer that it wraps is not described");
    if (strcmp(inner.kind, "Sequential") == 0 || strcmp(inner.kind, "Functional") == 0 ||
        strcmp(inner.kind, "Model") == 0 || tp_keras_member(inner.config, "layer"))
        return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_LAYER, name, row->kind,
                             "wrap each layer for itself", "it wraps a %s, expected a single layer",
                             inner.kind);
    tp_json_key(writer, value->key);
    tp_json_begin_object(writer);
    TP_TRY(tp_keras_write_layer(mapper, &inner, name, writer));
    tp_json_end_object(writer);
    return TPUCL_OK;
}

tpucl_status tp_keras_write_layer(tp_keras_mapper *mapper, const tp_keras_row *row,
                                  const char *name, tp_json_writer *writer)
{
    bool is_known;
    if (row->is_op && tp_keras_write_op(row, writer)) return TPUCL_OK;
    tp_json_put_string(writer, "type", tp_keras_type(row));
    TP_TRY(tp_keras_check_type(mapper, row, name, &is_known));
    if (!is_known) return TPUCL_OK;
    if (row->config->kind != TP_JSON_OBJECT)
        return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_LAYER, name, row->kind,
                             "save the model again", "its configuration is no object");
    TP_TRY(write_policy(mapper, row, name, writer));
    if (row->is_causal) tp_json_put_bool(writer, "use_causal_mask", true);
    for (size_t i = 0; i < row->config->count; i++) {
        const tp_json *value = &row->config->items[i];
        const bool is_wrapped =
            value->kind == TP_JSON_OBJECT && *tp_keras_class(value) &&
            (strcmp(value->key, "layer") == 0 || strcmp(value->key, "backward_layer") == 0);
        TP_TRY(is_wrapped ? write_wrapped(mapper, row, name, value, writer)
                          : write_argument(mapper, row, name, value, writer));
    }
    return TPUCL_OK;
}
