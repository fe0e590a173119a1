/* SPDX-License-Identifier: Apache-2.0
 * Where values enter and leave a loop, see graph/loop.h. Each has the attributes loop (its number),
 * length (its turns), and where it says so reverse (0 or 1).
 *
 *   loop_slice(xs)            xs [length, ...]: xs[turn], with reverse xs[length - 1 - turn]
 *   loop_carry(init)          index: tells the carries of a loop apart. init, or what loop_last says
 *   loop_last(carry, next)    next is the carry in the next turn; the value after the last turn
 *   loop_stack(value)         [length, ...]: value of turn t at t, with reverse at length - 1 - t
 *
 * Evaluation is for one turn, which the context says: a slice is taken, a carry gets `init`, loop_last
 * gets `next`, a row of the stack is filled in. Gradients: graph/autodiff_loop.c. */
#ifndef TP_OPS_OP_LOOP_H
#define TP_OPS_OP_LOOP_H

#include "graph/opdef.h"

#define TP_LOOP_OPS(X) X(loop_slice) X(loop_carry) X(loop_last) X(loop_stack)
#define TP_DECLARE_OP(op) extern const tp_opdef tp_opdef_##op;
TP_LOOP_OPS(TP_DECLARE_OP)
#undef TP_DECLARE_OP

#endif
