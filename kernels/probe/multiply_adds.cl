/* SPDX-License-Identifier: Apache-2.0
 * multiply_adds: out[i] = sum over 12 accumulators and their lanes of (r + growth * steps)
 * computes  as many multiply-adds as a device can do, in registers alone: the roof of products
 * layout    one float per work-item
 * requires  nothing; PAIRS an x86 host's AVX512_BF16 (device/caps.c)
 * knobs     FLOATS  lanes of an accumulator: 1, 4, 8 or 16
 *           PAIRS   1: two bf16 products and two additions per lane and instruction, FLOATS is 16
 * work      work-item i does 12 * FLOATS * steps multiply-adds, with PAIRS twice as many
 * numerics  `one` is 1, so that every step adds 1 (PAIRS: 2) to each lane; all sums are whole numbers
 *           below 2^24 and exact. Who reads `out` sees whether every step was done.
 * fallback  none needed
 */
#include "lib/tensor.clh"
#include "lib/platform.clh"

#ifndef FLOATS
#define FLOATS 4
#endif
#ifndef PAIRS
#define PAIRS 0
#endif

#if FLOATS == 1
typedef float lanes;
#define SUM(v) (v)
#else
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef JOIN(float, FLOATS) lanes;
#define SUM_4(v) ((v).s0 + (v).s1 + (v).s2 + (v).s3)
#if FLOATS == 4
#define SUM(v) SUM_4(v)
#elif FLOATS == 8
#define SUM(v) (SUM_4((v).lo) + SUM_4((v).hi))
#else
#define SUM(v) (SUM_4((v).lo.lo) + SUM_4((v).lo.hi) + SUM_4((v).hi.lo) + SUM_4((v).hi.hi))
#endif
#endif

static inline lanes grow(lanes sum, lanes one)
{
#if PAIRS
    __asm__("vdpbf16ps %1, %1, %0" : "+v"(sum) : "v"(one));
    return sum;
#else
    return TP_MXU_STEP(sum, one, one);
#endif
}

/* Twelve, because the latency of a multiply-add is up to 6 cycles and two can begin in each. */
#define EACH(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
#define BEGIN(r) lanes sum_##r = (lanes)(first + (float)r);
#define STEP(r) sum_##r = grow(sum_##r, ones);
#define ADD(r) total += SUM(sum_##r);

/* one: 1, with PAIRS the bits of two bf16 ones; first: 0. Arguments, so that no compiler knows. */
__kernel void multiply_adds(TP_TENSOR(float, out), float one, float first, uint steps)
{
    const lanes ones = (lanes)(one);
    EACH(BEGIN)
    for (uint i = 0; i < steps; i++) {
        EACH(STEP)
    }
    float total = 0.0f;
    EACH(ADD)
    TP_AT(out, 0)[get_global_id(0)] = total;
}
