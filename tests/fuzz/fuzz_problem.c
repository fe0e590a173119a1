/* SPDX-License-Identifier: Apache-2.0
 * Lines of problems: whatever the bytes are, they give problems with sizes that can be multiplied, whose one
 * spelling reads back as the same, or a message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "tune/problem_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(const tp_problem_line *line)
{
    char text[TP_PROBLEM_LINE_BYTES];
    tp_problem_line again;
    tp_problem_line_print(line, text);
    if (tp_problem_line_parse(tp_view_of(text), &again) != TPUCL_OK) abort();
    if (again.kind != line->kind || again.batch != line->batch || again.m != line->m ||
        again.n != line->n || again.k != line->k)
        abort();
    if (memcmp(&again.conv, &line->conv, sizeof again.conv) != 0) abort();
    if (again.a_is_transposed != line->a_is_transposed) abort();
    if (again.b_is_transposed != line->b_is_transposed) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_problem_lines lines = {0};
    char *text = tp_alloc_zero(size + 1);
    if (!text) abort();
    memcpy(text, data, size);
    tp_error_clear();
    if (tp_problem_lines_parse((tp_view){text, size}, "fuzz", &lines) != TPUCL_OK &&
        tpucl_last_error()->message[0] == '\0')
        abort();
    for (size_t i = 0; i < lines.count; i++) {
        const tp_problem_line *line = &lines.items[i];
        if (line->m < 1 || line->n < 1 || line->k < 1 || line->times < 1) abort();
        if (tp_problem_line_flops(line) < 2) abort();
        tp_mxu_problem problem;
        tp_problem_line_to_mxu(line, TP_PRECISION_DEFAULT, &problem);
        read_back(line);
    }
    tp_problem_lines_deinit(&lines);
    tp_free(text);
    return 0;
}
