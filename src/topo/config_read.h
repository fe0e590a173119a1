/* SPDX-License-Identifier: Apache-2.0
 * Values of configuration keys out of JSON and into it. */
#ifndef TP_TOPO_CONFIG_READ_H
#define TP_TOPO_CONFIG_READ_H

#include "core/json_write.h"
#include "core/problems.h"
#include "topo/config_table.h"

/* Reads `value` into the key's field, without touching `given`. A wrong value is added to `problems`; fails
 * for lack of memory only. A model stays in its document, which the caller must keep. */
tpucl_status tp_config_read_value(tp_config *config, const tp_config_key *key, const tp_json *value,
                                  tp_problems *problems) TPUCL_MUST_CHECK;

void tp_config_write_value(const tp_config *config, const tp_config_key *key,
                           tp_json_writer *writer);

/* `prefix` + the keys of `object`, group by group; `prefix` is "" or ends with a point. Unknown keys are
 * problems. */
tpucl_status tp_config_read_object(tp_config *config, const char *prefix, const tp_json *object,
                                   tp_problems *problems) TPUCL_MUST_CHECK;
/* One member, wherever it came from: `path` is a key or a group. */
tpucl_status tp_config_read_path(tp_config *config, const char *path, const tp_json *value,
                                 tp_problems *problems) TPUCL_MUST_CHECK;

#endif
