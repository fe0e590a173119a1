/* SPDX-License-Identifier: Apache-2.0
 * Recursive descent over the text. Nothing is decoded here; keys are remembered as they are
 * written, for the key path in messages. */
#include "core/json_scan.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "core/str.h"

typedef struct level {
    bool is_object;
    size_t index; /* of the element that is being read */
    tp_view key;  /* the last key, without its quotes */
} level;

typedef struct scanner {
    const char *text, *name;
    size_t length, position;
    int line;
    size_t line_begin;
    int depth;
    level levels[TP_JSON_DEPTH_LIMIT];
    tp_json_scan *scan;
} scanner;

static int column_of(const scanner *s, size_t position)
{
    size_t column = position - s->line_begin + 1;
    return column > INT_MAX ? INT_MAX : (int)column;
}

static void describe_path(const scanner *s, char *out_text, size_t size)
{
    size_t used = 0;
    out_text[0] = '\0';
    for (int i = 0; i < s->depth && used + 1 < size; i++) {
        const level *l = &s->levels[i];
        int wrote;
        if (!l->is_object)
            wrote = snprintf(out_text + used, size - used, "[%zu]", l->index);
        else if (l->key.data)
            wrote = snprintf(out_text + used, size - used, "%s%.*s", used ? "." : "",
                             TP_VIEW_ARGS(l->key));
        else
            break;
        used += (size_t)wrote;
    }
}

/* What stands at the position, for a message. */
static void describe_found(const scanner *s, char *out_text, size_t size)
{
    const char *p = s->text + s->position;
    size_t left = s->length - s->position;
    size_t sequence = tp_str_utf8_length(p, left);
    if (!left)
        snprintf(out_text, size, "the end of the text");
    else if ((unsigned char)*p < 0x20 || *p == 0x7f || !sequence)
        snprintf(out_text, size, "byte 0x%02x", (unsigned char)*p);
    else
        snprintf(out_text, size, "'%.*s'", (int)sequence, p);
}

static tpucl_status refuse(const scanner *s, const char *expected)
{
    char path[160], found[32], suffix[192] = "";
    describe_path(s, path, sizeof path);
    describe_found(s, found, sizeof found);
    if (path[0]) snprintf(suffix, sizeof suffix, " (key path '%s')", path);
    return TP_FAIL(TPUCL_INVALID_CONFIG, "expected %s, found %s at %.200s:%d:%d%s", expected, found,
                   s->name, s->line, column_of(s, s->position), suffix);
}

/* The next byte, or -1 at the end. */
static int peek(const scanner *s)
{
    return s->position < s->length ? (unsigned char)s->text[s->position] : -1;
}

