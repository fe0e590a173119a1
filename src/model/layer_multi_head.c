/* SPDX-License-Identifier: Apache-2.0
 * MultiHeadAttention (Vaswani et al. 2017; keras/src/layers/attention/multi_head_attention.py) and
 * GroupQueryAttention (Ainslie et al. 2023), where several heads of queries share one of keys and values, over
 * [query, value], [query, value, key] or [query, value, key, attention_mask]:
 *     q, k, v = inputs . kernel + bias                   [time, heads, key_dim or value_dim]
 *     weights = softmax(q . k / sqrt(key_dim))           [heads, queries, keys], keys left out as masks say
 *     result  = (weights . v [* gate]) . kernel + bias
 * Projections are rounded once to the layer's dtype; scores, their scaling and the softmax are f32; the weights
 * are rounded for the product with the values: the op `attention`, which stores neither scores nor weights. A
 * query that may see no key gives only the last bias.
 */
#include <math.h>

#include "model/layer_attention.h"

/* Projections in Keras' order of weights. */
typedef enum projection { QUERY, KEY, GATE, VALUE, OUTPUT, PROJECTION_COUNT } projection;

typedef struct heads_args {
    int64_t num_heads, key_dim, value_dim, sliding_window;
    int64_t shared_heads; /* of keys and values */
    double dropout;
    bool use_bias, use_gate, use_causal_mask;
    tp_layer_ints output_shape, attention_axes;
    tp_initializer kernel_initializer, bias_initializer;
    tp_regularizer kernel_regularizer, bias_regularizer;
    tp_constraint kernel_constraint, bias_constraint;
    int32_t kernel_at[PROJECTION_COUNT]; /* index of its weight; the bias follows; found by infer */
} heads_args;

#define ROWS_COMMON                                                                                \
    TP_LAYER_ROW_NUMBER(heads_args, dropout, 0, 1), TP_LAYER_ROW_BOOL(heads_args, use_bias),       \
        {"sliding_window", offsetof(heads_args, sliding_window), TP_LAYER_INT, TP_LAYER_NULLABLE,  \
         TP_LAYER_RANGE(1, 1 << 30)},                                                              \
        TP_LAYER_ROW_INITIALIZER(heads_args, kernel_initializer),                                  \
        TP_LAYER_ROW_INITIALIZER(heads_args, bias_initializer),                                    \
        TP_LAYER_ROW_REGULARIZER(heads_args, kernel_regularizer),                                  \
        TP_LAYER_ROW_REGULARIZER(heads_args, bias_regularizer),                                    \
        TP_LAYER_ROW_CONSTRAINT(heads_args, kernel_constraint),                                    \
        TP_LAYER_ROW_CONSTRAINT(heads_args, bias_constraint),                                      \
        TP_LAYER_ROW_BOOL(heads_args, use_gate), TP_LAYER_ROW_BOOL(heads_args, use_causal_mask)

static const tp_layer_arg arguments[] = {
    {"num_heads", offsetof(heads_args, num_heads), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 16)},
    {"key_dim", offsetof(heads_args, key_dim), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 20)},
    {"value_dim", offsetof(heads_args, value_dim), TP_LAYER_INT, TP_LAYER_NULLABLE,
     TP_LAYER_RANGE(1, 1 << 20)},
    {"output_shape", offsetof(heads_args, output_shape), TP_LAYER_INTS, TP_LAYER_RANGE(1, 1 << 30),
     .count = TP_MAX_RANK - 2},
    {"attention_axes", offsetof(heads_args, attention_axes), TP_LAYER_INTS, TP_LAYER_RANGE(1, 1),
     .count = 1}, /* the only one that [time, features] has */
    ROWS_COMMON,
    {0},
};

static const tp_layer_arg group_arguments[] = {
    {"head_dim", offsetof(heads_args, key_dim), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 20)},
    {"num_query_heads", offsetof(heads_args, num_heads), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 16)},
    {"num_key_value_heads", offsetof(heads_args, shared_heads), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 16)},
    ROWS_COMMON,
    {0},
};

static void set_defaults(void *args)
{
    heads_args *heads = args;
    heads->use_bias = true;
    heads->kernel_initializer = tp_initializer_default("glorot_uniform");
    heads->bias_initializer = tp_initializer_default("zeros");
}

static const tp_shape *key_of(const tp_layer *layer)
{
    return tp_layer_input(layer, layer->input_count > 2 ? 2 : 1);
}

/* ---- shapes and weights ---- */

