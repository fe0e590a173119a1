/* SPDX-License-Identifier: Apache-2.0
 * Element-wise ops. Operands have equal shapes (tp_op_*() of graph/builder.h broadcasts for its
 * caller) and, where there are several, one dtype; the result has it, too, unless the table says
 * otherwise. bf16 operands are widened, the op is done in f32, the result is rounded once. s32 and
 * u32 wrap.
 *
 *   op_elementwise_unary.c    f32, bf16 (abs, negate, sign: s32, too)
 *   op_elementwise_binary.c   f32, bf16, s32, u32 (power: f32, bf16)
 *   op_elementwise_logic.c    compare -> pred; and or xor not on pred, s32, u32; select; clamp;
 *                             is_finite
 *   op_elementwise_convert.c  convert, stochastic_round
 */
#ifndef TP_OPS_OP_ELEMENTWISE_H
#define TP_OPS_OP_ELEMENTWISE_H

#include "graph/opdef.h"

/* clang-format off */
#define TP_ELEMENTWISE_OPS(X)                                                                      \
    X(abs) X(negate) X(sign) X(exponential) X(exponential_minus_one) X(log) X(log_plus_one)        \
    X(sqrt) X(rsqrt) X(cbrt) X(tanh) X(logistic) X(erf) X(sine) X(cosine) X(floor) X(ceil)         \
    X(round_nearest_even)                                                                          \
    X(add) X(subtract) X(multiply) X(divide) X(maximum) X(minimum) X(power) X(remainder)           \
    X(compare) X(and) X(or) X(xor) X(not) X(select) X(clamp) X(is_finite) X(convert)    \
    X(stochastic_round)
/* clang-format on */
#define TP_DECLARE_OPDEF(op) extern const tp_opdef tp_opdef_##op;
TP_ELEMENTWISE_OPS(TP_DECLARE_OPDEF)
#undef TP_DECLARE_OPDEF

#endif
