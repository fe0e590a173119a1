/* SPDX-License-Identifier: Apache-2.0
 * How far a fast-mode result may be from the contract's. Exact mode has no tolerance: bits are compared.
 */
#ifndef TP_NUM_TOLERANCE_H
#define TP_NUM_TOLERANCE_H

#include <stdint.h>

/* Largest distance of two f32 sums of the same k products in different orders, fused or not, given
 * `sum_of_magnitudes` = sum over k of |a[k] b[k]|: each is within gamma_k = k u / (1 - k u) of the exact sum,
 * u = 2^-24 (Higham, "Accuracy and stability of numerical algorithms", 2nd ed., section 3.1). Where fast
 * mode rounds operands differently (for example bf16 against f32), add tp_tolerance_rounding. */
static inline double tp_tolerance_sum(int64_t k, double sum_of_magnitudes)
{
    const double ku = (double)k * 0x1p-24;
    return ku < 0.5 ? 2.0 * ku / (1.0 - ku) * sum_of_magnitudes : sum_of_magnitudes;
}

/* The same sum with each operand rounded once to `bits` significant bits (8: bf16, 11: f16 and tf32, 24: f32)
 * against not rounded: two relative errors of 2^-bits per product. */
static inline double tp_tolerance_rounding(int bits, double sum_of_magnitudes)
{
    const double unit = 1.0 / (double)((int64_t)1 << bits);
    return (2.0 * unit + unit * unit) * sum_of_magnitudes;
}

#endif
