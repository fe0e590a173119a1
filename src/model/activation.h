/* SPDX-License-Identifier: Apache-2.0
 * Activations by Keras' names, as graph nodes.
 */
#ifndef TP_MODEL_ACTIVATION_H
#define TP_MODEL_ACTIVATION_H

#include "graph/graph.h"

/* X(NAME, "name") */
#define TP_ACTIVATION_LIST(X)                                                                      \
    X(LINEAR, "linear")                                                                            \
    X(RELU, "relu")                                                                                \
    X(RELU6, "relu6")                                                                              \
    X(LEAKY_RELU, "leaky_relu")                                                                    \
    X(ELU, "elu")                                                                                  \
    X(SELU, "selu")                                                                                \
    X(GELU, "gelu")                                                                                \
    X(SIGMOID, "sigmoid")                                                                          \
    X(TANH, "tanh")                                                                                \
    X(SOFTPLUS, "softplus")                                                                        \
    X(SOFTSIGN, "softsign")                                                                        \
    X(SWISH, "swish")                                                                              \
    X(SILU, "silu")                                                                                \
    X(EXPONENTIAL, "exponential")                                                                  \
    X(SOFTMAX, "softmax")

typedef enum tp_activation {
#define TP_ACTIVATION_ENUM(id, name) TP_ACTIVATION_##id,
    TP_ACTIVATION_LIST(TP_ACTIVATION_ENUM)
#undef TP_ACTIVATION_ENUM
        TP_ACTIVATION_COUNT
} tp_activation;

/* In the order of the enum. */
extern const char *const tp_activation_names[TP_ACTIVATION_COUNT];

/* The activation of z (f32), computed in f32 and rounded once to `dtype` (f32 or bf16). Softmax is over
 * the last axis. */
tp_node_id tp_activation_apply(tp_graph *graph, tp_activation activation, tp_node_id z,
                               tp_dtype dtype);

/* z minus its largest element along the last axis, which is taken as a constant when differentiating:
 * adding a constant to all logits changes neither softmax nor cross-entropy. */
tp_node_id tp_activation_shift(tp_graph *graph, tp_node_id z);

/* Sum along the last axis, which stays with size 1. */
tp_node_id tp_activation_sum_last(tp_graph *graph, tp_node_id z);

#endif
