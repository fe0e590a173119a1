/* SPDX-License-Identifier: Apache-2.0
 * Losses and the accuracy as graph nodes, one value per example. Formulas of keras/losses and
 * keras/backend; cross-entropies go through log-sum-exp, so that they are finite for any finite logits.
 */
#ifndef TP_MODEL_LOSS_H
#define TP_MODEL_LOSS_H

#include "graph/graph.h"
#include "model/model.h"

typedef struct tp_loss_input {
    tp_model_loss kind;
    tp_node_id result; /* f32 [batch, result...]: what the model gives */
    tp_node_id logits; /* f32 [batch, classes]: what a last softmax took, or TP_NO_NODE */
    tp_node_id label;  /* s32 [batch], or f32 of the shape of `result` */
    bool from_logits;  /* `result` holds logits, not probabilities */
} tp_loss_input;

/* f32 [batch]. Without from_logits probabilities are clipped to [1e-7, 1 - 1e-7], as in Keras, unless
 * `logits` is known. A sparse label outside the classes counts as a logit equal to the largest; sessions
 * refuse data that have one. */
tp_node_id tp_loss_per_example(tp_graph *graph, const tp_loss_input *input);

/* f32 [batch]: 1 where the first largest class is the label's (dense: the first largest label's), else 0.
 * TP_NO_NODE for losses that have no accuracy. Where a value is NaN: 0. */
tp_node_id tp_loss_is_correct(tp_graph *graph, const tp_loss_input *input);

/* f32 []: sum of weight * value over the examples whose weight is above 0; the others may hold anything.
 * Both f32 [batch]. */
tp_node_id tp_loss_weighted_sum(tp_graph *graph, tp_node_id weight, tp_node_id values);

#endif
