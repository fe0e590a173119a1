/* SPDX-License-Identifier: Apache-2.0
 * Parsing of option tables, and the nearest name for typing mistakes. */
#include "opt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 32 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Edits (insert, delete, replace) from a to b; both at most MAX_NAME long. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    size_t row[MAX_NAME + 1];
    for (size_t j = 0; j <= b_len; ++j)
        row[j] = j;
    for (size_t i = 1; i <= a_len; ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; ++j) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_len];
}

const char *tp_opt_nearest(const char *text, const char *(*get)(const void *user, int index),
                           const void *user)
{
    const char *best = NULL;
    size_t best_edits = strlen(text) / 3 + 2;
    if (strlen(text) > MAX_NAME) return NULL;
    for (int i = 0; get(user, i); ++i) {
        const char *name = get(user, i);
        if (strlen(name) > MAX_NAME) continue;
        size_t edits = edit_distance(text, name);
        if (edits < best_edits) {
            best_edits = edits;
            best = name;
        }
    }
    return best;
}

typedef struct table_pair {
    const tp_opt_row *common, *rows;
} table_pair;

/* Row `index` of both tables seen as one; NULL past the end. */
static const tp_opt_row *row_at(const table_pair *tables, int index)
{
    for (int t = 0; t < 2; ++t) {
        for (const tp_opt_row *row = t ? tables->common : tables->rows; row && row->name; ++row)
            if (index-- == 0) return row;
    }
    return NULL;
}

static const char *row_name(const void *user, int index)
{
    const tp_opt_row *row = row_at(user, index);
    return row ? row->name : NULL;
}

static const tp_opt_row *find_row(const table_pair *tables, const char *name, size_t name_len,
                                  char letter)
{
    const tp_opt_row *row;
    for (int i = 0; (row = row_at(tables, i)); ++i) {
        if (name && strlen(row->name) == name_len && !memcmp(row->name, name, name_len)) return row;
        if (!name && row->letter == letter) return row;
    }
    return NULL;
}

static bool takes_value(const tp_opt_row *row)
{
    return row->kind != TP_OPT_FLAG && row->kind != TP_OPT_COUNT;
}

/* Puts a value (NULL for flags) where the row says. */
static bool store(const tp_opt_row *row, const char *value, void *values, char *out_error)
{
    void *target = (char *)values + row->offset;
    switch (row->kind) {
    case TP_OPT_FLAG:
        *(bool *)target = true;
        return true;
    case TP_OPT_COUNT:
        ++*(int64_t *)target;
        return true;
    case TP_OPT_TEXT:
        *(const char **)target = value;
        return true;
    case TP_OPT_LIST: {
        tp_opt_list *list = target;
        if (list->count == TP_OPT_MAX_LIST) {
            snprintf(out_error, TP_OPT_ERROR_BYTES, "'--%s' may be given at most %d times",
                     row->name, TP_OPT_MAX_LIST);
            return false;
        }
        list->items[list->count++] = value;
        return true;
    }
    case TP_OPT_INT:
        break;
    }
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (*value == '\0' || *end != '\0' || errno || number < row->min || number > row->max) {
        snprintf(out_error, TP_OPT_ERROR_BYTES,
                 "'--%s' is '%s', expected a whole number from %lld to %lld", row->name, value,
                 (long long)row->min, (long long)row->max);
        return false;
    }
    *(int64_t *)target = number;
    return true;
}

static bool unknown(const table_pair *tables, const char *name, size_t name_len, char *out_error)
{
    char copy[MAX_NAME + 1];
    snprintf(copy, sizeof copy, "%.*s", (int)(name_len > MAX_NAME ? MAX_NAME : name_len), name);
    const char *nearest = tp_opt_nearest(copy, row_name, tables);
    snprintf(out_error, TP_OPT_ERROR_BYTES, "unknown option '--%.*s'%s%s%s", (int)name_len, name,
             nearest ? "; did you mean '--" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return false;
}

/* "--name", "--name=value" and "--name value". *inout_index moves past a value taken from argv. */
static bool parse_long(const table_pair *tables, int argc, char **argv, int *inout_index,
                       void *values, char *out_error)
{
    const char *name = argv[*inout_index] + 2;
    const char *equals = strchr(name, '=');
    size_t name_len = equals ? (size_t)(equals - name) : strlen(name);
    const tp_opt_row *row = find_row(tables, name, name_len, 0);
    if (!row) return unknown(tables, name, name_len, out_error);
    if (!takes_value(row)) {
        if (!equals) return store(row, NULL, values, out_error);
        snprintf(out_error, TP_OPT_ERROR_BYTES, "'--%s' takes no value, found '%s'", row->name,
                 equals + 1);
        return false;
    }
    if (equals) return store(row, equals + 1, values, out_error);
    if (*inout_index + 1 >= argc) {
        snprintf(out_error, TP_OPT_ERROR_BYTES, "'--%s' needs a value: --%s %s", row->name,
                 row->name, row->value);
        return false;
    }
    return store(row, argv[++*inout_index], values, out_error);
}

/* "-v", "-vv", "-o FILE", "-oFILE": the last letter may take a value. */
static bool parse_letters(const table_pair *tables, int argc, char **argv, int *inout_index,
                          void *values, char *out_error)
{
    const char *argument = argv[*inout_index];
    for (const char *letter = argument + 1; *letter; ++letter) {
        const tp_opt_row *row = find_row(tables, NULL, 0, *letter);
        if (!row) {
            snprintf(out_error, TP_OPT_ERROR_BYTES, "unknown option '-%c' in '%s'", *letter,
                     argument);
            return false;
        }
        if (takes_value(row)) {
            if (letter[1]) return store(row, letter + 1, values, out_error);
            if (*inout_index + 1 < argc) return store(row, argv[++*inout_index], values, out_error);
            snprintf(out_error, TP_OPT_ERROR_BYTES, "'-%c' needs a value: -%c %s", *letter, *letter,
                     row->value);
            return false;
        }
        if (!store(row, NULL, values, out_error)) return false;
    }
    return true;
}

bool tp_opt_parse(const tp_opt_row *common, const tp_opt_row *rows, int argc, char **argv,
                  void *values, tp_opt_operands *out_operands, char out_error[TP_OPT_ERROR_BYTES])
{
    const table_pair tables = {common, rows};
    bool options_over = false;
    out_operands->count = 0;
    out_error[0] = '\0';
    for (int i = 0; i < argc; ++i) {
        const char *argument = argv[i];
        if (!options_over && !strcmp(argument, "--")) {
            options_over = true;
        } else if (!options_over && !strncmp(argument, "--", 2)) {
            if (!parse_long(&tables, argc, argv, &i, values, out_error)) return false;
        } else if (!options_over && argument[0] == '-' && argument[1]) {
            if (!parse_letters(&tables, argc, argv, &i, values, out_error)) return false;
        } else if (out_operands->count == TP_OPT_MAX_OPERANDS) {
            snprintf(out_error, TP_OPT_ERROR_BYTES, "more than %d arguments", TP_OPT_MAX_OPERANDS);
            return false;
        } else {
            out_operands->items[out_operands->count++] = argument;
        }
    }
    return true;
}
