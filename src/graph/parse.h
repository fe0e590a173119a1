/* SPDX-License-Identifier: Apache-2.0
 * The text form of print.h, read back. Input is hostile: sizes are bounded by the text, every node
 * passes tp_graph_add(), and the whole tp_graph_verify(). */
#ifndef TP_GRAPH_PARSE_H
#define TP_GRAPH_PARSE_H

#include "core/str.h"
#include "graph/graph.h"

/* TPUCL_CORRUPT_DATA with "line N: ..." for anything wrong. `text` is borrowed for the call. */
tpucl_status tp_graph_parse(const tp_op_table *ops, tp_view text, tp_graph **out_graph);

#endif
