/* SPDX-License-Identifier: Apache-2.0
 * Elementary functions of the numeric contract: one source that compiles as C11 and as OpenCL
 * C 1.2, with the same bits everywhere. Only add, subtract, multiply, compare, select, integer
 * operations and bit casts; contraction off; division and square root correctly rounded. See
 * docs/precision.md.
 *
 * A template over the vector width. Including it once gives the scalar functions; in OpenCL C
 *     #define EM_WIDTH 16
 *     #include "num/exact_math.h"
 * gives the float16 ones as well, in the same program: 2, 4, 8 and 16. Each width may be included
 * any number of times; EM_WIDTH is undefined again afterwards. (So whoever resolves includes must
 * not drop the second one.) OpenCL programs include "lib/platform.clh" first.
 *
 * Names: tp_NAME on float/int/uint, tp_NAME_v16 on float16/int16/uint16. A mask (result of a
 * compare, argument of select) is an int: 0 or 1 in scalars, 0 or -1 in vectors.
 *
 * All functions take flushed inputs in the sense that a subnormal counts as the zero of its sign,
 * and give flushed results. A NaN in gives a NaN out; which NaN (sign, payload) is not defined.
 *
 * exact_basic.h   tp_flush tp_math_divide tp_math_sqrt tp_math_rsqrt
 *                 tp_vpu_max tp_vpu_min tp_vpu_sign tp_vpu_floor tp_vpu_ceil
 * tp_vpu_round_nearest_even tp_vpu_remainder tp_vpu_is_finite tp_vpu_{s32,u32,u8}_from_f32
 *                 tp_vpu_f32_from_{s32,u32} tp_vpu_s32_divide tp_vpu_s32_remainder ...
 * exact_exp.h     tp_math_exp tp_math_expm1 tp_math_tanh tp_math_logistic tp_math_erf
 * exact_log.h     tp_math_log tp_math_log1p tp_math_pow
 * exact_trig.h    tp_math_sin tp_math_cos
 * exact_root.h    tp_math_cbrt
 *
 * What the element-wise ops of the graph mean: add, subtract, multiply are the operators of the
 * language followed by tp_flush; negate and abs work on the sign bit; compare is the language's (a
 * NaN is unequal to everything), select is `mask ? a : b`. A value that the graph sees is flushed,
 * so a fused kernel flushes after every op that can make a subnormal: add, subtract, multiply.
 */
#if (defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)) && !defined(TP_OPENCL_C)
#define TP_OPENCL_C
#pragma OPENCL FP_CONTRACT OFF
#endif
#if !defined(TP_OPENCL_C) && !defined(TP_EXACT_MATH_HOST)
#define TP_EXACT_MATH_HOST

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "float arithmetic must be done in float (on 32-bit x86: -msse2 -mfpmath=sse)"
#endif
#if defined(__FAST_MATH__)
#error "tpucl's numeric contract cannot be kept under -ffast-math"
#endif

static inline uint32_t tp_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float tp_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
#endif

#ifndef EM_WIDTH
#define EM_WIDTH 1
#endif

/* One instance per width. */
#if EM_WIDTH == 1 && !defined(TP_EXACT_MATH_V1)
#define TP_EXACT_MATH_V1
#define EM_INSTANTIATE
#elif EM_WIDTH == 2 && !defined(TP_EXACT_MATH_V2)
#define TP_EXACT_MATH_V2
#define EM_INSTANTIATE
#elif EM_WIDTH == 4 && !defined(TP_EXACT_MATH_V4)
#define TP_EXACT_MATH_V4
#define EM_INSTANTIATE
#elif EM_WIDTH == 8 && !defined(TP_EXACT_MATH_V8)
#define TP_EXACT_MATH_V8
#define EM_INSTANTIATE
#elif EM_WIDTH == 16 && !defined(TP_EXACT_MATH_V16)
#define TP_EXACT_MATH_V16
#define EM_INSTANTIATE
#endif

#ifdef EM_INSTANTIATE
#include "num/exact_types.h"
#include "num/exact_basic.h"
#include "num/exact_exp.h"
#include "num/exact_log.h"
#include "num/exact_trig.h"
#include "num/exact_root.h"
#include "num/exact_untype.h"
#undef EM_INSTANTIATE
#endif
#ifndef EM_KEEP_WIDTH /* philox.h goes on with it */
#undef EM_WIDTH
#endif
