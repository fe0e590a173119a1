/* SPDX-License-Identifier: Apache-2.0
 * mxu_outer: C[z][m][n] = epilogue(sum over k of A[z][m][k] * B[z][k][n])
 * computes  products whose B runs along n, and A along m, as gradients of weights do, or (dot
 *           products) along k, one block of k and one precision pass per unit (operands.clh)
 * layout    A and B as they are. A work-group has GROUP_PANELS panels of 16 rows and GROUP_TILES
 *           tiles of TILE_N columns; it takes a chunk of k of both into local memory, in pairs
 *           (pairs.clh), and adds the chunk's sums to all its tiles:
 *
 *                         n: GROUP_TILES tiles        local memory:  A      [panel][64][16] words
 *                        +------+------+------+                      B      [tile][64][TILE_N] words
 *              k: a chunk| pairs| pairs| pairs|                      sums   [panel][band][tile] of
 *              +-------+ +------+------+------+                             8 x TILE_N floats
 *       panels |       | | sums                |
 *              |       | |                     |      So neither is ever packed in memory, and a tile
 *              +-------+ +------+------+------+       of B is read from the cache for all panels.
 *           In front of the sums, for filter gradients: 128 numbers of pixels. Sums are there between
 *           chunks; where k is one chunk, there are none.
 *
 * requires  a CPU device that is this host's processor, with AVX512_BF16; local memory as above.
 *           Filter gradients: CONV_IN_C % 16 == 0
 * knobs     GROUP_PANELS, GROUP_TILES, TILE_VECTORS (TILE_N = 16 * TILE_VECTORS)
 *           PANEL_BY_ROW     0: A runs along m; 1: anything else. A panel is then two of 8 rows that
 *                            lie by rows (panel.clh)
 *           PAIRS_ARE_STEPS  as in mxu_pairs
 *           MXU_SUMS_CORES   1: kernel mxu_outer_cores, the sum over the cores of a wave; local memory for
 *                            levels of sums (core_levels.clh) behind the rest
 * work      one work-item per group; groups = groups of panels, of tiles, units * batch * cores
 * numerics  as mxu_register; chunks whose operands might give subnormal sums are done by plain steps
 * fallback  mxu_pairs
 */
#ifndef GROUP_PANELS
#define GROUP_PANELS 4
#endif
#ifndef GROUP_TILES
#define GROUP_TILES 2
#endif
#ifndef TILE_VECTORS
#define TILE_VECTORS 2
#endif
/* What packs a chunk has 16 rows, what multiplies it 8: of 16 sums with two vectors each registers
 * hold only half. */
#define PANEL_PITCH 16u
#ifndef PANEL_BY_ROW
#define PANEL_BY_ROW 0
#endif
#define PANEL_IN_PAIRS 1
#define TILE_M 8
#define VECTOR_WIDTH 16
#include "mxu/operands.clh"
#if MXU_KIND == MXU_DOT || MXU_KIND == MXU_CONV_FILTER_GRAD
#if MXU_KIND == MXU_DOT
#include "mxu/panel_pack.clh"
#else
#include "mxu/panel_put_rows.clh"
#endif
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif
#include "mxu/pair_steps.clh"
#ifndef MXU_SUMS_CORES
#define MXU_SUMS_CORES 0
#endif
#if MXU_SUMS_CORES
#include "mxu/core_levels.clh"
#endif

/* From one panel and tile to the next: a line more than they take, so that lines of several that are
 * written one after the other do not share a cache set. (Two panels by rows are one of 16 rows.) */
