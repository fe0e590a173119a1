/* SPDX-License-Identifier: Apache-2.0
 * What a layer is inside model/. A layer type owns its arguments: its file declares a struct for them, a
 * table that fills the struct from JSON, and three functions. tp_layer holds what all types share.
 *
 * A new layer is a file like layer_dense.c and a row in layer_list.h. What happens to it, in this order:
 *   set_defaults   on the zeroed struct
 *   (the table)    reads the arguments that the configuration gives
 *   infer          from the shapes of the inputs: shapes of the outputs, weights; may keep what it found in
 *                  its arguments
 *   build          once per graph (training, evaluation, prediction): nodes
 * Shapes are those of one example; nodes have the batch in front.
 */
#ifndef TP_MODEL_LAYER_H
#define TP_MODEL_LAYER_H

#include "graph/builder.h"
#include "model/activation.h"
#include "model/constraint.h"
#include "model/initializer.h"
#include "model/layer_arg.h"
#include "model/layer_list.h"
#include "model/model.h"
#include "model/regularizer.h"

enum { TP_LAYER_MAX_OUTPUTS = 8, TP_LAYER_ANY_INPUTS = 1 << 20 };

typedef struct tp_layer_weight {
    const char *name; /* "kernel" */
    tp_shape shape;
    /* Fields of the layer's arguments; NULL for no regularizer, no constraint. */
    const tp_initializer *initializer;
    const tp_regularizer *regularizer;
    const tp_constraint *constraint;
    bool is_trainable; /* by its nature; a frozen layer has no trainable weights at all */
    tp_shape fans;     /* [in, out] for the initializer; rank 0: it sees `shape` */
} tp_layer_weight;

typedef struct tp_layer_type tp_layer_type;

struct tp_layer {
    const tp_layer_type *type;
    /* unique in the model; that of a nested layer is unique in its wrapper only */
    const char *name;
    tp_arena *arena; /* the model's: for what infer keeps */
    void *args;      /* the type's struct */
    bool trainable;
    bool has_policy; /* its own "dtype"; else it has the model's */
    tp_model_policy policy;

    const tp_shape *inputs; /* [input_count] */
    int32_t input_count;
    /* Filled by infer: */
    tp_shape outputs[TP_LAYER_MAX_OUTPUTS];
    int32_t output_count;
    tp_layer_weight *weights; /* [weight_count], in Keras' order */
    int32_t weight_count, weight_capacity;
    tp_layer_weight spare; /* what tp_layer_add_weight returns when memory is out */
    bool is_out_of_memory;
};

/* Losses that layers add, of a whole graph: see tp_layer_add_loss. */
typedef struct tp_layer_losses {
    tp_node_id *items;
    int32_t count, capacity;
} tp_layer_losses;

/* What a layer adds nodes to. One per call of a layer; a wrapper makes another for what it wraps. */
typedef struct tp_layer_context {
    tp_graph *graph;
    int64_t batch;
    bool is_training;
    int64_t cores;         /* of the replica group, when training */
    tp_node_id weight;     /* f32 [batch]: the examples' weights; TP_NO_NODE when predicting */
    tp_dtype dtype;        /* what the layer takes and gives: f32 or bf16 */
    const char *precision; /* of its products */
    const tp_node_id *variables; /* [weight_count], f32; of bf16 weights, what they widen to */
    /* Keras' masks: pred [batch, time], true where a step counts; TP_NO_NODE: all do. Those of the outputs
     * are preset as the type's `mask` says; build may set them. */
    const tp_node_id *input_masks; /* [input_count] */
    tp_node_id output_masks[TP_LAYER_MAX_OUTPUTS];
    /* z (f32) of a softmax that output 0 comes from, which losses take instead of its result; else
     * TP_NO_NODE. */
    tp_node_id logits;
    tp_layer_losses *losses;
    int64_t *next_stream; /* see tp_layer_random_stream */
} tp_layer_context;

typedef enum tp_layer_mask {
    TP_LAYER_MASK_STOPS,  /* Keras: supports_masking is false */
    TP_LAYER_MASK_PASSES, /* every output has the first input's mask */
    TP_LAYER_MASK_OWN,    /* `build` says what masks the outputs have */
} tp_layer_mask;

struct tp_layer_type {
    const char *name;               /* Keras' class */
    const char *snake;              /* start of default names */
    const tp_layer_arg *arguments;  /* ends with a NULL name; NULL: none */
    size_t args_bytes;              /* of the struct that `arguments` fill */
    int32_t min_inputs, max_inputs; /* 0 reads as 1; TP_LAYER_ANY_INPUTS: no bound */
    tp_layer_mask mask;
    /* Inputs come as they are. Otherwise those that hold floats are converted to context->dtype first (Keras'
     * autocast); integers and pred never are. */
    bool keeps_input_dtype;
    /* Sets what is not zero by default. May be NULL. */
    void (*set_defaults)(void *args);
    /* From layer->inputs: outputs, weights. What is wrong goes to `problems`, one sentence each without
     * place (the caller adds it); then false. */
    bool (*infer)(tp_layer *layer, tp_problems *problems);
    /* inputs[i]: [batch, input i...]. Sets outputs[i]: [batch, output i...] in context->dtype, or the integer
     * dtype that the layer passes on. Inputs are TP_NO_NODE after a mistake in the graph. */
    void (*build)(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs);
};

