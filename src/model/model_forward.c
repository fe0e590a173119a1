/* SPDX-License-Identifier: Apache-2.0
 * The forward pass: inputs, variables, layers in the order of their calls. See model_forward.h.
 */
#include "model/model_forward.h"

#include "model/augment.h"

tp_shape tp_model_batched(int64_t batch, const tp_shape *example)
{
    tp_shape shape = {.rank = example->rank + 1, .dims = {batch}};
    for (int i = 0; i < example->rank; i++)
        shape.dims[i + 1] = example->dims[i];
    return shape;
}

/* ---- inputs ---- */

void tp_model_add_inputs(tp_graph *graph, const tp_model *model, int64_t batch,
                         tp_node_id *out_inputs)
{
    for (int32_t i = 0; i < model->input_count; i++) {
        const tp_model_input *input = &model->inputs[i];
        const tp_shape *shape = input->is_augmented ? &input->fed : &input->shape;
        out_inputs[i] =
            tp_graph_add_input(graph, input->name, input->dtype, tp_model_batched(batch, shape));
    }
}

tp_node_id tp_model_clear_padding(tp_graph *graph, tp_node_id x, tp_node_id weight)
{
    static const int64_t batch_axis[] = {0};
    if (x == TP_NO_NODE || !tp_dtype_is_float(tp_graph_node(graph, x)->dtype)) return x;
    const tp_shape shape = tp_graph_node(graph, x)->shape;
    const tp_dtype dtype = tp_graph_node(graph, x)->dtype;
    const tp_node_id counts = tp_op_compare(graph, "GT", weight, tp_op_scalar(graph, TP_F32, 0));
    return tp_op_select(graph, tp_op_broadcast_in_dim(graph, counts, shape, batch_axis), x,
                        tp_op_scalar(graph, dtype, 0));
}

/* Augmented, converted and scaled: f32 or s32 [batch, example...] */
static tp_node_id scale_input(tp_graph *graph, const tp_model_input *input, tp_node_id fed,
                              bool is_training)
{
    if (input->is_augmented) fed = tp_augment_build(graph, &input->augment, fed, is_training);
    if (input->is_integer) return tp_op_convert(graph, fed, TP_S32);
    tp_node_id x = tp_op_convert(graph, fed, TP_F32);
    if (input->scale != 1.0) x = tp_op_multiply_scalar(graph, x, input->scale);
    if (input->offset != 0.0) x = tp_op_add_scalar(graph, x, input->offset);
    return x;
}

/* ---- layers ---- */

/* What is known while the layers are called: for each value of the model its node and mask, for each call
 * its variables and logits. */
typedef struct forward_state {
    tp_node_id *nodes, *masks, *logits;
    const tp_node_id **variables;
} forward_state;

/* The layer's variables as f32 nodes; regularizers of those that are trained. */
static const tp_node_id *add_variables(tp_layer_context *context, const tp_model_call *call,
                                       tp_dtype dtype)
{
    const tp_layer *layer = &call->layer;
    tp_graph *graph = context->graph;
    const char *outer = tp_graph_push_scope(graph, call->weights_of);
    tp_node_id *nodes =
        TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, (size_t)layer->weight_count + 1);
    if (!nodes) tp_graph_keep_error(graph);
    for (int32_t i = 0; nodes && i < layer->weight_count; i++) {
        const tp_layer_weight *weight = &layer->weights[i];
        tp_variable variable = {.name = weight->name,
                                .dtype = weight->is_trainable ? dtype : TP_F32,
                                .shape = weight->shape,
                                .is_trainable = layer->trainable && weight->is_trainable,
                                .is_model = true};
        tp_initializer_resolve(weight->initializer,
                               weight->fans.rank ? &weight->fans : &weight->shape, &variable.init,
                               &variable.init_a, &variable.init_b);
        nodes[i] = tp_op_convert(graph, tp_graph_add_variable(graph, &variable), TP_F32);
        if (weight->regularizer && variable.is_trainable)
            tp_layer_add_loss(context, tp_regularizer_apply(graph, weight->regularizer, nodes[i]));
    }
    tp_graph_pop_scope(graph, outer);
    return nodes;
}

