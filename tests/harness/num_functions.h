/* SPDX-License-Identifier: Apache-2.0
 * The table of elementary functions that the unit tests and bench/sweep_num walk over: the
 * function, a reference in double from the C library (which is good to about one unit of double,
 * far below what can be seen in f32), and the bound that docs/precision.md states, in units in the
 * last place of f32.
 */
#ifndef TP_TESTS_NUM_FUNCTIONS_H
#define TP_TESTS_NUM_FUNCTIONS_H

#include <math.h>
#include <stddef.h>
#include "num/exact_math.h"

static inline double reference_logistic(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static inline double reference_rsqrt(double x)
{
    return 1 / sqrt(x);
}

typedef struct num_unary {
    const char *name; /* as in tp_math_NAME */
    float (*function)(float);
    double (*reference)(double);
    double bound_ulp;
} num_unary;

static const num_unary num_unary_table[] = {
    {"exp", tp_math_exp, exp, 1.0},
    {"expm1", tp_math_expm1, expm1, 1.5},
    {"log", tp_math_log, log, 1.0},
    {"log1p", tp_math_log1p, log1p, 1.0},
    {"tanh", tp_math_tanh, tanh, 1.5},
    {"logistic", tp_math_logistic, reference_logistic, 2.0},
    {"erf", tp_math_erf, erf, 1.5},
    {"sqrt", tp_math_sqrt, sqrt, 0.5},
    {"rsqrt", tp_math_rsqrt, reference_rsqrt, 1.5},
    {"cbrt", tp_math_cbrt, cbrt, 1.0},
    {"sin", tp_math_sin, sin, 1.0},
    {"cos", tp_math_cos, cos, 1.0},
};
#define NUM_POW_BOUND_ULP 1.5
#define NUM_UNARY_COUNT (sizeof num_unary_table / sizeof num_unary_table[0])

/* The distance of `got` from `want` in units in the last place of f32 at `want`. Infinite where no
 * distance makes sense (NaN against a number, wrong infinity, wrong sign of a zero). A result that
 * should be subnormal counts from the zero or the smallest normal number that flushing leaves of
 * it. */
static inline double num_ulp_error(float got, double want)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0.0 : INFINITY;
    const double magnitude = fabs(want), tiny = 0x1p-126;
    if ((tp_f32_bits(got) & 0x7f800000u) == 0 && (tp_f32_bits(got) & 0x007fffffu) != 0)
        return INFINITY; /* a subnormal */
    if (magnitude < tiny) {
        if (!signbit(want) != !signbit(got)) return INFINITY;
        if (got == 0.0f) return 0.0;
        return fabs((double)got - want) * 0x1p+149;
    }
    int exponent;
    (void)frexp(magnitude, &exponent);
    if (magnitude >= 0x1.ffffffp+127) { /* rounds to infinity */
        if (isinf(got)) return !signbit(want) == !signbit(got) ? 0.0 : INFINITY;
        return isinf(want) ? INFINITY : fabs((double)got - want) * 0x1p-104;
    }
    if (isinf(got))
        return !signbit(want) == !signbit(got) ? (0x1p+128 - magnitude) * 0x1p-104 : INFINITY;
    return fabs((double)got - want) * ldexp(1.0, 24 - exponent);
}

#endif
