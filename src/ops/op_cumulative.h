/* SPDX-License-Identifier: Apache-2.0
 * Running sums, products and extremes. */
#ifndef TP_OPS_OP_CUMULATIVE_H
#define TP_OPS_OP_CUMULATIVE_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_cumulative;

#endif