static tpucl_status gather(tp_graph *graph, const tp_node_id *all, const tp_model_call *call,
                           const tp_node_id **out_nodes)
{
    const int32_t count = call->layer.input_count;
    tp_node_id *nodes = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, (size_t)count + 1);
    if (!nodes) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; i++)
        nodes[i] = all[call->inputs[i]];
    *out_nodes = nodes;
    return TPUCL_OK;
}

/* A layer takes its inputs in its own dtype (Keras' autocast). */
static tpucl_status call_layer(const tp_model *model, int32_t index, tp_layer_context *context,
                               forward_state *state)
{
    const tp_model_call *call = &model->calls[index];
    const tp_layer *layer = &call->layer;
    const tp_model_policy policy = tp_model_layer_policy(model, layer);
    const bool is_float32 = policy == TP_POLICY_FLOAT32;
    const bool is_own_float32 = model->options.policy != TP_POLICY_FLOAT32 && is_float32;
    tp_graph *graph = context->graph;
    int64_t stream = index;
    const tp_node_id *inputs;
    tp_node_id outputs[TP_LAYER_MAX_OUTPUTS];
    TP_TRY(gather(graph, state->nodes, call, &inputs));
    TP_TRY(gather(graph, state->masks, call, &context->input_masks));
    context->dtype = is_float32 ? TP_F32 : TP_BF16;
    context->precision =
        tp_precision_name(is_own_float32 ? TP_PRECISION_F32 : model->options.precision);
    context->next_stream = &stream;
    state->variables[index] =
        call->owner == index
            ? add_variables(context, call, policy == TP_POLICY_BFLOAT16 ? TP_BF16 : TP_F32)
            : state->variables[call->owner];
    context->variables = state->variables[index];
    const char *outer = tp_graph_push_scope(graph, layer->name);
    tp_layer_call(context, layer, inputs, outputs);
    tp_graph_pop_scope(graph, outer);
    for (int32_t i = 0; i < layer->output_count; i++) {
        state->nodes[call->first_output + i] = outputs[i];
        state->masks[call->first_output + i] = context->output_masks[i];
        state->logits[call->first_output + i] = i == 0 ? context->logits : TP_NO_NODE;
    }
    return tp_graph_check(graph);
}

/* The outputs' share of the state, cast to f32. */
static tpucl_status finish(tp_graph *graph, const tp_model *model, const forward_state *state,
                           tp_model_forward *out)
{
    const size_t count = (size_t)model->output_count;
    tp_node_id *results = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, 3 * count);
    if (!results) return TPUCL_OUT_OF_MEMORY;
    tp_node_id *logits = results + count, *masks = logits + count;
    for (size_t i = 0; i < count; i++) {
        const int32_t value = model->outputs[i].value;
        results[i] = tp_op_convert(graph, state->nodes[value], TP_F32);
        logits[i] = state->logits[value];
        masks[i] = state->masks[value];
    }
    out->results = results;
    out->logits = logits;
    out->masks = masks;
    return tp_graph_check(graph);
}

tpucl_status tp_model_add_forward(tp_graph *graph, const tp_model *model, int64_t batch,
                                  int64_t cores, const tp_node_id *inputs, tp_node_id weight,
                                  tp_model_forward *out_forward)
{
    const size_t values = (size_t)model->value_count;
    *out_forward = (tp_model_forward){0};
    forward_state state = {.nodes = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, 3 * values),
                           .variables = TP_ARENA_NEW_ARRAY(graph->arena, const tp_node_id *,
                                                           (size_t)model->call_count + 1)};
    if (!state.nodes || !state.variables) return TPUCL_OUT_OF_MEMORY;
    state.masks = state.nodes + values;
    state.logits = state.masks + values;
    for (int32_t i = 0; i < model->input_count; i++) {
        state.nodes[i] = scale_input(graph, &model->inputs[i], inputs[i], cores > 0);
        state.masks[i] = state.logits[i] = TP_NO_NODE;
    }
    tp_layer_context context = {.graph = graph,
                                .batch = batch,
                                .is_training = cores > 0,
                                .cores = cores,
                                .weight = weight,
                                .losses = &out_forward->losses};
    for (int32_t i = 0; i < model->call_count; i++)
        TP_TRY(call_layer(model, i, &context, &state));
    return finish(graph, model, &state, out_forward);
}
