/* SPDX-License-Identifier: Apache-2.0
 * Numbers to and from text. The C library's conversions follow the process's locale (a decimal
 * comma!), which belongs to the embedding program; so they run under the "C" locale, set for this
 * thread only. */
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/str.h"
#include "core/thread.h"

static locale_t c_locale; /* made once, kept for the life of the process */
static tp_once c_locale_once = TP_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* The previous locale, to be handed to uselocale again; 0 when there is no memory for ours. */
static locale_t enter_c_locale(void)
{
    tp_once_run(&c_locale_once, make_c_locale);
    return c_locale ? uselocale(c_locale) : (locale_t)0;
}

static void leave_c_locale(locale_t previous)
{
    if (previous) uselocale(previous);
}

static tpucl_status refuse(tp_view text, size_t position, const char *expected)
{
    if (position >= text.length)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "expected %s, but '%.*s' ends too early", expected,
                       TP_VIEW_ARGS(text));
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "expected %s, found '%.*s' (wrong at character %zu)",
                   expected, TP_VIEW_ARGS(text), position + 1);
}

/* Decimal digits from `position` to the end. */
static tpucl_status parse_digits(tp_view text, size_t position, const char *expected,
                                 uint64_t *out_value)
{
    uint64_t value = 0;
    if (position >= text.length) return refuse(text, position, expected);
    for (size_t i = position; i < text.length; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
        if (digit > 9) return refuse(text, i, expected);
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the number '%.*s' does not fit into 64 bits",
                           TP_VIEW_ARGS(text));
    }
    *out_value = value;
    return TPUCL_OK;
}

tpucl_status tp_str_parse_uint64(tp_view text, uint64_t *out_value)
{
    return parse_digits(text, 0, "an integer from 0", out_value);
}

tpucl_status tp_str_parse_int64(tp_view text, int64_t *out_value)
{
    bool negative = text.length && text.data[0] == '-';
    uint64_t magnitude = 0;
    tpucl_status status = parse_digits(text, negative, "an integer", &magnitude);
    if (status != TPUCL_OK) return status;
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the number '%.*s' does not fit into 64 bits",
                       TP_VIEW_ARGS(text));
    *out_value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return TPUCL_OK;
}

/* Length of the longest prefix of the form [-]digits[.digits][e[+-]digits]; *out_good is false when
 * the prefix stops inside that form. */
static size_t scan_double(tp_view text, bool *out_good)
{
    size_t i = 0, digits = 0;
    if (i < text.length && text.data[i] == '-') i++;
    for (; i < text.length && isdigit((unsigned char)text.data[i]); i++)
        digits++;
    if (digits && i < text.length && text.data[i] == '.') {
        i++;
        for (digits = 0; i < text.length && isdigit((unsigned char)text.data[i]); i++)
            digits++;
    }
    if (digits && i < text.length && (text.data[i] == 'e' || text.data[i] == 'E')) {
        i++;
        if (i < text.length && (text.data[i] == '+' || text.data[i] == '-')) i++;
        for (digits = 0; i < text.length && isdigit((unsigned char)text.data[i]); i++)
            digits++;
    }
    *out_good = digits > 0;
    return i;
}

tpucl_status tp_str_parse_double(tp_view text, double *out_value)
{
    enum { LONGEST = 1024 }; /* a double needs at most 767 digits to be read exactly */
    char copy[LONGEST];
    bool good;
    size_t end = scan_double(text, &good);
    if (!good || end != text.length) return refuse(text, end, "a number");
    if (text.length >= LONGEST)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "a number of %zu characters, at most %d are read",
                       text.length, LONGEST - 1);
    memcpy(copy, text.data, text.length);
    copy[text.length] = '\0';
    locale_t previous = enter_c_locale();
    double value = strtod(copy, NULL);
    leave_c_locale(previous);
    if (!isfinite(value))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the number '%.*s' is larger than a double can be",
                       TP_VIEW_ARGS(text));
    *out_value = value;
    return TPUCL_OK;
}

void tp_str_from_double(double value, char out_text[TP_STR_DOUBLE_BYTES])
{
    if (!isfinite(value)) {
        strcpy(out_text, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    locale_t previous = enter_c_locale();
    /* 17 significant digits always read back the same; the first count that does is the shortest.
     */
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out_text, TP_STR_DOUBLE_BYTES, "%.*g", digits, value);
        if (strtod(out_text, NULL) == value) break;
    }
    leave_c_locale(previous);
    if (!strpbrk(out_text, ".e")) strcat(out_text, ".0");
}

void tp_str_from_bytes(uint64_t bytes, char out_text[TP_STR_DOUBLE_BYTES])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out_text, TP_STR_DOUBLE_BYTES, "%u B", (unsigned)bytes);
        return;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1024;
    locale_t previous = enter_c_locale();
    snprintf(out_text, TP_STR_DOUBLE_BYTES, "%.2f %s", value, units[unit]);
    leave_c_locale(previous);
}
