/* SPDX-License-Identifier: Apache-2.0
 * From Keras' configuration of a model to the "model" object of a run configuration (docs/layers.md), and
 * where the weights of each layer are in Keras' files. Sequential and Functional models, nested and shared
 * ones, in the schemas of Keras 1 to 3 (docs/keras.md has the table of differences).
 *
 * Nothing is guessed: a layer or an argument that tpucl has no equal of is a finding, and all findings are
 * there at once, each with the layer and a remedy. Python code in a file (Lambda) is never looked at.
 */
#ifndef TP_KERAS_MAP_H
#define TP_KERAS_MAP_H

#include "core/arena.h"
#include "core/json.h"
#include "core/status.h"
#include "num/shape.h"

/* What findings are about: X(id, name for scripts, whether nothing can be taken over). docs/check.md lists the names,
 * with what a TPU does about it. */
#define TP_KERAS_RULES(X)                                                                          \
    X(DYNAMIC_SHAPE, "dynamic-shape", true)     /* open dimensions; ragged and sparse tensors */   \
    X(DATA_SHAPE, "data-dependent-shape", true) /* how many elements depends on their values */    \
    X(PYTHON, "python-code", true)                                                                 \
    X(TEXT, "string-op", true)                                                                     \
    X(TABLE, "host-op", true) /* tables that grow with the data, hashing */                        \
    X(LAYER, "no-such-layer", true)                                                                \
    X(ARGUMENT, "no-such-argument", true)                                                          \
    X(CHANNELS_FIRST, "channels-first", true)                                                      \
    X(POLICY, "dtype-policy", true)                                                                \
    X(WEIGHTS, "weights", true)                                                                    \
    X(WIDE, "wide-dtype", false)   /* 64 bits, which become 32 */                                  \
    X(CHANGED, "changed", false)   /* taken over with a change */                                  \
    X(LEFT_OUT, "left-out", false) /* of compile(): the run configuration says it instead */

typedef enum tp_keras_rule {
#define TP_KERAS_RULE_ID(id, name, is_error) TP_KERAS_##id,
    TP_KERAS_RULES(TP_KERAS_RULE_ID)
#undef TP_KERAS_RULE_ID
} tp_keras_rule;

/* "dynamic-shape", ... Static. */
const char *tp_keras_rule_name(tp_keras_rule rule);

/* Something that cannot be taken over (is_error), or that was taken over with a change. */
typedef struct tp_keras_finding {
    tp_keras_rule rule;
    bool is_error;
    const char *
        layer; /* its name, with those of the models around it: "encoder/double"; "" for the model */
    const char *kind;   /* Keras' class, or "" */
    const char *what;   /* a sentence */
    const char *remedy; /* what to do; "" when there is nothing to do */
} tp_keras_finding;

typedef struct tp_keras_findings {
    tp_keras_finding *items;
    int32_t count, capacity;
} tp_keras_findings;

typedef struct tp_keras_input {
    const char *name;
    tp_shape shape;  /* of one example */
    bool is_integer; /* the layers see class numbers, positions */
} tp_keras_input;

/* A layer that may have weights. */
typedef struct tp_keras_layer {
    const char *name;  /* tpucl's, as its weights are called: "encoder/proj" */
    const char *kind;  /* Keras' class */
    const char *place; /* by places (io/keras_file.h): "layers/functional/layers/dense" */
    const char *owner; /* by names: the name of the outermost layer that it stands in, "encoder" */
    bool is_trainable; /* and all models around it */
} tp_keras_layer;

/* Everything lives in the arena that it was made in. */
typedef struct tp_keras_model {
    const char *name;
    const char *json;   /* the "model" object as text */
    const char *policy; /* "float32", "mixed_bfloat16", "bfloat16" */
    const tp_keras_input *inputs;
    int32_t input_count;
    const tp_keras_layer *layers; /* in Keras' order of weights */
    int32_t layer_count;
    tp_keras_findings findings;
} tp_keras_model;

typedef struct tp_keras_map_options {
    /* Whether tpucl has a layer type, and whether that has an argument. NULL: whatever Keras has. */
    bool (*has_type)(const char *type);
    bool (*has_argument)(const char *type, const char *argument);
} tp_keras_map_options;

/* TPUCL_OK with findings when parts of the model cannot be taken over; `json` is then NULL.
 * TPUCL_INVALID_CONFIG: the configuration itself is malformed, with its place. */
tpucl_status tp_keras_map(const tp_json *config, const tp_keras_map_options *options,
                          tp_arena *arena, tp_keras_model *out_model) TPUCL_MUST_CHECK;

/* "metrics", "loss", "losses" and "optimizer" of a run configuration out of compile_config (Keras 3) or training_config
 * (before), as the members of one object; "{}" for NULL. */
tpucl_status tp_keras_map_compile(const tp_json *compile, tp_arena *arena,
                                  tp_keras_findings *findings,
                                  const char **out_json) TPUCL_MUST_CHECK;

/* One error that lists all findings that are errors; TPUCL_OK when there are none. */
tpucl_status tp_keras_check_findings(const tp_keras_findings *findings,
                                     const char *what) TPUCL_MUST_CHECK;

#endif
