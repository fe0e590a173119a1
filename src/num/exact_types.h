/* SPDX-License-Identifier: Apache-2.0
 * The words in which the exact_*.h and philox.h templates are written, for one EM_WIDTH: types,
 * casts, and the few operations that C and OpenCL C spell differently. exact_untype.h takes them
 * away again.
 *
 *   EM(name)             the function's name in this width
 *   EM_FLOAT EM_INT EM_UINT
 *   EM_F(c) EM_I(c) EM_U(c)     a constant in every lane
 *   EM_BITS(f) EM_FROM_BITS(u)  bit casts float <-> uint; EM_AS_INT, EM_AS_UINT between the
 * integers EM_TO_INT(f)         convert, truncating; the caller keeps f in range EM_TO_FLOAT(i)
 * EM_UINT_TO_FLOAT(u)   convert, to nearest even EM_MUL_HI(a, b)      upper word of the product of
 * two uints
 *
 *   EM_ALWAYS            before functions that loops over elements call: a call that is not inlined, because the
 *                        kernel has several, keeps the loop from being vectorised (LSTM steps took 2.4 times as long)
 *
 * `mask ? a : b` works in both languages when a and b have the same type; both sides are values
 * without side effects, so that compilers make selects of them.
 */
#ifdef TP_OPENCL_C
#ifdef __clang__
#define EM_ALWAYS __attribute__((always_inline))
#else
#define EM_ALWAYS
#endif
#define EM_PASTE2(a, b) a##b
#define EM_PASTE(a, b) EM_PASTE2(a, b)
#if EM_WIDTH == 1
#define EM(name) tp_##name
#define EM_FLOAT float
#define EM_INT int
#define EM_UINT uint
#else
#define EM_FLOAT EM_PASTE(float, EM_WIDTH)
#define EM_INT EM_PASTE(int, EM_WIDTH)
#define EM_UINT EM_PASTE(uint, EM_WIDTH)
#if EM_WIDTH == 2
#define EM(name) tp_##name##_v2
#elif EM_WIDTH == 4
#define EM(name) tp_##name##_v4
#elif EM_WIDTH == 8
#define EM(name) tp_##name##_v8
#else
#define EM(name) tp_##name##_v16
#endif
#endif
#define EM_BITS(f) EM_PASTE(as_, EM_UINT)(f)
#define EM_FROM_BITS(u) EM_PASTE(as_, EM_FLOAT)(u)
#define EM_AS_INT(u) EM_PASTE(as_, EM_INT)(u)
#define EM_AS_UINT(i) EM_PASTE(as_, EM_UINT)(i)
#define EM_TO_INT(f) EM_PASTE(EM_PASTE(convert_, EM_INT), _rtz)(f)
#define EM_TO_FLOAT(i) EM_PASTE(EM_PASTE(convert_, EM_FLOAT), _rte)(i)
#define EM_UINT_TO_FLOAT(u) EM_PASTE(EM_PASTE(convert_, EM_FLOAT), _rte)(u)
/* Not mul_hi: compilers vectorise this one. */
#if EM_WIDTH == 1
#define EM_MUL_HI(a, b) ((uint)(((ulong)(a) * (ulong)(b)) >> 32))
#else
#define EM_MUL_HI(a, b)                                                                            \
    EM_PASTE(convert_, EM_UINT)                                                                    \
    ((EM_PASTE(convert_ulong, EM_WIDTH)(a) * EM_PASTE(convert_ulong, EM_WIDTH)(b)) >> 32)
#endif
#define EM_ROUGH_SQRT(x) sqrt(x)
#else
#define EM_ALWAYS
#define EM(name) tp_##name
#define EM_FLOAT float
#define EM_INT int32_t
#define EM_UINT uint32_t
#define EM_BITS(f) tp_f32_bits(f)
#define EM_FROM_BITS(u) tp_f32_from_bits(u)
#define EM_AS_INT(u) ((int32_t)(u))
#define EM_AS_UINT(i) ((uint32_t)(i))
#define EM_TO_INT(f) ((int32_t)(f))
#define EM_TO_FLOAT(i) ((float)(i))
#define EM_UINT_TO_FLOAT(u) ((float)(u))
#define EM_MUL_HI(a, b) ((uint32_t)(((uint64_t)(a) * (b)) >> 32))
#ifdef TP_ROUGH_SQRT
#define EM_ROUGH_SQRT(x) TP_ROUGH_SQRT(x)
#else
#define EM_ROUGH_SQRT(x) sqrtf(x)
#endif
#endif
#ifdef TP_ROUGH_DIVIDE
#define EM_ROUGH_DIVIDE(a, b) TP_ROUGH_DIVIDE((a), (b))
#else
#define EM_ROUGH_DIVIDE(a, b) ((a) / (b))
#endif
#define EM_F(c) ((EM_FLOAT)(c))
#define EM_I(c) ((EM_INT)(c))
#define EM_U(c) ((EM_UINT)(c))
