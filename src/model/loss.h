/* SPDX-License-Identifier: Apache-2.0
 * Losses and the accuracy as graph nodes. Names, arguments, defaults and formulas of keras/src/losses;
 * topo/config_choices.h is the list, loss_elements.h has the formulas. Cross-entropies go through
 * log-sum-exp, so that they are finite for any finite logits.
 *
 * Results may have any shape [batch, inner..., last]. A loss has one value per element [batch, inner...]: it
 * takes the last axis together (dice and tversky: all axes but the batch). What counts:
 *   mean over examples      the example's loss is the mean over its elements; loss_sum is the sum of
 *                           weight * loss, weight_sum the sum of weights
 *   with a mask, or with    loss_sum is the sum of weight * loss over the elements that are not masked,
 *   ignore_class            weight_sum the sum of weight over the same
 * Either way the mean loss is loss_sum / weight_sum, each summed over the cores: for weights of 1 it is Keras'
 * reduction "sum_over_batch_size" of the whole batch, for any split and padding. class_weight multiplies
 * losses and leaves weight_sum alone, as in Keras' fit().
 */
#ifndef TP_MODEL_LOSS_H
#define TP_MODEL_LOSS_H

#include "graph/graph.h"
#include "model/expression.h"
#include "model/model.h"

/* Arguments but from_logits; those that the kind has mean something. */
struct tp_loss_options {
#define TP_LOSS_NUMBER(field, low, high, open, meaning) double field;
#define TP_LOSS_FLAG(field, meaning) bool field;
    TP_LOSS_KEYS(TP_LOSS_NUMBER, TP_LOSS_FLAG) /* ignore_class NaN: none */
#undef TP_LOSS_NUMBER
#undef TP_LOSS_FLAG
    const double *class_weight; /* [class_count]; classes beyond: 1. Borrowed */
    int64_t class_count;
    /* Borrowed, NULL: none. What the loss EXPRESSION is; which elements count, any loss; the key path of both
     * for messages ("loss"). */
    const char *expression, *mask, *path;
};

enum { TP_LOSS_MAX_NAMES = 4 };

/* Keras' defaults. */
tp_loss_options tp_loss_defaults(tp_model_loss kind);

typedef struct tp_loss_input {
    tp_model_loss kind;
    tp_node_id result; /* f32 [batch, result...]: what the model gives */
    tp_node_id logits; /* f32, of the same shape: what a last softmax took, or TP_NO_NODE */
    tp_node_id label;  /* s32 without the last axis (sparse), or f32 of the shape of `result` */
    bool from_logits;  /* `result` holds logits, not probabilities */
    const tp_loss_options *options; /* NULL: the defaults */
    /* Filled in by loss_expression.h: what expressions see, and what EXPRESSION gave, f32 [batch, ...]. */
    tp_expression_name names[TP_LOSS_MAX_NAMES];
    int32_t name_count;
    tp_node_id values, sample_weight;
} tp_loss_input;

/* f32 [batch]. Without from_logits probabilities are clipped to [1e-7, 1 - 1e-7], as in Keras, unless
 * `logits` is known. A sparse label outside the classes counts as a logit equal to the largest; sessions
 * refuse data that have one. Elements of ignore_class have loss 0 here. */
tp_node_id tp_loss_per_example(tp_graph *graph, const tp_loss_input *input);

/* f32 [batch]: 1 where the first largest class is the label's (dense: the first largest label's), else 0;
 * the share of such elements where an example has several. TP_NO_NODE for losses that have no accuracy.
 * Where a value is NaN: 0. */
tp_node_id tp_loss_is_correct(tp_graph *graph, const tp_loss_input *input);

bool tp_loss_has_accuracy(tp_model_loss kind);
/* Whether labels are class numbers, s32 without the last axis. */
bool tp_loss_is_sparse(tp_model_loss kind);
/* The same of labels that are there: those of EXPRESSION may be anything. */
bool tp_loss_has_classes(const tp_graph *graph, const tp_loss_input *input);
/* Of the loss's elements: [batch, inner...]; of EXPRESSION that of its values. */
tp_shape tp_loss_element_shape(const tp_graph *graph, const tp_loss_input *input);
/* The least size of the last axis of the result: 2 for losses of several classes. */
int64_t tp_loss_least_classes(tp_model_loss kind);

/* What elements count, f32: [batch] when all elements of an example count alike (is_masked false), else
 * [batch, inner...], 0 where masked. `mask`: pred [batch, some of inner...] or TP_NO_NODE. */
typedef struct tp_loss_weights {
    tp_node_id weight;
    bool is_masked;
} tp_loss_weights;

tp_loss_weights tp_loss_weights_of(tp_graph *graph, const tp_loss_input *input, tp_node_id weight,
                                   tp_node_id mask);

/* loss_sum of this core, f32 []. */
tp_node_id tp_loss_sum(tp_graph *graph, const tp_loss_input *input, const tp_loss_weights *weights);

/* Sum of weight over `correct`: of tp_loss_is_correct, with the same weights. */
tp_node_id tp_loss_correct_sum(tp_graph *graph, const tp_loss_input *input,
                               const tp_loss_weights *weights);

/* f32 []: sum of weight * value over the elements whose weight is above 0; the others may hold anything.
 * Both f32 and of one shape. */
tp_node_id tp_loss_weighted_sum(tp_graph *graph, tp_node_id weight, tp_node_id values);

/* s32: index of the first largest element along the last axis, which is dropped; the number of classes when
 * that is NaN. Plain reductions and selects, so that it fuses with the loss. */
tp_node_id tp_loss_first_largest(tp_graph *graph, tp_node_id values);

#endif
