/* SPDX-License-Identifier: Apache-2.0
 * The elementary functions on the host: stated bounds over strata (bench/sweep_num --all takes
 * every input), special values, and the corrected division and square root fed with guesses that
 * are as wrong as the OpenCL specification lets a device be.
 */
#include <stdint.h>

/* Set by the tests: how far off, in units in the last place, the rough operations are. */
static int rough_ulps;
static float rough_divide(float a, float b);
static float rough_sqrt(float x);
#define TP_ROUGH_DIVIDE(a, b) rough_divide((a), (b))
#define TP_ROUGH_SQRT(x) rough_sqrt(x)

#include <criterion/criterion.h>
#include <math.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include "harness/num_functions.h"
#include "num/philox.h"
#include "num_inputs.h"

static float rough_divide(float a, float b)
{
    const float exact = a / b;
    return exact == 0.0f ? exact : tp_f32_from_bits(tp_f32_bits(exact) + (uint32_t)rough_ulps);
}

static float rough_sqrt(float x)
{
    return tp_f32_from_bits(tp_f32_bits(sqrtf(x)) + (uint32_t)rough_ulps);
}

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || tp_f32_bits(a) == tp_f32_bits(b);
}

enum { PER_STRATUM = 256, COUNT = 512 * PER_STRATUM };
static float x[COUNT], y[COUNT];

Test(exact_math, unary_functions_keep_their_bounds)
{
    num_stratified(x, PER_STRATUM, 3);
    for (size_t f = 0; f < NUM_UNARY_COUNT; f++) {
        const num_unary *row = &num_unary_table[f];
        double worst = 0;
        float where = 0;
        for (size_t i = 0; i < COUNT; i++) {
            const double error = num_ulp_error(row->function(x[i]), row->reference(tp_flush(x[i])));
            if (error > worst) {
                worst = error;
                where = x[i];
            }
        }
        cr_expect_leq(worst, row->bound_ulp, "%s(%a): %g ulp, bound %g", row->name, (double)where,
                      worst, row->bound_ulp);
        cr_expect(isnan(row->function(NAN)), "%s(NaN) is a number", row->name);
    }
}

Test(exact_math, pow_keeps_its_bound)
{
    double worst = 0;
    size_t worst_at = 0, wrong_special = 0;
    for (int round = 0; round < 4; round++) {
        num_stratified(x, PER_STRATUM, 4 + (uint64_t)round);
        num_stratified(y, PER_STRATUM, 14 + (uint64_t)round);
        num_shuffle(y, COUNT, 24 + (uint64_t)round);
        for (size_t i = 0; i < COUNT; i++) {
            if (round % 2 ==
                1) /* pairs whose power is neither 0 nor infinite: log2 x^y within 160 */
                y[i] = (float)((double)y[i] / fabs((double)y[i]) * (double)((i * 131) % 160) /
                               (fabs(log2(fabs((double)tp_flush(x[i])))) + 1e-9));
            const double want = pow((double)tp_flush(x[i]), (double)tp_flush(y[i]));
            const double error = num_ulp_error(tp_math_pow(x[i], y[i]), want);
            if (isinf(error)) wrong_special++;
            if (error > worst) {
                worst = error;
                worst_at = i;
            }
        }
        cr_expect_leq(worst, NUM_POW_BOUND_ULP, "pow(%a, %a): %g ulp, bound %g",
                      (double)x[worst_at], (double)y[worst_at], worst, NUM_POW_BOUND_ULP);
    }
    cr_expect_eq(wrong_special, 0);
}

