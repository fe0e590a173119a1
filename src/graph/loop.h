/* SPDX-License-Identifier: Apache-2.0
 * Loops with a fixed number of turns, as regions of one graph.
 *
 * Values enter a loop by loop_slice (element `turn` of a tensor's first axis) and loop_carry (what
 * the turn before left, at first `init`). A node that depends on such a value is *in* the loop and
 * is computed anew in each turn; every other node is outside, also when the loop reads it, and is
 * computed once. Values leave by loop_stack (those of all turns, along a new first axis) and
 * loop_last (what the last turn left in a carry); both are outside. loop_last also says what a carry
 * is in the next turn, so each carry has exactly one. All carries change at once, between turns.
 *
 * Which loop a node is in follows from its operands and is kept in node->loop: a number that the
 * loop's ops have as attribute `loop`, with the number of turns as `length`.
 *
 * A node cannot be in two loops: loops do not nest. Nothing is summed over cores inside one. Random
 * ops have no operands, so they are outside: the same numbers in every turn.
 *
 * A loop runs as a whole: it comes after everything that any of its nodes reads and before everything
 * that reads one of its results. Nodes are added to a loop at any time (a gradient stacks values of a
 * loop that was finished long before), so the order of ids is not an order of execution;
 * tp_loop_order() gives one. */
#ifndef TP_GRAPH_LOOP_H
#define TP_GRAPH_LOOP_H

#include "graph/opdef.h"

#define TP_MAX_LOOPS 4096 /* of one graph; numbers of loops are 1 to this */

/* The loop that computes the node: attribute `loop` for the loop's own ops (also those outside),
 * node->loop for others; 0: none. */
int32_t tp_loop_unit(const tp_node *node);

/* What node->loop is to be, from operands and attributes. TPUCL_INVALID_ARGUMENT when loops mix or
 * nest. */
tpucl_status tp_loop_find(const tp_graph *graph, const tp_node *node, int32_t *out_loop);

/* Turns of a loop of the graph; 0 when there is no such loop. */
int64_t tp_loop_length(const tp_graph *graph, int32_t loop);

/* loop_last of a carry, TP_NO_NODE. */
tp_node_id tp_loop_last_of(const tp_graph *graph, tp_node_id carry);

/* One length per loop, one loop_last per carry, an order of execution. TPUCL_INTERNAL otherwise. */
tpucl_status tp_loop_verify(const tp_graph *graph);

/* All nodes in an order of execution: operands first, the nodes of a loop side by side in the order
 * of their ids. Without loops it is the order of ids. out_order: caller's array of node_count.
 * TPUCL_INVALID_ARGUMENT when a loop reads something that depends on its own result. */
tpucl_status tp_loop_order(const tp_graph *graph, tp_node_id *out_order);

/* Parts of tp_graph_mark_live() and tp_graph_mark_replicated(): a live carry keeps its loop_last; a
 * loop with one per-core node has per-core nodes only. True when that changed something. */
bool tp_loop_keep_carries(const tp_graph *graph, bool *inout_is_live);
bool tp_loop_spread_per_core(const tp_graph *graph, bool *inout_is_replicated);

#endif
