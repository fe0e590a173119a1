/* SPDX-License-Identifier: Apache-2.0
 * The value of the key "metrics": a list for every output of the model, or an object of such lists by output.
 * A metric is its name, or an object when there is more to say:
 *     "metrics": ["accuracy", {"name": "expression", "label": "lit", "expression": "y_pred > 0.5"}]
 *     "metrics": {"box": "mean_absolute_error", "kind": ["accuracy", "auc"]}
 */
#ifndef TP_TOPO_CONFIG_METRICS_H
#define TP_TOPO_CONFIG_METRICS_H

#include "core/json_write.h"
#include "topo/config_table.h"

/* Fails for want of memory only; what is wrong is added to `problems`. */
tpucl_status tp_config_read_metrics(tp_config *config, const tp_json *value, tp_problems *problems,
                                    tp_config_metrics *out) TPUCL_MUST_CHECK;
void tp_config_write_metrics(const tp_config_metrics *metrics, tp_json_writer *writer);
/* What it may be, as members of a schema. */
tpucl_status tp_config_write_metrics_schema(tp_json_writer *writer) TPUCL_MUST_CHECK;

#endif
