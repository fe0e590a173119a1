/* SPDX-License-Identifier: Apache-2.0
 * The formulas of losses, y the label and p the result, e = 1e-7 (keras/src/losses/losses.py). Mean and sum
 * are over the last axis:
 *   sparse_categorical_crossentropy  log(sum exp z) - z[y]; of probabilities: z = log(clip(p))
 *   categorical_crossentropy         -sum(y * log(clip(p / sum p))), or of logits
 *   binary_crossentropy              mean(-(y * log(clip(p)) + (1 - y) * log(1 - clip(p)))); of logits
 *                                    mean(max(z, 0) - z * y + log(1 + exp(-|z|)))
 *   categorical_focal_crossentropy   sum(alpha * (1 - q)^gamma * -y * log(q)), q = clip(p / sum p)
 *   binary_focal_crossentropy        mean((1 - t)^gamma * bce), t = y * p + (1 - y) * (1 - p); balanced: times
 *                                    y * alpha + (1 - y) * (1 - alpha)
 *   mean_squared_error               mean((p - y)^2)
 *   mean_absolute_error              mean(|p - y|)
 *   mean_absolute_percentage_error   mean(100 * |(y - p) / max(|y|, e)|)
 *   mean_squared_logarithmic_error   mean((log(max(p, e) + 1) - log(max(y, e) + 1))^2)
 *   huber                            mean(0.5 * d^2 where |d| <= delta, else delta * |d| - 0.5 * delta^2), d = p - y
 *   log_cosh                         mean(d + softplus(-2 * d) - log 2)
 *   hinge, squared_hinge             mean(max(1 - y * p, 0)), or its square; y = 0 counts as -1
 *   categorical_hinge                max(max((1 - y) * p) - sum(y * p) + 1, 0)
 *   kl_divergence                    sum(y * log(y / p)), both cut to [e, 1]
 *   poisson                          mean(p - y * log(p + e))
 *   cosine_similarity                -sum(y / |y| * p / |p|)
 *   dice                             1 - 2 * i / (sum y + sum p + e), i = sum(y * p)
 *   tversky                          1 - i / (i + alpha * sum((1 - p) * y) + beta * sum(p * (1 - y)) + e)
 * label_smoothing s: y * (1 - s) + s / classes, or + s / 2 in the binary ones.
 * Dice and tversky sum over all of an example: Keras' axis = all but the batch. Its default, one value over
 * the whole batch, is no mean over examples and would depend on how a batch is cut.
 */
#ifndef TP_MODEL_LOSS_ELEMENTS_H
#define TP_MODEL_LOSS_ELEMENTS_H

#include "model/loss.h"

/* What `build` of a loss leaves to do. */
typedef enum tp_loss_shape {
    TP_LOSS_MEAN_LAST, /* of the result's shape: the mean over the last axis is the loss */
    TP_LOSS_REDUCED,   /* [batch, inner...] */
    TP_LOSS_EXAMPLE    /* [batch] */
} tp_loss_shape;

typedef struct tp_loss_def {
    tp_loss_shape shape;
    bool is_sparse;    /* labels are class numbers */
    int64_t classes;   /* least size of the last axis */
    bool has_accuracy; /* there are classes to be right about */
    /* `counts`: pred [batch, inner...] of what is not masked, or TP_NO_NODE; only for EXAMPLE. */
    tp_node_id (*build)(tp_graph *graph, const tp_loss_input *input, const tp_loss_options *options,
                        tp_node_id counts);
} tp_loss_def;

/* Of a kind. Static. */
const tp_loss_def *tp_loss_def_of(tp_model_loss kind);

/* Shape of a node; that of a scalar for what a failed graph gives. */
tp_shape tp_loss_shape_of(const tp_graph *graph, tp_node_id id);
/* [..., 1] as [...], and back. */
tp_node_id tp_loss_drop_last(tp_graph *graph, tp_node_id id);
tp_node_id tp_loss_add_last(tp_graph *graph, tp_node_id id);
/* pred of `shape`: set where the index along the last axis is `label`, s32 without that axis. */
tp_node_id tp_loss_one_hot(tp_graph *graph, tp_node_id label, tp_shape shape);

#endif
