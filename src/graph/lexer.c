/* SPDX-License-Identifier: Apache-2.0
 * Tokens, one function each; nothing here looks past the end of the view. */
#include "graph/lexer.h"

#include <string.h>

static void advance(tp_lexer *lexer, size_t count)
{
    lexer->rest.data += count;
    lexer->rest.length -= count;
}

static char peek(const tp_lexer *lexer)
{
    return lexer->rest.length ? *lexer->rest.data : '\0';
}

void tp_lexer_skip(tp_lexer *lexer)
{
    while (peek(lexer) == ' ' || peek(lexer) == '\t' || peek(lexer) == '\r')
        advance(lexer, 1);
    if (peek(lexer) == '#')
        while (lexer->rest.length && peek(lexer) != '\n')
            advance(lexer, 1);
}

tpucl_status tp_lexer_fail(tp_lexer *lexer, const char *expected)
{
    size_t shown = 0;
    while (shown < lexer->rest.length && shown < 24 && lexer->rest.data[shown] >= 0x20 &&
           lexer->rest.data[shown] < 0x7f)
        ++shown;
    const char *found = lexer->rest.length == 0 ? "the end of the text"
                        : shown == 0            ? "the end of the line or a control character"
                                                : NULL;
    if (found)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "line %d: expected %s, found %s", lexer->line, expected,
                       found);
    return TP_FAIL(TPUCL_CORRUPT_DATA, "line %d: expected %s, found '%.*s'", lexer->line, expected,
                   (int)shown, lexer->rest.data);
}

bool tp_lexer_accept(tp_lexer *lexer, const char *text)
{
    tp_lexer_skip(lexer);
    const size_t length = strlen(text);
    if (lexer->rest.length < length || memcmp(lexer->rest.data, text, length) != 0) return false;
    advance(lexer, length);
    return true;
}

tpucl_status tp_lexer_expect(tp_lexer *lexer, const char *text)
{
    if (tp_lexer_accept(lexer, text)) return TPUCL_OK;
    char expected[32];
    size_t length = strlen(text);
    if (length > sizeof expected - 3) length = sizeof expected - 3;
    expected[0] = '\'';
    memcpy(expected + 1, text, length);
    memcpy(expected + 1 + length, "'", 2);
    return tp_lexer_fail(lexer, expected);
}

bool tp_lexer_at_end(tp_lexer *lexer)
{
    return lexer->rest.length == 0;
}

tpucl_status tp_lexer_end_line(tp_lexer *lexer)
{
    tp_lexer_skip(lexer);
    if (lexer->rest.length && peek(lexer) != '\n')
        return tp_lexer_fail(lexer, "the end of the line");
    while (peek(lexer) == '\n') {
        advance(lexer, 1);
        if (lexer->line == INT32_MAX)
            return TP_FAIL(TPUCL_CORRUPT_DATA, "more than %d lines", INT32_MAX);
        ++lexer->line;
        tp_lexer_skip(lexer);
    }
    return TPUCL_OK;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

tpucl_status tp_lexer_word(tp_lexer *lexer, const char **out_word)
{
    tp_lexer_skip(lexer);
    size_t length = 0;
    while (length < lexer->rest.length && is_word(lexer->rest.data[length]))
        ++length;
    if (length == 0) return tp_lexer_fail(lexer, "a name");
    *out_word = tp_arena_strndup(lexer->arena, lexer->rest.data, length);
    if (!*out_word) return TPUCL_OUT_OF_MEMORY;
    advance(lexer, length);
    return TPUCL_OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

/* One character after a backslash; 0 when it is no escape. */
static char take_escape(tp_lexer *lexer)
{
    const char c = peek(lexer);
    if (c == 'x' && lexer->rest.length >= 3) {
        const int high = hex_digit(lexer->rest.data[1]), low = hex_digit(lexer->rest.data[2]);
        if (high < 0 || low < 0) return '\0';
        advance(lexer, 3);
        return (char)(high << 4 | low);
    }
    const char *from = "\"\\nt", *to = "\"\\\n\t", *found = c ? strchr(from, c) : NULL;
    if (!found) return '\0';
    advance(lexer, 1);
    return to[found - from];
}

tpucl_status tp_lexer_quoted(tp_lexer *lexer, const char **out_text)
{
    TP_TRY(tp_lexer_expect(lexer, "\""));
    size_t bound = 0;
    while (bound < lexer->rest.length && lexer->rest.data[bound] != '\n')
        ++bound; /* a text ends on its line, so this is room enough */
    char *text = tp_arena_alloc(lexer->arena, bound + 1);
    if (!text) return TPUCL_OUT_OF_MEMORY;
    size_t length = 0;
    while (peek(lexer) != '"') {
        char c = peek(lexer);
        if ((unsigned char)c < 0x20) return tp_lexer_fail(lexer, "'\"' at the end of the text");
        advance(lexer, 1);
        if (c == '\\' && (c = take_escape(lexer)) == '\0')
            return tp_lexer_fail(lexer, "one of \\\" \\\\ \\n \\t \\xHH");
        text[length++] = c;
    }
    advance(lexer, 1);
    *out_text = text;
    return TPUCL_OK;
}

tpucl_status tp_lexer_bytes(tp_lexer *lexer, const void **out_data, uint64_t *out_bytes)
{
    size_t digits = 0;
    while (digits < lexer->rest.length && hex_digit(lexer->rest.data[digits]) >= 0)
        ++digits;
    if (digits == lexer->rest.length || lexer->rest.data[digits] != '"' || digits % 2) {
        advance(lexer, digits);
        return tp_lexer_fail(lexer, "an even number of hexadecimal digits and '\"'");
    }
    unsigned char *data = tp_arena_alloc(lexer->arena, digits / 2);
    if (!data) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < digits / 2; ++i)
        data[i] = (unsigned char)(hex_digit(lexer->rest.data[2 * i]) << 4 |
                                  hex_digit(lexer->rest.data[2 * i + 1]));
    advance(lexer, digits + 1);
    *out_data = data;
    *out_bytes = digits / 2;
    return TPUCL_OK;
}

tp_view tp_lexer_number(tp_lexer *lexer)
{
    tp_lexer_skip(lexer);
    size_t length = 0;
    while (length < lexer->rest.length &&
           (is_word(lexer->rest.data[length]) || memchr("+-.", lexer->rest.data[length], 3)))
        ++length;
    const tp_view number = {.data = lexer->rest.data, .length = length};
    advance(lexer, length);
    return number;
}

tpucl_status tp_lexer_int64(tp_lexer *lexer, int64_t *out_value)
{
    tp_lexer before = *lexer;
    if (tp_str_parse_int64(tp_lexer_number(lexer), out_value) == TPUCL_OK) return TPUCL_OK;
    tp_lexer_skip(&before);
    return tp_lexer_fail(&before, "an integer");
}
