/* SPDX-License-Identifier: Apache-2.0
 * Values of single keys, and the walk that finds the key of every member. */
#include "topo/config_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/arena.h"
#include "core/str.h"
#include "topo/config_losses.h"
#include "topo/config_metrics.h"

static size_t count_choices(const char *const *choices)
{
    size_t count = 0;
    while (choices[count])
        count++;
    return count;
}

static tpucl_status read_ints(tp_config *config, const tp_config_key *key, const tp_json *value,
                              tp_problems *problems, tp_config_ints *out_list)
{
    char where[TP_JSON_WHERE_BYTES];
    if (!tp_problems_add_failed(problems, tp_json_expect(value, TP_JSON_ARRAY))) return TPUCL_OK;
    if (value->count > TP_CONFIG_MAX_DIMS) {
        tp_problems_add(problems, "expected at most %d dimensions, found %zu at %s",
                        TP_CONFIG_MAX_DIMS, value->count, tp_json_where(value, where));
        return TPUCL_OK;
    }
    int64_t *items = TP_ARENA_NEW_ARRAY(config->store->arena, int64_t, value->count);
    if (!items) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < value->count; i++)
        tp_problems_add_failed(problems, tp_json_as_int64(&value->items[i], (int64_t)key->min,
                                                          (int64_t)key->max, &items[i]));
    *out_list = (tp_config_ints){items, value->count};
    return TPUCL_OK;
}

/* How many items a list of numbers or strings has; false when it is no list or too long. */
static bool is_list(const tp_json *value, tp_problems *problems)
{
    char where[TP_JSON_WHERE_BYTES];
    if (!tp_problems_add_failed(problems, tp_json_expect(value, TP_JSON_ARRAY))) return false;
    if (value->count <= TP_CONFIG_MAX_ITEMS) return true;
    tp_problems_add(problems, "expected at most %d items, found %zu at %s", TP_CONFIG_MAX_ITEMS,
                    value->count, tp_json_where(value, where));
    return false;
}

static tpucl_status read_numbers(tp_config *config, const tp_config_key *key, const tp_json *value,
                                 tp_problems *problems, tp_config_numbers *out_list)
{
    if (!is_list(value, problems)) return TPUCL_OK;
    double *items = TP_ARENA_NEW_ARRAY(config->store->arena, double, value->count);
    if (!items) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < value->count; i++)
        tp_problems_add_failed(problems,
                               tp_json_as_double(&value->items[i], key->min, key->max, &items[i]));
    *out_list = (tp_config_numbers){items, value->count};
    return TPUCL_OK;
}

static tpucl_status read_strings(tp_config *config, const tp_json *value, tp_problems *problems,
                                 tp_config_strings *out_list)
{
    if (!is_list(value, problems)) return TPUCL_OK;
    const char **items = TP_ARENA_NEW_ARRAY(config->store->arena, const char *, value->count);
    if (!items) return TPUCL_OUT_OF_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < value->count; i++) {
        const char *text;
        if (!tp_problems_add_failed(problems, tp_json_as_string(&value->items[i], &text))) continue;
        items[count] = tp_arena_strdup(config->store->arena, text);
        if (!items[count++]) return TPUCL_OUT_OF_MEMORY;
    }
    *out_list = (tp_config_strings){items, count};
    return TPUCL_OK;
}

/* Copies one group of ids behind the `count` that are there. */
static void read_group(const tp_config_key *key, const tp_json *group, tp_problems *problems,
                       bool *used, int64_t *items, size_t *inout_count)
{
    char where[TP_JSON_WHERE_BYTES];
    int64_t id;
    for (size_t i = 0; i < group->count; i++) {
        if (!tp_problems_add_failed(problems, tp_json_as_int64(&group->items[i], (int64_t)key->min,
                                                               (int64_t)key->max, &id)))
            continue;
        if (used[id])
            tp_problems_add(problems, "core %lld is in two places of the groups, again at %s",
                            (long long)id, tp_json_where(&group->items[i], where));
        else
            items[(*inout_count)++] = id;
        used[id] = true;
    }
}

