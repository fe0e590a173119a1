/* SPDX-License-Identifier: Apache-2.0
 * Texts made from the table of keys: JSON Schema, the table of docs/config.md, help. */
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/json_write.h"
#include "core/str.h"
#include "topo/config_losses.h"
#include "topo/config_metrics.h"
#include "topo/config_table.h"

/* ---- JSON Schema 2020-12 ---- */

static void write_choices(tp_json_writer *writer, const tp_config_key *key)
{
    tp_json_put_string(writer, "type", "string");
    tp_json_key(writer, "enum");
    tp_json_begin_inline_array(writer);
    for (size_t i = 0; key->choices[i]; i++)
        tp_json_write_string(writer, key->choices[i]);
    tp_json_end_array(writer);
}

static void write_number(tp_json_writer *writer, double value)
{
    if (value >= -0x1p53 && value <= 0x1p53 && value == (double)(int64_t)value)
        tp_json_write_int(writer, (int64_t)value);
    else
        tp_json_write_double(writer, value);
}

static void write_range(tp_json_writer *writer, const char *type, const tp_config_key *key)
{
    tp_json_put_string(writer, "type", type);
    tp_json_key(writer, "minimum");
    write_number(writer, key->min);
    tp_json_key(writer, "maximum");
    write_number(writer, key->max);
}

static void begin_items(tp_json_writer *writer)
{
    tp_json_put_string(writer, "type", "array");
    tp_json_key(writer, "items");
    tp_json_begin_object(writer);
}

/* The members of the model's object; arguments of layers are checked by model/. */
static const char model_schema[] =
    "{\"name\": {\"type\": \"string\"},"
    " \"inputs\": {\"type\": \"array\", \"minItems\": 1, \"items\": {"
    "   \"type\": \"object\", \"required\": [\"name\"], \"additionalProperties\": false,"
    "   \"properties\": {\"name\": {\"type\": \"string\"},"
    "     \"shape\": {\"type\": \"array\", \"items\": {\"type\": \"integer\", \"minimum\": 1}},"
    "     \"dtype\": {\"enum\": [\"float32\", \"int32\"]}}}},"
    " \"layers\": {\"type\": \"array\", \"minItems\": 1, \"items\": {"
    "   \"type\": \"object\", \"anyOf\": [{\"required\": [\"type\"]}, {\"required\": [\"layer\"]}],"
    "   \"properties\": {\"type\": {\"type\": \"string\"}, \"name\": {\"type\": \"string\"},"
    "     \"trainable\": {\"type\": \"boolean\"},"
    "     \"inputs\": {\"type\": [\"string\", \"array\"], \"items\": {\"type\": \"string\"}},"
    "     \"layer\": {\"type\": [\"string\", \"object\"]}}}},"
    " \"outputs\": {\"type\": [\"string\", \"array\"], \"minItems\": 1,"
    "   \"items\": {\"type\": \"string\"}}}";

static tpucl_status write_model(tp_json_writer *writer)
{
    tp_json_document *properties;
    TP_TRY(tp_json_parse(model_schema, sizeof model_schema - 1, "model", &properties));
    tp_json_put_string(writer, "type", "object");
    tp_json_key(writer, "required");
    tp_json_begin_inline_array(writer);
    tp_json_write_string(writer, "layers");
    tp_json_end_array(writer);
    tp_json_key(writer, "properties");
    tp_json_write_value(writer, tp_json_root(properties));
    tp_json_destroy(properties);
    return TPUCL_OK;
}

/* What the value may be, without null and documentation. */
static tpucl_status write_type(tp_json_writer *writer, const tp_config_key *key)
{
    switch (key->type) {
    case TP_CONFIG_STRING:
        tp_json_put_string(writer, "type", "string");
        break;
    case TP_CONFIG_INT:
        write_range(writer, "integer", key);
        break;
    case TP_CONFIG_DOUBLE:
        write_range(writer, "number", key);
        break;
    case TP_CONFIG_BOOL:
        tp_json_put_string(writer, "type", "boolean");
        break;
    case TP_CONFIG_CHOICE:
        write_choices(writer, key);
        break;
    case TP_CONFIG_INTS:
        begin_items(writer);
        write_range(writer, "integer", key);
        tp_json_end_object(writer);
        tp_json_put_int(writer, "maxItems", TP_CONFIG_MAX_DIMS);
        break;
    case TP_CONFIG_METRICS:
        return tp_config_write_metrics_schema(writer);
    case TP_CONFIG_NUMBERS:
        begin_items(writer);
        write_range(writer, "number", key);
        tp_json_end_object(writer);
        tp_json_put_int(writer, "maxItems", TP_CONFIG_MAX_ITEMS);
        break;
    case TP_CONFIG_STRINGS:
        begin_items(writer);
        tp_json_put_string(writer, "type", "string");
        tp_json_end_object(writer);
        tp_json_put_int(writer, "maxItems", TP_CONFIG_MAX_ITEMS);
        break;
    case TP_CONFIG_GROUPS:
        begin_items(writer);
        begin_items(writer);
        write_range(writer, "integer", key);
        tp_json_end_object(writer);
        tp_json_end_object(writer);
        break;
    case TP_CONFIG_FILES:
        return tp_config_write_files_schema(writer);
    case TP_CONFIG_LOSSES:
        return tp_config_write_losses_schema(writer);
    case TP_CONFIG_MODEL:
        return write_model(writer);
    }
    return TPUCL_OK;
}

