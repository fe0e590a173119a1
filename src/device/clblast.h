/* SPDX-License-Identifier: Apache-2.0
 * CLBlast's f32 product on our buffers: the path of the K80-like baseline and the f32 provider in
 * the list of product variants. CLBlast orders its sums in its own way, so it is never exact. It is
 * loaded when first used (libclblast.so.1), so that nothing else pays for it.
 */
#ifndef TP_DEVICE_CLBLAST_H
#define TP_DEVICE_CLBLAST_H

#include "device/buffer.h"

/* Row-major C[batch][m][n] = A[batch][m][k] * B[batch][k][n]; a transposed operand is stored
 * [k][m], [n][k]. Offsets, leading dimensions and strides in elements. */
typedef struct tp_clblast_problem {
    int64_t batch, m, n, k;
    bool transpose_a, transpose_b;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c;
    uint64_t offset_a, offset_b, offset_c;
} tp_clblast_problem;

/* True when this build has CLBlast and the library can be loaded. */
bool tp_clblast_is_available(void);

/* Enqueues on the compute lane. Sizes of 0 are handled here (CLBlast refuses them): nothing for an
 * empty C, a zeroed C for k = 0. The first call for a kind of product compiles kernels, which takes
 * seconds: see tp_clblast_warm. TPUCL_UNSUPPORTED without CLBlast. Calls for one device come from
 * one thread at a time. */
tpucl_status tp_clblast_sgemm(tp_device *device, const tp_clblast_problem *problem, tp_buffer *a,
                              tp_buffer *b, tp_buffer *c, tp_event **out_event);

/* Runs the kinds of products that `problem` needs once on scratch memory, so that later calls do
 * not compile; *out_seconds (may be NULL) is how long that took. */
tpucl_status tp_clblast_warm(tp_device *device, const tp_clblast_problem *problem,
                             double *out_seconds);

#endif
