/* SPDX-License-Identifier: Apache-2.0
 * Ops across cores; attributes and meaning at the head of op_collective.c. */
#ifndef TP_OPS_OP_COLLECTIVE_H
#define TP_OPS_OP_COLLECTIVE_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_replica_id;
extern const tp_opdef tp_opdef_all_reduce;
extern const tp_opdef tp_opdef_all_gather;
extern const tp_opdef tp_opdef_reduce_scatter;
extern const tp_opdef tp_opdef_collective_permute;
extern const tp_opdef tp_opdef_cross_replica_sum;

#endif
