/* SPDX-License-Identifier: Apache-2.0
 * Attention and AdditiveAttention over [query, value] or [query, value, key], each [time, features]
 * (keras/src/layers/attention/attention.py, additive_attention.py):
 *     scores    Attention "dot":      scale * query . key
 *               Attention "concat":   concat_score_weight * sum of tanh(scale * (query + key))
 *               AdditiveAttention:    sum of scale * tanh(query + key)        (Bahdanau et al. 2014)
 *     result    softmax(scores) . value; a key that its mask leaves out has 1e9 less in its scores; a query
 *               that does not count gives 0
 * Scores and softmax are f32; the weights are rounded to the layer's dtype for the product with the values.
 */
#include "model/layer_attention.h"

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

tp_node_id tp_attention_pattern(tp_graph *graph, int64_t queries, int64_t keys, bool is_causal,
                                int64_t window)
{
    const tp_shape shape = {.rank = 2, .dims = {queries, keys}};
    tp_node_id pattern = TP_NO_NODE;
    if (!is_causal && window == 0) return TP_NO_NODE;
    const tp_node_id i = tp_op_iota(graph, TP_S32, shape, 0);
    const tp_node_id j = tp_op_iota(graph, TP_S32, shape, 1);
    if (is_causal) pattern = tp_op_compare(graph, "GE", i, j);
    if (window > 0) {
        const tp_node_id distance = tp_op_abs(graph, tp_op_subtract(graph, i, j));
        const tp_node_id near =
            tp_op_compare(graph, "LT", distance, tp_op_scalar(graph, TP_S32, (double)window));
        pattern = is_causal ? tp_op_and(graph, pattern, near) : near;
    }
    return pattern;
}

tp_node_id tp_attention_dropout(tp_layer_context *context, tp_node_id weights, double rate)
{
    tp_graph *graph = context->graph;
    if (!context->is_training || rate == 0 || weights == TP_NO_NODE) return weights;
    const tp_shape shape = tp_graph_node(graph, weights)->shape;
    const tp_node_id kept =
        tp_op_bernoulli(graph, shape, 1 - rate, tp_layer_random_stream(context));
    const tp_node_id scaled = tp_op_multiply_scalar(graph, weights, rate < 1 ? 1 / (1 - rate) : 0);
    return tp_op_select(graph, kept, scaled, tp_op_scalar(graph, TP_F32, 0));
}

/* ---- nodes ---- */

/* scale (unless TP_NO_NODE) * a */
static tp_node_id scaled(tp_graph *graph, tp_node_id a, tp_node_id scale)
{
    return scale == TP_NO_NODE ? a : tp_op_multiply(graph, a, scale);
}

/* f32 [batch, queries, keys] */
static tp_node_id scores_of(tp_layer_context *context, const tp_layer *layer,
                            const tp_node_id *inputs)
{
    static const int64_t features_axis = 3;
    const attention_args *attention = layer->args;
    tp_graph *graph = context->graph;
    const tp_node_id *weight = context->variables;
    const tp_node_id scale = attention->use_scale ? *weight++ : TP_NO_NODE;
    const tp_node_id query = inputs[0], key = inputs[key_index(layer)];
    if (attention->score_mode == SCORE_DOT) {
        const tp_dot_dims dims = {
            .lhs_contract = {2}, .rhs_contract = {2}, .batch_count = 1, .contract_count = 1};
        return scaled(graph, tp_op_dot_general(graph, query, key, &dims, context->precision),
                      scale);
    }
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
    const tp_node_id value_mask = context->input_masks[1];
    tp_node_id mask = tp_attention_pattern(graph, queries, keys, attention->use_causal_mask, 0);
    if (mask != TP_NO_NODE) mask = tp_op_broadcast_to(graph, mask, whole);
    if (value_mask != TP_NO_NODE) {
        const tp_node_id counts = tp_op_broadcast_in_dim(graph, value_mask, whole, value_axes);
        mask = mask == TP_NO_NODE ? counts : tp_op_and(graph, mask, counts);
    }
    if (mask == TP_NO_NODE) return scores;
    return tp_op_select(graph, mask, scores, tp_op_add_scalar(graph, scores, -MASKED));
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    static const int64_t step_axes[] = {0, 1};
    const tp_dot_dims dims = {
        .lhs_contract = {2}, .rhs_contract = {1}, .batch_count = 1, .contract_count = 1};
    tp_graph *graph = context->graph;
    const tp_node_id scores = mask_scores(context, layer, scores_of(context, layer, inputs));
    const tp_node_id softmax = tp_activation_apply(graph, TP_ACTIVATION_SOFTMAX, scores, TP_F32);
    const tp_node_id dropped =
        tp_attention_dropout(context, softmax, ((const attention_args *)layer->args)->dropout);
    const tp_node_id weights = tp_op_convert(graph, dropped, context->dtype);
    tp_node_id y = tp_op_dot_general(graph, weights, inputs[1], &dims, context->precision);
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
