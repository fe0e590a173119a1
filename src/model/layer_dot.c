/* SPDX-License-Identifier: Apache-2.0
 * Dot: sums of products over one axis of each of two inputs, example by example. Axes count the batch as 0;
 * a result that would be a scalar has one element (keras/src/layers/merging/dot.py). `normalize` divides by
 * the length along the axis, as x * min(1 / sqrt(sum x^2), 1 / 1e-7).
 */
#include "model/layer.h"

typedef struct dot_args {
    tp_layer_ints axes; /* one for both, or one for each */
    bool normalize;
    int32_t axis[2]; /* of examples, from 0 */
} dot_args;

static const tp_layer_arg arguments[] = {
    {"axes", offsetof(dot_args, axes), TP_LAYER_INTS, TP_LAYER_REQUIRED,
     TP_LAYER_RANGE(-TP_MAX_RANK, TP_MAX_RANK), .count = 2},
    TP_LAYER_ROW_BOOL(dot_args, normalize),
    {0},
};

static bool find_axes(const tp_layer *layer, dot_args *dot, tp_problems *problems)
{
    if (dot->axes.count < 1) {
        tp_problems_add(problems, "'axes' is empty, expected one or two axes");
        return false;
    }
    for (int i = 0; i < 2; i++) {
        const tp_shape *input = tp_layer_input(layer, i);
        const int64_t given = dot->axes.items[dot->axes.count == 2 ? i : 0];
        const int64_t counted = given < 0 ? given + input->rank + 1 : given;
        if (counted < 1 || counted > input->rank) {
            char text[TP_SHAPE_TEXT_MAX];
            tp_shape_format(input, text, sizeof text);
            tp_problems_add(problems, "axis %lld of input %d, whose examples are %s",
                            (long long)given, i, text);
            return false;
        }
        dot->axis[i] = (int32_t)counted - 1;
    }
    const int64_t left = tp_layer_input(layer, 0)->dims[dot->axis[0]];
    const int64_t right = tp_layer_input(layer, 1)->dims[dot->axis[1]];
    if (left == right) return true;
    tp_problems_add(problems, "the axes have %lld and %lld elements, expected equal ones",
                    (long long)left, (long long)right);
    return false;
}

static bool infer(tp_layer *layer, tp_problems *problems)
{
    dot_args *dot = layer->args;
    int64_t dims[2 * TP_MAX_RANK];
    int rank = 0;
    if (!find_axes(layer, dot, problems)) return false;
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < tp_layer_input(layer, i)->rank; d++)
            if (d != dot->axis[i]) dims[rank++] = tp_layer_input(layer, i)->dims[d];
    if (rank == 0) dims[rank++] = 1;
    return tp_layer_add_output(layer, problems, rank, dims);
}

static tp_node_id normalize(tp_graph *graph, tp_node_id x, int64_t axis, tp_dtype dtype)
{
    const tp_node_id wide = tp_op_convert(graph, x, TP_F32);
    tp_shape kept = tp_graph_node(graph, x)->shape;
    kept.dims[axis] = 1;
    const tp_node_id squares =
        tp_op_reduce(graph, tp_op_multiply(graph, wide, wide), "add", &axis, 1);
    const tp_node_id most = tp_op_scalar(graph, TP_F32, 1e7);
    const tp_node_id factor = tp_op_minimum(graph, tp_op_rsqrt(graph, squares), most);
    const tp_node_id y = tp_op_multiply(graph, wide, tp_op_reshape(graph, factor, kept));
    return tp_op_convert(graph, y, dtype);
}

static void build(tp_layer_context *context, const tp_layer *layer, const tp_node_id *inputs,
                  tp_node_id *outputs)
{
    const dot_args *dot = layer->args;
    tp_graph *graph = context->graph;
    const tp_dot_dims dims = {.batch_count = 1,
                              .contract_count = 1,
                              .lhs_contract = {dot->axis[0] + 1},
                              .rhs_contract = {dot->axis[1] + 1}};
    tp_node_id operands[2];
    for (int i = 0; i < 2; i++)
        operands[i] = dot->normalize ? normalize(graph, inputs[i], dot->axis[i] + 1, context->dtype)
                                     : inputs[i];
    const tp_node_id product =
        tp_op_dot_general(graph, operands[0], operands[1], &dims, context->precision);
    const tp_shape shape = tp_layer_batched(context, tp_layer_output(layer, 0));
    outputs[0] = tp_op_convert(graph, tp_op_reshape(graph, product, shape), context->dtype);
}

const tp_layer_type tp_layer_dot = {.name = "Dot",
                                    .snake = "dot",
                                    .arguments = arguments,
                                    .args_bytes = sizeof(dot_args),
                                    .min_inputs = 2,
                                    .max_inputs = 2,
                                    .infer = infer,
                                    .build = build};
