/* SPDX-License-Identifier: Apache-2.0
 * LayerNormalization, RMSNormalization, UnitNormalization: each example by itself, over the axes of `axis`,
 * in f32 (keras/src/layers/normalization, keras/src/ops/nn.py):
 *     LayerNormalization   (x - mean) * (gamma / sqrt(variance + epsilon)) + beta, variance biased; with
 *                          rms_scaling x * (gamma / sqrt(variance + epsilon))
 *     RMSNormalization     x * (scale / sqrt(mean of x^2 + epsilon))
 *     UnitNormalization    x * min(1 / sqrt(sum of x^2), 1e12)
 */
#include "model/layer.h"

/* All three; a type reads what it has. */
typedef struct norm_args {
    tp_layer_ints axis;
    double epsilon;
    bool center, scale, rms_scaling;
    tp_initializer beta_initializer, gamma_initializer;
    tp_regularizer beta_regularizer, gamma_regularizer;
    tp_constraint beta_constraint, gamma_constraint;
    tp_layer_axes axes; /* found by infer */
} norm_args;

#define ROW_AXIS                                                                                   \
    {                                                                                              \
        "axis", offsetof(norm_args, axis), TP_LAYER_INTS,                                          \
            TP_LAYER_RANGE(-TP_MAX_RANK, TP_MAX_RANK), .count = TP_MAX_RANK                        \
    }

static const tp_layer_arg layer_arguments[] = {
    ROW_AXIS,
    TP_LAYER_ROW_NUMBER(norm_args, epsilon, 0, 1e30),
    TP_LAYER_ROW_BOOL(norm_args, center),
    TP_LAYER_ROW_BOOL(norm_args, scale),
    TP_LAYER_ROW_BOOL(norm_args, rms_scaling),
    TP_LAYER_ROW_INITIALIZER(norm_args, beta_initializer),
    TP_LAYER_ROW_INITIALIZER(norm_args, gamma_initializer),
    TP_LAYER_ROW_REGULARIZER(norm_args, beta_regularizer),
    TP_LAYER_ROW_REGULARIZER(norm_args, gamma_regularizer),
    TP_LAYER_ROW_CONSTRAINT(norm_args, beta_constraint),
    TP_LAYER_ROW_CONSTRAINT(norm_args, gamma_constraint),
    {0},
};
static const tp_layer_arg rms_arguments[] = {
    ROW_AXIS,
    TP_LAYER_ROW_NUMBER(norm_args, epsilon, 0, 1e30),
    {0},
};
static const tp_layer_arg unit_arguments[] = {ROW_AXIS, {0}};

static void set_layer_defaults(void *args)
{
    norm_args *norm = args;
    norm->epsilon = 1e-3;
    norm->center = norm->scale = true;
    norm->beta_initializer = tp_initializer_default("zeros");
    norm->gamma_initializer = tp_initializer_default("ones");
}

static void set_rms_defaults(void *args)
{
    norm_args *norm = args;
    norm->epsilon = 1e-6;
    norm->gamma_initializer = tp_initializer_default("ones");
}

/* ---- shapes and weights ---- */

static bool find_axes(tp_layer *layer, tp_problems *problems)
{
    norm_args *norm = layer->args;
    return tp_layer_need_features(layer, problems) &&
           tp_layer_find_axes(layer, &norm->axis, problems, &norm->axes);
}

/* One element for each position on the normalised axes. */
static tp_layer_weight *add_weight(tp_layer *layer, const char *name,
                                   const tp_initializer *initializer)
{
    const tp_layer_axes *axes = &((const norm_args *)layer->args)->axes;
    int64_t dims[TP_MAX_RANK];
    for (int32_t i = 0; i < axes->count; i++)
        dims[i] = tp_layer_input(layer, 0)->dims[axes->items[i]];
    return tp_layer_add_weight(layer, name, axes->count, dims, initializer, true);
}

static bool infer_layer(tp_layer *layer, tp_problems *problems)
{
    norm_args *norm = layer->args;
    if (!find_axes(layer, problems)) return false;
    norm->scale = norm->scale || norm->rms_scaling;
    norm->center = norm->center && !norm->rms_scaling;
    if (norm->scale) {
        tp_layer_weight *gamma = add_weight(layer, "gamma", &norm->gamma_initializer);
        gamma->regularizer = &norm->gamma_regularizer;
        gamma->constraint = &norm->gamma_constraint;
    }
    if (norm->center) {
        tp_layer_weight *beta = add_weight(layer, "beta", &norm->beta_initializer);
        beta->regularizer = &norm->beta_regularizer;
        beta->constraint = &norm->beta_constraint;
    }
    return tp_layer_same_output(layer, problems);
}

static bool infer_rms(tp_layer *layer, tp_problems *problems)
{
    const norm_args *norm = layer->args;
    if (!find_axes(layer, problems)) return false;
    add_weight(layer, "scale", &norm->gamma_initializer);
    return tp_layer_same_output(layer, problems);
}

static bool infer_unit(tp_layer *layer, tp_problems *problems)
{
    return find_axes(layer, problems) && tp_layer_same_output(layer, problems);
}

