/* SPDX-License-Identifier: Apache-2.0
 * stop_gradient: see op_stop_gradient.h.
 */
#include "ops/op_stop_gradient.h"

#include <string.h>

#include "ops/op_util.h"

static tpucl_status infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape)
{
    return tp_op_infer_same(graph, node, TP_DTYPES_ALL, out_dtype, out_shape);
}

static tpucl_status evaluate(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)context;
    const int64_t bytes = tp_shape_bytes(&out->shape, out->dtype);
    if (bytes > 0) memcpy(out->data, inputs[0].data, (size_t)bytes);
    return TPUCL_OK;
}

static const char *vpu(const tp_graph *graph, const tp_node *node)
{
    (void)graph;
    (void)node;
    return "$0";
}

const tp_opdef tp_opdef_stop_gradient = {
    .name = "stop_gradient",
    .op_class = TP_OP_ELEMENTWISE,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "The operand itself; gradients end here.",
    .infer = infer,
    .evaluate = evaluate,
    .vpu = vpu,
};
