/* SPDX-License-Identifier: Apache-2.0
 * Tokens of the graph's text form (print.h). Every failure is TPUCL_CORRUPT_DATA and names the
 * line. */
#ifndef TP_GRAPH_LEXER_H
#define TP_GRAPH_LEXER_H

#include "core/arena.h"
#include "core/str.h"

typedef struct tp_lexer {
    tp_view rest;
    int32_t line;    /* from 1 */
    tp_arena *arena; /* quoted texts and data */
} tp_lexer;

/* Skips blanks (not line ends) and comments. */
void tp_lexer_skip(tp_lexer *lexer);
/* Whether the next token is, or starts with, `text`; takes it if so. */
bool tp_lexer_accept(tp_lexer *lexer, const char *text);
tpucl_status tp_lexer_expect(tp_lexer *lexer, const char *text) TPUCL_MUST_CHECK;
bool tp_lexer_at_end(tp_lexer *lexer);
/* Skips to the first token of the next line that has one; fails when this line has more. */
tpucl_status tp_lexer_end_line(tp_lexer *lexer) TPUCL_MUST_CHECK;

/* Letters, digits and '_'. */
tpucl_status tp_lexer_word(tp_lexer *lexer, const char **out_word) TPUCL_MUST_CHECK;
/* A '"' text; without zero bytes. */
tpucl_status tp_lexer_quoted(tp_lexer *lexer, const char **out_text) TPUCL_MUST_CHECK;
/* Pairs of hexadecimal digits up to a '"'; the x" before them was accepted. */
tpucl_status tp_lexer_bytes(tp_lexer *lexer, const void **out_data,
                            uint64_t *out_bytes) TPUCL_MUST_CHECK;
/* The characters of a number, not looked into; empty when there is none. */
tp_view tp_lexer_number(tp_lexer *lexer);
tpucl_status tp_lexer_int64(tp_lexer *lexer, int64_t *out_value) TPUCL_MUST_CHECK;

/* "line N: expected ..., found ..." */
tpucl_status tp_lexer_fail(tp_lexer *lexer, const char *expected);

#endif
