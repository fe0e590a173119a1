/* SPDX-License-Identifier: Apache-2.0
 * The loop over time of recurrent layers: see layer_rnn.h. Times come first in it, [time, batch, ...].
 *
 * Masks as in Keras: where a step is masked the states stay as they are, and the output is the one before
 * (zero at first), or zero with zero_output_for_mask.
 *
 * Dropout as in Keras: one mask for all times. With recurrent_dropout each gate has masks of its own, for the
 * input too.
 */
#include "model/layer_rnn.h"

typedef struct rnn_loop {
    tp_layer_context *context;
    tp_graph *graph;
    const tp_rnn_args *args;
    const tp_rnn_cell *cell;
    int64_t time;
    tp_node_id kernel, recurrent_kernel, bias, recurrent_bias; /* biases may be TP_NO_NODE */
    /* pred [batch, units]: where the state is kept, one for all gates or one each. */
    tp_node_id kept[TP_RNN_MAX_GATES];
    int32_t kept_count; /* 0: no dropout */
} rnn_loop;

/* ---- inference ---- */

void tp_rnn_set_defaults(void *args)
{
    tp_rnn_args *rnn = args;
    rnn->activation = TP_ACTIVATION_TANH;
    rnn->recurrent_activation = TP_ACTIVATION_SIGMOID;
    rnn->use_bias = true;
    rnn->kernel_initializer = tp_initializer_default("glorot_uniform");
    rnn->recurrent_initializer = tp_initializer_default("orthogonal");
    rnn->bias_initializer = tp_initializer_default("zeros");
}

static bool check_arguments(const tp_layer *layer, const tp_rnn_cell *cell, tp_problems *problems)
{
    const tp_rnn_args *args = layer->args;
    const size_t before = problems->count;
    if (args->stateful)
        tp_problems_add(problems, "'stateful' is true, which needs a state that outlives the step; "
                                  "give the state as inputs and take it as outputs instead "
                                  "('return_state')");
    if (args->unit_forget_bias && args->use_bias &&
        args->bias_initializer.type != tp_initializer_default("zeros").type)
        tp_problems_add(problems, "'bias_initializer' with 'unit_forget_bias' must be zeros");
    if (layer->input_count != 1 && layer->input_count != 1 + cell->states)
        tp_problems_add(problems, "%d inputs, expected the sequence, or the sequence and %d states",
                        layer->input_count, cell->states);
    for (int32_t i = 1; i < layer->input_count; i++) {
        const tp_shape *state = tp_layer_input(layer, i);
        if (state->rank != 1 || state->dims[0] != args->units)
            tp_problems_add(problems, "input %d is a state, expected [%lld] of each example", i,
                            (long long)args->units);
    }
    return problems->count == before;
}

static void add_weights(tp_layer *layer, const tp_rnn_cell *cell, int64_t features)
{
    tp_rnn_args *args = layer->args;
    const int64_t columns = cell->gates * args->units;
    tp_layer_add_trained(layer, "kernel", 2, (const int64_t[]){features, columns},
                         &args->kernel_initializer, &args->kernel_regularizer,
                         &args->kernel_constraint);
    tp_layer_add_trained(layer, "recurrent_kernel", 2, (const int64_t[]){args->units, columns},
                         &args->recurrent_initializer, &args->recurrent_regularizer,
                         &args->recurrent_constraint);
    if (!args->use_bias) return;
    args->resolved_bias = args->unit_forget_bias
                              ? tp_initializer_ones_between(args->units, 2 * args->units)
                              : args->bias_initializer;
    const int64_t two[] = {2, columns};
    tp_layer_add_trained(layer, "bias", cell->has_two_biases ? 2 : 1,
                         cell->has_two_biases ? two : &columns, &args->resolved_bias,
                         &args->bias_regularizer, &args->bias_constraint);
}

bool tp_rnn_infer(tp_layer *layer, const tp_rnn_cell *cell, tp_problems *problems)
{
    const tp_rnn_args *args = layer->args;
    if (!tp_layer_need_rank(layer, 2, "[time,features]", problems) ||
        !check_arguments(layer, cell, problems))
        return false;
    const tp_shape *input = tp_layer_input(layer, 0);
    if (input->dims[0] < 1) {
        tp_problems_add(problems, "the sequence has no steps");
        return false;
    }
    add_weights(layer, cell, input->dims[1]);
    const int64_t dims[] = {input->dims[0], args->units};
    bool is_fine = tp_layer_add_output(layer, problems, args->return_sequences ? 2 : 1,
                                       args->return_sequences ? dims : &args->units);
    for (int32_t i = 0; i < cell->states && args->return_state && is_fine; i++)
        is_fine = tp_layer_add_output(layer, problems, 1, &args->units);
    return is_fine;
}

/* ---- products ---- */

tp_node_id tp_rnn_gates(tp_graph *graph, const tp_rnn_args *args, tp_node_id z, int32_t first,
                        int32_t count)
{
    if (graph->has_failed) return TP_NO_NODE;
    const tp_shape shape = tp_graph_node(graph, z)->shape;
    int64_t start[TP_MAX_RANK] = {0}, limit[TP_MAX_RANK];
    for (int i = 0; i < shape.rank; i++)
        limit[i] = shape.dims[i];
    start[shape.rank - 1] = first * args->units;
    limit[shape.rank - 1] = (first + count) * args->units;
    return tp_op_slice(graph, z, start, limit, NULL);
}

