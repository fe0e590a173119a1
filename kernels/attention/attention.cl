/* SPDX-License-Identifier: Apache-2.0
 * attention: what queries see, softmax(scale q . k) . v, block of keys by block of keys
 * computes  result[b][i][h] = the width values seen, the largest score, 1 / the sum of exponentials
 * layout    query [batch][queries][heads][depth], key [batch][keys][shared][depth],
 *           value [batch][keys][shared][width], mask: bytes, with a stride for batch, head and query,
 *           result [batch][queries][heads][width + 2]; scratch: `slice` floats for each work-item
 * requires  nothing
 * knobs     those of operands.clh and product.clh
 * work      x: work-items, each takes every x-th of the spans of `span` queries of one head (a multiple of 128, or all)
 * numerics  docs/precision.md, "Attention": whatever the tile, the span or the number of work-items
 * fallback  none: this is the only one
 */
#include "attention/operands.clh"
#include "attention/product.clh"

/* Scratch of one work-item, for a span of `span` queries. */
typedef struct span_scratch {
    __global float *query;  /* [span][PAD(depth)] */
    __global float *seen;   /* [span][PAD(width)] */
    __global float *state;  /* [span][2]: largest, sum */
    __global float *keep;   /* [128] */
    __global float *key;    /* [128][PAD(depth)] */
    __global float *turned; /* [PAD(depth)][128] */
    __global float *value;  /* [128][PAD(width)] */
    __global float *scores; /* [128][128] */
} span_scratch;

static inline span_scratch place_scratch(__global float *at, int span, int depth, int width)
{
    span_scratch s;
    s.query = at;
    s.seen = s.query + span * PAD(depth);
    s.state = s.seen + span * PAD(width);
    s.keep = s.state + span * 2;
    s.key = s.keep + BLOCK;
    s.turned = s.key + BLOCK * PAD(depth);
    s.value = s.turned + BLOCK * PAD(depth);
    s.scores = s.value + BLOCK * PAD(width);
    return s;
}

/* One row of scores becomes the operand of the second product. Returns what the row keeps of its sums. */
static inline float take_row(__global float *scores, int columns, int first_key, int keys,
                             float scale, const sight *see,
                             __global float *state DROP_ROW_PARAMS)
{
    float16 p[BLOCK / 16];
    int16 seen[BLOCK / 16];
    const float before = state[0];
    float16 most = before;
    for (int v = 0; v < BLOCK / 16; v++) {
        p[v] = 0.0f;
        if (16 * v >= columns) continue;
        p[v] = tp_flush_v16(vload16(v, scores) * scale);
        seen[v] = may_see(see, first_key + 16 * v, keys);
        most = select(most, p[v], seen[v] & (p[v] > most));
    }
    const float largest = largest_of_16(most);
    for (int v = 0; 16 * v < columns; v++)
        p[v] = select((float16)(0.0f), tp_math_exp_v16(p[v] - largest), seen[v]);
    const float keep = before == -INFINITY ? 0.0f : tp_math_exp(before - largest);
    state[0] = largest;
    state[1] = fma(state[1], keep, sum_of_lanes(p));
    for (int v = 0; 16 * v < columns; v += 4) {
        DROP_WORDS(v)
        for (int i = 0; i < 4; i++)
            vstore16(OPERAND_16(DROP(p[v + i], i)), v + i, scores);
    }
    return keep;
}

