/* SPDX-License-Identifier: Apache-2.0
 * LSTM (Hochreiter and Schmidhuber, 1997; gates i f c o), GRU (Cho et al., 2014; gates z r h) and SimpleRNN, in
 * the forms that Keras 3 has (keras/src/layers/rnn).
 */
#include "model/layer_rnn.h"

/* ---- LSTM ---- */

/* c' = f c + i act(c~); h' = o act(c') */
static void turn_lstm(const tp_rnn_turn *turn, tp_node_id *out_states)
{
    tp_graph *graph = turn->graph;
    const tp_rnn_args *args = turn->args;
    const tp_node_id z = tp_op_add(graph, turn->x, tp_rnn_recurrent(turn, turn->states[0], 0, 4));
    tp_node_id gates[4];
    for (int32_t i = 0; i < 4; i++)
        gates[i] = tp_rnn_activate(turn, i == 2 ? args->activation : args->recurrent_activation,
                                   tp_rnn_gates(graph, args, z, i, 1));
    const tp_node_id c = tp_op_add(graph, tp_op_multiply(graph, gates[1], turn->states[1]),
                                   tp_op_multiply(graph, gates[0], gates[2]));
    out_states[0] = tp_op_multiply(graph, gates[3], tp_rnn_activate(turn, args->activation, c));
    out_states[1] = c;
}

static const tp_rnn_cell lstm_cell = {.gates = 4, .states = 2, .turn = turn_lstm};

static const tp_layer_arg lstm_arguments[] = {
    TP_RNN_ROWS,
    TP_RNN_ROW_RECURRENT_ACTIVATION,
    TP_LAYER_ROW_BOOL(tp_rnn_args, unit_forget_bias),
    {0},
};

static void set_lstm_defaults(void *args)
{
    tp_rnn_set_defaults(args);
    ((tp_rnn_args *)args)->unit_forget_bias = true;
}

static bool infer_lstm(tp_layer *layer, tp_problems *problems)
{
    return tp_rnn_infer(layer, &lstm_cell, problems);
}

static void build_lstm(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                       tp_node_id *outputs)
{
    tp_rnn_build(context, layer, &lstm_cell, inputs, outputs);
}

/* ---- GRU ---- */

/* h' = z h + (1 - z) act(x_h + r (h U_h + b)), or with r in front of the product: (r h) U_h */
static void turn_gru(const tp_rnn_turn *turn, tp_node_id *out_states)
{
    tp_graph *graph = turn->graph;
    const tp_rnn_args *args = turn->args;
    const bool is_after = args->reset_after;
    const tp_node_id h = tp_op_convert(graph, turn->states[0], TP_F32);
    tp_node_id inner = tp_rnn_recurrent(turn, turn->states[0], 0, is_after ? 3 : 2);
    if (turn->recurrent_bias != TP_NO_NODE) inner = tp_op_add(graph, inner, turn->recurrent_bias);
    const tp_node_id both =
        tp_rnn_activate(turn, args->recurrent_activation,
                        tp_op_add(graph, tp_rnn_gates(graph, args, turn->x, 0, 2),
                                  tp_rnn_gates(graph, args, inner, 0, 2)));
    const tp_node_id z = tp_rnn_gates(graph, args, both, 0, 1);
    const tp_node_id r = tp_rnn_gates(graph, args, both, 1, 1);
    const tp_node_id recurrent =
        is_after ? tp_op_multiply(graph, r, tp_rnn_gates(graph, args, inner, 2, 1))
                 : tp_rnn_recurrent(turn, tp_op_multiply(graph, r, h), 2, 1);
    const tp_node_id candidate =
        tp_rnn_activate(turn, args->activation,
                        tp_op_add(graph, tp_rnn_gates(graph, args, turn->x, 2, 1), recurrent));
    const tp_node_id one = tp_op_scalar(graph, TP_F32, 1);
    out_states[0] = tp_op_add(graph, tp_op_multiply(graph, z, h),
                              tp_op_multiply(graph, tp_op_subtract(graph, one, z), candidate));
}

static const tp_layer_arg gru_arguments[] = {
    TP_RNN_ROWS,
    TP_RNN_ROW_RECURRENT_ACTIVATION,
    TP_LAYER_ROW_BOOL(tp_rnn_args, reset_after),
    {0},
};

static void set_gru_defaults(void *args)
{
    tp_rnn_set_defaults(args);
    ((tp_rnn_args *)args)->reset_after = true;
}

static tp_rnn_cell gru_cell(const tp_layer *layer)
{
    return (tp_rnn_cell){.gates = 3,
                         .states = 1,
                         .has_two_biases = ((const tp_rnn_args *)layer->args)->reset_after,
                         .turn = turn_gru};
}

static bool infer_gru(tp_layer *layer, tp_problems *problems)
{
    const tp_rnn_cell cell = gru_cell(layer);
    return tp_rnn_infer(layer, &cell, problems);
}

static void build_gru(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                      tp_node_id *outputs)
{
    const tp_rnn_cell cell = gru_cell(layer);
    tp_rnn_build(context, layer, &cell, inputs, outputs);
}

/* ---- SimpleRNN ---- */

/* h' = act(x + h U) */
static void turn_simple(const tp_rnn_turn *turn, tp_node_id *out_states)
{
    const tp_node_id recurrent = tp_rnn_recurrent(turn, turn->states[0], 0, 1);
    out_states[0] =
        tp_rnn_activate(turn, turn->args->activation, tp_op_add(turn->graph, turn->x, recurrent));
}

static const tp_rnn_cell simple_cell = {.gates = 1, .states = 1, .turn = turn_simple};

static const tp_layer_arg simple_arguments[] = {TP_RNN_ROWS, {0}};

static bool infer_simple(tp_layer *layer, tp_problems *problems)
{
    return tp_rnn_infer(layer, &simple_cell, problems);
}

static void build_simple(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                         tp_node_id *outputs)
{
    tp_rnn_build(context, layer, &simple_cell, inputs, outputs);
}

bool tp_rnn_is_type(const tp_layer_type *type)
{
    return type == &tp_layer_lstm || type == &tp_layer_gru || type == &tp_layer_simple_rnn;
}

const tp_layer_type tp_layer_lstm = {.name = "LSTM",
                                     .snake = "lstm",
                                     .arguments = lstm_arguments,
                                     .args_bytes = sizeof(tp_rnn_args),
                                     .max_inputs = 3,
                                     .set_defaults = set_lstm_defaults,
                                     .infer = infer_lstm,
                                     .mask = TP_LAYER_MASK_OWN,
                                     .build = build_lstm};
const tp_layer_type tp_layer_gru = {.name = "GRU",
                                    .snake = "gru",
                                    .arguments = gru_arguments,
                                    .args_bytes = sizeof(tp_rnn_args),
                                    .max_inputs = 2,
                                    .set_defaults = set_gru_defaults,
                                    .infer = infer_gru,
                                    .mask = TP_LAYER_MASK_OWN,
                                    .build = build_gru};
const tp_layer_type tp_layer_simple_rnn = {.name = "SimpleRNN",
                                           .snake = "simple_rnn",
                                           .arguments = simple_arguments,
                                           .args_bytes = sizeof(tp_rnn_args),
                                           .max_inputs = 2,
                                           .set_defaults = tp_rnn_set_defaults,
                                           .infer = infer_simple,
                                           .mask = TP_LAYER_MASK_OWN,
                                           .build = build_simple};
