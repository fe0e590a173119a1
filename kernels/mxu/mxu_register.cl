/* SPDX-License-Identifier: Apache-2.0
 * mxu_register: C[z][m][n] = epilogue(sum over k of A[z][m][k] * B[z][k][n])
 * computes  every kind of product, one block of k and one precision pass per unit (operands.clh)
 * layout    B packed by mxu_pack_b: [part][entry][tile][k][TILE_N], f32, rounded, zeros past N.
 *           With B_IS_PACKED 0 B as it is, running along n, N a multiple of TILE_N.
 *           A as it is: a work-group packs the panel that it needs into local memory (panel.clh),
 *           so patches of a convolution are never stored whole. With PANEL_IS_PACKED A is the
 *           output of mxu_pack_a: [unit * entry][panel][...].
 *
 *                       n: tiles of TILE_N
 *                      +----+----+----+----+     a work-group does one panel and its share of
 *            k         |    |    |    |    | k   the tiles, one after the other: the panel
 *          +-------+   |    |    |    |    |     stays in the cache, B streams through it
 *   TILE_M | panel |   +----+----+----+----+
 *          +-------+   | TILE_M x TILE_N sums in registers
 *
 * requires  nothing, but pays where vectors are explicit: CPU devices; local memory for a panel
 * knobs     TILE_M           rows of the register tile, 1 to 16
 *           VECTOR_WIDTH     4, 8, 16: floats per vector register
 *           TILE_VECTORS     vectors per row; TILE_N = TILE_VECTORS * VECTOR_WIDTH, a multiple of
 *                            16
 *           PANEL_BY_ROW     panel layout, see panel.clh
 *           PANEL_IS_PACKED  1: A comes packed
 *           B_IS_PACKED      0: B comes as it is (VECTOR_WIDTH 8 or 16), for few panels
 * work      one work-item per group; groups = panels, shares of the tiles of n, units * batch *
 *           cores
 * numerics  every output: chunk sums in one register each, from +0 in rising k; chunks added in
 *           rising order
 * fallback  mxu_direct for tiny sizes, mxu_reference
 */
#ifndef TILE_M
#define TILE_M 8
#endif
#ifndef VECTOR_WIDTH
#define VECTOR_WIDTH 16
#endif
#ifndef TILE_VECTORS
#define TILE_VECTORS 2
#endif
#ifndef PANEL_IS_PACKED
#define PANEL_IS_PACKED 0
#endif
#ifndef B_IS_PACKED
#define B_IS_PACKED 1
#endif
#include "mxu/operands.clh"
#if PANEL_IS_PACKED
#define PANEL_SPACE global const
#include "mxu/panel.clh"
typedef float mxu_source_t;
#else
#include "mxu/panel_pack.clh"
typedef mxu_a_t mxu_source_t;
#endif
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif
#include "mxu/register_tile.clh"

#if B_IS_PACKED
typedef float mxu_b_source_t;
#else
typedef mxu_b_t mxu_b_source_t;
#if VECTOR_WIDTH == 8
#define MXU_WIDTH 8
#include "mxu/convert.clh"
#endif
#endif

/* Vector i of the current row of B. */
#if !B_IS_PACKED && VECTOR_WIDTH == 16
#define B_VECTOR(i) mxu_load_b_v16(b_ptr + 16 * (i), b_part)
#elif !B_IS_PACKED
#define B_VECTOR(i) mxu_load_b_v8(b_ptr + 8 * (i), b_part)
#elif VECTOR_WIDTH == 16
#define B_VECTOR(i) vload16(i, b_ptr)
#elif VECTOR_WIDTH == 8
#define B_VECTOR(i) vload8(i, b_ptr)
#else
#define B_VECTOR(i) vload4(i, b_ptr)
#endif

