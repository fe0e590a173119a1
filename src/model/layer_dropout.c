/* SPDX-License-Identifier: Apache-2.0
 * Dropout, SpatialDropout, AlphaDropout, GaussianDropout, GaussianNoise: what is random in training and gives
 * its input otherwise. Random numbers come from the run's seed; the same op in the backward pass draws the
 * same ones, so nothing is stored.
 */
#include <math.h>

#include "model/layer.h"

typedef struct dropout_args {
    double rate, stddev;
    tp_layer_ints noise_shape;
} dropout_args;

#define ROW_RATE                                                                                   \
    {                                                                                              \
        "rate", offsetof(dropout_args, rate), TP_LAYER_NUMBER, TP_LAYER_REQUIRED,                  \
            TP_LAYER_RANGE(0, 1)                                                                   \
    }

static const tp_layer_arg dropout_arguments[] = {
    ROW_RATE,
    /* with the batch, which is null or 1; null: as the input's */
    {"noise_shape", offsetof(dropout_args, noise_shape), TP_LAYER_INTS,
     TP_LAYER_RANGE(-1, 2147483648.0), .count = TP_MAX_RANK},
    {0},
};
static const tp_layer_arg rate_arguments[] = {ROW_RATE, {0}};
static const tp_layer_arg stddev_arguments[] = {
    {"stddev", offsetof(dropout_args, stddev), TP_LAYER_NUMBER, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(0, 1)},
    {0},
};

/* ---- shapes ---- */

/* Each number of noise_shape must be 1 or the input's. */
static bool infer_dropout(tp_layer *layer, tp_problems *problems)
{
    const tp_layer_ints *noise = &((const dropout_args *)layer->args)->noise_shape;
    const tp_shape *input = tp_layer_input(layer, 0);
    if (noise->items && noise->count != input->rank + 1) {
        tp_problems_add(problems, "'noise_shape' has %d dimensions, expected %d with the batch",
                        noise->count, input->rank + 1);
        return false;
    }
    for (int32_t i = 0; i < noise->count; i++) {
        const int64_t found = noise->items[i];
        if (found == -1 || found == 1 || (i > 0 && found == input->dims[i - 1])) continue;
        tp_problems_add(problems, "'noise_shape' has %lld, expected null, 1 or the input's size",
                        (long long)found);
        return false;
    }
    return tp_layer_same_output(layer, problems);
}

/* These divide by 1 - rate. */
static bool infer_below_one(tp_layer *layer, tp_problems *problems)
{
    if (((const dropout_args *)layer->args)->rate < 1) return infer_dropout(layer, problems);
    tp_problems_add(problems, "'rate' is 1, expected less");
    return false;
}

static bool infer_spatial(tp_layer *layer, tp_problems *problems, int spatial)
{
    static const char *const expected[] = {"[length,channels]", "[height,width,channels]",
                                           "[depth,height,width,channels]"};
    return tp_layer_need_rank(layer, spatial + 1, expected[spatial - 1], problems) &&
           tp_layer_same_output(layer, problems);
}

static bool infer_spatial1d(tp_layer *layer, tp_problems *problems)
{
    return infer_spatial(layer, problems, 1);
}

static bool infer_spatial2d(tp_layer *layer, tp_problems *problems)
{
    return infer_spatial(layer, problems, 2);
}

static bool infer_spatial3d(tp_layer *layer, tp_problems *problems)
{
    return infer_spatial(layer, problems, 3);
}

/* ---- nodes ---- */

/* pred, `noise` broadcast to the input: which elements stay. */
static tp_node_id keep_elements(tp_layer_context *context, const tp_layer *layer,
                                const tp_shape *noise)
{
    const double rate = ((const dropout_args *)layer->args)->rate;
    const tp_node_id kept =
        tp_op_bernoulli(context->graph, *noise, 1 - rate, tp_layer_random_stream(context));
    return tp_op_broadcast_to(context->graph, kept,
                              tp_layer_batched(context, tp_layer_output(layer, 0)));
}

/* Kept elements are scaled by 1 / (1 - rate) so that the expected sum stays the same. */
static tp_node_id drop(tp_layer_context *context, const tp_layer *layer, tp_node_id input,
                       const tp_shape *noise)
{
    tp_graph *graph = context->graph;
    const double keep = 1 - ((const dropout_args *)layer->args)->rate;
    if (!context->is_training || keep == 1) return input;
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id kept = keep_elements(context, layer, noise);
    const tp_node_id scaled =
        tp_op_multiply_scalar(graph, tp_op_convert(graph, input, TP_F32), keep > 0 ? 1 / keep : 0);
    return tp_op_convert(graph, tp_op_select(graph, kept, scaled, zero), context->dtype);
}

