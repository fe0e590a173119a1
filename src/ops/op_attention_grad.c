/* SPDX-License-Identifier: Apache-2.0
 * attention_grad: the gradients of query, key and value from those of what was seen. Probabilities are made
 * again, a chunk of 128 queries by a block of 128 keys at a time, from the statistics that attention left
 * (Dao et al.: "FlashAttention" (2022), algorithm 4). With m_i the largest score of a row, r_i = 1 / its sum,
 * z_ij = 1 / (1 - dropout), or 0 where (i, j) was dropped:
 *     P_ij  = exp(x_ij - m_i) r_i             D_i   = sum over e of d_ie o_ie
 *     dP_ij = z_ij (d_i . v_j)                dS_ij = P_ij (dP_ij - D_i)
 *     dq_i  = scale * sum over j of dS_ij k_j
 *     dk_j  = scale * sum over i of dS_ij q_i
 *     dv_j  = sum over i of z_ij P_ij d_i
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/attrs.h"
#include "ops/attention_rows.h"
#include "ops/op_attention.h"
#include "ops/op_util.h"

static tpucl_status read(const tp_node *node, const tp_shape *const *shapes,
                         tp_attention_geometry *g)
{
    TP_TRY(tp_attention_geometry_read(node, shapes[0], shapes[1], shapes[2],
                                      node->input_count > 5 ? shapes[5] : NULL, g));
    const tp_shape result = {.rank = 4, .dims = {g->batch, g->queries, g->heads, g->width + 2}};
    tp_shape seen = result;
    seen.dims[3] = g->width;
    if (tp_shape_equal(shapes[3], &result) && tp_shape_equal(shapes[4], &seen)) return TPUCL_OK;
    char found[2][TP_SHAPE_TEXT_MAX], expected[2][TP_SHAPE_TEXT_MAX];
    tp_shape_format(shapes[3], found[0], sizeof found[0]);
    tp_shape_format(shapes[4], found[1], sizeof found[1]);
    tp_shape_format(&result, expected[0], sizeof expected[0]);
    tp_shape_format(&seen, expected[1], sizeof expected[1]);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "%s: the result of attention is %s and the gradient %s, expected %s and %s",
                   node->def->name, found[0], found[1], expected[0], expected[1]);
}

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape)
{
    const tp_shape *shapes[6] = {NULL};
    for (int32_t i = 0; i < node->input_count; i++) {
        const uint32_t allowed = i == 3   ? TP_DTYPE_BIT(TP_F32)
                                 : i == 5 ? TP_DTYPES_PRED
                                          : TP_DTYPES_FLOAT;
        TP_TRY(tp_op_check_dtype(graph, node, i, allowed));
        shapes[i] = &tp_op_input(graph, node, i)->shape;
    }
    tp_attention_geometry g;
    TP_TRY(read(node, shapes, &g));
    *out_dtype = TP_F32;
    *out_shape = (tp_shape){.rank = 1, .dims = {tp_attention_places_of(&g).end}};
    return TPUCL_OK;
}

/* Five products of queries x keys for each head. */
static double flops(const tp_graph *graph, const tp_node *node)
{
    const tp_shape *query = &tp_op_input(graph, node, 0)->shape;
    const tp_shape *value = &tp_op_input(graph, node, 2)->shape;
    return 2.0 * (double)tp_shape_elems(query) / (double)query->dims[3] * (double)value->dims[1] *
           (3.0 * (double)query->dims[3] + 2.0 * (double)value->dims[3]);
}

/* ---- evaluation ---- */

typedef struct gradients {
    const tp_attention_geometry *g;
    tp_attention_head head;
    float *result, *d;              /* [queries][width + 2], [queries][width] of the head */
    float *value_columns;           /* [width][keys of the block] */
    float *d_value_of, *d_score;    /* [128][128]: z P; dS */
    float *turned, *product;        /* [128][128]; [128][the larger of depth and width] */
    float *d_query, *d_key, *d_out; /* sums: [queries][depth], [keys][depth], [keys][width] */
} gradients;

