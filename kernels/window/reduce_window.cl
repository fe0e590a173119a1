/* SPDX-License-Identifier: Apache-2.0
 * reduce_window: y[o] = sum or maximum over the cells of window o of x
 * computes  from +0 (or -infinity), cells in rising row-major order; padding takes no part
 * layout    x [A][in_h][M][in_w][C], y [A][out_h][M][out_w][C], row-major; see window.clh
 * requires  nothing
 * knobs     WINDOW_MAX (else sum), WINDOW_BF16, WINDOW_STRIP: columns that a work-item keeps at a time
 * work      x: C by chunk_x; y: out_w by chunk_y; z: A * out_h * M
 * numerics  sums in f32 in rising order, flushed (and rounded) once at the end
 * fallback  none: this is the only one
 */
#include "window/window.clh"

__kernel void reduce_window(TP_TENSOR(WINDOW_TYPE, src), TP_TENSOR(WINDOW_TYPE, dst), WINDOW_PARAMS)
{
    WINDOW_BEGIN(out_w, out_h)
    const __global WINDOW_TYPE *from = TP_AT(src, core);
    __global WINDOW_TYPE *to = TP_AT(dst, core) + WINDOW_AT(a, h, mm, y, out_h, out_w) + x0;
    const int h0 = h * stride_h - pad_h, w0 = y * stride_w - pad_w;
    float sum[WINDOW_STRIP];
    for (int i = 0; i < count; i++) {
#ifdef WINDOW_MAX
        sum[i] = -INFINITY;
#else
        sum[i] = 0.0f;
#endif
    }
    for (int cell_h = max(h0, 0); cell_h < min(h0 + window_h, in_h); cell_h++)
        for (int cell_w = max(w0, 0); cell_w < min(w0 + window_w, in_w); cell_w++) {
            const __global WINDOW_TYPE *cell = from + WINDOW_AT(a, cell_h, mm, cell_w, in_h, in_w) + x0;
            VPU_LOOP for (int i = 0; i < count; i++) {
#ifdef WINDOW_MAX
                sum[i] = EM(vpu_max)(sum[i], WINDOW_LOAD(cell, i));
#else
                sum[i] = sum[i] + WINDOW_LOAD(cell, i);
#endif
            }
        }
    VPU_LOOP for (int i = 0; i < count; i++)
        WINDOW_STORE(to, i, sum[i]);
    WINDOW_END
}
