/* SPDX-License-Identifier: Apache-2.0
 * Attention and AdditiveAttention over [query, value] or [query, value, key], each [time, features]
 * (keras/src/layers/attention/attention.py, additive_attention.py):
 *     scores    Attention "dot":      scale * query . key
 *               Attention "concat":   concat_score_weight * sum of tanh(scale * (query + key))
 *               AdditiveAttention:    sum of scale * tanh(query + key)        (Bahdanau et al. 2014)
 *     result    softmax(scores) . value; a query that does not count gives 0. Keys that masks leave out
 *               are not seen; in the modes that add, their scores have 1e9 less
 * "dot" is the op `attention`, the other modes store their weights. Scores and softmax are f32; the weights are
 * rounded to the layer's dtype for the product with the values.
 */
#include "model/layer_attention.h"

#include <string.h>

#define MASKED 1e9

typedef enum score_mode { SCORE_DOT, SCORE_CONCAT, SCORE_ADDITIVE } score_mode;
static const char *const score_modes[] = {"dot", "concat"};

typedef struct attention_args {
    bool use_scale, use_causal_mask;
    int32_t score_mode;
    double dropout;
    tp_initializer ones, glorot;
} attention_args;

static const tp_layer_arg arguments[] = {
    TP_LAYER_ROW_BOOL(attention_args, use_scale),
    {"score_mode", offsetof(attention_args, score_mode), TP_LAYER_CHOICE,
     TP_LAYER_CHOICES(score_modes)},
    TP_LAYER_ROW_NUMBER(attention_args, dropout, 0, 1),
    TP_LAYER_ROW_BOOL(attention_args, use_causal_mask),
    {0},
};
static const tp_layer_arg additive_arguments[] = {
    TP_LAYER_ROW_BOOL(attention_args, use_scale),
    TP_LAYER_ROW_NUMBER(attention_args, dropout, 0, 1),
    TP_LAYER_ROW_BOOL(attention_args, use_causal_mask),
    {0},
};

static void set_defaults(void *args)
{
    ((attention_args *)args)->ones = tp_initializer_default("ones");
}

static void set_additive_defaults(void *args)
{
    attention_args *attention = args;
    attention->use_scale = true;
    attention->score_mode = SCORE_ADDITIVE;
    attention->glorot = tp_initializer_default("glorot_uniform");
}

/* Key: the third input, or the value. */
static int32_t key_index(const tp_layer *layer)
{
    return layer->input_count > 2 ? 2 : 1;
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    const attention_args *attention = layer->args;
    for (int32_t i = 0; i < layer->input_count; i++)
        if (tp_layer_input(layer, i)->rank != 2) {
            tp_problems_add(problems, "input %d has %d dimensions, expected [time,features]", i,
                            tp_layer_input(layer, i)->rank);
            return false;
        }
    const tp_shape *query = tp_layer_input(layer, 0), *value = tp_layer_input(layer, 1);
    const tp_shape *key = tp_layer_input(layer, key_index(layer));
    if (query->dims[1] != key->dims[1] || value->dims[0] != key->dims[0]) {
        tp_problems_add(problems,
                        "queries have %lld features, keys %lld; there are %lld keys, %lld values",
                        (long long)query->dims[1], (long long)key->dims[1], (long long)key->dims[0],
                        (long long)value->dims[0]);
        return false;
    }
    if (attention->score_mode == SCORE_ADDITIVE) {
        if (attention->use_scale)
            tp_layer_add_weight(layer, "scale", 1, &query->dims[1], &attention->glorot, true);
    } else {
        if (attention->use_scale)
            tp_layer_add_weight(layer, "scale", 0, NULL, &attention->ones, true);
        if (attention->score_mode == SCORE_CONCAT)
            tp_layer_add_weight(layer, "concat_score_weight", 0, NULL, &attention->ones, true);
    }
    return tp_layer_add_output(layer, problems, 2,
                               (const int64_t[]){query->dims[0], value->dims[1]});
}

/* ---- shared ---- */

tp_node_id tp_attention_both(tp_graph *graph, tp_node_id a, tp_node_id b)
{
    if (a == TP_NO_NODE) return b;
    return b == TP_NO_NODE ? a : tp_op_and(graph, a, b);
}

