/* SPDX-License-Identifier: Apache-2.0
 * Variables: weights, moving statistics, optimizer slots. One buffer per device and replica group, all
 * copies always equal. Reading and writing wait for the work in flight.
 *
 * Threads: thread-compatible, like the executor that owns them.
 */
#ifndef TP_EXEC_VARIABLES_H
#define TP_EXEC_VARIABLES_H

#include "core/hash.h"
#include "core/status.h"
#include "device/buffer.h"
#include "exec/placement.h"
#include "program/program.h"

typedef struct tp_variables tp_variables;

/* `uses[device * group_count + group]`: whether that device has cores of that group; borrowed, as is map. */
tpucl_status tp_variables_create(const tp_core_map *map, int32_t group_count, const bool *uses,
                                 uint64_t seed, tp_variables **out_variables);
void tp_variables_destroy(tp_variables *variables);

/* Index of the variable with this name; created and initialised when new. TPUCL_INVALID_ARGUMENT when one
 * of that name has another dtype or shape. */
tpucl_status tp_variables_add(tp_variables *variables, const tp_program_variable *variable,
                              int32_t *out_index);

int32_t tp_variables_count(const tp_variables *variables);
const tp_program_variable *tp_variables_info(const tp_variables *variables, int32_t index);
int32_t tp_variables_find(const tp_variables *variables, const char *name); /* -1: none */
/* NULL where the device has no core of the group. Borrowed. */
tp_buffer *tp_variables_buffer(const tp_variables *variables, int32_t index, int32_t device,
                               int32_t group);
uint64_t tp_variables_bytes(const tp_variables *variables); /* of one group, together */

/* Row-major elements in the variable's dtype, info->bytes long. */
tpucl_status tp_variables_read(tp_variables *variables, int32_t index, int32_t group, void *out);
/* Writes every device's copy. `data` needs no alignment; subnormals in it become zeros. */
tpucl_status tp_variables_write(tp_variables *variables, int32_t index, int32_t group,
                                const void *data);

/* `params_sha256` (exec/params_hash.h) over the model's variables in name order, for each group in turn. */
tpucl_status tp_variables_sha256(tp_variables *variables, char out_hex[TP_SHA256_HEX_BYTES]);

#endif
