/* SPDX-License-Identifier: Apache-2.0
 * attention_grad: gradients of query, key and value, probabilities made again block by block
 * computes  to: dq, dk, dv one after the other, as large as query, key and value
 * layout    operands and result as in attention.cl, d [batch][queries][heads][width];
 *           scratch: `slice` floats for each work-item
 * requires  nothing
 * knobs     those of operands.clh and product.clh
 * work      x: work-items, each takes every x-th of the batch * shared heads of keys
 * numerics  docs/precision.md, "Attention": whatever the tile or the number of work-items
 * fallback  none: this is the only one
 */
#include "attention/operands.clh"
#include "attention/product.clh"

#ifdef ATTENTION_D_BF16
#define D_TYPE ushort
#define D_PACK pack_rows_bf16
#define D_LOAD_1(p, i) VPU_ELEMENT_bf16(p, i)
#define D_LOAD_16(p, i) VPU_LD_bf16(p, i)
#else
#define D_TYPE float
#define D_PACK pack_rows_f32
#define D_LOAD_1(p, i) ((p)[i])
#define D_LOAD_16(p, i) vload16(0, (p) + (i))
#endif

/* Scratch of one work-item. `all` counts are rounded up to 32. */
typedef struct grad_scratch {
    __global float *query, *d;            /* [all queries][PAD(depth)], [PAD(width)] */
    __global float *d_query;              /* [all queries][PAD(depth)] */
    __global float *state;                /* [all queries][3]: largest, 1 / sum, d . seen */
    __global float *d_key, *d_value;      /* [all keys][PAD(depth)], [PAD(width)] */
    __global float *key, *key_turned;     /* [128][PAD(depth)] and its transpose */
    __global float *value, *value_turned; /* [128][PAD(width)] and its transpose */
    __global float *p, *d_score;          /* [128][128] */
} grad_scratch;

static inline grad_scratch place_scratch(__global float *at, int queries, int keys, int depth,
                                         int width)
{
    grad_scratch s;
    s.query = at;
    s.d = s.query + queries * PAD(depth);
    s.d_query = s.d + queries * PAD(width);
    s.state = s.d_query + queries * PAD(depth);
    s.d_key = s.state + queries * 3;
    s.d_value = s.d_key + keys * PAD(depth);
    s.key = s.d_value + keys * PAD(width);
    s.key_turned = s.key + BLOCK * PAD(depth);
    s.value = s.key_turned + BLOCK * PAD(depth);
    s.value_turned = s.value + BLOCK * PAD(width);
    s.p = s.value_turned + BLOCK * PAD(width);
    s.d_score = s.p + BLOCK * BLOCK;
    return s;
}

static inline void clear(__global float *at, int elems)
{
    for (int i = 0; i < elems; i += 16)
        vstore16((float16)(0.0f), 0, at + i);
}

/* Sum of d[e] * seen[e] in the order of a reduction. */
static inline float row_product(const __global D_TYPE *d, const __global float *seen, int width)
{
    float16 lanes[BLOCK / 16];
    for (int v = 0; v < BLOCK / 16; v++)
        lanes[v] = 0.0f;
    for (int e = 0; e < width; e += 16) {
        float16 term = 0.0f;
        if (e + 16 <= width) {
            term = D_LOAD_16(d, e) * vload16(0, seen + e);
        } else {
            float left[16] = {0.0f};
            for (int i = 0; e + i < width; i++)
                left[i] = D_LOAD_1(d, e + i) * seen[e + i];
            term = vload16(0, left);
        }
        lanes[e / 16 % 8] = lanes[e / 16 % 8] + tp_flush_v16(term);
    }
    return tp_flush(sum_of_lanes(lanes));
}

/* A row of scores becomes P (dropped and scaled), a row of d . v becomes dS. */
static inline void take_row(__global float *p, __global float *d_score, int columns, int first_key,
                            int keys, float scale, const sight *see,
                            const __global float *state DROP_ROW_PARAMS)
{
    const float largest = state[0], inverse = state[1], total = state[2];
    for (int v = 0; 16 * v < columns; v += 4) {
        DROP_WORDS(v)
        for (int i = 0; i < 4; i++) {
            const int16 seen = may_see(see, first_key + 16 * (v + i), keys);
            const float16 x = tp_flush_v16(vload16(v + i, p) * scale);
            const float16 share = tp_flush_v16(tp_math_exp_v16(x - largest) * inverse);
            const float16 d =
                tp_flush_v16(share * (DROP(vload16(v + i, d_score), i) - total));
            vstore16(select((float16)(0.0f), OPERAND_16(DROP(share, i)), seen), v + i, p);
            vstore16(select((float16)(0.0f), OPERAND_16(d), seen), v + i, d_score);
        }
    }
}

/* to[row * stride + e] = factor * from[row][e] */
static inline void put_rows(const __global float *from, int rows, int elems, float factor,
                            __global float *to, ulong stride)
{
    for (int row = 0; row < rows; row++, from += PAD(elems), to += stride) {
        int e = 0;
        for (; e + 16 <= elems; e += 16)
            vstore16(tp_flush_v16(tp_flush_v16(vload16(0, from + e)) * factor), 0, to + e);
        for (; e < elems; e++)
            to[e] = tp_flush(tp_flush(from[e]) * factor);
    }
}