#define LINE_WORDS 16u
#define PANEL_WORDS_COUNT (PANEL_CHUNK * PANEL_PITCH + LINE_WORDS)
#define TILE_WORDS_COUNT (PANEL_CHUNK * TILE_N + LINE_WORDS)
#define TILE_SUMS (TILE_M * TILE_VECTORS)
/* Where 16 words are stored in one piece, which vstore16 of PoCL's does not: lines are whole. */
#define WORDS_16(words, i) (((local uint16 *)(words))[i])
#if PANEL_BY_ROW
#define BAND_OFFSET(band) ((band) / 2 * PANEL_WORDS_COUNT + (band) % 2 * TILE_M * PANEL_CHUNK)
#else
#define BAND_OFFSET(band) ((band) / 2 * PANEL_WORDS_COUNT + (band) % 2 * TILE_M)
#endif

#if MXU_B_IS_BF16 && MXU_PRECISION == MXU_PRECISION_DEFAULT
#define B_BITS_16(ptr, part) convert_uint16(vload16(0, ptr))
#else
#define B_BITS_16(ptr, part) (as_uint16(mxu_load_b_v16(ptr, part)) >> 16)
#endif

/* One row of 16 columns, as bits of bf16; those from `count` on are +0. So many elements are there to be
 * read: what follows a short row is the next one. */
static inline uint16 load_columns(global const mxu_b_t *b, uint count, ulong readable, uint part)
{
    if (count >= 16) return B_BITS_16(b, part);
    if (readable >= 16) {
        const uint16 column = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        return select((uint16)(0u), B_BITS_16(b, part), column < count);
    }
    uint columns[16];
    for (uint i = 0; i < 16; i++)
        columns[i] = i < count ? as_uint(mxu_load_b(b + i, part)) >> 16 : 0u;
    return vload16(0, columns);
}

/* Two places of k of `columns` columns, to `tiles` tiles. From `second` on there are `readable` elements. */
static inline void pack_two_rows(local uint *words, global const mxu_b_t *first,
                                 global const mxu_b_t *second, int has_second, ulong readable,
                                 uint columns, uint tiles, uint part)
{
    for (uint i = 0; i < tiles * TILE_VECTORS; i++) {
        const uint n = 16 * i, rest = columns > n ? columns - n : 0;
        const ulong left = readable > n ? readable - n : 0;
        const uint16 upper = load_columns(first + n, rest, left, part);
        const uint16 lower =
            has_second ? load_columns(second + n, rest, left, part) : (uint16)(0u);
        WORDS_16(words + i / TILE_VECTORS * TILE_WORDS_COUNT, i % TILE_VECTORS) =
            upper << 16 | lower;
    }
}

/* `count` places of k of `columns` columns, to `tiles` tiles. b is the first element; behind the last
 * place of k there are `behind` more. */
static inline void pack_columns(local uint *words, global const mxu_b_t *b, uint count, uint behind,
                                uint columns, uint tiles, ulong stride, uint part)
{
    const int is_whole = columns >= tiles * TILE_N;
    for (uint k = 0; k < count; k += 2, words += TILE_N, b += 2 * stride) {
        if (!is_whole || k + 1 == count) {
            const int has_second = k + 1 < count;
            const ulong rows = behind + count - 1 - k - (uint)has_second;
            pack_two_rows(words, b, b + stride, has_second, rows * stride + columns, columns, tiles,
                          part);
            continue;
        }
        for (uint i = 0; i < tiles * TILE_VECTORS; i++)
            WORDS_16(words + i / TILE_VECTORS * TILE_WORDS_COUNT, i % TILE_VECTORS) =
                B_BITS_16(b + 16 * i, part) << 16 | B_BITS_16(b + stride + 16 * i, part);
    }
}

