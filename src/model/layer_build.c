/* SPDX-License-Identifier: Apache-2.0
 * What layers share when they add nodes, and calling a layer, nested ones included. See layer.h.
 */
#include <string.h>

#include "model/layer.h"

/* Streams of a layer's second random op and further ones, above the numbers of layers. */
#define STREAM_STEP ((int64_t)1 << 16)

tp_shape tp_layer_batched(const tp_layer_context *context, const tp_shape *example)
{
    tp_shape shape = {.rank = example->rank + 1, .dims = {context->batch}};
    for (int i = 0; i < example->rank; i++)
        shape.dims[i + 1] = example->dims[i];
    return shape;
}

tp_node_id tp_layer_finish_product(tp_layer_context *context, tp_node_id product, tp_node_id bias,
                                   tp_activation activation)
{
    tp_node_id z = product;
    if (bias != TP_NO_NODE) z = tp_op_add(context->graph, z, bias);
    if (activation == TP_ACTIVATION_SOFTMAX) context->logits = z;
    return tp_activation_apply(context->graph, activation, z, context->dtype);
}

int64_t tp_layer_random_stream(tp_layer_context *context)
{
    const int64_t stream = *context->next_stream;
    *context->next_stream += STREAM_STEP;
    return stream;
}

void tp_layer_add_loss(tp_layer_context *context, tp_node_id loss)
{
    tp_layer_losses *losses = context->losses;
    tp_graph *graph = context->graph;
    if (loss == TP_NO_NODE) return;
    if (losses->count == losses->capacity) {
        const int32_t capacity = losses->capacity ? 2 * losses->capacity : 8;
        tp_node_id *grown = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, (size_t)capacity);
        if (!grown) {
            tp_graph_keep_error(graph);
            return;
        }
        if (losses->count) memcpy(grown, losses->items, (size_t)losses->count * sizeof *grown);
        losses->items = grown;
        losses->capacity = capacity;
    }
    losses->items[losses->count++] = loss;
}

void tp_layer_add_activity(tp_layer_context *context, const tp_regularizer *regularizer,
                           tp_node_id output)
{
    if (regularizer->l1 == 0 && regularizer->l2 == 0) return;
    const tp_node_id wide = tp_op_convert(context->graph, output, TP_F32);
    tp_layer_add_loss(context, tp_regularizer_per_example(context->graph, regularizer, wide));
}

/* ---- calling ---- */

/* Only floats follow the policy. */
static tp_node_id cast_input(const tp_layer_context *context, tp_node_id input)
{
    if (input == TP_NO_NODE) return input;
    const tp_dtype dtype = tp_graph_node(context->graph, input)->dtype;
    const bool is_float = dtype == TP_F32 || dtype == TP_BF16;
    return is_float ? tp_op_convert(context->graph, input, context->dtype) : input;
}

void tp_layer_call(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                   tp_node_id *outputs)
{
    const tp_layer_type *type = layer->type;
    tp_graph *graph = context->graph;
    tp_node_id *cast = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, (size_t)layer->input_count);
    const bool passes_mask = type->mask == TP_LAYER_MASK_PASSES && layer->input_count > 0;
    for (int32_t i = 0; i < layer->output_count; i++) {
        outputs[i] = TP_NO_NODE;
        context->output_masks[i] = passes_mask ? context->input_masks[0] : TP_NO_NODE;
    }
    context->logits = TP_NO_NODE;
    if (!cast) {
        tp_graph_keep_error(graph);
        return;
    }
    for (int32_t i = 0; i < layer->input_count; i++)
        cast[i] = type->keeps_input_dtype ? inputs[i] : cast_input(context, inputs[i]);
    if (!graph->has_failed) type->build(context, layer, cast, outputs);
}

/* ---- wrappers ---- */

bool tp_layer_infer_nested(tp_layer *nested, const tp_shape *inputs, int32_t input_count,
                           tp_problems *problems)
{
    const int32_t most = nested->type->max_inputs ? nested->type->max_inputs : 1;
    const int32_t least = nested->type->min_inputs ? nested->type->min_inputs : 1;
    nested->inputs = inputs;
    nested->input_count = input_count;
    if (!nested->name) nested->name = nested->type->snake;
    if (input_count < least || input_count > most) {
        tp_problems_add(problems, "%s takes %d to %d inputs, here it has %d", nested->type->name,
                        least, most, input_count);
        return false;
    }
    tp_problems found = {0};
    if (nested->type->infer(nested, &found)) return true;
    tp_problems_add(problems, "its %s: %s", nested->type->name, found.text);
    return false;
}

void tp_layer_adopt_weights(tp_layer *wrapper, const tp_layer *nested, const char *prefix)
{
    wrapper->is_out_of_memory = wrapper->is_out_of_memory || nested->is_out_of_memory;
    for (int32_t i = 0; i < nested->weight_count; i++) {
        const tp_layer_weight *weight = &nested->weights[i];
        const char *name = tp_arena_printf(wrapper->arena, "%s%s", prefix, weight->name);
        if (!name) {
            wrapper->is_out_of_memory = true;
            return;
        }
        tp_layer_weight *own =
            tp_layer_add_weight(wrapper, name, weight->shape.rank, weight->shape.dims,
                                weight->initializer, weight->is_trainable && nested->trainable);
        own->regularizer = weight->regularizer;
        own->constraint = weight->constraint;
        own->fans = weight->fans;
    }
}

tp_layer_context tp_layer_nested_context(const tp_layer_context *context, int32_t first_weight)
{
    tp_layer_context nested = *context;
    nested.variables = context->variables + first_weight;
    return nested;
}
