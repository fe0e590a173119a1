/* SPDX-License-Identifier: Apache-2.0
 * The forward pass of a model as nodes. Shared by the files of model/ only.
 */
#ifndef TP_MODEL_MODEL_FORWARD_H
#define TP_MODEL_MODEL_FORWARD_H

#include "model/model_internal.h"

/* What it leaves, for each output of the model. */
typedef struct tp_model_forward {
    const tp_node_id *results; /* f32 [batch, output...] */
    const tp_node_id *logits;  /* see tp_layer_context */
    const tp_node_id *masks;   /* likewise */
    tp_layer_losses losses;    /* of layers and of regularizers, see tp_layer_add_loss */
} tp_model_forward;

/* [batch, example...] */
tp_shape tp_model_batched(int64_t batch, const tp_shape *example);

/* The graph's inputs, as the host feeds them: out_inputs[model->input_count]. */
void tp_model_add_inputs(tp_graph *graph, const tp_model *model, int64_t batch,
                         tp_node_id *out_inputs);

/* Zero in rows whose weight is 0, where x holds floats. Their weight alone would keep them out of sums, but
 * not a NaN or an infinity in them: 0 * NaN. */
tp_node_id tp_model_clear_padding(tp_graph *graph, tp_node_id x, tp_node_id weight);

/* Scales the inputs and calls the layers. `cores`: of the replica group when training, 0 otherwise. `weight`:
 * f32 [batch]; TP_NO_NODE when predicting. */
tpucl_status tp_model_add_forward(tp_graph *graph, const tp_model *model, int64_t batch,
                                  int64_t cores, const tp_node_id *inputs, tp_node_id weight,
                                  tp_model_forward *out_forward) TPUCL_MUST_CHECK;

#endif