static tpucl_status write_key_schema(tp_json_writer *writer, const tp_config_key *key)
{
    bool optional = tp_str_equal(key->fallback, "null");
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "description", key->meaning);
    if (optional) {
        tp_json_key(writer, "anyOf");
        tp_json_begin_array(writer);
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "type", "null");
        tp_json_end_object(writer);
        tp_json_begin_object(writer);
    }
    TP_TRY(write_type(writer, key));
    if (optional) {
        tp_json_end_object(writer);
        tp_json_end_array(writer);
    }
    if (key->fallback) {
        tp_json_document *document;
        TP_TRY(tp_json_parse(key->fallback, strlen(key->fallback), key->path, &document));
        tp_json_key(writer, "default");
        tp_json_write_value(writer, tp_json_root(document));
        tp_json_destroy(document);
    }
    tp_json_end_object(writer);
    return TPUCL_OK;
}

/* The first part of a path behind `prefix`, for telling keys from groups. */
static size_t part_length(const tp_config_key *key, size_t prefix_length)
{
    return strcspn(key->path + prefix_length, ".");
}

static tpucl_status write_object_schema(tp_json_writer *writer, const char *prefix);

/* A group, or the name alone where it has one. */
static tpucl_status write_group_schema(tp_json_writer *writer, const char *prefix)
{
    int name = tp_config_find_name_key(prefix);
    tp_json_begin_object(writer);
    if (name >= 0) {
        tp_json_key(writer, "anyOf");
        tp_json_begin_array(writer);
        tp_json_begin_object(writer);
        write_choices(writer, &tp_config_keys[name]);
        tp_json_end_object(writer);
        tp_json_begin_object(writer);
    }
    TP_TRY(write_object_schema(writer, prefix));
    if (name >= 0) {
        tp_json_end_object(writer);
        tp_json_end_array(writer);
    }
    tp_json_end_object(writer);
    return TPUCL_OK;
}

/* Whether something below prefix + the next `length` characters must be given. */
static bool is_required(const char *path, size_t length)
{
    for (const tp_config_key *key = tp_config_keys; key->path; key++) {
        bool below = strncmp(key->path, path, length) == 0 &&
                     (key->path[length] == '.' || key->path[length] == '\0');
        if (below && !key->fallback) return true;
    }
    return false;
}

static void write_required(tp_json_writer *writer, const char *prefix)
{
    size_t prefix_length = strlen(prefix), last_length = 0;
    const char *last = "";
    tp_json_key(writer, "required");
    tp_json_begin_inline_array(writer);
    for (const tp_config_key *key = tp_config_keys; key->path; key++) {
        if (strncmp(key->path, prefix, prefix_length) != 0) continue;
        size_t length = prefix_length + part_length(key, prefix_length);
        bool repeated = length == last_length && strncmp(last, key->path, length) == 0;
        last = key->path;
        last_length = length;
        if (repeated || !is_required(key->path, length)) continue;
        char part[64];
        snprintf(part, sizeof part, "%.*s", (int)(length - prefix_length),
                 key->path + prefix_length);
        tp_json_write_string(writer, part);
    }
    tp_json_end_array(writer);
}

static tpucl_status write_object_schema(tp_json_writer *writer, const char *prefix)
{
    size_t prefix_length = strlen(prefix);
    char group[64] = "";
    tp_json_put_string(writer, "type", "object");
    tp_json_put_bool(writer, "additionalProperties", false);
    write_required(writer, prefix);
    tp_json_key(writer, "properties");
    tp_json_begin_object(writer);
    if (!prefix_length) {
        tp_json_key(writer, "$schema");
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "type", "string");
        tp_json_end_object(writer);
    }
    for (const tp_config_key *key = tp_config_keys; key->path; key++) {
        if (strncmp(key->path, prefix, prefix_length) != 0) continue;
        if (group[0] && strncmp(key->path, group, strlen(group)) == 0) continue; /* done already */
        char part[64];
        size_t length = part_length(key, prefix_length);
        snprintf(part, sizeof part, "%.*s", (int)length, key->path + prefix_length);
        tp_json_key(writer, part);
        if (key->path[prefix_length + length] == '\0') {
            TP_TRY(write_key_schema(writer, key));
        } else {
            snprintf(group, sizeof group, "%.*s", (int)(prefix_length + length + 1), key->path);
            TP_TRY(write_group_schema(writer, group));
        }
    }
    tp_json_end_object(writer);
    return TPUCL_OK;
}

