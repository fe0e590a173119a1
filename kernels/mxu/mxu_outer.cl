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
 *           Behind the sums, for filter gradients: 128 numbers of pixels.
 *
 * requires  a CPU device that is this host's processor, with AVX512_BF16; local memory as above.
 *           Filter gradients: CONV_IN_C % 16 == 0
 * knobs     GROUP_PANELS, GROUP_TILES, TILE_VECTORS (TILE_N = 16 * TILE_VECTORS)
 *           PANEL_BY_ROW     0: A runs along m; 1: anything else. A panel is then two of 8 rows that
 *                            lie by rows (panel.clh)
 *           PAIRS_ARE_STEPS  as in mxu_pairs
 *           MXU_SUMS_CORES   1: kernel mxu_outer_cores, the sum over the cores of a wave; local memory for
 *                            a level of sums for each bit of their number behind the rest
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

#define PANEL_WORDS_COUNT (PANEL_CHUNK * PANEL_PITCH)
#define TILE_WORDS_COUNT (PANEL_CHUNK * TILE_N)
#define TILE_SUMS (TILE_M * TILE_VECTORS)
#if PANEL_BY_ROW
#define BAND_OFFSET(band) ((band)*TILE_M * PANEL_CHUNK)
#else
#define BAND_OFFSET(band) ((band) / 2 * PANEL_WORDS_COUNT + (band) % 2 * TILE_M)
#endif

#if MXU_B_IS_BF16 && MXU_PRECISION == MXU_PRECISION_DEFAULT
#define B_BITS_16(ptr, part) convert_uint16(vload16(0, ptr))
#else
#define B_BITS_16(ptr, part) (as_uint16(mxu_load_b_v16(ptr, part)) >> 16)
#endif

/* One row of 16 columns, as bits of bf16; those from `count` on are +0. */
static inline uint16 load_columns(global const mxu_b_t *b, uint count, uint part)
{
    if (count >= 16) return B_BITS_16(b, part);
    uint columns[16];
    for (uint i = 0; i < 16; i++)
        columns[i] = i < count ? as_uint(mxu_load_b(b + i, part)) >> 16 : 0u;
    return vload16(0, columns);
}

/* `count` places of k of `columns` columns, to `tiles` tiles. b is the first element. */
static inline void pack_columns(local uint *words, global const mxu_b_t *b, uint count,
                                uint columns, uint tiles, ulong stride, uint part)
{
    for (uint k = 0; k < count; k += 2, words += TILE_N, b += 2 * stride)
        for (uint i = 0; i < tiles * TILE_VECTORS; i++) {
            const uint rest = columns > 16 * i ? columns - 16 * i : 0;
            const uint16 first = load_columns(b + 16 * i, rest, part);
            const uint16 second =
                k + 1 < count ? load_columns(b + stride + 16 * i, rest, part) : (uint16)(0u);
            vstore16(first << 16 | second, i % TILE_VECTORS,
                     words + i / TILE_VECTORS * TILE_WORDS_COUNT);
        }
}

#if MXU_KIND == MXU_CONV_FILTER_GRAD
/* The input pixels that a tap meets at `count` output pixels from k on, -1 where it meets padding. */
static inline void find_pixels(local int *pixels, uint tap, uint k, uint count)
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

static inline PANEL_VALUE load_pixel(global const mxu_a_t *a, int pixel, uint part)
{
    if (pixel < 0) return PANEL_ZERO;
    return PANEL_LOAD(a + (ulong)pixel * CONV_IN_C, part);
}

/* Panels from row m0 on; `a` is the whole operand. Panels of one tap share its pixels. */
static inline void pack_panels(mxu_panel panel, local int *pixels, global const mxu_a_t *a, uint m0,
                               uint panels, uint k, uint count, uint part)
{
    for (uint m = m0; m < m0 + panels * PANEL_PITCH; m += PANEL_PITCH, panel += PANEL_WORDS_COUNT) {
        const uint channel = m % CONV_IN_C;
        if (m == m0 || channel == 0) find_pixels(pixels, m / CONV_IN_C, k, count);
        if (count % 2 != 0) pixels[count] = -1;
        for (uint i = 0; i < count; i += 2) {
            const PANEL_VALUE first = load_pixel(a + channel, pixels[i], part),
                              second = load_pixel(a + channel, pixels[i + 1], part);
            PANEL_STORE(first << 16 | second, panel + i / 2 * PANEL_PITCH);
        }
    }
}
#else
static inline void pack_panels(mxu_panel panel, global const mxu_a_t *a, uint m0, uint panels,
                               uint size_m, uint k, uint count, ulong stride_outer,
                               ulong stride_inner, uint part)
{
    const uint rows = PANEL_BY_ROW ? TILE_M : PANEL_PITCH; /* what mxu_pack_panel packs */
    for (uint i = 0; i < panels * PANEL_PITCH; i += rows)
        mxu_pack_panel(panel + i * PANEL_CHUNK, a, m0 + i, size_m, k, k + count, stride_outer,
                       stride_inner, part);
}
#endif

