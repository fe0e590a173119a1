/* SPDX-License-Identifier: Apache-2.0
 * reduce(x) by add, max, min, multiply, and, or over `axes`; argmax(x), argmin(x) over one `axis`.
 * Attributes: graph/geometry.h.
 *
 * reduce keeps the dtype. f32: the contract's VPU reduction. bf16: the same in f32, rounded once at the
 * end. s32, u32: add and multiply wrap; pred: and, or. Over nothing: the identity (0, -inf or the
 * smallest integer, inf or the largest, 1, true, false).
 * argmax, argmin give s32: the first of the extreme elements, where NaN counts as more extreme than any
 * number and +0 > -0, in agreement with reduce max and min.
 * Gradients: add; max and min (shared equally by all elements equal to the result); multiply (the
 * product of the others as result / element; an element 0 gives NaN or infinity).
 */
#ifndef TP_OPS_OP_REDUCE_H
#define TP_OPS_OP_REDUCE_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_reduce;
extern const tp_opdef tp_opdef_argmax;
extern const tp_opdef tp_opdef_argmin;

#endif
