/* SPDX-License-Identifier: Apache-2.0
 * mxu_pack_pairs: lays B out for mxu_pairs
 * computes  packed[part][entry][tile][pair][TILE_N] = rows 2 * pair (upper half) and 2 * pair + 1
 *           of part `part` of B[entry][.][tile * TILE_N + column], and behind all words the least
 *           magnitude of each [part][entry][tile][chunk] (pairs.clh)
 * layout    B as for mxu_pack_b; columns past N and a row past K become +0
 * requires  OpenCL 1.2
 * knobs     TILE_N, B_RUNS_ALONG_N, B_RUNS_ALONG_K as in mxu_pack_b
 *           MARKS_NOT_FINITE  1: chunks with infinities or NaN have MXU_LEAST_NOT_FINITE
 * work      one work-item per tile, chunk of k, part * entry * core
 * numerics  exact copies, or the one rounding that the precision asks for
 * fallback  none
 */
#ifndef TILE_N
#define TILE_N 32
#endif
#ifndef B_RUNS_ALONG_N
#define B_RUNS_ALONG_N 1
#endif
#ifndef B_RUNS_ALONG_K
#define B_RUNS_ALONG_K 0
#endif
#ifndef MARKS_NOT_FINITE
#define MARKS_NOT_FINITE 0
#endif
#include "mxu/operands.clh"
#include "mxu/pairs.clh"
#include "mxu/load_transposed.clh"

/* Two rows of 16 columns. */
static inline ushort16 put_pair(global uint *dst, float16 first, float16 second, ushort16 least)
{
    const uint16 words = MXU_PAIR_16(first, second);
    vstore16(words, 0, dst);
#if MARKS_NOT_FINITE
    return mxu_least_of_finite(mxu_least_of_finite(least, words.lo), words.hi);
#else
    least = MXU_LEAST_OF(least, words.lo);
    return MXU_LEAST_OF(least, words.hi);
#endif
}

/* Columns n0 .. n0+15 of rows k .. k_end, element by element; those past N are +0. */
static inline ushort16 pack_block(MXU_GEO_PARAM global uint *dst, global const mxu_b_t *b, uint n0, uint size_n,
                                uint k, uint k_end, ulong stride_outer, ulong stride_inner,
                                uint part, ushort16 least)
{
    for (; k < k_end; k += 2, dst += TILE_N) {
        float rows[2][16];
        for (uint row = 0; row < 2; row++)
            for (uint i = 0; i < 16; i++)
                rows[row][i] =
                    k + row < k_end && n0 + i < size_n
                        ? mxu_b_value(MXU_GEO b, k + row, n0 + i, stride_outer, stride_inner, part)
                        : 0.0f;
        least = put_pair(dst, vload16(0, rows[0]), vload16(0, rows[1]), least);
    }
    return least;
}

#define PUT_PAIR(i, j, pair) least = put_pair(dst + pair * TILE_N, y##i, y##j, least);

/* The same for 16 columns that all exist. */
static inline ushort16 pack_full_block(MXU_GEO_PARAM global uint *dst, global const mxu_b_t *b, uint n0, uint k,
                                     uint k_end, ulong stride_outer, ulong stride_inner, uint part,
                                     ushort16 least)
{
#if B_RUNS_ALONG_N
    for (; k + 2 <= k_end; k += 2, dst += TILE_N)
        least = put_pair(dst, mxu_load_b_v16(b + k * stride_inner + n0, part),
                         mxu_load_b_v16(b + (k + 1) * stride_inner + n0, part), least);
#elif B_RUNS_ALONG_K
    for (; k + 16 <= k_end; k += 16, dst += 8 * TILE_N) {
        LOAD_TRANSPOSED_B_16(y)
        PUT_PAIR(0, 1, 0)
        PUT_PAIR(2, 3, 1)
        PUT_PAIR(4, 5, 2)
        PUT_PAIR(6, 7, 3)
        PUT_PAIR(8, 9, 4)
        PUT_PAIR(10, 11, 5)
        PUT_PAIR(12, 13, 6)
        PUT_PAIR(14, 15, 7)
    }
#endif
    return pack_block(MXU_GEO dst, b, n0, n0 + 16, k, k_end, stride_outer, stride_inner, part, least);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
mxu_pack_pairs(TP_TENSOR(const mxu_b_t, b), TP_TENSOR(uint, packed), uint size_n, uint size_k,
               uint batch, uint grid_z, ulong stride_batch, ulong stride_outer, ulong stride_inner MXU_GEO_TAIL)
{
    const ulong core = get_global_id(2) / grid_z;
    const uint z = get_global_id(2) % grid_z, part = z / batch, entry = z % batch;
    const uint tile = get_group_id(0), tiles = get_num_groups(0), slice = z * tiles + tile;
    const uint chunk = get_group_id(1), k_begin = chunk * MXU_CHUNK;
    const uint k_end = min(size_k, k_begin + MXU_CHUNK);
    global const mxu_b_t *src = TP_AT(b, core) + entry * stride_batch;
    global uint *words = TP_AT(packed, core);
    global uint *dst = words + mxu_pair_slice(slice, size_k) + (ulong)(k_begin / 2) * TILE_N;
    ushort16 least = MXU_LEAST_NONE;
    for (uint column = 0; column < TILE_N; column += 16) {
        const uint n0 = tile * TILE_N + column;
        if (n0 + 16 <= size_n)
            least = pack_full_block(MXU_GEO dst + column, src, n0, k_begin, k_end, stride_outer,
                                    stride_inner, part, least);
        else
            least = pack_block(MXU_GEO dst + column, src, n0, size_n, k_begin, k_end, stride_outer,
                               stride_inner, part, least);
    }
    words[mxu_pair_least(grid_z * tiles, slice, size_k) + chunk] = mxu_least_of_16(least);
}
