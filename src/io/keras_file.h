/* SPDX-License-Identifier: Apache-2.0
 * Files that Keras writes, and the directory they unpack to:
 *
 *   model.keras         zip of config.json, metadata.json, model.weights.h5 (Keras 2.12 and later)
 *   folder              the same three files unzipped
 *   model.h5            root attributes model_config and training_config, group model_weights
 *   model.weights.h5    what is inside a .keras
 *   weights.h5          the same as the group model_weights of a .h5
 *   weights.weights.json with shards weights_00000.weights.h5, ...
 *   config.json         what model.to_json() gives: no weights
 *
 * The result is the configuration as JSON and a table of weights whose elements are read one by one when
 * asked for. Which kind a file is, is seen from its content. Everything is hostile until parsed (io/zip.h,
 * io/hdf5.h); nothing in a file is ever run. What the JSON means is not looked at here.
 *
 * Thread-compatible. Every open file of weights has a child process (io/hdf5.h).
 */
#ifndef TP_IO_KERAS_FILE_H
#define TP_IO_KERAS_FILE_H

#include "core/json.h"
#include "core/status.h"
#include "num/dtype.h"
#include "num/shape.h"

typedef enum tp_keras_layout {
    TP_KERAS_NO_WEIGHTS,
    /* layers/<class in snake case>[_k]/[child/...]vars/<index>: weights belong to places, not names */
    TP_KERAS_OBJECTS,
    /* <layer's name>/<weight_names>: a nested model's weights all stand under its name */
    TP_KERAS_NAMES
} tp_keras_layout;

typedef struct tp_keras_weight {
    /* What the weight belongs to: the path before "/vars/" ("layers/lstm/cell"), or the layer's name. */
    const char *owner;
    const char *name; /* "0" or "dense/kernel:0" */
    int32_t index;    /* among the owner's weights, in Keras' order, from 0 */
    const char *path; /* the whole path, for messages */
    bool is_readable; /* false: no numbers */
    tp_dtype dtype;   /* as tp_keras_read gives them: f64 and f16 come as f32 */
    tp_shape shape;
} tp_keras_weight;

typedef struct tp_keras_file tp_keras_file;

/* `weights_path` (may be NULL) holds the weights when `path` does not, or instead of those in it.
 * TPUCL_CORRUPT_DATA or TPUCL_INVALID_CONFIG (malformed JSON) name the file and what is wrong;
 * TPUCL_UNSUPPORTED: a build without the library that it takes, or a file of another kind. */
tpucl_status tp_keras_open(const char *path, const char *weights_path,
                           tp_keras_file **out_file) TPUCL_MUST_CHECK;
/* A .keras or .h5 in memory; `bytes` are borrowed for the call. */
tpucl_status tp_keras_open_bytes(const void *bytes, size_t length, const char *name,
                                 tp_keras_file **out_file) TPUCL_MUST_CHECK;
void tp_keras_close(tp_keras_file *file);

/* All borrowed until closed. */
/* {"class_name", "config", ...} of the model; NULL when the file holds weights alone. */
const tp_json *tp_keras_config(const tp_keras_file *file);
/* Keras 3: compile_config; before: training_config, which has other keys. NULL when not compiled. */
const tp_json *tp_keras_compile_config(const tp_keras_file *file);
const char *tp_keras_version(const tp_keras_file *file); /* "3.15.1"; "" when it is not said */
tp_keras_layout tp_keras_weight_layout(const tp_keras_file *file);

/* Owners stand together, in the file's order (names) or by path (objects); optimizer state and metrics are
 * left out. */
int32_t tp_keras_weight_count(const tp_keras_file *file);
const tp_keras_weight *tp_keras_weight_at(const tp_keras_file *file, int32_t index);
/* The number of weights of an owner, and the place of its first. 0 when it has none. */
int32_t tp_keras_owner_weights(const tp_keras_file *file, const char *owner, int32_t *out_first);

/* The elements, row-major, into room for tp_shape_bytes(shape, dtype). */
tpucl_status tp_keras_read(tp_keras_file *file, const tp_keras_weight *weight,
                           void *out_elements) TPUCL_MUST_CHECK;

/* ---- writing ---- */
typedef struct tp_keras_tensor {
    const char *path; /* "layers/dense/vars/0" */
    tp_dtype dtype;
    tp_shape shape;
    const void *elements; /* row-major */
} tp_keras_tensor;

/* A .weights.h5. Groups of owners that have no weights are not needed by Keras' reader. */
tpucl_status tp_keras_write_weights(const char *path, const tp_keras_tensor *tensors,
                                    int32_t count) TPUCL_MUST_CHECK;
/* A .keras: `config` is the text of config.json. */
tpucl_status tp_keras_write_model(const char *path, const char *config,
                                  const tp_keras_tensor *tensors, int32_t count) TPUCL_MUST_CHECK;

#endif
