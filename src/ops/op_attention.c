/* SPDX-License-Identifier: Apache-2.0
 * attention: rule, gradient and evaluation; attention_grad is in op_attention_grad.c, what both share in
 * attention_rows.h, shapes in graph/attention.h.
 *
 * For each query i and block b of 128 keys, in rising order, with x_j = scale * (q_i . k_j) and the largest of
 * all scores so far m, their sum l and what is seen o (m = -inf, l = 0, o = 0 before the first block):
 *     m' = max(m, largest x_j of the block)        a = exp(m - m')
 *     p_j = exp(x_j - m')                          l = l a + sum of p_j
 *     o = o a + sum of p_j v_j
 * and in the end o / l. Milakov, Gimelshein: "Online normalizer calculation for softmax" (2018), algorithm 3;
 * Dao, Fu, Ermon, Rudra, Re: "FlashAttention" (2022), algorithm 1. docs/precision.md has every rounding.
 */
#include "ops/op_attention.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/attention.h"
#include "graph/attrs.h"
#include "graph/builder.h"
#include "ops/attention_rows.h"
#include "ops/op_util.h"
#include "ops/product.h"

static tpucl_status check_dtypes(const tp_graph *graph, const tp_node *node)
{
    for (int32_t i = 0; i < 3; i++)
        TP_TRY(tp_op_check_dtype(graph, node, i, TP_DTYPES_FLOAT));
    return node->input_count > 3 ? tp_op_check_dtype(graph, node, 3, TP_DTYPES_PRED) : TPUCL_OK;
}

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape)
{
    TP_TRY(check_dtypes(graph, node));
    tp_attention_geometry g;
    const tp_shape *mask = node->input_count > 3 ? &tp_op_input(graph, node, 3)->shape : NULL;
    TP_TRY(tp_attention_geometry_read(node, &tp_op_input(graph, node, 0)->shape,
                                      &tp_op_input(graph, node, 1)->shape,
                                      &tp_op_input(graph, node, 2)->shape, mask, &g));
    *out_dtype = TP_F32;
    *out_shape = (tp_shape){.rank = 4, .dims = {g.batch, g.queries, g.heads, g.width + 2}};
    return TPUCL_OK;
}

/* Two products of queries x keys for each head. */
static double flops(const tp_graph *graph, const tp_node *node)
{
    const tp_shape *query = &tp_op_input(graph, node, 0)->shape;
    const tp_shape *value = &tp_op_input(graph, node, 2)->shape;
    return 2.0 * (double)tp_shape_elems(query) / (double)query->dims[3] * (double)value->dims[1] *
           (double)(query->dims[3] + value->dims[3]);
}

/* ---- gradient ---- */

/* The first `width` of the last axis of d: what was seen. The statistics pass nothing on. */
static tp_node_id seen_part(tp_graph *graph, tp_node_id d, int64_t width)
{
    const tp_node node = *tp_graph_node(graph, d);
    if (tp_node_is(&node, "pad") && tp_graph_node(graph, node.inputs[0])->shape.dims[3] == width)
        return node.inputs[0]; /* the slice of tp_op_attention gives the pad */
    int64_t start[4] = {0}, limit[4];
    for (int32_t i = 0; i < 4; i++)
        limit[i] = i < 3 ? node.shape.dims[i] : width;
    return tp_op_slice(graph, d, start, limit, NULL);
}

static tp_node_id part(tp_graph *graph, tp_node_id all, int64_t from, tp_node_id like)
{
    const tp_node node = *tp_graph_node(graph, like);
    const int64_t to = from + tp_shape_elems(&node.shape);
    const tp_node_id flat = tp_op_slice(graph, all, &from, &to, NULL);
    return tp_op_convert(graph, tp_op_reshape(graph, flat, node.shape), node.dtype);
}

static void gradient(tp_graph *graph, tp_node_id id, tp_node_id d_result, tp_node_id *d_inputs)
{
    const tp_node node = *tp_graph_node(graph, id); /* a copy: adding nodes may move them */
    const tp_shape *mask = node.input_count > 3 ? &tp_op_input(graph, &node, 3)->shape : NULL;
    tp_attention_geometry g;
    if (tp_attention_geometry_read(&node, &tp_op_input(graph, &node, 0)->shape,
                                   &tp_op_input(graph, &node, 1)->shape,
                                   &tp_op_input(graph, &node, 2)->shape, mask, &g) != TPUCL_OK) {
        tp_graph_keep_error(graph);
        return;
    }
    tp_node_id inputs[6] = {node.inputs[0], node.inputs[1], node.inputs[2], id};
    inputs[4] = tp_product_operand(graph, seen_part(graph, d_result, g.width));
    inputs[5] = mask ? node.inputs[3] : TP_NO_NODE;
    const tp_node_id all =
        tp_graph_add(graph, "attention_grad", inputs, mask ? 6 : 5, node.attrs, node.attr_count);
    const tp_attention_places places = tp_attention_places_of(&g);
    const int64_t from[] = {places.query, places.key, places.value};
    for (int32_t i = 0; i < 3; i++)
        d_inputs[i] = part(graph, all, from[i], node.inputs[i]);
}

/* ---- evaluation ---- */

