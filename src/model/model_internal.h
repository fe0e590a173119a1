/* SPDX-License-Identifier: Apache-2.0
 * What tp_model holds: calls of layers in an order in which they can be computed, and the values that they
 * take and give. Nested models are inlined: their layers' names have the nested model's name in front
 * ("encoder/dense"). Shared by the files of model/ only.
 */
#ifndef TP_MODEL_MODEL_INTERNAL_H
#define TP_MODEL_MODEL_INTERNAL_H

#include "core/arena.h"
#include "model/layer.h"
#include "model/model.h"

enum { TP_MODEL_MAX_CALLS = 10000, TP_MODEL_NO_VALUE = -1 };

/* A layer at one place of the model. Calls of one layer share its weights, nothing else. */
typedef struct tp_model_call {
    tp_layer layer;         /* its name is the call's */
    const char *weights_of; /* name of the layer whose weights these are */
    int32_t owner;         /* the first call with these weights; the call's own index where it is */
    const int32_t *inputs; /* values, [layer.input_count] */
    int32_t first_output;  /* value of output 0; the others follow */
} tp_model_call;

/* What a call gives, or an input of the model: those come first. */
typedef struct tp_model_value {
    tp_shape shape; /* of one example */
    int32_t call;   /* -1: an input */
} tp_model_value;

typedef struct tp_model_port {
    const char *name;
    int32_t value;
} tp_model_port;

struct tp_model {
    tp_arena *arena; /* owns everything below */
    const char *name;
    tp_model_call *calls;
    int32_t call_count, call_capacity;
    tp_model_value *values;
    int32_t value_count, value_capacity;
    tp_model_input *inputs; /* scale and offset resolved; input i is value i */
    int32_t input_count;
    tp_model_port *outputs;
    int32_t output_count;
    tp_model_options options;
};

/* The layer's own policy, or the model's. */
tp_model_policy tp_model_layer_policy(const tp_model *model, const tp_layer *layer);

#endif
