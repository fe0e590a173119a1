/* SPDX-License-Identifier: Apache-2.0
 * Embedding: row x of the table for each whole number x of the input; a number outside of the table takes its
 * first or last row. With mask_zero, 0 stands for a step that does not count.
 */
#include "model/layer.h"

typedef struct embedding_args {
    int64_t input_dim, output_dim;
    bool mask_zero;
    tp_initializer embeddings_initializer;
    tp_regularizer embeddings_regularizer;
    tp_constraint embeddings_constraint;
} embedding_args;

static const tp_layer_arg arguments[] = {
    {"input_dim", offsetof(embedding_args, input_dim), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 2147483647.0)},
    {"output_dim", offsetof(embedding_args, output_dim), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 30)},
    TP_LAYER_ROW_INITIALIZER(embedding_args, embeddings_initializer),
    TP_LAYER_ROW_REGULARIZER(embedding_args, embeddings_regularizer),
    TP_LAYER_ROW_CONSTRAINT(embedding_args, embeddings_constraint),
    TP_LAYER_ROW_BOOL(embedding_args, mask_zero),
    {0},
};

static void set_defaults(void *args)
{
    ((embedding_args *)args)->embeddings_initializer = tp_initializer_default("random_uniform");
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    const embedding_args *embedding = layer->args;
    tp_shape output = *tp_layer_input(layer, 0);
    if (embedding->mask_zero && !tp_layer_need_rank(layer, 1, "[time] with 'mask_zero'", problems))
        return false;
    if (output.rank + 2 > TP_MAX_RANK) {
        tp_problems_add(problems, "the input has %d dimensions, expected at most %d", output.rank,
                        TP_MAX_RANK - 2);
        return false;
    }
    tp_layer_add_trained(layer, "embeddings", 2,
                         (const int64_t[]){embedding->input_dim, embedding->output_dim},
                         &embedding->embeddings_initializer, &embedding->embeddings_regularizer,
                         &embedding->embeddings_constraint);
    output.dims[output.rank++] = embedding->output_dim;
    return tp_layer_add_output(layer, problems, output.rank, output.dims);
}

/* Rows are taken in f32 and rounded after it, so that the table's gradient is summed in f32. */
static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const tp_node_id numbers = tp_op_convert(graph, inputs[0], TP_S32);
    const tp_node_id rows = tp_op_take(graph, context->variables[0], numbers, 0);
    outputs[0] = tp_op_convert(graph, rows, context->dtype);
    if (((const embedding_args *)layer->args)->mask_zero)
        context->output_masks[0] =
            tp_op_compare(graph, "NE", numbers, tp_op_scalar(graph, TP_S32, 0));
}

const tp_layer_type tp_layer_embedding = {.name = "Embedding",
                                          .snake = "embedding",
                                          .arguments = arguments,
                                          .args_bytes = sizeof(embedding_args),
                                          .keeps_input_dtype = true,
                                          .set_defaults = set_defaults,
                                          .infer = infer,
                                          .mask = TP_LAYER_MASK_OWN,
                                          .build = build};
