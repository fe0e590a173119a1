/* SPDX-License-Identifier: Apache-2.0
 * What the attention layers share.
 */
#ifndef TP_MODEL_LAYER_ATTENTION_H
#define TP_MODEL_LAYER_ATTENTION_H

#include "model/layer.h"

/* pred [queries, keys]: key j may be seen by query i. Causal: j <= i. window above 0: |i - j| < window.
 * TP_NO_NODE when neither is asked for. */
tp_node_id tp_attention_pattern(tp_graph *graph, int64_t queries, int64_t keys, bool is_causal,
                                int64_t window);

/* Dropout on the weights of attention (f32), when training; the next random stream of the layer. */
tp_node_id tp_attention_dropout(tp_layer_context *context, tp_node_id weights, double rate);

#endif
