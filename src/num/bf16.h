/* SPDX-License-Identifier: Apache-2.0
 * bfloat16: the upper half of an IEEE binary32. kernels/lib/bf16.clh holds the same conversions for
 * devices; the tests compare the two bit by bit.
 *
 * f32 -> bf16   rounds to nearest, ties to even; too large becomes infinity; NaN becomes a quiet
 * NaN with the upper payload bits kept; subnormals become zero of the same sign. (A normal f32
 * never rounds to a subnormal bf16: both types have the exponent range of 2^-126 and up.) bf16 ->
 * f32   exact, all bits kept. Every bf16 that tpucl made is normal, zero, infinite or NaN; data
 *               from outside goes through tp_bf16_flush once, where it enters.
 */
#ifndef TP_NUM_BF16_H
#define TP_NUM_BF16_H

#include <stddef.h>
#include <stdint.h>
#include "num/exact_math.h"

typedef uint16_t tp_bf16;

static inline tp_bf16 tp_bf16_from_f32(float value)
{
    const uint32_t bits = tp_f32_bits(tp_flush(value));
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x0040u;
    return (tp_bf16)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline float tp_bf16_to_f32(tp_bf16 value)
{
    return tp_f32_from_bits((uint32_t)value << 16);
}

/* Subnormal to zero of the same sign; everything else as it is. */
static inline tp_bf16 tp_bf16_flush(tp_bf16 value)
{
    return (tp_bf16)((value & 0x7f80u) == 0 ? value & 0x8000u : value);
}

/* The f32 value after a trip through bf16. */
static inline float tp_bf16_round(float value)
{
    return tp_bf16_to_f32(tp_bf16_from_f32(value));
}

/* Bulk forms; src and dst must not overlap. */
void tp_bf16_from_f32_array(const float *src, tp_bf16 *dst, size_t count);
void tp_bf16_to_f32_array(const tp_bf16 *src, float *dst, size_t count);

#endif
