/* SPDX-License-Identifier: Apache-2.0
 * Ops across cores. all_reduce: kind add; f32. The sum over the cores of the replica group, by the
 * balanced tree over core ids, flushed once at its end. Whoever holds all cores evaluates it
 * (exec, reference), so there is no evaluation here; and no gradient: whether the gradient of a
 * sum over cores is again to be summed depends on what the losses of the cores mean. */
#include "ops/op_collective.h"

#include "ops/op_util.h"

static tpucl_status all_reduce_infer(const tp_graph *graph, const tp_node *node,
                                     tp_dtype *out_dtype, tp_shape *out_shape)
{
    return tp_op_infer_same(graph, node, TP_DTYPE_BIT(TP_F32), out_dtype, out_shape);
}

static const tp_attr_spec all_reduce_attrs[] = {
    {"kind", TP_ATTR_TEXT, false, "add", "how the cores' values are combined"}, {0}};
const tp_opdef tp_opdef_all_reduce = {.name = "all_reduce",
                                      .op_class = TP_OP_COLLECTIVE,
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .doc = "Sum over the cores of the replica group.",
                                      .attrs = all_reduce_attrs,
                                      .infer = all_reduce_infer};
