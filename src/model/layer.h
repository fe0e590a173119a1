/* SPDX-License-Identifier: Apache-2.0
 * What a layer is inside model/: one flat record filled from JSON by a table of arguments, and a type with
 * three functions. A new layer is a file with its table and functions and a row in layer.c.
 */
#ifndef TP_MODEL_LAYER_H
#define TP_MODEL_LAYER_H

#include <stddef.h>
#include "core/json.h"
#include "core/problems.h"
#include "graph/graph.h"
#include "model/activation.h"
#include "model/initializer.h"
#include "model/model.h"

typedef enum tp_padding_mode { TP_PADDING_VALID, TP_PADDING_SAME } tp_padding_mode;

enum { TP_LAYER_MAX_WEIGHTS = 4 };

typedef struct tp_layer_weight {
    const char *name; /* "kernel" */
    tp_shape shape;
    const tp_initializer *initializer; /* a field of the layer */
    bool is_trainable; /* by its nature; a frozen layer has no trainable weights at all */
} tp_layer_weight;

typedef struct tp_layer_type tp_layer_type;

/* Arguments have Keras' names; which of them mean something is the type's table's business. */
typedef struct tp_layer {
    const tp_layer_type *type;
    const char *name;
    bool trainable;
    int32_t dtype; /* 0: the policy; 1: float32; 2: mixed_bfloat16 */

    int64_t units, filters;
    int64_t kernel_size[2], strides[2], pool_size[2], dilation_rate[2];
    int32_t padding; /* tp_padding_mode */
    int32_t data_format;
    int32_t activation; /* tp_activation */
    bool use_bias, center, use_scale;
    double rate, momentum, epsilon;
    double scale, offset;                        /* Rescaling */
    double max_value, negative_slope, threshold; /* ReLU; max_value infinite: none */
    int64_t axis;
    int64_t target_shape[TP_MAX_RANK];
    int32_t target_rank;
    tp_initializer kernel_initializer, bias_initializer;
    tp_initializer beta_initializer, gamma_initializer, moving_mean_initializer,
        moving_variance_initializer;

    /* Filled by infer: */
    tp_shape input, output; /* of one example */
    int64_t pad[4];         /* top, bottom, left, right */
    tp_layer_weight weights[TP_LAYER_MAX_WEIGHTS];
    int32_t weight_count;
    int32_t stream; /* number of the layer: the random stream of Dropout */
} tp_layer;

typedef enum tp_layer_arg_kind {
    TP_LAYER_INT,         /* int64_t, min to max */
    TP_LAYER_NUMBER,      /* double, min to max */
    TP_LAYER_LIMIT,       /* the same, or null: infinity */
    TP_LAYER_BOOL,        /* bool */
    TP_LAYER_CHOICE,      /* int32_t, index into `choices` */
    TP_LAYER_PAIR,        /* int64_t[2], min to max: a number or a list of two */
    TP_LAYER_DIMS,        /* target_shape and target_rank: a list of sizes, one may be -1 */
    TP_LAYER_INITIALIZER, /* tp_initializer */
} tp_layer_arg_kind;

typedef struct tp_layer_arg {
    const char *name;
    tp_layer_arg_kind kind;
    size_t offset; /* of the field in tp_layer */
    bool is_required;
    double min, max;
    const char *const *choices;
    size_t choice_count;
} tp_layer_arg;

/* A field of tp_layer for the tables. */
#define TP_LAYER_FIELD(field) offsetof(tp_layer, field)

/* Arguments that several types share. */
extern const char *const tp_padding_names[2]; /* "valid", "same" */
#define TP_LAYER_ROW_PAIR(field)                                                                   \
    {                                                                                              \
#field, TP_LAYER_PAIR, TP_LAYER_FIELD(field), false, 1, 1 << 20, NULL, 0                   \
    }
#define TP_LAYER_ROW_BOOL(field)                                                                   \
    {                                                                                              \
#field, TP_LAYER_BOOL, TP_LAYER_FIELD(field), false, 0, 0, NULL, 0                         \
    }
#define TP_LAYER_ROW_NUMBER(field, min, max)                                                       \
    {                                                                                              \
#field, TP_LAYER_NUMBER, TP_LAYER_FIELD(field), false, min, max, NULL, 0                   \
    }
