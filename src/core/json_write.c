/* SPDX-License-Identifier: Apache-2.0
 * JSON writer. */
#include "core/json_write.h"

#include <math.h>
#include <string.h>
#include "core/alloc.h"
#include "core/file.h"

static void misuse(tp_json_writer *writer)
{
    writer->misused = true;
}

static void new_line(tp_json_writer *writer, int depth)
{
    if (writer->compact) return;
    tp_str_append_char(&writer->text, '\n');
    for (int i = 0; i < depth; i++)
        tp_str_append(&writer->text, "  ");
}

/* What goes between the previous item and this one (a value or a key). */
static void begin_item(tp_json_writer *writer)
{
    if (!writer->depth) return;
    bool is_inline = writer->levels[writer->depth - 1].is_inline;
    if (writer->levels[writer->depth - 1].has_items)
        tp_str_append(&writer->text, is_inline && !writer->compact ? ", " : ",");
    if (!is_inline) new_line(writer, writer->depth);
    writer->levels[writer->depth - 1].has_items = true;
}

static void begin_value(tp_json_writer *writer)
{
    bool in_object = writer->depth && writer->levels[writer->depth - 1].is_object;
    bool second_root = !writer->depth && writer->text.length;
    if (in_object != writer->after_key || second_root) misuse(writer);
    if (!writer->after_key) begin_item(writer);
    writer->after_key = false;
}

static void begin_container(tp_json_writer *writer, bool is_object, bool is_inline)
{
    begin_value(writer);
    tp_str_append_char(&writer->text, is_object ? '{' : '[');
    if (writer->depth == TP_JSON_DEPTH_LIMIT) {
        misuse(writer);
        return;
    }
    writer->levels[writer->depth].is_object = is_object;
    writer->levels[writer->depth].is_inline = is_inline;
    writer->levels[writer->depth++].has_items = false;
}

static void end_container(tp_json_writer *writer, bool is_object)
{
    if (!writer->depth || writer->after_key ||
        writer->levels[writer->depth - 1].is_object != is_object) {
        misuse(writer);
        return;
    }
    writer->depth--;
    bool broken =
        writer->levels[writer->depth].has_items && !writer->levels[writer->depth].is_inline;
    if (broken) new_line(writer, writer->depth);
    tp_str_append_char(&writer->text, is_object ? '}' : ']');
}

void tp_json_begin_object(tp_json_writer *writer)
{
    begin_container(writer, true, false);
}

void tp_json_end_object(tp_json_writer *writer)
{
    end_container(writer, true);
}

void tp_json_begin_array(tp_json_writer *writer)
{
    begin_container(writer, false, false);
}

void tp_json_begin_inline_array(tp_json_writer *writer)
{
    begin_container(writer, false, true);
}

void tp_json_end_array(tp_json_writer *writer)
{
    end_container(writer, false);
}

/* Bytes that are no UTF-8 (a driver's device name, say) become the replacement character. */
static void append_quoted(tp_str_builder *text, const char *string)
{
    size_t left = strlen(string);
    tp_str_append_char(text, '"');
    while (left) {
        unsigned char c = (unsigned char)*string;
        size_t length = tp_str_utf8_length(string, left);
        if (c == '"' || c == '\\') {
            tp_str_builder_printf(text, "\\%c", c);
        } else if (c == '\n') {
            tp_str_append(text, "\\n");
        } else if (c == '\t') {
            tp_str_append(text, "\\t");
        } else if (c < 0x20 || c == 0x7f) {
            tp_str_builder_printf(text, "\\u%04x", c);
        } else if (!length) {
            tp_str_append(text, "\xef\xbf\xbd");
        } else {
            tp_str_append_bytes(text, string, length);
        }
        string += length ? length : 1;
        left -= length ? length : 1;
    }
    tp_str_append_char(text, '"');
}

void tp_json_key(tp_json_writer *writer, const char *key)
{
    if (!writer->depth || writer->after_key || !writer->levels[writer->depth - 1].is_object)
        misuse(writer);
    begin_item(writer);
    append_quoted(&writer->text, key);
    tp_str_append(&writer->text, writer->compact ? ":" : ": ");
    writer->after_key = true;
}

