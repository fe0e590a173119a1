/* SPDX-License-Identifier: Apache-2.0
 * A model: layers read from the run configuration's "model" object, with Keras' names, arguments, defaults,
 * initialisers and weight order, and the graphs made from it. A chain, or a graph of layers that name what
 * they take:
 *
 *     {"name": "mlp", "layers": [{"type": "Flatten"},
 *                                {"type": "Dense", "units": 512, "activation": "relu"},
 *                                {"type": "Dense", "units": 10}]}
 *     {"inputs": [{"name": "image"}],
 *      "layers": [{"type": "Dense", "name": "a", "units": 8},
 *                 {"type": "Dense", "name": "b", "units": 8, "inputs": "image"},
 *                 {"type": "Add", "name": "sum", "inputs": ["a", "b"]}],
 *      "outputs": ["sum"]}
 *
 * Every layer may have "name" (default: Keras' snake case, numbered), "trainable" (default true) and
 * "dtype" (a policy for this layer: its name, or Keras' object {"class_name": "DTypePolicy", "config":
 * {"name": ...}}). docs/layers.md lists types and arguments (model/layer.h: tp_layer_types).
 *
 * Precision policies
 *   float32          everything f32; products as `precision` says (f32: fused multiply-adds)
 *   mixed_bfloat16   variables f32, each converted to bf16 once per step where a layer multiplies with it;
 *                    a layer computes product, bias and activation in f32 and rounds once to bf16;
 *                    batch normalisation computes in f32 on f32 variables; the last layer's result is
 *                    cast to f32 before the loss
 *   bfloat16         the same with trained weights (frozen ones, too) that are bf16 variables. Statistics
 *                    (moving_mean, ...) stay f32: an average that forgets 1 % a step cannot move in bf16
 * A layer takes its inputs in its own policy's dtype; so a last layer of "dtype" "float32" computes a softmax
 * in f32 from the bf16 results of the layer before. Layers see bf16 weights as f32 nodes (exact); their
 * gradients are f32 until the optimizer's configuration narrows them.
 *
 * What the graphs take and give (per-core batch B)
 *   inputs   "image"       [B, example...], u8, f32 or bf16; value * scale + offset is done on the device
 *            "label"       s32 [B, result but its last axis...] (sparse) or f32 [B, result...]; not in
 *                          predict
 *            "weight"      f32 [B]: 1 for an example, 0 for padding; not in predict
 *            "sample_weight" f32 [B], if the score says so: what examples weigh in losses and metrics, >= 0;
 *                          layers (BatchNormalization) and rows of weight 0 do not see it
 *            "denominator" f32 []: sum of weights over all cores of the replica group in this step;
 *                          only in train
 *   outputs  "loss_sum", "weight_sum": f32 [], replicated, sums over the replica group: of
 *            weight * example loss, and of weight; mean loss = loss_sum / weight_sum. Where single
 *            elements are masked (loss.h) both are sums over elements
 *            "correct"     f32 []: sum of weight where the largest class is the label's; only for the
 *                          cross-entropy losses
 *            "metric/NAME/0", ...: the sums of each metric of the score (metric.h), replicated
 *            "prediction"  f32 [B, result...], per core; only in predict
 *
 * A model with several inputs or outputs has inputs of their names, a label for each output (of the name that
 * its target says), and in predict outputs of their names. loss_sum is the sum over the outputs of the target's
 * weight times the output's loss, where that is scaled to the sum of weights of all examples if it counts
 * elements; "NAME/loss_sum", "NAME/weight_sum" and "NAME/correct" are what each output has. The label of a loss
 * that is an expression has the dtype and shape that the target says.
 *
 * Each core's loss is sum(weight * example loss) / denominator * tp_cross_shard_loss_scale(); with masked
 * elements or sample_weight there is no denominator input, as their number is known on the cores only: gradients are divided
 * by the sum of weights after they were summed (cross_shard.h). Examples of
 * weight 0 have no part in any result, whatever their content.
 *
 * A model is read-only after tp_model_create: thread-safe.
 */