static tpucl_status read_groups(tp_config *config, const tp_config_key *key, const tp_json *value,
                                tp_problems *problems)
{
    char where[TP_JSON_WHERE_BYTES];
    bool used[TP_TOPOLOGY_MAX_CORES] = {false};
    if (!tp_problems_add_failed(problems, tp_json_expect(value, TP_JSON_ARRAY)) || !value->count)
        return TPUCL_OK;
    int64_t *items =
        TP_ARENA_NEW_ARRAY(config->store->arena, int64_t, (size_t)TP_TOPOLOGY_MAX_CORES);
    if (!items) return TPUCL_OUT_OF_MEMORY;
    size_t count = 0, group_size = value->items[0].count;
    for (size_t i = 0; i < value->count; i++) {
        const tp_json *group = &value->items[i];
        if (!tp_problems_add_failed(problems, tp_json_expect(group, TP_JSON_ARRAY))) continue;
        if (group->count != group_size || !group_size)
            tp_problems_add(problems,
                            "expected groups of one size (the first has %zu cores), found "
                            "%zu at %s",
                            group_size, group->count, tp_json_where(group, where));
        read_group(key, group, problems, used, items, &count);
    }
    config->cross_shard.groups = (tp_config_ints){items, count};
    config->cross_shard.group_size = (int64_t)group_size;
    return TPUCL_OK;
}

static void read_model(const tp_json *value, tp_problems *problems, const tp_json **out_model)
{
    if (tp_problems_add_failed(problems, tp_json_expect(value, TP_JSON_OBJECT))) *out_model = value;
}

/* The value that a key has when JSON says null, for keys that may be left out. */
static void read_null(tp_config *config, const tp_config_key *key)
{
    void *field = (char *)config + key->offset;
    switch (key->type) {
    case TP_CONFIG_STRING:
        *(const char **)field = "";
        break;
    case TP_CONFIG_INT:
        *(int64_t *)field = 0;
        break;
    case TP_CONFIG_CHOICE:
        *(int32_t *)field = -1;
        break;
    case TP_CONFIG_DOUBLE:
        *(double *)field = (double)NAN;
        break;
    case TP_CONFIG_INTS:
        *(tp_config_ints *)field = (tp_config_ints){0};
        break;
    case TP_CONFIG_NUMBERS:
        *(tp_config_numbers *)field = (tp_config_numbers){0};
        break;
    case TP_CONFIG_GROUPS:
        config->cross_shard.groups = (tp_config_ints){0};
        config->cross_shard.group_size = 0;
        break;
    default:
        break; /* no key of another type has null as its default */
    }
}

tpucl_status tp_config_read_value(tp_config *config, const tp_config_key *key, const tp_json *value,
                                  tp_problems *problems)
{
    void *field = (char *)config + key->offset;
    const char *text;
    size_t index;
    if (value->kind == TP_JSON_NULL && tp_str_equal(key->fallback, "null")) {
        read_null(config, key);
        return TPUCL_OK;
    }
    switch (key->type) {
    case TP_CONFIG_STRING:
        if (!tp_problems_add_failed(problems, tp_json_as_string(value, &text))) break;
        text = tp_arena_strdup(config->store->arena, text);
        if (!text) return TPUCL_OUT_OF_MEMORY;
        *(const char **)field = text;
        break;
    case TP_CONFIG_INT:
        tp_problems_add_failed(
            problems, tp_json_as_int64(value, (int64_t)key->min, (int64_t)key->max, field));
        break;
    case TP_CONFIG_DOUBLE:
        tp_problems_add_failed(problems, tp_json_as_double(value, key->min, key->max, field));
        break;
    case TP_CONFIG_BOOL:
        tp_problems_add_failed(problems, tp_json_as_bool(value, field));
        break;
    case TP_CONFIG_CHOICE:
        if (tp_problems_add_failed(
                problems,
                tp_json_as_choice(value, key->choices, count_choices(key->choices), &index)))
            *(int32_t *)field = (int32_t)index;
        break;
    case TP_CONFIG_INTS:
        return read_ints(config, key, value, problems, field);
    case TP_CONFIG_METRICS:
        return tp_config_read_metrics(config, value, problems, field);
    case TP_CONFIG_NUMBERS:
        return read_numbers(config, key, value, problems, field);
    case TP_CONFIG_STRINGS:
        return read_strings(config, value, problems, field);
    case TP_CONFIG_GROUPS:
        return read_groups(config, key, value, problems);
    case TP_CONFIG_FILES:
        return tp_config_read_files(config, value, problems, field);
    case TP_CONFIG_LOSSES:
        return tp_config_read_losses(config, value, problems, field);
    case TP_CONFIG_MODEL:
        read_model(value, problems, field);
        break;
    }
    return TPUCL_OK;
}

