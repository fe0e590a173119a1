/* SPDX-License-Identifier: Apache-2.0
 * Part of exact_math.h: exp and what rests on it.
 *
 * exp: Cody, Waite, "Software manual for the elementary functions" (1980), chapter 6: n = x / log 2
 * to the nearest integer, r = x - n log 2 in two steps (n * LN2_HIGH is exact, because LN2_HIGH has
 * 15 bits), then exp(r) - 1 = r + r^2 Q(r). Coefficients: tools/fit_exact_math.py. Scaling by 2^n
 * is done on the exponent bits, so that no subnormal arises on the way.
 */
#define EM_LOG2E 0x1.715476p+0f
#define EM_LN2_HIGH 0x1.62e4p-1f
#define EM_LN2_LOW 0x1.7f7d1cp-20f

/* y * 2^n for a positive normal y: infinity when too large, zero when the result would be
 * subnormal. */
static inline EM_FLOAT EM(exact_scale)(EM_FLOAT y, EM_INT n)
{
    const EM_UINT bits = EM_BITS(y);
    const EM_INT exponent = EM_AS_INT(bits >> 23) + n;
    const EM_UINT scaled = bits + (EM_AS_UINT(n) << 23);
    const EM_UINT bounded = exponent >= 255 ? EM_U(0x7f800000u) : scaled;
    return EM_FROM_BITS(exponent <= 0 ? EM_U(0u) : bounded);
}

/* The integer nearest to x, for |x| < 2^22: the addition rounds at the units. */
static inline EM_FLOAT EM(exact_nearest)(EM_FLOAT x)
{
    return (x + 12582912.0f) - 12582912.0f;
}

/* Q of exp(r) - 1 = r + r^2 Q(r), |r| <= 0.347 */
static inline EM_FLOAT EM(exact_exp_poly)(EM_FLOAT r)
{
    EM_FLOAT q = r * 0x1.6ab89cp-10f + 0x1.123d70p-7f;
    q = q * r + 0x1.55585ap-5f;
    q = q * r + 0x1.55548cp-3f;
    return q * r + 0x1.fffffcp-2f;
}

/* exp(x) for a finite |x| <= 150. 1 + r + r^2 Q is summed with the rounding errors of r and of 1 +
 * r put back, so that what remains is little more than the last rounding. */
EM_ALWAYS static inline EM_FLOAT EM(exact_exp_bounded)(EM_FLOAT x)
{
    const EM_FLOAT n = EM(exact_nearest)(x * EM_LOG2E);
    const EM_FLOAT high = x - n * EM_LN2_HIGH, low = n * EM_LN2_LOW;
    const EM_FLOAT r = high - low;
    const EM_FLOAT r_low = (high - r) - low;
    const EM_FLOAT sum = 1.0f + r;
    const EM_FLOAT sum_low = (r - (sum - 1.0f)) + r_low;
    const EM_FLOAT y = sum + ((r * r) * EM(exact_exp_poly)(r) + sum_low);
    return EM(exact_scale)(y, EM_TO_INT(n));
}

/* x cut to low..high; NaN gives 0. */
static inline EM_FLOAT EM(exact_clip)(EM_FLOAT x, EM_FLOAT low, EM_FLOAT high)
{
    const EM_FLOAT above = x > low ? x : low;
    const EM_FLOAT clipped = above < high ? above : high;
    return x != x ? EM_F(0.0f) : clipped;
}

EM_ALWAYS static inline EM_FLOAT EM(math_exp)(EM_FLOAT x)
{
    const EM_FLOAT y = EM(exact_exp_bounded)(EM(exact_clip)(x, EM_F(-150.0f), EM_F(150.0f)));
    return x != x ? x : y;
}

/* exp(x) - 1 = 2^n ((1 - 2^-n) + r + r^2 Q), summed as in exact_exp_bounded. Beyond n = 30 the
 * inner sum no longer changes, and below x = -20 the result is -1. */
EM_ALWAYS static inline EM_FLOAT EM(math_expm1)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_FLOAT bounded = EM(exact_clip)(f, EM_F(-20.0f), EM_F(150.0f));
    const EM_FLOAT n = EM(exact_nearest)(bounded * EM_LOG2E);
    const EM_FLOAT high = bounded - n * EM_LN2_HIGH, low = n * EM_LN2_LOW;
    const EM_FLOAT r = high - low;
    const EM_FLOAT r_low = (high - r) - low;
    const EM_INT power = EM_TO_INT(n);
    const EM_INT inverse = power > 30 ? EM_I(30) : power;
    const EM_FLOAT rest = 1.0f - EM_FROM_BITS(EM_AS_UINT(127 - inverse) << 23);
    const EM_FLOAT sum = rest + r;
    const EM_FLOAT sum_low = (r - (sum - rest)) + r_low;
    const EM_FLOAT inner = sum + ((r * r) * EM(exact_exp_poly)(r) + sum_low);
    const EM_FLOAT y = EM(with_sign)(EM(exact_scale)(EM(vpu_abs)(inner), power), f);
    return f != f ? f : y;
}

