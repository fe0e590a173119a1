/* SPDX-License-Identifier: Apache-2.0
 * What LSTM, GRU, SimpleRNN and Bidirectional share: arguments, weights, and the loop over time. A cell says
 * what happens in one turn.
 *
 * Products with the input are made for all times at once, in front of the loop, bias included; so the loop
 * has the product with the state only, and the gradient of each kernel is one product. Sums, gates and what a
 * cell remembers for itself (the c of an LSTM) are f32; the output h is rounded to the layer's dtype, and so
 * the next turn reads it.
 */
#ifndef TP_MODEL_LAYER_RNN_H
#define TP_MODEL_LAYER_RNN_H

#include "model/layer.h"

enum { TP_RNN_MAX_STATES = 2, TP_RNN_MAX_GATES = 4 };

typedef struct tp_rnn_args {
    int64_t units;
    int32_t activation, recurrent_activation;
    bool use_bias, unit_forget_bias, reset_after;
    tp_initializer kernel_initializer, recurrent_initializer, bias_initializer;
    tp_regularizer kernel_regularizer, recurrent_regularizer, bias_regularizer,
        activity_regularizer;
    tp_constraint kernel_constraint, recurrent_constraint, bias_constraint;
    double dropout, recurrent_dropout;
    bool return_sequences, return_state, go_backwards, stateful, unroll, zero_output_for_mask;
    /* Set by Bidirectional: outputs of a layer that goes backwards in the order of time all the same. */
    bool keeps_order;
    /* Kept by infer: of the bias. */
    tp_initializer resolved_bias;
} tp_rnn_args;

/* What a cell has in a turn. */
typedef struct tp_rnn_turn {
    tp_graph *graph;
    const tp_rnn_args *args;
    tp_node_id x;              /* f32 [batch, gates * units]: the input's product, and bias */
    const tp_node_id *states;  /* [batch, units]; [0], h, is in the layer's dtype, others f32 */
    tp_node_id recurrent_bias; /* f32 [gates * units]; TP_NO_NODE */
    void *loop;                /* for tp_rnn_recurrent */
} tp_rnn_turn;

typedef struct tp_rnn_cell {
    int32_t gates, states;
    bool has_two_biases;                                           /* GRU with reset_after */
    void (*turn)(const tp_rnn_turn *turn, tp_node_id *out_states); /* f32 [batch, units] */
} tp_rnn_cell;

/* state . recurrent kernel of gates first .. first + count - 1, f32 [batch, count * units], after the state's
 * dropout. */
tp_node_id tp_rnn_recurrent(const tp_rnn_turn *turn, tp_node_id state, int32_t first,
                            int32_t count);
/* Columns of gates first .. first + count - 1 of [..., gates * units]. */
tp_node_id tp_rnn_gates(tp_graph *graph, const tp_rnn_args *args, tp_node_id z, int32_t first,
                        int32_t count);
/* activation, or the recurrent one, of f32. */
tp_node_id tp_rnn_activate(const tp_rnn_turn *turn, int32_t activation, tp_node_id z);

/* Functions of a layer type. */
void tp_rnn_set_defaults(void *args);
bool tp_rnn_infer(tp_layer *layer, const tp_rnn_cell *cell, tp_problems *problems);
void tp_rnn_build(tp_layer_context *context, const tp_layer *layer, const tp_rnn_cell *cell,
                  const tp_node_id *inputs, tp_node_id *outputs);

/* Is it one of the recurrent layers, whose arguments are a tp_rnn_args? */
bool tp_rnn_is_type(const tp_layer_type *type);

/* Rows of the tables of arguments. */
#define TP_RNN_ROWS                                                                                \
    {"units", offsetof(tp_rnn_args, units), TP_LAYER_INT, TP_LAYER_REQUIRED,                       \
     TP_LAYER_RANGE(1, 1 << 24)},                                                                  \
        TP_LAYER_ROW_ACTIVATION(tp_rnn_args, activation),                                          \
        TP_LAYER_ROW_BOOL(tp_rnn_args, use_bias),                                                  \
        TP_LAYER_ROW_INITIALIZER(tp_rnn_args, kernel_initializer),                                 \
        TP_LAYER_ROW_INITIALIZER(tp_rnn_args, recurrent_initializer),                              \
        TP_LAYER_ROW_INITIALIZER(tp_rnn_args, bias_initializer),                                   \
        TP_LAYER_ROW_REGULARIZER(tp_rnn_args, kernel_regularizer),                                 \
        TP_LAYER_ROW_REGULARIZER(tp_rnn_args, recurrent_regularizer),                              \
        TP_LAYER_ROW_REGULARIZER(tp_rnn_args, bias_regularizer),                                   \
        TP_LAYER_ROW_REGULARIZER(tp_rnn_args, activity_regularizer),                               \
        TP_LAYER_ROW_CONSTRAINT(tp_rnn_args, kernel_constraint),                                   \
        TP_LAYER_ROW_CONSTRAINT(tp_rnn_args, recurrent_constraint),                                \
        TP_LAYER_ROW_CONSTRAINT(tp_rnn_args, bias_constraint),                                     \
        TP_LAYER_ROW_NUMBER(tp_rnn_args, dropout, 0, 1),                                           \
        TP_LAYER_ROW_NUMBER(tp_rnn_args, recurrent_dropout, 0, 1),                                 \
        TP_LAYER_ROW_BOOL(tp_rnn_args, return_sequences),                                          \
        TP_LAYER_ROW_BOOL(tp_rnn_args, return_state),                                              \
        TP_LAYER_ROW_BOOL(tp_rnn_args, go_backwards), TP_LAYER_ROW_BOOL(tp_rnn_args, stateful),    \
        TP_LAYER_ROW_BOOL(tp_rnn_args, unroll),                                                    \
        TP_LAYER_ROW_BOOL(tp_rnn_args, zero_output_for_mask)
#define TP_RNN_ROW_RECURRENT_ACTIVATION TP_LAYER_ROW_ACTIVATION(tp_rnn_args, recurrent_activation)

#endif
