/* SPDX-License-Identifier: Apache-2.0
 * What the files keras/map_*.c share.
 */
#ifndef TP_KERAS_MAP_INTERNAL_H
#define TP_KERAS_MAP_INTERNAL_H

#include "core/array.h"
#include "core/json_write.h"
#include "core/map.h"
#include "keras/map.h"

enum { TP_KERAS_MAX_LAYERS = 10000, TP_KERAS_MAX_NESTING = 8 };

TP_ARRAY_DEFINE(tp_keras_layers, tp_keras_layer)

typedef struct tp_keras_mapper {
    tp_arena *arena;
    const tp_keras_map_options *options;
    tp_keras_findings *findings;
    tp_keras_layers layers;
    const char *policy; /* of the first layer that has one */
    int32_t row_count;  /* of all models, against TP_KERAS_MAX_LAYERS */
} tp_keras_mapper;

/* Where a model stands: in front of names, of places in weights files; "" at the top. */
typedef struct tp_keras_place {
    const char *prefix; /* "encoder/" */
    const char *place;  /* "layers/functional/" */
    const char *owner;  /* NULL at the top: each layer is its own */
    bool is_trainable;
    int depth;
} tp_keras_place;

/* NULL also when there is no object to look into. */
static inline const tp_json *tp_keras_member(const tp_json *object, const char *key)
{
    return object ? tp_json_member(object, key) : NULL;
}

/* ---- findings: `what` and `remedy` are copied; in map.c ---- */
tpucl_status tp_keras_find(tp_arena *arena, tp_keras_findings *findings, tp_keras_rule rule,
                           const char *layer, const char *kind, const char *remedy,
                           const char *format, ...) __attribute__((format(printf, 7, 8)));

/* ---- the graph of one model: map_graph.c ---- */
typedef struct tp_keras_ref {
    const char *layer; /* as in the file */
    int64_t node, tensor;
} tp_keras_ref;

TP_ARRAY_DEFINE(tp_keras_refs, tp_keras_ref)

/* A mask that a call is given for one of its inputs. */
typedef struct tp_keras_mask {
    tp_keras_ref ref;
    int32_t input;
} tp_keras_mask;

TP_ARRAY_DEFINE(tp_keras_masks, tp_keras_mask)

/* One call of a layer. */
typedef struct tp_keras_call {
    int32_t layer; /* index in the model's list of layers */
    int32_t node;
    tp_keras_refs inputs;
    tp_keras_masks masks;
    const char *name; /* tpucl's, of its result; filled by the writer */
    bool is_needed;
} tp_keras_call;

/* One element of "layers". */
typedef struct tp_keras_row {
    const tp_json *json, *config;
    const char *kind;      /* class_name without "Custom>" and the like */
    const char *file_name; /* as other layers call it */
    const char *name;      /* tpucl's: no '/' in it */
    bool is_input, is_model, is_op;
    bool is_causal; /* called with use_causal_mask, which is an argument of the layer here */
    int32_t first_call, call_count;
    int32_t nested_first,
        nested_count;   /* of a model: its layers in mapper->layers, while writing */
    int32_t definition; /* the call that stands for it in the result; -1 before that */
} tp_keras_row;

TP_ARRAY_DEFINE(tp_keras_rows, tp_keras_row)
TP_ARRAY_DEFINE(tp_keras_calls, tp_keras_call)

typedef struct tp_keras_graph {
    const tp_json *json; /* the model's object */
    bool is_sequential;
    tp_keras_rows rows;
    tp_map row_names; /* file_name to row */
    tp_keras_calls calls;
    tp_keras_refs inputs, outputs;
    int32_t *order; /* needed calls, each after those that it takes from; inputs left out */
    int32_t order_count;
} tp_keras_graph;

/* `config` is {"class_name", "config"} of a model. TPUCL_INVALID_CONFIG for what no Keras wrote. */
tpucl_status tp_keras_graph_read(tp_keras_mapper *mapper, const tp_json *config, const char *prefix,
                                 tp_keras_graph *out_graph) TPUCL_MUST_CHECK;
