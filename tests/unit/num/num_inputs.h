/* SPDX-License-Identifier: Apache-2.0
 * Stratified f32 inputs: both signs, all 256 exponents, the ends of the significand and
 * pseudo-random ones; with `per_stratum` inputs for each exponent and sign. Zeros, infinities, NaNs
 * and subnormals are in it.
 */
#ifndef TP_TESTS_NUM_INPUTS_H
#define TP_TESTS_NUM_INPUTS_H

#include <stddef.h>
#include <stdint.h>
#include "num/exact_math.h"

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
static inline uint64_t num_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline size_t num_stratified_count(size_t per_stratum)
{
    return 512 * per_stratum;
}

static inline void num_stratified(float *out, size_t per_stratum, uint64_t seed)
{
    static const uint32_t ends[] = {0, 1, 2, 0x3504f3, 0x400000, 0x7ffffe, 0x7fffff};
    for (size_t stratum = 0; stratum < 512; stratum++) {
        for (size_t i = 0; i < per_stratum; i++) {
            const uint32_t random = (uint32_t)(num_next(&seed) >> 41);
            const uint32_t low = i < sizeof ends / sizeof ends[0] ? ends[i] : random;
            *out++ = tp_f32_from_bits((uint32_t)stratum << 23 | low);
        }
    }
}

/* Fisher-Yates. */
static inline void num_shuffle(float *values, size_t count, uint64_t seed)
{
    for (size_t i = count - 1; i > 0; i--) {
        const size_t j = (size_t)(num_next(&seed) % (i + 1));
        const float swapped = values[i];
        values[i] = values[j];
        values[j] = swapped;
    }
}

#endif
