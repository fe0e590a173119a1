/* SPDX-License-Identifier: Apache-2.0
 * Element-wise clusters that put tensors side by side along the last axis, by concatenation or as a sum of
 * padded tensors (the gradient of slices): loops over one piece, of which every turn stores an element of
 * each, need no condition, and may compute the tensors themselves, too.
 */
#ifndef TP_COMPILE_VPU_PIECES_H
#define TP_COMPILE_VPU_PIECES_H

#include "graph/graph.h"

/* Most pieces of a root; more would make a kernel long. */
#define TP_VPU_MAX_PIECES 8

/* What the loops of a cluster of `roots` run over: the shape of roots[0], or of one piece of the largest
 * root. False when sizes do not fit, so that there are no such loops. `is_stored` per node. */
bool tp_vpu_pieces_find(const tp_graph *graph, const bool *is_stored, const tp_node_id *roots,
                        int32_t root_count, tp_shape *out_loops);

#endif
