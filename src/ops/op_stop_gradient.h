/* SPDX-License-Identifier: Apache-2.0
 * stop_gradient(x): x itself, with no gradient. For values that are constants as far as the loss is
 * concerned, such as the largest logit that a softmax subtracts.
 */
#ifndef TP_OPS_OP_STOP_GRADIENT_H
#define TP_OPS_OP_STOP_GRADIENT_H

#include "graph/opdef.h"

extern const tp_opdef tp_opdef_stop_gradient;

#endif