#if MXU_KIND == MXU_CONV_FILTER_GRAD
/* The input pixels that a tap meets at `count` output pixels from k on, -1 where it meets padding. */
static inline void find_pixels(MXU_GEO_PARAM local int *pixels, uint tap, uint k, uint count)
{
    const int tap_y = (int)(tap / CONV_KERNEL_W) * CONV_DILATION_H - CONV_PAD_TOP;
    const int tap_x = (int)(tap % CONV_KERNEL_W) * CONV_DILATION_W - CONV_PAD_LEFT;
    int out_x = (int)(k % CONV_OUT_W), out_y = (int)(k / CONV_OUT_W % CONV_OUT_H);
    int image = (int)(k / (CONV_OUT_W * CONV_OUT_H));
    for (uint i = 0; i < count; i++) {
        const int y = out_y * CONV_STRIDE_H + tap_y, x = out_x * CONV_STRIDE_W + tap_x;
        const int is_inside = y >= 0 && y < CONV_IN_H && x >= 0 && x < CONV_IN_W;
        pixels[i] = is_inside ? (image * CONV_IN_H + y) * CONV_IN_W + x : -1;
        if (++out_x < CONV_OUT_W) continue;
        out_x = 0;
        if (++out_y < CONV_OUT_H) continue;
        out_y = 0;
        image++;
    }
}

/* Panels from row m0 on; `a` is the whole operand. Panels of one tap share its pixels. */
static inline void pack_panels(MXU_GEO_PARAM mxu_panel panel, local int *pixels, global const mxu_a_t *a, uint m0,
                               uint panels, uint k, uint count, uint part)
{
    uint of_tap = 0; /* panels of one tap */
    for (uint done = 0; done < panels; done += of_tap, panel += of_tap * PANEL_WORDS_COUNT) {
        const uint m = m0 + done * PANEL_PITCH, channel = m % CONV_IN_C;
        of_tap = min(panels - done, (CONV_IN_C - channel) / PANEL_PITCH);
        find_pixels(MXU_GEO pixels, m / CONV_IN_C, k, count);
        if (count % 2 != 0) pixels[count] = -1;
        for (uint i = 0; i < count; i += 2) {
            const int upper = pixels[i], lower = pixels[i + 1];
            global const mxu_a_t *first = a + channel + (ulong)max(upper, 0) * CONV_IN_C,
                                 *second = a + channel + (ulong)max(lower, 0) * CONV_IN_C;
            const uint16 has_first = (uint16)(upper < 0 ? 0u : 0xffff0000u),
                         has_second = (uint16)(lower < 0 ? 0u : 0xffffu);
            for (uint j = 0; j < of_tap; j++, first += PANEL_PITCH, second += PANEL_PITCH)
                WORDS_16(panel + j * PANEL_WORDS_COUNT, i / 2) =
                    (PANEL_LOAD(first, part) << 16 & has_first) |
                    (PANEL_LOAD(second, part) & has_second);
        }
    }
}
#elif PANEL_BY_ROW
static inline void pack_panels(MXU_GEO_PARAM mxu_panel panel, global const mxu_a_t *a, uint m0, uint panels,
                               uint size_m, uint k, uint count, ulong stride_outer,
                               ulong stride_inner, uint part)
{
    for (uint band = 0; band < 2 * panels; band++)
        mxu_pack_panel(MXU_GEO panel + BAND_OFFSET(band), a, m0 + band * TILE_M, size_m, k, k + count,
                       stride_outer, stride_inner, part);
}
#else
static inline PANEL_VALUE load_rows(global const mxu_a_t *a, uint count, uint part)
{
    return count >= PANEL_PITCH ? PANEL_LOAD(a, part) : load_some_rows(a, 0, (int)count, part);
}

static inline void pack_panels(MXU_GEO_PARAM mxu_panel panel, global const mxu_a_t *a, uint m0, uint panels,
                               uint size_m, uint k, uint count, ulong stride_outer,
                               ulong stride_inner, uint part)
{
    a += m0 + k * stride_inner;
    for (uint i = 0; i < count; i += 2, a += 2 * stride_inner, panel += PANEL_PITCH)
        for (uint j = 0; j < panels; j++) {
            const uint m = j * PANEL_PITCH, rest = size_m - m0 - m;
            const PANEL_VALUE first = load_rows(a + m, rest, part),
                              second = i + 1 < count ? load_rows(a + stride_inner + m, rest, part)
                                                     : PANEL_ZERO;
            WORDS_16(panel + j * PANEL_WORDS_COUNT, 0) = first << 16 | second;
        }
}
#endif

