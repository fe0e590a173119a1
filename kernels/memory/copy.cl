/* SPDX-License-Identifier: Apache-2.0
 * copy: dst[i] = src[i]; fill: dst[i] = value
 * computes  what a tensor holds before something is written into parts of it
 * layout    both contiguous, `nx` elements
 * requires  nothing
 * knobs     MEMORY_TYPE: the elements' type in memory
 * work      x: nx by chunk_x
 * numerics  bits stay as they are; fill stores the low bits of `value`
 * fallback  none needed
 */
#include "lib/vpu.clh"

#ifndef MEMORY_TYPE
#define MEMORY_TYPE uint
#endif

__kernel void memory_copy(TP_TENSOR(MEMORY_TYPE, src), TP_TENSOR(MEMORY_TYPE, dst), const int nx,
                          int grid_z, int chunk_x)
{
    const __global MEMORY_TYPE *from = TP_AT(src, TP_CORE(grid_z));
    __global MEMORY_TYPE *to = TP_AT(dst, TP_CORE(grid_z));
    const int x0 = (int)get_global_id(0) * chunk_x, x1 = min(x0 + chunk_x, nx);
    VPU_LOOP for (int x = x0; x < x1; x++)
        to[x] = from[x];
}

__kernel void memory_fill(TP_TENSOR(MEMORY_TYPE, dst), const uint value, const int nx, int grid_z,
                          int chunk_x)
{
    __global MEMORY_TYPE *to = TP_AT(dst, TP_CORE(grid_z));
    const int x0 = (int)get_global_id(0) * chunk_x, x1 = min(x0 + chunk_x, nx);
    VPU_LOOP for (int x = x0; x < x1; x++)
        to[x] = (MEMORY_TYPE)value;
}
