/* SPDX-License-Identifier: Apache-2.0
 * mxu_pack_b, mxu_pack_a: lay operands out for mxu_register
 * computes  packed[part][entry][tile][k][TILE_N] = part `part` of B[entry][k][tile * TILE_N +
 *           column]; packed A: panels as in panel.clh, [unit * entry][panel][...]
 * layout    B anything with strides, or the filter of an input gradient; columns past N become +0
 * requires  OpenCL 1.2
 * knobs     TILE_N, TILE_M, PANEL_BY_ROW as in mxu_register
 *           B_RUNS_ALONG_N   1: stride 1 from n to n+1: copied by vectors
 *           B_RUNS_ALONG_K   1: stride 1 from k to k+1 (for an input gradient: CONV_OUT_C % 16 ==
 *                            0): transposed by blocks of 16 x 16; neither: element by element
 * work      pack_b: one work-item per tile, chunk of k, part * entry * core;
 *           pack_a: one per panel, 1, unit * entry * core
 * numerics  exact copies, or the one rounding that the precision asks for
 * fallback  none
 */
#ifndef TILE_M
#define TILE_M 8
#endif
#ifndef TILE_N
#define TILE_N 32
#endif
#ifndef B_RUNS_ALONG_N
#define B_RUNS_ALONG_N 1
#endif
#ifndef B_RUNS_ALONG_K
#define B_RUNS_ALONG_K 0
#endif
#define PANEL_SPACE global
#include "mxu/panel_pack.clh"
#include "mxu/load_transposed.clh"

/* Columns n0 .. n0+15 of rows k_begin .. k_end, element by element; those past N are +0. */
static inline void pack_block(MXU_GEO_PARAM global float *dst, global const mxu_b_t *b, uint n0, uint size_n,
                              uint k_begin, uint k_end, ulong stride_outer, ulong stride_inner,
                              uint part)
{
    for (uint k = k_begin; k < k_end; k++, dst += TILE_N)
        for (uint i = 0; i < 16; i++)
            dst[i] = n0 + i < size_n ? mxu_b_value(MXU_GEO b, k, n0 + i, stride_outer, stride_inner, part)
                                     : 0.0f;
}

#define STORE_ROW(i) vstore16(y##i, 0, dst + i * TILE_N);

/* The same for 16 columns that all exist. */
static inline void pack_full_block(MXU_GEO_PARAM global float *dst, global const mxu_b_t *b, uint n0,
                                   uint k_begin, uint k_end, ulong stride_outer, ulong stride_inner,
                                   uint part)
{
    uint k = k_begin;
#if B_RUNS_ALONG_N
    for (; k < k_end; k++, dst += TILE_N)
        vstore16(mxu_load_b_v16(b + k * stride_inner + n0, part), 0, dst);
#elif B_RUNS_ALONG_K
    for (; k + 16 <= k_end; k += 16, dst += 16 * TILE_N) {
        LOAD_TRANSPOSED_B_16(y)
        ALL_16(STORE_ROW)
    }
#endif
    pack_block(MXU_GEO dst, b, n0, n0 + 16, k, k_end, stride_outer, stride_inner, part);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
mxu_pack_b(TP_TENSOR(const mxu_b_t, b), TP_TENSOR(float, packed), uint size_n, uint size_k,
           uint batch, uint grid_z, ulong stride_batch, ulong stride_outer, ulong stride_inner MXU_GEO_TAIL)
{
    const ulong core = get_global_id(2) / grid_z;
    const uint z = get_global_id(2) % grid_z, part = z / batch, entry = z % batch;
    const uint tile = get_group_id(0), k_begin = get_group_id(1) * MXU_CHUNK;
    const uint k_end = min(size_k, k_begin + MXU_CHUNK);
    global const mxu_b_t *src = TP_AT(b, core) + entry * stride_batch;
    global float *dst =
        TP_AT(packed, core) + (((ulong)z * get_num_groups(0) + tile) * size_k + k_begin) * TILE_N;
    for (uint column = 0; column < TILE_N; column += 16) {
        const uint n0 = tile * TILE_N + column;
        if (n0 + 16 <= size_n)
            pack_full_block(MXU_GEO dst + column, src, n0, k_begin, k_end, stride_outer, stride_inner,
                            part);
        else
            pack_block(MXU_GEO dst + column, src, n0, size_n, k_begin, k_end, stride_outer, stride_inner,
                       part);
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
mxu_pack_a(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(float, packed), uint size_m, uint size_k,
           uint batch, uint grid_z, ulong stride_batch, ulong stride_outer, ulong stride_inner MXU_GEO_TAIL)
{
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    const uint panel_index = get_group_id(0);
    const uint panel_chunks = (min(size_k, MXU_BLOCK) + MXU_CHUNK - 1) / MXU_CHUNK;
    mxu_panel panel =
        TP_AT(packed, place.core) +
        ((ulong)place.z * get_num_groups(0) + panel_index) * panel_chunks * PANEL_CHUNK_STEP;
    mxu_pack_panel(MXU_GEO panel, TP_AT(a, place.core) + place.entry * stride_batch, panel_index * TILE_M,
                   size_m, place.k_begin, place.k_end, stride_outer, stride_inner,
                   MXU_A_PART(place.pass));
}