/* ---- nodes ---- */

/* [batch, example...] with the normalised axes (are_kept: the other ones) as 1. */
static tp_shape thin_shape(const tp_layer_context *context, const tp_layer *layer, bool are_kept)
{
    const tp_layer_axes *axes = &((const norm_args *)layer->args)->axes;
    const tp_shape whole = tp_layer_batched(context, tp_layer_input(layer, 0));
    tp_shape thin = whole;
    for (int i = 0; i < whole.rank && are_kept; i++)
        thin.dims[i] = 1;
    for (int32_t i = 0; i < axes->count; i++) {
        const int64_t axis = axes->items[i] + 1;
        thin.dims[axis] = are_kept ? whole.dims[axis] : 1;
    }
    return thin;
}

/* Sum over the normalised axes, which stay with size 1. */
static tp_node_id sum_of(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    const tp_layer_axes *axes = &((const norm_args *)layer->args)->axes;
    int64_t items[TP_MAX_RANK];
    for (int32_t i = 0; i < axes->count; i++)
        items[i] = axes->items[i] + 1;
    const tp_node_id sum = tp_op_reduce(context->graph, x, "add", items, axes->count);
    return tp_op_reshape(context->graph, sum, thin_shape(context, layer, false));
}

static tp_node_id mean_of(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    const tp_layer_axes *axes = &((const norm_args *)layer->args)->axes;
    double count = 1;
    for (int32_t i = 0; i < axes->count; i++)
        count *= (double)tp_layer_input(layer, 0)->dims[axes->items[i]];
    return tp_op_divide(context->graph, sum_of(context, layer, x),
                        tp_op_scalar(context->graph, TP_F32, count));
}

/* 1 / sqrt(mean square + epsilon), times a weight unless TP_NO_NODE. */
static tp_node_id factor_of(tp_layer_context *context, const tp_layer *layer,
                            tp_node_id mean_square, tp_node_id weight)
{
    tp_graph *graph = context->graph;
    const double epsilon = ((const norm_args *)layer->args)->epsilon;
    const tp_node_id inverse = tp_op_rsqrt(graph, tp_op_add_scalar(graph, mean_square, epsilon));
    if (weight == TP_NO_NODE) return inverse;
    const tp_node_id shaped = tp_op_reshape(graph, weight, thin_shape(context, layer, true));
    return tp_op_multiply(graph, inverse, shaped);
}

static void build_layer(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                        tp_node_id *outputs)
{
    const norm_args *norm = layer->args;
    tp_graph *graph = context->graph;
    const tp_node_id *weight = context->variables;
    const tp_node_id gamma = norm->scale ? *weight++ : TP_NO_NODE;
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id centred = tp_op_subtract(graph, x, mean_of(context, layer, x));
    const tp_node_id variance = mean_of(context, layer, tp_op_multiply(graph, centred, centred));
    const tp_node_id factor = factor_of(context, layer, variance, gamma);
    tp_node_id y = tp_op_multiply(graph, norm->rms_scaling ? x : centred, factor);
    if (norm->center)
        y = tp_op_add(graph, y, tp_op_reshape(graph, *weight, thin_shape(context, layer, true)));
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

static void build_rms(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                      tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id square = mean_of(context, layer, tp_op_multiply(graph, x, x));
    const tp_node_id factor = factor_of(context, layer, square, context->variables[0]);
    outputs[0] = tp_op_convert(graph, tp_op_multiply(graph, x, factor), context->dtype);
}

static void build_unit(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                       tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id sum = sum_of(context, layer, tp_op_multiply(graph, x, x));
    const tp_node_id most = tp_op_scalar(graph, TP_F32, 1e12);
    const tp_node_id factor = tp_op_minimum(graph, tp_op_rsqrt(graph, sum), most);
    outputs[0] = tp_op_convert(graph, tp_op_multiply(graph, x, factor), context->dtype);
}

const tp_layer_type tp_layer_layer_normalization = {.name = "LayerNormalization",
                                                    .snake = "layer_normalization",
                                                    .arguments = layer_arguments,
                                                    .args_bytes = sizeof(norm_args),
                                                    .mask = TP_LAYER_MASK_PASSES,
                                                    .set_defaults = set_layer_defaults,
                                                    .infer = infer_layer,
                                                    .build = build_layer};
/* Keras' RMSNormalization does not say that it supports masking. */
const tp_layer_type tp_layer_rms_normalization = {.name = "RMSNormalization",
                                                  .snake = "rms_normalization",
                                                  .arguments = rms_arguments,
                                                  .args_bytes = sizeof(norm_args),
                                                  .set_defaults = set_rms_defaults,
                                                  .infer = infer_rms,
                                                  .build = build_rms};
const tp_layer_type tp_layer_unit_normalization = {.name = "UnitNormalization",
                                                   .snake = "unit_normalization",
                                                   .arguments = unit_arguments,
                                                   .args_bytes = sizeof(norm_args),
                                                   .mask = TP_LAYER_MASK_PASSES,
                                                   .infer = infer_unit,
                                                   .build = build_unit};
