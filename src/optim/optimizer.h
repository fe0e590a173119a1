/* SPDX-License-Identifier: Apache-2.0
 * Optimizers as graph nodes: f32 master weights, one update per variable, all of it replicated work that
 * runs once per device after the gradients were summed. Formulas, defaults and slot names are those of
 * Keras (tf.keras.optimizers of TensorFlow 2.11 and later; keras/optimizers/{sgd,adam}.py).
 *
 *   SGD                w -= lr * g
 *   SGD, momentum m    v = m * v - lr * g;  w += v          slot "sgd/<variable>/momentum"
 *     with Nesterov    v = m * v - lr * g;  w += m * v - lr * g
 *   Adam, step t >= 1  alpha = lr * sqrt(1 - beta_2^t) / (1 - beta_1^t)
 *                      m += (g - m) * (1 - beta_1);  v += (g * g - v) * (1 - beta_2)
 *                      w -= m * alpha / (sqrt(v) + epsilon)
 *                      slots "adam/<variable>/momentum" and "adam/<variable>/velocity"; the powers are
 *                      the scalar variables "adam/beta_1_power" and "adam/beta_2_power", which start at
 *                      beta and are multiplied by it at the end of each step
 * Constants are rounded to f32 once (1 - beta_1 is computed in double first); every operation is one f32
 * node, in the order written.
 */
#ifndef TP_OPTIM_OPTIMIZER_H
#define TP_OPTIM_OPTIMIZER_H

#include "core/status.h"
#include "graph/graph.h"

typedef enum tp_optim_kind { TP_OPTIM_SGD, TP_OPTIM_ADAM } tp_optim_kind;

typedef struct tp_optim_config {
    tp_optim_kind kind;
    double learning_rate;           /* > 0 */
    double momentum;                /* SGD: 0 <= momentum < 1; 0: no slot */
    bool nesterov;                  /* SGD, with momentum > 0 */
    double beta_1, beta_2, epsilon; /* Adam: 0 <= beta < 1, epsilon > 0 */
    /* A schedule: builds the learning rate (f32 scalar) from the step number (s32 scalar, from 0) and the
     * constant `learning_rate` (f32 scalar). NULL: constant. */
    tp_node_id (*schedule)(tp_graph *graph, tp_node_id step, tp_node_id learning_rate, void *user);
    void *schedule_user;
} tp_optim_config;

/* A variable (index into graph->variables) and its gradient, f32 and of the variable's shape; TP_NO_NODE
 * passes through untouched: the variable is not updated. */
typedef struct tp_optim_gradient {
    int32_t variable;
    tp_node_id gradient;
} tp_optim_gradient;

/* Keras' defaults: SGD lr 0.01, momentum 0; Adam lr 0.001, 0.9, 0.999, 1e-7. */
tp_optim_config tp_optim_defaults(tp_optim_kind kind);

/* Ranges; all problems at once, TPUCL_INVALID_CONFIG. */
tpucl_status tp_optim_check(const tp_optim_config *config) TPUCL_MUST_CHECK;

/* Adds slots and updates. The gradients must be replicated. Mistakes go to the graph. */
void tp_optim_apply(tp_graph *graph, const tp_optim_config *config,
                    const tp_optim_gradient *gradients, int32_t count);

/* "sgd", "adam". Static. */
const char *tp_optim_name(tp_optim_kind kind);

#endif
