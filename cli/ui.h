/* SPDX-License-Identifier: Apache-2.0
 * What people see: tables on standard output, a progress line on standard error, log lines. Colour
 * only on a terminal (and not with NO_COLOR or TERM=dumb); the progress line is drawn again and again there, and
 * written every half minute elsewhere. */
#ifndef TP_CLI_UI_H
#define TP_CLI_UI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Library log lines go to standard error; `verbose` adds levels to what TPUCL_LOG says (default
 * warnings). False with a message printed when TPUCL_LOG holds no level. */
bool tp_ui_begin(int64_t verbose);

/* ---- tables ---- */
enum { TP_UI_MAX_COLUMNS = 12, TP_UI_CELL_BYTES = 128 };
typedef struct tp_ui_table { /* zero-initialise */
    int columns;
    bool right[TP_UI_MAX_COLUMNS]; /* align numbers to the right */
    char (*cells)[TP_UI_CELL_BYTES];
    size_t count, capacity; /* cells; the first `columns` are the heads */
} tp_ui_table;

/* Heads separated by '|'; a '>' in front aligns the column to the right: "name|>units". */
void tp_ui_table_begin(tp_ui_table *table, const char *heads);
void tp_ui_cell(tp_ui_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints and frees. */
void tp_ui_table_end(tp_ui_table *table, FILE *out);

/* ---- progress ---- */
/* One line that is drawn again and again; nothing at all when standard error is no terminal. */
typedef struct tp_ui_progress { /* zero-initialise */
    uint64_t begin_ns, drawn_ns;
    int64_t begin_done;
} tp_ui_progress;

/* `done` of `total` units of work; `label` in front, `detail` ("loss 0.31") behind. A rate of 0
 * is left out; while `total` is 0, only the detail is shown. */
void tp_ui_progress_draw(tp_ui_progress *progress, const char *label, int64_t done, int64_t total,
                         double units_per_second, const char *unit, const char *detail);
/* Clears the line. */
void tp_ui_progress_clear(void);

/* ---- texts ---- */
enum { TP_UI_TEXT_BYTES = 32 };
const char *tp_ui_bytes(uint64_t bytes, char out_text[TP_UI_TEXT_BYTES]);    /* "1.5 GiB" */
const char *tp_ui_count(double value, char out_text[TP_UI_TEXT_BYTES]);      /* "12.3k" */
const char *tp_ui_duration(double seconds, char out_text[TP_UI_TEXT_BYTES]); /* "1:05" */

/* Escape sequences, or "" when `out` shall have no colour. */
const char *tp_ui_bold(FILE *out);
const char *tp_ui_red(FILE *out);
const char *tp_ui_green(FILE *out);
const char *tp_ui_plain(FILE *out);

#endif