Test(exact_math, pow_special_values_are_those_of_the_c_library)
{
    static const float values[] = {
        0.0f,        -0.0f,     1.0f,   -1.0f,       0.5f,         -0.5f,
        2.0f,        -2.0f,     3.0f,   -3.0f,       2.5f,         -2.5f,
        INFINITY,    -INFINITY, NAN,    16777215.0f, -16777215.0f, 16777216.0f,
        33554432.0f, 1e30f,     -1e30f, 1e-30f,      0x1p-126f,    0x1.fffffep+127f};
    const size_t n = sizeof values / sizeof values[0];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const float got = tp_math_pow(values[i], values[j]);
            const double want = pow((double)values[i], (double)values[j]);
            cr_expect_leq(num_ulp_error(got, want), NUM_POW_BOUND_ULP,
                          "pow(%a, %a) is %a, expected %a", (double)values[i], (double)values[j],
                          (double)got, want);
        }
}

Test(exact_math, special_values)
{
    cr_expect(same(tp_math_exp(-INFINITY), 0.0f));
    cr_expect(same(tp_math_exp(INFINITY), INFINITY));
    cr_expect(same(tp_math_exp(0x1.62e42ep+6f), 0x1.ffff08p+127f), "%a",
              (double)tp_math_exp(0x1.62e42ep+6f)); /* largest x with a finite result */
    cr_expect(same(tp_math_exp(0x1.62e430p+6f), INFINITY));
    cr_expect(same(tp_math_exp(-88.0f), 0.0f)); /* would be subnormal */
    cr_expect(same(tp_math_expm1(-0.0f), -0.0f));
    cr_expect(same(tp_math_expm1(-INFINITY), -1.0f));
    cr_expect(same(tp_math_log(0.0f), -INFINITY));
    cr_expect(same(tp_math_log(-0.0f), -INFINITY));
    cr_expect(same(tp_math_log(-1.0f), NAN));
    cr_expect(same(tp_math_log(1.0f), 0.0f));
    cr_expect(same(tp_math_log1p(-1.0f), -INFINITY));
    cr_expect(same(tp_math_log1p(-0.0f), -0.0f));
    cr_expect(same(tp_math_tanh(-INFINITY), -1.0f));
    cr_expect(same(tp_math_tanh(-0.0f), -0.0f));
    cr_expect(same(tp_math_erf(INFINITY), 1.0f));
    cr_expect(same(tp_math_logistic(-INFINITY), 0.0f));
    cr_expect(same(tp_math_logistic(INFINITY), 1.0f));
    cr_expect(same(tp_math_logistic(-0.0f), 0.5f));
    cr_expect(same(tp_math_sqrt(-0.0f), -0.0f));
    cr_expect(same(tp_math_sqrt(-1e-40f), -0.0f)); /* a subnormal is a zero */
    cr_expect(same(tp_math_sqrt(-1.0f), NAN));
    cr_expect(same(tp_math_rsqrt(-0.0f), -INFINITY));
    cr_expect(same(tp_math_rsqrt(INFINITY), 0.0f));
    cr_expect(same(tp_math_divide(1.0f, -0.0f), -INFINITY));
    cr_expect(same(tp_math_divide(0.0f, 0.0f), NAN));
    cr_expect(same(tp_math_divide(0x1p-126f, 2.0f), 0.0f));
    cr_expect(same(tp_math_sin(-0.0f), -0.0f));
    cr_expect(same(tp_math_cos(0.0f), 1.0f));
    cr_expect(same(tp_math_sin(INFINITY), NAN));
}

Test(exact_math, divide_corrected_equals_hardware)
{
    for (rough_ulps = -4; rough_ulps <= 4; rough_ulps++) {
        size_t wrong = 0, first = 0;
        for (int round = 0; round < 4; round++) {
            num_stratified(x, PER_STRATUM, 40 + (uint64_t)(round + 8 * rough_ulps));
            num_stratified(y, PER_STRATUM, 80 + (uint64_t)(round + 8 * rough_ulps));
            if (round > 0) num_shuffle(y, COUNT, 60 + (uint64_t)round);
            for (size_t i = 0; i < COUNT; i++) {
                if (!tp_vpu_is_finite(x[i]) || !tp_vpu_is_finite(y[i])) continue;
                if (tp_flush(x[i]) == 0.0f || tp_flush(y[i]) == 0.0f) continue;
                if (!same(tp_divide_corrected(x[i], y[i]), tp_flush(x[i] / y[i])) && wrong++ == 0)
                    first = i;
            }
        }
        cr_expect_eq(wrong, 0, "guess off by %d: %zu wrong, first %a / %a", rough_ulps, wrong,
                     (double)x[first], (double)y[first]);
    }
}