void tp_keras_graph_deinit(tp_keras_graph *graph);
/* The call that a reference means, or NULL; in map_order.c. */
tp_keras_call *tp_keras_graph_call(const tp_keras_graph *graph, const tp_keras_ref *ref);

/* ---- masks: map_mask.c ---- */
/* A finding for each call with a mask that does not come with its input anyway. */
tpucl_status tp_keras_check_masks(tp_keras_mapper *mapper, const tp_keras_graph *graph,
                                  const char *prefix) TPUCL_MUST_CHECK;
/* Whether layers of this class hand on the mask of their first input. */
bool tp_keras_passes_mask(const char *class_name);

/* ---- calls: map_call.c ---- */
/* TPUCL_INVALID_CONFIG with where `value` stands and what was expected there. */
tpucl_status tp_keras_malformed(const tp_json *value, const char *expected) TPUCL_MUST_CHECK;
/* input_layers and output_layers: one reference, a list of them, or an object of them; and lists in lists.
 * `depth`: 0 but for the function itself. */
tpucl_status tp_keras_read_ends(const tp_json *value, int depth,
                                tp_keras_refs *refs) TPUCL_MUST_CHECK;
/* One element of inbound_nodes: what the call takes goes to `call`, what it says of the layer to `row`; arguments
 * without an equal become findings under `name`. */
tpucl_status tp_keras_read_call(tp_keras_mapper *mapper, tp_keras_row *row, const char *name,
                                const tp_json *node, tp_keras_call *call) TPUCL_MUST_CHECK;

/* ---- order of calls: map_order.c ---- */
/* Fills order and is_needed. Afterwards node numbers of nested models count from 0, as all others do. */
tpucl_status tp_keras_graph_order(tp_keras_mapper *mapper, tp_keras_graph *graph) TPUCL_MUST_CHECK;

/* ---- one layer: map_layer.c ---- */
/* "type" and the arguments as members of the object that is open. `name` is for findings. */
tpucl_status tp_keras_write_layer(tp_keras_mapper *mapper, const tp_keras_row *row,
                                  const char *name, tp_json_writer *writer) TPUCL_MUST_CHECK;

/* ---- classes: map_class.c ---- */
/* tpucl's name of the class. */
const char *tp_keras_type(const tp_keras_row *row);
/* Adds a finding for a class that there is no equal of; *out_is_known says whether there is. */
tpucl_status tp_keras_check_type(tp_keras_mapper *mapper, const tp_keras_row *row, const char *name,
                                 bool *out_is_known) TPUCL_MUST_CHECK;

/* ---- functions of keras.ops: map_op.c ---- */
/* The layer that does the same, its type and arguments as members of the object that is open; false, and nothing is
 * written, when there is none. */
bool tp_keras_write_op(const tp_keras_row *row, tp_json_writer *writer);

/* "float32", "mixed_bfloat16", ... of a layer's dtype; NULL when it says none. */
const char *tp_keras_policy_name(const tp_json *config);

/* ---- values: map_value.c ---- */
/* A member that is an initializer, a regularizer, a constraint, an activation, or plain JSON. False, with a
 * finding, when it has no equal. */
tpucl_status tp_keras_write_value(tp_keras_mapper *mapper, const char *layer, const char *kind,
                                  const tp_json *value, tp_json_writer *writer) TPUCL_MUST_CHECK;

/* class_name without the package that Keras puts in front ("Custom>Adam"); "" when there is none. */
const char *tp_keras_class(const tp_json *object);
/* Keras' snake case: BatchNormalization to batch_normalization, Conv2D to conv2d, PReLU to p_re_lu. */
const char *tp_keras_snake(tp_arena *arena, const char *class_name);
/* What Keras calls the group of weights of a layer of that class, and by default the layer: its snake case, but
 * GroupQueryAttention is the public name of a GroupedQueryAttention. */
const char *tp_keras_container(tp_arena *arena, const char *class_name);
/* Whether null says something else than leaving the argument out: lists that are given by default, such as the
 * axis of a Normalization. */
bool tp_keras_null_counts(const char *type, const char *argument);

#endif
