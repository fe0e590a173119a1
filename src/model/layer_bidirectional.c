/* SPDX-License-Identifier: Apache-2.0
 * Bidirectional: a recurrent layer and one like it that goes backwards, side by side. As in Keras both give
 * zeros for masked steps of sequences, and the weights are those of the forward layer, then the other's.
 */
#include "model/layer_rnn.h"

#include <string.h>

typedef enum merge_mode { MERGE_CONCAT, MERGE_SUM, MERGE_MUL, MERGE_AVE, MERGE_COUNT } merge_mode;
static const char *const merge_names[MERGE_COUNT] = {"concat", "sum", "mul", "ave"};

typedef struct bidirectional_args {
    tp_layer *layer, *backward_layer;
    int32_t merge_mode;
} bidirectional_args;

static const tp_layer_arg arguments[] = {
    {"layer", offsetof(bidirectional_args, layer), TP_LAYER_NESTED, TP_LAYER_REQUIRED},
    {TP_LAYER_ROW(bidirectional_args, backward_layer, TP_LAYER_NESTED)},
    {"merge_mode", offsetof(bidirectional_args, merge_mode), TP_LAYER_CHOICE,
     TP_LAYER_CHOICES(merge_names)},
    {0},
};

/* The layer that goes backwards: the one given, or a copy of the other one. */
static tp_layer *make_backward(tp_layer *layer, const bidirectional_args *args)
{
    if (args->backward_layer) return args->backward_layer;
    tp_layer *copy = TP_ARENA_NEW(layer->arena, tp_layer);
    tp_rnn_args *copy_args = TP_ARENA_NEW(layer->arena, tp_rnn_args);
    if (!copy || !copy_args) {
        layer->is_out_of_memory = true;
        return NULL;
    }
    *copy = *args->layer;
    memcpy(copy_args, args->layer->args, sizeof *copy_args);
    copy_args->go_backwards = !copy_args->go_backwards;
    copy->args = copy_args;
    return copy;
}

/* Then their arguments may be looked at. */
static bool check_types(const bidirectional_args *args, tp_problems *problems)
{
    const tp_layer *layers[] = {args->layer, args->backward_layer};
    for (int i = 0; i < 2; i++)
        if (layers[i] && !tp_rnn_is_type(layers[i]->type)) {
            tp_problems_add(problems, "its layer is %s, expected LSTM, GRU or SimpleRNN",
                            layers[i]->type->name);
            return false;
        }
    return true;
}

static bool check_layers(const bidirectional_args *args, const tp_layer *backward,
                         tp_problems *problems)
{
    const tp_rnn_args *forward_args = args->layer->args, *backward_args = backward->args;
    if (forward_args->go_backwards == backward_args->go_backwards) {
        tp_problems_add(problems, "'go_backwards' of 'layer' and 'backward_layer' must differ");
        return false;
    }
    if (forward_args->return_sequences != backward_args->return_sequences ||
        forward_args->return_state != backward_args->return_state) {
        tp_problems_add(problems, "'return_sequences' and 'return_state' of 'layer' and "
                                  "'backward_layer' must be the same");
        return false;
    }
    return true;
}

/* States of the two halves: the first of them are the forward layer's. */
static int32_t state_count(const tp_layer *layer)
{
    return (layer->input_count - 1) / 2;
}

/* The sequence, and the half's own states. */
static const tp_shape *inputs_of(tp_layer *layer, bool is_backward)
{
    const int32_t states = state_count(layer);
    tp_shape *inputs = TP_ARENA_NEW_ARRAY(layer->arena, tp_shape, (size_t)states + 1);
    layer->is_out_of_memory = layer->is_out_of_memory || !inputs;
    if (!inputs) return NULL;
    inputs[0] = layer->inputs[0];
    for (int32_t i = 0; i < states; i++)
        inputs[i + 1] = layer->inputs[1 + i + (is_backward ? states : 0)];
    return inputs;
}

