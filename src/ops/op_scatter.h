/* SPDX-License-Identifier: Apache-2.0
 * scatter: the reverse of gather. */
#ifndef TP_OPS_OP_SCATTER_H
#define TP_OPS_OP_SCATTER_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_scatter;

#endif
