/* SPDX-License-Identifier: Apache-2.0
 * mxu_matrix: C[z][m][n] = epilogue(sum over k of A[z][m][k] * B[z][k][n]) on matrix units, for fast math
 * computes  every kind of product with bf16 operands and one pass; a work-group stages slices of A and B in
 *           local memory, rounded and in pairs along k, and its warps (sub-groups, wavefronts) multiply
 *           fragments of them
 * layout    A and B as they are (operands.clh); local memory holds [TILE_M][SLICE_PITCH] words of A, then
 *           [TILE_N][SLICE_PITCH] of B, a word is k and k + 1 of one row or column; then what matrix_unit.clh wants
 *           for each warp
 *
 *                      WARPS_N * WARP_N * FRAGMENT_N columns
 *                    +--------+--------+
 *           WARPS_M  | warp 0 | warp 1 |   a warp: WARP_M x WARP_N fragments of FRAGMENT_M x FRAGMENT_N
 *           * WARP_M +--------+--------+   sums, in registers
 *   * FRAGMENT_M     | warp 2 | warp 3 |
 *           rows     +--------+--------+
 *
 * requires  the matrix unit, unless it is emulated; work-groups of LANES * WARPS_M * WARPS_N
 * knobs     MATRIX_UNIT, MATRIX_UNIT_IS_EMULATED   which: matrix_unit.clh
 *           WARPS_M WARPS_N   warps of a group
 *           WARP_M WARP_N     fragments of a warp
 *           TILE_K            depth of a slice; a multiple of 16
 *           A_RUNS_ALONG_M, B_RUNS_ALONG_N   which way neighbouring work-items walk when they load
 * work      local = LANES * WARPS_M * WARPS_N; groups = ceil(n / TILE_N), ceil(m / TILE_M), units * batch * cores
 * numerics  the unit's own order and rounding of sums, so outside the contract: fast math only, checked to a
 *           tolerance that grows with k; k past the end is 0
 * fallback  mxu_local
 */
#ifndef WARPS_M
#define WARPS_M 2
#endif
#ifndef WARPS_N
#define WARPS_N 2
#endif
#ifndef TILE_K
#define TILE_K 32
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
#include "mxu/matrix_unit.clh"
/* 32 x 32 sums of a warp */
#ifndef WARP_M
#define WARP_M (32 / FRAGMENT_M)
#endif
#ifndef WARP_N
#define WARP_N (32 / FRAGMENT_N)
#endif

#define TILE_M (WARPS_M * WARP_M * FRAGMENT_M)
#define TILE_N (WARPS_N * WARP_N * FRAGMENT_N)
#define THREADS (WARPS_M * WARPS_N * LANES)
#define PAIRS (TILE_K / 2)
#if !MATRIX_UNIT_IS_EMULATED
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif
/* Words from row to row: 4 more than a multiple of 8, so that a fragment's 32 words lie in 32 banks. */
#define SLICE_PITCH (PAIRS + 4)

/* The upper half of an f32 that is a bf16 already. */
static inline uint matrix_pair(float low, float high)
{
    return as_uint(low) >> 16 | (as_uint(high) & 0xffff0000u);
}

static inline uint a_pair(MXU_GEO_PARAM global const mxu_a_t *a, uint m, uint k, uint size_m, uint k_end,
                          ulong stride_outer, ulong stride_inner)
{
    if (m >= size_m || k >= k_end) return 0;
    const float low = mxu_a_value(MXU_GEO a, m, k, stride_outer, stride_inner, 0);
    const float high =
        k + 1 < k_end ? mxu_a_value(MXU_GEO a, m, k + 1, stride_outer, stride_inner, 0) : 0.0f;
    return matrix_pair(low, high);
}

