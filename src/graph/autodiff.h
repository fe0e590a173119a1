/* SPDX-License-Identifier: Apache-2.0
 * Reverse-mode derivatives as graph nodes.
 *
 * The walk goes from `loss` to smaller ids. Order, which fixes the bits: a node's gradient is the sum of
 * what its users contribute, users by falling id, one user's operands by rising position, added one by one
 * to what is there: ((first + second) + third). An op without a gradient, and a node with an integer or
 * pred result, ends the path.
 */
#ifndef TP_GRAPH_AUTODIFF_H
#define TP_GRAPH_AUTODIFF_H

#include "graph/graph.h"

/* d loss / d wrt[i] into out_gradients[i], of wrt[i]'s dtype and shape; TP_NO_NODE where loss does not
 * depend on it. `loss` is a float scalar. Mistakes go to the graph, as with the builder. */
void tp_graph_gradients(tp_graph *graph, tp_node_id loss, const tp_node_id *wrt, int32_t count,
                        tp_node_id *out_gradients);

/* The same with a given gradient of `result` (any shape, result's dtype) to start from. */
void tp_graph_gradients_from(tp_graph *graph, tp_node_id result, tp_node_id d_result,
                             const tp_node_id *wrt, int32_t count, tp_node_id *out_gradients);

#endif
