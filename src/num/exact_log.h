/* SPDX-License-Identifier: Apache-2.0
 * Part of exact_math.h: log, log1p, pow. Coefficients: tools/fit_exact_math.py.
 *
 * log: x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1 (exact),
 *      log(x) = k log 2 + f - f^2/2 + f^3 P(f).
 */

/* f - f^2/2 + f^3 P(f) without its first term. */
static inline EM_FLOAT EM(exact_log_tail)(EM_FLOAT f)
{
    EM_FLOAT p = f * 0x1.b6401cp-5f + -0x1.bf9798p-4f;
    p = p * f + 0x1.f0105ep-4f;
    p = p * f + -0x1.0103bcp-3f;
    p = p * f + 0x1.23036cp-3f;
    p = p * f + -0x1.552f18p-3f;
    p = p * f + 0x1.99a540p-3f;
    p = p * f + -0x1.000070p-2f;
    p = p * f + 0x1.555548p-2f;
    const EM_FLOAT z = f * f;
    return (f * z) * p - 0.5f * z;
}

/* k of a positive normal x: m = x * 2^-k is in [sqrt(1/2), sqrt(2)). 0x3f3504f3 are the bits of the
 * f32 nearest to sqrt(1/2). */
static inline EM_INT EM(exact_log_power)(EM_FLOAT x)
{
    return (EM_AS_INT(EM_BITS(x)) - 0x3f3504f3) >> 23;
}

static inline EM_FLOAT EM(exact_log_mantissa)(EM_FLOAT x, EM_INT k)
{
    return EM_FROM_BITS(EM_BITS(x) - (EM_AS_UINT(k) << 23));
}

/* Zero gives -inf, negative NaN, inf inf. */
EM_ALWAYS static inline EM_FLOAT EM(math_log)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_INT ordinary = (f > 0.0f) & (f < INFINITY);
    const EM_FLOAT safe = ordinary ? f : EM_F(1.0f);
    const EM_INT power = EM(exact_log_power)(safe);
    const EM_FLOAT k = EM_TO_FLOAT(power);
    const EM_FLOAT m = EM(exact_log_mantissa)(safe, power) - 1.0f;
    const EM_FLOAT tail = EM(exact_log_tail)(m) + k * EM_LN2_LOW;
    const EM_FLOAT y = (m + tail) + k * EM_LN2_HIGH;
    const EM_FLOAT infinite = f == 0.0f ? EM_F(-INFINITY) : f;
    const EM_FLOAT special = f < 0.0f ? EM_FROM_BITS(EM_U(0x7fc00000u)) : infinite;
    return ordinary ? y : special;
}

/* log(1 + x): u = 1 + x rounded, c its rounding error, both scaled so that u is in the range of
 * log. While u needs no scaling f is x itself and there is no error; otherwise c adds c / u, for
 * which c (1 - f + f^2) is near enough, because |c| < 2^-24. */
EM_ALWAYS static inline EM_FLOAT EM(math_log1p)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_INT ordinary = (f > -1.0f) & (f < INFINITY);
    const EM_FLOAT safe = ordinary ? f : EM_F(0.0f);
    const EM_FLOAT u = 1.0f + safe;
    const EM_INT power = EM(exact_log_power)(u);
    const EM_FLOAT error = safe > 1.0f ? 1.0f - (u - safe) : safe - (u - 1.0f);
    const EM_INT down =
        power > 100 ? EM_I(100) : power; /* 2^-down stays normal; by then error is 1 */
    const EM_FLOAT c = error * EM_FROM_BITS(EM_AS_UINT(127 - down) << 23);
    const EM_FLOAT scaled = EM(exact_log_mantissa)(u, power) - 1.0f;
    const EM_FLOAT m = power == 0 ? safe : scaled;
    const EM_FLOAT correction = power == 0 ? EM_F(0.0f) : c - c * (m - m * m);
    const EM_FLOAT k = EM_TO_FLOAT(power);
    const EM_FLOAT tail = EM(exact_log_tail)(m) + (k * EM_LN2_LOW + correction);
    const EM_FLOAT y = EM(with_sign)((m + tail) + k * EM_LN2_HIGH, f);
    const EM_FLOAT infinite = f == -1.0f ? EM_F(-INFINITY) : f;
    const EM_FLOAT special = f < -1.0f ? EM_FROM_BITS(EM_U(0x7fc00000u)) : infinite;
    return ordinary ? y : special;
}

/* The upper 12 bits of a's significand; a minus that has 12 bits too, so products of halves are
 * exact. */
static inline EM_FLOAT EM(exact_high)(EM_FLOAT a)
{
    return EM_FROM_BITS(EM_BITS(a) & 0xfffff000u);
}

/* a * b - product, exactly, for product = a * b rounded. Dekker, "A floating-point technique for
 * extending the available precision", Numer. Math. 18 (1971). */