/* A step of k of both operands: a chunk's are far apart, which no processor foresees, and are asked
 * for while the chunk before is multiplied. */
static inline void prefetch_row(global const mxu_a_t *a, uint rows, global const mxu_b_t *b,
                                uint columns)
{
#if !PANEL_BY_ROW
    for (uint i = 0; i < rows; i += LINE_BYTES / sizeof *a)
        PREFETCH(a + i);
#endif
    for (uint i = 0; i < columns; i += LINE_BYTES / sizeof *b)
        PREFETCH(b + i);
}

/* Where step k of A is; at padding, of a pixel nearby. */
static inline global const mxu_a_t *step_of_a(MXU_GEO_PARAM global const mxu_a_t *a, uint m, uint k, ulong stride)
{
#if MXU_KIND == MXU_CONV_FILTER_GRAD
    const uint tap = m / CONV_IN_C;
    const int y = (int)(k / CONV_OUT_W % CONV_OUT_H) * CONV_STRIDE_H - CONV_PAD_TOP +
                  (int)(tap / CONV_KERNEL_W) * CONV_DILATION_H;
    const int x = (int)(k % CONV_OUT_W) * CONV_STRIDE_W - CONV_PAD_LEFT +
                  (int)(tap % CONV_KERNEL_W) * CONV_DILATION_W;
    const ulong line = k / (CONV_OUT_W * CONV_OUT_H) * CONV_IN_H + clamp(y, 0, CONV_IN_H - 1);
    return a + (line * CONV_IN_W + clamp(x, 0, CONV_IN_W - 1)) * CONV_IN_C + m % CONV_IN_C;
#else
    return a + k * stride + m;
#endif
}

static inline uint least_of_words(const local uint *words, uint count)
{
    ushort16 least = MXU_LEAST_NONE;
    for (uint i = 0; i < count; i += 8)
        least = MXU_LEAST_OF(least, vload8(0, words + i));
    return mxu_least_of_16(least);
}

static inline uint least_of_panel(MXU_GEO_PARAM const local uint *words, uint pairs)
{
#if PANEL_BY_ROW
    uint least = MXU_LEAST_NONE;
    for (uint row = 0; row < PANEL_PITCH; row++)
        least = min(least, least_of_words(words + row * PANEL_CHUNK, pairs));
    return least;
#else
    return least_of_words(words, pairs * PANEL_PITCH);
#endif
}

/* What a work-group has: panels from row m0 on and tiles from column n0 on, of which so many exist, and
 * its local memory. */
typedef struct mxu_group {
    uint m0, n0, panels, bands, tiles;
    local uint *a_words, *b_words;
    local int *pixels;      /* filter gradients */
    local mxu_vector *sums; /* [band][GROUP_TILES][TILE_SUMS] */
} mxu_group;

#define GROUP_SUMS (GROUP_PANELS * 2u * GROUP_TILES * TILE_SUMS)

static inline mxu_group find_group(uint size_m, uint size_n, local uint16 *memory)
{
    mxu_group group;
    group.m0 = get_group_id(0) * GROUP_PANELS * PANEL_PITCH;
    group.n0 = get_group_id(1) * GROUP_TILES * TILE_N;
    group.panels = min(GROUP_PANELS + 0u, (size_m - group.m0 + PANEL_PITCH - 1) / PANEL_PITCH);
    group.tiles = min(GROUP_TILES + 0u, (size_n - group.n0 + TILE_N - 1) / TILE_N);
    group.bands = min(2 * group.panels, (size_m - group.m0 + TILE_M - 1) / TILE_M);
    group.a_words = (local uint *)memory;
    group.b_words = group.a_words + GROUP_PANELS * PANEL_WORDS_COUNT;
    group.pixels = (local int *)(group.b_words + GROUP_TILES * TILE_WORDS_COUNT);
    group.sums = (local mxu_vector *)(group.pixels + MXU_CHUNK);
    return group;
}

