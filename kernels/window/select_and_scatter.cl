/* SPDX-License-Identifier: Apache-2.0
 * select_and_scatter: gradient of a max window
 * computes  d_x[i] = sum of d_y[o] over the windows o whose first largest cell of x is i (NaN is larger
 *           than any number, +0 than -0), from +0, windows in rising row-major order
 * layout    x, d_x [A][in_h][M][in_w][C], d_y [A][out_h][M][out_w][C], row-major; see window.clh
 * requires  WINDOW_APART: windows no larger than their strides
 * knobs     WINDOW_APART (a work-item per window, not per element), WINDOW_BF16 (x, d_x),
 *           WINDOW_GRADIENT_BF16 (d_y), WINDOW_WIDE (16 channels side by side), WINDOW_COLUMNS (cells of a line that
 *           are done together, each window's largest found once for them; 1 if WINDOW_APART)
 * work      x: C by chunk_x; y: `rows` by chunk_y; z: A * `height` * M; the cells of d_x, or (WINDOW_APART)
 *           enough windows to cover them. Nothing is written twice
 * numerics  sums in f32 in rising order, flushed (and rounded) once at the end
 * fallback  none: this is the only one
 */
#include "window/window.clh"
#define VPU_WIDTH 1
#include "lib/vpu.clh"
#include "window/select_and_scatter_strip.clh"
#ifdef WINDOW_WIDE
#define VPU_WIDTH 16
#include "lib/vpu.clh"
#include "window/select_and_scatter_strip.clh"
#endif
#define strip_1 tp_window_strip
#define strip_16 tp_window_strip_v16

__kernel void select_and_scatter(TP_TENSOR(WINDOW_TYPE, src), TP_TENSOR(WINDOW_GRADIENT_TYPE, d_out),
                                 TP_TENSOR(WINDOW_TYPE, d_src), WINDOW_PARAMS, int rows, int height,
                                 int grid_z, int chunk_x, int chunk_y)
{
    WINDOW_BEGIN(rows, height)
    WINDOW_STRIPS(strip, TP_AT(src, core), TP_AT(d_out, core), TP_AT(d_src, core), a, h, mm, y,
                  min(y + WINDOW_COLUMNS, y1), x, WINDOW_PASS)
}
