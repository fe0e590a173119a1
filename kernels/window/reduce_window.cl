/* SPDX-License-Identifier: Apache-2.0
 * reduce_window: y[o] = sum or maximum over the cells of window o of x
 * computes  from +0 (or -infinity), cells in rising row-major order; padding takes no part
 * layout    x [A][in_h][M][in_w][C], y [A][out_h][M][out_w][C], row-major; see window.clh
 * requires  nothing
 * knobs     WINDOW_MAX (else sum), WINDOW_BF16, WINDOW_WIDE (16 columns side by side)
 * work      x: C by chunk_x; y: out_w by chunk_y; z: A * out_h * M
 * numerics  sums in f32 in rising order, flushed (and rounded) once at the end
 * fallback  none: this is the only one
 */
#include "window/window.clh"
#define VPU_WIDTH 1
#include "lib/vpu.clh"
#include "window/reduce_window_strip.clh"
#ifdef WINDOW_WIDE
#define VPU_WIDTH 16
#include "lib/vpu.clh"
#include "window/reduce_window_strip.clh"
#endif
#define strip_1 tp_window_strip
#define strip_16 tp_window_strip_v16

__kernel void reduce_window(TP_TENSOR(WINDOW_TYPE, src), TP_TENSOR(WINDOW_TYPE, dst), WINDOW_PARAMS,
                            int grid_z, int chunk_x, int chunk_y)
{
    WINDOW_BEGIN(out_w, out_h)
    WINDOW_STRIPS(strip, TP_AT(src, core), TP_AT(dst, core), a, h, mm, y, x, WINDOW_PASS)
}
