/* SPDX-License-Identifier: Apache-2.0
 * Keras' weight regularizers by name: "l2" or {"type": "L1L2", "l1": 0.01, "l2": 0.01}
 * (keras/src/regularizers/regularizers.py): l1 * sum |w| + l2 * sum w^2.
 */
#ifndef TP_MODEL_REGULARIZER_H
#define TP_MODEL_REGULARIZER_H

#include "core/json.h"
#include "core/problems.h"
#include "graph/graph.h"

typedef struct tp_regularizer {
    double l1, l2; /* both 0: none */
} tp_regularizer;

/* Reads null, a string or an object; false after adding what is wrong to `problems`. */
bool tp_regularizer_read(const tp_json *value, tp_problems *problems, tp_regularizer *out);

/* f32 []: the penalty of w (f32, any shape); TP_NO_NODE when there is none. */
tp_node_id tp_regularizer_apply(tp_graph *graph, const tp_regularizer *regularizer, tp_node_id w);
/* f32 [batch]: the penalty of each row of x (f32 [batch, ...]); TP_NO_NODE when there is none. */
tp_node_id tp_regularizer_per_example(tp_graph *graph, const tp_regularizer *regularizer,
                                      tp_node_id x);

#endif
