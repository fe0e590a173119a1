/* SPDX-License-Identifier: Apache-2.0
 * Dense: activation(x . kernel + bias) over the last axis of the input.
 */
#include "model/layer.h"

typedef struct dense_args {
    int64_t units;
    int32_t activation;
    bool use_bias;
    tp_initializer kernel_initializer, bias_initializer;
    tp_regularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    tp_constraint kernel_constraint, bias_constraint;
} dense_args;

static const tp_layer_arg arguments[] = {
    {"units", offsetof(dense_args, units), TP_LAYER_INT, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(1, 1 << 30)},
    TP_LAYER_ROW_ACTIVATION(dense_args, activation),
    TP_LAYER_ROW_BOOL(dense_args, use_bias),
    TP_LAYER_ROW_INITIALIZER(dense_args, kernel_initializer),
    TP_LAYER_ROW_INITIALIZER(dense_args, bias_initializer),
    TP_LAYER_ROW_REGULARIZER(dense_args, kernel_regularizer),
    TP_LAYER_ROW_REGULARIZER(dense_args, bias_regularizer),
    TP_LAYER_ROW_REGULARIZER(dense_args, activity_regularizer),
    TP_LAYER_ROW_CONSTRAINT(dense_args, kernel_constraint),
    TP_LAYER_ROW_CONSTRAINT(dense_args, bias_constraint),
    {0},
};

static void set_defaults(void *args)
{
    dense_args *dense = args;
    dense->use_bias = true;
    dense->kernel_initializer = tp_initializer_default("glorot_uniform");
    dense->bias_initializer = tp_initializer_default("zeros");
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    const dense_args *dense = layer->args;
    const tp_shape *input = tp_layer_input(layer, 0);
    if (!tp_layer_need_features(layer, problems)) return false;
    int64_t dims[TP_MAX_RANK];
    for (int i = 0; i < input->rank; i++)
        dims[i] = input->dims[i];
    const int64_t features = dims[input->rank - 1];
    dims[input->rank - 1] = dense->units;
    tp_layer_add_trained(layer, "kernel", 2, (const int64_t[]){features, dense->units},
                         &dense->kernel_initializer, &dense->kernel_regularizer,
                         &dense->kernel_constraint);
    if (dense->use_bias)
        tp_layer_add_trained(layer, "bias", 1, &dense->units, &dense->bias_initializer,
                             &dense->bias_regularizer, &dense->bias_constraint);
    return tp_layer_add_output(layer, problems, input->rank, dims);
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const dense_args *dense = layer->args;
    tp_graph *graph = context->graph;
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    const tp_node_id bias = dense->use_bias ? context->variables[1] : TP_NO_NODE;
    const tp_node_id product = tp_op_matmul(graph, inputs[0], kernel, context->precision);
    outputs[0] = tp_layer_finish_product(context, product, bias, (tp_activation)dense->activation);
    tp_layer_add_activity(context, &dense->activity_regularizer, outputs[0]);
}

const tp_layer_type tp_layer_dense = {.name = "Dense",
                                      .snake = "dense",
                                      .arguments = arguments,
                                      .args_bytes = sizeof(dense_args),
                                      .mask = TP_LAYER_MASK_PASSES,
                                      .set_defaults = set_defaults,
                                      .infer = infer,
                                      .build = build};