static void skip_space(scanner *s)
{
    for (;; s->position++) {
        int c = peek(s);
        if (c == '\n') {
            s->line++;
            s->line_begin = s->position + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static tpucl_status scan_digits(scanner *s)
{
    if (!is_digit(peek(s))) return refuse(s, "a digit");
    while (is_digit(peek(s)))
        s->position++;
    return TPUCL_OK;
}

static tpucl_status scan_number(scanner *s)
{
    if (peek(s) == '-') s->position++;
    if (peek(s) == '0') {
        s->position++;
        if (is_digit(peek(s))) return refuse(s, "a number without a leading zero");
    } else {
        TP_TRY(scan_digits(s));
    }
    if (peek(s) == '.') {
        s->position++;
        TP_TRY(scan_digits(s));
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->position++;
        if (peek(s) == '+' || peek(s) == '-') s->position++;
        TP_TRY(scan_digits(s));
    }
    return TPUCL_OK;
}

/* Four hexadecimal digits at the position. */
static tpucl_status scan_hex4(scanner *s, unsigned *out_unit)
{
    *out_unit = 0;
    for (int i = 0; i < 4; i++, s->position++) {
        int c = peek(s);
        unsigned digit;
        if (is_digit(c))
            digit = (unsigned)(c - '0');
        else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            digit = (unsigned)((c | 0x20) - 'a' + 10);
        else
            return refuse(s, "four hexadecimal digits after '\\u'");
        *out_unit = *out_unit << 4 | digit;
    }
    return TPUCL_OK;
}

static tpucl_status scan_unicode_escape(scanner *s)
{
    size_t begin = s->position - 2;
    unsigned unit, low = 0;
    TP_TRY(scan_hex4(s, &unit));
    bool good = unit != 0 && !(unit >= 0xdc00 && unit <= 0xdfff);
    if (unit >= 0xd800 && unit <= 0xdbff) {
        good = s->length - s->position >= 2 && memcmp(s->text + s->position, "\\u", 2) == 0;
        if (good) {
            s->position += 2;
            TP_TRY(scan_hex4(s, &low));
            good = low >= 0xdc00 && low <= 0xdfff;
        }
    }
    if (good) return TPUCL_OK;
    s->position = begin;
    return refuse(s, unit == 0 ? "a string without zero characters"
                               : "an escape that is a character, not half of a surrogate pair");
}

/* From the opening quote to behind the closing one; *out_inside is what lies between. */
static tpucl_status scan_string(scanner *s, tp_view *out_inside)
{
    size_t begin = ++s->position;
    for (;;) {
        int c = peek(s);
        if (c == '"') break;
        if (c < 0) return refuse(s, "a closing quote");
        if (c < 0x20) return refuse(s, "an escape such as '\\n' for the control character");
        if (c == '\\') {
            s->position++;
            int escape = peek(s);
            if (escape < 0x20 || !strchr("\"\\/bfnrtu", escape))
                return refuse(s, "an escape (one of \" \\ / b f n r t u)");
            s->position++;
            if (escape == 'u') TP_TRY(scan_unicode_escape(s));
            continue;
        }
        size_t sequence = tp_str_utf8_length(s->text + s->position, s->length - s->position);
        if (!sequence) return refuse(s, "valid UTF-8");
        s->position += sequence;
    }
    *out_inside = (tp_view){s->text + begin, s->position - begin};
    s->position++;
    return TPUCL_OK;
}

static tpucl_status scan_word(scanner *s, const char *word)
{
    size_t length = strlen(word);
    bool same =
        s->length - s->position >= length && memcmp(s->text + s->position, word, length) == 0;
    if (!same) return refuse(s, "a value");
    s->position += length;
    return TPUCL_OK;
}

static tpucl_status scan_value(scanner *s);

/* One key and its colon. */
static tpucl_status scan_key(scanner *s, level *l)
{
    tp_view key;
    if (peek(s) != '"') return refuse(s, "a key in double quotes");
    TP_TRY(scan_string(s, &key));
    l->key = key;
    skip_space(s);
    if (peek(s) != ':') return refuse(s, "':'");
    s->position++;
    skip_space(s);
    return TPUCL_OK;
}

static tpucl_status scan_container(scanner *s, bool is_object)
{
    const int close = is_object ? '}' : ']';
    if (s->depth == TP_JSON_DEPTH_LIMIT) return refuse(s, "at most 100 levels");
    level *l = &s->levels[s->depth++];
    *l = (level){.is_object = is_object};
    s->position++;
    skip_space(s);
    bool more = peek(s) != close;
    while (more) {
        if (is_object) TP_TRY(scan_key(s, l));
        TP_TRY(scan_value(s));
        skip_space(s);
        more = peek(s) == ',';
        if (!more && peek(s) != close) return refuse(s, is_object ? "',' or '}'" : "',' or ']'");
        if (!more) break;
        s->position++;
        skip_space(s);
        l->index++;
        l->key = (tp_view){0};
    }
    s->position++;
    s->depth--;
    return TPUCL_OK;
}

static tpucl_status scan_value(scanner *s)
{
    tp_json_place place = {
        .offset = s->position, .line = s->line, .column = column_of(s, s->position)};
    size_t index = s->scan->places.count;
    tp_view ignored;
    TP_TRY(tp_json_places_push(&s->scan->places, place));
    int c = peek(s);
    switch (c) {
    case '{':
        return scan_container(s, true);
    case '[':
        return scan_container(s, false);
    case '"':
        return scan_string(s, &ignored);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        break;
    }
    if (c != '-' && !is_digit(c)) return refuse(s, "a value");
    TP_TRY(scan_number(s));
    s->scan->places.items[index].length = s->position - place.offset;
    return TPUCL_OK;
}

tpucl_status tp_json_scan_text(const char *text, size_t length, const char *name,
                               tp_json_scan *inout_scan)
{
    scanner s = {.text = text, .length = length, .name = name, .line = 1, .scan = inout_scan};
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "expected JSON without a byte order mark, found one at %.200s:1:1; save the "
                       "file as UTF-8 without it",
                       name);
    skip_space(&s);
    TP_TRY(scan_value(&s));
    skip_space(&s);
    if (s.position < s.length) return refuse(&s, "nothing after the value");
    return TPUCL_OK;
}

void tp_json_scan_deinit(tp_json_scan *scan)
{
    tp_json_places_deinit(&scan->places);
}
