/* SPDX-License-Identifier: Apache-2.0
 * The model's variables to a safetensors file and back; the optimizer's slots are not in it. */
#ifndef TP_TRAIN_PARAMS_H
#define TP_TRAIN_PARAMS_H

#include "exec/variables.h"

/* Those of replica group 0; replaces the file atomically. Name, number of steps, library and contract
 * version become the file's metadata. */
tpucl_status tp_params_save(tp_variables *variables, const char *path, const char *model_name,
                            int64_t steps);

/* Into all replica groups. Names and shapes must be the model's, and dtypes, but f32 and bf16
 * become each other (to nearest); all differences are listed at
 * once, and then nothing is changed. */
tpucl_status tp_params_load(tp_variables *variables, int32_t groups, const char *path);

#endif