#ifndef TP_MODEL_MODEL_H
#define TP_MODEL_MODEL_H

#include <stdint.h>
#include "core/json.h"
#include "core/status.h"
#include "graph/graph.h"
#include "num/augment.h"
#include "num/mxu.h"
#include "optim/cross_shard.h"
#include "optim/optimizer.h"
#include "topo/config_choices.h"

typedef enum tp_model_policy {
    TP_POLICY_FLOAT32,
    TP_POLICY_MIXED_BFLOAT16,
    TP_POLICY_BFLOAT16,
    TP_POLICY_COUNT
} tp_model_policy;

/* "float32", "mixed_bfloat16", "bfloat16": Keras' names. */
const char *tp_model_policy_name(tp_model_policy policy);
/* False when no policy has that name. */
bool tp_model_policy_find(const char *name, tp_model_policy *out_policy);

typedef enum tp_model_loss {
#define TP_MODEL_LOSS_ID(id, symbol, name, keys) TP_MODEL_LOSS_##id,
    TP_LOSS_LIST(TP_MODEL_LOSS_ID)
#undef TP_MODEL_LOSS_ID
} tp_model_loss;

typedef struct tp_loss_options tp_loss_options;     /* model/loss.h */
typedef struct tp_metric_options tp_metric_options; /* model/metric.h */

/* What one of several outputs is to become. */
typedef struct tp_model_target {
    const char *label; /* name of the graphs' input with the labels */
    tp_model_loss loss;
    bool from_logits;
    const tp_loss_options *options; /* NULL: the defaults of the kind */
    double weight;                  /* of its loss in the sum that is minimised */
    /* What the data have, shape of one example: for losses that do not say what they want (EXPRESSION). */
    tp_dtype label_dtype;
    tp_shape label_shape;
} tp_model_target;

typedef struct tp_model_metric {
    int32_t output;                   /* which is judged */
    int32_t kind;                     /* tp_metric_kind; of ACCURACY see "correct" */
    const char *name;                 /* of the graph's outputs "metric/NAME/0", ... */
    const tp_metric_options *options; /* NULL: the defaults */
} tp_model_metric;

/* How results are judged, beyond the kind of the loss. */
typedef struct tp_model_score {
    const tp_loss_options *loss;    /* NULL: the defaults of the kind */
    const tp_model_metric *metrics; /* [metric_count] */
    int32_t metric_count;
    /* One for each output, in their order; the loss given elsewhere then means nothing. NULL: the first output
     * alone is judged. */
    const tp_model_target *targets;
    bool has_sample_weight; /* the graphs take the input "sample_weight" */
} tp_model_score;

/* What the layers see: example = value * scale + offset in f32, or the integers themselves. Scale 0 is
 * chosen: 1/255 for bytes, unless a layer that takes them is a Rescaling, and 1 for others. */
typedef struct tp_model_input {
    tp_dtype dtype; /* TP_U8, TP_S32, TP_F32 or TP_BF16, as the host feeds it */
    tp_shape shape; /* of one example; images [height, width, channels] or [height, width] */
    double scale, offset;
    bool is_integer;  /* the layers see s32 */
    const char *name; /* of the graphs' input; copied. NULL: "image" */
    /* The host feeds u8 `fed`, of which `shape` is what tp_augment_build makes. */
    bool is_augmented;
    tp_augment augment;
    tp_shape fed;
} tp_model_input;

enum { TP_MODEL_MAX_INPUTS = 64 };

typedef struct tp_model_options {
    tp_model_policy policy;
    /* of every product in layers that follow the policy; layers whose own dtype is float32 under another
     * policy use TP_PRECISION_F32 */
    tp_precision precision;
} tp_model_options;

typedef struct tp_model tp_model;

/* Reads and checks all layers, infers all shapes. `config` is the "model" object; it may be destroyed
 * afterwards. All problems at once, with key paths: TPUCL_INVALID_CONFIG. */