/* Reads one element of "layers", or a nested layer. False when something is wrong (added to `problems`);
 * `out_layer` is then incomplete. All but the types live in the arena. Members of the model's own are passed
 * over: "inputs". A layer without "name" has NULL as its name. */
bool tp_layer_read(const tp_json *value, tp_arena *arena, tp_problems *problems,
                   tp_layer *out_layer);

/* ---- for infer ---- */
/* Some axes of an example, rising. */
typedef struct tp_layer_axes {
    int32_t count;
    int64_t items[TP_MAX_RANK];
} tp_layer_axes;

static inline const tp_shape *tp_layer_input(const tp_layer *layer, int32_t index)
{
    return &layer->inputs[index];
}

static inline const tp_shape *tp_layer_output(const tp_layer *layer, int32_t index)
{
    return &layer->outputs[index];
}

/* Appends a weight and returns it, for a regularizer or constraint to be set; never NULL. The name is copied,
 * `initializer` borrowed. */
tp_layer_weight *tp_layer_add_weight(tp_layer *layer, const char *name, int rank,
                                     const int64_t *dims, const tp_initializer *initializer,
                                     bool is_trainable);
/* Appends a weight that is trained, with what is borrowed of the layer's arguments. */
void tp_layer_add_trained(tp_layer *layer, const char *name, int rank, const int64_t *dims,
                          const tp_initializer *initializer, const tp_regularizer *regularizer,
                          const tp_constraint *constraint);
/* Appends an output. False, with a problem, when the shape is impossible. */
bool tp_layer_add_output(tp_layer *layer, tp_problems *problems, int rank, const int64_t *dims);
/* The only output, of the first input's shape. */
bool tp_layer_same_output(tp_layer *layer, tp_problems *problems);
/* Input 0 must have `rank` dimensions; `expected` is "[height,width,channels]". */
bool tp_layer_need_rank(const tp_layer *layer, int rank, const char *expected,
                        tp_problems *problems);
/* Input 0 must be [height, width, channels]. */
bool tp_layer_need_image(const tp_layer *layer, tp_problems *problems);
/* Input 0 must have a dimension: softmax, Dense. */
bool tp_layer_need_features(const tp_layer *layer, tp_problems *problems);
/* `groups` (1 or more) of a convolution divide both. */
bool tp_layer_need_groups(int64_t channels, int64_t filters, int64_t groups, tp_problems *problems);

/* Keras' axes, which count the batch as 0 and from the end when negative, as rising axes of the example. NULL
 * items: the last one. False, with a problem, for the batch, what does not exist or comes twice. */
bool tp_layer_find_axes(const tp_layer *layer, const tp_layer_ints *axes, tp_problems *problems,
                        tp_layer_axes *out_axes);

/* ---- windows ---- */
/* Arguments of windows over the `spatial` (1, 2 or 3) dimensions before the channels. */
typedef struct tp_layer_windows {
    int64_t size[3], strides[3], dilation[3];
    int32_t padding; /* TP_PADDING_ */
    /* Filled by tp_layer_infer_windows: */
    int64_t pad[6]; /* before and after, for each dimension */
    int64_t out[3]; /* how many windows there are */
} tp_layer_windows;

/* From input 0, whose rank is spatial + 1 at least. Dilation 0 reads as 1. */
bool tp_layer_infer_windows(const tp_layer *layer, int spatial, tp_layer_windows *windows,
                            tp_problems *problems);
/* As attribute of the ops on images. */
tp_window tp_layer_window(const tp_layer_windows *windows);

/* ---- for build ---- */
/* [batch, example...] */
tp_shape tp_layer_batched(const tp_layer_context *context, const tp_shape *example);
/* Bias (unless TP_NO_NODE) and activation on a product, rounded once. */
tp_node_id tp_layer_finish_product(tp_layer_context *context, tp_node_id product, tp_node_id bias,
                                   tp_activation activation);
/* A stream of random numbers that no other op of the model has; another one at every call. */
int64_t tp_layer_random_stream(tp_layer_context *context);
/* f32 [], equal on all cores, or f32 [batch], one for each example: added to the loss that is minimised, the
 * latter as the weighted mean over examples. */
void tp_layer_add_loss(tp_layer_context *context, tp_node_id loss);
/* Keras' activity_regularizer: the penalty of each example's part of `output`, added as such a loss. */
void tp_layer_add_activity(tp_layer_context *context, const tp_regularizer *regularizer,
                           tp_node_id output);

/* ---- for wrappers (Bidirectional, TimeDistributed) ---- */
/* Shapes and weights of a nested layer from these inputs; what is wrong is added with the nested layer's
 * name. `inputs` must live as long as the layer. */
bool tp_layer_infer_nested(tp_layer *nested, const tp_shape *inputs, int32_t input_count,
                           tp_problems *problems);
/* The nested layer's weights, named `prefix` + their name, become the last ones of the wrapper. */
void tp_layer_adopt_weights(tp_layer *wrapper, const tp_layer *nested, const char *prefix);
/* Context for the nested layer, whose weights begin at `first_weight` of the wrapper's. batch and masks are
 * the wrapper's own and may be set. */
tp_layer_context tp_layer_nested_context(const tp_layer_context *context, int32_t first_weight);
/* How every layer is called: presets the masks of the outputs, converts the inputs, builds. */
void tp_layer_call(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                   tp_node_id *outputs);

#define TP_LAYER_DECLARE(id) extern const tp_layer_type tp_layer_##id;
TP_LAYER_LIST(TP_LAYER_DECLARE)
#undef TP_LAYER_DECLARE

#endif
