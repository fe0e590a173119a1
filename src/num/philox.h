/* SPDX-License-Identifier: Apache-2.0
 * Random numbers of the contract: Philox4x32-10, one source for C11 and OpenCL C 1.2.
 *
 * Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11 (multipliers and
 * Weyl constants are theirs). A block of four words is a bijection of a 128-bit counter under a
 * 64-bit key:
 *
 *     key      { seed & 0xffffffff, seed >> 32 }
 *     counter  { element / 4, step, core, op }          word element % 4
 *
 * so two different (element, op, core, step) under one seed never share a counter: streams of up to
 * 2^34 elements, 2^32 ops, cores and steps cannot overlap. Elements are numbered row-major in the
 * op's own result, as one core sees it; `op` is the random op's number in the graph, `step` the low
 * 32 bits of the step counter. The functions take element / 4 as `block` and element % 4 as `lane`.
 *
 * uniform    (word >> 8) * 2^-24: all multiples of 2^-24 in [0, 1)
 * bernoulli  uniform < p, done on integers: (word >> 8) < tp_bernoulli_threshold(p)
 * normal     Box-Muller on the pair of words (0,1) or (2,3) of the block: r = sqrt(-2 log(u)),
 *            u = ((first >> 8) + 1) * 2^-24 in (0, 1], angle = 2 pi (second >> 8) * 2^-24; the even
 *            element gets r cos(angle), the odd one r sin(angle). Box, Muller: "A note on the
 *            generation of random normal deviates", Ann. Math. Stat. 29 (1958). Largest magnitude
 *            sqrt(48 log 2) = 5.77.
 *
 * A template over EM_WIDTH, like exact_math.h, which it includes.
 */

#ifndef EM_WIDTH
#define EM_WIDTH 1
#endif
#define EM_KEEP_WIDTH
#include "num/exact_math.h"
#undef EM_KEEP_WIDTH

/* One instance per width. */
#if EM_WIDTH == 1 && !defined(TP_PHILOX_V1)
#define TP_PHILOX_V1
#define EM_INSTANTIATE
#elif EM_WIDTH == 2 && !defined(TP_PHILOX_V2)
#define TP_PHILOX_V2
#define EM_INSTANTIATE
#elif EM_WIDTH == 4 && !defined(TP_PHILOX_V4)
#define TP_PHILOX_V4
#define EM_INSTANTIATE
#elif EM_WIDTH == 8 && !defined(TP_PHILOX_V8)
#define TP_PHILOX_V8
#define EM_INSTANTIATE
#elif EM_WIDTH == 16 && !defined(TP_PHILOX_V16)
#define TP_PHILOX_V16
#define EM_INSTANTIATE
#endif

#ifndef TP_RANDOM_STREAM
#define TP_RANDOM_STREAM
/* In the place of the core, for numbers that all cores share; 0xffffffff is taken by initial values. */
#define TP_RANDOM_ALL_CORES 0xfffffffeu
#ifdef TP_OPENCL_C
typedef uint tp_word;
#else
typedef uint32_t tp_word;
#endif
/* What one random op draws from in one step on one core. */
typedef struct tp_random_stream {
    tp_word seed_low, seed_high, op, core, step;
} tp_random_stream;

static inline tp_random_stream tp_random_stream_make(tp_word seed_low, tp_word seed_high,
                                                     tp_word op, tp_word core, tp_word step)
{
    tp_random_stream stream;
    stream.seed_low = seed_low;
    stream.seed_high = seed_high;
    stream.op = op;
    stream.core = core;
    stream.step = step;
    return stream;
}

#ifndef TP_OPENCL_C
/* (word >> 8) < this, exactly when uniform < p: ceil(p * 2^24), for p in 0..1 (NaN counts as 0). */
static inline uint32_t tp_bernoulli_threshold(float p)
{
    const float scaled = ceilf(p * 16777216.0f);
    return p > 0.0f ? (p < 1.0f ? (uint32_t)scaled : 16777216u) : 0u;
}
#endif
#endif

#ifdef EM_INSTANTIATE
#include "num/exact_types.h"
#include "num/philox_body.h"
#include "num/exact_untype.h"
#undef EM_INSTANTIATE
#endif
#undef EM_WIDTH
