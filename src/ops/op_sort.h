/* SPDX-License-Identifier: Apache-2.0
 * Sorting and the largest elements. */
#ifndef TP_OPS_OP_SORT_H
#define TP_OPS_OP_SORT_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_sort;
extern const tp_opdef tp_opdef_top_k;

#endif
