/* SPDX-License-Identifier: Apache-2.0
 * cumulative: running sum, product, maximum or minimum of lines of n elements
 * computes  s[0] = x[0], s[i] = s[i-1] op x[i]; y[i] = s[i], or s[i-1] when is_exclusive, with the neutral
 *           element first; is_reverse: from the last element to the first
 * layout    src, dst [outer][n][inner], row-major
 * requires  nothing
 * knobs     CUMULATIVE_WIDE (16 lines side by side); those of memory/combine.clh
 * work      x: inner by chunk_x; y: outer by chunk_y; a work-item runs along whole lines
 * numerics  in f32 in the order of the line, flushed (and rounded) where stored, not on the way
 * fallback  none: this is the only one
 */
#include "memory/combine.clh"
#define VPU_WIDTH 1
#include "lib/vpu.clh"
#include "memory/cumulative_strip.clh"
#ifdef CUMULATIVE_WIDE
#define VPU_WIDTH 16
#include "lib/vpu.clh"
#include "memory/cumulative_strip.clh"
#endif

__kernel void cumulative(TP_TENSOR(MEMORY_ELEMENT, src), TP_TENSOR(MEMORY_ELEMENT, dst), const int n,
                         const int inner, const int outer, const int is_exclusive,
                         const int is_reverse, int grid_z, int chunk_x, int chunk_y)
{
    const uint core = TP_CORE(grid_z);
    const int y0 = (int)get_global_id(1) * chunk_y, y1 = min(y0 + chunk_y, outer);
    const int x0 = (int)get_global_id(0) * chunk_x, x1 = min(x0 + chunk_x, inner);
    const long step = is_reverse ? -(long)inner : (long)inner;
    for (int y = y0; y < y1; y++) {
        const ulong first = (ulong)y * (ulong)n + (is_reverse ? (ulong)(n - 1) : 0);
        const __global MEMORY_ELEMENT *from = TP_AT(src, core) + first * (ulong)inner;
        __global MEMORY_ELEMENT *to = TP_AT(dst, core) + first * (ulong)inner;
        int x = x0;
#ifdef CUMULATIVE_WIDE
        for (; x + 16 <= x1; x += 16)
            tp_cumulative_strip_v16(from + x, to + x, n, step, is_exclusive);
#endif
        for (; x < x1; x++)
            tp_cumulative_strip(from + x, to + x, n, step, is_exclusive);
    }
}