tpucl_status tp_config_schema(char **out_text)
{
    tp_json_writer writer = {0};
    *out_text = NULL;
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "$schema", "https://json-schema.org/draft/2020-12/schema");
    tp_json_put_string(&writer, "title", "tpucl run configuration");
    tpucl_status status = write_object_schema(&writer, "");
    if (status != TPUCL_OK) {
        tp_json_writer_deinit(&writer);
        return status;
    }
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

/* ---- documentation and help ---- */

static void append_number(tp_str_builder *text, double value)
{
    char number[TP_STR_DOUBLE_BYTES];
    if (value >= -0x1p53 && value <= 0x1p53 && value == (double)(int64_t)value) {
        tp_str_builder_printf(text, "%lld", (long long)value);
        return;
    }
    tp_str_from_double(value, number);
    tp_str_append(text, number);
}

/* "integer, 1 to 1024"; "one of SGD, Adam". */
static void append_type(tp_str_builder *text, const tp_config_key *key)
{
    static const char *const names[] = {"string",
                                        "integer",
                                        "number",
                                        "true or false",
                                        "one of",
                                        "shape",
                                        "metrics",
                                        "list of numbers",
                                        "list of strings",
                                        "list of lists of core ids",
                                        "path, or paths by name",
                                        "losses by output",
                                        "object"};
    tp_str_append(text, names[key->type]);
    for (size_t i = 0; key->choices && key->choices[i]; i++)
        tp_str_builder_printf(text, "%s %s", i ? "," : "", key->choices[i]);
    if (key->type != TP_CONFIG_INT && key->type != TP_CONFIG_DOUBLE) return;
    tp_str_append(text, ", ");
    append_number(text, key->min);
    tp_str_append(text, " to ");
    append_number(text, key->max);
}

/* "SGD 0.01, others 0.001": which choices have the key and what it is when not given. */
static void append_choices(tp_str_builder *text, const tp_config_choice *choice, const char *part)
{
    const char *separator = "";
    for (size_t i = 0; choice->names[i]; i++) {
        size_t length;
        const char *value = tp_choice_find(choice->keys[i], part, &length);
        if (!value) continue;
        const bool is_none = length == 4 && strncmp(value, "null", 4) == 0;
        tp_str_builder_printf(text, "%s%s", separator, choice->names[i]);
        if (!is_none) tp_str_builder_printf(text, " `%.*s`", (int)length, value);
        separator = ", ";
    }
}

tpucl_status tp_config_markdown(char **out_text)
{
    tp_str_builder text = {0};
    tp_str_append(&text, "| key | value | default | meaning |\n|---|---|---|---|\n");
    for (const tp_config_key *key = tp_config_keys; key->path; key++) {
        tp_str_builder_printf(&text, "| `%s` | ", key->path);
        append_type(&text, key);
        const char *part;
        const tp_config_choice *choice = tp_config_find_choice(key->path, &part);
        if (choice) {
            tp_str_append(&text, " | ");
            append_choices(&text, choice, part);
        } else if (!key->fallback)
            tp_str_append(&text, " | required");
        else if (tp_str_equal(key->fallback, "null"))
            tp_str_append(&text, " | not given");
        else
            tp_str_builder_printf(&text, " | `%s`", key->fallback);
        tp_str_builder_printf(&text, " | %s%s |\n", key->meaning, key->keeps_result ? " *" : "");
    }
    return tp_str_builder_finish(&text, out_text, NULL);
}

tpucl_status tp_config_help(char **out_text)
{
    tp_str_builder text = {0};
    for (const tp_config_key *key = tp_config_keys; key->path; key++) {
        tp_str_builder_printf(&text, "%s\n    %s\n    ", key->path, key->meaning);
        append_type(&text, key);
        if (!key->fallback)
            tp_str_append(&text, "; required\n");
        else if (tp_str_equal(key->fallback, "null"))
            tp_str_append(&text, "\n");
        else
            tp_str_builder_printf(&text, "; default %s\n", key->fallback);
    }
    return tp_str_builder_finish(&text, out_text, NULL);
}
