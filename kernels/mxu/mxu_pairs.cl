/* SPDX-License-Identifier: Apache-2.0
 * mxu_pairs: C[z][m][n] = epilogue(sum over k of A[z][m][k] * B[z][k][n])
 * computes  every kind of product but f32 ones, one block of k and one precision pass per unit
 *           (operands.clh), two steps of k per instruction
 * layout    as mxu_register with its panel in local memory, but both operands in pairs (pairs.clh):
 *           B packed by mxu_pack_pairs, the panel as it is filled
 * requires  a CPU device that is this host's processor, with AVX512_BF16; local memory for a panel
 * knobs     TILE_M, TILE_VECTORS, PANEL_BY_ROW as in mxu_register, with vectors of 16 floats
 *           PAIRS_ARE_STEPS  0: use the instruction; 1: plain steps, for devices that lack it
 *           INPUT_PHASES     1: rows of a strided input gradient come in the order of their phase
 *                            (phases.clh); CONV_OUT_C % 16 == 0
 * work      as mxu_register; with INPUT_PHASES each phase has panels of its own
 * numerics  as mxu_register; chunks whose operands might give subnormal sums are done by plain steps
 * fallback  mxu_register
 */
#ifndef TILE_M
#define TILE_M 8
#endif
#ifndef TILE_VECTORS
#define TILE_VECTORS 2
#endif
#ifndef INPUT_PHASES
#define INPUT_PHASES 0
#endif
#define VECTOR_WIDTH 16
#define PANEL_IN_PAIRS 1
#include "mxu/operands.clh"
#include "mxu/panel_pack.clh"
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif
#include "mxu/register_tile.clh"
#include "mxu/pair_steps.clh"

/* Which rows a work-group has, and which taps those need. */
#if INPUT_PHASES
#define ROWS_PARAM const mxu_phase *phase
#define ROWS_ARG phase
#define HAS_STEP(k) mxu_phase_has_tap(MXU_GEO phase, (k) / CONV_OUT_C)
#else
#define ROWS_PARAM uint m0
#define ROWS_ARG m0
#define HAS_STEP(k) 1
#endif

/* The least magnitude in the panel's first `count` places of k, from k on. */
static inline uint least_of_panel(MXU_GEO_PARAM mxu_panel panel, uint k, uint count, ROWS_PARAM)
{
    ushort16 least = MXU_LEAST_NONE;
#if INPUT_PHASES
    for (uint at = k; at < k + count; at += MXU_CHUNK, panel += PANEL_CHUNK_STEP) {
        MXU_FOR_EACH_TAP(phase, at, min(MXU_CHUNK, k + count - at))
        {
            for (uint row = 0; row < TILE_M; row++)
                for (uint pair = (begin - at) / 2; pair < (end - at) / 2; pair += 8)
                    least = MXU_LEAST_OF(least, vload8(0, panel + row * PANEL_ROW_STEP + pair));
        }
    }
#elif PANEL_BY_ROW
    for (uint i = 0; i < count; i += MXU_CHUNK, panel += PANEL_CHUNK_STEP)
        for (uint row = 0; row < TILE_M; row++)
            for (uint pair = 0; pair < MXU_PAIRS(min(MXU_CHUNK, count - i)); pair += 8)
                least = MXU_LEAST_OF(least, vload8(0, panel + row * PANEL_ROW_STEP + pair));
#else
    for (uint i = 0; i < MXU_PAIRS(count) * PANEL_PITCH; i += 8)
        least = MXU_LEAST_OF(least, vload8(0, panel + i));
#endif
    return mxu_least_of_16(least);
}

/* The sums of a chunk, `count` places from k on; panel and words are the chunk's. */
static inline void pairs_of_chunk(MXU_GEO_PARAM mxu_vector *sums, int is_first, mxu_panel panel,
                                  global const uint *words, uint k, uint count, ROWS_PARAM)
{
    MXU_ROWS(CLEAR)
#if INPUT_PHASES
    MXU_FOR_EACH_TAP(phase, k, count)
    {
        mxu_panel a_ptr = panel + (begin - k) / 2;
        global const uint *b_ptr = words + (begin - k) / 2 * TILE_N;
        STEPS((end - begin) / 2)
    }
#else
    mxu_panel a_ptr = panel;
    global const uint *b_ptr = words;
    STEPS(MXU_PAIRS(count))
#endif
    if (is_first) {
        MXU_ROWS(STORE_FIRST)
    } else {
        MXU_ROWS(ADD)
    }
}

/* The same by plain steps, for operands with values so small that pairs would flush, or where a
 * factor of zeros is not finite. Rare: what matters here is that it is short. */
static inline void steps_of_chunk(MXU_GEO_PARAM mxu_vector *sums, int is_first, mxu_panel panel,
                                  global const uint *words, uint k, uint count, ROWS_PARAM)
{
    for (uint i = 0; i < TILE_M * TILE_VECTORS; i++) {
        const uint row = i / TILE_VECTORS, vector = i % TILE_VECTORS;
        float16 sum = 0.0f;
        for (uint pair = 0; pair < MXU_PAIRS(count); pair++) {
            const uint a =
                HAS_STEP(k + 2 * pair) ? panel[row * PANEL_ROW_STEP + pair * PANEL_K_STEP] : 0u;
            const uint16 b = vload16(vector, words + pair * TILE_N);
            sum = MXU_FMA((float16)(MXU_FIRST(a)), MXU_FIRST_16(b), sum);
            sum = MXU_FMA((float16)(MXU_SECOND(a)), MXU_SECOND_16(b), sum);
        }
        sums[i] = is_first ? sum : sums[i] + sum;
    }
}

