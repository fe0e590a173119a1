/* SPDX-License-Identifier: Apache-2.0
 * Dense: activation(x . kernel + bias) over the last axis of the input.
 */
#include "graph/builder.h"
#include "model/layer.h"

static const tp_layer_arg arguments[] = {
    {"units", TP_LAYER_INT, TP_LAYER_FIELD(units), true, 1, 1 << 30, NULL, 0},
    TP_LAYER_ROW_ACTIVATION(false),
    TP_LAYER_ROW_BOOL(use_bias),
    TP_LAYER_ROW_INITIALIZER(kernel_initializer),
    TP_LAYER_ROW_INITIALIZER(bias_initializer),
    {0}};

static void set_defaults(tp_layer *layer)
{
    layer->use_bias = true;
    layer->kernel_initializer = tp_initializer_default("glorot_uniform");
    layer->bias_initializer = tp_initializer_default("zeros");
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    const int rank = layer->input.rank;
    if (rank < 1) {
        tp_problems_add(problems, "the input is a scalar, expected at least one dimension");
        return false;
    }
    int64_t dims[TP_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = layer->input.dims[i];
    const int64_t features = dims[rank - 1];
    dims[rank - 1] = layer->units;
    tp_layer_add_weight(layer, "kernel", 2, (const int64_t[]){features, layer->units},
                        &layer->kernel_initializer, true);
    if (layer->use_bias)
        tp_layer_add_weight(layer, "bias", 1, &layer->units, &layer->bias_initializer, true);
    return tp_layer_set_output(layer, problems, rank, dims);
}

static tp_node_id build(tp_layer_context *context, const tp_layer *layer, tp_node_id x)
{
    tp_graph *graph = context->graph;
    const tp_node_id kernel = tp_op_convert(graph, context->variables[0], context->dtype);
    const tp_node_id product = tp_op_matmul(graph, x, kernel, context->precision);
    return tp_layer_finish_product(context, layer, product);
}

const tp_layer_type tp_layer_dense = {"Dense", "dense", arguments, set_defaults, infer, build};