#define TP_LAYER_ROW_INITIALIZER(field)                                                            \
    {                                                                                              \
#field, TP_LAYER_INITIALIZER, TP_LAYER_FIELD(field), false, 0, 0, NULL, 0                  \
    }
#define TP_LAYER_ROW_PADDING                                                                       \
    {                                                                                              \
        "padding", TP_LAYER_CHOICE, TP_LAYER_FIELD(padding), false, 0, 0, tp_padding_names, 2      \
    }
#define TP_LAYER_ROW_ACTIVATION(required)                                                          \
    {                                                                                              \
        "activation", TP_LAYER_CHOICE, TP_LAYER_FIELD(activation), required, 0, 0,                 \
            tp_activation_names, TP_ACTIVATION_COUNT                                               \
    }
#define TP_LAYER_ROW_DATA_FORMAT                                                                   \
    {                                                                                              \
        "data_format", TP_LAYER_CHOICE, TP_LAYER_FIELD(data_format), false, 0, 0,                  \
            tp_data_format_names, 1                                                                \
    }
extern const char *const tp_data_format_names[1]; /* "channels_last" */

/* What a layer adds nodes to. */
typedef struct tp_layer_context {
    tp_graph *graph;
    int64_t batch;
    bool is_training;
    tp_node_id weight;     /* f32 [batch]: the examples' weights; TP_NO_NODE when predicting */
    tp_dtype dtype;        /* what the layer takes and gives: f32 or bf16 */
    const char *precision; /* of its products */
    tp_node_id variables[TP_LAYER_MAX_WEIGHTS];
    /* z (f32) of a softmax that the layer ends with, which losses take instead of its result; else
     * TP_NO_NODE. */
    tp_node_id logits;
} tp_layer_context;

struct tp_layer_type {
    const char *name;              /* Keras' class */
    const char *snake;             /* start of default names */
    const tp_layer_arg *arguments; /* ends with a NULL name */
    /* Sets what is not zero by default. May be NULL. */
    void (*set_defaults)(tp_layer *layer);
    /* From layer->input: output, weights, padding. What is wrong goes to `problems`, one sentence each
     * without place (the caller adds it); then false. */
    bool (*infer)(tp_layer *layer, tp_problems *problems);
    /* x: [batch, input...] in context->dtype. Returns [batch, output...] in context->dtype. */
    tp_node_id (*build)(tp_layer_context *context, const tp_layer *layer, tp_node_id x);
};

/* Reads one element of "layers". False when something is wrong (added to `problems`); `out_layer` is then
 * incomplete. The name is borrowed from the document, or NULL when none is given. */
bool tp_layer_read(const tp_json *value, tp_problems *problems, tp_layer *out_layer);

/* ---- for layers ---- */
void tp_layer_add_weight(tp_layer *layer, const char *name, int rank, const int64_t *dims,
                         const tp_initializer *initializer, bool is_trainable);
/* Sets layer->output; false, with a problem, when the shape is impossible. */
bool tp_layer_set_output(tp_layer *layer, tp_problems *problems, int rank, const int64_t *dims);
/* The input must be [height, width, channels]. */
bool tp_layer_need_image(const tp_layer *layer, tp_problems *problems);
/* Output height and width and the padding of windows of `size`; false with a problem when none fits. */
bool tp_layer_infer_windows(tp_layer *layer, const int64_t *size, const int64_t *dilation,
                            tp_problems *problems, int64_t out_size[2]);
/* [batch, example...] */
tp_shape tp_layer_batched(const tp_layer_context *context, const tp_shape *example);
/* Bias (unless absent) and activation on a product, rounded once. */
tp_node_id tp_layer_finish_product(tp_layer_context *context, const tp_layer *layer,
                                   tp_node_id product);

/* Types, one per constructor of Keras. */
extern const tp_layer_type tp_layer_dense, tp_layer_conv2d;
extern const tp_layer_type tp_layer_max_pooling2d, tp_layer_average_pooling2d,
    tp_layer_global_average_pooling2d;
extern const tp_layer_type tp_layer_flatten, tp_layer_reshape, tp_layer_rescaling;
extern const tp_layer_type tp_layer_activation, tp_layer_relu, tp_layer_softmax, tp_layer_dropout;
extern const tp_layer_type tp_layer_batch_normalization;

#endif
