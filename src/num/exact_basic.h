/* SPDX-License-Identifier: Apache-2.0
 * Part of exact_math.h: flush, division, square root, and the VPU's exact operations (max, rounding
 * to integers, remainder, conversions). Everything here is correctly rounded or exact.
 */

/* Subnormal to zero of the same sign; everything else as it is. On integers, so that no device's
 * own treatment of subnormals can interfere. */
static inline EM_FLOAT EM(flush)(EM_FLOAT x)
{
    const EM_UINT bits = EM_BITS(x);
    return EM_FROM_BITS((bits & 0x7f800000u) == 0u ? bits & 0x80000000u : bits);
}

/* x with the sign of s. */
static inline EM_FLOAT EM(with_sign)(EM_FLOAT x, EM_FLOAT s)
{
    return EM_FROM_BITS((EM_BITS(x) & 0x7fffffffu) | (EM_BITS(s) & 0x80000000u));
}

static inline EM_FLOAT EM(vpu_abs)(EM_FLOAT x)
{
    return EM_FROM_BITS(EM_BITS(x) & 0x7fffffffu);
}

static inline EM_FLOAT EM(vpu_negate)(EM_FLOAT x)
{
    return EM_FROM_BITS(EM_BITS(x) ^ 0x80000000u);
}

/* The larger; NaN if either is; +0 > -0 (equal values differ at most in the sign of a zero, and AND
 * of the two keeps a clear sign bit). */
static inline EM_FLOAT EM(vpu_max)(EM_FLOAT a, EM_FLOAT b)
{
    const EM_FLOAT equal = EM_FROM_BITS(EM_BITS(a) & EM_BITS(b));
    const EM_FLOAT larger = a > b ? a : (a == b ? equal : b);
    return a != a ? a : larger;
}

static inline EM_FLOAT EM(vpu_min)(EM_FLOAT a, EM_FLOAT b)
{
    const EM_FLOAT equal = EM_FROM_BITS(EM_BITS(a) | EM_BITS(b));
    const EM_FLOAT smaller = a < b ? a : (a == b ? equal : b);
    return a != a ? a : smaller;
}

/* -1, +1, or x itself if it is a zero or NaN. */
static inline EM_FLOAT EM(vpu_sign)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_FLOAT one = EM(with_sign)(EM_F(1.0f), f);
    return ((f == EM_F(0.0f)) | (f != f)) ? f : one;
}

/* A mask: neither infinite nor NaN. */
static inline EM_INT EM(vpu_is_finite)(EM_FLOAT x)
{
    return (EM_BITS(x) & 0x7f800000u) != 0x7f800000u;
}

/* To the nearest integer, ties to even; the sign of x stays, also on a zero. Adding and subtracting
 * 2^23 rounds every smaller number at its units; larger ones are integers already. */
static inline EM_FLOAT EM(vpu_round_nearest_even)(EM_FLOAT x)
{
    const EM_FLOAT big = EM_F(8388608.0f);
    const EM_FLOAT magnitude = EM(vpu_abs)(x);
    const EM_FLOAT rounded = EM(with_sign)((magnitude + big) - big, x);
    return magnitude < big ? rounded : x;
}

static inline EM_FLOAT EM(vpu_floor)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_FLOAT rounded = EM(vpu_round_nearest_even)(f);
    return EM(with_sign)(rounded > f ? rounded - EM_F(1.0f) : rounded, f);
}

static inline EM_FLOAT EM(vpu_ceil)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_FLOAT rounded = EM(vpu_round_nearest_even)(f);
    return EM(with_sign)(rounded < f ? rounded + EM_F(1.0f) : rounded, f);
}

/* Towards zero; out of range gives the nearest end of the range, NaN gives 0. */
static inline EM_INT EM(vpu_s32_from_f32)(EM_FLOAT x)
{
    const EM_INT fits = (x > EM_F(-2147483648.0f)) & (x < EM_F(2147483648.0f));
    const EM_INT value = EM_TO_INT(fits ? x : EM_F(0.0f));
    const EM_INT high = x >= EM_F(2147483648.0f) ? EM_I(0x7fffffff) : value;
    return x <= EM_F(-2147483648.0f) ? EM_I(-0x7fffffff - 1) : high;
}

