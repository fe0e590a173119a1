/* SPDX-License-Identifier: Apache-2.0
 * The ops across cores on the host: the definition. */
#ifndef TP_REFERENCE_COLLECTIVE_H
#define TP_REFERENCE_COLLECTIVE_H

#include "graph/opdef.h"

/* The result of a collective for the core at `position`, from the operands of all `count` cores of its
 * group, in order. out->data is the caller's and is none of the parts. */
tpucl_status tp_reference_collective(const tp_node *node, const tp_host_tensor *parts,
                                     int32_t count, int32_t position, tp_host_tensor *out);

/* Fails when a node of the graph is for replica groups of another size. */
tpucl_status tp_reference_check_groups(const tp_graph *graph, int32_t group_cores);

#endif