/* |x| < 0.625: x + x^3 P(x^2). Otherwise 1 - 2 / (exp(2 |x|) + 1), with the sign of x. */
EM_ALWAYS static inline EM_FLOAT EM(math_tanh)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_FLOAT magnitude = EM(exact_clip)(EM(vpu_abs)(f), EM_F(0.0f), EM_F(20.0f));
    const EM_FLOAT z = magnitude * magnitude;
    EM_FLOAT p = z * -0x1.750ce4p-8f + 0x1.51f8cep-6f;
    p = p * z + -0x1.b835a4p-5f;
    p = p * z + 0x1.1106f6p-3f;
    p = p * z + -0x1.555532p-2f;
    const EM_FLOAT small = magnitude + magnitude * (z * p);
    const EM_FLOAT e = EM(exact_exp_bounded)(magnitude + magnitude);
    const EM_FLOAT large = 1.0f - EM(math_divide)(EM_F(2.0f), e + 1.0f);
    const EM_FLOAT y = EM(with_sign)(magnitude < 0.625f ? small : large, f);
    return f != f ? f : y;
}

/* 1 / (1 + exp(-x)), for negative x as exp(x) / (1 + exp(x)). The divisor's rounding error is put
 * back: 1 / (1 + e) is y itself for positive x and 1 - y for negative. */
EM_ALWAYS static inline EM_FLOAT EM(math_logistic)(EM_FLOAT x)
{
    const EM_FLOAT magnitude = EM(exact_clip)(EM(vpu_abs)(x), EM_F(0.0f), EM_F(150.0f));
    const EM_FLOAT e = EM(exact_exp_bounded)(-magnitude);
    const EM_INT negative = x < 0.0f;
    const EM_FLOAT divisor = 1.0f + e;
    const EM_FLOAT divisor_low = e - (divisor - 1.0f);
    const EM_FLOAT quotient = EM(math_divide)(negative ? e : EM_F(1.0f), divisor);
    const EM_FLOAT inverse = negative ? 1.0f - quotient : quotient;
    const EM_FLOAT y = quotient - quotient * (divisor_low * inverse);
    return x != x ? x : y;
}

/* |x| < 0.75: x + x P(x^2), tiny x scaled up on the way so that x P is not subnormal. Otherwise
 * 1 - exp(-x (1 + R(x))), where x (1 + R(x)) = -log(erfc(x)); from 3.95 on that rounds to 1. */
EM_ALWAYS static inline EM_FLOAT EM(math_erf)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_FLOAT magnitude = EM(exact_clip)(EM(vpu_abs)(f), EM_F(0.0f), EM_F(3.95f));
    const EM_FLOAT z = magnitude * magnitude;
    EM_FLOAT p = z * -0x1.637590p-11f + 0x1.4f776cp-8f;
    p = p * z + -0x1.b7b266p-6f;
    p = p * z + 0x1.ce2b52p-4f;
    p = p * z + -0x1.81273cp-2f;
    p = p * z + 0x1.06eba8p-3f;
    const EM_INT tiny = magnitude < 0x1p-60f;
    const EM_FLOAT scaled = tiny ? magnitude * 0x1p+64f : magnitude;
    const EM_FLOAT sum = scaled + scaled * p;
    const EM_FLOAT small = tiny ? sum * 0x1p-64f : sum;
    EM_FLOAT r = magnitude * 0x1.6dc35ap-19f + -0x1.f9fca0p-13f;
    r = r * magnitude + 0x1.b3f404p-9f;
    r = r * magnitude + -0x1.7ae30ap-6f;
    r = r * magnitude + 0x1.b0466ap-4f;
    r = r * magnitude + 0x1.456716p-1f;
    r = r * magnitude + 0x1.074810p-3f;
    const EM_FLOAT large = 1.0f - EM(exact_exp_bounded)(-(magnitude + magnitude * r));
    const EM_FLOAT y = EM(with_sign)(magnitude < 0.75f ? small : large, f);
    return f != f ? f : y;
}