Test(exact_math, sqrt_corrected_equals_hardware)
{
    num_stratified(x, PER_STRATUM, 6);
    for (rough_ulps = -4; rough_ulps <= 4; rough_ulps++) {
        size_t wrong = 0;
        for (size_t i = 0; i < COUNT; i++)
            if (x[i] >= 0x1p-126f && x[i] < INFINITY)
                wrong += !same(tp_sqrt_corrected(x[i]), sqrtf(x[i]));
        cr_expect_eq(wrong, 0, "guess off by %d: %zu wrong", rough_ulps, wrong);
    }
}

Test(exact_math, vpu_operations_agree_with_the_c_library)
{
    size_t remainder = 0, rounding = 0, maximum = 0;
    for (int round = 0; round < 3; round++) {
        num_stratified(x, PER_STRATUM, 7 + (uint64_t)round);
        num_stratified(y, PER_STRATUM, 17 + (uint64_t)round);
        if (round > 0) num_shuffle(y, COUNT, 27);
        for (size_t i = 0; i < COUNT; i++) {
            const float a = tp_flush(x[i]), b = tp_flush(y[i]);
            remainder += !same(tp_vpu_remainder(x[i], y[i]), tp_flush(fmodf(a, b)));
            rounding += !same(tp_vpu_floor(a), floorf(a)) || !same(tp_vpu_ceil(a), ceilf(a)) ||
                        !same(tp_vpu_round_nearest_even(a), nearbyintf(a));
            const float larger = isnan(a) || isnan(b) ? NAN : (a > b ? a : b);
            maximum += a != b && !same(tp_vpu_max(a, b), larger);
        }
    }
    cr_expect_eq(remainder, 0, "remainder: %zu wrong", remainder);
    cr_expect_eq(rounding, 0, "floor, ceil, round: %zu wrong", rounding);
    cr_expect_eq(maximum, 0, "max: %zu wrong", maximum);
}

Test(exact_math, max_and_min_order_zeros_and_propagate_nan)
{
    cr_expect(same(tp_vpu_max(-0.0f, 0.0f), 0.0f) && same(tp_vpu_max(0.0f, -0.0f), 0.0f));
    cr_expect(same(tp_vpu_min(-0.0f, 0.0f), -0.0f) && same(tp_vpu_min(0.0f, -0.0f), -0.0f));
    cr_expect(same(tp_vpu_max(-0.0f, -0.0f), -0.0f) && same(tp_vpu_min(0.0f, 0.0f), 0.0f));
    cr_expect(isnan(tp_vpu_max(NAN, 1.0f)) && isnan(tp_vpu_max(1.0f, NAN)));
    cr_expect(isnan(tp_vpu_min(NAN, INFINITY)) && isnan(tp_vpu_min(-INFINITY, NAN)));
    cr_expect(same(tp_vpu_sign(-0.0f), -0.0f) && same(tp_vpu_sign(-7.0f), -1.0f) &&
              isnan(tp_vpu_sign(NAN)));
}

