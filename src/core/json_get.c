/* SPDX-License-Identifier: Apache-2.0
 * Typed access to JSON values, with messages that say where. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/json.h"
#include "core/str.h"

static const char *const kind_names[] = {"null",     "true or false", "an integer", "a number",
                                         "a string", "an array",      "an object"};

const char *tp_json_path(const tp_json *value, char *out_text, size_t size)
{
    const tp_json *chain[TP_JSON_DEPTH_LIMIT + 1];
    size_t count = 0, used = 0;
    for (; value->parent && count <= TP_JSON_DEPTH_LIMIT; value = value->parent)
        chain[count++] = value;
    out_text[0] = '\0';
    while (count-- && used + 1 < size) {
        const tp_json *v = chain[count];
        int wrote = v->key ? snprintf(out_text + used, size - used, "%s%s", used ? "." : "", v->key)
                           : snprintf(out_text + used, size - used, "[%zu]", v->index);
        used += (size_t)wrote;
    }
    return out_text;
}

const char *tp_json_where(const tp_json *value, char out_text[TP_JSON_WHERE_BYTES])
{
    char path[128];
    tp_json_path(value, path, sizeof path);
    if (path[0])
        snprintf(out_text, TP_JSON_WHERE_BYTES, "%.160s:%d:%d (key path '%s')",
                 tp_json_name(value->document), value->line, value->column, path);
    else
        snprintf(out_text, TP_JSON_WHERE_BYTES, "%.160s:%d:%d", tp_json_name(value->document),
                 value->line, value->column);
    return out_text;
}

const char *tp_json_found(const tp_json *value, char out_text[TP_JSON_FOUND_BYTES])
{
    char number[TP_STR_DOUBLE_BYTES];
    switch (value->kind) {
    case TP_JSON_BOOL:
        return strcpy(out_text, value->boolean ? "true" : "false");
    case TP_JSON_INTEGER:
        snprintf(out_text, TP_JSON_FOUND_BYTES, "%lld", (long long)value->integer);
        return out_text;
    case TP_JSON_NUMBER:
        tp_str_from_double(value->number, number);
        return strcpy(out_text, number);
    case TP_JSON_STRING:
        snprintf(out_text, TP_JSON_FOUND_BYTES, "the string '%.60s%s'", value->string,
                 value->string_length > 60 ? "..." : "");
        for (char *p = out_text; *p; p++) {
            if ((unsigned char)*p < 0x20) *p = '?';
        }
        return out_text;
    default:
        return strcpy(out_text, kind_names[value->kind]);
    }
}

/* "expected <what>, found <value> at <place>" */
static tpucl_status refuse(const tp_json *value, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static tpucl_status refuse(const tp_json *value, const char *format, ...)
{
    char expected[256], found[TP_JSON_FOUND_BYTES], where[TP_JSON_WHERE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    return TP_FAIL(TPUCL_INVALID_CONFIG, "expected %s, found %s at %s", expected,
                   tp_json_found(value, found), tp_json_where(value, where));
}

const tp_json *tp_json_member(const tp_json *object, const char *key)
{
    if (object->kind != TP_JSON_OBJECT) return NULL;
    size_t low = 0, high = object->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(key, object->sorted[middle]->key);
        if (order == 0) return object->sorted[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

tpucl_status tp_json_expect(const tp_json *value, tp_json_kind kind)
{
    bool fits = value->kind == kind || (kind == TP_JSON_NUMBER && value->kind == TP_JSON_INTEGER);
    return fits ? TPUCL_OK : refuse(value, "%s", kind_names[kind]);
}

tpucl_status tp_json_require(const tp_json *object, const char *key, tp_json_kind kind,
                             const tp_json **out_value)
{
    TP_TRY(tp_json_expect(object, TP_JSON_OBJECT));
    const tp_json *value = tp_json_member(object, key);
    if (!value) {
        char where[TP_JSON_WHERE_BYTES];
        return TP_FAIL(TPUCL_INVALID_CONFIG, "key '%s' (%s) is missing in the object at %s", key,
                       kind_names[kind], tp_json_where(object, where));
    }
    TP_TRY(tp_json_expect(value, kind));
    *out_value = value;
    return TPUCL_OK;
}

tpucl_status tp_json_as_int64(const tp_json *value, int64_t min, int64_t max, int64_t *out_value)
{
    if (value->kind == TP_JSON_INTEGER && value->integer >= min && value->integer <= max) {
        *out_value = value->integer;
        return TPUCL_OK;
    }
    if (min == INT64_MIN && max == INT64_MAX) return refuse(value, "an integer");
    if (min == max) return refuse(value, "%lld", (long long)min);
    if (max == INT64_MAX) return refuse(value, "an integer of at least %lld", (long long)min);
    return refuse(value, "an integer from %lld to %lld", (long long)min, (long long)max);
}

tpucl_status tp_json_as_double(const tp_json *value, double min, double max, double *out_value)
{
    char low[TP_STR_DOUBLE_BYTES], high[TP_STR_DOUBLE_BYTES];
    bool is_number = value->kind == TP_JSON_NUMBER || value->kind == TP_JSON_INTEGER;
    if (is_number && value->number >= min && value->number <= max) {
        *out_value = value->number;
        return TPUCL_OK;
    }
    tp_str_from_double(min, low);
    tp_str_from_double(max, high);
    if (isinf(min) && isinf(max)) return refuse(value, "a number");
    if (isinf(max)) return refuse(value, "a number of at least %s", low);
    return refuse(value, "a number from %s to %s", low, high);
}

tpucl_status tp_json_as_bool(const tp_json *value, bool *out_value)
{
    if (value->kind != TP_JSON_BOOL) return refuse(value, "%s", kind_names[TP_JSON_BOOL]);
    *out_value = value->boolean;
    return TPUCL_OK;
}

tpucl_status tp_json_as_string(const tp_json *value, const char **out_value)
{
    if (value->kind != TP_JSON_STRING) return refuse(value, "%s", kind_names[TP_JSON_STRING]);
    *out_value = value->string;
    return TPUCL_OK;
}

tpucl_status tp_json_as_choice(const tp_json *value, const char *const *names, size_t count,
                               size_t *out_index)
{
    char list[200] = "", hint[96] = "";
    size_t used = 0;
    for (size_t i = 0; value->kind == TP_JSON_STRING && i < count; i++) {
        if (strcmp(value->string, names[i]) != 0) continue;
        *out_index = i;
        return TPUCL_OK;
    }
    for (size_t i = 0; i < count && used + 1 < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s'%s'", i ? ", " : "", names[i]);
    const char *nearest =
        value->kind == TP_JSON_STRING ? tp_str_nearest(value->string, names, count) : NULL;
    if (nearest) snprintf(hint, sizeof hint, " (did you mean '%s'?)", nearest);
    return refuse(value, "one of %s%s", list, hint);
}

tpucl_status tp_json_get_int64(const tp_json *object, const char *key, int64_t min, int64_t max,
                               int64_t *inout_value)
{
    const tp_json *value = tp_json_member(object, key);
    return value ? tp_json_as_int64(value, min, max, inout_value) : TPUCL_OK;
}

tpucl_status tp_json_get_double(const tp_json *object, const char *key, double min, double max,
                                double *inout_value)
{
    const tp_json *value = tp_json_member(object, key);
    return value ? tp_json_as_double(value, min, max, inout_value) : TPUCL_OK;
}

tpucl_status tp_json_get_bool(const tp_json *object, const char *key, bool *inout_value)
{
    const tp_json *value = tp_json_member(object, key);
    return value ? tp_json_as_bool(value, inout_value) : TPUCL_OK;
}

tpucl_status tp_json_get_string(const tp_json *object, const char *key, const char **inout_value)
{
    const tp_json *value = tp_json_member(object, key);
    return value ? tp_json_as_string(value, inout_value) : TPUCL_OK;
}

void tp_json_report_unknown(const tp_json *object, const char *const *keys, size_t count,
                            tp_problems *problems)
{
    for (size_t i = 0; i < object->count; i++) {
        const tp_json *member = &object->items[i];
        size_t k = 0;
        while (k < count && strcmp(member->key, keys[k]) != 0)
            k++;
        if (k < count) continue;
        char where[TP_JSON_WHERE_BYTES], hint[96] = "";
        const char *nearest = tp_str_nearest(member->key, keys, count);
        if (nearest) snprintf(hint, sizeof hint, ", did you mean '%s'?", nearest);
        tp_problems_add(problems, "unknown key '%.64s' at %s%s", member->key,
                        tp_json_where(member, where), hint);
    }
}

tpucl_status tp_json_check_keys(const tp_json *object, const char *const *keys, size_t count)
{
    tp_problems problems = {0};
    char where[TP_JSON_WHERE_BYTES];
    tp_json_report_unknown(object, keys, count, &problems);
    return tp_problems_result(&problems, TPUCL_INVALID_CONFIG, tp_json_where(object, where));
}
