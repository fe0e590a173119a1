/* SPDX-License-Identifier: Apache-2.0
 * mxu_grouped: C[m][n] = epilogue(sum over k of A[group of n][m][k] * B[k][n])
 * computes  convolutions of several groups of channels and their gradients; depthwise ones above all, where
 *           lane i of a vector of columns reads channel i of a vector of A
 * layout    A and B as they are (operands.clh)
 * requires  OpenCL 1.2; MXU_KIND is a convolution's
 * knobs     TILE_M    rows per work-item, 1 to 16
 *           COLUMNS   columns per work-item: 16 on devices with explicit vectors, 1 on others
 *           B_RUNS_ALONG_N   1: stride 1 from n to n+1, full vectors are loaded at once
 * work      global = ceil(n / COLUMNS), ceil(m / TILE_M), units * cores; local is the driver's choice
 * numerics  chunk sums from +0 in rising k, chunks added in rising order; units by mxu_combine
 * fallback  mxu_reference
 */
#ifndef TILE_M
#define TILE_M 4
#endif
#ifndef COLUMNS
#define COLUMNS 16
#endif
#ifndef MXU_KIND
#define MXU_KIND 1
#endif
#ifndef CONV_GROUPS
#define CONV_GROUPS 16
#endif
#include "mxu/operands.clh"
#ifndef B_RUNS_ALONG_N
#define B_RUNS_ALONG_N (MXU_KIND != MXU_CONV_INPUT_GRAD)
#endif
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif
#include "mxu/direct_sums.clh"

/* Channels of A's pixels and of one group, and columns of one group. */
#if MXU_KIND == MXU_CONV_INPUT_GRAD
#define A_C CONV_OUT_C
#define OWN_A_C CONV_OWN_OUT_C
#define OWN_N CONV_OWN_IN_C
#else
#define A_C CONV_IN_C
#define OWN_A_C CONV_OWN_IN_C
#define OWN_N CONV_OWN_OUT_C
#endif

/* A row, or a k: a pixel or a tap and channel. The pixel of A that a row and a k meet at is the sum of the
 * two; an input gradient's pixel and tap count in steps of 1, not of the strides. */
typedef struct spot {
    int y, x;
    uint channel;
    uint major, minor; /* of a pixel: image and row, column; of a tap: its row and column */
    ulong line;        /* first line of the image in A */
} spot;

#if MXU_KIND == MXU_CONV_INPUT_GRAD
#define PIXEL_H CONV_IN_H
#define PIXEL_W CONV_IN_W
#define PIXEL_Y(row) ((int)(row) + CONV_PAD_TOP)
#define PIXEL_X(column) ((int)(column) + CONV_PAD_LEFT)
#define TAP_Y(row) (-(int)(row)*CONV_DILATION_H)
#define TAP_X(column) (-(int)(column)*CONV_DILATION_W)
#define A_H CONV_OUT_H
#define A_W CONV_OUT_W
#else
#define PIXEL_H CONV_OUT_H
#define PIXEL_W CONV_OUT_W
#define PIXEL_Y(row) ((int)(row)*CONV_STRIDE_H - CONV_PAD_TOP)
#define PIXEL_X(column) ((int)(column)*CONV_STRIDE_W - CONV_PAD_LEFT)
#define TAP_Y(row) ((int)(row)*CONV_DILATION_H)
#define TAP_X(column) ((int)(column)*CONV_DILATION_W)
#define A_H CONV_IN_H
#define A_W CONV_IN_W
#endif

/* From major and minor to the place. */
static inline void place_pixel(MXU_GEO_PARAM spot *s)
{
    s->y = PIXEL_Y(s->major % PIXEL_H);
    s->x = PIXEL_X(s->minor);
    s->line = (ulong)(s->major / PIXEL_H) * A_H;
}

static inline spot find_pixel(MXU_GEO_PARAM uint number)
{
    spot s;
    s.channel = 0;
    s.major = number / PIXEL_W;
    s.minor = number % PIXEL_W;
    place_pixel(MXU_GEO &s);
    return s;
}

static inline spot find_tap(MXU_GEO_PARAM uint number)
{
    spot s;
    const uint tap = number / OWN_A_C;
    s.channel = number % OWN_A_C;
    s.major = tap / CONV_KERNEL_W;
    s.minor = tap % CONV_KERNEL_W;
    s.y = TAP_Y(s.major);
    s.x = TAP_X(s.minor);
    s.line = 0;
    return s;
}