Test(exact_math, conversions_saturate_and_nan_gives_zero)
{
    cr_expect_eq(tp_vpu_s32_from_f32(-2.9f), -2);
    cr_expect_eq(tp_vpu_s32_from_f32(2147483648.0f), INT32_MAX);
    cr_expect_eq(tp_vpu_s32_from_f32(-2147483648.0f), INT32_MIN);
    cr_expect_eq(tp_vpu_s32_from_f32(-INFINITY), INT32_MIN);
    cr_expect_eq(tp_vpu_s32_from_f32(NAN), 0);
    cr_expect_eq(tp_vpu_s32_from_f32(2147483520.0f), 2147483520);
    cr_expect_eq(tp_vpu_u32_from_f32(-1.0f), 0);
    cr_expect_eq(tp_vpu_u32_from_f32(3000000000.0f), 3000000000u);
    cr_expect_eq(tp_vpu_u32_from_f32(4294967040.0f), 4294967040u);
    cr_expect_eq(tp_vpu_u32_from_f32(INFINITY), UINT32_MAX);
    cr_expect_eq(tp_vpu_u32_from_f32(NAN), 0);
    cr_expect_eq(tp_vpu_u8_from_f32(255.9f), 255);
    cr_expect_eq(tp_vpu_u8_from_f32(256.0f), 255);
    cr_expect_eq(tp_vpu_u8_from_f32(-0.5f), 0);
    cr_expect_eq(tp_vpu_f32_from_s32(16777217), 16777216.0f);
    cr_expect_eq(tp_vpu_s32_divide(-7, 2), -3);
    cr_expect_eq(tp_vpu_s32_remainder(-7, 2), -1);
    cr_expect_eq(tp_vpu_s32_divide(5, 0), -1);
    cr_expect_eq(tp_vpu_s32_remainder(5, 0), 5);
    cr_expect_eq(tp_vpu_s32_divide(INT32_MIN, -1), INT32_MIN);
    cr_expect_eq(tp_vpu_s32_remainder(INT32_MIN, -1), 0);
}

#if defined(__x86_64__)
static float corrected_quotient(float a, float b)
{
    const bool ordinary =
        tp_vpu_is_finite(a) && tp_vpu_is_finite(b) && tp_flush(a) != 0.0f && tp_flush(b) != 0.0f;
    return ordinary ? tp_divide_corrected(a, b) : 0.0f;
}

static float normal_of_bits(float a, float b)
{
    return tp_random_normal_from_bits(tp_f32_bits(a), tp_f32_bits(b), tp_f32_bits(b) & 3u);
}

/* Called through volatile pointers: the compiler must not see that the two calls are the same. */
static const struct {
    const char *name;
    float (*volatile function)(float, float);
} flush_binary[] = {
    {"pow", tp_math_pow},
    {"divide", tp_math_divide},
    {"divide_corrected", corrected_quotient},
    {"remainder", tp_vpu_remainder},
    {"normal", normal_of_bits},
};

/* A processor told to flush subnormals, inputs and results, stands for the devices that have none:
 * the functions must not notice. */
Test(exact_math, bits_do_not_depend_on_subnormal_hardware)
{
    static float plain[COUNT];
    const unsigned control = _mm_getcsr(), flushing = control | 0x8040u; /* FTZ and DAZ */
    num_stratified(x, PER_STRATUM, 71);
    for (size_t f = 0; f < NUM_UNARY_COUNT; f++) {
        size_t wrong = 0;
        for (size_t i = 0; i < COUNT; i++)
            plain[i] = num_unary_table[f].function(x[i]);
        for (size_t i = 0; i < COUNT; i++) {
            _mm_setcsr(flushing);
            const float other = num_unary_table[f].function(x[i]);
            _mm_setcsr(control);
            wrong += !same(plain[i], other);
        }
        cr_expect_eq(wrong, 0, "%s: %zu differ", num_unary_table[f].name, wrong);
    }
    for (int round = 0; round < 4; round++) {
        num_stratified(y, PER_STRATUM, 72);
        if (round > 0) num_shuffle(y, COUNT, 73 + (uint64_t)round);
        for (size_t f = 0; f < sizeof flush_binary / sizeof flush_binary[0]; f++) {
            size_t wrong = 0;
            for (size_t i = 0; i < COUNT; i++) {
                const float expected = flush_binary[f].function(x[i], y[i]);
                _mm_setcsr(flushing);
                const float other = flush_binary[f].function(x[i], y[i]);
                _mm_setcsr(control);
                wrong += !same(expected, other);
            }
            cr_expect_eq(wrong, 0, "%s: %zu differ", flush_binary[f].name, wrong);
        }
    }
}
#endif
