/* SPDX-License-Identifier: Apache-2.0
 * Clipping of gradients: see clip.h.
 */
#include "optim/clip.h"

#include "optim/update.h"

bool tp_optim_clips(const tp_optim_config *config)
{
    return config->clipnorm > 0 || config->clipvalue > 0 || config->global_clipnorm > 0;
}

static tp_node_id clip_norm(tp_graph *graph, tp_node_id g, double clipnorm)
{
    const tp_node_id limit = tp_op_scalar(graph, TP_F32, clipnorm);
    const tp_node_id norm = tp_op_maximum(graph, tp_optim_norm(graph, g), limit);
    return tp_op_divide(graph, tp_op_multiply(graph, g, limit), norm);
}

static tp_node_id clip_value(tp_graph *graph, tp_node_id g, double clipvalue)
{
    return tp_op_clamp(graph, tp_op_scalar(graph, TP_F32, -clipvalue), g,
                       tp_op_scalar(graph, TP_F32, clipvalue));
}

/* f32 []: what all gradients are multiplied with. */
static tp_node_id global_scale(tp_graph *graph, const tp_optim_gradient *gradients, int32_t count,
                               double clipnorm)
{
    tp_node_id squares = TP_NO_NODE;
    for (int32_t i = 0; i < count; i++) {
        const tp_node_id g = gradients[i].gradient;
        if (g == TP_NO_NODE) continue;
        const tp_node_id sum = tp_op_reduce(graph, tp_op_multiply(graph, g, g), "add", NULL, 0);
        squares = squares == TP_NO_NODE ? sum : tp_op_add(graph, squares, sum);
    }
    if (squares == TP_NO_NODE) return squares;
    const tp_node_id norm = tp_op_sqrt(graph, squares), one = tp_op_scalar(graph, TP_F32, 1);
    const tp_node_id limit = tp_op_scalar(graph, TP_F32, clipnorm);
    const tp_node_id factor =
        tp_op_minimum(graph, tp_op_divide(graph, one, norm), tp_op_divide(graph, one, limit));
    const tp_node_id scale = tp_op_multiply(graph, limit, factor);
    return tp_op_add(graph, scale, tp_op_subtract(graph, norm, norm));
}

void tp_optim_clip(tp_graph *graph, const tp_optim_config *config, tp_optim_gradient *gradients,
                   int32_t count)
{
    const char *outer = tp_graph_push_scope(graph, "clip");
    const tp_node_id scale = config->global_clipnorm > 0
                                 ? global_scale(graph, gradients, count, config->global_clipnorm)
                                 : TP_NO_NODE;
    for (int32_t i = 0; i < count; i++) {
        tp_node_id *g = &gradients[i].gradient;
        if (*g == TP_NO_NODE) continue;
        if (config->clipnorm > 0)
            *g = clip_norm(graph, *g, config->clipnorm);
        else if (config->clipvalue > 0)
            *g = clip_value(graph, *g, config->clipvalue);
        else
            *g = tp_op_multiply(graph, *g, scale);
    }
    tp_graph_pop_scope(graph, outer);
}
