/* SPDX-License-Identifier: Apache-2.0
 * Products and convolutions as lines of text, for benches and the tuner (bench/problems/):
 *
 *     dot M N K [batch=B] [layout=NN|NT|TN|TT] [times=N]
 *     conv IMAGES H W C FILTERS KHxKW [stride=S] [pad=same|valid|P] [dilation=D] [groups=G]
 *          [op=forward|input_grad|filter_grad] [times=N]
 *
 * One line each; '#' begins a comment. dot: C[M][N] = sum over K of A[M][K] * B[K][N], row-major;
 * the layout's letters say of A and of B how they lie in memory, T as [K][M] and [N][K]. conv: images
 * NHWC, filters HWIO; `pad` is `same` (the default; Keras' rule: what is uneven goes to the end) or
 * `valid`, or as many pixels on all four sides; `times` is how often a model has the problem.
 */
#ifndef TP_TUNE_PROBLEM_LINE_H
#define TP_TUNE_PROBLEM_LINE_H

#include "core/array.h"
#include "core/str.h"
#include "kernel/mxu.h"

typedef struct tp_problem_line {
    tp_mxu_kind kind;
    int64_t batch, m, n, k; /* of the product, as in kernel/mxu.h; convolutions: batch 1 */
    bool a_is_transposed, b_is_transposed; /* dot only */
    tp_mxu_conv conv;                      /* conv only; groups is at least 1 */
    int64_t times;                         /* 1 unless given */
    int32_t number;                        /* of the line in its text, from 1 */
} tp_problem_line;
TP_ARRAY_DEFINE(tp_problem_lines, tp_problem_line)

/* One line. A blank one or one with nothing but a comment is TPUCL_NOT_FOUND, what is no problem
 * TPUCL_INVALID_ARGUMENT. Every size is 1 to 2^31 - 1, every tensor has less than 2^40 elements, and a
 * problem less than 2^60 multiply-adds. */
tpucl_status tp_problem_line_parse(tp_view text, tp_problem_line *out_line) TPUCL_MUST_CHECK;

/* All lines of a text; the message lists all that are wrong, with their numbers, and names `what`. The
 * caller gives a zeroed array and tp_problem_lines_deinit()s it, also after a failure. */
tpucl_status tp_problem_lines_parse(tp_view text, const char *what,
                                    tp_problem_lines *out_lines) TPUCL_MUST_CHECK;
/* Of a file, 1 MiB at most. */
tpucl_status tp_problem_lines_read(const char *path, tp_problem_lines *out_lines) TPUCL_MUST_CHECK;

/* The one spelling of a problem, without `times`: what is the default is left out, so that equal
 * problems have equal texts ("same" and "valid" become a number where one does). It reads back as the
 * same problem. */
enum { TP_PROBLEM_LINE_BYTES = 256 };
void tp_problem_line_print(const tp_problem_line *line, char out_text[TP_PROBLEM_LINE_BYTES]);

/* The problem as the catalogue takes it. `precision` F32 takes and gives f32, the others take bf16 and
 * give what training keeps: bf16 of convolutions and their input gradients, f32 of dot and filter
 * gradients. Filters are replicated. Epilogue, tensors and label are left to the caller. */
void tp_problem_line_to_mxu(const tp_problem_line *line, tp_precision precision,
                            tp_mxu_problem *out_problem);

/* Floating-point operations: two for each multiply-add, those with padding too. Both gradients have as
 * many as the forward convolution: what a strided one's input gradient reads between the strides is
 * not counted. */
double tp_problem_line_flops(const tp_problem_line *line);

#endif
