/* SPDX-License-Identifier: Apache-2.0
 * Losses, masks and metrics that are expressions (model/expression.h). They see
 *   y_true         the labels, f32 or s32, as the data have them
 *   y_pred         f32 [batch, result...]
 *   sample_weight  f32 [batch], 0 for padding
 *   mask           pred [batch, ...], where the model's last layer hands one on
 * and give a value for each example, or for each of its elements: [batch, ...].
 *
 * Padding has no part in anything, gradients included: no gradient goes into its y_pred, where the slope of
 * an expression may well be infinite, and 0 times that NaN.
 */
#ifndef TP_MODEL_LOSS_EXPRESSION_H
#define TP_MODEL_LOSS_EXPRESSION_H

#include "model/expression.h"
#include "model/loss.h"
#include "model/metric.h"

/* Fills input->names from its other fields. `mask` may be TP_NO_NODE. */
void tp_loss_name_all(tp_graph *graph, tp_loss_input *input, tp_node_id weight, tp_node_id mask);

/* input->values, for TP_MODEL_LOSS_EXPRESSION. */
tpucl_status tp_loss_read_values(tp_graph *graph, tp_loss_input *input) TPUCL_MUST_CHECK;

/* The mask of options.mask and `mask` together: pred of the shape of the loss's elements, or what `mask` is when
 * there is no other. */
tpucl_status tp_loss_read_mask(tp_graph *graph, const tp_loss_input *input, tp_node_id mask,
                               tp_node_id *out_mask) TPUCL_MUST_CHECK;

/* Sums of weight * value and of weight. Without an own weight: what counts in the loss, where its elements are
 * those of the metric, else the examples' weights. */
tpucl_status tp_metric_build_expression(tp_graph *graph, const tp_metric_options *options,
                                        const tp_loss_input *input, const tp_loss_weights *weights,
                                        tp_metric_parts *out_parts) TPUCL_MUST_CHECK;

#endif
