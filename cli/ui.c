/* SPDX-License-Identifier: Apache-2.0
 * Tables, the progress line and log lines. The log sink and the progress line share standard error,
 * so a log line first clears the progress line; the next draw brings it back. */
#include "ui.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <tpucl/log.h>

static bool line_is_drawn;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- colour ---- */

static bool has_colour(FILE *out)
{
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

const char *tp_ui_bold(FILE *out)
{
    return has_colour(out) ? "\033[1m" : "";
}

const char *tp_ui_red(FILE *out)
{
    return has_colour(out) ? "\033[31m" : "";
}

const char *tp_ui_green(FILE *out)
{
    return has_colour(out) ? "\033[32m" : "";
}

const char *tp_ui_plain(FILE *out)
{
    return has_colour(out) ? "\033[0m" : "";
}

/* ---- log ---- */

static void print_log_line(void *user, tpucl_log_level level, const char *subsystem,
                           const char *line)
{
    (void)user;
    static const char *const names[] = {"", "error", "warning", "info", "debug"};
    tp_ui_progress_clear();
    fprintf(stderr, "%s: %s: %s\n", names[level], subsystem, line);
}

bool tp_ui_begin(int64_t verbose)
{
    tpucl_log_level level = TPUCL_LOG_WARNING;
    const char *name = getenv("TPUCL_LOG");
    if (name && *name && tpucl_log_level_parse(name, &level) != TPUCL_OK) {
        fprintf(stderr, "tpucl: TPUCL_LOG: %s\n", tpucl_last_error()->message);
        return false;
    }
    for (int64_t i = 0; i < verbose && level < TPUCL_LOG_DEBUG; ++i)
        level = (tpucl_log_level)(level + 1);
    tpucl_log_set_level(level);
    tpucl_log_set_sink(print_log_line, NULL);
    return true;
}

/* ---- tables ---- */

static char *next_cell(tp_ui_table *table)
{
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? table->capacity * 2 : 64;
        void *cells = realloc(table->cells, capacity * sizeof *table->cells);
        if (!cells) {
            fprintf(stderr, "tpucl: out of memory for a table of %zu cells\n", capacity);
            exit(1);
        }
        table->cells = cells;
        table->capacity = capacity;
    }
    return table->cells[table->count++];
}

void tp_ui_table_begin(tp_ui_table *table, const char *heads)
{
    memset(table, 0, sizeof *table);
    while (*heads && table->columns < TP_UI_MAX_COLUMNS) {
        size_t len = strcspn(heads, "|");
        bool right = *heads == '>';
        snprintf(next_cell(table), TP_UI_CELL_BYTES, "%.*s", (int)(len - right), heads + right);
        table->right[table->columns++] = right;
        heads += len + (heads[len] == '|');
    }
}

void tp_ui_cell(tp_ui_table *table, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(next_cell(table), TP_UI_CELL_BYTES, format, arguments);
    va_end(arguments);
}

void tp_ui_table_end(tp_ui_table *table, FILE *out)
{
    int widths[TP_UI_MAX_COLUMNS] = {0};
    for (size_t i = 0; i < table->count; ++i) {
        int length = (int)strlen(table->cells[i]);
        int *width = &widths[i % (size_t)table->columns];
        if (length > *width) *width = length;
    }
    for (size_t i = 0; i < table->count; ++i) {
        int column = (int)(i % (size_t)table->columns);
        bool is_last = column == table->columns - 1;
        bool is_head = i < (size_t)table->columns;
        int width = is_last && !table->right[column] ? 0 : widths[column];
        if (is_head) fputs(tp_ui_bold(out), out);
        fprintf(out, table->right[column] ? "%*s" : "%-*s", width, table->cells[i]);
        if (is_head) fputs(tp_ui_plain(out), out);
        fputs(is_last ? "\n" : "  ", out);
    }
    free(table->cells);
    memset(table, 0, sizeof *table);
}

