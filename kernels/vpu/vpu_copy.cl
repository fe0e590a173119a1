/* SPDX-License-Identifier: Apache-2.0
 * vpu_copy: dst[i] = src[i], for bytes of any meaning
 * computes  a copy of `bytes` bytes
 * layout    both contiguous
 * requires  nothing
 * knobs     none
 * work      work-item i copies bytes i * chunk .. (i + 1) * chunk - 1
 * numerics  bits stay as they are
 * fallback  none needed
 */
#include "lib/vpu.clh"

__kernel void vpu_copy(TP_TENSOR(uchar, src), TP_TENSOR(uchar, dst), int bytes, int chunk)
{
    const __global uchar *from = TP_AT(src, 0);
    __global uchar *to = TP_AT(dst, 0);
    const int start = (int)get_global_id(0) * chunk;
    const int end = min(start + chunk, bytes);
    VPU_LOOP for (int i = start; i < end; i++)
        to[i] = from[i];
}
