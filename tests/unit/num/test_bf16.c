/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include "num/bf16.h"
#include "num_inputs.h"

/* Rounds to 8 significant bits by the C library's rounding of doubles: an independent way. */
static float nearest_bf16(float x)
{
    if (!isfinite(x) || x == 0.0f || fabsf(x) < 0x1p-126f)
        return isfinite(x) ? copysignf(fabsf(x) < 0x1p-126f ? 0.0f : x, x) : x;
    int exponent;
    const double m = frexp((double)x, &exponent);
    return (float)ldexp(nearbyint(ldexp(m, 8)), exponent - 8);
}

Test(bf16, rounds_to_nearest_even)
{
    static const struct {
        uint32_t f32;
        uint16_t bf16;
    } cases[] = {
        {0x3f800000, 0x3f80}, /* 1 */
        {0x3f808000, 0x3f80}, /* tie, down to even */
        {0x3f818000, 0x3f82}, /* tie, up to even */
        {0x3f808001, 0x3f81}, /* just above a tie */
        {0x3f807fff, 0x3f80}, /* just below a tie */
        {0x7f7f7fff, 0x7f7f}, /* largest that stays finite */
        {0x7f7f8000, 0x7f80}, /* rounds to infinity */
        {0xff7fffff, 0xff80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80},
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x007fffff, 0x0000}, /* subnormal */
        {0x807fffff, 0x8000}, {0x00800000, 0x0080},                       /* smallest normal */
        {0x7f800001, 0x7fc0}, /* signalling NaN with a low payload: not infinity */
        {0xffffffff, 0xffff}, {0x7fc12345, 0x7fc1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_eq(tp_bf16_from_f32(tp_f32_from_bits(cases[i].f32)), cases[i].bf16,
                     "0x%08x gives 0x%04x, expected 0x%04x", cases[i].f32,
                     tp_bf16_from_f32(tp_f32_from_bits(cases[i].f32)), cases[i].bf16);
}

Test(bf16, agrees_with_the_c_library_over_strata)
{
    enum { PER_STRATUM = 512, COUNT = 512 * PER_STRATUM };
    static float x[COUNT], back[COUNT];
    static tp_bf16 packed[COUNT];
    num_stratified(x, PER_STRATUM, 11);
    tp_bf16_from_f32_array(x, packed, COUNT);
    tp_bf16_to_f32_array(packed, back, COUNT);
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const float want = nearest_bf16(x[i]);
        wrong += isnan(x[i]) ? !isnan(back[i]) : tp_f32_bits(back[i]) != tp_f32_bits(want);
    }
    cr_assert_eq(wrong, 0, "%zu of %d differ", wrong, COUNT);
}

Test(bf16, widening_is_exact_and_flush_keeps_the_sign)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        cr_assert_eq(tp_f32_bits(tp_bf16_to_f32((tp_bf16)bits)), bits << 16);
        const bool subnormal = (bits & 0x7f80) == 0;
        cr_assert_eq(tp_bf16_flush((tp_bf16)bits), subnormal ? bits & 0x8000 : bits);
        if (!subnormal &&
            (bits & 0x7fff) <= 0x7f80) /* normal, zero excluded by the flush, or infinite */
            cr_assert_eq(tp_bf16_from_f32(tp_bf16_to_f32((tp_bf16)bits)), bits);
    }
}