static void write_groups(const tp_config *config, tp_json_writer *writer)
{
    const tp_config_ints *ids = &config->cross_shard.groups;
    tp_json_begin_array(writer);
    for (size_t i = 0; i < ids->count; i++) {
        bool first = i % (size_t)config->cross_shard.group_size == 0;
        if (first && i) tp_json_end_array(writer);
        if (first) tp_json_begin_inline_array(writer);
        tp_json_write_int(writer, ids->items[i]);
    }
    tp_json_end_array(writer);
    tp_json_end_array(writer);
}

void tp_config_write_value(const tp_config *config, const tp_config_key *key,
                           tp_json_writer *writer)
{
    const void *field = (const char *)config + key->offset;
    const tp_config_ints *ints = field;
    const tp_config_strings *strings = field;
    const tp_config_numbers *numbers = field;
    bool optional = tp_str_equal(key->fallback, "null");
    switch (key->type) {
    case TP_CONFIG_STRING:
        if (optional && !**(const char *const *)field)
            tp_json_write_null(writer);
        else
            tp_json_write_string(writer, *(const char *const *)field);
        break;
    case TP_CONFIG_INT:
        if (optional && *(const int64_t *)field == 0)
            tp_json_write_null(writer);
        else
            tp_json_write_int(writer, *(const int64_t *)field);
        break;
    case TP_CONFIG_DOUBLE:
        if (isnan(*(const double *)field))
            tp_json_write_null(writer);
        else
            tp_json_write_double(writer, *(const double *)field);
        break;
    case TP_CONFIG_BOOL:
        tp_json_write_bool(writer, *(const bool *)field);
        break;
    case TP_CONFIG_CHOICE:
        tp_json_write_string(
            writer, *(const int32_t *)field < 0 ? NULL : key->choices[*(const int32_t *)field]);
        break;
    case TP_CONFIG_INTS:
        if (!ints->count) {
            tp_json_write_null(writer);
            break;
        }
        tp_json_begin_inline_array(writer);
        for (size_t i = 0; i < ints->count; i++)
            tp_json_write_int(writer, ints->items[i]);
        tp_json_end_array(writer);
        break;
    case TP_CONFIG_NUMBERS:
        if (!numbers->count) {
            tp_json_write_null(writer);
            break;
        }
        tp_json_begin_inline_array(writer);
        for (size_t i = 0; i < numbers->count; i++)
            tp_json_write_double(writer, numbers->items[i]);
        tp_json_end_array(writer);
        break;
    case TP_CONFIG_METRICS:
        tp_config_write_metrics(field, writer);
        break;
    case TP_CONFIG_STRINGS:
        tp_json_begin_inline_array(writer);
        for (size_t i = 0; i < strings->count; i++)
            tp_json_write_string(writer, strings->items[i]);
        tp_json_end_array(writer);
        break;
    case TP_CONFIG_GROUPS:
        if (ints->count)
            write_groups(config, writer);
        else
            tp_json_write_null(writer);
        break;
    case TP_CONFIG_FILES:
        tp_config_write_files(field, writer);
        break;
    case TP_CONFIG_LOSSES:
        tp_config_write_losses(field, writer);
        break;
    case TP_CONFIG_MODEL:
        tp_json_write_value(writer, config->model);
        break;
    }
}

