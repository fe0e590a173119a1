/* SPDX-License-Identifier: Apache-2.0
 * What tp_model holds; shared by the files of model/ only.
 */
#ifndef TP_MODEL_MODEL_INTERNAL_H
#define TP_MODEL_MODEL_INTERNAL_H

#include "core/arena.h"
#include "model/layer.h"
#include "model/model.h"

struct tp_model {
    tp_arena *arena; /* owns everything below */
    const char *name;
    tp_layer *layers;
    int32_t layer_count;
    tp_model_input input; /* scale and offset resolved */
    tp_model_options options;
};

/* Whether the layer computes in bf16. */
bool tp_model_layer_is_bfloat16(const tp_model *model, const tp_layer *layer);

#endif
