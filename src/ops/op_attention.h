/* SPDX-License-Identifier: Apache-2.0
 * Attention as one op, block by block: nothing of the size queries x keys is ever stored. */
#ifndef TP_OPS_OP_ATTENTION_H
#define TP_OPS_OP_ATTENTION_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_attention;
extern const tp_opdef tp_opdef_attention_grad;

#endif
