/* SPDX-License-Identifier: Apache-2.0
 * Strict JSON (RFC 8259) reader. A pre-scan of our own refuses what cJSON lets through (leading
 * zeros, raw control characters, invalid UTF-8, byte order mark, duplicate keys, zero characters in
 * strings) and gives every error and every value its line and column; cJSON builds the values.
 *
 * Every failure is TPUCL_INVALID_CONFIG (malformed text, wrong type, out of range) or
 * TPUCL_OUT_OF_MEMORY, and its message says what was expected, what was found, file:line:column and
 * the key path. Columns and lines count from 1, columns in bytes. Values are read-only and live as
 * long as their document: thread-safe to read. */
#ifndef TP_CORE_JSON_H
#define TP_CORE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include "core/problems.h"
#include "core/status.h"

typedef enum tp_json_kind {
    TP_JSON_NULL,
    TP_JSON_BOOL,
    TP_JSON_INTEGER, /* no point, no exponent, fits into int64 */
    TP_JSON_NUMBER,  /* any other number; finite */
    TP_JSON_STRING,
    TP_JSON_ARRAY,
    TP_JSON_OBJECT
} tp_json_kind;

typedef struct tp_json_document tp_json_document;

typedef struct tp_json {
    tp_json_kind kind;
    int line, column;
    bool boolean;
    int64_t integer;    /* TP_JSON_INTEGER */
    double number;      /* TP_JSON_INTEGER (rounded) and TP_JSON_NUMBER */
    const char *string; /* TP_JSON_STRING: UTF-8, zero-terminated, holds no other zero */
    size_t string_length;
    const struct tp_json *items; /* children of an array or object, in file order */
    size_t count;
    const char *key;              /* of a member of an object, else NULL */
    size_t index;                 /* position in the parent */
    const struct tp_json *parent; /* NULL for the root */
    const struct tp_json **sorted;
    const tp_json_document *document;
} tp_json;

enum { TP_JSON_DEPTH_LIMIT = 100 };

/* Parses `length` bytes; `name` appears in messages (the file's path, "--set", ...). The text is
 * copied. */
tpucl_status tp_json_parse(const char *text, size_t length, const char *name,
                           tp_json_document **out_document) TPUCL_MUST_CHECK;
/* Reads a file of at most `max_bytes`. */
tpucl_status tp_json_read_file(const char *path, size_t max_bytes,
                               tp_json_document **out_document) TPUCL_MUST_CHECK;
void tp_json_destroy(tp_json_document *document);

const tp_json *tp_json_root(const tp_json_document *document);
/* The name given when it was parsed. */
const char *tp_json_name(const tp_json_document *document);

/* Case-sensitive. NULL when absent or when `object` is no object. O(log n). */
const tp_json *tp_json_member(const tp_json *object, const char *key);

/* Member that must be there and of this kind (TP_JSON_NUMBER accepts integers too). */
tpucl_status tp_json_require(const tp_json *object, const char *key, tp_json_kind kind,
                             const tp_json **out_value) TPUCL_MUST_CHECK;

/* Typed reading of one value. */
tpucl_status tp_json_expect(const tp_json *value, tp_json_kind kind) TPUCL_MUST_CHECK;
tpucl_status tp_json_as_int64(const tp_json *value, int64_t min, int64_t max,
                              int64_t *out_value) TPUCL_MUST_CHECK;
tpucl_status tp_json_as_double(const tp_json *value, double min, double max,
                               double *out_value) TPUCL_MUST_CHECK;
tpucl_status tp_json_as_bool(const tp_json *value, bool *out_value) TPUCL_MUST_CHECK;
/* Borrowed. */
tpucl_status tp_json_as_string(const tp_json *value, const char **out_value) TPUCL_MUST_CHECK;
/* A string that is one of `names`; *out_index is its place. Unknown: the nearest name is suggested.
 */
tpucl_status tp_json_as_choice(const tp_json *value, const char *const *names, size_t count,
                               size_t *out_index) TPUCL_MUST_CHECK;

/* The same on a member that may be absent (out_value is then untouched, and so it holds the
 * default). */
tpucl_status tp_json_get_int64(const tp_json *object, const char *key, int64_t min, int64_t max,
                               int64_t *inout_value) TPUCL_MUST_CHECK;
tpucl_status tp_json_get_double(const tp_json *object, const char *key, double min, double max,
                                double *inout_value) TPUCL_MUST_CHECK;
tpucl_status tp_json_get_bool(const tp_json *object, const char *key,
                              bool *inout_value) TPUCL_MUST_CHECK;
tpucl_status tp_json_get_string(const tp_json *object, const char *key,
                                const char **inout_value) TPUCL_MUST_CHECK;

/* Every member whose key is not in `keys` is a problem, with the nearest key. */
void tp_json_report_unknown(const tp_json *object, const char *const *keys, size_t count,
                            tp_problems *problems);
/* The same as one error. */
tpucl_status tp_json_check_keys(const tp_json *object, const char *const *keys,
                                size_t count) TPUCL_MUST_CHECK;

/* "run.json:3:14 (key path 'model.layers[2].units')"; returns out_text. */
enum { TP_JSON_WHERE_BYTES = 320 };
const char *tp_json_where(const tp_json *value, char out_text[TP_JSON_WHERE_BYTES]);
/* "model.layers[2].units"; "" for the root. Cut at the end when it is longer. Returns out_text. */
const char *tp_json_path(const tp_json *value, char *out_text, size_t size);
/* For messages: "the string 'abc'", "the number 3", "an object"; returns out_text. */
enum { TP_JSON_FOUND_BYTES = 96 };
const char *tp_json_found(const tp_json *value, char out_text[TP_JSON_FOUND_BYTES]);

#endif
