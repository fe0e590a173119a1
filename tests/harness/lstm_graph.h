/* SPDX-License-Identifier: Apache-2.0
 * An LSTM as graph code, in the form of torch.nn.LSTM (gates input, forget, cell, output; Hochreiter and
 * Schmidhuber, 1997, with the forget gate of Gers et al., 2000), for tests of loops.
 */
#ifndef TESTS_HARNESS_LSTM_GRAPH_H
#define TESTS_HARNESS_LSTM_GRAPH_H

#include "graph/builder.h"

typedef struct lstm_graph {
    int64_t turns, batch, features, units;
    const char *precision; /* of products */
    bool reverse;
    tp_node_id x, w, u,
        b; /* [turns, batch, features], [features, 4 units], [units, 4 units], [4 units] */
    tp_node_id h, c; /* [batch, units]: the state at first */
} lstm_graph;

static inline tp_node_id lstm_gate(tp_graph *g, const lstm_graph *lstm, tp_node_id z, int64_t gate)
{
    const int64_t start[] = {0, gate * lstm->units},
                  limit[] = {lstm->batch, (gate + 1) * lstm->units};
    return tp_op_slice(g, z, start, limit, NULL);
}

/* i, f, g, o = x w + h u + b; c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c') */
static inline void lstm_turn(void *user, tp_graph *g, const tp_node_id *carries,
                             const tp_node_id *slices, tp_node_id *out_next,
                             tp_node_id *out_stacked)
{
    const lstm_graph *lstm = user;
    const tp_node_id z =
        tp_op_add(g,
                  tp_op_add(g, tp_op_matmul(g, slices[0], lstm->w, lstm->precision),
                            tp_op_matmul(g, carries[0], lstm->u, lstm->precision)),
                  lstm->b);
    const tp_node_id i = tp_op_logistic(g, lstm_gate(g, lstm, z, 0));
    const tp_node_id f = tp_op_logistic(g, lstm_gate(g, lstm, z, 1));
    const tp_node_id cell = tp_op_tanh(g, lstm_gate(g, lstm, z, 2));
    const tp_node_id o = tp_op_logistic(g, lstm_gate(g, lstm, z, 3));
    out_next[1] = tp_op_add(g, tp_op_multiply(g, f, carries[1]), tp_op_multiply(g, i, cell));
    out_next[0] = tp_op_multiply(g, o, tp_op_tanh(g, out_next[1]));
    out_stacked[0] = out_next[0];
}

/* out_last: h and c after the last turn; out_stack: h of all turns, [turns, batch, units]. */
static inline void lstm_scan(tp_graph *g, lstm_graph *lstm, tp_node_id out_last[2],
                             tp_node_id *out_stack)
{
    const tp_node_id init[] = {lstm->h, lstm->c};
    const tp_scan scan = {.length = lstm->turns,
                          .reverse = lstm->reverse,
                          .init = init,
                          .xs = &lstm->x,
                          .carry_count = 2,
                          .xs_count = 1,
                          .stack_count = 1,
                          .body = lstm_turn,
                          .user = lstm};
    tp_op_scan(g, &scan, out_last, out_stack);
}

/* Fills in the node ids with inputs of the graph (x, h, c) and variables (w, u, b). */
static inline void lstm_ports(tp_graph *g, lstm_graph *lstm)
{
    const int64_t n = lstm->units;
    const tp_shape x = {3, {lstm->turns, lstm->batch, lstm->features}},
                   state = {2, {lstm->batch, n}};
    const tp_shape w = {2, {lstm->features, 4 * n}}, u = {2, {n, 4 * n}}, b = {1, {4 * n}};
    const tp_variable weight = {
        .init = TP_INIT_UNIFORM, .init_a = -1, .init_b = 1, .is_trainable = true};
    tp_variable v = weight;
    lstm->x = tp_graph_add_input(g, "x", TP_F32, x);
    lstm->h = tp_graph_add_input(g, "h", TP_F32, state);
    lstm->c = tp_graph_add_input(g, "c", TP_F32, state);
    v.dtype = TP_F32;
    v.name = "w", v.shape = w;
    lstm->w = tp_graph_add_variable(g, &v);
    v.name = "u", v.shape = u;
    lstm->u = tp_graph_add_variable(g, &v);
    v.name = "b", v.shape = b;
    lstm->b = tp_graph_add_variable(g, &v);
}

#endif