static bool check_inputs(const tp_layer *layer, tp_problems *problems)
{
    const tp_shape *query = tp_layer_input(layer, 0), *value = tp_layer_input(layer, 1);
    for (int32_t i = 0; i < layer->input_count; i++) {
        if (tp_layer_input(layer, i)->rank == 2) continue;
        tp_problems_add(problems, "input %d has %d dimensions, expected [time,features]", i,
                        tp_layer_input(layer, i)->rank);
        return false;
    }
    if (key_of(layer)->dims[0] != value->dims[0]) {
        tp_problems_add(problems, "there are %lld keys and %lld values, expected as many",
                        (long long)key_of(layer)->dims[0], (long long)value->dims[0]);
        return false;
    }
    if (layer->input_count < 4) return true;
    const tp_shape *mask = tp_layer_input(layer, 3);
    if (mask->dims[0] == query->dims[0] && mask->dims[1] == value->dims[0]) return true;
    tp_problems_add(problems,
                    "the attention mask is [%lld,%lld], expected [queries,keys] [%lld,%lld]",
                    (long long)mask->dims[0], (long long)mask->dims[1], (long long)query->dims[0],
                    (long long)value->dims[0]);
    return false;
}

/* kernel [in..., out...] and bias [out...]; the initializer sees all of in and all of out. */
static void add_projection(tp_layer *layer, projection which, int in_rank, const int64_t *in,
                           int out_rank, const int64_t *out)
{
    static const char *const kernels[] = {"query/kernel", "key/kernel", "gate/kernel",
                                          "value/kernel", "attention_output/kernel"};
    static const char *const biases[] = {"query/bias", "key/bias", "gate/bias", "value/bias",
                                         "attention_output/bias"};
    heads_args *heads = layer->args;
    int64_t dims[TP_MAX_RANK];
    tp_shape fans = {.rank = 2, .dims = {1, 1}};
    for (int i = 0; i < in_rank + out_rank; i++) {
        dims[i] = i < in_rank ? in[i] : out[i - in_rank];
        fans.dims[i >= in_rank] *= dims[i];
    }
    heads->kernel_at[which] = layer->weight_count;
    tp_layer_weight *kernel = tp_layer_add_weight(layer, kernels[which], in_rank + out_rank, dims,
                                                  &heads->kernel_initializer, true);
    kernel->fans = fans;
    kernel->regularizer = &heads->kernel_regularizer;
    kernel->constraint = &heads->kernel_constraint;
    if (!heads->use_bias) return;
    tp_layer_add_trained(layer, biases[which], out_rank, out, &heads->bias_initializer,
                         &heads->bias_regularizer, &heads->bias_constraint);
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    heads_args *heads = layer->args;
    if (!check_inputs(layer, problems)) return false;
    if (heads->value_dim == 0) heads->value_dim = heads->key_dim;
    if (heads->shared_heads == 0) heads->shared_heads = heads->num_heads;
    if (heads->num_heads % heads->shared_heads != 0) {
        tp_problems_add(problems, "%lld heads of queries do not share %lld of keys and values",
                        (long long)heads->num_heads, (long long)heads->shared_heads);
        return false;
    }
    const int64_t *query = tp_layer_input(layer, 0)->dims;
    const int64_t key_out[] = {heads->num_heads, heads->key_dim};
    const int64_t value_out[] = {heads->num_heads, heads->value_dim};
    const int64_t shared_key[] = {heads->shared_heads, heads->key_dim};
    const int64_t shared_value[] = {heads->shared_heads, heads->value_dim};
    tp_shape output = {.rank = 2, .dims = {query[0], query[1]}};
    if (heads->output_shape.count) output.rank = 1 + heads->output_shape.count;
    for (int32_t i = 0; i < heads->output_shape.count; i++)
        output.dims[i + 1] = heads->output_shape.items[i];
    if (!tp_layer_add_output(layer, problems, output.rank, output.dims)) return false;
    add_projection(layer, QUERY, 1, &query[1], 2, key_out);
    add_projection(layer, KEY, 1, &key_of(layer)->dims[1], 2, shared_key);
    if (heads->use_gate) add_projection(layer, GATE, 1, &query[1], 2, value_out);
    add_projection(layer, VALUE, 1, &tp_layer_input(layer, 1)->dims[1], 2, shared_value);
    add_projection(layer, OUTPUT, 2, value_out, output.rank - 1, &output.dims[1]);
    return true;
}

/* ---- nodes ---- */

/* x [batch, time, in] . kernel + bias in the layer's dtype: [batch, time, out...]; `in` and `out` are products
 * of the kernel's dimensions. */
