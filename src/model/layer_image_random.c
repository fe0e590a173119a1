/* SPDX-License-Identifier: Apache-2.0
 * RandomFlip, RandomContrast, RandomBrightness: in training, one draw for each example and step; otherwise the
 * images pass. In f32:
 *     flip         with probability 1/2 along the axes of `mode`, along both together
 *     contrast     (x - mean) * f + mean, mean of the image's channel over its positions; f in [1 - factor[0],
 *                  1 + factor[1]), a number standing for both; then clipped to value_range
 *     brightness   x + d * (high - low of value_range), d in [factor[0], factor[1]), a number f for [-f, f];
 *                  then clipped to value_range
 */
#include <math.h>

#include "model/layer_image.h"

static const char *const flip_modes[] = {"horizontal_and_vertical", "horizontal", "vertical"};

typedef struct random_args {
    int32_t mode, data_format;
    tp_layer_numbers factor, value_range;
    double range[2], values[2]; /* found by infer */
} random_args;

static const tp_layer_arg flip_arguments[] = {
    {"mode", offsetof(random_args, mode), TP_LAYER_CHOICE, TP_LAYER_CHOICES(flip_modes)},
    TP_LAYER_ROW_DATA_FORMAT(random_args),
    {0},
};
static const tp_layer_arg factor_arguments[] = {
    {TP_LAYER_ROW(random_args, factor, TP_LAYER_NUMBERS), TP_LAYER_RANGE(-1, 1), .count = 2,
     TP_LAYER_REQUIRED},
    {TP_LAYER_ROW(random_args, value_range, TP_LAYER_NUMBERS), TP_LAYER_RANGE(-1e30, 1e30),
     .count = 2},
    TP_LAYER_ROW_DATA_FORMAT(random_args),
    {0},
};

static void set_factor_defaults(void *args)
{
    static const double bytes[] = {0, 255};
    ((random_args *)args)->value_range = (tp_layer_numbers){bytes, 2};
}

static bool infer_flip(tp_layer *layer, tp_problems *problems)
{
    return tp_layer_need_image(layer, problems) && tp_layer_same_output(layer, problems);
}

static bool infer_factor(tp_layer *layer, tp_problems *problems)
{
    random_args *random = layer->args;
    if (!tp_layer_need_image(layer, problems) ||
        !tp_image_range(&random->factor, "factor", -1, 1, problems, random->range))
        return false;
    if (random->value_range.count != 2) {
        tp_problems_add(problems, "'value_range' is not a list of two");
        return false;
    }
    random->values[0] = fmin(random->value_range.items[0], random->value_range.items[1]);
    random->values[1] = fmax(random->value_range.items[0], random->value_range.items[1]);
    return tp_layer_same_output(layer, problems);
}

static void build_flip(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                       tp_node_id *outputs)
{
    static const int64_t axes[3][2] = {{1, 2}, {2, 0}, {1, 0}}, batch_axis[] = {0};
    const int32_t mode = ((const random_args *)layer->args)->mode;
    tp_graph *graph = context->graph;
    const tp_shape batch = {.rank = 1, .dims = {context->batch}};
    outputs[0] = inputs[0];
    if (!context->is_training) return;
    const tp_node_id flips = tp_op_bernoulli(graph, batch, 0.5, tp_layer_random_stream(context));
    const tp_node_id flipped = tp_op_reverse(graph, inputs[0], axes[mode], mode == 0 ? 2 : 1);
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    outputs[0] = tp_op_select(graph, tp_op_broadcast_in_dim(graph, flips, shape, batch_axis),
                              flipped, inputs[0]);
}

/* Each example's number, f32 [batch, 1, 1, 1]. */
static tp_node_id draw(tp_layer_context *context, double low, double high)
{
    const tp_shape shape = {.rank = 4, .dims = {context->batch, 1, 1, 1}};
    return tp_op_reshape(context->graph, tp_image_uniform(context, low, high), shape);
}

static void finish(tp_layer_context *context, const tp_layer *layer, tp_node_id y,
                   tp_node_id *outputs)
{
    const double *values = ((const random_args *)layer->args)->values;
    tp_graph *graph = context->graph;
    y = tp_op_maximum(graph, y, tp_op_scalar(graph, TP_F32, values[0]));
    y = tp_op_minimum(graph, y, tp_op_scalar(graph, TP_F32, values[1]));
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

static void build_contrast(tp_layer_context *context, const tp_layer *layer,
                           const tp_node_id *inputs, tp_node_id *outputs)
{
    static const int64_t positions[] = {1, 2};
    const random_args *random = layer->args;
    tp_graph *graph = context->graph;
    const int64_t *in = tp_layer_input(layer, 0)->dims;
    const tp_shape thin = {.rank = 4, .dims = {context->batch, 1, 1, in[2]}};
    outputs[0] = inputs[0];
    if (!context->is_training) return;
    const bool is_number = random->factor.count == 1;
    const double low = is_number ? fabs(random->factor.items[0]) : random->range[0];
    const tp_node_id factor = draw(context, 1 - low, 1 + random->range[1]);
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id sum = tp_op_reshape(graph, tp_op_reduce(graph, x, "add", positions, 2), thin);
    const tp_node_id mean =
        tp_op_divide(graph, sum, tp_op_scalar(graph, TP_F32, (double)(in[0] * in[1])));
    const tp_node_id scaled = tp_op_multiply(graph, tp_op_subtract(graph, x, mean), factor);
    finish(context, layer, tp_op_add(graph, scaled, mean), outputs);
}

static void build_brightness(tp_layer_context *context, const tp_layer *layer,
                             const tp_node_id *inputs, tp_node_id *outputs)
{
    const random_args *random = layer->args;
    tp_graph *graph = context->graph;
    outputs[0] = inputs[0];
    if (!context->is_training) return;
    const tp_node_id delta =
        tp_op_multiply_scalar(graph, draw(context, random->range[0], random->range[1]),
                              random->values[1] - random->values[0]);
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    finish(context, layer, tp_op_add(graph, x, delta), outputs);
}

const tp_layer_type tp_layer_random_flip = {.name = "RandomFlip",
                                            .snake = "random_flip",
                                            .arguments = flip_arguments,
                                            .args_bytes = sizeof(random_args),
                                            .infer = infer_flip,
                                            .build = build_flip};
const tp_layer_type tp_layer_random_contrast = {.name = "RandomContrast",
                                                .snake = "random_contrast",
                                                .arguments = factor_arguments,
                                                .args_bytes = sizeof(random_args),
                                                .set_defaults = set_factor_defaults,
                                                .infer = infer_factor,
                                                .build = build_contrast};
const tp_layer_type tp_layer_random_brightness = {.name = "RandomBrightness",
                                                  .snake = "random_brightness",
                                                  .arguments = factor_arguments,
                                                  .args_bytes = sizeof(random_args),
                                                  .set_defaults = set_factor_defaults,
                                                  .infer = infer_factor,
                                                  .build = build_brightness};
