/* SPDX-License-Identifier: Apache-2.0
 * OpenBLAS for the CPU baseline. It is loaded when first asked for, so that nothing else pays for
 * its threads. OpenBLAS 0.3.21 can take a recent processor for a Prescott and is then ten times
 * slower: what it chose is checked against what the processor can do, and corrected by loading it
 * again with OPENBLAS_CORETYPE set, so that the baseline is a fair one.
 *
 * Threads: one at a time; OpenBLAS uses its own. */
#ifndef TP_BASELINE_OPENBLAS_H
#define TP_BASELINE_OPENBLAS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/status.h"

typedef struct tp_openblas tp_openblas;

/* TPUCL_UNSUPPORTED when this build was made without it or the library is not there. */
tpucl_status tp_openblas_open(tp_openblas **out_blas) TPUCL_MUST_CHECK;
void tp_openblas_close(tp_openblas *blas);

const char *tp_openblas_core(const tp_openblas *blas); /* "SkylakeX" */
/* "" or a sentence on what was corrected. */
const char *tp_openblas_note(const tp_openblas *blas);

/* Row-major C[m][n] = A * B + beta * C; a transposed operand is stored [k][m], [n][k]. */
typedef struct tp_openblas_gemm {
    int64_t m, n, k, lda, ldb, ldc; /* elements */
    bool transpose_a, transpose_b;
    const float *a, *b;
    float *c;
    float beta;
} tp_openblas_gemm;
void tp_openblas_sgemm(const tp_openblas *blas, const tp_openblas_gemm *gemm);

#endif