/* One tile in one chunk: its packed operands, and its sums. */
typedef struct mxu_tile {
    mxu_panel a;
    const local uint *b;
    uint pairs;
    int is_exact;           /* by the instruction */
    local mxu_vector *sums; /* of the chunks before, unless it is the first */
    int is_first, is_last;
    /* the sum over cores: bit l of `adds` asks for what is in level l */
    local mxu_vector *level;
    uint adds, to_level; /* NO_LEVEL: it is the last core's */
} mxu_tile;
#define NO_LEVEL 32u

#if TILE_VECTORS == 1
#define ADD_SUMS(r) sum_##r##_0 = tile->sums[r] + sum_##r##_0;
#define STORE_SUMS(r) sums[r] = sum_##r##_0;
#define FLUSH(r) sum_##r##_0 = tp_flush_v16(sum_##r##_0);
#define ADD_LEVEL(r) sum_##r##_0 = level[r] + sum_##r##_0;
#else
#define ADD_SUMS(r)                                                                                \
    sum_##r##_0 = tile->sums[2 * r] + sum_##r##_0;                                                 \
    sum_##r##_1 = tile->sums[2 * r + 1] + sum_##r##_1;
#define STORE_SUMS(r)                                                                              \
    sums[2 * r] = sum_##r##_0;                                                                     \
    sums[2 * r + 1] = sum_##r##_1;
#define FLUSH(r)                                                                                   \
    sum_##r##_0 = tp_flush_v16(sum_##r##_0);                                                       \
    sum_##r##_1 = tp_flush_v16(sum_##r##_1);
#define ADD_LEVEL(r)                                                                               \
    sum_##r##_0 = level[2 * r] + sum_##r##_0;                                                      \
    sum_##r##_1 = level[2 * r + 1] + sum_##r##_1;
#endif

/* Adds a chunk's sums to the tile's. Those of the last chunk (of the last core) come out in `out`. */
static inline void pairs_of_chunk(MXU_GEO_PARAM const mxu_tile *tile, mxu_vector *out)
{
    mxu_panel a_ptr = tile->a;
    const local uint *b_ptr = tile->b;
    MXU_ROWS(CLEAR)
    STEPS(tile->pairs)
    if (!tile->is_first) {
        MXU_ROWS(ADD_SUMS)
    }
    if (!tile->is_last) {
        local mxu_vector *sums = tile->sums;
        MXU_ROWS(STORE_SUMS)
        return;
    }
#if MXU_SUMS_CORES
    MXU_ROWS(FLUSH)
    const local mxu_vector *level = tile->level;
    for (uint adds = tile->adds; adds != 0; adds >>= 1, level += GROUP_SUMS)
        if (adds & 1u) {
            MXU_ROWS(ADD_LEVEL)
        }
    if (tile->to_level != NO_LEVEL) {
        local mxu_vector *sums = tile->level + tile->to_level * GROUP_SUMS;
        MXU_ROWS(STORE_SUMS)
        return;
    }
#endif
    mxu_vector *sums = out;
    MXU_ROWS(STORE_SUMS)
}

/* The same by plain steps. */
static inline void steps_of_chunk(MXU_GEO_PARAM const mxu_tile *tile, mxu_vector *out)
{
    for (uint i = 0; i < TILE_SUMS; i++) {
        float16 sum = 0.0f;
        for (uint pair = 0; pair < tile->pairs; pair++) {
            const uint factor = tile->a[i / TILE_VECTORS * PANEL_ROW_STEP + pair * PANEL_K_STEP];
            const uint16 words = vload16(i % TILE_VECTORS, tile->b + pair * TILE_N);
            sum = MXU_FMA((float16)(MXU_FIRST(factor)), MXU_FIRST_16(words), sum);
            sum = MXU_FMA((float16)(MXU_SECOND(factor)), MXU_SECOND_16(words), sum);
        }
        if (!tile->is_first) sum = tile->sums[i] + sum;
        if (!tile->is_last) {
            tile->sums[i] = sum;
            continue;
        }
#if MXU_SUMS_CORES
        sum = tp_flush_v16(sum);
        for (uint adds = tile->adds, level = i; adds != 0; adds >>= 1, level += GROUP_SUMS)
            if (adds & 1u) sum = tile->level[level] + sum;
        if (tile->to_level != NO_LEVEL) {
            tile->level[tile->to_level * GROUP_SUMS + i] = sum;
            continue;
        }
#endif
        out[i] = sum;
    }
}