tpucl_status tp_model_create(const tp_json *config, const tp_model_input *input,
                             const tp_model_options *options,
                             tp_model **out_model) TPUCL_MUST_CHECK;
/* The same for a model with several inputs, 1 to TP_MODEL_MAX_INPUTS; all have names. */
tpucl_status tp_model_create_many(const tp_json *config, const tp_model_input *inputs,
                                  int32_t input_count, const tp_model_options *options,
                                  tp_model **out_model) TPUCL_MUST_CHECK;
void tp_model_destroy(tp_model *model);

typedef struct tp_model_train {
    int64_t batch; /* per core */
    tp_model_loss loss;
    bool from_logits;
    const tp_optim_config *optimizer;
    const tp_cross_shard *cross_shard;
} tp_model_train;

/* The caller owns the graph. TPUCL_INVALID_CONFIG when loss and model do not fit together. */
tpucl_status tp_model_build_train(const tp_model *model, const tp_model_train *train,
                                  tp_graph **out_graph) TPUCL_MUST_CHECK;
tpucl_status tp_model_build_evaluate(const tp_model *model, int64_t batch, tp_model_loss loss,
                                     bool from_logits, tp_graph **out_graph) TPUCL_MUST_CHECK;
/* The same with a score; NULL: all defaults. */
tpucl_status tp_model_build_scored_train(const tp_model *model, const tp_model_train *train,
                                         const tp_model_score *score,
                                         tp_graph **out_graph) TPUCL_MUST_CHECK;
tpucl_status tp_model_build_scored_evaluate(const tp_model *model, int64_t batch,
                                            tp_model_loss loss, bool from_logits,
                                            const tp_model_score *score,
                                            tp_graph **out_graph) TPUCL_MUST_CHECK;
tpucl_status tp_model_build_predict(const tp_model *model, int64_t batch,
                                    tp_graph **out_graph) TPUCL_MUST_CHECK;

/* Of one example: the first output. Borrowed from the model, like all below. */
const tp_shape *tp_model_output(const tp_model *model);

/* Inputs that the layers take, scale resolved, in the model's order. */
int32_t tp_model_input_count(const tp_model *model);
const tp_model_input *tp_model_input_at(const tp_model *model, int32_t index);
/* Outputs; a name is that of the layer, "lstm:1" for a second result. */
int32_t tp_model_output_count(const tp_model *model);
const char *tp_model_output_name(const tp_model *model, int32_t index);
const tp_shape *tp_model_output_shape(const tp_model *model, int32_t index);

/* dtype and shape of "label" for a batch of `batch`. */
tpucl_status tp_model_label(const tp_model *model, tp_model_loss loss, int64_t batch,
                            tp_dtype *out_dtype, tp_shape *out_shape) TPUCL_MUST_CHECK;

/* The same for the label of another output. */
tpucl_status tp_model_label_at(const tp_model *model, int32_t output, tp_model_loss loss,
                               int64_t batch, tp_dtype *out_dtype,
                               tp_shape *out_shape) TPUCL_MUST_CHECK;
/* The same for what is to become of an output. */
tpucl_status tp_model_target_label(const tp_model *model, int32_t output,
                                   const tp_model_target *target, int64_t batch,
                                   tp_dtype *out_dtype, tp_shape *out_shape) TPUCL_MUST_CHECK;

/* One row per call of a layer, in order; weights count where they are first used. */
typedef struct tp_model_row {
    const char *name, *type;
    tp_shape output; /* of one example */
    int64_t params;  /* all weights, moving statistics included */
    int64_t trainable_params;
} tp_model_row;

const char *tp_model_name(const tp_model *model);
int32_t tp_model_row_count(const tp_model *model);
tp_model_row tp_model_row_at(const tp_model *model, int32_t index);
/* Keras' model.summary() as text (tp_free). */
tpucl_status tp_model_summary(const tp_model *model, char **out_text) TPUCL_MUST_CHECK;

#endif
