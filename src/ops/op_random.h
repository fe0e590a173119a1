/* SPDX-License-Identifier: Apache-2.0
 * Random ops; attributes and meaning at the head of op_random.c. */
#ifndef TP_OPS_OP_RANDOM_H
#define TP_OPS_OP_RANDOM_H

#include "graph/opdef.h"

#define TP_RANDOM_OPS(X) X(uniform) X(normal) X(bernoulli) X(random_bits)
#define TP_DECLARE_OPDEF(op) extern const tp_opdef tp_opdef_##op;
TP_RANDOM_OPS(TP_DECLARE_OPDEF)
#undef TP_DECLARE_OPDEF

#endif
