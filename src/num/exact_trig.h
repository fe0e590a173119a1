/* SPDX-License-Identifier: Apache-2.0
 * Part of exact_math.h: sin and cos of radians, for every f32, and of whole turns for random
 * numbers.
 *
 * Reduction: Payne, Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18
 * (1983): the significand of x times 2/pi in integers, of which only the bits around the quadrant
 * matter. Polynomials: tools/fit_exact_math.py.
 */

/* sin(r + r_low) and cos(r + r_low), |r| <= pi/4, r_low below a unit in the last place of r */
static inline EM_FLOAT EM(exact_sin_poly)(EM_FLOAT r, EM_FLOAT r_low)
{
    const EM_FLOAT z = r * r;
    EM_FLOAT p = z * 0x1.7c2c4ep-19f + -0x1.a05954p-13f;
    p = p * z + 0x1.111174p-7f;
    p = p * z + -0x1.555556p-3f;
    return r + (r * (z * p) + r_low * (1.0f - 0.5f * z));
}

static inline EM_FLOAT EM(exact_cos_poly)(EM_FLOAT r, EM_FLOAT r_low)
{
    const EM_FLOAT z = r * r;
    EM_FLOAT p = z * -0x1.361c14p-22f + 0x1.a071c6p-16f;
    p = p * z + -0x1.6c175ep-10f;
    p = p * z + 0x1.555556p-5f;
    /* 1 - z/2 rounded, with its rounding error put back */
    const EM_FLOAT half_z = 0.5f * z;
    const EM_FLOAT head = 1.0f - half_z;
    return head + (((1.0f - head) - half_z) + (z * (z * p) - r * r_low));
}

/* sin(r + r_low + q pi/2) */
static inline EM_FLOAT EM(exact_sin_quadrant)(EM_UINT q, EM_FLOAT r, EM_FLOAT r_low)
{
    const EM_FLOAT sine = EM(exact_sin_poly)(r, r_low), cosine = EM(exact_cos_poly)(r, r_low);
    const EM_FLOAT value = (q & 1u) != 0u ? cosine : sine;
    return EM_FROM_BITS(EM_BITS(value) ^ ((q & 2u) << 30));
}

/* The 32 bits from bit `shift` (0 to 31) of the 64 bits first:second. */
static inline EM_UINT EM(exact_funnel)(EM_UINT first, EM_UINT second, EM_UINT shift)
{
    return (first << shift) | ((second >> 1) >> (31u - shift));
}

/* values[index] for index 0 to 4 */
static inline EM_UINT EM(exact_pick)(EM_UINT index, EM_UINT v0, EM_UINT v1, EM_UINT v2, EM_UINT v3,
                                     EM_UINT v4)
{
    const EM_UINT low = index == 0u ? v0 : (index == 1u ? v1 : v2);
    return index < 3u ? low : (index == 3u ? v3 : v4);
}

/* sin(x + quarters pi/2) for a finite x.
 *
 * x = S 2^(E-31), S of 32 bits with the top bit set. A bit of 2/pi with weight 2^-j contributes a
 * multiple of S 2^(E-31-j), that is of 4 quadrants, if j <= E - 33; so 96 bits A from j = E - 32 on
 * are taken (two words of zeros stand in front of 2/pi for small E), and x 2/pi = S A 2^-94 modulo
 * 4: of the low 96 bits of the product the upper two are the quadrant, and 62 bits of the rest are
 * right. */
