/* SPDX-License-Identifier: Apache-2.0
 * reduce_window_grad: gradient of an add window
 * computes  d_x[i] = sum of d_y[o] over the windows o that cover i, from +0, in rising row-major order
 * layout    d_y [A][out_h][M][out_w][C], d_x [A][in_h][M][in_w][C], row-major; see window.clh
 * requires  nothing
 * knobs     WINDOW_BF16, WINDOW_WIDE (16 columns side by side)
 * work      x: C by chunk_x; y: in_w by chunk_y; z: A * in_h * M
 * numerics  sums in f32 in rising order, flushed (and rounded) once at the end
 * fallback  none: this is the only one
 */
#include "window/window.clh"
#define VPU_WIDTH 1
#include "lib/vpu.clh"
#include "window/reduce_window_grad_strip.clh"
#ifdef WINDOW_WIDE
#define VPU_WIDTH 16
#include "lib/vpu.clh"
#include "window/reduce_window_grad_strip.clh"
#endif
#define strip_1 tp_window_strip
#define strip_16 tp_window_strip_v16

__kernel void reduce_window_grad(TP_TENSOR(WINDOW_TYPE, d_out), TP_TENSOR(WINDOW_TYPE, d_src), WINDOW_PARAMS,
                                 int grid_z, int chunk_x, int chunk_y)
{
    WINDOW_BEGIN(in_w, in_h)
    WINDOW_STRIPS(strip, TP_AT(d_out, core), TP_AT(d_src, core), a, h, mm, y, x, WINDOW_PASS)
}