/* The op's mask: [batch, 1, queries or 1, keys], or TP_NO_NODE. */
static tp_node_id op_mask(tp_graph *graph, const tp_attention_view *view)
{
    static const int64_t key_axes[] = {0, 3}, pair_axes[] = {0, 2, 3};
    if (view->keys == TP_NO_NODE && view->pairs == TP_NO_NODE) return TP_NO_NODE;
    const bool has_pairs = view->pairs != TP_NO_NODE;
    const tp_shape own = tp_graph_node(graph, has_pairs ? view->pairs : view->keys)->shape;
    const tp_shape shape = {
        .rank = 4, .dims = {own.dims[0], 1, has_pairs ? own.dims[1] : 1, own.dims[own.rank - 1]}};
    tp_node_id keys = view->keys, pairs = view->pairs;
    if (keys != TP_NO_NODE) keys = tp_op_broadcast_in_dim(graph, keys, shape, key_axes);
    if (pairs != TP_NO_NODE) pairs = tp_op_broadcast_in_dim(graph, pairs, shape, pair_axes);
    return tp_attention_both(graph, keys, pairs);
}

tp_node_id tp_attention_see(tp_layer_context *context, tp_node_id query, tp_node_id key,
                            tp_node_id value, const tp_attention_view *view)
{
    static const int64_t query_axes[] = {0, 1};
    tp_graph *graph = context->graph;
    const bool drops = context->is_training && view->dropout > 0;
    const tp_attention_options options = {.scale = view->scale,
                                          .is_causal = view->is_causal,
                                          .window = view->window,
                                          .dropout = drops ? view->dropout : 0,
                                          .stream = drops ? tp_layer_random_stream(context) : 0};
    if (graph->has_failed) return TP_NO_NODE;
    const bool is_one_pass = strcmp(context->precision, "default") == 0;
    const tp_node_id seen = tp_op_attention(graph, query, key, value, op_mask(graph, view),
                                            &options, is_one_pass ? "default" : "f32");
    if (view->queries == TP_NO_NODE || seen == TP_NO_NODE) return seen;
    const tp_shape shape = tp_graph_node(graph, seen)->shape;
    const tp_node_id counts = tp_op_broadcast_in_dim(graph, view->queries, shape, query_axes);
    return tp_op_select(graph, counts, seen, tp_op_scalar(graph, TP_F32, 0));
}

/* ---- nodes ---- */

/* scale (unless TP_NO_NODE) * a */
static tp_node_id scaled(tp_graph *graph, tp_node_id a, tp_node_id scale)
{
    return scale == TP_NO_NODE ? a : tp_op_multiply(graph, a, scale);
}

/* f32 [batch, queries, keys] of the modes that add. */
static tp_node_id scores_of(tp_layer_context *context, const tp_layer *layer,
                            const tp_node_id *inputs)
{
    static const int64_t features_axis = 3;
    const attention_args *attention = layer->args;
    tp_graph *graph = context->graph;
    const tp_node_id *weight = context->variables;
    const tp_node_id scale = attention->use_scale ? *weight++ : TP_NO_NODE;
    const tp_node_id query = inputs[0], key = inputs[key_index(layer)];
    const int64_t *q = tp_layer_input(layer, 0)->dims;
    const int64_t keys = tp_layer_input(layer, 1)->dims[0];
    const tp_shape rows = {.rank = 4, .dims = {context->batch, q[0], 1, q[1]}};
    const tp_shape columns = {.rank = 4, .dims = {context->batch, 1, keys, q[1]}};
    const tp_node_id sum =
        tp_op_add(graph, tp_op_reshape(graph, tp_op_convert(graph, query, TP_F32), rows),
                  tp_op_reshape(graph, tp_op_convert(graph, key, TP_F32), columns));
    const bool is_additive = attention->score_mode == SCORE_ADDITIVE;
    tp_node_id terms = tp_op_tanh(graph, is_additive ? sum : scaled(graph, sum, scale));
    if (is_additive) terms = scaled(graph, terms, scale);
    const tp_node_id scores = tp_op_reduce(graph, terms, "add", &features_axis, 1);
    return is_additive ? scores : scaled(graph, scores, *weight);
}

/* Without the keys that do not count. */
static tp_node_id mask_scores(tp_layer_context *context, const tp_layer *layer, tp_node_id scores)
{
    static const int64_t value_axes[] = {0, 2};
    const attention_args *attention = layer->args;
    tp_graph *graph = context->graph;
    const int64_t queries = tp_layer_input(layer, 0)->dims[0];
    const int64_t keys = tp_layer_input(layer, 1)->dims[0];
    const tp_shape whole = {.rank = 3, .dims = {context->batch, queries, keys}};
    tp_node_id mask = TP_NO_NODE;
    if (attention->use_causal_mask)
        mask = tp_op_compare(graph, "GE", tp_op_iota(graph, TP_S32, whole, 1),
                             tp_op_iota(graph, TP_S32, whole, 2));
    if (context->input_masks[1] != TP_NO_NODE)
        mask = tp_attention_both(
            graph, mask, tp_op_broadcast_in_dim(graph, context->input_masks[1], whole, value_axes));
    if (mask == TP_NO_NODE) return scores;
    return tp_op_select(graph, mask, scores, tp_op_add_scalar(graph, scores, -MASKED));
}

