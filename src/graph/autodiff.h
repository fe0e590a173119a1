/* SPDX-License-Identifier: Apache-2.0
 * Reverse-mode derivatives as graph nodes.
 *
 * The walk goes from `loss` backwards in the order of execution, which is that of ids but for loops
 * (graph/loop.h). Order, which fixes the bits: a node's gradient is the sum of what its users
 * contribute, the last user first, one user's operands by rising position, added one by one to what
 * is there: ((first + second) + third). An op without a gradient, and a node with an integer or pred
 * result, ends the path.
 *
 * The gradient of a loop is a loop that goes through the turns from the last to the first. In a turn,
 * users come by falling id; a carry's loop_last brings the gradient from the turn after, in f32.
 * What the turns contribute to a node outside, w, is added in f32 from the last turn to the first:
 * ((0 + last) + ...) + first. But where w is the right operand of a dot_general without batching
 * dimensions, it is one product behind the loop, over (turn, free dimensions of the left operand), turns
 * in the order of the loop's sequence. Operands of a turn are either kept (products, reductions,
 * carries, and sums of them) or computed again, which gives the same bits.
 *
 * A gradient may be wider than its node: an MXU op gives the gradient of its bf16 weights in f32,
 * and a convert, broadcast, reshape or reindexing op hands it on as it is, so that it reaches f32
 * weights unrounded. Before any other op it is converted to the node's dtype. Where contributions
 * differ in dtype, the sum is done in f32. */
#ifndef TP_GRAPH_AUTODIFF_H
#define TP_GRAPH_AUTODIFF_H

#include "graph/graph.h"

/* d loss / d wrt[i] into out_gradients[i], of wrt[i]'s dtype and shape; TP_NO_NODE where loss does
 * not depend on it. `loss` is a float scalar; it and wrt[i] are outside of loops. Mistakes go to the graph, as with the builder. */
void tp_graph_gradients(tp_graph *graph, tp_node_id loss, const tp_node_id *wrt, int32_t count,
                        tp_node_id *out_gradients);

#endif
