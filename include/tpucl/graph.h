/* SPDX-License-Identifier: Apache-2.0
 * A graph: what ONE core computes in one step. Shapes are static and per core: an input of shape
 * [128, 784] on a topology of 8 cores eats batches of 1024 examples, 128 for each core. The
 * first dimension of every input is the per-core batch.
 *
 * Calls return tensors, so that model code reads as mathematics. The first mistake is kept with the
 * op's name and the shapes in it; later calls do nothing and return a tensor below zero;
 * tpucl_graph_check and tpucl_program_compile report it. Strings are copied.
 *
 * tpucl_graph is thread-compatible: one thread at a time. */
#ifndef TPUCL_GRAPH_H
#define TPUCL_GRAPH_H

#include <string.h>
#include <tpucl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tpucl_graph tpucl_graph;

typedef enum tpucl_attribute_kind {
    TPUCL_ATTRIBUTE_INT = 1,
    TPUCL_ATTRIBUTE_FLOAT = 2,
    TPUCL_ATTRIBUTE_INTS = 3,
    TPUCL_ATTRIBUTE_TEXT = 4
} tpucl_attribute_kind;

/* A parameter of an op. Make one with the functions below. Pointers are borrowed for the call. */
typedef struct tpucl_attribute {
    const char *name;
    tpucl_attribute_kind kind;
    int64_t int_value;
    double float_value;
    const int64_t *ints;
    int32_t ints_count;
    const char *text;
} tpucl_attribute;

static inline tpucl_attribute tpucl_attribute_int(const char *name, int64_t value)
{
    tpucl_attribute a = {name, TPUCL_ATTRIBUTE_INT, value, 0, NULL, 0, NULL};
    return a;
}
static inline tpucl_attribute tpucl_attribute_float(const char *name, double value)
{
    tpucl_attribute a = {name, TPUCL_ATTRIBUTE_FLOAT, 0, value, NULL, 0, NULL};
    return a;
}
static inline tpucl_attribute tpucl_attribute_ints(const char *name, const int64_t *values,
                                                   int32_t count)
{
    tpucl_attribute a = {name, TPUCL_ATTRIBUTE_INTS, 0, 0, values, count, NULL};
    return a;
}
static inline tpucl_attribute tpucl_attribute_text(const char *name, const char *text)
{
    tpucl_attribute a = {name, TPUCL_ATTRIBUTE_TEXT, 0, 0, NULL, 0, text};
    return a;
}

/* Zero or NULL in a field means its default, the one Keras uses. Only grows. */
typedef struct tpucl_optimizer_options {
    size_t struct_size;
    /* "sgd" (the default), "adam", "adamw", "adamax", "nadam", "rmsprop", "adagrad", "adadelta", "adafactor",
     * "lion", "lamb", "lars": docs/optimizers.md. What a kind does not have is not read; 0 is Keras' default. */
    const char *kind;
    double learning_rate;           /* SGD 0.01, Adam 0.001 */
    double momentum;                /* SGD, RMSprop: 0; LARS: 0.9 */
    bool nesterov;                  /* SGD, LARS */
    double beta_1, beta_2, epsilon; /* Adam: 0.9, 0.999, 1e-7 */
    const char *reduction; /* of gradients over the cores of a group: "mean" (the default), "sum" */
    const int32_t *groups; /* core ids, group after group, all of `group_size`; NULL: all cores are
                              one group */
    int32_t group_count, group_size;
    double rho;                  /* RMSprop 0.9, Adadelta 0.95 */
    double weight_decay;         /* decoupled; AdamW 0.004, LARS 1e-4, others none */
    const char *const *no_decay; /* parts of names of parameters without it; NULL: none */
    int32_t no_decay_count;
    double clipnorm, clipvalue, global_clipnorm; /* at most one; 0: not */
    bool clip_per_replica;                       /* of each core's gradient, not of their sum */
    /* TPUCL_F32 (the default) or TPUCL_BF16: what the optimizer keeps, and what cores send each other
     * (docs/precision.md, "State"). */
    tpucl_dtype first_moment, second_moment, gradients;
} tpucl_optimizer_options;

static inline tpucl_optimizer_options tpucl_optimizer_options_default(void)
{
    tpucl_optimizer_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_graph_create(tpucl_graph **out_graph);
TPUCL_API void tpucl_graph_destroy(tpucl_graph *graph);

/* A tensor that every step's batch brings along, per core: [per-core batch, ...]. */
TPUCL_API tpucl_tensor tpucl_graph_input(tpucl_graph *graph, const char *name, tpucl_dtype dtype,
                                         tpucl_shape shape);
/* An f32 variable that training changes. `initializer`: "zeros", "ones" or a name of Keras
 * ("glorot_uniform", "he_normal", ...); its values depend on the seed and the name alone. */
TPUCL_API tpucl_tensor tpucl_graph_parameter(tpucl_graph *graph, const char *name,
                                             tpucl_shape shape, const char *initializer);
/* An f32 constant. `values` is copied. */
TPUCL_API tpucl_tensor tpucl_graph_constant(tpucl_graph *graph, tpucl_shape shape,
                                            const float *values);
/* Any op by its name (docs/ops.md lists them with their attributes); ops.h has the frequent ones. */
TPUCL_API tpucl_tensor tpucl_graph_apply(tpucl_graph *graph, const char *op,
                                         const tpucl_attribute *attributes, int32_t attribute_count,
                                         const tpucl_tensor *inputs, int32_t input_count);
/* One f32 value per example, [per-core batch]: every step reports its mean over the global batch
 * under this name. Examples that only pad a partial batch are not counted. */
TPUCL_API void tpucl_graph_metric(tpucl_graph *graph, const char *name, tpucl_tensor per_example);

/* What training minimises: the mean of `loss`, one f32 value per example ([per-core batch]),
 * over the global batch; it becomes the metric "loss". The backward pass, the sum of the
 * gradients over the cores and the update of all parameters are added when the graph is
 * compiled. Once per graph. `optimizer` may be NULL. */
TPUCL_API void tpucl_graph_minimize(tpucl_graph *graph, tpucl_tensor loss,
                                    const tpucl_optimizer_options *optimizer);

/* The first mistake so far, or TPUCL_OK. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_graph_check(const tpucl_graph *graph);
/* Shape of a tensor, for code that builds on others' tensors; rank -1 for a failed one. */
TPUCL_API tpucl_shape tpucl_graph_shape(const tpucl_graph *graph, tpucl_tensor tensor);
/* The graph as text, one line a node; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_graph_print(const tpucl_graph *graph,
                                                          char **out_text);

#ifdef __cplusplus
}
#endif
#endif
