/* SPDX-License-Identifier: Apache-2.0
 * What the attention layers share.
 */
#ifndef TP_MODEL_LAYER_ATTENTION_H
#define TP_MODEL_LAYER_ATTENTION_H

#include "model/layer.h"

/* How queries see keys in a layer. */
typedef struct tp_attention_view {
    double scale;
    bool is_causal;
    int64_t window; /* query i sees keys nearer than this; 0: all */
    double dropout; /* on the weights, when training; takes the next random stream of the layer */
    /* pred [batch, queries]: those that count, the others see zeros; TP_NO_NODE: all */
    tp_node_id queries;
    tp_node_id keys;  /* pred [batch, keys]: those that may be seen; TP_NO_NODE: all */
    tp_node_id pairs; /* pred [batch, queries, keys], likewise */
} tp_attention_view;

/* f32 [batch, queries, heads, width] of query [batch, queries, heads, depth], key [batch, keys, shared, depth],
 * value [batch, keys, shared, width]: the op `attention`. Where products are of more than one pass, its are of f32
 * operands. */
tp_node_id tp_attention_see(tp_layer_context *context, tp_node_id query, tp_node_id key,
                            tp_node_id value, const tp_attention_view *view);

/* a and b, either of which may be TP_NO_NODE. */
tp_node_id tp_attention_both(tp_graph *graph, tp_node_id a, tp_node_id b);

#endif