/* Rows of the operands on their way into the second-level cache: a chunk's are far apart, which no
 * processor foresees, and come while the chunk before is multiplied. */
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
static inline global const mxu_a_t *step_of_a(global const mxu_a_t *a, uint m, uint k, ulong stride)
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

static inline uint least_of_panel(const local uint *words, uint pairs)
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

/* A chunk's sums of one tile. */
static inline void pairs_of_chunk(local mxu_vector *sums, int is_first, mxu_panel a_ptr,
                                  const local uint *b_ptr, uint pairs)
{
    MXU_ROWS(CLEAR)
    STEPS(pairs)
    if (is_first) {
        MXU_ROWS(STORE_FIRST)
    } else {
        MXU_ROWS(ADD)
    }
}

/* The same by plain steps. */
static inline void steps_of_chunk(local mxu_vector *sums, int is_first, mxu_panel a,
                                  const local uint *b, uint pairs)
{
    for (uint i = 0; i < TILE_SUMS; i++) {
        float16 sum = 0.0f;
        for (uint pair = 0; pair < pairs; pair++) {
            const uint factor = a[i / TILE_VECTORS * PANEL_ROW_STEP + pair * PANEL_K_STEP];
            const uint16 words = vload16(i % TILE_VECTORS, b + pair * TILE_N);
            sum = MXU_FMA((float16)(MXU_FIRST(factor)), MXU_FIRST_16(words), sum);
            sum = MXU_FMA((float16)(MXU_SECOND(factor)), MXU_SECOND_16(words), sum);
        }
        sums[i] = is_first ? sum : sums[i] + sum;
    }
}

/* What a work-group has: panels from row m0 on and tiles from column n0 on, of which so many exist, and
 * its local memory. */
typedef struct mxu_group {
    uint m0, n0, panels, bands, tiles;
    local uint *a_words, *b_words;
    local mxu_vector *sums; /* [band][GROUP_TILES][TILE_SUMS] */
    local int *pixels;      /* filter gradients */
} mxu_group;

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
    group.sums = (local mxu_vector *)(group.b_words + GROUP_TILES * TILE_WORDS_COUNT);
    group.pixels = (local int *)(group.sums + GROUP_PANELS * 2 * GROUP_TILES * TILE_SUMS);
    return group;
}