/* f32 [batch, queries, features] by weights that are stored. */
static tp_node_id see_by_weights(tp_layer_context *context, const tp_layer *layer,
                                 const tp_node_id *inputs)
{
    const tp_dot_dims dims = {
        .lhs_contract = {2}, .rhs_contract = {1}, .batch_count = 1, .contract_count = 1};
    const double rate = ((const attention_args *)layer->args)->dropout;
    tp_graph *graph = context->graph;
    const tp_node_id scores = mask_scores(context, layer, scores_of(context, layer, inputs));
    tp_node_id weights = tp_activation_apply(graph, TP_ACTIVATION_SOFTMAX, scores, TP_F32);
    if (context->is_training && rate > 0 && weights != TP_NO_NODE) {
        const tp_shape shape = tp_graph_node(graph, weights)->shape;
        const tp_node_id kept =
            tp_op_bernoulli(graph, shape, 1 - rate, tp_layer_random_stream(context));
        const tp_node_id raised =
            tp_op_multiply_scalar(graph, weights, rate < 1 ? 1 / (1 - rate) : 0);
        weights = tp_op_select(graph, kept, raised, tp_op_scalar(graph, TP_F32, 0));
    }
    weights = tp_op_convert(graph, weights, context->dtype);
    return tp_op_dot_general(graph, weights, inputs[1], &dims, context->precision);
}

/* x [batch, time, features] as one head. */
static tp_node_id as_head(tp_graph *graph, int64_t batch, const tp_shape *x, tp_node_id node)
{
    const tp_shape shape = {.rank = 4, .dims = {batch, x->dims[0], 1, x->dims[1]}};
    return tp_op_reshape(graph, node, shape);
}

/* The same by the op; the learnt scale goes to the queries. */
static tp_node_id see_by_op(tp_layer_context *context, const tp_layer *layer,
                            const tp_node_id *inputs)
{
    const attention_args *attention = layer->args;
    const int32_t key = key_index(layer);
    const int64_t batch = context->batch;
    tp_graph *graph = context->graph;
    const tp_node_id scale = attention->use_scale ? context->variables[0] : TP_NO_NODE;
    const tp_node_id query = scale == TP_NO_NODE
                                 ? inputs[0]
                                 : scaled(graph, tp_op_convert(graph, inputs[0], TP_F32), scale);
    const tp_attention_view view = {.scale = 1,
                                    .is_causal = attention->use_causal_mask,
                                    .dropout = attention->dropout,
                                    .queries = TP_NO_NODE,
                                    .keys = context->input_masks[1],
                                    .pairs = TP_NO_NODE};
    const tp_node_id seen =
        tp_attention_see(context, as_head(graph, batch, tp_layer_input(layer, 0), query),
                         as_head(graph, batch, tp_layer_input(layer, key), inputs[key]),
                         as_head(graph, batch, tp_layer_input(layer, 1), inputs[1]), &view);
    return tp_op_reshape(graph, seen, tp_layer_batched(context, tp_layer_output(layer, 0)));
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    static const int64_t step_axes[] = {0, 1};
    const bool is_dot = ((const attention_args *)layer->args)->score_mode == SCORE_DOT;
    tp_graph *graph = context->graph;
    tp_node_id y =
        is_dot ? see_by_op(context, layer, inputs) : see_by_weights(context, layer, inputs);
    y = tp_op_convert(graph, y, context->dtype);
    if (context->input_masks[0] != TP_NO_NODE) {
        const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
        const tp_node_id counts =
            tp_op_broadcast_in_dim(graph, context->input_masks[0], shape, step_axes);
        y = tp_op_select(graph, counts, y, tp_op_scalar(graph, context->dtype, 0));
    }
    outputs[0] = y;
}

const tp_layer_type tp_layer_attention = {.name = "Attention",
                                          .snake = "attention",
                                          .arguments = arguments,
                                          .args_bytes = sizeof(attention_args),
                                          .min_inputs = 2,
                                          .max_inputs = 3,
                                          .mask = TP_LAYER_MASK_PASSES,
                                          .set_defaults = set_defaults,
                                          .infer = infer,
                                          .build = build};
const tp_layer_type tp_layer_additive_attention = {.name = "AdditiveAttention",
                                                   .snake = "additive_attention",
                                                   .arguments = additive_arguments,
                                                   .args_bytes = sizeof(attention_args),
                                                   .min_inputs = 2,
                                                   .max_inputs = 3,
                                                   .mask = TP_LAYER_MASK_PASSES,
                                                   .set_defaults = set_additive_defaults,
                                                   .infer = infer,
                                                   .build = build};