static inline void next_pixel(MXU_GEO_PARAM spot *s)
{
    if (++s->minor < PIXEL_W) {
        s->x = PIXEL_X(s->minor);
        return;
    }
    s->minor = 0;
    s->major++;
    place_pixel(MXU_GEO s);
}

static inline void next_tap(MXU_GEO_PARAM spot *s)
{
    if (++s->channel < OWN_A_C) return;
    s->channel = 0;
    if (++s->minor == CONV_KERNEL_W) {
        s->minor = 0;
        s->y = TAP_Y(++s->major);
    }
    s->x = TAP_X(s->minor);
}

#if MXU_KIND == MXU_CONV_FILTER_GRAD
#define FIND_ROW find_tap
#define FIND_K find_pixel
#define NEXT_K next_pixel
#else
#define FIND_ROW find_pixel
#define FIND_K find_tap
#define NEXT_K next_tap
#endif

/* Offset in A of where row and k meet, for the first group; below 0 where there is nothing. */
static inline long meet(MXU_GEO_PARAM const spot *row, const spot *k)
{
    int y = row->y + k->y, x = row->x + k->x;
#if MXU_KIND == MXU_CONV_INPUT_GRAD
    if (y < 0 || x < 0 || y % CONV_STRIDE_H != 0 || x % CONV_STRIDE_W != 0) return -1;
    y /= CONV_STRIDE_H;
    x /= CONV_STRIDE_W;
    if (y >= A_H || x >= A_W) return -1;
#else
    if (y < 0 || x < 0 || y >= A_H || x >= A_W) return -1;
#endif
    return (long)(((row->line + k->line + (uint)y) * A_W + (uint)x) * A_C + row->channel +
                  k->channel);
}

#if COLUMNS == 16
/* What columns n .. n+15 multiply; +0 past N. */
static inline mxu_vector load_a(MXU_GEO_PARAM global const mxu_a_t *a, long at, uint n, uint size_n, uint part)
{
    if (at < 0) return 0.0f;
#if OWN_A_C == 1 && OWN_N == 1
    if (n + 16 <= size_n) return mxu_load_a_v16(a + at + n, part);
#elif OWN_N % 16 == 0
    return mxu_load_a(a + at + mxu_group_channel(MXU_GEO n), part);
#endif
    float column[16];
    for (uint i = 0; i < 16; i++)
        column[i] =
            n + i < size_n ? mxu_load_a(a + at + mxu_group_channel(MXU_GEO n + i), part) : 0.0f;
    return vload16(0, column);
}

static inline mxu_vector load_b(MXU_GEO_PARAM global const mxu_b_t *b, uint k, uint n, uint size_n, uint part)
{
#if B_RUNS_ALONG_N
    if (n + 16 <= size_n) return mxu_load_b_v16(b + mxu_b_index(MXU_GEO k, n, 1, size_n), part);
#endif
    float column[16];
    for (uint i = 0; i < 16; i++)
        column[i] = n + i < size_n ? mxu_b_value(MXU_GEO b, k, n + i, 1, size_n, part) : 0.0f;
    return vload16(0, column);
}
#else
static inline mxu_vector load_a(MXU_GEO_PARAM global const mxu_a_t *a, long at, uint n, uint size_n, uint part)
{
    return at < 0 ? 0.0f : mxu_load_a(a + at + mxu_group_channel(MXU_GEO n), part);
}

static inline mxu_vector load_b(MXU_GEO_PARAM global const mxu_b_t *b, uint k, uint n, uint size_n, uint part)
{
    return mxu_b_value(MXU_GEO b, k, n, 1, size_n, part);
}
#endif

/* ---- depthwise: rows side by side ----
 * TILE_M pixels of one line meet a tap in one line of A, so that what is left to be found for each of them
 * is its column. */
#if COLUMNS == 16 && OWN_A_C == 1 && OWN_N == 1 && MXU_KIND != MXU_CONV_FILTER_GRAD &&             \
    !MXU_IS_SPLIT
#define HAS_LINES 1

/* Where the line of A is that row and tap meet in, below 0 where there is none. */
static inline long find_line(MXU_GEO_PARAM const spot *row, int tap_y)
{
    int y = row->y + tap_y;
#if MXU_KIND == MXU_CONV_INPUT_GRAD
    if (y < 0 || y % CONV_STRIDE_H != 0) return -1;
    y /= CONV_STRIDE_H;
#endif
    return y < 0 || y >= A_H ? -1 : (long)(row->line + (uint)y) * A_W * A_C;
}