/* The group's sums over a unit's k. a and b are the batch entry's, b from column n0 on. */
static inline void sum_unit(const mxu_group *group, global const mxu_a_t *a,
                            global const mxu_b_t *b, mxu_place place, MXU_PARAMS)
{
    const uint panels = group->panels, tiles = group->tiles, bands = group->bands;
    const uint steps_ahead = (MXU_CHUNK + bands * tiles - 1) / (bands * tiles);
    for (uint k = place.k_begin; k < place.k_end; k += MXU_CHUNK) {
        const uint count = min(MXU_CHUNK, place.k_end - k), pairs = MXU_PAIRS(count);
        const int is_first = k == place.k_begin;
#if MXU_KIND == MXU_CONV_FILTER_GRAD
        pack_panels(group->a_words, group->pixels, a, group->m0, panels, k, count,
                    MXU_A_PART(place.pass));
#else
        pack_panels(group->a_words, a, group->m0, panels, size_m, k, count, a_stride_outer,
                    a_stride_inner, MXU_A_PART(place.pass));
#endif
        uint least_a[GROUP_PANELS];
        for (uint i = 0; i < panels; i++)
            least_a[i] = least_of_panel(group->a_words + i * PANEL_WORDS_COUNT, pairs);
        pack_columns(group->b_words, b + k * b_stride_inner, count, size_n - group->n0, tiles,
                     b_stride_inner, MXU_B_PART(place.pass));
        uint next = k + MXU_CHUNK; /* the step that is to be prefetched */
        for (uint tile = 0; tile < tiles; tile++) {
            const local uint *b_tile = group->b_words + tile * TILE_WORDS_COUNT;
            const uint least_b = least_of_words(b_tile, pairs * TILE_N);
            for (uint band = 0; band < bands; band++) {
                mxu_panel a_band = group->a_words + BAND_OFFSET(band);
                local mxu_vector *sums = group->sums + (band * GROUP_TILES + tile) * TILE_SUMS;
                for (uint i = 0; i < steps_ahead && next < place.k_end; i++, next++)
                    prefetch_row(step_of_a(a, group->m0, next, a_stride_inner),
                                 panels * PANEL_PITCH, b + next * b_stride_inner, tiles * TILE_N);
                if (mxu_pairs_are_exact(least_a[band / 2], least_b))
                    pairs_of_chunk(sums, is_first, a_band, b_tile, pairs);
                else
                    steps_of_chunk(sums, is_first, a_band, b_tile, pairs);
            }
        }
    }
}

#define MXU_ARGS                                                                                   \
    size_m, size_n, size_k, batch, grid_z, a_stride_batch, a_stride_outer, a_stride_inner,         \
        b_stride_batch, b_stride_outer, b_stride_inner

#if MXU_SUMS_CORES
/* S[entry][m][n] = sum over the wave's cores of C[core][entry][m][n], for gradients of weights: no core's own
 * goes through memory. One unit. `is_result`: it is the sum over all cores. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
mxu_outer_cores(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b), global float *sum,
                ulong sum_offset, uint is_result, uint cores, MXU_PARAMS, local uint16 *memory,
                local float16 *levels)
{
    const mxu_group group = find_group(size_m, size_n, memory);
    const uint all = GROUP_PANELS * 2 * GROUP_TILES * TILE_SUMS;
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    for (uint core = 0; core < cores; core++) {
        sum_unit(&group, TP_AT(a, core) + place.entry * a_stride_batch,
                 TP_AT(b, core) + place.entry * b_stride_batch + group.n0, place, MXU_ARGS);
        for (uint band = 0; band < group.bands; band++)
            add_core(levels + band * GROUP_TILES * TILE_SUMS, all, core,
                     group.sums + band * GROUP_TILES * TILE_SUMS, group.tiles * TILE_SUMS);
    }
    sum += sum_offset + (ulong)place.entry * size_m * size_n;
    for (uint m = group.m0; m < min(size_m, group.m0 + group.bands * TILE_M); m++)
        for (uint i = 0; i < group.tiles * TILE_VECTORS; i++) {
            const uint band = (m - group.m0) / TILE_M, row = (m - group.m0) % TILE_M;
            const uint vector = ((band * GROUP_TILES + i / TILE_VECTORS) * TILE_M + row) *
                                    TILE_VECTORS +
                                i % TILE_VECTORS;
            const float16 value = sum_of_cores(levels, all, cores, vector);
            store_columns(sum + (ulong)m * size_n, group.n0 + 16 * i, size_n,
                          is_result ? tp_flush_v16(value) : value);
        }
}
#else
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
mxu_outer(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b), TP_EPILOGUE_PARAMS, MXU_PARAMS,
          local uint16 *memory)
{
    const mxu_group group = find_group(size_m, size_n, memory);
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    sum_unit(&group, TP_AT(a, place.core) + place.entry * a_stride_batch,
             TP_AT(b, place.core) + place.entry * b_stride_batch + group.n0, place, MXU_ARGS);
    for (uint band = 0; band < group.bands; band++)
        for (uint tile = 0; tile < group.tiles; tile++) {
            mxu_vector sums[TILE_SUMS];
            for (uint i = 0; i < TILE_SUMS; i++)
                sums[i] = group.sums[(band * GROUP_TILES + tile) * TILE_SUMS + i];
            mxu_finish_tile(TP_EPILOGUE_PASS, sums, place, group.m0 + band * TILE_M,
                            group.n0 + tile * TILE_N, size_m, size_n);
        }
}
#endif
#endif
