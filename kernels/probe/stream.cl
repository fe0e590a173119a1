/* SPDX-License-Identifier: Apache-2.0
 * stream: dst[i] = a[i] (copy), dst[i] = a[i] + factor * b[i] (triad)
 * computes  nothing worth mentioning: how fast memory is
 * layout    contiguous floats, a multiple of FLOATS of them
 * requires  nothing
 * knobs     FLOATS  floats of a load: 1, 4, 8 or 16
 * work      work-item i does `count` loads of FLOATS, the first at i * chunk, `stride` apart: neighbours in
 *           one work-item on CPUs (chunk = count, stride = 1), across work-items on GPUs (1, all of them)
 * numerics  copies keep the bits
 * fallback  none needed
 */
#include "lib/tensor.clh"
#include "lib/platform.clh"

#ifndef FLOATS
#define FLOATS 4
#endif

#if FLOATS == 1
#define LOAD(i, from) (from)[i]
#define STORE(value, i, to) (to)[i] = (value)
#else
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define LOAD(i, from) JOIN(vload, FLOATS)(i, from)
#define STORE(value, i, to) JOIN(vstore, FLOATS)(value, i, to)
#endif

__kernel void copy(TP_TENSOR(const float, a), TP_TENSOR(float, dst), ulong count, ulong chunk,
                   ulong stride)
{
    const __global float *from = TP_AT(a, 0);
    __global float *to = TP_AT(dst, 0);
    const ulong begin = (ulong)get_global_id(0) * chunk;
    for (ulong i = 0; i < count; i++)
        STORE(LOAD(begin + i * stride, from), begin + i * stride, to);
}

__kernel void triad(TP_TENSOR(const float, a), TP_TENSOR(const float, b), TP_TENSOR(float, dst),
                    float factor, ulong count, ulong chunk, ulong stride)
{
    const __global float *from_a = TP_AT(a, 0);
    const __global float *from_b = TP_AT(b, 0);
    __global float *to = TP_AT(dst, 0);
    const ulong begin = (ulong)get_global_id(0) * chunk;
    for (ulong i = 0; i < count; i++) {
        const ulong at = begin + i * stride;
        STORE(LOAD(at, from_a) + factor * LOAD(at, from_b), at, to);
    }
}
