/* SPDX-License-Identifier: Apache-2.0
 * What the image layers share. Images are f32 [batch, height, width, channels].
 */
#ifndef TP_MODEL_LAYER_IMAGE_H
#define TP_MODEL_LAYER_IMAGE_H

#include "model/layer.h"

/* [batch, height, width, channels]: position i of the result lies at (i + 0.5) * in / out - 0.5 of the input.
 * Bilinear: between its two neighbours, rows first; at the border the outermost alone. Else the element whose
 * half-open cell (i + 0.5) * in / out falls into. Neither looks at more of the input when it shrinks. */
tp_node_id tp_image_resize(tp_graph *graph, tp_node_id x, int64_t height, int64_t width,
                           bool is_bilinear);

/* The largest window of the aspect ratio height : width in the middle of the image, resized to that. */
tp_node_id tp_image_fit(tp_graph *graph, tp_node_id x, int64_t height, int64_t width);

/* f32 [batch], one of [low, high) for each example, another one at every step. */
tp_node_id tp_image_uniform(tp_layer_context *context, double low, double high);

/* Keras' factor: [low, high] sorted, or a number f for [-|f|, |f|]; false, with a problem, when it is not
 * within the bounds. */
bool tp_image_range(const tp_layer_numbers *factor, const char *name, double least, double most,
                    tp_problems *problems, double out_range[2]);

#endif
