/* SPDX-License-Identifier: Apache-2.0
 * Random changes of images (num/augment.h) as nodes of a graph. */
#ifndef TP_MODEL_AUGMENT_H
#define TP_MODEL_AUGMENT_H

#include "graph/builder.h"
#include "num/augment.h"

/* `images` u8 [batch, H, W, channels] to [batch, height, width, channels]: u8, or f32 of the same whole
 * numbers where colours change. Not in training: the middle, u8. Bit for bit what tp_augment_apply
 * gives. */
tp_node_id tp_augment_build(tp_graph *graph, const tp_augment *augment, tp_node_id images,
                            bool is_training);

#endif
