/* SPDX-License-Identifier: Apache-2.0
 * Windows. Attributes and geometry: graph/geometry.h.
 *
 *   reduce_window(x)              by add or max, in rising row-major window order from the identity
 *                                 (+0, -inf); padding takes no part
 *   select_and_scatter(x, d_y)    gradient of max: each window gives its d_y to its first maximal element
 *                                 (a later element wins only if it is larger; NaN is larger than any
 *                                 number, +0 than -0); an element's sum starts at +0 and takes its windows
 *                                 in rising row-major order. Result: shape and dtype of x
 *   reduce_window_grad(d_y)   gradient of add: each element sums d_y of the windows that cover it, from
 *                                 +0 in rising row-major order. Result: shape input_dims, dtype of d_y
 *
 * f32 or bf16; bf16 is summed in f32 and rounded once at the end.
 */
#ifndef TP_OPS_OP_WINDOW_H
#define TP_OPS_OP_WINDOW_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_reduce_window;
extern const tp_opdef tp_opdef_select_and_scatter;
extern const tp_opdef tp_opdef_reduce_window_grad;

#endif
