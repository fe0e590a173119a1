/* SPDX-License-Identifier: Apache-2.0
 * Ops that move elements and never change one; any dtype. Attributes and meaning at the head of
 * op_shape.c. */
#ifndef TP_OPS_OP_SHAPE_H
#define TP_OPS_OP_SHAPE_H

#include "graph/opdef.h"

#define TP_SHAPE_OPS(X)                                                                            \
    X(broadcast_in_dim) X(reshape) X(transpose) X(slice) X(pad) X(concatenate) X(reverse)
#define TP_DECLARE_OPDEF(op) extern const tp_opdef tp_opdef_##op;
TP_SHAPE_OPS(TP_DECLARE_OPDEF)
#undef TP_DECLARE_OPDEF

#endif
