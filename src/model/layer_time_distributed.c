/* SPDX-License-Identifier: Apache-2.0
 * TimeDistributed: a layer on every step of [time, ...], by taking the steps of all examples as examples. So a
 * BatchNormalization inside normalises over all steps together. As in Keras, what the layer adds to the loss
 * for its activity is left out: Keras calls the layer's call() alone.
 */
#include "model/layer.h"

typedef struct distributed_args {
    tp_layer *layer;
    tp_shape step; /* of one step; found by infer */
} distributed_args;

static const tp_layer_arg arguments[] = {
    {"layer", offsetof(distributed_args, layer), TP_LAYER_NESTED, TP_LAYER_REQUIRED},
    {0},
};

static bool infer(tp_layer *layer, tp_problems *problems)
{
    distributed_args *distributed = layer->args;
    tp_layer *nested = distributed->layer;
    const tp_shape *input = tp_layer_input(layer, 0);
    if (input->rank < 2) {
        tp_problems_add(problems, "the input has %d dimensions, expected [time,...]", input->rank);
        return false;
    }
    distributed->step.rank = input->rank - 1;
    for (int i = 1; i < input->rank; i++)
        distributed->step.dims[i - 1] = input->dims[i];
    if (!nested->type || !tp_layer_infer_nested(nested, &distributed->step, 1, problems))
        return false;
    if (nested->output_count != 1) {
        tp_problems_add(problems, "%s gives %d results, expected one", nested->type->name,
                        nested->output_count);
        return false;
    }
    tp_layer_adopt_weights(layer, nested, "");
    const tp_shape *result = &nested->outputs[0];
    int64_t dims[TP_MAX_RANK + 1] = {input->dims[0]};
    for (int i = 0; i < result->rank; i++)
        dims[i + 1] = result->dims[i];
    return tp_layer_add_output(layer, problems, result->rank + 1, dims);
}

/* Each example's weight for all of its steps: f32 [batch * time]. */
static tp_node_id step_weights(tp_layer_context *context, int64_t time)
{
    static const int64_t batch_axis[] = {0};
    const tp_shape steps = {.rank = 2, .dims = {context->batch, time}};
    const tp_shape flat = {.rank = 1, .dims = {context->batch * time}};
    if (context->weight == TP_NO_NODE) return TP_NO_NODE;
    const tp_node_id repeated =
        tp_op_broadcast_in_dim(context->graph, context->weight, steps, batch_axis);
    return tp_op_reshape(context->graph, repeated, flat);
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const distributed_args *distributed = layer->args;
    const int64_t time = tp_layer_input(layer, 0)->dims[0];
    const tp_node_id no_mask = TP_NO_NODE;
    tp_node_id results[TP_LAYER_MAX_OUTPUTS];
    tp_layer_context nested = tp_layer_nested_context(context, 0);
    nested.batch = context->batch * time;
    nested.weight = step_weights(context, time);
    nested.input_masks = &no_mask;
    const tp_node_id x =
        tp_op_reshape(context->graph, inputs[0], tp_layer_batched(&nested, &distributed->step));
    const int32_t losses = context->losses->count;
    tp_layer_call(&nested, distributed->layer, &x, results);
    context->losses->count = losses;
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    outputs[0] = tp_op_reshape(context->graph, results[0], shape);
}

const tp_layer_type tp_layer_time_distributed = {.name = "TimeDistributed",
                                                 .snake = "time_distributed",
                                                 .arguments = arguments,
                                                 .args_bytes = sizeof(distributed_args),
                                                 .mask = TP_LAYER_MASK_PASSES,
                                                 .keeps_input_dtype = true,
                                                 .infer = infer,
                                                 .build = build};
