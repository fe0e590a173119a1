/* SPDX-License-Identifier: Apache-2.0
 * Views and the string builder. Numbers and suggestions are in str_number.c and str_nearest.c. */
#include "core/str.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "core/alloc.h"

tp_view tp_view_of(const char *text)
{
    return (tp_view){text ? text : "", text ? strlen(text) : 0};
}

bool tp_view_equal(tp_view a, tp_view b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

bool tp_view_equal_text(tp_view a, const char *text)
{
    return tp_view_equal(a, tp_view_of(text));
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

tp_view tp_view_trim(tp_view view)
{
    while (view.length && is_space(view.data[0]))
        view.data++, view.length--;
    while (view.length && is_space(view.data[view.length - 1]))
        view.length--;
    return view;
}

bool tp_view_next(tp_view *inout_rest, char separator, tp_view *out_part)
{
    if (!inout_rest->length) return false;
    const char *end = memchr(inout_rest->data, separator, inout_rest->length);
    size_t length = end ? (size_t)(end - inout_rest->data) : inout_rest->length;
    size_t used = end ? length + 1 : length;
    *out_part = (tp_view){inout_rest->data, length};
    inout_rest->data += used;
    inout_rest->length -= used;
    return true;
}

bool tp_str_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool tp_str_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool tp_str_ends_with(const char *text, const char *suffix)
{
    size_t text_length = strlen(text), suffix_length = strlen(suffix);
    return text_length >= suffix_length &&
           memcmp(text + text_length - suffix_length, suffix, suffix_length) == 0;
}

/* strcasestr() is no part of POSIX. */
bool tp_str_contains_nocase(const char *text, const char *part)
{
    const size_t length = strlen(part);
    for (; *text; text++)
        if (strncasecmp(text, part, length) == 0) return true;
    return length == 0;
}

/* Room for `extra` characters and the zero behind them; false when an earlier or this failure
 * stuck. */
static bool reserve(tp_str_builder *builder, size_t extra)
{
    if (builder->status != TPUCL_OK) return false;
    size_t wanted;
    if (!tp_size_add(builder->length, extra, &wanted) || !tp_size_add(wanted, 1, &wanted)) {
        builder->status = TP_FAIL(TPUCL_OUT_OF_MEMORY, "a text of more than %zu bytes", SIZE_MAX);
        return false;
    }
    if (wanted <= builder->capacity) return true;
    size_t capacity = builder->capacity < 64 ? 64 : builder->capacity + builder->capacity / 2;
    if (capacity < wanted) capacity = wanted;
    char *data = tp_alloc_grow(builder->data, builder->data ? builder->length + 1 : 0, capacity, 1);
    if (!data) {
        builder->status = TPUCL_OUT_OF_MEMORY;
        return false;
    }
    builder->data = data;
    builder->capacity = capacity;
    return true;
}

void tp_str_append_bytes(tp_str_builder *builder, const char *bytes, size_t length)
{
    if (!reserve(builder, length)) return;
    if (length) memcpy(builder->data + builder->length, bytes, length);
    builder->length += length;
    builder->data[builder->length] = '\0';
}

void tp_str_append(tp_str_builder *builder, const char *text)
{
    tp_str_append_bytes(builder, text, strlen(text));
}

void tp_str_append_char(tp_str_builder *builder, char c)
{
    tp_str_append_bytes(builder, &c, 1);
}

void tp_str_builder_printf(tp_str_builder *builder, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        if (builder->status == TPUCL_OK)
            builder->status = TP_FAIL(TPUCL_INTERNAL, "format '%s' cannot be printed", format);
        return;
    }
    if (!reserve(builder, (size_t)length)) return;
    va_start(args, format);
    vsnprintf(builder->data + builder->length, (size_t)length + 1, format, args);
    va_end(args);
    builder->length += (size_t)length;
}

tpucl_status tp_str_builder_finish(tp_str_builder *builder, char **out_text, size_t *out_length)
{
    *out_text = NULL;
    reserve(builder, 0);
    if (builder->status != TPUCL_OK) {
        tpucl_status status = builder->status;
        tp_str_builder_deinit(builder);
        return status;
    }
    builder->data[builder->length] = '\0';
    *out_text = builder->data;
    if (out_length) *out_length = builder->length;
    memset(builder, 0, sizeof *builder);
    return TPUCL_OK;
}

void tp_str_builder_deinit(tp_str_builder *builder)
{
    tp_free(builder->data);
    memset(builder, 0, sizeof *builder);
}

/* Unicode 15.0, table 3-7: the second byte of some sequences has a narrower range (no overlong
 * forms, no surrogates, nothing above U+10FFFF). */
size_t tp_str_utf8_length(const char *bytes, size_t available)
{
    const unsigned char *p = (const unsigned char *)bytes;
    if (!available) return 0;
    if (p[0] < 0x80) return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || available < length) return 0;
    unsigned char low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < length; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf) return 0;
    }
    return length;
}