/* Masks of dropout, kept by [batch, size]; how many: one for all gates, or one each. */
static int32_t add_masks(const rnn_loop *loop, double rate, int64_t size, tp_node_id *out_kept)
{
    if (!loop->context->is_training || rate <= 0 || rate >= 1) return 0; /* as Keras: 1 is none */
    const int32_t count = loop->args->recurrent_dropout > 0 ? loop->cell->gates : 1;
    const tp_shape shape = {2, {loop->context->batch, size}};
    for (int32_t i = 0; i < count; i++)
        out_kept[i] =
            tp_op_bernoulli(loop->graph, shape, 1 - rate, tp_layer_random_stream(loop->context));
    return count;
}

static tp_node_id drop(const rnn_loop *loop, tp_node_id x, tp_node_id kept, double rate)
{
    tp_graph *graph = loop->graph;
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id scaled =
        tp_op_multiply_scalar(graph, tp_op_convert(graph, x, TP_F32), 1 / (1 - rate));
    return tp_op_convert(graph, tp_op_select(graph, kept, scaled, zero), loop->context->dtype);
}

/* x [..., in] times the columns of some gates of a kernel. */
static tp_node_id multiply(const rnn_loop *loop, tp_node_id x, tp_node_id kernel, int32_t first,
                           int32_t count)
{
    const tp_node_id part = count == loop->cell->gates
                                ? kernel
                                : tp_rnn_gates(loop->graph, loop->args, kernel, first, count);
    return tp_op_matmul(loop->graph, x, part, loop->context->precision);
}

static tp_node_id project(const rnn_loop *loop, tp_node_id x, tp_node_id kernel, int32_t first,
                          int32_t count, const tp_node_id *kept, int32_t kept_count, double rate)
{
    if (kept_count == 0) return multiply(loop, x, kernel, first, count);
    if (kept_count == 1) return multiply(loop, drop(loop, x, kept[0], rate), kernel, first, count);
    tp_node_id parts[TP_RNN_MAX_GATES];
    for (int32_t i = 0; i < count; i++)
        parts[i] = multiply(loop, drop(loop, x, kept[first + i], rate), kernel, first + i, 1);
    if (loop->graph->has_failed) return TP_NO_NODE;
    const int64_t axis = tp_graph_node(loop->graph, parts[0])->shape.rank - 1;
    return tp_op_concatenate(loop->graph, parts, count, axis);
}

tp_node_id tp_rnn_recurrent(const tp_rnn_turn *turn, tp_node_id state, int32_t first, int32_t count)
{
    const rnn_loop *loop = turn->loop;
    const tp_node_id rounded = tp_op_convert(loop->graph, state, loop->context->dtype);
    return project(loop, rounded, loop->recurrent_kernel, first, count, loop->kept,
                   loop->kept_count, loop->args->recurrent_dropout);
}

tp_node_id tp_rnn_activate(const tp_rnn_turn *turn, int32_t activation, tp_node_id z)
{
    return tp_activation_apply(turn->graph, (tp_activation)activation, z, TP_F32);
}

/* f32 [time, batch, gates * units]: the input's product, for all times. */
static tp_node_id project_input(const rnn_loop *loop, tp_node_id x)
{
    static const int64_t time_first[] = {1, 0, 2};
    tp_node_id kept[TP_RNN_MAX_GATES];
    tp_graph *graph = loop->graph;
    if (graph->has_failed) return TP_NO_NODE;
    const int64_t features = tp_graph_node(graph, x)->shape.dims[2];
    const int32_t kept_count = add_masks(loop, loop->args->dropout, features, kept);
    const tp_node_id product = project(loop, tp_op_transpose(graph, x, time_first), loop->kernel, 0,
                                       loop->cell->gates, kept, kept_count, loop->args->dropout);
    return loop->bias == TP_NO_NODE ? product : tp_op_add(graph, product, loop->bias);
}

/* ---- the loop ---- */

static void find_weights(rnn_loop *loop)
{
    tp_graph *graph = loop->graph;
    const tp_node_id *variables = loop->context->variables;
    const int64_t columns = loop->cell->gates * loop->args->units;
    loop->kernel = tp_op_convert(graph, variables[0], loop->context->dtype);
    loop->recurrent_kernel = tp_op_convert(graph, variables[1], loop->context->dtype);
    loop->bias = loop->recurrent_bias = TP_NO_NODE;
    if (!loop->args->use_bias) return;
    loop->bias = variables[2];
    if (!loop->cell->has_two_biases) return;
    const int64_t start[] = {0, 0, 1, 0}, limit[] = {1, columns, 2, columns};
    const tp_shape row = {1, {columns}};
    loop->bias = tp_op_reshape(graph, tp_op_slice(graph, variables[2], start, limit, NULL), row);
    loop->recurrent_bias =
        tp_op_reshape(graph, tp_op_slice(graph, variables[2], start + 2, limit + 2, NULL), row);
}

