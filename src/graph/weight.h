/* SPDX-License-Identifier: Apache-2.0
 * What an element-wise op costs: whether to keep its result or to compute it again. */
#ifndef TP_GRAPH_WEIGHT_H
#define TP_GRAPH_WEIGHT_H

#include "graph/graph.h"

/* Of one element, in additions with their flush: measured, or roughly how long the function of
 * num/exact_math.h is. 1 for plain arithmetic in f32, 5 in bf16, 0 for what is not element-wise (but 60 for random numbers). */
double tp_op_weight(const tp_node *node);

#endif