static bool add_outputs(tp_layer *layer, const tp_layer *forward, const tp_layer *backward,
                        merge_mode mode, tp_problems *problems)
{
    tp_shape merged = forward->outputs[0];
    const int64_t other = backward->outputs[0].dims[merged.rank - 1];
    if (mode == MERGE_CONCAT) {
        merged.dims[merged.rank - 1] += other;
    } else if (other != merged.dims[merged.rank - 1]) {
        tp_problems_add(problems, "'merge_mode' %s needs as many units in both layers",
                        merge_names[mode]);
        return false;
    }
    bool is_fine = tp_layer_add_output(layer, problems, merged.rank, merged.dims);
    const tp_layer *const halves[] = {forward, backward};
    for (int h = 0; h < 2; h++)
        for (int32_t i = 1; i < halves[h]->output_count && is_fine; i++)
            is_fine = tp_layer_add_output(layer, problems, halves[h]->outputs[i].rank,
                                          halves[h]->outputs[i].dims);
    return is_fine;
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    bidirectional_args *args = layer->args;
    if (!check_types(args, problems)) return false;
    tp_layer *forward = args->layer, *backward = make_backward(layer, args);
    const tp_shape *forward_inputs = inputs_of(layer, false);
    const tp_shape *backward_inputs = inputs_of(layer, true);
    if (!backward || !forward_inputs || !backward_inputs) return true; /* the caller sees why */
    args->backward_layer = backward;
    if (layer->input_count % 2 == 0) {
        tp_problems_add(problems,
                        "%d inputs, expected the sequence, or the sequence and the states "
                        "of both layers",
                        layer->input_count);
        return false;
    }
    if (!check_layers(args, backward, problems)) return false;
    tp_layer *const halves[] = {forward, backward};
    for (int h = 0; h < 2; h++) {
        tp_rnn_args *own = halves[h]->args;
        own->keeps_order = true;
        own->zero_output_for_mask = own->return_sequences;
    }
    const int32_t count = 1 + state_count(layer);
    if (!tp_layer_infer_nested(forward, forward_inputs, count, problems) ||
        !tp_layer_infer_nested(backward, backward_inputs, count, problems))
        return false;
    tp_layer_adopt_weights(layer, forward, "forward_");
    tp_layer_adopt_weights(layer, backward, "backward_");
    return add_outputs(layer, forward, backward, (merge_mode)args->merge_mode, problems);
}

static tp_node_id merge(tp_graph *graph, merge_mode mode, tp_node_id a, tp_node_id b,
                        tp_dtype dtype)
{
    if (graph->has_failed) return TP_NO_NODE;
    const tp_node_id parts[] = {a, b};
    if (mode == MERGE_CONCAT)
        return tp_op_concatenate(graph, parts, 2, tp_graph_node(graph, a)->shape.rank - 1);
    const tp_node_id x = tp_op_convert(graph, a, TP_F32), y = tp_op_convert(graph, b, TP_F32);
    tp_node_id result = mode == MERGE_MUL ? tp_op_multiply(graph, x, y) : tp_op_add(graph, x, y);
    if (mode == MERGE_AVE) result = tp_op_multiply_scalar(graph, result, 0.5);
    return tp_op_convert(graph, result, dtype);
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const bidirectional_args *args = layer->args;
    const tp_layer *const halves[] = {args->layer, args->backward_layer};
    tp_node_id results[2][TP_LAYER_MAX_OUTPUTS], own_inputs[1 + TP_RNN_MAX_STATES];
    const int32_t states = state_count(layer);
    int32_t next = 1;
    for (int h = 0; h < 2; h++) {
        tp_layer_context nested = tp_layer_nested_context(context, h ? halves[0]->weight_count : 0);
        own_inputs[0] = inputs[0];
        for (int32_t i = 0; i < states; i++)
            own_inputs[i + 1] = inputs[1 + i + h * states];
        tp_layer_call(&nested, halves[h], own_inputs, results[h]);
        if (h == 0) context->output_masks[0] = nested.output_masks[0];
    }
    outputs[0] = merge(context->graph, (merge_mode)args->merge_mode, results[0][0], results[1][0],
                       context->dtype);
    for (int h = 0; h < 2; h++)
        for (int32_t i = 1; i < halves[h]->output_count; i++)
            outputs[next++] = results[h][i];
}

const tp_layer_type tp_layer_bidirectional = {.name = "Bidirectional",
                                              .snake = "bidirectional",
                                              .arguments = arguments,
                                              .args_bytes = sizeof(bidirectional_args),
                                              .max_inputs = 1 + 2 * TP_RNN_MAX_STATES,
                                              .infer = infer,
                                              .mask = TP_LAYER_MASK_OWN,
                                              .build = build};
