/* SPDX-License-Identifier: Apache-2.0
 * A run straight from a Keras file: import in between, nothing of it left behind. */
#ifndef TP_CLI_KERAS_RUN_H
#define TP_CLI_KERAS_RUN_H

#include <tpucl/tools.h>
#include "run_options.h"

/* Whether the operand is a model of Keras: by the end of its name (.keras, .h5, .hdf5), JSON and folders by what is in
 * them. */
bool tp_keras_run_is_model(const char *operand);

/* Creates the run with the weights of the file. False when that failed and *out_exit says how. */
bool tp_keras_run_open(const tp_cmd *cmd, const tp_run_values *values, const char *model,
                       tpucl_run **out_run, tp_exit *out_exit);

/* What cannot be taken over, or (severity "note") was changed. */
void tp_keras_run_print_findings(const tpucl_import *import, const char *severity, FILE *out);

#endif
