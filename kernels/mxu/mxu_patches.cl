/* SPDX-License-Identifier: Apache-2.0
 * mxu_gather_a, mxu_gather_b: write a convolution's operands as dense f32 matrices, for library
 * products
 * computes  gather_a: out[m][k] = A(m, k), padding as +0; gather_b: out[k][n] = B(k, n)
 * layout    out row-major, f32
 * requires  OpenCL 1.2
 * knobs     none
 * work      global = row length (k or n), rows (m or k), cores; local is the driver's choice
 * numerics  copies (the f32 policy rounds nothing)
 * fallback  none
 */
#include "mxu/operands.clh"

kernel void mxu_gather_a(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(float, out), uint size_m,
                         uint size_k MXU_GEO_TAIL)
{
    const uint k = get_global_id(0), m = get_global_id(1);
    if (k >= size_k || m >= size_m) return;
    const ulong core = get_global_id(2);
    TP_AT(out, core)[(ulong)m * size_k + k] = mxu_a_value(MXU_GEO TP_AT(a, core), m, k, 0, 0, 0);
}

kernel void mxu_gather_b(TP_TENSOR(const mxu_b_t, b), TP_TENSOR(float, out), uint size_k,
                         uint size_n, ulong stride_outer, ulong stride_inner MXU_GEO_TAIL)
{
    const uint n = get_global_id(0), k = get_global_id(1);
    if (n >= size_n || k >= size_k) return;
    const ulong core = get_global_id(2);
    TP_AT(out, core)
    [(ulong)k * size_n + n] = mxu_b_value(MXU_GEO TP_AT(b, core), k, n, stride_outer, stride_inner, 0);
}