/* ---- the walk ---- */

static bool is_group(const char *path)
{
    size_t length = strlen(path);
    for (int i = 0; tp_config_keys[i].path; i++) {
        if (strncmp(tp_config_keys[i].path, path, length) == 0 &&
            tp_config_keys[i].path[length] == '.')
            return true;
    }
    return false;
}

/* "optimizer.learning_rate" for an unknown "learning_rate", else the nearest path on the same level, else
 * NULL. The text lives in `buffer` or in the table. */
static const char *suggest(const char *path, char buffer[TP_CONFIG_MAX_KEYS][64])
{
    const char *last = strrchr(path, '.'), *candidates[TP_CONFIG_MAX_KEYS];
    size_t prefix = last ? (size_t)(last + 1 - path) : 0, count = 0;
    for (int i = 0; tp_config_keys[i].path; i++) {
        const char *known = tp_config_keys[i].path, *dot = strrchr(known, '.');
        if (dot && strcmp(dot + 1, path + prefix) == 0) return known;
        if (strncmp(known, path, prefix) != 0) continue;
        size_t length = prefix + strcspn(known + prefix, ".");
        snprintf(buffer[count], sizeof buffer[0], "%.*s", (int)length, known);
        candidates[count] = buffer[count] + prefix;
        count++;
    }
    const char *nearest = tp_str_nearest(path + prefix, candidates, count);
    return nearest ? nearest - prefix : NULL;
}

static void report_unknown(const char *path, const tp_json *value, tp_problems *problems)
{
    char where[TP_JSON_WHERE_BYTES], hint[128] = "", buffer[TP_CONFIG_MAX_KEYS][64];
    const char *nearest = suggest(path, buffer);
    if (nearest) snprintf(hint, sizeof hint, ", did you mean '%s'?", nearest);
    tp_problems_add(problems, "unknown key '%.100s' at %s%s", path, tp_json_where(value, where),
                    hint);
}

tpucl_status tp_config_read_path(tp_config *config, const char *path, const tp_json *value,
                                 tp_problems *problems)
{
    char prefix[128];
    int index = tp_config_find_key(path);
    if (index < 0) {
        bool fits = snprintf(prefix, sizeof prefix, "%s.", path) < (int)sizeof prefix;
        if (!fits || !is_group(path)) {
            report_unknown(path, value, problems);
            return TPUCL_OK;
        }
        /* "optimizer": "Adam" is short for {"name": "Adam"}. */
        if (value->kind == TP_JSON_STRING || value->kind == TP_JSON_NULL)
            index = tp_config_find_name_key(prefix);
        if (index < 0) {
            if (!tp_problems_add_failed(problems, tp_json_expect(value, TP_JSON_OBJECT)))
                return TPUCL_OK;
            return tp_config_read_object(config, prefix, value, problems);
        }
    }
    const tp_config_key *key = &tp_config_keys[index];
    TP_TRY(tp_config_read_value(config, key, value, problems));
    config->store->given[index] = value->kind != TP_JSON_NULL;
    return TPUCL_OK;
}

tpucl_status tp_config_read_object(tp_config *config, const char *prefix, const tp_json *object,
                                   tp_problems *problems)
{
    for (size_t i = 0; i < object->count; i++) {
        const tp_json *member = &object->items[i];
        char path[128];
        if (!prefix[0] && strcmp(member->key, "$schema") == 0) continue; /* for editors */
        if (snprintf(path, sizeof path, "%s%s", prefix, member->key) >= (int)sizeof path ||
            strchr(member->key, '.')) {
            report_unknown(member->key, member, problems);
            continue;
        }
        TP_TRY(tp_config_read_path(config, path, member, problems));
    }
    return TPUCL_OK;
}
