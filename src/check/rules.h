/* SPDX-License-Identifier: Apache-2.0
 * Inside check/: the rules, and what they share.
 */
#ifndef TP_CHECK_RULES_H
#define TP_CHECK_RULES_H

#include "check/check.h"

/* A product of the graph: batch entries of m x k with k x n. */
typedef struct tp_check_product {
    double batch, m, n, k;
} tp_check_product;

/* False when the node is no product. */
bool tp_check_read_product(const tp_graph *graph, tp_node_id id, tp_check_product *out_product);

/* The layer that a node belongs to: its name's scopes without "gradient/" in front and without the op;
 * "" for nodes outside of layers. In `arena`; NULL when memory fails. */
const char *tp_check_layer_of(const tp_graph *graph, tp_node_id id, tp_arena *arena);

/* Fills report->states. */
tpucl_status tp_check_list_state(const tp_graph *graph, tp_check_report *report) TPUCL_MUST_CHECK;

typedef tpucl_status (*tp_check_rule)(const tp_check_input *input, tp_check_report *report);

tpucl_status tp_rule_batch(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_last_batch(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_input_link(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_mxu_padding(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_hbm_padding(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_slow_ops(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_precision(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_batch_normalization(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_bfloat16_weights(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_bfloat16_moments(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_bfloat16_gradients(const tp_check_input *input, tp_check_report *report);
tpucl_status tp_rule_logits(const tp_check_input *input, tp_check_report *report);

#endif