__kernel void attention_grad(TP_TENSOR(const QUERY_TYPE, query), TP_TENSOR(const KEY_TYPE, key),
                             TP_TENSOR(const VALUE_TYPE, value), TP_TENSOR(const float, result),
                             TP_TENSOR(const D_TYPE, d),
#ifdef ATTENTION_MASK
                             TP_TENSOR(const uchar, mask), uint mask_batch, uint mask_head,
                             uint mask_query,
#endif
                             TP_TENSOR(float, to), TP_TENSOR(float, scratch), DROP_PARAMS float scale,
                             int batch, int queries, int keys, int heads, int shared, int depth,
                             int width, int is_causal, int window, int slice, int grid_z)
{
    const uint core = TP_CORE(grid_z);
    const int group = heads / shared, dp = PAD(depth), wp = PAD(width);
    const int all_queries = PAD(queries), all_keys = PAD(keys);
    const grad_scratch s =
        place_scratch(TP_AT(scratch, core) + (ulong)get_global_id(0) * (ulong)slice, all_queries,
                      all_keys, depth, width);
    __global float *d_query = TP_AT(to, core);
    __global float *d_key = d_query + (ulong)batch * queries * heads * depth;
    __global float *d_value = d_key + (ulong)batch * keys * shared * depth;
#ifdef ATTENTION_DROPOUT
    const tp_random_stream draws = DROP_STREAM;
#endif
    for (int unit = get_global_id(0); unit < batch * shared; unit += get_global_size(0)) {
        const int b = unit / shared, h_shared = unit % shared;
        const ulong key_row = (ulong)b * keys * shared + h_shared;
        clear(s.d_key, all_keys * dp);
        clear(s.d_value, all_keys * wp);
        for (int h = h_shared * group; h < (h_shared + 1) * group; h++) {
            const ulong row = (ulong)b * queries * heads + h;
            const __global D_TYPE *d_rows = TP_AT(d, core) + row * width;
            const __global float *seen = TP_AT(result, core) + row * (width + 2);
            QUERY_PACK(TP_AT(query, core) + row * depth, (ulong)heads * depth, queries, depth, s.query,
                       all_queries);
            D_PACK(d_rows, (ulong)heads * width, queries, width, s.d, all_queries);
            clear(s.d_query, all_queries * dp);
            for (int i = 0; i < queries; i++) {
                const __global float *at = seen + (ulong)i * heads * (width + 2);
                s.state[3 * i] = at[width];
                s.state[3 * i + 1] = at[width + 1];
                s.state[3 * i + 2] = row_product(d_rows + (ulong)i * heads * width, at, width);
            }
            for (int j = 0; j < keys; j += BLOCK) {
                const int block = min(BLOCK, keys - j), columns = PAD(block);
                if (!pattern_sees(0, queries, j, block, is_causal, window)) continue;
                KEY_PACK(TP_AT(key, core) + (key_row + (ulong)j * shared) * depth,
                         (ulong)shared * depth, block, depth, s.key, columns);
                VALUE_PACK(TP_AT(value, core) + (key_row + (ulong)j * shared) * width,
                           (ulong)shared * width, block, width, s.value, columns);
                turn_block(s.key, columns, depth, s.key_turned);
                turn_block(s.value, columns, width, s.value_turned);
                for (int i = 0; i < queries; i += BLOCK) {
                    const int rows = min(BLOCK, queries - i);
                    if (!pattern_sees(i, rows, j, block, is_causal, window)) continue;
                    product(s.query + i * dp, dp, 1, s.key_turned, BLOCK, depth, rows, columns, s.p,
                            BLOCK, PRODUCT_STORE, s.state);
                    product(s.d + i * wp, wp, 1, s.value_turned, BLOCK, width, rows, columns,
                            s.d_score, BLOCK, PRODUCT_STORE, s.state);
                    for (int r = 0; r < rows; r++) {
                        sight see = sight_of(i + r, queries, keys, is_causal, window);
#ifdef ATTENTION_MASK
                        see.mask = TP_AT(mask, core) + (ulong)b * mask_batch + (ulong)h * mask_head +
                                   (ulong)(i + r) * mask_query;
#endif
                        take_row(s.p + r * BLOCK, s.d_score + r * BLOCK, columns, j, keys, scale, &see,
                                 s.state + 3 * (i + r) DROP_ROW_PASS(
                                     ((uint)b * heads + h) * queries + i + r, j));
                    }
                    product(s.d_score, BLOCK, 1, s.key, dp, block, rows, dp, s.d_query + i * dp, dp,
                            PRODUCT_ADD, s.state);
                    product(s.d_score, 1, BLOCK, s.query + i * dp, dp, rows, block, dp, s.d_key + j * dp,
                            dp, PRODUCT_ADD, s.state);
                    product(s.p, 1, BLOCK, s.d + i * wp, wp, rows, block, wp, s.d_value + j * wp, wp,
                            PRODUCT_ADD, s.state);
                }
            }
            put_rows(s.d_query, queries, depth, scale, d_query + row * depth, (ulong)heads * depth);
        }
        put_rows(s.d_key, keys, depth, scale, d_key + key_row * depth, (ulong)shared * depth);
        put_rows(s.d_value, keys, width, 1.0f, d_value + key_row * width, (ulong)shared * width);
    }
}
