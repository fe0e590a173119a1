/* SPDX-License-Identifier: Apache-2.0
 * mxu_pairs: C[z][m][n] = epilogue(sum over k of A[z][m][k] * B[z][k][n])
 * computes  every kind of product but f32 ones, one block of k and one precision pass per unit
 *           (operands.clh), two steps of k per instruction
 * layout    as mxu_register with its panel in local memory, but both operands in pairs (pairs.clh):
 *           B packed by mxu_pack_pairs, the panel as it is filled
 * requires  a CPU device that is this host's processor, with AVX512_BF16; local memory for a panel
 * knobs     TILE_M, TILE_VECTORS, PANEL_BY_ROW as in mxu_register, with vectors of 16 floats
 *           PAIRS_ARE_STEPS  0: use the instruction; 1: plain steps, for devices that lack it
 * work      as mxu_register
 * numerics  as mxu_register; chunks whose operands might give subnormal sums are done by plain steps
 * fallback  mxu_register
 */
#ifndef TILE_M
#define TILE_M 8
#endif
#ifndef TILE_VECTORS
#define TILE_VECTORS 2
#endif
#ifndef PAIRS_ARE_STEPS
#define PAIRS_ARE_STEPS 1
#endif
#define VECTOR_WIDTH 16
#define PANEL_IN_PAIRS 1
#include "mxu/operands.clh"
#include "mxu/panel_pack.clh"
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif
#include "mxu/register_tile.clh"
#include "mxu/pairs.clh"

/* Two steps of k: B's words, and what a row does with them. The words stay in float registers,
 * which nothing looks into. */
static inline float16 two_steps(float16 sum, float16 a, float16 b)
{
#if PAIRS_ARE_STEPS
    sum = MXU_FMA(MXU_FIRST_16(as_uint16(a)), MXU_FIRST_16(as_uint16(b)), sum);
    return MXU_FMA(MXU_SECOND_16(as_uint16(a)), MXU_SECOND_16(as_uint16(b)), sum);
#else
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
#endif
}

#define A_WORDS(r) (float16)(as_float(a_ptr[r * PANEL_ROW_STEP]))
#define B_WORDS(i) as_float16(vload16(i, b_ptr))
#if TILE_VECTORS == 1
#define LOAD_B const float16 b0 = B_WORDS(0);
#define STEP(r) sum_##r##_0 = two_steps(sum_##r##_0, A_WORDS(r), b0);
#else
#define LOAD_B const float16 b0 = B_WORDS(0), b1 = B_WORDS(1);
#define STEP(r)                                                                                    \
    {                                                                                              \
        const float16 a_words = A_WORDS(r);                              \
        sum_##r##_0 = two_steps(sum_##r##_0, a_words, b0);                                         \
        sum_##r##_1 = two_steps(sum_##r##_1, a_words, b1);                                         \
    }
#endif

/* The least magnitude in the panel's first `count` places of k. */
static inline uint least_of_panel(mxu_panel panel, uint count)
{
    ushort16 least = MXU_LEAST_NONE;
#if PANEL_BY_ROW
    for (uint k = 0; k < count; k += MXU_CHUNK, panel += PANEL_CHUNK_STEP)
        for (uint row = 0; row < TILE_M; row++)
            for (uint i = 0; i < MXU_PAIRS(min(MXU_CHUNK, count - k)); i += 8)
                least = MXU_LEAST_OF(least, vload8(0, panel + row * PANEL_ROW_STEP + i));
#else
    for (uint i = 0; i < MXU_PAIRS(count) * PANEL_PITCH; i += 8)
        least = MXU_LEAST_OF(least, vload8(0, panel + i));
#endif
    return mxu_least_of_16(least);
}

/* A chunk's sums by plain steps, for operands with values so small that pairs would flush. Rare:
 * what matters here is that it is short. */
static inline void plain_chunk(mxu_vector *sums, int is_first, mxu_panel a_ptr,
                               global const uint *b_ptr, uint pairs)
{
    for (uint i = 0; i < TILE_M * TILE_VECTORS; i++) {
        const uint row = i / TILE_VECTORS, vector = i % TILE_VECTORS;
        float16 sum = 0.0f;
        for (uint pair = 0; pair < pairs; pair++) {
            const uint a = a_ptr[row * PANEL_ROW_STEP + pair * PANEL_K_STEP];
            const uint16 b = vload16(vector, b_ptr + pair * TILE_N);
            sum = MXU_FMA((float16)(MXU_FIRST(a)), MXU_FIRST_16(b), sum);
            sum = MXU_FMA((float16)(MXU_SECOND(a)), MXU_SECOND_16(b), sum);
        }
        sums[i] = is_first ? sum : sums[i] + sum;
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void mxu_pairs(TP_TENSOR(const mxu_a_t, a),
                                                                     TP_TENSOR(const uint, b),
                                                                     TP_EPILOGUE_PARAMS, MXU_PARAMS,
                                                                     local uint *panel)
{
    const uint m0 = get_group_id(0) * TILE_M;
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    const uint count = place.k_end - place.k_begin;
    mxu_pack_panel(panel, TP_AT(a, place.core) + place.entry * a_stride_batch, m0, size_m,
                   place.k_begin, place.k_end, a_stride_outer, a_stride_inner,
                   MXU_A_PART(place.pass));
    const uint least_a = least_of_panel(panel, count);

    global const uint *words = TP_AT(b, place.core);
    const uint tiles = (size_n + TILE_N - 1) / TILE_N;
    const uint share = (tiles + get_num_groups(1) - 1) / get_num_groups(1);
    const uint first_tile = get_group_id(1) * share, last_tile = min(tiles, first_tile + share);
    for (uint tile = first_tile; tile < last_tile; tile++) {
        const uint slice = (MXU_B_PART(place.pass) * batch + place.entry) * tiles + tile;
        global const uint *b_ptr =
            words + mxu_pair_slice(slice, size_k) + (ulong)(place.k_begin / 2) * TILE_N;
        global const uint *least_b = words +
                                     mxu_pair_least(MXU_PARTS * batch * tiles, slice, size_k) +
                                     place.k_begin / MXU_CHUNK;
        mxu_vector sums[TILE_M * TILE_VECTORS];
        for (uint chunk = 0; chunk * MXU_CHUNK < count; chunk++) {
            mxu_panel a_ptr = panel + chunk * PANEL_CHUNK_STEP;
            const uint pairs = MXU_PAIRS(min(MXU_CHUNK, count - chunk * MXU_CHUNK));
            if (!mxu_pairs_are_exact(least_a, least_b[chunk])) {
                plain_chunk(sums, chunk == 0, a_ptr, b_ptr, pairs);
                b_ptr += pairs * TILE_N;
                continue;
            }
            MXU_ROWS(CLEAR)
            for (uint i = 0; i < pairs; i++) {
                LOAD_B
                MXU_ROWS(STEP)
                a_ptr += PANEL_K_STEP;
                b_ptr += TILE_N;
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
