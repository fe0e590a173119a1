/* SPDX-License-Identifier: Apache-2.0
 * The invariants of a graph. Passes are checked with it after every change, parsed text once. */
#ifndef TP_GRAPH_VERIFY_H
#define TP_GRAPH_VERIFY_H

#include "graph/graph.h"

/* Every node: inputs have smaller ids; attributes are the op's; dtype and shape are what its rule
 * infers. Every `input` and `variable` node belongs to exactly one entry of the same name, dtype
 * and shape, names are unique. Updates: replicated, of the variable's type, one per variable.
 * Outputs name nodes. Loops: see graph/loop.h. TPUCL_INTERNAL naming the node otherwise. */
tpucl_status tp_graph_verify(const tp_graph *graph);

#endif