/* Where a chunk's operands are: the batch entry's, b from column n0 on; `steps` of k from k on. */
typedef struct mxu_chunk {
    global const mxu_a_t *a;
    global const mxu_b_t *b;
    uint k, steps;
} mxu_chunk;

/* Packs both operands. */
static inline void pack_chunk(const mxu_group *group, const mxu_chunk *chunk, uint pass, MXU_PARAMS)
{
#if MXU_KIND == MXU_CONV_FILTER_GRAD
    pack_panels(MXU_GEO group->a_words, group->pixels, chunk->a, group->m0, group->panels, chunk->k,
                chunk->steps, MXU_A_PART(pass));
#else
    pack_panels(MXU_GEO group->a_words, chunk->a, group->m0, group->panels, size_m, chunk->k, chunk->steps,
                a_stride_outer, a_stride_inner, MXU_A_PART(pass));
#endif
    pack_columns(group->b_words, chunk->b + chunk->k * b_stride_inner, chunk->steps,
                 size_k - chunk->k - chunk->steps, size_n - group->n0, group->tiles,
                 b_stride_inner, MXU_B_PART(pass));
}

#if MXU_SUMS_CORES
#define RESULT_PARAMS global float *sum, uint is_result
#define RESULT_PASS sum, is_result
/* `sum` is the batch entry's. */
static inline void finish_tile(RESULT_PARAMS, const mxu_vector *sums, mxu_place place, uint m0,
                               uint n0, uint size_m, uint size_n)
{
    for (uint i = 0; i < min(TILE_M + 0u, size_m - m0) * TILE_VECTORS; i++)
        store_columns(sum + (ulong)(m0 + i / TILE_VECTORS) * size_n, n0 + i % TILE_VECTORS * 16,
                      size_n, is_result ? tp_flush_v16(sums[i]) : sums[i]);
}
#else
#define RESULT_PARAMS TP_EPILOGUE_PARAMS
#define RESULT_PASS TP_EPILOGUE_PASS
#define finish_tile mxu_finish_tile
#endif

/* Multiplies a packed chunk: all tiles of the group. `tile` says what becomes of their sums; meanwhile
 * `next` is prefetched. */
static inline void multiply_chunk(RESULT_PARAMS, const mxu_group *group, mxu_tile tile,
                                  const mxu_chunk *next, mxu_place place, MXU_PARAMS)
{
    const uint tiles = group->tiles, bands = group->bands;
    const uint steps_ahead = (next->steps + bands * tiles - 1) / (bands * tiles);
    local mxu_vector *const level = tile.level;
    uint asked = 0, least_a[GROUP_PANELS];
    for (uint i = 0; i < group->panels; i++)
        least_a[i] = least_of_panel(MXU_GEO group->a_words + i * PANEL_WORDS_COUNT, tile.pairs);
    for (uint n = 0; n < tiles; n++) {
        tile.b = group->b_words + n * TILE_WORDS_COUNT;
        const uint least_b = least_of_words(tile.b, tile.pairs * TILE_N);
        for (uint band = 0; band < bands; band++) {
            for (uint i = 0; i < steps_ahead && asked < next->steps; i++, asked++)
                prefetch_row(step_of_a(MXU_GEO next->a, group->m0, next->k + asked, a_stride_inner),
                             group->panels * PANEL_PITCH,
                             next->b + (next->k + asked) * b_stride_inner, tiles * TILE_N);
            const uint at = (band * GROUP_TILES + n) * TILE_SUMS;
            mxu_vector sums[TILE_SUMS];
            tile.a = group->a_words + BAND_OFFSET(band);
            tile.sums = group->sums + at;
            tile.level = level + at;
            if (mxu_pairs_are_exact(least_a[band / 2], least_b))
                pairs_of_chunk(MXU_GEO &tile, sums);
            else
                steps_of_chunk(MXU_GEO &tile, sums);
            if (tile.is_last && tile.to_level == NO_LEVEL)
                finish_tile(RESULT_PASS, sums, place, group->m0 + band * TILE_M,
                            group->n0 + n * TILE_N, size_m, size_n);
        }
    }
}

