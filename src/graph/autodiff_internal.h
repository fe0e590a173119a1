/* SPDX-License-Identifier: Apache-2.0
 * What autodiff.c and autodiff_loop.c share. */
#ifndef TP_GRAPH_AUTODIFF_INTERNAL_H
#define TP_GRAPH_AUTODIFF_INTERNAL_H

#include "graph/autodiff.h"
#include "graph/opdef.h"

/* One walk from a loss. Arrays are of the nodes that were there when it began. */
typedef struct tp_autodiff {
    tp_graph *graph;
    int32_t node_count;
    bool *is_active;       /* depends on what is differentiated for, by differentiable ops */
    tp_node_id *gradients; /* so far; TP_NO_NODE */
    tp_node_id *order;     /* tp_loop_order() */
} tp_autodiff;

/* Whether a gradient of another dtype may pass the op as it is. */
bool tp_autodiff_hands_on_dtype(const tp_node *node);
/* Nodes of the gradient of "dense/add" are named "gradient/dense/multiply". Returns the old scope. */
const char *tp_autodiff_enter_scope(tp_graph *graph, const char *name);
/* Adds a contribution to the gradient of `node`. */
void tp_autodiff_accumulate(tp_graph *graph, tp_node_id node, tp_node_id contribution,
                            tp_node_id *gradients);

/* Lets the gradients of a loop's results flow to what it reads. */
void tp_autodiff_loop(tp_autodiff *ad, int32_t loop);

#endif
