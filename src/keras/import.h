/* SPDX-License-Identifier: Apache-2.0
 * A Keras file as a run configuration and its weights under tpucl's names.
 */
#ifndef TP_KERAS_IMPORT_H
#define TP_KERAS_IMPORT_H

#include "io/safetensors.h"
#include "keras/map.h"
#include "model/model.h"

typedef struct tp_keras_import_row {
    const char *name, *kind; /* of tpucl's layer, Keras' class */
    tp_shape output;         /* of one example */
    int64_t params;
    const char *source; /* where its weights are in the file; "" when it has none there */
} tp_keras_import_row;

/* Everything but the elements of tensors lives in the arena. */
typedef struct tp_keras_import {
    tp_arena *arena;
    tp_keras_model mapped; /* findings are those of the whole import */
    const char *keras_version;
    const char *config;           /* the run configuration as text */
    bool has_loss, has_optimizer; /* which of these sections it has */
    tp_model *model;
    tp_tensor_entry *tensors; /* data are owned; none when the file has no weights */
    int32_t tensor_count;
    tp_keras_import_row *rows; /* one per layer with a name of its own */
    int32_t row_count;
} tp_keras_import;

/* `weights_path` may be NULL (io/keras_file.h: tp_keras_open). When parts of the model cannot be taken over:
 * TPUCL_OK with findings that are errors, and no config, model or tensors. Free with
 * tp_keras_import_destroy. */
tpucl_status tp_keras_import_file(const char *path, const char *weights_path,
                                  tp_keras_import **out_import) TPUCL_MUST_CHECK;
/* Also for a file in memory. */
tpucl_status tp_keras_import_bytes(const void *bytes, size_t length, const char *name,
                                   tp_keras_import **out_import) TPUCL_MUST_CHECK;
void tp_keras_import_destroy(tp_keras_import *import);

/* run.json and params.safetensors (unless there are no weights) in `folder`, which is made. */
tpucl_status tp_keras_import_save(const tp_keras_import *import,
                                  const char *folder) TPUCL_MUST_CHECK;

/* ---- for keras/ ---- */

/* tpucl's layers, for tp_keras_map_options. */
bool tp_keras_has_type(const char *type);
bool tp_keras_has_argument(const char *type, const char *argument);

/* Reads the weights of all variables of `graph` (a prediction: all weights of the model and nothing else) out of
 * the file. What does not fit is a finding. */
struct tp_keras_file;
tpucl_status tp_keras_bind(struct tp_keras_file *file, const tp_graph *graph,
                           tp_keras_import *import) TPUCL_MUST_CHECK;

#endif
