/* cross_core: sums of the cores of a wave, and of two partial sums, in the order of the balanced tree
 * computes  cross_core_sum:  dst[i] = tree over c < CORES of src[c * core_stride + i]
 *           cross_core_add:  left[i] = left[i] + right[i]
 *           cross_core_flush: dst[i] = flush(src[i])
 * layout    flat f32 ranges; offsets and strides in elements
 * requires  CORES >= 1; all ranges hold n elements
 * knobs     CORES   cores in the wave, a constant so that the tree unrolls
 *           FLUSH   1: dst is the finished sum, subnormals become zero; 0: it is a partial sum
 * work      one work-item per element, global size rounded up; no local memory, no barrier
 * numerics  the balanced tree by doubling distances: 1, 2, 4, ...; partial sums are not flushed
 * fallback  none needed: OpenCL 1.2 without extensions
 */
#include "lib/platform.clh"

#ifndef CORES
#define CORES 8
#endif
#ifndef FLUSH
#define FLUSH 1
#endif

static float flushed(float value)
{
    return fabs(value) < 0x1p-126f ? copysign(0.0f, value) : value;
}

__kernel void cross_core_sum(__global const float *src, ulong src_offset, ulong core_stride,
                             __global float *dst, ulong dst_offset, ulong n)
{
    size_t i = get_global_id(0);
    float part[CORES];
    if (i < n) {
#pragma unroll
        for (int c = 0; c < CORES; c++)
            part[c] = src[src_offset + c * core_stride + i];
#pragma unroll
        for (int distance = 1; distance < CORES; distance *= 2)
#pragma unroll
            for (int left = 0; left + distance < CORES; left += 2 * distance)
                part[left] += part[left + distance];
        dst[dst_offset + i] = FLUSH ? flushed(part[0]) : part[0];
    }
}

__kernel void cross_core_add(__global float *left, ulong left_offset, __global const float *right,
                             ulong right_offset, ulong n)
{
    size_t i = get_global_id(0);
    if (i < n) left[left_offset + i] += right[right_offset + i];
}

__kernel void cross_core_flush(__global const float *src, ulong src_offset, __global float *dst,
                               ulong dst_offset, ulong n)
{
    size_t i = get_global_id(0);
    if (i < n) dst[dst_offset + i] = flushed(src[src_offset + i]);
}