/* to[columns][rows] */
static void turn(const float *from, int64_t rows, int64_t columns, float *to)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[c * rows + r] = from[r * columns + c];
}

/* sums[m][n] += a[m][k] b[k][n] */
static tpucl_status add_product(gradients *s, int64_t m, int64_t n, int64_t k, const float *a,
                                const float *b, float *sums)
{
    TP_TRY(tp_mxu_matmul(s->g->precision, m, n, k, a, b, s->product));
    for (int64_t i = 0; i < m * n; i++)
        sums[i] = sums[i] + s->product[i];
    return TPUCL_OK;
}

static float row_product(const tp_attention_geometry *g, const float *d, const float *seen)
{
    tp_vpu_reduction sum;
    tp_vpu_reduction_begin(&sum, TP_REDUCE_ADD);
    for (int64_t e = 0; e < g->width; e++)
        tp_vpu_reduction_add(&sum, tp_flush(d[e] * seen[e]));
    return tp_vpu_reduction_end(&sum);
}

/* z P and dS of a chunk by a block, from d . v in d_score and scores in d_value_of. */
static void make_rows(gradients *s, int64_t first, int64_t count, int64_t from, int64_t keys)
{
    const tp_attention_geometry *g = s->g;
    for (int64_t r = 0; r < count; r++) {
        const float *result = s->result + (first + r) * (g->width + 2);
        const float largest = result[g->width], inverse = result[g->width + 1];
        const float total = row_product(g, s->d + (first + r) * g->width, result);
        for (int64_t j = 0; j < keys; j++) {
            float *score = s->d_value_of + r * keys + j, *d = s->d_score + r * keys + j;
            if (!tp_attention_may_see(g, &s->head, first + r, from + j)) {
                *score = *d = 0.0f;
                continue;
            }
            const float p = tp_flush(tp_math_exp(*score - largest) * inverse);
            *score = tp_attention_drop(g, &s->head, first + r, from + j, p);
            *d = tp_flush(p * (tp_attention_drop(g, &s->head, first + r, from + j, *d) - total));
        }
    }
}

static tpucl_status add_pair(gradients *s, int64_t first, int64_t count, int64_t block)
{
    const tp_attention_geometry *g = s->g;
    const int64_t from = block * TP_ATTENTION_BLOCK, keys = tp_attention_block_keys(g, block);
    const float *value = s->head.value + from * g->width, *d = s->d + first * g->width;
    if (!tp_attention_sees(g, first, count, from, keys)) return TPUCL_OK;
    turn(value, keys, g->width, s->value_columns);
    TP_TRY(tp_attention_scores(g, &s->head, first, count, block, s->d_value_of));
    TP_TRY(tp_mxu_matmul(g->precision, count, keys, g->width, d, s->value_columns, s->d_score));
    make_rows(s, first, count, from, keys);
    TP_TRY(add_product(s, count, g->depth, keys, s->d_score, s->head.key + from * g->depth,
                       s->d_query + first * g->depth));
    turn(s->d_score, count, keys, s->turned);
    TP_TRY(add_product(s, keys, g->depth, count, s->turned, s->head.query + first * g->depth,
                       s->d_key + from * g->depth));
    turn(s->d_value_of, count, keys, s->turned);
    return add_product(s, keys, g->width, count, s->turned, d, s->d_out + from * g->width);
}

/* out[at + ((batch * rows + row) * heads + head) * elems + e] = factor * sums[row][e] */
static void store(tp_host_tensor *out, int64_t at, int64_t batch, int64_t rows, int64_t heads,
                  int64_t head, int64_t elems, float factor, const float *sums)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t e = 0; e < elems; e++)
            tp_host_store(out, at + ((batch * rows + row) * heads + head) * elems + e,
                          tp_flush(*sums++) * factor);
}

