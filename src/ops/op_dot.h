/* SPDX-License-Identifier: Apache-2.0
 * dot_general(lhs, rhs): the MXU product of two tensors. Attributes: graph/geometry.h.
 *
 * Operands f32 or bf16 in any mixture, rounded as the precision says; the result is always f32
 * (StableHLO with preferred_element_type f32). k runs over the contracting dimensions row-major in the
 * order in which the lhs list names them.
 * Gradients: that of lhs has lhs' dtype; that of rhs is f32 even when rhs is bf16, so that weight
 * gradients are not rounded before they are summed over the cores.
 */
#ifndef TP_OPS_OP_DOT_H
#define TP_OPS_OP_DOT_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_dot_general;

#endif
