/* SPDX-License-Identifier: Apache-2.0
 * Sweeps the elementary functions over f32 inputs and prints the largest error of each.
 *
 *     sweep_num --all              every one of the 2^32 inputs (minutes per function)
 *     sweep_num --step 101 [NAME]  every 101st bit pattern; only the functions named
 *
 * "exact" compares, over the same inputs, the rounding conversions and the integer-corrected square
 * root that devices without a correct one use, with independent computations; "pairs" takes random
 * pairs for pow and the corrected division. Exits 1 if a bound of tests/harness/num_functions.h is
 * exceeded.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/num_functions.h"
#include "num/bf16.h"

static uint64_t step = 4099;

static bool sweep_unary(const num_unary *row)
{
    double worst = 0;
    uint32_t worst_bits = 0;
    uint64_t above_one = 0, count = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += step, count++) {
        const float x = tp_f32_from_bits((uint32_t)bits);
        const double error = num_ulp_error(row->function(x), row->reference(tp_flush(x)));
        above_one += error > 1.0;
        if (error > worst) {
            worst = error;
            worst_bits = (uint32_t)bits;
        }
    }
    const bool good = worst <= row->bound_ulp;
    printf("%-10s max %.4f ulp at 0x%08x (%.9g), bound %.2f, above 1 ulp: %.3g %%  %s\n", row->name,
           worst, worst_bits, (double)tp_f32_from_bits(worst_bits), row->bound_ulp,
           100.0 * (double)above_one / (double)count, good ? "ok" : "EXCEEDED");
    fflush(stdout);
    return good;
}

/* Round to 8 significant bits by the C library's rounding of doubles. */
static bool bf16_matches(float x)
{
    const tp_bf16 got = tp_bf16_from_f32(x);
    const float f = tp_flush(x);
    if (isnan(x)) return (got & 0x7f80u) == 0x7f80u && (got & 0x0040u) != 0;
    float want = f;
    if (isfinite(f) && f != 0.0f) {
        int exponent;
        const double m = frexp((double)f, &exponent);
        want = (float)ldexp(nearbyint(ldexp(m, 8)), exponent - 8);
    }
    return tp_f32_bits(tp_bf16_to_f32(got)) == tp_f32_bits(want);
}

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || tp_f32_bits(a) == tp_f32_bits(b);
}

static bool exact_matches(float x)
{
    const float f = tp_flush(x);
    bool good = bf16_matches(x) && same(tp_vpu_floor(x), floorf(f)) &&
                same(tp_vpu_ceil(x), ceilf(f)) && same(tp_vpu_round_nearest_even(f), nearbyintf(f));
    if (f > 0.0f && isfinite(f)) good = good && same(tp_sqrt_corrected(f), sqrtf(f));
    const double clipped = isnan(x) ? 0 : trunc(fmin(fmax((double)x, -2147483648.0), 2147483647.0));
    return good && tp_vpu_s32_from_f32(x) == (int32_t)clipped;
}

static bool sweep_exact(void)
{
    uint64_t wrong = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += step)
        wrong += !exact_matches(tp_f32_from_bits((uint32_t)bits));
    printf("%-10s bf16, floor, ceil, round, sqrt_corrected, s32: %llu wrong\n", "exact",
           (unsigned long long)wrong);
    return wrong == 0;
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Random pairs, 2^27 for --all: the corrected division against the hardware's on any operands, pow
 * on pairs whose power neither over- nor underflows by much. */
static bool sweep_pairs(void)
{
    const uint64_t count = ((uint64_t)1 << 27) / step;
    uint64_t seed = 1, wrong = 0;
    double worst = 0;
    float worst_x = 0, worst_y = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t word = next_random(&seed), word2 = next_random(&seed);
        const float a = tp_flush(tp_f32_from_bits((uint32_t)word));
        const float b = tp_flush(tp_f32_from_bits((uint32_t)(word >> 32)));
        if (isfinite(a) && isfinite(b) && a != 0.0f && b != 0.0f)
            wrong += !same(tp_divide_corrected(a, b), tp_flush(a / b));
        const float x = tp_vpu_abs(a);
        if (!(x > 0.0f) || !isfinite(x) || x == 1.0f) continue;
        const double exponent = ((double)(uint32_t)word2 * 0x1p-31 - 1.0) * 130.0;
        const float y = tp_flush((float)(exponent / log2((double)x)));
        const double error = num_ulp_error(tp_math_pow(x, y), pow((double)x, (double)y));
        if (error > worst) {
            worst = error;
            worst_x = x;
            worst_y = y;
        }
    }
    const bool good = wrong == 0 && worst <= NUM_POW_BOUND_ULP;
    printf("pow        max %.4f ulp at (%a, %a), bound %.2f, %llu pairs  %s\n", worst,
           (double)worst_x, (double)worst_y, NUM_POW_BOUND_ULP, (unsigned long long)count,
           good ? "ok" : "EXCEEDED");
    printf("divide     divide_corrected against the hardware: %llu wrong\n",
           (unsigned long long)wrong);
    return good;
}

static bool wanted(const char *name, int argc, char **argv, int first)
{
    for (int i = first; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return first >= argc;
}

int main(int argc, char **argv)
{
    int first = 1;
    if (argc > 1 && strcmp(argv[1], "--all") == 0) {
        step = 1;
        first = 2;
    } else if (argc > 2 && strcmp(argv[1], "--step") == 0) {
        step = strtoull(argv[2], NULL, 10);
        first = 3;
    }
    if (step == 0 || (argc > 1 && first == 1)) {
        fprintf(stderr, "usage: sweep_num [--all | --step N] [function ...]\n");
        return 2;
    }
    bool good = true;
    for (size_t i = 0; i < NUM_UNARY_COUNT; i++)
        if (wanted(num_unary_table[i].name, argc, argv, first))
            good = sweep_unary(&num_unary_table[i]) && good;
    if (wanted("exact", argc, argv, first)) good = sweep_exact() && good;
    if (wanted("pairs", argc, argv, first)) good = sweep_pairs() && good;
    return good ? 0 : 1;
}