static inline EM_UINT EM(vpu_u32_from_f32)(EM_FLOAT x)
{
    const EM_INT upper = x >= EM_F(2147483648.0f);
    const EM_FLOAT reduced = upper ? x - EM_F(2147483648.0f) : x;
    const EM_INT fits = (reduced > EM_F(0.0f)) & (reduced < EM_F(2147483648.0f));
    const EM_UINT low = EM_AS_UINT(EM_TO_INT(fits ? reduced : EM_F(0.0f)));
    const EM_UINT value = upper ? low + 0x80000000u : low;
    return x >= EM_F(4294967296.0f) ? EM_U(0xffffffffu) : value;
}

/* As above into 0..255, in the low bits of a uint. */
static inline EM_UINT EM(vpu_u8_from_f32)(EM_FLOAT x)
{
    const EM_INT fits = (x > EM_F(0.0f)) & (x < EM_F(256.0f));
    const EM_UINT value = EM_AS_UINT(EM_TO_INT(fits ? x : EM_F(0.0f)));
    return x >= EM_F(256.0f) ? EM_U(255u) : value;
}

/* To nearest even. */
static inline EM_FLOAT EM(vpu_f32_from_s32)(EM_INT i)
{
    return EM_TO_FLOAT(i);
}

static inline EM_FLOAT EM(vpu_f32_from_u32)(EM_UINT u)
{
    return EM_UINT_TO_FLOAT(u);
}

/* Integer division as XLA defines it: towards zero; by zero gives -1 (all bits set) and the
 * remainder is the dividend; the one overflow, INT_MIN / -1, gives INT_MIN, remainder 0. */
static inline EM_INT EM(vpu_s32_divide)(EM_INT a, EM_INT b)
{
    const EM_INT overflow = (a == EM_I(-0x7fffffff - 1)) & (b == EM_I(-1));
    const EM_INT zero = b == EM_I(0);
    const EM_INT safe = (zero | overflow) ? EM_I(1) : b;
    return zero ? EM_I(-1) : a / safe;
}

static inline EM_INT EM(vpu_s32_remainder)(EM_INT a, EM_INT b)
{
    const EM_INT special = (b == EM_I(0)) | (b == EM_I(-1));
    const EM_INT safe = special ? EM_I(1) : b;
    return b == EM_I(0) ? a : a % safe;
}

static inline EM_UINT EM(vpu_u32_divide)(EM_UINT a, EM_UINT b)
{
    const EM_INT zero = b == EM_U(0u);
    return zero ? EM_U(0xffffffffu) : a / (zero ? EM_U(1u) : b);
}

static inline EM_UINT EM(vpu_u32_remainder)(EM_UINT a, EM_UINT b)
{
    const EM_INT zero = b == EM_U(0u);
    return zero ? a : a % (zero ? EM_U(1u) : b);
}

/* An f32 from a significand of 25 bits (24 and a guard bit, leading bit set) of a quotient or root
 * cut to that length; exponent is the biased one of the leading bit. Rounding up at a set guard bit
 * is rounding to nearest: neither a quotient nor a root of two 24-bit numbers can end right behind
 * a guard bit of 1 (multiplied out, it would have more than 24 bits), so there are no ties. */
static inline EM_FLOAT EM(exact_compose)(EM_UINT significand25, EM_INT exponent, EM_UINT sign)
{
    const EM_UINT rounded = (significand25 + 1u) >> 1; /* 2^24 carries into the exponent */
    const EM_UINT magnitude = (EM_AS_UINT(exponent - 1) << 23) + rounded;
    const EM_INT final_exponent = exponent + EM_AS_INT(rounded >> 24);
    const EM_UINT bounded = final_exponent >= 255 ? EM_U(0x7f800000u) : magnitude;
    return EM_FROM_BITS(sign | (final_exponent <= 0 ? EM_U(0u) : bounded));
}

/* a / b for finite non-zero flushed a and b on devices whose own division is only nearly right:
 * their quotient of the significands gives a first guess, and the exact remainder corrects it to
 * the floor (32-bit wrapping arithmetic is enough, because the true remainder is small). */
