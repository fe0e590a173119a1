/* SPDX-License-Identifier: Apache-2.0
 * Attention of many kinds, small: edges of blocks, vectors and tiles, patterns, masks, shared heads, dropout. */
#ifndef TESTS_UNIT_OPS_ATTENTION_CASES_H
#define TESTS_UNIT_OPS_ATTENTION_CASES_H

#include "graph/autodiff.h"
#include "graph/builder.h"

typedef struct attention_case {
    const char *name;
    int64_t batch, queries, keys, heads, shared, depth, width;
    tp_attention_options options;
    int64_t mask[3]; /* batch, heads, queries of the mask; 0: none */
    tp_dtype dtype;
    const char *precision;
} attention_case;

static const attention_case attention_cases[] = {
    {"one", 1, 1, 1, 1, 1, 1, 1, {.scale = 1}, {0}, TP_F32, "f32"},
    {"edges", 1, 131, 137, 2, 2, 17, 19, {.scale = 0.25}, {0}, TP_F32, "f32"},
    {"bf16", 2, 67, 129, 2, 2, 16, 32, {.scale = 0.25}, {0}, TP_BF16, "default"},
    {"rounded", 1, 9, 30, 2, 1, 33, 15, {.scale = 0.2}, {0}, TP_F32, "default"},
    {"causal", 1, 260, 260, 1, 1, 8, 8, {.scale = 0.5, .is_causal = true}, {0}, TP_BF16, "default"},
    {"window", 1, 270, 290, 1, 1, 8, 4, {.scale = 0.5, .window = 9}, {0}, TP_F32, "f32"},
    {"both",
     1,
     150,
     150,
     2,
     1,
     8,
     8,
     {.scale = 0.5, .is_causal = true, .window = 20},
     {1, 2, 150},
     TP_F32,
     "f32"},
    {"padding", 3, 20, 140, 4, 2, 8, 8, {.scale = 0.3}, {3, 1, 1}, TP_BF16, "default"},
    {"masked", 2, 20, 35, 3, 3, 8, 8, {.scale = 0.3}, {1, 3, 20}, TP_F32, "f32"},
    {"dropped",
     2,
     40,
     150,
     4,
     2,
     8,
     8,
     {.scale = 0.3, .dropout = 0.25, .stream = 7},
     {2, 1, 1},
     TP_BF16,
     "default"},
    {"all_dropped",
     1,
     5,
     5,
     1,
     1,
     8,
     8,
     {.scale = 0.3, .dropout = 1},
     {1, 1, 1},
     TP_BF16,
     "default"},
    {"deep", 1, 5, 7, 1, 1, 300, 140, {.scale = 0.05}, {0}, TP_F32, "f32"},
};
enum { ATTENTION_CASES = sizeof attention_cases / sizeof attention_cases[0] };

/* Outputs: attention's whole result, and the gradients of the sum of what is seen, each element times a
 * number of its own. Inputs are q, k, v, w and, where there is one, the mask as f32: seen where above -0.5. */
static inline void attention_case_build(tp_graph *g, const attention_case *c)
{
    const tp_shape q_shape = {4, {c->batch, c->queries, c->heads, c->depth}};
    const tp_shape k_shape = {4, {c->batch, c->keys, c->shared, c->depth}};
    const tp_shape v_shape = {4, {c->batch, c->keys, c->shared, c->width}};
    const tp_shape w_shape = {4, {c->batch, c->queries, c->heads, c->width}};
    const tp_node_id inputs[] = {tp_graph_add_input(g, "q", TP_F32, q_shape),
                                 tp_graph_add_input(g, "k", TP_F32, k_shape),
                                 tp_graph_add_input(g, "v", TP_F32, v_shape)};
    const tp_node_id w = tp_graph_add_input(g, "w", TP_F32, w_shape);
    const tp_node_id q = tp_op_convert(g, inputs[0], c->dtype);
    const tp_node_id k = tp_op_convert(g, inputs[1], c->dtype);
    const tp_node_id v = tp_op_convert(g, inputs[2], c->dtype);
    tp_node_id mask = TP_NO_NODE, gradients[3];
    if (c->mask[0]) {
        const tp_shape shape = {4, {c->mask[0], c->mask[1], c->mask[2], c->keys}};
        mask = tp_op_compare(g, "GT", tp_graph_add_input(g, "mask", TP_F32, shape),
                             tp_op_scalar(g, TP_F32, -0.5));
    }
    const tp_node_id seen = tp_op_attention(g, q, k, v, mask, &c->options, c->precision);
    if (g->has_failed) return;
    tp_graph_add_output(g, "seen and statistics", tp_graph_node(g, seen)->inputs[0]);
    const tp_node_id loss = tp_op_reduce(g, tp_op_multiply(g, seen, w), "add", NULL, 0);
    tp_graph_gradients(g, loss, inputs, 3, gradients);
    tp_graph_add_output(g, "dq", gradients[0]);
    tp_graph_add_output(g, "dk", gradients[1]);
    tp_graph_add_output(g, "dv", gradients[2]);
}

#endif