/* The sums of one tile over `count` places from k on. */
static inline void sum_tile(MXU_GEO_PARAM mxu_vector *sums, mxu_panel panel, uint least_a,
                            global const uint *words, global const uint *least_b, uint k,
                            uint count, ROWS_PARAM)
{
    int is_first = 1;
    for (uint i = 0; i < count; i += MXU_CHUNK) {
        const uint length = min(MXU_CHUNK, count - i);
        mxu_panel a = panel + i / MXU_CHUNK * PANEL_CHUNK_STEP;
        global const uint *b = words + i / 2 * TILE_N;
        const int is_exact = mxu_pairs_are_exact(least_a, least_b[i / MXU_CHUNK]);
#if INPUT_PHASES
        int has_taps = 0;
        MXU_FOR_EACH_TAP(phase, k + i, length)
        has_taps = 1;
        if (!has_taps && is_exact) continue;
#endif
        if (is_exact)
            pairs_of_chunk(MXU_GEO sums, is_first, a, b, k + i, length, ROWS_ARG);
        else
            steps_of_chunk(MXU_GEO sums, is_first, a, b, k + i, length, ROWS_ARG);
        is_first = 0;
    }
#if INPUT_PHASES
    for (uint i = 0; is_first && i < TILE_M * TILE_VECTORS; i++)
        sums[i] = 0.0f;
#endif
}

/* Elements from a row of A to the next where rows follow each other in memory, else 0: a product of
 * matrices. */
#if MXU_KIND == MXU_DOT
#define ROW_ELEMS (a_stride_inner == 1 ? a_stride_outer : 0)
#else
#define ROW_ELEMS 0ul
#endif

/* Part `index` of `parts` of the rows that the next work-group will pack. `a` is its first row. */
static inline void prefetch_rows(global const mxu_a_t *a, ulong row_elems, uint elems, uint index,
                                 uint parts)
{
    const uint line = LINE_BYTES / sizeof *a, lines = (elems + line - 1) / line;
    const uint share = (TILE_M * lines + parts - 1) / parts;
    for (uint i = index * share; i < min((index + 1) * share, TILE_M * lines); i++)
        PREFETCH(a + i / lines * row_elems + i % lines * line);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void mxu_pairs(TP_TENSOR(const mxu_a_t, a),
                                                                     TP_TENSOR(const uint, b),
                                                                     TP_EPILOGUE_PARAMS, MXU_PARAMS,
                                                                     local uint *panel)
{
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    const uint count = place.k_end - place.k_begin;
    global const mxu_a_t *a_ptr = TP_AT(a, place.core) + place.entry * a_stride_batch;
#if INPUT_PHASES
    const mxu_phase the_phase = mxu_find_phase(MXU_GEO get_group_id(0), size_m), *phase = &the_phase;
    mxu_pack_panel_of_phase(MXU_GEO panel, a_ptr, phase, place.k_begin, place.k_end, MXU_A_PART(place.pass));
#else
    const uint m0 = get_group_id(0) * TILE_M;
    mxu_pack_panel(MXU_GEO panel, a_ptr, m0, size_m, place.k_begin, place.k_end, a_stride_outer,
                   a_stride_inner, MXU_A_PART(place.pass));
#endif
    const uint least_a = least_of_panel(MXU_GEO panel, place.k_begin, count, ROWS_ARG);

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
#if !INPUT_PHASES
        if (ROW_ELEMS > 0 && m0 + 2 * TILE_M <= size_m)
            prefetch_rows(a_ptr + (m0 + TILE_M) * ROW_ELEMS + place.k_begin, ROW_ELEMS, count,
                          tile - first_tile, last_tile - first_tile);
#ifdef TP_EPILOGUE_PREFETCH
        for (uint m = m0 + TILE_M; m < min(m0 + 2 * TILE_M, size_m); m++)
            tp_epilogue_prefetch(TP_EPILOGUE_PASS, place.core, place.z, m, tile * TILE_N,
                                 min((uint)TILE_N, size_n - tile * TILE_N));
#endif
#endif
        mxu_vector sums[TILE_M * TILE_VECTORS];
        sum_tile(MXU_GEO sums, panel, least_a, b_ptr, least_b, place.k_begin, count, ROWS_ARG);
#if INPUT_PHASES
        for (uint r = 0; r < phase->rows; r++)
            mxu_finish_row(TP_EPILOGUE_PASS, sums, place, r, mxu_row_of_phase(MXU_GEO phase, r),
                           tile * TILE_N, size_n);
#else
        mxu_finish_tile(TP_EPILOGUE_PASS, sums, place, m0, tile * TILE_N, size_m, size_n);
#endif
    }
}
