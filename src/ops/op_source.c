/* SPDX-License-Identifier: Apache-2.0
 * Ops without operands: input, variable, constant, iota, step.
 *
 *   input, variable   name, dtype, shape. Made by tp_graph_add_input() and tp_graph_add_variable()
 *                     only;
 *                     whoever runs the graph supplies the values, so there is no evaluation here
 *   constant          dtype, shape, value: the elements, row-major, little-endian; floats flushed
 *   iota              dtype, shape, axis: each element is its index along the axis
 *   step              s32 scalar: number of the training step, from 0
 */
#include "ops/op_source.h"

#include <string.h>

#include "graph/attrs.h"
#include "num/bf16.h"
#include "ops/op_util.h"

static tpucl_status infer_typed(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    (void)graph;
    TP_TRY(tp_node_attr_dtype(node, "dtype", out_dtype));
    return tp_node_attr_shape(node, "shape", out_shape);
}

/* ---- constant ---- */
/* Values that no op could have made are refused: subnormals, predicates other than 0 and 1. */
static bool is_legal_element(tp_dtype dtype, const void *data, int64_t index)
{
    if (dtype == TP_PRED) return ((const uint8_t *)data)[index] <= 1;
    if (dtype == TP_BF16) {
        const tp_bf16 value = ((const tp_bf16 *)data)[index];
        return tp_bf16_flush(value) == value;
    }
    if (dtype == TP_F32) {
        float value;
        memcpy(&value, (const char *)data + index * (int64_t)sizeof value, sizeof value);
        return tp_f32_bits(tp_flush(value)) == tp_f32_bits(value);
    }
    return true;
}

static tpucl_status constant_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                   tp_shape *out_shape)
{
    TP_TRY(infer_typed(graph, node, out_dtype, out_shape));
    const tp_attr *value = tp_node_attr(node, "value");
    const int64_t bytes = tp_shape_bytes(out_shape, *out_dtype);
    if (value->data_bytes != (uint64_t)bytes) {
        char text[TP_SHAPE_TEXT_MAX];
        tp_shape_format(out_shape, text, sizeof text);
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "constant %s%s needs %lld bytes, found %llu",
                       tp_dtype_name(*out_dtype), text, (long long)bytes,
                       (unsigned long long)value->data_bytes);
    }
    const int64_t elems = tp_shape_elems(out_shape);
    for (int64_t i = 0; i < elems; ++i)
        if (!is_legal_element(*out_dtype, value->data, i))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "element %lld of a %s constant is %s",
                           (long long)i, tp_dtype_name(*out_dtype),
                           *out_dtype == TP_PRED ? "neither 0 nor 1"
                                                 : "subnormal; flush it to zero");
    return TPUCL_OK;
}

static tpucl_status constant_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                      const tp_eval_context *context, tp_host_tensor *out)
{
    (void)inputs;
    (void)context;
    const tp_attr *value = tp_node_attr(node, "value");
    if (value->data_bytes) memcpy(out->data, value->data, (size_t)value->data_bytes);
    return TPUCL_OK;
}

/* ---- iota ---- */
static tpucl_status iota_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                               tp_shape *out_shape)
{
    TP_TRY(infer_typed(graph, node, out_dtype, out_shape));
    const int64_t axis = tp_node_attr_int(node, "axis", 0);
    if (axis < 0 || axis >= out_shape->rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "iota axis is %lld, expected one of a rank %d shape",
                       (long long)axis, out_shape->rank);
    if (*out_dtype == TP_PRED || *out_dtype == TP_U8)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "iota of %s, expected f32, bf16, s32 or u32",
                       tp_dtype_name(*out_dtype));
    if (out_shape->dims[axis] > INT32_MAX)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "iota over %lld indexes, expected at most %d",
                       (long long)out_shape->dims[axis], INT32_MAX);
    return TPUCL_OK;
}

static tpucl_status iota_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                  const tp_eval_context *context, tp_host_tensor *out)
{
    (void)inputs;
    (void)context;
    const int64_t axis = tp_node_attr_int(node, "axis", 0), dim = out->shape.dims[axis];
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(&out->shape, strides);
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t i = 0; i < elems; ++i) {
        const int32_t index = (int32_t)(i / strides[axis] % dim);
        if (tp_dtype_is_float(out->dtype)) {
            const float value = (float)index;
            tp_op_write(out, i, 1, &value);
        } else {
            ((int32_t *)out->data)[i] = index;
        }
    }
    return TPUCL_OK;
}

/* ---- step ---- */
static tpucl_status step_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                               tp_shape *out_shape)
{
    (void)graph;
    (void)node;
    *out_dtype = TP_S32;
    return tp_shape_init(out_shape, 0, NULL);
}

static tpucl_status step_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                  const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)inputs;
    *(int32_t *)out->data = (int32_t)context->step;
    return TPUCL_OK;
}

#define DTYPE_ATTR                                                                                 \
    {                                                                                              \
        "dtype", TP_ATTR_TEXT, false, "f32|bf16|s32|u32|u8|pred", "of the result"                  \
    }
#define SHAPE_ATTR                                                                                 \
    {                                                                                              \
        "shape", TP_ATTR_INTS, false, NULL, "of the result"                                        \
    }

static const tp_attr_spec port_attrs[] = {
    {"name", TP_ATTR_TEXT, false, NULL, "unique among its kind"}, DTYPE_ATTR, SHAPE_ATTR, {0}};
static const tp_attr_spec constant_attrs[] = {
    DTYPE_ATTR,
    SHAPE_ATTR,
    {"value", TP_ATTR_DATA, false, NULL, "the elements, row-major; floats must be flushed"},
    {0}};
static const tp_attr_spec iota_attrs[] = {
    DTYPE_ATTR, SHAPE_ATTR, {"axis", TP_ATTR_INT, false, NULL, "along which to count"}, {0}};

const tp_opdef tp_opdef_input = {.name = "input",
                                 .op_class = TP_OP_SOURCE,
                                 .doc = "A tensor that the host feeds each core in each step.",
                                 .attrs = port_attrs,
                                 .infer = infer_typed};
const tp_opdef tp_opdef_variable = {.name = "variable",
                                    .op_class = TP_OP_SOURCE,
                                    .doc = "The value of a variable before the step's updates.",
                                    .attrs = port_attrs,
                                    .infer = infer_typed};
const tp_opdef tp_opdef_constant = {.name = "constant",
                                    .op_class = TP_OP_SOURCE,
                                    .doc = "The elements in its attribute.",
                                    .attrs = constant_attrs,
                                    .infer = constant_infer,
                                    .evaluate = constant_evaluate};
const tp_opdef tp_opdef_iota = {.name = "iota",
                                .op_class = TP_OP_SOURCE,
                                .doc = "Each element is its index along the axis.",
                                .attrs = iota_attrs,
                                .infer = iota_infer,
                                .evaluate = iota_evaluate};
const tp_opdef tp_opdef_step = {.name = "step",
                                .op_class = TP_OP_SOURCE,
                                .doc = "Number of the training step, from 0, as an s32 scalar.",
                                .infer = step_infer,
                                .evaluate = step_evaluate};
