/* SPDX-License-Identifier: Apache-2.0
 * JSON writer on a string builder. Keys appear in the order of the calls, integers as integers,
 * doubles in the shortest form that reads back the same. Two spaces a level; arrays of scalars on
 * one line. The first error (memory, or calls in an order that makes no JSON) sticks and is
 * reported by finish. */
#ifndef TP_CORE_JSON_WRITE_H
#define TP_CORE_JSON_WRITE_H

#include "core/json.h"
#include "core/str.h"

typedef struct tp_json_writer { /* zero-initialise */
    tp_str_builder text;
    int depth;
    bool compact; /* set before the first call: no spaces, no newlines */
    bool after_key;
    bool misused;
    struct {
        bool is_object, is_inline, has_items;
    } levels[TP_JSON_DEPTH_LIMIT];
} tp_json_writer;

void tp_json_begin_object(tp_json_writer *writer);
void tp_json_end_object(tp_json_writer *writer);
void tp_json_begin_array(tp_json_writer *writer);
/* An array whose elements stay on one line. */
void tp_json_begin_inline_array(tp_json_writer *writer);
void tp_json_end_array(tp_json_writer *writer);
void tp_json_key(tp_json_writer *writer, const char *key);

void tp_json_write_string(tp_json_writer *writer, const char *text); /* NULL writes null */
void tp_json_write_int(tp_json_writer *writer, int64_t value);
void tp_json_write_uint(tp_json_writer *writer, uint64_t value);
void tp_json_write_double(tp_json_writer *writer, double value); /* not finite: null */
void tp_json_write_bool(tp_json_writer *writer, bool value);
void tp_json_write_null(tp_json_writer *writer);
/* A parsed value, with everything in it. */
void tp_json_write_value(tp_json_writer *writer, const tp_json *value);

/* Key and value in one. */
void tp_json_put_string(tp_json_writer *writer, const char *key, const char *text);
void tp_json_put_int(tp_json_writer *writer, const char *key, int64_t value);
void tp_json_put_double(tp_json_writer *writer, const char *key, double value);
void tp_json_put_bool(tp_json_writer *writer, const char *key, bool value);

/* Hands the text over (tp_free), with a newline at its end unless compact. The writer is empty
 * again. */
tpucl_status tp_json_writer_finish(tp_json_writer *writer, char **out_text) TPUCL_MUST_CHECK;
/* The same into a file, atomically. */
tpucl_status tp_json_writer_save(tp_json_writer *writer, const char *path) TPUCL_MUST_CHECK;
void tp_json_writer_deinit(tp_json_writer *writer);

#endif