static inline EM_FLOAT EM(exact_sin_shifted)(EM_FLOAT x, EM_UINT quarters)
{
    const EM_UINT bits = EM_BITS(x) & 0x7fffffffu;
    const EM_INT small = bits < 0x3f000000u; /* |x| < 1/2 */
    const EM_UINT significand = (bits << 8) | 0x80000000u;
    const EM_UINT position = (small ? EM_U(126u) : bits >> 23) - 96u; /* E + 31 = biased - 96 */
    const EM_UINT word = position >> 5, shift = position & 31u;
    const EM_UINT zero = EM_U(0u), w0 = EM_U(0xa2f9836eu), w1 = EM_U(0x4e441529u);
    const EM_UINT w2 = EM_U(0xfc2757d1u), w3 = EM_U(0xf534ddc0u), w4 = EM_U(0xdb629599u);
    const EM_UINT w5 = EM_U(0x3c439041u);
    const EM_UINT t0 = EM(exact_pick)(word, zero, zero, w0, w1, w2);
    const EM_UINT t1 = EM(exact_pick)(word, zero, w0, w1, w2, w3);
    const EM_UINT t2 = EM(exact_pick)(word, w0, w1, w2, w3, w4);
    const EM_UINT t3 = EM(exact_pick)(word, w1, w2, w3, w4, w5);
    const EM_UINT a0 = EM(exact_funnel)(t0, t1, shift);
    const EM_UINT a1 = EM(exact_funnel)(t1, t2, shift);
    const EM_UINT a2 = EM(exact_funnel)(t2, t3, shift);
    const EM_UINT low = significand * a1;
    const EM_UINT p1 = low + EM_MUL_HI(significand, a2);
    const EM_UINT carry = p1 < low ? EM_U(1u) : EM_U(0u);
    const EM_UINT p0 = significand * a0 + EM_MUL_HI(significand, a1) + carry;
    /* nearest quadrant, and what is left as sign and 61 bits n0:n1 in units of 2^-62 quadrants */
    const EM_UINT q = (p0 + 0x20000000u) >> 30;
    const EM_UINT rest = p0 - (q << 30);
    const EM_INT below = (rest & 0x80000000u) != 0u;
    const EM_UINT n0 = below ? ~rest : rest, n1 = below ? ~p1 : p1;
    /* three exact pieces, summed to high + low */
    const EM_FLOAT top = EM_UINT_TO_FLOAT(n0 & 0xffffff00u) * 0x1p-30f;
    const EM_FLOAT middle = EM_UINT_TO_FLOAT(((n0 & 0xffu) << 16) | (n1 >> 16)) * 0x1p-46f;
    const EM_FLOAT bottom = EM_UINT_TO_FLOAT(n1 & 0xffffu) * 0x1p-62f;
    const EM_FLOAT tail = middle + bottom;
    const EM_FLOAT turn = top + tail;
    const EM_FLOAT turn_low = (tail - (turn - top)) + (bottom - (tail - middle));
    /* times pi/2 = 0x1.921fb6p+0 - 0x1.777a5cp-25 */
    const EM_FLOAT product = turn * 0x1.921fb6p+0f;
    const EM_FLOAT error = EM(exact_product_error)(turn, EM_F(0x1.921fb6p+0f), product);
    const EM_FLOAT missing = error + (turn_low * 0x1.921fb6p+0f - turn * 0x1.777a5cp-25f);
    const EM_FLOAT angle = product + missing;
    const EM_FLOAT angle_low = missing - (angle - product);
    /* so far of |x|; the sign of x turns both the angle and the quadrant round */
    const EM_UINT sign = EM_BITS(x) & 0x80000000u;
    const EM_UINT quadrant = small ? EM_U(0u) : (sign != 0u ? 0u - q : q);
    const EM_UINT flip = sign ^ (below ? EM_U(0x80000000u) : EM_U(0u));
    const EM_FLOAT r = small ? x : EM_FROM_BITS(EM_BITS(angle) ^ flip);
    const EM_FLOAT r_low = small ? EM_F(0.0f) : EM_FROM_BITS(EM_BITS(angle_low) ^ flip);
    return EM(exact_sin_quadrant)((quadrant + quarters) & 3u, r, r_low);
}

/* Infinities give NaN; -0 gives -0. */
static inline EM_FLOAT EM(math_sin)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_INT finite = EM(vpu_is_finite)(f);
    const EM_FLOAT y = EM(exact_sin_shifted)(finite ? f : EM_F(0.0f), EM_U(0u));
    return finite ? (f == 0.0f ? f : y) : EM_FROM_BITS(EM_U(0x7fc00000u));
}

static inline EM_FLOAT EM(math_cos)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_INT finite = EM(vpu_is_finite)(f);
    const EM_FLOAT y = EM(exact_sin_shifted)(finite ? f : EM_F(0.0f), EM_U(1u));
    return finite ? y : EM_FROM_BITS(EM_U(0x7fc00000u));
}

/* sin(2 pi n / 2^24 + quarters pi/2), n below 2^24. Here the reduction is exact on integers. */
static inline EM_FLOAT EM(math_sin_turn)(EM_UINT n, EM_UINT quarters)
{
    const EM_UINT q = (n + 0x200000u) >> 22;
    const EM_FLOAT rest = EM_TO_FLOAT(EM_AS_INT(n - (q << 22)));
    return EM(exact_sin_quadrant)((q + quarters) & 3u, rest * 0x1.921fb6p-22f, EM_F(0.0f));
}
