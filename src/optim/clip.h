/* SPDX-License-Identifier: Apache-2.0
 * Clipping of gradients (keras/src/optimizers/base_optimizer.py, _clip_gradients):
 *     clipnorm         g * clipnorm / max(|g|, clipnorm), each variable's gradient by its own norm
 *     global_clipnorm  g * global_clipnorm * min(1 / |all|, 1 / global_clipnorm), one norm over all
 *                      gradients; NaN when that norm is not finite
 *     clipvalue        every element to [-clipvalue, clipvalue]
 */
#ifndef TP_OPTIM_CLIP_H
#define TP_OPTIM_CLIP_H

#include "optim/optimizer.h"

/* Whether the configuration clips at all. */
bool tp_optim_clips(const tp_optim_config *config);

/* Replaces each gradient (f32; TP_NO_NODE stays) by what is left of it. */
void tp_optim_clip(tp_graph *graph, const tp_optim_config *config, tp_optim_gradient *gradients,
                   int32_t count);

#endif
