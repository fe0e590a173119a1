/* SPDX-License-Identifier: Apache-2.0
 * vpu_copy: dst[i] = src[i]
 * computes  a copy of `elems` elements
 * layout    both contiguous
 * requires  nothing
 * knobs     COPY_TYPE: the elements' type in memory
 * work      work-item i copies elements i * chunk .. (i + 1) * chunk - 1
 * numerics  bits stay as they are
 * fallback  none needed
 */
#include "lib/vpu.clh"

#ifndef COPY_TYPE
#define COPY_TYPE uint
#endif

__kernel void vpu_copy(TP_TENSOR(COPY_TYPE, src), TP_TENSOR(COPY_TYPE, dst), int elems, int chunk)
{
    const __global COPY_TYPE *from = TP_AT(src, 0);
    __global COPY_TYPE *to = TP_AT(dst, 0);
    const int start = (int)get_global_id(0) * chunk;
    const int end = min(start + chunk, elems);
    VPU_LOOP for (int i = start; i < end; i++)
        to[i] = from[i];
}
