/* SPDX-License-Identifier: Apache-2.0
 * Problems on which every MXU variant has to reproduce the contract's bits before a device may use
 * it: the kernel tests and `tpucl verify` run this same list. Each case makes its own operands and
 * knows the result, computed on the host in plain C (num/mxu.h) from operands gathered by the
 * definition of the product.
 *
 * A case is for `cores` cores of one wave; each core's operands differ unless they are replicated.
 */
#ifndef TP_KERNEL_MXU_CASES_H
#define TP_KERNEL_MXU_CASES_H

#include <stddef.h>
#include "kernel/mxu.h"

/* What the operands hold. Sums of ORDINARY values depend on the order of summation in nearly every
 * output. */
typedef enum tp_mxu_fill {
    TP_MXU_FILL_ORDINARY,  /* signs mixed, magnitudes over 2^-4 .. 2^3 */
    TP_MXU_FILL_NONFINITE, /* the same with some NaN and infinities */
    TP_MXU_FILL_HUGE,      /* magnitudes up to the largest: products and sums overflow */
    TP_MXU_FILL_TINY,      /* products are subnormal, sums partly, operands partly */
    TP_MXU_FILL_VANISHING, /* negative products that round to -0: every sum is -0 */
    /* bf16 operands whose products are multiples of 2^-126, so that no sum can be subnormal; and of
     * 2^-127, so that some are, where products cancel */
    TP_MXU_FILL_BORDER,
    TP_MXU_FILL_BEYOND
} tp_mxu_fill;

/* How an operand lies: for A row is m and for B row is k; the other index runs fastest in ROWS. */
typedef enum tp_mxu_layout {
    TP_MXU_ROWS,    /* [batch][m][k], [batch][k][n] */
    TP_MXU_COLUMNS, /* [batch][k][m], [batch][n][k]: the transposed operand */
    TP_MXU_GAPS     /* ROWS with every second element unused and a gap behind each row */
} tp_mxu_layout;

typedef struct tp_mxu_case {
    const char *name;
    tp_mxu_kind kind;
    tp_precision precision;
    tp_dtype a_dtype, b_dtype, c_dtype;
    int64_t batch, m, n, k; /* batch 0: 1; those of a convolution follow from its geometry */
    tp_mxu_layout a_layout, b_layout;
    tp_mxu_conv conv; /* out_h and out_w follow from the rest */
    int32_t pad_bottom, pad_right;
    int32_t cores;   /* 0: 1 */
    bool sums_cores; /* the result is the sum over the cores, by the tree; `cores` is set */
    bool a_is_replicated, b_is_replicated, c_is_replicated;
    tp_mxu_fill fill;
    bool is_long; /* takes seconds on a slow device: not for a first look */
} tp_mxu_case;

/* The list; static. */
const tp_mxu_case *tp_mxu_cases(size_t *out_count);

/* The problem with a plain epilogue; tensors are 0 (A), 1 (B), 2 (C), scratch begins at 3. */
tpucl_status tp_mxu_case_problem(const tp_mxu_case *row, tp_arena *arena,
                                 tp_mxu_problem *out_problem);

/* Elements of one core's A (tensor 0), B (1) or C (2), gaps included. */
int64_t tp_mxu_case_elements(const tp_mxu_problem *problem, int32_t tensor);

/* Writes one core's operand as stored: uint16_t for bf16, float for f32. Gaps hold NaN. */
void tp_mxu_case_fill(const tp_mxu_case *row, const tp_mxu_problem *problem, int32_t tensor,
                      int32_t core, void *out_elements);

/* One core's result as stored, from the operands that tp_mxu_case_fill made. */
tpucl_status tp_mxu_case_expect(const tp_mxu_problem *problem, const void *a, const void *b,
                                void *out_c);

/* Index of the first element that differs, or -1. NaNs are equal to each other whatever their
 * bits. */
int64_t tp_mxu_case_compare(tp_dtype dtype, const void *expected, const void *found, int64_t count);

#endif
