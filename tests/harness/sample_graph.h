/* SPDX-License-Identifier: Apache-2.0
 * A training step small enough to read and rich enough to matter: two dense layers in mixed_bfloat16 with
 * relu and dropout, softmax cross-entropy with sparse labels, gradients averaged over the cores, SGD. */
#ifndef TP_HARNESS_SAMPLE_GRAPH_H
#define TP_HARNESS_SAMPLE_GRAPH_H

#include "graph/builder.h"

typedef struct tp_sample_options {
    int64_t batch, features, hidden, classes; /* batch: of one core */
    int32_t cores;                            /* for the mean over cores */
    double learning_rate, dropout;
} tp_sample_options;

/* Inputs "x" f32 [batch, features] and "label" s32 [batch]; outputs "loss" (replicated) and "logits". The
 * caller destroys the graph. Fails the running test on a mistake. */
tp_graph *tp_sample_graph(const tp_sample_options *options);

/* batch 4, features 6, hidden 5, classes 3, 2 cores, learning rate 0.1, dropout 0.25 */
extern const tp_sample_options tp_sample_small;

#endif