#define MXU_ARGS                                                                                   \
    size_m, size_n, size_k, batch, grid_z, a_stride_batch, a_stride_outer, a_stride_inner,         \
        b_stride_batch, b_stride_outer, b_stride_inner MXU_GEO_TAIL_ARGS

/* A unit's k of one core, from `chunk` on; `after` is what comes when it is done. */
static inline void sum_unit(RESULT_PARAMS, const mxu_group *group, mxu_chunk chunk,
                            const mxu_chunk *after, mxu_tile tile, mxu_place place, MXU_PARAMS)
{
    while (chunk.k < place.k_end) {
        mxu_chunk next = chunk;
        next.k += MXU_CHUNK;
        next.steps = min(MXU_CHUNK, place.k_end - min(next.k, place.k_end));
        tile.pairs = MXU_PAIRS(chunk.steps);
        tile.is_first = chunk.k == place.k_begin;
        tile.is_last = next.steps == 0;
        pack_chunk(group, &chunk, place.pass, MXU_ARGS);
        multiply_chunk(RESULT_PASS, group, tile, tile.is_last ? after : &next, place, MXU_ARGS);
        chunk = next;
    }
}

#define FIRST_CHUNK(core)                                                                          \
    {                                                                                              \
        TP_AT(a, core) + place.entry * a_stride_batch,                                             \
            TP_AT(b, core) + place.entry * b_stride_batch + group.n0, place.k_begin,               \
            min(MXU_CHUNK, place.k_end - place.k_begin)                                            \
    }

#if MXU_SUMS_CORES
/* S[entry][m][n] = sum over the wave's cores of C[core][entry][m][n], for gradients of weights: no core's own
 * goes through memory. One unit. `is_result`: it is the sum over all cores. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
mxu_outer_cores(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b), global float *sum,
                ulong sum_offset, uint is_result, uint cores, MXU_PARAMS, local uint16 *memory,
                local float16 *levels)
{
    const mxu_group group = find_group(size_m, size_n, memory);
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    sum += sum_offset + (ulong)place.entry * size_m * size_n;
    for (uint core = 0; core < cores; core++) {
        const int is_last = core + 1 == cores;
        const mxu_chunk first = FIRST_CHUNK(core);
        mxu_chunk after = FIRST_CHUNK(core + 1);
        if (is_last) after.steps = 0;
        const mxu_tile tile = {.level = levels,
                               .adds = mxu_levels_added(core, cores),
                               .to_level = is_last ? NO_LEVEL : mxu_level_of(core)};
        sum_unit(RESULT_PASS, &group, first, &after, tile, place, MXU_ARGS);
    }
}
#else
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
mxu_outer(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b), TP_EPILOGUE_PARAMS, MXU_PARAMS,
          local uint16 *memory)
{
    const mxu_group group = find_group(size_m, size_n, memory);
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    const mxu_chunk first = FIRST_CHUNK(place.core);
    const mxu_chunk after = {.steps = 0};
    const mxu_tile tile = {.to_level = NO_LEVEL};
    sum_unit(RESULT_PASS, &group, first, &after, tile, place, MXU_ARGS);
}
#endif
#endif
