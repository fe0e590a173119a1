/* SPDX-License-Identifier: Apache-2.0
 * Problem lists in a fixed buffer. */
#include "core/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add_line(tp_problems *problems, const char *line)
{
    problems->count++;
    size_t length = strlen(line), used = problems->length ? problems->length + 3 : 0;
    if (problems->hidden || used + length >= sizeof problems->text) {
        problems->hidden++; /* once one is left out, so are all after it: the list has no holes */
        if (problems->count > 1) return;
        used = 0; /* never leave the list empty: cut the only line instead */
        problems->hidden = 0;
        length = sizeof problems->text - 1;
    }
    if (used) memcpy(problems->text + problems->length, "\n  ", 3);
    memcpy(problems->text + used, line, length);
    problems->length = used + length;
    problems->text[problems->length] = '\0';
}

void tp_problems_add(tp_problems *problems, const char *format, ...)
{
    char line[sizeof problems->text + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    add_line(problems, line);
}

bool tp_problems_add_failed(tp_problems *problems, tpucl_status status)
{
    if (status == TPUCL_OK) return true;
    if (status == TPUCL_OUT_OF_MEMORY) problems->is_out_of_memory = true;
    add_line(problems, tpucl_last_error()->message);
    return false;
}

tpucl_status tp_problems_result(const tp_problems *problems, tpucl_status status, const char *what)
{
    if (!problems->count) return TPUCL_OK;
    if (problems->is_out_of_memory) status = TPUCL_OUT_OF_MEMORY;
    if (problems->count == 1) return TP_FAIL(status, "%s", problems->text);
    if (problems->hidden)
        return TP_FAIL(status, "%.100s has %zu problems:\n  %s\n  and %zu more", what,
                       problems->count, problems->text, problems->hidden);
    return TP_FAIL(status, "%.100s has %zu problems:\n  %s", what, problems->count, problems->text);
}