static inline EM_FLOAT EM(divide_corrected)(EM_FLOAT a, EM_FLOAT b)
{
    const EM_UINT bits_a = EM_BITS(a), bits_b = EM_BITS(b);
    const EM_UINT int_a = (bits_a & 0x007fffffu) | 0x00800000u;
    const EM_UINT int_b = (bits_b & 0x007fffffu) | 0x00800000u;
    const EM_INT below = int_a < int_b;
    /* int_a << (25 or 24) divided by int_b lies in [2^24, 2^25) */
    const EM_FLOAT guess = EM_ROUGH_DIVIDE(EM_FROM_BITS((bits_a & 0x007fffffu) | 0x3f800000u),
                                           EM_FROM_BITS((bits_b & 0x007fffffu) | 0x3f800000u));
    const EM_UINT scaled_low = below ? int_a << 25 : int_a << 24; /* modulo 2^32 */
    const EM_FLOAT scaled_guess = guess * (below ? EM_F(33554432.0f) : EM_F(16777216.0f));
    EM_INT quotient = EM_TO_INT(scaled_guess);
    EM_INT remainder = EM_AS_INT(scaled_low - EM_AS_UINT(quotient) * int_b);
    const EM_INT divisor = EM_AS_INT(int_b);
    const EM_INT step = EM_TO_INT(EM_ROUGH_DIVIDE(EM_TO_FLOAT(remainder), EM_TO_FLOAT(divisor)));
    quotient = quotient + step;
    remainder = remainder - step * divisor;
    const EM_INT low = remainder < EM_I(0);
    quotient = low ? quotient - EM_I(1) : quotient;
    remainder = low ? remainder + divisor : remainder;
    quotient = remainder >= divisor ? quotient + EM_I(1) : quotient;
    const EM_INT exponent = EM_AS_INT((bits_a >> 23) & 0xffu) - EM_AS_INT((bits_b >> 23) & 0xffu) +
                            (below ? EM_I(126) : EM_I(127));
    return EM(exact_compose)(EM_AS_UINT(quotient), exponent, (bits_a ^ bits_b) & 0x80000000u);
}

/* a / b, correctly rounded and flushed. 0/0, inf/inf and NaN give NaN; x/0 an infinity. */
EM_ALWAYS static inline EM_FLOAT EM(math_divide)(EM_FLOAT a, EM_FLOAT b)
{
    const EM_FLOAT fa = EM(flush)(a), fb = EM(flush)(b);
#if !defined(TP_OPENCL_C) || defined(TP_CORRECT_DIVIDE)
    return EM(flush)(fa / fb);
#else
    const EM_INT ordinary =
        (fa != EM_F(0.0f)) & (fb != EM_F(0.0f)) & EM(vpu_is_finite)(fa) & EM(vpu_is_finite)(fb);
    const EM_FLOAT safe_a = ordinary ? fa : EM_F(1.0f);
    const EM_FLOAT safe_b = ordinary ? fb : EM_F(1.0f);
    const EM_FLOAT quotient = EM(divide_corrected)(safe_a, safe_b);
    const EM_UINT sign = (EM_BITS(fa) ^ EM_BITS(fb)) & 0x80000000u;
    const EM_INT infinite_a = EM(vpu_abs)(fa) == EM_F(INFINITY);
    const EM_INT infinite_b = EM(vpu_abs)(fb) == EM_F(INFINITY);
    const EM_INT bad = (fa != fa) | (fb != fb) | (infinite_a & infinite_b) |
                       ((fa == EM_F(0.0f)) & (fb == EM_F(0.0f)));
    const EM_INT large = infinite_a | (fb == EM_F(0.0f));
    const EM_UINT special = bad ? EM_U(0x7fc00000u) : (large ? sign | 0x7f800000u : sign);
    return ordinary ? quotient : EM_FROM_BITS(special);
#endif
}

/* The square root of a positive normal x, by the same method as divide_corrected. */
static inline EM_FLOAT EM(sqrt_corrected)(EM_FLOAT x)
{
    const EM_UINT bits = EM_BITS(x);
    const EM_INT biased = EM_AS_INT(bits >> 23);
    const EM_UINT significand = (bits & 0x007fffffu) | 0x00800000u;
    const EM_INT odd_power = (biased & EM_I(1)) == EM_I(0); /* the bias is odd */
    /* root^2 = significand << (25 or 26) lies in [2^48, 2^50), so root in [2^24, 2^25) */
    const EM_FLOAT reduced =
        EM_FROM_BITS((bits & 0x007fffffu) | (odd_power ? EM_U(0x40000000u) : EM_U(0x3f800000u)));
    const EM_FLOAT guess = EM_ROUGH_SQRT(reduced) * EM_F(16777216.0f);
    const EM_UINT scaled_low = odd_power ? significand << 26 : significand << 25; /* modulo 2^32 */
    EM_INT root = EM_TO_INT(guess);
    EM_INT remainder = EM_AS_INT(scaled_low - EM_AS_UINT(root) * EM_AS_UINT(root));
    root = root + EM_TO_INT(EM_ROUGH_DIVIDE(EM_TO_FLOAT(remainder), 2.0f * EM_TO_FLOAT(root)));
    remainder = EM_AS_INT(scaled_low - EM_AS_UINT(root) * EM_AS_UINT(root));
    root = remainder < EM_I(0) ? root - EM_I(1) : root;
    remainder = EM_AS_INT(scaled_low - EM_AS_UINT(root) * EM_AS_UINT(root));
    root = remainder > EM_I(2) * root ? root + EM_I(1) : root;
    const EM_INT exponent = ((biased - EM_I(127)) >> 1) + EM_I(127);
    return EM(exact_compose)(EM_AS_UINT(root), exponent, EM_U(0u));
}

