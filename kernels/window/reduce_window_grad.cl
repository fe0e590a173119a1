/* SPDX-License-Identifier: Apache-2.0
 * reduce_window_grad: gradient of an add window
 * computes  d_x[i] = sum of d_y[o] over the windows o that cover i, from +0, in rising row-major order
 * layout    d_y [A][out_h][M][out_w][C], d_x [A][in_h][M][in_w][C], row-major; see window.clh
 * requires  nothing
 * knobs     WINDOW_BF16, WINDOW_STRIP
 * work      x: C by chunk_x; y: in_w by chunk_y; z: A * in_h * M
 * numerics  sums in f32 in rising order, flushed (and rounded) once at the end
 * fallback  none: this is the only one
 */
#include "window/window.clh"

__kernel void reduce_window_grad(TP_TENSOR(WINDOW_TYPE, d_out), TP_TENSOR(WINDOW_TYPE, d_src),
                                 WINDOW_PARAMS)
{
    WINDOW_BEGIN(in_w, in_h)
    const __global WINDOW_TYPE *gradient = TP_AT(d_out, core);
    __global WINDOW_TYPE *to = TP_AT(d_src, core) + WINDOW_AT(a, h, mm, y, in_h, in_w) + x0;
    float sum[WINDOW_STRIP];
    for (int i = 0; i < count; i++)
        sum[i] = 0.0f;
    const int h_end = min((h + pad_h) / stride_h, out_h - 1);
    const int w_end = min((y + pad_w) / stride_w, out_w - 1);
    const int h_start = max(h + pad_h - window_h + stride_h, 0) / stride_h;
    const int w_start = max(y + pad_w - window_w + stride_w, 0) / stride_w;
    for (int oh = h_start; oh <= h_end; oh++)
        for (int ow = w_start; ow <= w_end; ow++) {
            const __global WINDOW_TYPE *d = gradient + WINDOW_AT(a, oh, mm, ow, out_h, out_w) + x0;
            VPU_LOOP for (int i = 0; i < count; i++)
                sum[i] = sum[i] + WINDOW_LOAD(d, i);
        }
    VPU_LOOP for (int i = 0; i < count; i++)
        WINDOW_STORE(to, i, sum[i]);
    WINDOW_END
}
