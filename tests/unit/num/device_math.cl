/* SPDX-License-Identifier: Apache-2.0
 * Kernels of test_device_math.c: every shared function once as a scalar and once in float16.
 */
#include "lib/platform.clh"
#include "lib/bf16.clh"
#include "num/philox.h"
#define EM_WIDTH 16
#include "num/philox.h"

#define UNARY(name, function)                                                                      \
    __kernel void name##_1(__global const float *x, __global float *y)                             \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        y[i] = function(x[i]);                                                                     \
    }                                                                                              \
    __kernel void name##_16(__global const float *x, __global float *y)                            \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        vstore16(function##_v16(vload16(i, x)), i, y);                                             \
    }

#define BINARY(name, function)                                                                     \
    __kernel void name##_1(__global const float *x, __global const float *y, __global float *z)    \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        z[i] = function(x[i], y[i]);                                                               \
    }                                                                                              \
    __kernel void name##_16(__global const float *x, __global const float *y, __global float *z)   \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        vstore16(function##_v16(vload16(i, x), vload16(i, y)), i, z);                              \
    }

#define TO_INT(name, function, type)                                                               \
    __kernel void name##_1(__global const float *x, __global type *y)                              \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        y[i] = function(x[i]);                                                                     \
    }                                                                                              \
    __kernel void name##_16(__global const float *x, __global type *y)                             \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        vstore16(function##_v16(vload16(i, x)), i, y);                                             \
    }

#define INT_BINARY(name, function, type)                                                           \
    __kernel void name##_1(__global const type *x, __global const type *y, __global type *z)       \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        z[i] = function(x[i], y[i]);                                                               \
    }                                                                                              \
    __kernel void name##_16(__global const type *x, __global const type *y, __global type *z)      \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        vstore16(function##_v16(vload16(i, x), vload16(i, y)), i, z);                              \
    }

#define FROM_INT(name, function, type)                                                             \
    __kernel void name##_1(__global const type *x, __global float *y)                              \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        y[i] = function(x[i]);                                                                     \
    }                                                                                              \
    __kernel void name##_16(__global const type *x, __global float *y)                             \
    {                                                                                              \
        const size_t i = get_global_id(0);                                                         \
        vstore16(function##_v16(vload16(i, x)), i, y);                                             \
    }

/* Contraction must be off: these must round twice. */
static inline float multiply_add(float a, float b)
{
    return a * b + a;
}

static inline float16 multiply_add_v16(float16 a, float16 b)
{
    return a * b + a;
}

UNARY(exp, tp_math_exp)
UNARY(expm1, tp_math_expm1)
UNARY(log, tp_math_log)
UNARY(log1p, tp_math_log1p)
UNARY(tanh, tp_math_tanh)
UNARY(logistic, tp_math_logistic)
UNARY(erf, tp_math_erf)
UNARY(sqrt, tp_math_sqrt)
UNARY(rsqrt, tp_math_rsqrt)
UNARY(cbrt, tp_math_cbrt)
UNARY(sin, tp_math_sin)
UNARY(cos, tp_math_cos)
UNARY(flush, tp_flush)
UNARY(sign, tp_vpu_sign)
UNARY(floor, tp_vpu_floor)
UNARY(ceil, tp_vpu_ceil)
UNARY(round, tp_vpu_round_nearest_even)
UNARY(bf16_round, tp_bf16_round)
BINARY(divide, tp_math_divide)
BINARY(pow, tp_math_pow)
BINARY(max, tp_vpu_max)
BINARY(min, tp_vpu_min)
BINARY(remainder, tp_vpu_remainder)
BINARY(multiply_add, multiply_add)
TO_INT(s32, tp_vpu_s32_from_f32, int)
TO_INT(u32, tp_vpu_u32_from_f32, uint)
TO_INT(u8, tp_vpu_u8_from_f32, uint)
TO_INT(is_finite, tp_vpu_is_finite, int)
TO_INT(bf16, tp_bf16_from_f32, ushort)
FROM_INT(from_s32, tp_vpu_f32_from_s32, int)
FROM_INT(from_u32, tp_vpu_f32_from_u32, uint)
INT_BINARY(s32_divide, tp_vpu_s32_divide, int)
INT_BINARY(s32_remainder, tp_vpu_s32_remainder, int)
INT_BINARY(u32_divide, tp_vpu_u32_divide, uint)
INT_BINARY(u32_remainder, tp_vpu_u32_remainder, uint)

/* Element i of a stream: bits and normal. */
__kernel void random_1(ulong seed, uint op, uint core, uint step, __global uint *bits,
                       __global float *uniform, __global float *normal)
{
    const size_t i = get_global_id(0);
    const tp_random_stream stream = tp_random_stream_make((uint)seed, (uint)(seed >> 32), op, core, step);
    bits[i] = tp_random_bits(stream, (uint)i >> 2, (uint)i & 3u);
    uniform[i] = tp_random_uniform(stream, (uint)i >> 2, (uint)i & 3u);
    normal[i] = tp_random_normal(stream, (uint)i >> 2, (uint)i & 3u);
}

__kernel void random_16(ulong seed, uint op, uint core, uint step, __global uint *bits,
                        __global float *uniform, __global float *normal)
{
    const size_t i = get_global_id(0);
    const uint16 index =
        (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) + (uint16)((uint)i * 16u);
    const tp_random_stream stream = tp_random_stream_make((uint)seed, (uint)(seed >> 32), op, core, step);
    vstore16(tp_random_bits_v16(stream, index >> 2, index & 3u), i, bits);
    vstore16(tp_random_uniform_v16(stream, index >> 2, index & 3u), i, uniform);
    vstore16(tp_random_normal_v16(stream, index >> 2, index & 3u), i, normal);
}