/* Correctly rounded. Negative gives NaN, -0 gives -0. The result is never subnormal. */
EM_ALWAYS static inline EM_FLOAT EM(math_sqrt)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
#if !defined(TP_OPENCL_C)
    return sqrtf(f);
#elif defined(TP_CORRECT_DIVIDE)
    return sqrt(f);
#else
    const EM_INT ordinary = (f > EM_F(0.0f)) & EM(vpu_is_finite)(f);
    const EM_FLOAT root = EM(sqrt_corrected)(ordinary ? f : EM_F(1.0f));
    const EM_FLOAT special =
        f < EM_F(0.0f) ? EM_FROM_BITS(EM_U(0x7fc00000u)) : f; /* 0, -0, inf, NaN */
    return ordinary ? root : special;
#endif
}

/* 1 / sqrt(x), both correctly rounded, so within 1 ulp. Zero gives an infinity of its sign. */
EM_ALWAYS static inline EM_FLOAT EM(math_rsqrt)(EM_FLOAT x)
{
    return EM(math_divide)(EM_F(1.0f), EM(math_sqrt)(x));
}

/* a - b * trunc(a / b), exact, with the sign of a (C's fmod). By zero, or of an infinity: NaN; by
 * an infinity: a. Long division on the significands, eight quotient bits a round; at most 253 are
 * needed. */
static inline EM_FLOAT EM(vpu_remainder)(EM_FLOAT a, EM_FLOAT b)
{
    const EM_FLOAT fa = EM(flush)(a), fb = EM(flush)(b);
    const EM_UINT bits_a = EM_BITS(fa) & 0x7fffffffu, bits_b = EM_BITS(fb) & 0x7fffffffu;
    const EM_INT bad = (bits_a >= 0x7f800000u) | (bits_b > 0x7f800000u) | (bits_b == 0u);
    const EM_INT ordinary = (bits_a >= bits_b) & (bad == EM_I(0));
    const EM_UINT safe_a = ordinary ? bits_a : EM_U(0x3f800000u);
    const EM_UINT safe_b = ordinary ? bits_b : EM_U(0x3f800000u);
    const EM_UINT divisor = (safe_b & 0x007fffffu) | 0x00800000u;
    EM_UINT rest = ((safe_a & 0x007fffffu) | 0x00800000u) % divisor;
    EM_INT todo = EM_AS_INT(safe_a >> 23) - EM_AS_INT(safe_b >> 23);
    for (int round = 0; round < 32; round++) {
        const EM_INT count = todo > EM_I(8) ? EM_I(8) : todo;
        rest = (rest << EM_AS_UINT(count)) % divisor;
        todo = todo - count;
    }
    /* rest is an integer below 2^24 in units of the divisor's last place: scale it in two exact
     * steps */
    const EM_INT exponent_b = EM_AS_INT(safe_b >> 23);
    const EM_UINT as_float = EM_BITS(EM_UINT_TO_FLOAT(rest));
    const EM_INT exponent = EM_AS_INT(as_float >> 23) + exponent_b - EM_I(150);
    const EM_INT vanishes = (rest == 0u) | (exponent <= EM_I(0));
    const EM_UINT value = (as_float & 0x007fffffu) | (EM_AS_UINT(exponent) << 23);
    const EM_UINT magnitude = vanishes ? EM_U(0u) : value;
    const EM_FLOAT result = EM(with_sign)(EM_FROM_BITS(magnitude), fa);
    return bad ? EM_FROM_BITS(EM_U(0x7fc00000u)) : (ordinary ? result : fa);
}
