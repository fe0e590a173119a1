/* SPDX-License-Identifier: Apache-2.0
 * The moves that passes are made of. A pass builds a new graph from an old one: nodes come in the
 * order of their ids, each is either copied, with its inputs mapped, or replaced by whatever the
 * pass adds instead. So ids stay topological and nothing is patched in place.
 *
 *     tp_rewrite *rewrite;
 *     TP_TRY(tp_rewrite_begin(graph, &rewrite));
 *     for (tp_node_id id = 0; id < graph->node_count; ++id) {
 *         if (!tp_rewrite_is_live(rewrite, id)) continue;
 *         if (is_no_op(graph, id))
 *             tp_rewrite_map(rewrite, id, tp_rewrite_of(rewrite, graph->nodes[id].inputs[0]));
 *         else
 *             tp_rewrite_copy(rewrite, id);
 *     }
 *     TP_TRY_GOTO(status, tp_rewrite_finish(rewrite, &new_graph), done);
 *
 * Inputs and variables are kept even when nothing uses them, in their order, so that feeds and
 * checkpoints do not depend on passes. */
#ifndef TP_GRAPH_REWRITE_H
#define TP_GRAPH_REWRITE_H

#include "graph/graph.h"

typedef struct tp_rewrite tp_rewrite;

tpucl_status tp_rewrite_begin(const tp_graph *from, tp_rewrite **out_rewrite) TPUCL_MUST_CHECK;

/* The graph under construction: builder calls on it add new nodes. Its scope is the caller's. */
tp_graph *tp_rewrite_graph(tp_rewrite *rewrite);

/* Whether an update or output needs the old node, or it is an input or a variable. */
bool tp_rewrite_is_live(const tp_rewrite *rewrite, tp_node_id old_id);

/* The new node that stands for an old one that was copied or mapped already. */
tp_node_id tp_rewrite_of(const tp_rewrite *rewrite, tp_node_id old_id);

/* Copies an old node with its name, mapped inputs and attributes. Returns the new node. */
tp_node_id tp_rewrite_copy(tp_rewrite *rewrite, tp_node_id old_id);

/* Lets a new node of the same dtype and shape stand for an old one. */
void tp_rewrite_map(tp_rewrite *rewrite, tp_node_id old_id, tp_node_id new_id);

/* Copies what is not copied yet of the live nodes (also those that only replaced nodes used:
 * tp_graph_compact() drops them), then variables' entries, updates and outputs; verifies
 * the result and hands it over. Ends the rewrite, also when it fails. */
tpucl_status tp_rewrite_finish(tp_rewrite *rewrite, tp_graph **out_graph) TPUCL_MUST_CHECK;

/* Ends a rewrite without a result; accepts NULL. */
void tp_rewrite_cancel(tp_rewrite *rewrite);

/* A copy without dead nodes. */
tpucl_status tp_graph_compact(const tp_graph *graph, tp_graph **out_graph) TPUCL_MUST_CHECK;

/* out_counts: caller's array of graph->node_count: how many operands, updates and outputs name the
 * node. */
void tp_graph_count_uses(const tp_graph *graph, int32_t *out_counts);

/* out_is_live: caller's array of graph->node_count: needed by an update or an output. */
void tp_graph_mark_live(const tp_graph *graph, bool *out_is_live);

#endif
