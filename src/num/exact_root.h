/* SPDX-License-Identifier: Apache-2.0
 * Part of exact_math.h: the cube root.
 *
 * x = 2^(3k) m with m in [1/2, 4). A third of m's bit pattern plus 2/3 of 127 * 2^23, less 0.0375 *
 * 2^23 to balance the error, is within 3.5 % of its cube root (Kahan, "Computing a real cube root",
 * 1991). Two steps of Halley's method y (y^3 + 2 m) / (2 y^3 + m), which triples the bits each
 * time, and one of Newton's with the residual y^3 - m to twice the precision.
 */

/* -0 gives -0, infinities themselves; the sign of x stays. */
static inline EM_FLOAT EM(math_cbrt)(EM_FLOAT x)
{
    const EM_FLOAT f = EM(flush)(x);
    const EM_FLOAT a = EM(vpu_abs)(f);
    const EM_INT ordinary = (a > 0.0f) & (a < INFINITY);
    const EM_UINT bits = EM_BITS(ordinary ? a : EM_F(1.0f));
    const EM_UINT third =
        (bits >> 23) / 3u; /* biased exponent = 3 third + {0, 1, 2}; bias 127 = 3*42+1 */
    const EM_FLOAT m = EM_FROM_BITS(bits - ((third - 42u) * 3u << 23)); /* [1/2, 4) */
    EM_FLOAT y = EM_FROM_BITS(EM_BITS(m) / 3u + 709921077u);
    for (int i = 0; i < 2; i++) {
        const EM_FLOAT cube = y * y * y;
        y = y * EM(math_divide)(cube + (m + m), (cube + cube) + m);
    }
    /* y - (y^3 - m) / (3 y^2), with y^2 and y^3 as sums of two f32 */
    const EM_FLOAT square = y * y;
    const EM_FLOAT square_low = EM(exact_product_error)(y, y, square);
    const EM_FLOAT cube = square * y;
    const EM_FLOAT cube_low = EM(exact_product_error)(square, y, cube) + square_low * y;
    const EM_FLOAT residual = (cube - m) + cube_low;
    y = y - EM(math_divide)(residual, 3.0f * square);
    const EM_FLOAT value = EM_FROM_BITS(EM_BITS(y) + ((third - 42u) << 23));
    return ordinary ? EM(with_sign)(value, f) : f;
}
