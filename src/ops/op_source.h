/* SPDX-License-Identifier: Apache-2.0
 * Ops without operands; attributes and meaning at the head of op_source.c. */
#ifndef TP_OPS_OP_SOURCE_H
#define TP_OPS_OP_SOURCE_H

#include "graph/opdef.h"

#define TP_SOURCE_OPS(X) X(input) X(variable) X(constant) X(iota) X(step)
#define TP_DECLARE_OPDEF(op) extern const tp_opdef tp_opdef_##op;
TP_SOURCE_OPS(TP_DECLARE_OPDEF)
#undef TP_DECLARE_OPDEF

#endif
