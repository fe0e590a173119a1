/* SPDX-License-Identifier: Apache-2.0
 * Slices that begin where a tensor says. */
#ifndef TP_OPS_OP_DYNAMIC_H
#define TP_OPS_OP_DYNAMIC_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_dynamic_slice;
extern const tp_opdef tp_opdef_dynamic_update_slice;

#endif
