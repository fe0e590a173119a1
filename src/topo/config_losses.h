/* SPDX-License-Identifier: Apache-2.0
 * The values of configuration keys that are objects with names of the user's own: files by the name of an array,
 * losses by the name of an output:
 *     "losses": {"box": {"name": "huber", "delta": 2, "weight": 0.5}, "kind": "poisson"}
 */
#ifndef TP_TOPO_CONFIG_LOSSES_H
#define TP_TOPO_CONFIG_LOSSES_H

#include "core/json_write.h"
#include "topo/config_table.h"

/* Fail for want of memory only; what is wrong is added to `problems`. `names` are those of losses. */
tpucl_status tp_config_read_files(tp_config *config, const tp_json *value, tp_problems *problems,
                                  tp_config_files *out) TPUCL_MUST_CHECK;
tpucl_status tp_config_read_losses(tp_config *config, const tp_json *value, tp_problems *problems,
                                   tp_config_losses *out) TPUCL_MUST_CHECK;

void tp_config_write_files(const tp_config_files *files, tp_json_writer *writer);
void tp_config_write_losses(const tp_config_losses *losses, tp_json_writer *writer);

/* What they may be, as members of a schema. */
tpucl_status tp_config_write_files_schema(tp_json_writer *writer) TPUCL_MUST_CHECK;
tpucl_status tp_config_write_losses_schema(tp_json_writer *writer) TPUCL_MUST_CHECK;

#endif
