/* SPDX-License-Identifier: Apache-2.0
 * Losses and metrics written down in a configuration: an expression over named tensors becomes nodes of
 * the graph, with static shapes, so masks are selects and counts are sums.
 *
 *     where(y_true != 255, -log(clip(sum(y_pred * one_hot(y_true, 21), axis=-1), 1e-7, 1)), 0)
 *
 *   numbers      1, 0.5, 1e-7: take the dtype of what they meet
 *   names        those that the caller gives
 *   operators    from loosest to tightest, left to right:  |   &   < <= > >= == !=   + -   * /   unary - !
 *                and **, to the right
 *   x[..., i]    element i of the last axis, which is dropped; x[..., a:b] keeps it; negative: from the end
 *   functions    tp_expression_markdown; named after the ops (StableHLO) with NumPy's short names beside them
 *
 * Shapes broadcast by NumPy's rule. s32 meets f32 as f32; pred and number never mix silently. Every mistake
 * names its column.
 */
#ifndef TP_MODEL_EXPRESSION_H
#define TP_MODEL_EXPRESSION_H

#include "graph/graph.h"

typedef struct tp_expression_name {
    const char *name;
    tp_node_id node;
} tp_expression_name;

/* Adds the nodes of `text` (UTF-8, at most 8192 bytes, nested at most 64 deep); `what` stands in front of
 * messages: "loss.expression". TPUCL_INVALID_CONFIG with the column, the text and a mark below it. A
 * failure leaves nodes behind that nothing uses. */
tpucl_status tp_expression_build(tp_graph *graph, const char *what, const char *text,
                                 const tp_expression_name *names, int32_t name_count,
                                 tp_node_id *out_node) TPUCL_MUST_CHECK;

/* The same for a value of each example: all names have the examples as their first axis, and so must the
 * result. No function may go over that axis, nor may broadcasting mix it up with another of the same size: a
 * value must not depend on which examples share a batch or a core. */
tpucl_status tp_expression_build_batched(tp_graph *graph, const char *what, const char *text,
                                         const tp_expression_name *names, int32_t name_count,
                                         tp_node_id *out_node) TPUCL_MUST_CHECK;

/* The table of functions of docs/expressions.md (tp_free). */
tpucl_status tp_expression_markdown(char **out_text) TPUCL_MUST_CHECK;

#endif