static inline mxu_vector load_column(MXU_GEO_PARAM global const mxu_a_t *line, int x, uint part)
{
#if MXU_KIND == MXU_CONV_INPUT_GRAD
    if (x < 0 || x % CONV_STRIDE_W != 0) return 0.0f;
    x /= CONV_STRIDE_W;
#endif
    return x < 0 || x >= A_W ? 0.0f : mxu_load_a_v16(line + (uint)x * A_C, part);
}

#define BEGIN_LINE(r)                                                                              \
    mxu_vector sum_##r = 0.0f;                                                                     \
    const int x_##r = PIXEL_X(row.minor + r);
#define STEP_OF_LINE(r) sum_##r = MXU_FMA(load_column(MXU_GEO a, x_##r + x, a_part), b_row, sum_##r);
#define STEP_OF_PADDING(r) sum_##r = MXU_FMA((mxu_vector)(0.0f), b_row, sum_##r);
#define FINISH_LINE(r)                                                                             \
    mxu_finish_row(TP_EPILOGUE_PASS, sum_##r, place, m0 + r, n, size_m, size_n);

/* All of it for rows of one line and a k of one chunk. a and b are the core's. */
static inline void sum_rows_of_line(MXU_GEO_PARAM TP_EPILOGUE_PARAMS, global const mxu_a_t *a_ptr,
                                    global const mxu_b_t *b_ptr, spot row, mxu_place place, uint m0,
                                    uint n, uint size_m, uint size_n)
{
    const uint a_part = MXU_A_PART(place.pass), b_part = MXU_B_PART(place.pass);
    b_ptr += n;
    MXU_ROWS(BEGIN_LINE)
    for (int ky = 0; ky < CONV_KERNEL_H; ky++) {
        const long line = find_line(MXU_GEO &row, TAP_Y(ky));
        global const mxu_a_t *a = a_ptr + max(line, 0l) + n;
        for (int kx = 0; kx < CONV_KERNEL_W; kx++, b_ptr += size_n) {
            const mxu_vector b_row = mxu_load_b_v16(b_ptr, b_part);
            const int x = TAP_X(kx);
            if (line < 0) {
                MXU_ROWS(STEP_OF_PADDING)
            } else {
                MXU_ROWS(STEP_OF_LINE)
            }
        }
    }
    MXU_ROWS(FINISH_LINE)
}
#else
#define HAS_LINES 0
#endif

/* Rows past M repeat the last one. */
#define BEGIN_BLOCK(r)                                                                             \
    mxu_vector block_##r = 0.0f;                                                                   \
    const spot row_##r = FIND_ROW(MXU_GEO min(m0 + r, size_m - 1));
#define STEP(r)                                                                                    \
    chunk_##r =                                                                                    \
        MXU_FMA(load_a(MXU_GEO a_ptr, meet(MXU_GEO &row_##r, &at), n, size_n, a_part), b_row, chunk_##r);

kernel void mxu_grouped(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b),
                        TP_EPILOGUE_PARAMS, MXU_PARAMS, local float *unused)
{
    const uint n = get_global_id(0) * COLUMNS, m0 = get_global_id(1) * TILE_M;
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    if (n >= size_n || m0 >= size_m) return;
    const uint a_part = MXU_A_PART(place.pass), b_part = MXU_B_PART(place.pass);
    global const mxu_a_t *a_ptr = TP_AT(a, place.core);
    global const mxu_b_t *b_ptr = TP_AT(b, place.core);
#if HAS_LINES
    const spot first = FIND_ROW(MXU_GEO m0);
    if (size_k <= MXU_CHUNK && n + COLUMNS <= size_n && m0 + TILE_M <= size_m &&
        first.minor + TILE_M <= PIXEL_W) {
        sum_rows_of_line(MXU_GEO TP_EPILOGUE_PASS, a_ptr, b_ptr, first, place, m0, n, size_m, size_n);
        return;
    }
#endif
    spot at = FIND_K(MXU_GEO place.k_begin);
    MXU_ROWS(BEGIN_BLOCK)
    for (uint chunk_k = place.k_begin; chunk_k < place.k_end; chunk_k += MXU_CHUNK) {
        const uint chunk_end = min(place.k_end, chunk_k + MXU_CHUNK);
        MXU_ROWS(BEGIN_CHUNK)
        for (uint k = chunk_k; k < chunk_end; k++) {
            const mxu_vector b_row = load_b(MXU_GEO b_ptr, k, n, size_n, b_part);
            MXU_ROWS(STEP)
            NEXT_K(MXU_GEO &at);
        }
        MXU_ROWS(END_CHUNK)
    }
    MXU_ROWS(FINISH)
}