void tp_json_write_string(tp_json_writer *writer, const char *text)
{
    begin_value(writer);
    if (text)
        append_quoted(&writer->text, text);
    else
        tp_str_append(&writer->text, "null");
}

void tp_json_write_int(tp_json_writer *writer, int64_t value)
{
    begin_value(writer);
    tp_str_builder_printf(&writer->text, "%lld", (long long)value);
}

void tp_json_write_uint(tp_json_writer *writer, uint64_t value)
{
    begin_value(writer);
    tp_str_builder_printf(&writer->text, "%llu", (unsigned long long)value);
}

void tp_json_write_double(tp_json_writer *writer, double value)
{
    char text[TP_STR_DOUBLE_BYTES];
    tp_str_from_double(value, text);
    begin_value(writer);
    tp_str_append(&writer->text, isfinite(value) ? text : "null");
}

void tp_json_write_bool(tp_json_writer *writer, bool value)
{
    begin_value(writer);
    tp_str_append(&writer->text, value ? "true" : "false");
}

void tp_json_write_null(tp_json_writer *writer)
{
    begin_value(writer);
    tp_str_append(&writer->text, "null");
}

static bool holds_scalars(const tp_json *value)
{
    for (size_t i = 0; i < value->count; i++) {
        if (value->items[i].kind >= TP_JSON_ARRAY) return false;
    }
    return true;
}

void tp_json_write_value(tp_json_writer *writer, const tp_json *value)
{
    switch (value->kind) {
    case TP_JSON_NULL:
        tp_json_write_null(writer);
        break;
    case TP_JSON_BOOL:
        tp_json_write_bool(writer, value->boolean);
        break;
    case TP_JSON_INTEGER:
        tp_json_write_int(writer, value->integer);
        break;
    case TP_JSON_NUMBER:
        tp_json_write_double(writer, value->number);
        break;
    case TP_JSON_STRING:
        tp_json_write_string(writer, value->string);
        break;
    case TP_JSON_ARRAY:
        begin_container(writer, false, holds_scalars(value));
        for (size_t i = 0; i < value->count; i++)
            tp_json_write_value(writer, &value->items[i]);
        tp_json_end_array(writer);
        break;
    case TP_JSON_OBJECT:
        tp_json_begin_object(writer);
        for (size_t i = 0; i < value->count; i++) {
            tp_json_key(writer, value->items[i].key);
            tp_json_write_value(writer, &value->items[i]);
        }
        tp_json_end_object(writer);
        break;
    }
}

void tp_json_put_string(tp_json_writer *writer, const char *key, const char *text)
{
    tp_json_key(writer, key);
    tp_json_write_string(writer, text);
}

void tp_json_put_int(tp_json_writer *writer, const char *key, int64_t value)
{
    tp_json_key(writer, key);
    tp_json_write_int(writer, value);
}

void tp_json_put_double(tp_json_writer *writer, const char *key, double value)
{
    tp_json_key(writer, key);
    tp_json_write_double(writer, value);
}

void tp_json_put_bool(tp_json_writer *writer, const char *key, bool value)
{
    tp_json_key(writer, key);
    tp_json_write_bool(writer, value);
}

tpucl_status tp_json_writer_finish(tp_json_writer *writer, char **out_text)
{
    *out_text = NULL;
    bool complete = !writer->misused && !writer->depth && writer->text.length;
    if (writer->text.status == TPUCL_OK && !complete) {
        tp_json_writer_deinit(writer);
        return TP_FAIL(TPUCL_INTERNAL, "the JSON writer was called in an order that makes no JSON");
    }
    if (!writer->compact) tp_str_append_char(&writer->text, '\n');
    tp_str_builder text = writer->text;
    memset(writer, 0, sizeof *writer);
    return tp_str_builder_finish(&text, out_text, NULL);
}

tpucl_status tp_json_writer_save(tp_json_writer *writer, const char *path)
{
    char *text;
    TP_TRY(tp_json_writer_finish(writer, &text));
    tpucl_status status = tp_file_write_atomic(path, text, strlen(text));
    tp_free(text);
    return status;
}

void tp_json_writer_deinit(tp_json_writer *writer)
{
    tp_str_builder_deinit(&writer->text);
    memset(writer, 0, sizeof *writer);
}
