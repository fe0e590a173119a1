/* SPDX-License-Identifier: Apache-2.0
 * Keras' weight constraints by name: "non_neg" or {"type": "MaxNorm", "max_value": 2, "axis": [0, 1, 2]}
 * (keras/src/constraints/constraints.py). They hold after every update of the weight. Norms are
 * n = sqrt(sum w^2) along `axis`; with e = 1e-7:
 *   MaxNorm     w * clip(n, 0, max_value) / (e + n)
 *   MinMaxNorm  w * (rate * clip(n, min_value, max_value) + (1 - rate) * n) / (e + n)
 *   UnitNorm    w / (e + n)
 *   NonNeg      w where w >= 0, else 0
 */
#ifndef TP_MODEL_CONSTRAINT_H
#define TP_MODEL_CONSTRAINT_H

#include "core/json.h"
#include "core/problems.h"
#include "graph/graph.h"

typedef enum tp_constraint_kind {
    TP_CONSTRAINT_NONE,
    TP_CONSTRAINT_MAX_NORM,
    TP_CONSTRAINT_NON_NEG,
    TP_CONSTRAINT_UNIT_NORM,
    TP_CONSTRAINT_MIN_MAX_NORM
} tp_constraint_kind;

typedef struct tp_constraint {
    tp_constraint_kind kind;
    double min_value, max_value, rate;
    int64_t axes[TP_MAX_RANK];
    int32_t axis_count;
} tp_constraint;

/* Reads null, a string or an object; false after adding what is wrong to `problems`. */
bool tp_constraint_read(const tp_json *value, tp_problems *problems, tp_constraint *out);

/* The constrained w (f32). An axis that w does not have is a mistake of the graph. */
tp_node_id tp_constraint_apply(tp_graph *graph, const tp_constraint *constraint, tp_node_id w);

#endif
