/* SPDX-License-Identifier: Apache-2.0
 * Text: views, a builder whose first error sticks, numbers that do not depend on the locale, and
 * the nearest of a list of names, for "did you mean". */
#ifndef TP_CORE_STR_H
#define TP_CORE_STR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

/* Borrowed characters, not zero-terminated. */
typedef struct tp_view {
    const char *data;
    size_t length;
} tp_view;

tp_view tp_view_of(const char *text); /* NULL gives the empty view */
bool tp_view_equal(tp_view a, tp_view b);
bool tp_view_equal_text(tp_view a, const char *text);
/* Without white space at both ends. */
tp_view tp_view_trim(tp_view view);
/* Cuts the part before the first `separator` (or all that is left) off *inout_rest into *out_part;
 * false when nothing is left. "a,,b" gives "a", "", "b"; "a," gives "a". */
bool tp_view_next(tp_view *inout_rest, char separator, tp_view *out_part);

/* "%.*s" with this macro prints a view. */
#define TP_VIEW_ARGS(view) (int)(view).length, (view).data

bool tp_str_equal(const char *a, const char *b); /* two NULLs are equal */
bool tp_str_starts_with(const char *text, const char *prefix);
bool tp_str_ends_with(const char *text, const char *suffix);
/* Whether `part` stands somewhere in `text`, case ignored; "" stands in every text. */
bool tp_str_contains_nocase(const char *text, const char *part);

/* ---- builder ---- */
/* Zero-initialise. Appending cannot fail at the call: the first failure sticks and finish() reports
 * it. */
typedef struct tp_str_builder {
    char *data; /* zero-terminated once anything was appended */
    size_t length;
    size_t capacity;
    tpucl_status status;
} tp_str_builder;

void tp_str_append(tp_str_builder *builder, const char *text);
void tp_str_append_bytes(tp_str_builder *builder, const char *bytes, size_t length);
void tp_str_append_char(tp_str_builder *builder, char c);
void tp_str_builder_printf(tp_str_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Hands the text over (free with tp_free; never NULL on success) and empties the builder.
 * `out_length` may be NULL. */
tpucl_status tp_str_builder_finish(tp_str_builder *builder, char **out_text,
                                   size_t *out_length) TPUCL_MUST_CHECK;
void tp_str_builder_deinit(tp_str_builder *builder);

/* ---- numbers ---- */
/* The whole view must be the number, in decimal; the message names the position of the first
 * character that does not belong. Doubles: decimal or exponent form, finite ("inf" and "nan" are
 * refused). */
tpucl_status tp_str_parse_int64(tp_view text, int64_t *out_value) TPUCL_MUST_CHECK;
tpucl_status tp_str_parse_uint64(tp_view text, uint64_t *out_value) TPUCL_MUST_CHECK;
tpucl_status tp_str_parse_double(tp_view text, double *out_value) TPUCL_MUST_CHECK;

/* The shortest decimal text that reads back as the same double ("0.1", "1e+300", "3.0"). A finite
 * value always has a point or an exponent; others give "nan", "inf", "-inf". Needs 32 bytes. */
enum { TP_STR_DOUBLE_BYTES = 32 };
void tp_str_from_double(double value, char out_text[TP_STR_DOUBLE_BYTES]);

/* "1.50 GiB", "512 B". Needs 32 bytes. */
void tp_str_from_bytes(uint64_t bytes, char out_text[TP_STR_DOUBLE_BYTES]);

/* ---- UTF-8 ---- */
/* Length of the well-formed sequence (Unicode 15, table 3-7) at `bytes`, 0 when there is none. */
size_t tp_str_utf8_length(const char *bytes, size_t available);

/* ---- suggestions ---- */
/* The name with the smallest edit distance (insert, delete, replace, swap of neighbours; case
 * ignored), or NULL when none is within a third of its length. Equal distances: the first. */
const char *tp_str_nearest(const char *text, const char *const *names, size_t count);

#endif