static inline EM_FLOAT EM(exact_product_error)(EM_FLOAT a, EM_FLOAT b, EM_FLOAT product)
{
    const EM_FLOAT a_high = EM(exact_high)(a), b_high = EM(exact_high)(b);
    const EM_FLOAT a_low = a - a_high, b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

/* 2^(high + low), |high| <= 200, |low| small against 1. 2^r = 1 + r S(r). */
static inline EM_FLOAT EM(exact_exp2)(EM_FLOAT high, EM_FLOAT low)
{
    const EM_FLOAT n = EM(exact_nearest)(high);
    const EM_FLOAT r = (high - n) + low;
    EM_FLOAT p = r * 0x1.d64b8ap-17f + 0x1.43699ep-13f;
    p = p * r + 0x1.5da7cep-10f;
    p = p * r + 0x1.3b2a74p-7f;
    p = p * r + 0x1.c6b06ep-5f;
    p = p * r + 0x1.ebfbe0p-3f;
    p = p * r + 0x1.62e430p-1f;
    return EM(exact_scale)(1.0f + r * p, EM_TO_INT(n));
}

/* x^y for a positive normal x and a finite y. log2(x) = k + s (C0 + s^2 (C1 + s^2 C(s^2))), s = f /
 * (2 + f) (the series of artanh), C0, C1, s and s^2 as sums of two f32, which gives log2(x) to
 * 2^-34 of itself; times y in the same way. */
static inline EM_FLOAT EM(exact_power)(EM_FLOAT x, EM_FLOAT y)
{
    const EM_INT power = EM(exact_log_power)(x);
    const EM_FLOAT f = EM(exact_log_mantissa)(x, power) - 1.0f;
    const EM_FLOAT t = 2.0f + f;
    const EM_FLOAT t_low = f - (t - 2.0f);
    const EM_FLOAT s = EM(math_divide)(f, t);
    const EM_FLOAT back = s * t;
    const EM_FLOAT missing = ((f - back) - EM(exact_product_error)(s, t, back)) - s * t_low;
    const EM_FLOAT s_low = missing * (0.5f - 0.5f * s); /* 1 / (2 + f) = (1 - s) / 2 */
    const EM_FLOAT z = s * s;
    const EM_FLOAT z_low = EM(exact_product_error)(s, s, z) + 2.0f * (s * s_low);
    EM_FLOAT c = z * 0x1.5ce6d4p-2f + 0x1.a58d98p-2f;
    c = (c * z + 0x1.277780p-1f) * z;
    /* u = C1 + c */
    const EM_FLOAT u = 0x1.ec709ep-1f + c;
    const EM_FLOAT u_low = (c - (u - 0x1.ec709ep-1f)) + -0x1.dc5d34p-26f;
    /* v = z u */
    const EM_FLOAT v = z * u;
    const EM_FLOAT v_low = EM(exact_product_error)(z, u, v) + (z * u_low + z_low * u);
    /* w = C0 + v */
    const EM_FLOAT w = 0x1.715476p+1f + v;
    const EM_FLOAT w_low = (v - (w - 0x1.715476p+1f)) + (v_low + 0x1.4afbacp-25f);
    /* g = s w */
    const EM_FLOAT g = s * w;
    const EM_FLOAT g_low = EM(exact_product_error)(s, w, g) + (s * w_low + s_low * w);
    /* l = k + g, and once more so that l_low is below half a unit of l */
    const EM_FLOAT k = EM_TO_FLOAT(power);
    const EM_FLOAT sum = k + g;
    const EM_FLOAT sum_low = power == 0 ? g_low : (g - (sum - k)) + g_low;
    const EM_FLOAT l = sum + sum_low;
    const EM_FLOAT l_low = sum_low - (l - sum);
    /* e = y l; beyond 2^31 the result over- or underflows for every x but 1, below 2^-60 it is 1 */
    const EM_FLOAT bounded = EM(exact_clip)(y, EM_F(-0x1p+31f), EM_F(0x1p+31f));
    const EM_FLOAT factor = EM(vpu_abs)(bounded) < 0x1p-60f ? EM_F(0.0f) : bounded;
    const EM_FLOAT product = factor * l;
    const EM_FLOAT high = EM(exact_clip)(product, EM_F(-200.0f), EM_F(200.0f));
    const EM_FLOAT error = EM(exact_product_error)(factor, l, product) + factor * l_low;
    return EM(exact_exp2)(high, high == product ? error : EM_F(0.0f));
}

/* C's pow (IEEE 754-2019, 9.2.1): x^0 = 1 and 1^y = 1 even for NaN, (-1)^inf = 1; a negative x to a
 * non-integer is NaN, to an odd integer negative; 0 and inf by the limits, odd integers keep the
 * sign. */
static inline EM_FLOAT EM(math_pow)(EM_FLOAT x, EM_FLOAT y)
{
    const EM_FLOAT fx = EM(flush)(x), fy = EM(flush)(y);
    const EM_FLOAT a = EM(vpu_abs)(fx), b = EM(vpu_abs)(fy);
    const EM_INT ordinary = (a > 0.0f) & (a < INFINITY) & (b < INFINITY);
    const EM_FLOAT value = EM(exact_power)(ordinary ? a : EM_F(1.0f), ordinary ? fy : EM_F(1.0f));
    /* a limit is infinite when a > 1 and y > 0, or a < 1 and y < 0 */
    const EM_INT grows = ((a > 1.0f) & (fy > 0.0f)) | ((a < 1.0f) & (fy < 0.0f));
    const EM_FLOAT limit = grows ? EM_F(INFINITY) : EM_F(0.0f);
    const EM_FLOAT magnitude = ordinary ? value : (a == 1.0f ? EM_F(1.0f) : limit);
    const EM_FLOAT small = b < 0x1p+24f ? b : EM_F(0.0f); /* larger ones are even */
    const EM_INT whole = EM_TO_INT(small);
    const EM_INT is_whole = EM_TO_FLOAT(whole) == small;
    const EM_INT odd = is_whole & ((whole & 1) != 0);
    const EM_INT negative = (EM_BITS(fx) & 0x80000000u) != 0u;
    const EM_FLOAT with_sign = negative & odd ? -magnitude : magnitude;
    const EM_INT bad =
        (fx != fx) | (fy != fy) | (negative & (is_whole == 0) & (a > 0.0f) & (a < INFINITY));
    const EM_FLOAT general = bad ? EM_FROM_BITS(EM_U(0x7fc00000u)) : with_sign;
    return ((fy == 0.0f) | (fx == 1.0f)) ? EM_F(1.0f) : general;
}