/* All query heads that share a head of keys, in rising order. */
static tpucl_status evaluate_shared(gradients *s, const tp_host_tensor *inputs,
                                    const tp_host_tensor *mask, const tp_eval_context *context,
                                    int64_t batch, int64_t shared, tp_host_tensor *out)
{
    const tp_attention_geometry *g = s->g;
    const tp_attention_places places = tp_attention_places_of(g);
    const int64_t group = g->heads / g->shared;
    memset(s->d_key, 0, (size_t)(g->keys * g->depth) * sizeof(float));
    memset(s->d_out, 0, (size_t)(g->keys * g->width) * sizeof(float));
    for (int64_t head = shared * group; head < (shared + 1) * group; head++) {
        tp_attention_head_load(&s->head, g, inputs, mask, context, batch, head);
        tp_attention_load_rows(&inputs[3], batch, head, g->width + 2, s->result);
        tp_attention_load_rows(&inputs[4], batch, head, g->width, s->d);
        memset(s->d_query, 0, (size_t)(g->queries * g->depth) * sizeof(float));
        for (int64_t block = 0; block * TP_ATTENTION_BLOCK < g->keys; block++)
            for (int64_t first = 0; first < g->queries; first += TP_ATTENTION_BLOCK) {
                const int64_t left = g->queries - first;
                const int64_t count = left < TP_ATTENTION_BLOCK ? left : TP_ATTENTION_BLOCK;
                TP_TRY(add_pair(s, first, count, block));
            }
        store(out, places.query, batch, g->queries, g->heads, head, g->depth, g->scale, s->d_query);
    }
    store(out, places.key, batch, g->keys, g->shared, shared, g->depth, g->scale, s->d_key);
    store(out, places.value, batch, g->keys, g->shared, shared, g->width, 1.0f, s->d_out);
    return TPUCL_OK;
}

static tpucl_status evaluate(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *context, tp_host_tensor *out)
{
    tp_attention_geometry g;
    const tp_shape *shapes[6] = {NULL};
    for (int32_t i = 0; i < node->input_count; i++)
        shapes[i] = &inputs[i].shape;
    TP_TRY(read(node, shapes, &g));
    const tp_host_tensor *mask = node->input_count > 5 ? &inputs[5] : NULL;
    const int64_t block = TP_ATTENTION_BLOCK, larger = g.depth > g.width ? g.depth : g.width;
    const int64_t sizes[] = {g.queries * (g.width + 2),
                             g.queries * g.width,
                             block * g.width,
                             block * block,
                             block * block,
                             block * block,
                             block * larger,
                             g.queries * g.depth,
                             g.keys * g.depth,
                             g.keys * g.width};
    int64_t total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        total += sizes[i];
    gradients s = {.g = &g};
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    float *memory = TP_NEW_ARRAY(float, (size_t)total), *at = memory;
    float **const parts[] = {&s.result, &s.d,       &s.value_columns, &s.d_value_of, &s.d_score,
                             &s.turned, &s.product, &s.d_query,       &s.d_key,      &s.d_out};
    if (!memory) goto done;
    TP_TRY_GOTO(status, tp_attention_head_init(&s.head, &g), done);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *parts[i] = at;
        at += sizes[i];
    }
    status = TPUCL_OK;
    for (int64_t z = 0; z < g.batch * g.shared && status == TPUCL_OK; z++)
        status = evaluate_shared(&s, inputs, mask, context, z / g.shared, z % g.shared, out);
done:
    tp_attention_head_deinit(&s.head);
    tp_free(memory);
    return status;
}

const tp_opdef tp_opdef_attention_grad = {
    .name = "attention_grad",
    .op_class = TP_OP_MEMORY,
    .min_inputs = 5,
    .max_inputs = 6,
    .doc = "Gradients of attention's query, key and value, one after the other in one dimension, "
           "from the operands, attention's result, the gradient of what was seen, and the mask.",
    .attrs = tp_attention_attrs,
    .infer = infer,
    .evaluate = evaluate,
    .depends_on_core = true, /* with dropout */
    .flops = flops,
};