/* A step of k: B's vectors, and what a row does with them. */
#if TILE_VECTORS == 1
#define LOAD_B const mxu_vector b0 = B_VECTOR(0);
#define STEP(r) sum_##r##_0 = MXU_FMA((mxu_vector)(a_ptr[r * PANEL_ROW_STEP]), b0, sum_##r##_0);
#elif TILE_VECTORS == 2
#define LOAD_B const mxu_vector b0 = B_VECTOR(0), b1 = B_VECTOR(1);
#define STEP(r)                                                                                    \
    {                                                                                              \
        const mxu_vector a_value = (mxu_vector)(a_ptr[r * PANEL_ROW_STEP]);                        \
        sum_##r##_0 = MXU_FMA(a_value, b0, sum_##r##_0);                                           \
        sum_##r##_1 = MXU_FMA(a_value, b1, sum_##r##_1);                                           \
    }
#else
#define LOAD_B                                                                                     \
    const mxu_vector b0 = B_VECTOR(0), b1 = B_VECTOR(1), b2 = B_VECTOR(2), b3 = B_VECTOR(3);
#define STEP(r)                                                                                    \
    {                                                                                              \
        const mxu_vector a_value = (mxu_vector)(a_ptr[r * PANEL_ROW_STEP]);                        \
        sum_##r##_0 = MXU_FMA(a_value, b0, sum_##r##_0);                                           \
        sum_##r##_1 = MXU_FMA(a_value, b1, sum_##r##_1);                                           \
        sum_##r##_2 = MXU_FMA(a_value, b2, sum_##r##_2);                                           \
        sum_##r##_3 = MXU_FMA(a_value, b3, sum_##r##_3);                                           \
    }
#endif

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
mxu_register(TP_TENSOR(const mxu_source_t, a), TP_TENSOR(const mxu_b_source_t, b),
             TP_EPILOGUE_PARAMS, MXU_PARAMS, local float *scratch)
{
    const uint panel_index = get_group_id(0), m0 = panel_index * TILE_M;
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    const uint chunks = (place.k_end - place.k_begin + MXU_CHUNK - 1) / MXU_CHUNK;

#if PANEL_IS_PACKED
    /* all blocks have the place of the longest */
    const uint panel_chunks = (min(size_k, MXU_BLOCK) + MXU_CHUNK - 1) / MXU_CHUNK;
    mxu_panel panel = TP_AT(a, place.core) + ((ulong)place.z * get_num_groups(0) + panel_index) *
                                                 panel_chunks * PANEL_CHUNK_STEP;
#else
    mxu_panel panel = scratch;
    mxu_pack_panel(MXU_GEO panel, TP_AT(a, place.core) + place.entry * a_stride_batch, m0, size_m,
                   place.k_begin, place.k_end, a_stride_outer, a_stride_inner,
                   MXU_A_PART(place.pass));
#endif

    const uint b_part = MXU_B_PART(place.pass);
    const uint tiles = (size_n + TILE_N - 1) / TILE_N;
    const uint share = (tiles + get_num_groups(1) - 1) / get_num_groups(1);
    const uint first_tile = get_group_id(1) * share, last_tile = min(tiles, first_tile + share);
    for (uint tile = first_tile; tile < last_tile; tile++) {
#if B_IS_PACKED
        const ulong slice = ((ulong)b_part * batch + place.entry) * tiles + tile, b_step = TILE_N;
        global const float *b_ptr =
            TP_AT(b, place.core) + (slice * size_k + place.k_begin) * TILE_N;
#else
        const ulong b_step = b_stride_inner;
        global const mxu_b_t *b_ptr = TP_AT(b, place.core) + place.entry * b_stride_batch +
                                      place.k_begin * b_step + tile * TILE_N;
#endif
        mxu_vector sums[TILE_M * TILE_VECTORS];
        for (uint chunk = 0; chunk < chunks; chunk++) {
            mxu_panel a_ptr = panel + chunk * PANEL_CHUNK_STEP;
            const uint steps = min(MXU_CHUNK, place.k_end - place.k_begin - chunk * MXU_CHUNK);
            MXU_ROWS(CLEAR)
            for (uint i = 0; i < steps; i++) {
                LOAD_B
                MXU_ROWS(STEP)
                a_ptr += PANEL_K_STEP;
                b_ptr += b_step;
            }
            if (chunk == 0) {
                MXU_ROWS(STORE_FIRST)
            } else {
                MXU_ROWS(ADD)
            }
        }
        mxu_finish_tile(TP_EPILOGUE_PASS, sums, place, m0, tile * TILE_N, size_m, size_n);
    }
}
