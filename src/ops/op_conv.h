/* SPDX-License-Identifier: Apache-2.0
 * convolution(x, w) and its gradients convolution_input_grad(dy, w) and convolution_filter_grad(x, dy):
 * images NHWC, filters HWIO. Attributes: graph/geometry.h; order of k: kernel/mxu.h.
 *
 * Operands f32 or bf16, rounded as the precision says; results are f32. A position that does not exist
 * (padding, or between strides in the input gradient) contributes the product of +0 and the other
 * operand. Gradients have the dtypes that op_dot.h says, w taking the part of rhs.
 */
#ifndef TP_OPS_OP_CONV_H
#define TP_OPS_OP_CONV_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_convolution;
extern const tp_opdef tp_opdef_convolution_input_grad;
extern const tp_opdef tp_opdef_convolution_filter_grad;

#endif
