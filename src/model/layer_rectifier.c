/* SPDX-License-Identifier: Apache-2.0
 * LeakyReLU, PReLU and ELU: x where x > 0; below negative_slope * x, alpha * x with an alpha for each element
 * that is trained, alpha * (exp(x) - 1).
 */
#include "model/layer.h"

static tp_node_id where_positive(tp_graph *graph, tp_node_id x, tp_node_id negative)
{
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    return tp_op_select(graph, tp_op_compare(graph, "GT", x, zero), x, negative);
}

/* ---- LeakyReLU, ELU ---- */

typedef struct slope_args {
    double slope;
} slope_args;

static const tp_layer_arg leaky_arguments[] = {
    {"negative_slope", offsetof(slope_args, slope), TP_LAYER_NUMBER, TP_LAYER_RANGE(0, 1e30)},
    {0},
};
static const tp_layer_arg elu_arguments[] = {
    {"alpha", offsetof(slope_args, slope), TP_LAYER_NUMBER, TP_LAYER_RANGE(-1e30, 1e30)},
    {0},
};

static void set_leaky_defaults(void *args)
{
    ((slope_args *)args)->slope = 0.3;
}

static void set_elu_defaults(void *args)
{
    ((slope_args *)args)->slope = 1;
}

static void build_leaky(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                        tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const double slope = ((const slope_args *)layer->args)->slope;
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id y = where_positive(graph, x, tp_op_multiply_scalar(graph, x, slope));
    outputs[0] = tp_op_convert(graph, y, context->dtype);
}

static void build_elu(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                      tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    const double alpha = ((const slope_args *)layer->args)->slope;
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id below = tp_op_minimum(graph, x, tp_op_scalar(graph, TP_F32, 0));
    const tp_node_id negative =
        tp_op_multiply_scalar(graph, tp_op_exponential_minus_one(graph, below), alpha);
    outputs[0] = tp_op_convert(graph, where_positive(graph, x, negative), context->dtype);
}

/* ---- PReLU ---- */

typedef struct prelu_args {
    tp_initializer alpha_initializer;
    tp_regularizer alpha_regularizer;
    tp_constraint alpha_constraint;
    tp_layer_ints shared_axes; /* the batch is axis 0 */
} prelu_args;

static const tp_layer_arg prelu_arguments[] = {
    TP_LAYER_ROW_INITIALIZER(prelu_args, alpha_initializer),
    TP_LAYER_ROW_REGULARIZER(prelu_args, alpha_regularizer),
    TP_LAYER_ROW_CONSTRAINT(prelu_args, alpha_constraint),
    {"shared_axes", offsetof(prelu_args, shared_axes), TP_LAYER_INTS,
     TP_LAYER_RANGE(1, TP_MAX_RANK), .count = TP_MAX_RANK},
    {0},
};

static void set_prelu_defaults(void *args)
{
    ((prelu_args *)args)->alpha_initializer = tp_initializer_default("zeros");
}

static bool infer_prelu(tp_layer *layer, tp_problems *problems)
{
    const prelu_args *prelu = layer->args;
    tp_shape shape = *tp_layer_input(layer, 0);
    for (int32_t i = 0; i < prelu->shared_axes.count; i++) {
        const int64_t axis = prelu->shared_axes.items[i];
        if (axis > shape.rank) {
            tp_problems_add(problems, "axis %lld of 'shared_axes', expected 1 to %d",
                            (long long)axis, shape.rank);
            return false;
        }
        shape.dims[axis - 1] = 1;
    }
    tp_layer_add_trained(layer, "alpha", shape.rank, shape.dims, &prelu->alpha_initializer,
                         &prelu->alpha_regularizer, &prelu->alpha_constraint);
    return tp_layer_same_output(layer, problems);
}

static void build_prelu(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                        tp_node_id *outputs)
{
    tp_graph *graph = context->graph;
    (void)layer;
    const tp_node_id x = tp_op_convert(graph, inputs[0], TP_F32);
    const tp_node_id negative = tp_op_multiply(graph, x, context->variables[0]);
    outputs[0] = tp_op_convert(graph, where_positive(graph, x, negative), context->dtype);
}

const tp_layer_type tp_layer_leaky_relu = {.name = "LeakyReLU",
                                           .snake = "leaky_re_lu",
                                           .arguments = leaky_arguments,
                                           .args_bytes = sizeof(slope_args),
                                           .mask = TP_LAYER_MASK_PASSES,
                                           .set_defaults = set_leaky_defaults,
                                           .infer = tp_layer_same_output,
                                           .build = build_leaky};
const tp_layer_type tp_layer_elu = {.name = "ELU",
                                    .snake = "elu",
                                    .arguments = elu_arguments,
                                    .args_bytes = sizeof(slope_args),
                                    .mask = TP_LAYER_MASK_PASSES,
                                    .set_defaults = set_elu_defaults,
                                    .infer = tp_layer_same_output,
                                    .build = build_elu};
const tp_layer_type tp_layer_prelu = {.name = "PReLU",
                                      .snake = "p_re_lu",
                                      .arguments = prelu_arguments,
                                      .args_bytes = sizeof(prelu_args),
                                      .mask = TP_LAYER_MASK_PASSES,
                                      .set_defaults = set_prelu_defaults,
                                      .infer = infer_prelu,
                                      .build = build_prelu};
