/* SPDX-License-Identifier: Apache-2.0
 * select_and_scatter: gradient of a max window
 * computes  d_x[i] = sum of d_y[o] over the windows o whose first largest cell of x is i (NaN is larger
 *           than any number, +0 than -0), from +0, windows in rising row-major order
 * layout    x, d_x [A][in_h][M][in_w][C], d_y [A][out_h][M][out_w][C], row-major; see window.clh
 * requires  nothing
 * knobs     WINDOW_BF16 (x, d_x), WINDOW_GRADIENT_BF16 (d_y), WINDOW_STRIP
 * work      x: C by chunk_x; y: in_w by chunk_y; z: A * in_h * M. Each element looks at the windows that
 *           cover it, so nothing is written twice
 * numerics  sums in f32 in rising order, flushed (and rounded) once at the end
 * fallback  none: this is the only one
 */
#include "window/window.clh"

/* Orders floats as ints: -0 below +0, NaN above all. */
static inline int window_key(float x)
{
    const int bits = as_int(x);
    return x != x ? 0x7fffffff : bits ^ ((bits >> 31) & 0x7fffffff);
}

__kernel void select_and_scatter(TP_TENSOR(WINDOW_TYPE, src), TP_TENSOR(WINDOW_GRADIENT_TYPE, d_out),
                                 TP_TENSOR(WINDOW_TYPE, d_src), WINDOW_PARAMS)
{
    WINDOW_BEGIN(in_w, in_h)
    const __global WINDOW_TYPE *from = TP_AT(src, core);
    const __global WINDOW_GRADIENT_TYPE *gradient = TP_AT(d_out, core);
    __global WINDOW_TYPE *to = TP_AT(d_src, core) + WINDOW_AT(a, h, mm, y, in_h, in_w) + x0;
    float sum[WINDOW_STRIP];
    for (int i = 0; i < count; i++)
        sum[i] = 0.0f;
    /* Windows that cover (h, y): o * stride <= position + pad < o * stride + window. */
    const int h_end = min((h + pad_h) / stride_h, out_h - 1);
    const int w_end = min((y + pad_w) / stride_w, out_w - 1);
    const int h_start = max(h + pad_h - window_h + stride_h, 0) / stride_h;
    const int w_start = max(y + pad_w - window_w + stride_w, 0) / stride_w;
    for (int oh = h_start; oh <= h_end; oh++)
        for (int ow = w_start; ow <= w_end; ow++) {
            const int h0 = oh * stride_h - pad_h, w0 = ow * stride_w - pad_w;
            int best[WINDOW_STRIP], at[WINDOW_STRIP];
            for (int i = 0; i < count; i++) {
                best[i] = (-2147483647 - 1);
                at[i] = -1;
            }
            for (int cell_h = max(h0, 0); cell_h < min(h0 + window_h, in_h); cell_h++)
                for (int cell_w = max(w0, 0); cell_w < min(w0 + window_w, in_w); cell_w++) {
                    const __global WINDOW_TYPE *cell =
                        from + WINDOW_AT(a, cell_h, mm, cell_w, in_h, in_w) + x0;
                    const int place = cell_h * in_w + cell_w;
                    VPU_LOOP for (int i = 0; i < count; i++) {
                        const int key = window_key(WINDOW_LOAD(cell, i));
                        at[i] = key > best[i] ? place : at[i];
                        best[i] = max(best[i], key);
                    }
                }
            const __global WINDOW_GRADIENT_TYPE *d = gradient + WINDOW_AT(a, oh, mm, ow, out_h, out_w) + x0;
            VPU_LOOP for (int i = 0; i < count; i++)
                sum[i] = at[i] == h * in_w + y ? sum[i] + WINDOW_GRADIENT_LOAD(d, i) : sum[i];
        }
    VPU_LOOP for (int i = 0; i < count; i++)
        WINDOW_STORE(to, i, sum[i]);
    WINDOW_END
}
