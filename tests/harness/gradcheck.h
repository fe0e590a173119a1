/* SPDX-License-Identifier: Apache-2.0
 * Checks an op's gradient against central differences.
 *
 * The case builds y (or several results) from f32 inputs. The harness takes loss = sum of w * y with fixed
 * weights w, asks autodiff for d loss / d inputs, and compares every element with
 * (loss(x + h) - loss(x - h)) / 2h, where loss is summed in double from the graph's f32 results. Inputs are
 * distinct multiples of 1/32 shifted by 1/64 (never 0 and never closer to each other than 4 h), so that
 * maxima, signs and comparisons do not change within h = 2^-7.
 *
 *     static tp_node_id build_tanh(tp_graph *g, const tp_node_id *in) { return tp_op_tanh(g, in[0]); }
 *     tp_gradcheck((tp_gradcheck_case){.build = build_tanh, .shapes = {"[3,5]"}});
 */
#ifndef TP_HARNESS_GRADCHECK_H
#define TP_HARNESS_GRADCHECK_H

#include "graph/builder.h"

#define TP_GRADCHECK_INPUTS 4

typedef struct tp_gradcheck_case {
    tp_node_id (*build)(tp_graph *graph, const tp_node_id *inputs);
    const char *shapes[TP_GRADCHECK_INPUTS]; /* as text; as many inputs as are not NULL */
    /* Middle of the inputs' values, 0 by default; positive for log, sqrt, ... whose domain is limited. All
     * inputs together have N elements and spread over middle +- N / 64. */
    double middle;
    double tolerance;        /* relative to the larger of 1 and the gradient; 0: 2e-3 */
    uint32_t without_inputs; /* bits of inputs that get no gradient: only that is checked */
} tp_gradcheck_case;

/* Fails the running Criterion test with the first element that differs, or the graph's mistake. */
void tp_gradcheck(tp_gradcheck_case test);

#endif
