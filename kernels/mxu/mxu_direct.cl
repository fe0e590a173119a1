/* SPDX-License-Identifier: Apache-2.0
 * mxu_direct: C[z][m][n] = epilogue(sum over k of A[z][m][k] * B[z][k][n])
 * computes  every kind of product without packing anything, edges guarded: for sizes where packing
 *           or a local tile does not pay
 * layout    A and B as they are (operands.clh)
 * requires  OpenCL 1.2
 * knobs     TILE_M    rows per work-item, 1 to 16
 *           COLUMNS   columns per work-item: 16 on devices with explicit vectors, 1 on others
 *           B_RUNS_ALONG_N   1: stride 1 from n to n+1, full vectors are loaded at once
 * work      global = ceil(n / COLUMNS), ceil(m / TILE_M), units * batch * cores; local is the
 *           driver's choice
 * numerics  chunk sums from +0 in rising k, chunks added in rising order; units by mxu_combine
 * fallback  mxu_reference
 */
#ifndef TILE_M
#define TILE_M 4
#endif
#ifndef COLUMNS
#define COLUMNS 16
#endif
#ifndef B_RUNS_ALONG_N
#define B_RUNS_ALONG_N 1
#endif
#include "mxu/operands.clh"
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif
#include "mxu/direct_sums.clh"

#if COLUMNS == 16
/* Row k of B, columns n .. n+15; +0 past N. */
static inline mxu_vector load_b(MXU_GEO_PARAM global const mxu_b_t *b, uint k, uint n, uint size_n,
                                ulong stride_outer, ulong stride_inner, uint part)
{
#if B_RUNS_ALONG_N
    if (n + 16 <= size_n) return mxu_load_b_v16(b + k * stride_inner + n, part);
#endif
    float column[16];
    for (uint i = 0; i < 16; i++)
        column[i] =
            n + i < size_n ? mxu_b_value(MXU_GEO b, k, n + i, stride_outer, stride_inner, part) : 0.0f;
    return vload16(0, column);
}
#else
static inline mxu_vector load_b(MXU_GEO_PARAM global const mxu_b_t *b, uint k, uint n, uint size_n,
                                ulong stride_outer, ulong stride_inner, uint part)
{
    return mxu_b_value(MXU_GEO b, k, n, stride_outer, stride_inner, part);
}
#endif

/* Rows past M repeat the last one. */
#define BEGIN_BLOCK(r)                                                                             \
    mxu_vector block_##r = 0.0f;                                                                   \
    const uint m_##r = min(m0 + r, size_m - 1);
#define STEP(r)                                                                                    \
    chunk_##r = MXU_FMA(                                                                           \
        (mxu_vector)(mxu_a_value(MXU_GEO a_ptr, m_##r, k, a_stride_outer, a_stride_inner, a_part)), b_row, \
        chunk_##r);

kernel void mxu_direct(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b), TP_EPILOGUE_PARAMS,
                       MXU_PARAMS, local float *unused)
{
    const uint n = get_global_id(0) * COLUMNS, m0 = get_global_id(1) * TILE_M;
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    if (n >= size_n || m0 >= size_m) return;
    const uint a_part = MXU_A_PART(place.pass), b_part = MXU_B_PART(place.pass);
    global const mxu_a_t *a_ptr = TP_AT(a, place.core) + place.entry * a_stride_batch;
    global const mxu_b_t *b_ptr = TP_AT(b, place.core) + place.entry * b_stride_batch;
    MXU_ROWS(BEGIN_BLOCK)
    for (uint chunk_k = place.k_begin; chunk_k < place.k_end; chunk_k += MXU_CHUNK) {
        const uint chunk_end = min(place.k_end, chunk_k + MXU_CHUNK);
        MXU_ROWS(BEGIN_CHUNK)
        for (uint k = chunk_k; k < chunk_end; k++) {
            const mxu_vector b_row =
                load_b(MXU_GEO b_ptr, k, n, size_n, b_stride_outer, b_stride_inner, b_part);
            MXU_ROWS(STEP)
        }
        MXU_ROWS(END_CHUNK)
    }
    MXU_ROWS(FINISH)
}
