/* SPDX-License-Identifier: Apache-2.0
 * Activations by Keras' names, as graph nodes, with the arguments' defaults. gelu_approximate is Keras'
 * gelu(approximate=True).
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
    X(SOFTMAX, "softmax")                                                                          \
    X(LOG_SOFTMAX, "log_softmax")                                                                  \
    X(SPARSEMAX, "sparsemax")                                                                      \
    X(GELU_APPROXIMATE, "gelu_approximate")                                                        \
    X(CELU, "celu")                                                                                \
    X(MISH, "mish")                                                                                \
    X(LOG_SIGMOID, "log_sigmoid")                                                                  \
    X(HARD_SIGMOID, "hard_sigmoid")                                                                \
    X(SPARSE_SIGMOID, "sparse_sigmoid")                                                            \
    X(HARD_SILU, "hard_silu")                                                                      \
    X(HARD_SWISH, "hard_swish")                                                                    \
    X(HARD_TANH, "hard_tanh")                                                                      \
    X(TANH_SHRINK, "tanh_shrink")                                                                  \
    X(SOFT_SHRINK, "soft_shrink")                                                                  \
    X(HARD_SHRINK, "hard_shrink")                                                                  \
    X(SQUAREPLUS, "squareplus")                                                                    \
    X(SPARSE_PLUS, "sparse_plus")

typedef enum tp_activation {
#define TP_ACTIVATION_ENUM(id, name) TP_ACTIVATION_##id,
    TP_ACTIVATION_LIST(TP_ACTIVATION_ENUM)
#undef TP_ACTIVATION_ENUM
        TP_ACTIVATION_COUNT
} tp_activation;

/* In the order of the enum. */
extern const char *const tp_activation_names[TP_ACTIVATION_COUNT];

/* Those that look at a whole row need at least one dimension. */
static inline bool tp_activation_is_row_wise(tp_activation activation)
{
    return activation == TP_ACTIVATION_SOFTMAX || activation == TP_ACTIVATION_LOG_SOFTMAX ||
           activation == TP_ACTIVATION_SPARSEMAX;
}

/* The activation of z (f32), computed in f32 and rounded once to `dtype` (f32 or bf16). Softmax, log_softmax
 * and sparsemax are over the last axis. */
tp_node_id tp_activation_apply(tp_graph *graph, tp_activation activation, tp_node_id z,
                               tp_dtype dtype);

/* z minus its largest element along the last axis, which is taken as a constant when differentiating:
 * adding a constant to all logits changes neither softmax nor cross-entropy. */
tp_node_id tp_activation_shift(tp_graph *graph, tp_node_id z);

/* Sum along the last axis, which stays with size 1. */
tp_node_id tp_activation_sum_last(tp_graph *graph, tp_node_id z);

#endif
