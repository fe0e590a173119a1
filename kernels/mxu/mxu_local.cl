/* SPDX-License-Identifier: Apache-2.0
 * mxu_local: C[z][m][n] = epilogue(sum over k of A[z][m][k] * B[z][k][n])
 * computes  every kind of product; a work-group stages slices of A and B in local memory, rounded
 *           on the way
 * layout    A and B as they are (operands.clh); local memory holds a TILE_K x TILE_M slice of A and
 *           a TILE_K x TILE_N slice of B, k outermost, each row one float longer than the tile so
 *           that work-items that write a column meet different banks
 *
 *                 +--------+ TILE_K   each work-item owns THREAD_M x THREAD_N outputs, spread
 *                 | B slice|          over the tile: rows i * THREADS_M + its row, columns
 *        +----+   +--------+          j * THREADS_N + its column, so that neighbours read
 *        | A  |   | TILE_M |          neighbouring floats
 *        | T  |   | x      |
 *        +----+   | TILE_N |
 *        TILE_K   +--------+
 *
 * requires  work-groups of THREADS_M * THREADS_N; local memory of TILE_K * (TILE_M + TILE_N + 2)
 *           floats
 * knobs     THREADS_M THREADS_N   work-items of a group
 *           THREAD_M THREAD_N     outputs per work-item; TILE_x = THREADS_x * THREAD_x
 *           TILE_K                depth of a slice; divides 128
 *           A_RUNS_ALONG_M, B_RUNS_ALONG_N   which way neighbouring work-items walk when they load
 * work      local = THREADS_N, THREADS_M; groups = ceil(n / TILE_N), ceil(m / TILE_M), units *
 *           batch * cores
 * numerics  chunk sums from +0 in rising k, chunks added in rising order; units by mxu_combine
 * fallback  mxu_direct for small sizes, mxu_reference
 */
#ifndef THREADS_M
#define THREADS_M 16
#endif
#ifndef THREADS_N
#define THREADS_N 16
#endif
#ifndef THREAD_M
#define THREAD_M 4
#endif
#ifndef THREAD_N
#define THREAD_N 4
#endif
#ifndef TILE_K
#define TILE_K 16
#endif
#ifndef A_RUNS_ALONG_M
#define A_RUNS_ALONG_M 0
#endif
#ifndef B_RUNS_ALONG_N
#define B_RUNS_ALONG_N 1
#endif
#include "mxu/operands.clh"
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif

#define TILE_M (THREADS_M * THREAD_M)
#define TILE_N (THREADS_N * THREAD_N)
#define THREADS (THREADS_M * THREADS_N)
#define A_PITCH (TILE_M + 1)
#define B_PITCH (TILE_N + 1)

kernel __attribute__((reqd_work_group_size(THREADS_N, THREADS_M, 1))) void
mxu_local(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b), TP_EPILOGUE_PARAMS, MXU_PARAMS,
          local float *scratch)
{
    local float *a_slice = scratch, *b_slice = scratch + TILE_K * A_PITCH;
    const uint column = get_local_id(0), row = get_local_id(1), thread = row * THREADS_N + column;
    const uint n0 = get_group_id(0) * TILE_N, m0 = get_group_id(1) * TILE_M;
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    const uint a_part = MXU_A_PART(place.pass), b_part = MXU_B_PART(place.pass);
    global const mxu_a_t *a_ptr = TP_AT(a, place.core) + place.entry * a_stride_batch;
    global const mxu_b_t *b_ptr = TP_AT(b, place.core) + place.entry * b_stride_batch;

    float block[THREAD_M][THREAD_N], chunk[THREAD_M][THREAD_N];
    for (uint i = 0; i < THREAD_M; i++)
        for (uint j = 0; j < THREAD_N; j++)
            block[i][j] = chunk[i][j] = 0.0f;

    for (uint slice_k = place.k_begin; slice_k < place.k_end; slice_k += TILE_K) {
        for (uint at = thread; at < TILE_K * TILE_M; at += THREADS) {
#if A_RUNS_ALONG_M
            const uint i = at % TILE_M, k = at / TILE_M;
#else
            const uint k = at % TILE_K, i = at / TILE_K;
#endif
            a_slice[k * A_PITCH + i] = m0 + i < size_m && slice_k + k < place.k_end
                                           ? mxu_a_value(MXU_GEO a_ptr, m0 + i, slice_k + k, a_stride_outer,
                                                         a_stride_inner, a_part)
                                           : 0.0f;
        }
        for (uint at = thread; at < TILE_K * TILE_N; at += THREADS) {
#if B_RUNS_ALONG_N
            const uint j = at % TILE_N, k = at / TILE_N;
#else
            const uint k = at % TILE_K, j = at / TILE_K;
#endif
            b_slice[k * B_PITCH + j] = n0 + j < size_n && slice_k + k < place.k_end
                                           ? mxu_b_value(MXU_GEO b_ptr, slice_k + k, n0 + j, b_stride_outer,
                                                         b_stride_inner, b_part)
                                           : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        /* exactly the k that exist: a product 0 * 0 too many could turn a sum of -0 into +0 */
        const uint steps = min((uint)TILE_K, place.k_end - slice_k);
        for (uint k = 0; k < steps; k++)
            for (uint i = 0; i < THREAD_M; i++)
                for (uint j = 0; j < THREAD_N; j++)
                    chunk[i][j] =
                        MXU_FMA(a_slice[k * A_PITCH + i * THREADS_M + row],
                                b_slice[k * B_PITCH + j * THREADS_N + column], chunk[i][j]);
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint done = slice_k + steps - place.k_begin;
        if (done % MXU_CHUNK == 0 || slice_k + steps == place.k_end) {
            for (uint i = 0; i < THREAD_M; i++)
                for (uint j = 0; j < THREAD_N; j++) {
                    block[i][j] = done <= MXU_CHUNK ? chunk[i][j] : block[i][j] + chunk[i][j];
                    chunk[i][j] = 0.0f;
                }
        }
    }
    for (uint i = 0; i < THREAD_M; i++)
        for (uint j = 0; j < THREAD_N; j++) {
            const uint m = m0 + i * THREADS_M + row, n = n0 + j * THREADS_N + column;
            if (m < size_m && n < size_n)
                tp_epilogue_1(TP_EPILOGUE_PASS, place.core, place.z, m, n, MXU_FINISH(block[i][j]));
        }
}
