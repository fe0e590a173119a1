/* SPDX-License-Identifier: Apache-2.0
 * A model and its weights as a file of Keras 3.
 */
#ifndef TP_KERAS_EXPORT_H
#define TP_KERAS_EXPORT_H

#include "core/arena.h"
#include "core/json.h"
#include "graph/graph.h"
#include "io/safetensors.h"
#include "keras/map.h"
#include "model/model.h"

typedef struct tp_keras_export_options {
    const tp_json *model;      /* the "model" object of a run configuration */
    const char *name, *policy; /* policy: of layers that do not say their own */
    const tp_keras_input *inputs;
    int32_t input_count;
    const char *params; /* a params.safetensors with all weights of the model */
} tp_keras_export_options;

/* To `path`: a .keras, or weights alone when it ends in .weights.h5. The model is a Functional one; names of
 * layers are kept. It is not compiled, and has no optimizer state. TPUCL_INVALID_CONFIG when the model is wrong
 * or the parameters are another model's, TPUCL_UNSUPPORTED for another ending. */
tpucl_status tp_keras_export(const tp_keras_export_options *options,
                             const char *path) TPUCL_MUST_CHECK;
/* The same from the texts of files: the configuration says model, precision and input_shape. */
tpucl_status tp_keras_export_run(const char *config_path, const char *params_path,
                                 const char *path) TPUCL_MUST_CHECK;

/* ---- for keras/ ---- */

/* A layer of the model, and where Keras keeps its weights. */
typedef struct tp_keras_export_layer {
    const char *name;   /* "encoder/proj" */
    const char *place;  /* "layers/functional/layers/dense" */
    const tp_json *row; /* its element of "layers" */
} tp_keras_export_layer;

typedef struct tp_keras_export_layers {
    tp_keras_export_layer *items;
    int32_t count, capacity;
} tp_keras_export_layers;

/* The text of config.json (tp_free), and the layers, in `arena`. */
tpucl_status tp_keras_export_config(const tp_keras_export_options *options, const tp_model *model,
                                    tp_arena *arena, tp_keras_export_layers *out_layers,
                                    char **out_text) TPUCL_MUST_CHECK;

#endif