typedef struct rnn_results {
    tp_node_id sequence, last, states[TP_RNN_MAX_STATES];
} rnn_results;

/* on_true where the step counts. */
static tp_node_id choose(tp_graph *graph, tp_node_id counts, tp_node_id on_true,
                         tp_node_id on_false)
{
    static const int64_t batch_axis[] = {0};
    if (graph->has_failed) return TP_NO_NODE;
    const tp_shape shape = tp_graph_node(graph, on_true)->shape;
    return tp_op_select(graph, tp_op_broadcast_in_dim(graph, counts, shape, batch_axis), on_true,
                        on_false);
}

/* `init`: [batch, units] each. `mask`: pred [time, batch]; TP_NO_NODE. */
static rnn_results run_loop(rnn_loop *loop, tp_node_id x, const tp_node_id *init, bool has_init,
                            tp_node_id mask)
{
    tp_graph *graph = loop->graph;
    const tp_rnn_args *args = loop->args;
    const int32_t number = tp_op_loop_new(graph), states = loop->cell->states;
    const tp_shape shape = {2, {loop->context->batch, args->units}};
    const tp_dtype dtype = loop->context->dtype;
    const bool has_mask = mask != TP_NO_NODE;
    /* Without a state given, the output of masked steps is the state. */
    const bool carries_output = has_mask && (has_init || args->zero_output_for_mask);
    tp_node_id carries[TP_RNN_MAX_STATES], next[TP_RNN_MAX_STATES], counts = TP_NO_NODE;
    tp_node_id before = TP_NO_NODE;
    rnn_results results = {TP_NO_NODE, TP_NO_NODE, {TP_NO_NODE, TP_NO_NODE}};

    for (int32_t i = 0; i < states; i++)
        carries[i] = tp_op_loop_carry(graph, number, loop->time, init[i]);
    if (carries_output)
        before = tp_op_loop_carry(graph, number, loop->time, tp_op_fill(graph, dtype, shape, 0));
    const tp_rnn_turn turn = {.graph = graph,
                              .args = args,
                              .x = tp_op_loop_slice(graph, number, x, args->go_backwards),
                              .states = carries,
                              .recurrent_bias = loop->recurrent_bias,
                              .loop = loop};
    if (has_mask) counts = tp_op_loop_slice(graph, number, mask, args->go_backwards);
    if (graph->has_failed) return results;
    loop->cell->turn(&turn, next);
    next[0] = tp_op_convert(graph, next[0], dtype);
    tp_node_id output = next[0];
    for (int32_t i = 0; i < states && has_mask; i++)
        next[i] = choose(graph, counts, next[i], carries[i]);
    if (carries_output)
        output = choose(graph, counts, output,
                        args->zero_output_for_mask ? tp_op_fill(graph, dtype, shape, 0) : before);
    else if (has_mask)
        output = next[0];
    for (int32_t i = 0; i < states; i++)
        results.states[i] = tp_op_loop_last(graph, carries[i], next[i]);
    results.last = carries_output ? tp_op_loop_last(graph, before, output) : results.states[0];
    if (args->return_sequences)
        results.sequence =
            tp_op_loop_stack(graph, number, output, args->go_backwards && args->keeps_order);
    return results;
}

void tp_rnn_build(tp_layer_context *context, const tp_layer *layer, const tp_rnn_cell *cell,
                  const tp_node_id *inputs, tp_node_id *outputs)
{
    static const int64_t swap[] = {1, 0, 2};
    tp_graph *graph = context->graph;
    const tp_rnn_args *args = layer->args;
    rnn_loop loop = {.context = context,
                     .graph = graph,
                     .args = args,
                     .cell = cell,
                     .time = tp_layer_input(layer, 0)->dims[0]};
    const tp_shape state = {2, {context->batch, args->units}};
    const bool has_init = layer->input_count > 1;
    tp_node_id init[TP_RNN_MAX_STATES], mask = context->input_masks[0];
    find_weights(&loop);
    const tp_node_id x = project_input(&loop, inputs[0]);
    loop.kept_count = add_masks(&loop, args->recurrent_dropout, args->units, loop.kept);
    for (int32_t i = 0; i < cell->states; i++) {
        const tp_dtype dtype = i == 0 ? context->dtype : TP_F32;
        init[i] = has_init ? tp_op_convert(graph, inputs[i + 1], dtype)
                           : tp_op_fill(graph, dtype, state, 0);
    }
    if (mask != TP_NO_NODE) mask = tp_op_transpose(graph, mask, swap);
    const rnn_results results = run_loop(&loop, x, init, has_init, mask);
    outputs[0] = results.last;
    if (args->return_sequences) {
        outputs[0] = tp_op_transpose(graph, results.sequence, swap);
        context->output_masks[0] = context->input_masks[0];
    }
    for (int32_t i = 0; i < cell->states && args->return_state; i++)
        outputs[i + 1] = tp_op_convert(graph, results.states[i], context->dtype);
    tp_layer_add_activity(context, &args->activity_regularizer, outputs[0]);
}