static tp_node_id project(tp_layer_context *context, const tp_layer *layer, projection which,
                          tp_node_id x, tp_shape result, tp_activation activation)
{
    const heads_args *heads = layer->args;
    tp_graph *graph = context->graph;
    const int32_t at = heads->kernel_at[which];
    const tp_node_id kernel = tp_op_convert(graph, context->variables[at], context->dtype);
    const tp_node_id flat = tp_op_reshape(graph, kernel, layer->weights[at].fans);
    const tp_node_id product =
        tp_op_reshape(graph, tp_op_matmul(graph, x, flat, context->precision), result);
    const tp_node_id bias = heads->use_bias ? context->variables[at + 1] : TP_NO_NODE;
    return tp_layer_finish_product(context, product, bias, activation);
}

/* What the masks of the inputs, the fourth input and the arguments let queries see. */
static tp_attention_view view_of(tp_layer_context *context, const tp_layer *layer,
                                 const tp_node_id *inputs)
{
    const heads_args *heads = layer->args;
    tp_attention_view view = {.scale = 1 / sqrt((double)heads->key_dim),
                              .is_causal = heads->use_causal_mask,
                              .window = heads->sliding_window,
                              .dropout = heads->dropout,
                              .queries = context->input_masks[0],
                              .keys = context->input_masks[1],
                              .pairs = TP_NO_NODE};
    if (layer->input_count > 2)
        view.keys = tp_attention_both(context->graph, view.keys, context->input_masks[2]);
    if (layer->input_count > 3) view.pairs = tp_op_convert(context->graph, inputs[3], TP_PRED);
    return view;
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const heads_args *heads = layer->args;
    tp_graph *graph = context->graph;
    const int64_t batch = context->batch, n = heads->num_heads, shared = heads->shared_heads;
    const int64_t queries = tp_layer_input(layer, 0)->dims[0], keys = key_of(layer)->dims[0];
    const tp_shape query_shape = {.rank = 4, .dims = {batch, queries, n, heads->key_dim}};
    const tp_shape key_shape = {.rank = 4, .dims = {batch, keys, shared, heads->key_dim}};
    const tp_shape value_shape = {.rank = 4, .dims = {batch, keys, shared, heads->value_dim}};
    const tp_shape seen_shape = {.rank = 4, .dims = {batch, queries, n, heads->value_dim}};
    const tp_shape flat_shape = {.rank = 3, .dims = {batch, queries, n * heads->value_dim}};
    const tp_activation linear = TP_ACTIVATION_LINEAR;
    const tp_node_id query = project(context, layer, QUERY, inputs[0], query_shape, linear);
    const tp_node_id key =
        project(context, layer, KEY, inputs[layer->input_count > 2 ? 2 : 1], key_shape, linear);
    const tp_node_id value = project(context, layer, VALUE, inputs[1], value_shape, linear);
    const tp_attention_view view = view_of(context, layer, inputs);
    tp_node_id seen = tp_attention_see(context, query, key, value, &view);
    if (heads->use_gate) {
        const tp_node_id gate =
            project(context, layer, GATE, inputs[0], seen_shape, TP_ACTIVATION_SIGMOID);
        seen = tp_op_multiply(graph, seen, tp_op_convert(graph, gate, TP_F32));
    }
    const tp_node_id flat =
        tp_op_reshape(graph, tp_op_convert(graph, seen, context->dtype), flat_shape);
    outputs[0] = project(context, layer, OUTPUT, flat,
                         tp_layer_batched(context, tp_layer_output(layer, 0)), linear);
}

const tp_layer_type tp_layer_multi_head_attention = {.name = "MultiHeadAttention",
                                                     .snake = "multi_head_attention",
                                                     .arguments = arguments,
                                                     .args_bytes = sizeof(heads_args),
                                                     .min_inputs = 2,
                                                     .max_inputs = 4,
                                                     .mask = TP_LAYER_MASK_PASSES,
                                                     .set_defaults = set_defaults,
                                                     .infer = infer,
                                                     .build = build};
const tp_layer_type tp_layer_group_query_attention = {.name = "GroupQueryAttention",
                                                      .snake = "grouped_query_attention",
                                                      .arguments = group_arguments,
                                                      .args_bytes = sizeof(heads_args),
                                                      .min_inputs = 2,
                                                      .max_inputs = 4,
                                                      .mask = TP_LAYER_MASK_PASSES,
                                                      .set_defaults = set_defaults,
                                                      .infer = infer,
                                                      .build = build};
