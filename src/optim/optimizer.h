/* SPDX-License-Identifier: Apache-2.0
 * Optimizers as graph nodes: one update per variable, all of it replicated work that runs once per device
 * after the gradients were summed. Names, arguments, defaults, formulas and slot names are those of Keras 3
 * (keras/src/optimizers); docs/optimizers.md lists them. topo/config_choices.h is the list of optimizers,
 * optim/update.h what one of them provides.
 *
 * A step, in this order, as in Keras' BaseOptimizer.apply():
 *   1. the rate: `learning_rate`, or what the schedule makes of it for this step
 *   2. gradients are clipped (clip.h)
 *   3. decoupled weight decay: w -= w * weight_decay * rate, but for variables whose name holds one of
 *      `excluded` (LARS adds its decay to the gradient instead)
 *   4. the optimizer's own update of w and of its slots
 *   5. with use_ema: average = m * average + (1 - m) * w, where m is 0 in the first step and ema_momentum
 *      afterwards; every `ema_overwrite_frequency` steps w becomes the average
 *
 * Slots are variables "<optimizer>/<variable>/<slot>" of the variable's shape unless the optimizer says
 * otherwise. Weights and slots are f32 or bf16: bf16 ones are widened, updated in f32 and rounded once; the
 * average of 5 is f32, and of the weight before it is rounded.
 * Constants are rounded to f32 once (1 - beta_1 is computed in double first); every operation is one f32
 * node, in the order written.
 */
#ifndef TP_OPTIM_OPTIMIZER_H
#define TP_OPTIM_OPTIMIZER_H

#include "core/status.h"
#include "graph/graph.h"
#include "topo/config_choices.h"

typedef enum tp_optim_kind {
#define TP_OPTIM_KIND(id, symbol, name, keys) TP_OPTIM_##id,
    TP_OPTIMIZER_LIST(TP_OPTIM_KIND)
#undef TP_OPTIM_KIND
} tp_optim_kind;

/* Whose gradient is clipped: the sum over the cores of the replica group, or each core's own part of it,
 * which is about 1 / cores as large (cross_shard.h). */
typedef enum tp_optim_clip_at { TP_CLIP_AFTER_SUM, TP_CLIP_PER_REPLICA } tp_optim_clip_at;

typedef struct tp_optim_config {
    tp_optim_kind kind;
    /* Those of TP_OPTIMIZER_KEYS that the kind has mean something, with the ranges given there;
     * weight_decay NaN or 0: none. */
#define TP_OPTIM_NUMBER(field, low, high, open, meaning) double field;
#define TP_OPTIM_FLAG(field, meaning) bool field;
    TP_OPTIMIZER_KEYS(TP_OPTIM_NUMBER, TP_OPTIM_FLAG)
#undef TP_OPTIM_NUMBER
#undef TP_OPTIM_FLAG
    const char *const *excluded; /* parts of names of variables; borrowed */
    int32_t excluded_count;
    double clipnorm, clipvalue, global_clipnorm; /* at most one; NaN or 0: not */
    tp_optim_clip_at clip_at;
    tp_dtype first_moment, second_moment; /* of slots: TP_F32 or TP_BF16 */
    /* TP_BF16: each core's part is rounded before the sum over cores, and the sum is */
    tp_dtype gradients;
    bool rounds_stochastically; /* bf16 weights: see stochastic_round in docs/ops.md */
    bool use_ema;
    double ema_momentum;             /* 0 to 1 */
    int64_t ema_overwrite_frequency; /* steps; 0: never during training */
    /* A schedule: builds the learning rate (f32 scalar) from the step number (s32 scalar, from 0) and the
     * constant `learning_rate` (f32 scalar). NULL: constant. */
    tp_node_id (*schedule)(tp_graph *graph, tp_node_id step, tp_node_id learning_rate, void *user);
    void *schedule_user;
} tp_optim_config;

/* A variable (index into graph->variables) and its gradient, f32 or the variable's dtype and of its shape;
 * TP_NO_NODE passes through untouched: the variable is not updated. */
typedef struct tp_optim_gradient {
    int32_t variable;
    tp_node_id gradient;
} tp_optim_gradient;

/* Keras' defaults. */
tp_optim_config tp_optim_defaults(tp_optim_kind kind);

/* Ranges; all problems at once, TPUCL_INVALID_CONFIG. */
tpucl_status tp_optim_check(const tp_optim_config *config) TPUCL_MUST_CHECK;

/* Adds slots and updates. The gradients must be replicated. Clips them unless that is done per replica.
 * Mistakes go to the graph. */
void tp_optim_apply(tp_graph *graph, const tp_optim_config *config,
                    const tp_optim_gradient *gradients, int32_t count);

/* "adam", the first part of the names of slots. Static. */
const char *tp_optim_name(tp_optim_kind kind);

/* The slot that holds a variable's average over the steps: "<optimizer>/<variable>/average" in `out`, with
 * its terminator at most `size` characters; false when it is longer. */
bool tp_optim_average_name(tp_optim_kind kind, const char *variable, char *out, size_t size);

#endif