/* ---- progress ---- */

static int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
    return 80;
}

void tp_ui_progress_clear(void)
{
    if (!line_is_drawn) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    line_is_drawn = false;
}

enum { LINE_BYTES = 512 };

/* "epoch 1/10 [=====      ]  42%  12.3k examples/s  left 0:05  loss 0.31" */
static void format_progress(const tp_ui_progress *progress, const char *label, int64_t done,
                            int64_t total, double units_per_second, const char *unit,
                            const char *detail, char out_line[LINE_BYTES])
{
    enum { BAR = 24 };
    int64_t worked = done - progress->begin_done;
    double elapsed = (double)(progress->drawn_ns - progress->begin_ns) * 1e-9;
    double left = worked > 0 ? elapsed / (double)worked * (double)(total - done) : 0;
    int filled = (int)(done * BAR / total);
    char bar[BAR + 1], speed[64] = "", eta[TP_UI_TEXT_BYTES], rate[TP_UI_TEXT_BYTES];
    memset(bar, ' ', BAR);
    memset(bar, '=', (size_t)filled);
    bar[BAR] = '\0';
    if (units_per_second > 0)
        snprintf(speed, sizeof speed, "  %s %s/s", tp_ui_count(units_per_second, rate), unit);
    snprintf(out_line, LINE_BYTES, "%s [%s] %3d%%%s  left %s  %s", label, bar,
             (int)(done * 100 / total), speed, worked > 0 ? tp_ui_duration(left, eta) : "?",
             detail);
}

void tp_ui_progress_draw(tp_ui_progress *progress, const char *label, int64_t done, int64_t total,
                         double units_per_second, const char *unit, const char *detail)
{
    /* On a terminal ten times a second is smooth and costs nothing. Elsewhere, in a log, a line of its own says now
     * and then that long work goes on. */
    const bool is_terminal = isatty(STDERR_FILENO);
    const uint64_t redraw_ns = is_terminal ? 100000000 : UINT64_C(30000000000);
    uint64_t now = now_ns();
    char line[LINE_BYTES];
    if (!progress->begin_ns) {
        progress->begin_ns = now;
        progress->begin_done = done;
    }
    const uint64_t last_ns =
        progress->drawn_ns || is_terminal ? progress->drawn_ns : progress->begin_ns;
    if (last_ns && now - last_ns < redraw_ns && (done < total || !is_terminal)) return;
    progress->drawn_ns = now;
    if (total > 0)
        format_progress(progress, label, done, total, units_per_second, unit, detail, line);
    else
        snprintf(line, sizeof line, "%s", detail);
    if (is_terminal)
        fprintf(stderr, "\r%.*s\033[K", terminal_columns() - 1, line);
    else
        fprintf(stderr, "%s\n", line);
    fflush(stderr);
    line_is_drawn = is_terminal;
}

/* ---- texts ---- */

const char *tp_ui_bytes(uint64_t bytes, char out_text[TP_UI_TEXT_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        ++unit;
    }
    snprintf(out_text, TP_UI_TEXT_BYTES, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return out_text;
}

const char *tp_ui_count(double value, char out_text[TP_UI_TEXT_BYTES])
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P"};
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        ++unit;
    }
    snprintf(out_text, TP_UI_TEXT_BYTES, value < 100 && unit ? "%.1f%s" : "%.0f%s", value,
             units[unit]);
    return out_text;
}

const char *tp_ui_duration(double seconds, char out_text[TP_UI_TEXT_BYTES])
{
    long long whole = seconds > 0 && seconds < 1e9 ? (long long)(seconds + 0.5) : 0;
    if (whole >= 3600)
        snprintf(out_text, TP_UI_TEXT_BYTES, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                 whole % 60);
    else
        snprintf(out_text, TP_UI_TEXT_BYTES, "%lld:%02lld", whole / 60, whole % 60);
    return out_text;
}
