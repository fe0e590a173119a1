/* SPDX-License-Identifier: Apache-2.0
 * Reading a model in two passes. tp_model_scope_read makes rows out of a "layers" list and finds what their
 * "inputs" mean; tp_model_scope_link then appends the calls to the model, in order, with their shapes. A
 * scope is a list of layers with names of its own: the model's, or a nested model's.
 *
 * Both add all that is wrong to reader->problems and fail only for want of memory.
 */
#ifndef TP_MODEL_MODEL_SCOPE_H
#define TP_MODEL_MODEL_SCOPE_H

#include "core/map.h"
#include "model/model_internal.h"

typedef struct tp_model_reader {
    tp_model *model;
    tp_problems *problems;
    int32_t row_count; /* of all scopes read so far, at most TP_MODEL_MAX_CALLS */
    bool is_too_large; /* it would have been more: nothing else is read */
} tp_model_reader;

/* What an element of "inputs" or "outputs" names. */
enum { TP_MODEL_REF_UNKNOWN = -1000000 }; /* said already */
typedef struct tp_model_ref {
    int32_t row;    /* 0 and above; -1 - i: input i of the scope; or unknown */
    int32_t output; /* of the row */
} tp_model_ref;

typedef struct tp_model_scope tp_model_scope;

typedef struct tp_model_item {
    const tp_json *json;       /* the element of "layers" */
    const tp_json *definition; /* the same, or that of the layer that is called again */
    const char *name;          /* within the scope */
    int32_t again;             /* the row that is called again; -1 */
    bool is_called_again;
    bool is_readable;
    tp_layer layer;         /* unless it is a model or a call */
    tp_model_scope *nested; /* of a nested model */
    tp_model_ref *inputs;
    int32_t input_count;
    /* Of linking: values; NULL where they could not be found out. */
    int32_t *outputs;
    int32_t output_count;
    bool is_linked;
} tp_model_item;

struct tp_model_scope {
    const tp_json *json;
    tp_map *names; /* of rows and inputs, while it is read */
    bool trainable;
    const char **input_names;
    int32_t input_count;
    tp_model_item *rows;
    int32_t row_count;
    const char **output_names;
    tp_model_ref *outputs;
    int32_t output_count;
};

/* `json`: the model's object, whose inputs have these names, or (input_names NULL) a nested model's, whose
 * inputs "model_inputs" names. */
tpucl_status tp_model_scope_read(tp_model_reader *reader, const tp_json *json,
                                 const char *const *input_names, int32_t input_count,
                                 tp_model_scope *out_scope) TPUCL_MUST_CHECK;

/* What is given at the end of model->values, by a call or (-1) the model's input. */
tpucl_status tp_model_add_value(tp_model *model, const tp_shape *shape,
                                int32_t call) TPUCL_MUST_CHECK;

/* Where a scope stands. */
typedef struct tp_model_place {
    const char *prefix; /* in front of its layers' names: "", "encoder/" */
    const char *
        weights_prefix; /* the same of the model that was defined, where this is another call of it */
    bool is_shared;     /* other places have the same weights */
    bool trainable;
} tp_model_place;

/* inputs: a value for each of the scope's inputs. out_values: as many as it has outputs, TP_MODEL_NO_VALUE
 * where something was wrong. */
tpucl_status tp_model_scope_link(tp_model_reader *reader, tp_model_scope *scope,
                                 const tp_model_place *place, const int32_t *inputs,
                                 int32_t *out_values) TPUCL_MUST_CHECK;

#endif