static inline uint b_pair(MXU_GEO_PARAM global const mxu_b_t *b, uint k, uint n, uint k_end, uint size_n,
                          ulong stride_outer, ulong stride_inner)
{
    if (n >= size_n || k >= k_end) return 0;
    const float low = mxu_b_value(MXU_GEO b, k, n, stride_outer, stride_inner, 0);
    const float high =
        k + 1 < k_end ? mxu_b_value(MXU_GEO b, k + 1, n, stride_outer, stride_inner, 0) : 0.0f;
    return matrix_pair(low, high);
}

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) UNIT_KERNEL void
mxu_matrix(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b), TP_EPILOGUE_PARAMS, MXU_PARAMS,
           local uint *slices)
{
    local uint *a_slice = slices, *b_slice = slices + TILE_M * SLICE_PITCH;
    const uint thread = get_local_id(0), warp = matrix_warp(), lane = matrix_lane();
    local uint *own = b_slice + TILE_N * SLICE_PITCH + warp * MATRIX_UNIT_WORDS;
    const uint n0 = get_group_id(0) * TILE_N, m0 = get_group_id(1) * TILE_M;
    const uint warp_m = warp / WARPS_N * WARP_M * FRAGMENT_M, warp_n = warp % WARPS_N * WARP_N * FRAGMENT_N;
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    global const mxu_a_t *a_ptr = TP_AT(a, place.core) + place.entry * a_stride_batch;
    global const mxu_b_t *b_ptr = TP_AT(b, place.core) + place.entry * b_stride_batch;

    float sums[WARP_M][WARP_N][UNIT_SUMS]; /* in registers: all loops over it are unrolled */
    UNROLL
    for (uint i = 0; i < WARP_M; i++)
        UNROLL
        for (uint j = 0; j < WARP_N; j++)
            UNROLL
            for (uint e = 0; e < UNIT_SUMS; e++)
                sums[i][j][e] = 0.0f;

    for (uint slice_k = place.k_begin; slice_k < place.k_end; slice_k += TILE_K) {
        for (uint at = thread; at < TILE_M * PAIRS; at += THREADS) {
#if A_RUNS_ALONG_M
            const uint i = at % TILE_M, pair = at / TILE_M;
#else
            const uint pair = at % PAIRS, i = at / PAIRS;
#endif
            a_slice[i * SLICE_PITCH + pair] =
                a_pair(MXU_GEO a_ptr, m0 + i, slice_k + 2 * pair, size_m, place.k_end, a_stride_outer,
                       a_stride_inner);
        }
        for (uint at = thread; at < TILE_N * PAIRS; at += THREADS) {
#if B_RUNS_ALONG_N
            const uint j = at % TILE_N, pair = at / TILE_N;
#else
            const uint pair = at % PAIRS, j = at / PAIRS;
#endif
            b_slice[j * SLICE_PITCH + pair] =
                b_pair(MXU_GEO b_ptr, slice_k + 2 * pair, n0 + j, place.k_end, size_n, b_stride_outer,
                       b_stride_inner);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL
        for (uint pair = 0; pair < PAIRS; pair += FRAGMENT_K / 2) {
            uint b_fragment[WARP_N][UNIT_B_WORDS];
            UNROLL
            for (uint j = 0; j < WARP_N; j++) {
                local const uint *columns = b_slice + (warp_n + j * FRAGMENT_N) * SLICE_PITCH + pair;
                UNROLL
                for (uint w = 0; w < UNIT_B_WORDS; w++)
                    b_fragment[j][w] = columns[UNIT_B_COLUMN(lane, w) * SLICE_PITCH + UNIT_B_K(lane, w) / 2];
            }
            UNROLL
            for (uint i = 0; i < WARP_M; i++) {
                local const uint *rows = a_slice + (warp_m + i * FRAGMENT_M) * SLICE_PITCH + pair;
                uint a_fragment[UNIT_A_WORDS];
                UNROLL
                for (uint w = 0; w < UNIT_A_WORDS; w++)
                    a_fragment[w] = rows[UNIT_A_ROW(lane, w) * SLICE_PITCH + UNIT_A_K(lane, w) / 2];
                UNROLL
                for (uint j = 0; j < WARP_N; j++)
                    matrix_multiply(sums[i][j], a_fragment, b_fragment[j], own);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    UNROLL
    for (uint i = 0; i < WARP_M; i++)
        UNROLL
        for (uint j = 0; j < WARP_N; j++)
            UNROLL
            for (uint e = 0; e < UNIT_SUMS; e++) {
                const uint m = m0 + warp_m + i * FRAGMENT_M + UNIT_ROW(lane, e);
                const uint n = n0 + warp_n + j * FRAGMENT_N + UNIT_COLUMN(lane, e);
                if (m < size_m && n < size_n)
                    tp_epilogue_1(TP_EPILOGUE_PASS, place.core, place.z, m, n, MXU_FINISH(sums[i][j][e]));
            }
}
