/* SPDX-License-Identifier: Apache-2.0
 * tree_reduce: adds what several cores, or two devices, hold
 * computes  tree_reduce:      out[i] = balanced tree over c in 0 .. cores-1 of in[c * stride + i]
 *           tree_reduce_pair: out[i] = left[i] + right[i]
 * layout    f32, contiguous along i; `in` is a tensor whose core stride is the distance of two cores
 * requires  OpenCL 1.2; cores from 1 to 64
 * knobs     CORES   number of parts; fixed at build time so that the tree unrolls
 *           IS_PARTIAL   1: the result is a subtree's sum and not flushed; 0: it is final
 * work      global = count rounded up to the driver's liking; one work-item per element, neighbours
 *           contiguous, no inner loop left after unrolling, so that CPU compilers vectorise over work-items
 * numerics  split at the largest power of two below n; one addition per node; subnormals flushed at the end
 * fallback  none
 */
#include "lib/platform.clh"
#include "lib/tensor.clh"
#define EM_WIDTH 1
#include "num/exact_math.h"

#ifndef CORES
#define CORES 8
#endif
#ifndef IS_PARTIAL
#define IS_PARTIAL 0
#endif
#if CORES < 1 || CORES > 64
#error "CORES is from 1 to 64"
#endif

#if IS_PARTIAL
#define FINISH(value) (value)
#else
#define FINISH(value) tp_flush(value)
#endif

/* SUM_n(c): the tree over parts c .. c + n - 1, n a power of two. */
#define SUM_1(c) in_ptr[(ulong)(c)*in_core_stride]
#define SUM_2(c) (SUM_1(c) + SUM_1((c) + 1))
#define SUM_4(c) (SUM_2(c) + SUM_2((c) + 2))
#define SUM_8(c) (SUM_4(c) + SUM_4((c) + 4))
#define SUM_16(c) (SUM_8(c) + SUM_8((c) + 8))
#define SUM_32(c) (SUM_16(c) + SUM_16((c) + 16))
#define SUM_64(c) (SUM_32(c) + SUM_32((c) + 32))

/* The tree over any n is its powers of two from the left, folded from the right: 7 = 4 + (2 + 1). */
#define START_32 0
#define START_16 (CORES & 32)
#define START_8 (CORES & 48)
#define START_4 (CORES & 56)
#define START_2 (CORES & 60)
#define START_1 (CORES & 62)

kernel void tree_reduce(TP_TENSOR(const float, in), TP_TENSOR(float, out), ulong count)
{
    const ulong i = get_global_id(0);
    if (i >= count) return;
    global const float *in_ptr = TP_AT(in, 0) + i;
#if CORES == 64
    const float sum = SUM_64(0);
#else
    float sum = 0.0f;
#if CORES & 1
    sum = SUM_1(START_1);
#endif
#if CORES & 2
    sum = START_2 + 2 == CORES ? SUM_2(START_2) : SUM_2(START_2) + sum;
#endif
#if CORES & 4
    sum = START_4 + 4 == CORES ? SUM_4(START_4) : SUM_4(START_4) + sum;
#endif
#if CORES & 8
    sum = START_8 + 8 == CORES ? SUM_8(START_8) : SUM_8(START_8) + sum;
#endif
#if CORES & 16
    sum = START_16 + 16 == CORES ? SUM_16(START_16) : SUM_16(START_16) + sum;
#endif
#if CORES & 32
    sum = START_32 + 32 == CORES ? SUM_32(START_32) : SUM_32(START_32) + sum;
#endif
#endif
    TP_AT(out, 0)[i] = FINISH(sum);
}

kernel void tree_reduce_pair(TP_TENSOR(const float, left), TP_TENSOR(const float, right),
                             TP_TENSOR(float, out), ulong count)
{
    const ulong i = get_global_id(0);
    if (i >= count) return;
    TP_AT(out, 0)[i] = FINISH(TP_AT(left, 0)[i] + TP_AT(right, 0)[i]);
}