static tp_shape noise_shape(const tp_layer_context *context, const tp_layer *layer)
{
    const tp_layer_ints *given = &((const dropout_args *)layer->args)->noise_shape;
    tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    for (int32_t i = 0; i < given->count; i++)
        if (given->items[i] == 1) shape.dims[i] = 1;
    return shape;
}

static void build_dropout(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    const tp_shape noise = noise_shape(context, layer);
    outputs[0] = drop(context, layer, inputs[0], &noise);
}

/* Whole channels of an example. */
static void build_spatial(tp_layer_context *context, const tp_layer *layer,
                          const tp_node_id *inputs, tp_node_id *outputs)
{
    tp_shape noise = tp_layer_batched(context, tp_layer_output(layer, 0));
    for (int i = 1; i < noise.rank - 1; i++)
        noise.dims[i] = 1;
    outputs[0] = drop(context, layer, inputs[0], &noise);
}

/* a * (kept ? x : alpha') + b, which leaves mean 0 and variance 1 as they are; alpha' is SELU's limit at minus
 * infinity (Klambauer et al. 2017, section 3.4). */
static void build_alpha(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                        tp_node_id *outputs)
{
    const double limit = -1.6732632423543772 * 1.0507009873554805;
    const double rate = ((const dropout_args *)layer->args)->rate;
    tp_graph *graph = context->graph;
    outputs[0] = inputs[0];
    if (!context->is_training || rate == 0) return;
    const double a = 1 / sqrt((1 - rate) * (1 + rate * limit * limit)), b = -a * limit * rate;
    const tp_shape noise = noise_shape(context, layer);
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id kept = keep_elements(context, layer, &noise);
    const tp_node_id mixed = tp_op_select(graph, kept, x, tp_op_scalar(graph, TP_F32, limit));
    const tp_node_id y = tp_op_add_scalar(graph, tp_op_multiply_scalar(graph, mixed, a), b);
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

/* N(0, stddev^2), f32 [batch, example...] */
static tp_node_id noise(tp_layer_context *context, const tp_layer *layer, double stddev)
{
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    const tp_node_id normal =
        tp_op_normal(context->graph, TP_F32, shape, tp_layer_random_stream(context));
    return tp_op_multiply_scalar(context->graph, normal, stddev);
}

/* x * N(1, rate / (1 - rate)) */
static void build_gaussian_dropout(tp_layer_context *context, const tp_layer *layer,
                                   const tp_node_id *inputs, tp_node_id *outputs)
{
    const double rate = ((const dropout_args *)layer->args)->rate;
    tp_graph *graph = context->graph;
    outputs[0] = inputs[0];
    if (!context->is_training || rate == 0) return;
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id factor =
        tp_op_add_scalar(graph, noise(context, layer, sqrt(rate / (1 - rate))), 1);
    outputs[0] = tp_op_convert(graph, tp_op_multiply(graph, x, factor), context->dtype);
}

static void build_gaussian_noise(tp_layer_context *context, const tp_layer *layer,
                                 const tp_node_id *inputs, tp_node_id *outputs)
{
    const double stddev = ((const dropout_args *)layer->args)->stddev;
    tp_graph *graph = context->graph;
    outputs[0] = inputs[0];
    if (!context->is_training || stddev == 0) return;
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    outputs[0] =
        tp_op_convert(graph, tp_op_add(graph, x, noise(context, layer, stddev)), context->dtype);
}

#define DROPOUT_TYPE(id, class_name, snake_name, rows, infer_function, build_function)             \
    const tp_layer_type tp_layer_##id = {.name = class_name,                                       \
                                         .snake = snake_name,                                      \
                                         .arguments = rows,                                        \
                                         .args_bytes = sizeof(dropout_args),                       \
                                         .mask = TP_LAYER_MASK_PASSES,                             \
                                         .infer = infer_function,                                  \
                                         .build = build_function}

DROPOUT_TYPE(dropout, "Dropout", "dropout", dropout_arguments, infer_dropout, build_dropout);
DROPOUT_TYPE(spatial_dropout1d, "SpatialDropout1D", "spatial_dropout1d", rate_arguments,
             infer_spatial1d, build_spatial);
DROPOUT_TYPE(spatial_dropout2d, "SpatialDropout2D", "spatial_dropout2d", rate_arguments,
             infer_spatial2d, build_spatial);
DROPOUT_TYPE(spatial_dropout3d, "SpatialDropout3D", "spatial_dropout3d", rate_arguments,
             infer_spatial3d, build_spatial);
DROPOUT_TYPE(alpha_dropout, "AlphaDropout", "alpha_dropout", dropout_arguments, infer_below_one,
             build_alpha);
DROPOUT_TYPE(gaussian_dropout, "GaussianDropout", "gaussian_dropout", rate_arguments,
             infer_below_one, build_gaussian_dropout);
DROPOUT_TYPE(gaussian_noise, "GaussianNoise", "gaussian_noise", stddev_arguments,
             tp_layer_same_output, build_gaussian_noise);