__kernel void attention(TP_TENSOR(const QUERY_TYPE, query), TP_TENSOR(const KEY_TYPE, key),
                        TP_TENSOR(const VALUE_TYPE, value),
#ifdef ATTENTION_MASK
                        TP_TENSOR(const uchar, mask), uint mask_batch, uint mask_head, uint mask_query,
#endif
                        TP_TENSOR(float, result), TP_TENSOR(float, scratch), DROP_PARAMS float scale,
                        int batch, int queries, int keys, int heads, int shared, int depth,
                        int width, int is_causal, int window, int span, int slice, int grid_z)
{
    const uint core = TP_CORE(grid_z);
    const int spans = (queries + span - 1) / span, units = batch * heads * spans;
    const int depth_pitch = PAD(depth), width_pitch = PAD(width);
    const span_scratch s = place_scratch(
        TP_AT(scratch, core) + (ulong)get_global_id(0) * (ulong)slice, span, depth, width);
#ifdef ATTENTION_DROPOUT
    const tp_random_stream draws = DROP_STREAM;
#endif
    for (int unit = get_global_id(0); unit < units; unit += get_global_size(0)) {
        const int z = unit / spans, b = z / heads, h = z % heads, from = unit % spans * span;
        const int count = min(span, queries - from), h_shared = h / (heads / shared);
        const int all = PAD(count);
        QUERY_PACK(TP_AT(query, core) + ((ulong)(b * (ulong)queries + from) * heads + h) * depth,
                   (ulong)heads * depth, count, depth, s.query, all);
        for (int i = 0; i < all * width_pitch; i += 16)
            vstore16((float16)(0.0f), 0, s.seen + i);
        for (int i = 0; i < all; i++) {
            s.state[2 * i] = -INFINITY;
            s.state[2 * i + 1] = 0.0f;
        }
        for (int j = 0; j < keys; j += BLOCK) {
            const int block = min(BLOCK, keys - j), columns = PAD(block);
            if (!pattern_sees(from, count, j, block, is_causal, window)) continue;
            const ulong row = ((ulong)b * keys + j) * shared + h_shared;
            KEY_PACK(TP_AT(key, core) + row * depth, (ulong)shared * depth, block, depth, s.key,
                     columns);
            turn_block(s.key, columns, depth, s.turned);
            VALUE_PACK(TP_AT(value, core) + row * width, (ulong)shared * width, block, width, s.value,
                       columns);
            for (int i = 0; i < count; i += BLOCK) {
                const int rows = min(BLOCK, count - i);
                if (!pattern_sees(from + i, rows, j, block, is_causal, window)) continue;
                product(s.query + i * depth_pitch, depth_pitch, 1, s.turned, BLOCK, depth, rows,
                        columns, s.scores, BLOCK, PRODUCT_STORE, s.keep);
                for (int r = 0; r < rows; r++) {
                    const int q = from + i + r;
                    sight see = sight_of(q, queries, keys, is_causal, window);
#ifdef ATTENTION_MASK
                    see.mask = TP_AT(mask, core) + (ulong)b * mask_batch + (ulong)h * mask_head +
                               (ulong)q * mask_query;
#endif
                    s.keep[r] = take_row(s.scores + r * BLOCK, columns, j, keys, scale, &see,
                                         s.state + 2 * (i + r) DROP_ROW_PASS(
                                             (uint)z * queries + q, j));
                }
                product(s.scores, BLOCK, 1, s.value, width_pitch, block, rows, width_pitch,
                        s.seen + i * width_pitch, width_pitch, PRODUCT_KEEP, s.keep);
            }
        }
        __global float *to =
            TP_AT(result, core) + ((ulong)(b * (ulong)queries + from) * heads + h) * (width + 2);
        for (int i = 0; i < count; i++, to += (ulong)heads * (width + 2)) {
            const float sum = s.state[2 * i + 1];
            const float inverse = sum == 0.0f ? 0.0f : tp_math_divide(1.0f, sum);
            const __global float *seen = s.seen + i * width_pitch;
            int e = 0;
            for (; e + 16 <= width; e += 16)
                vstore16(tp_flush_v16(vload16(0, seen + e) * inverse), 0, to + e);
            for (; e < width; e++)
                to[e] = tp_flush(seen[e] * inverse);
            to[width] = tp_flush(s.state[2 * i] + 0.0f);
            to[width + 1] = tp_flush(inverse);
        }
    }
}