/* One head's rows first .. first + count - 1 against one block; see attention_rows.h. */
static tpucl_status take_block(const tp_attention_geometry *g, const tp_attention_head *head,
                               int64_t first, int64_t count, int64_t block, float *sums,
                               tp_attention_state *state)
{
    const int64_t keys = tp_attention_block_keys(g, block);
    const int64_t from = block * TP_ATTENTION_BLOCK;
    float *x = head->scores;
    TP_TRY(tp_attention_scores(g, head, first, count, block, x));
    for (int64_t r = 0; r < count; r++) {
        float *row = x + r * keys, p[TP_ATTENTION_BLOCK] = {0};
        const float before = state[r].largest;
        float largest = before;
        for (int64_t j = 0; j < keys; j++)
            if (tp_attention_may_see(g, head, first + r, from + j) && row[j] > largest)
                largest = row[j];
        for (int64_t j = 0; j < keys; j++)
            if (tp_attention_may_see(g, head, first + r, from + j))
                p[j] = tp_math_exp(row[j] - largest);
        state[r].keep = before == -INFINITY ? 0.0f : tp_math_exp(before - largest);
        state[r].largest = largest;
        state[r].sum = fmaf(state[r].sum, state[r].keep,
                            tp_vpu_reduce(TP_REDUCE_ADD, p, TP_ATTENTION_BLOCK, 1));
        for (int64_t j = 0; j < keys; j++)
            row[j] = tp_attention_drop(g, head, first + r, from + j, p[j]);
    }
    TP_TRY(
        tp_mxu_matmul(g->precision, count, g->width, keys, x, head->value + from * g->width, sums));
    for (int64_t r = 0; r < count; r++)
        for (int64_t e = 0; e < g->width; e++)
            state[r].seen[e] = fmaf(state[r].seen[e], state[r].keep, sums[r * g->width + e]);
    return TPUCL_OK;
}

static tpucl_status evaluate_chunk(const tp_attention_geometry *g, const tp_attention_head *head,
                                   int64_t first, float *sums, tp_attention_state *state,
                                   tp_host_tensor *out)
{
    const int64_t left = g->queries - first;
    const int64_t count = left < TP_ATTENTION_BLOCK ? left : TP_ATTENTION_BLOCK;
    for (int64_t r = 0; r < count; r++) {
        state[r].largest = -INFINITY;
        state[r].sum = 0.0f;
        memset(state[r].seen, 0, (size_t)g->width * sizeof(float));
    }
    for (int64_t block = 0; block * TP_ATTENTION_BLOCK < g->keys; block++)
        if (tp_attention_sees(g, first, count, block * TP_ATTENTION_BLOCK,
                              tp_attention_block_keys(g, block)))
            TP_TRY(take_block(g, head, first, count, block, sums, state));
    for (int64_t r = 0; r < count; r++) {
        const int64_t at =
            ((head->batch * g->queries + first + r) * g->heads + head->number) * (g->width + 2);
        const float inverse = state[r].sum == 0.0f ? 0.0f : tp_math_divide(1.0f, state[r].sum);
        for (int64_t e = 0; e < g->width; e++)
            tp_host_store(out, at + e, state[r].seen[e] * inverse);
        tp_host_store(out, at + g->width, state[r].largest + 0.0f);
        tp_host_store(out, at + g->width + 1, inverse);
    }
    return TPUCL_OK;
}

static tpucl_status evaluate(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *context, tp_host_tensor *out)
{
    tp_attention_geometry g;
    const tp_host_tensor *mask = node->input_count > 3 ? &inputs[3] : NULL;
    TP_TRY(tp_attention_geometry_read(node, &inputs[0].shape, &inputs[1].shape, &inputs[2].shape,
                                      mask ? &mask->shape : NULL, &g));
    tp_attention_head head = {0};
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    float *sums = TP_NEW_ARRAY(float, (size_t)(2 * TP_ATTENTION_BLOCK * g.width));
    tp_attention_state state[TP_ATTENTION_BLOCK];
    if (!sums) goto done;
    TP_TRY_GOTO(status, tp_attention_head_init(&head, &g), done);
    for (int64_t r = 0; r < TP_ATTENTION_BLOCK; r++)
        state[r].seen = sums + (TP_ATTENTION_BLOCK + r) * g.width;
    for (int64_t z = 0; z < g.batch * g.heads; z++) {
        tp_attention_head_load(&head, &g, inputs, mask, context, z / g.heads, z % g.heads);
        for (int64_t first = 0; first < g.queries; first += TP_ATTENTION_BLOCK)
            TP_TRY_GOTO(status, evaluate_chunk(&g, &head, first, sums, state, out), done);
    }
    status = TPUCL_OK;
done:
    tp_attention_head_deinit(&head);
    tp_free(sums);
    return status;
}

const tp_attr_spec tp_attention_attrs[] = {
    {"scale", TP_ATTR_FLOAT, true, NULL, "factor of the scores, default 1"},
    {"causal", TP_ATTR_INT, true, NULL, "1: query i sees keys up to i"},
    {"window", TP_ATTR_INT, true, NULL, "query i sees keys nearer than this; default 0: all"},
    {"dropout", TP_ATTR_FLOAT, true, NULL, "share of the probabilities dropped, default 0"},
    {"stream", TP_ATTR_INT, true, NULL, "of the random numbers of dropout, default 0"},
    {"precision", TP_ATTR_TEXT, true, "default|f32", "bf16 operands, or f32 multiply-adds"},
    {0}};

const tp_opdef tp_opdef_attention = {
    .name = "attention",
    .op_class = TP_OP_MEMORY,
    .min_inputs = 3,
    .max_inputs = 4,
    .doc = "softmax(scale query . key) . value of [batch, time, heads, features], in blocks of 128 "
           "keys; a pred mask [batch, heads, queries, keys] may broadcast. Behind the values the "
           "last axis has the largest score and 1 / the sum of the exponentials.",
    .attrs = tp_attention_attrs,
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .depends_on_core = true, /* with dropout */
    .flops = flops,
};
