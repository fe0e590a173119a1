/* SPDX-License-Identifier: Apache-2.0
 * dynamic_slice(operand, start) and dynamic_update_slice(operand, update, start): StableHLO's, any dtype,
 * but that the start is one vector (s32 or u32, a number per axis) instead of as many scalars. It is
 * clamped so that the slice lies inside. Each is the gradient of the other. */
#include "ops/op_dynamic.h"

#include <string.h>

#include "graph/builder.h"
#include "ops/op_gather.h"
#include "ops/op_util.h"

/* ---- dynamic_slice ---- */

static tpucl_status slice_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    const tp_node *operand = tp_op_input(graph, node, 0), *start = tp_op_input(graph, node, 1);
    tp_indexing ix;
    TP_TRY(tp_indexing_check_indices(graph, node, 1));
    TP_TRY(tp_indexing_read(node, &operand->shape, &start->shape, NULL, &ix));
    *out_dtype = operand->dtype;
    *out_shape = ix.dense;
    return TPUCL_OK;
}

static tpucl_status slice_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                   const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    tp_indexing ix;
    TP_TRY(tp_indexing_read(node, &inputs[0].shape, &inputs[1].shape, NULL, &ix));
    tp_indexing_copy(&ix, &inputs[1], true, tp_dtype_size(out->dtype), inputs[0].data, out->data,
                     false);
    return TPUCL_OK;
}

static void slice_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node node = g->nodes[y]; /* a copy: adding nodes may move them */
    const tp_shape shape = tp_op_input(g, &node, 0)->shape;
    const tp_node_id zeros = tp_op_fill(g, g->nodes[d].dtype, shape, 0);
    d_inputs[0] = tp_op_dynamic_update_slice(g, zeros, d, node.inputs[1]);
}

/* ---- dynamic_update_slice ---- */

static tpucl_status update_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                 tp_shape *out_shape)
{
    const tp_node *operand = tp_op_input(graph, node, 0), *update = tp_op_input(graph, node, 1);
    const tp_node *start = tp_op_input(graph, node, 2);
    tp_indexing ix;
    TP_TRY(tp_indexing_check_indices(graph, node, 2));
    if (update->dtype != operand->dtype)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the update is %s, the operand is %s",
                       tp_dtype_name(update->dtype), tp_dtype_name(operand->dtype));
    TP_TRY(tp_indexing_read(node, &operand->shape, &start->shape, &update->shape, &ix));
    *out_dtype = operand->dtype;
    *out_shape = operand->shape;
    return TPUCL_OK;
}

static tpucl_status update_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                    const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    tp_indexing ix;
    TP_TRY(tp_indexing_read(node, &inputs[0].shape, &inputs[2].shape, &inputs[1].shape, &ix));
    memcpy(out->data, inputs[0].data, (size_t)tp_shape_bytes(&out->shape, out->dtype));
    tp_indexing_copy(&ix, &inputs[2], true, tp_dtype_size(out->dtype), out->data, inputs[1].data,
                     true);
    return TPUCL_OK;
}

static void update_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node node = g->nodes[y]; /* a copy: adding nodes may move them */
    const tp_shape shape = tp_op_input(g, &node, 1)->shape;
    const tp_node_id zeros = tp_op_fill(g, g->nodes[d].dtype, shape, 0);
    d_inputs[0] = tp_op_dynamic_update_slice(g, d, zeros, node.inputs[2]);
    d_inputs[1] = tp_op_dynamic_slice(g, d, node.inputs[2], shape.dims);
}

/* Nothing is computed. */
static double flops(const tp_graph *graph, const tp_node *node)
{
    (void)graph;
    (void)node;
    return 0;
}

static const tp_attr_spec slice_attrs[] = {
    {"slice_sizes", TP_ATTR_INTS, false, NULL, "elements of the slice along each axis"}, {0}};

const tp_opdef tp_opdef_dynamic_slice = {
    .name = "dynamic_slice",
    .op_class = TP_OP_MEMORY,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc =
        "The box that begins at a start (a vector, s32 or u32), which is clamped so that it fits.",
    .attrs = slice_attrs,
    .infer = slice_infer,
    .gradient = slice_gradient,
    .evaluate = slice_evaluate,
    .flops = flops,
};

const tp_opdef tp_opdef_dynamic_update_slice = {
    .name = "dynamic_update_slice",
    .op_class = TP_OP_MEMORY,
    .min_inputs = 3,
    .max_inputs = 3,
    .doc = "The operand with an update in place of the box that begins at a start, clamped so that "
           "it fits.",
    .infer = update_infer,
    .gradient = update_gradient,
    .evaluate = update_evaluate,
    .flops = flops,
};
