/* SPDX-License-Identifier: Apache-2.0
 * loop_slice, loop_carry, loop_last, loop_stack: see op_loop.h. */
#include "ops/op_loop.h"

#include <string.h>

#include "graph/attrs.h"
#include "ops/op_util.h"

static bool is_reversed(const tp_node *node)
{
    return tp_node_attr_int(node, "reverse", 0) != 0;
}

/* Element of the first axis that belongs to a turn. */
static int64_t row_of(const tp_node *node, int64_t turn)
{
    return is_reversed(node) ? tp_node_attr_int(node, "length", 0) - 1 - turn : turn;
}

static tpucl_status check_reverse(const tp_node *node)
{
    const int64_t reverse = tp_node_attr_int(node, "reverse", 0);
    if (reverse == 0 || reverse == 1) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "reverse is %lld, expected 0 or 1", (long long)reverse);
}

/* ---- loop_slice ---- */
static tpucl_status slice_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    const tp_node *xs = tp_op_input(graph, node, 0);
    const int64_t length = tp_node_attr_int(node, "length", 0);
    TP_TRY(check_reverse(node));
    if (xs->shape.rank < 1 || xs->shape.dims[0] != length) {
        char text[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&xs->shape, text, sizeof text);
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "loop_slice of %s, expected a first dim of %lld",
                       text, (long long)length);
    }
    *out_dtype = xs->dtype;
    return tp_shape_init(out_shape, xs->shape.rank - 1, xs->shape.dims + 1);
}

static tpucl_status slice_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                   const tp_eval_context *context, tp_host_tensor *out)
{
    const int64_t bytes = tp_shape_bytes(&out->shape, out->dtype);
    if (bytes > 0)
        memcpy(out->data, (const char *)inputs[0].data + row_of(node, context->turn) * bytes,
               (size_t)bytes);
    return TPUCL_OK;
}

/* ---- loop_carry, loop_last ---- */
static tpucl_status carry_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    *out_dtype = tp_op_input(graph, node, 0)->dtype;
    *out_shape = tp_op_input(graph, node, 0)->shape;
    return TPUCL_OK;
}

static tpucl_status last_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                               tp_shape *out_shape)
{
    const tp_node *carry = tp_op_input(graph, node, 0);
    if (carry->def->loop_part != TP_LOOP_CARRY)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "loop_last of '%s', expected a loop_carry",
                       carry->def->name);
    TP_TRY(tp_op_check_same_type(graph, node, 0, 1));
    return carry_infer(graph, node, out_dtype, out_shape);
}

static tpucl_status copy_operand(const tp_host_tensor *from, tp_host_tensor *out)
{
    const int64_t bytes = tp_shape_bytes(&out->shape, out->dtype);
    if (bytes > 0) memcpy(out->data, from->data, (size_t)bytes);
    return TPUCL_OK;
}

static tpucl_status carry_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                   const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)context;
    return copy_operand(&inputs[0], out);
}

static tpucl_status last_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                  const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)context;
    return copy_operand(&inputs[1], out);
}

/* ---- loop_stack ---- */
static tpucl_status stack_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    const tp_node *value = tp_op_input(graph, node, 0);
    int64_t dims[TP_MAX_RANK + 1];
    TP_TRY(check_reverse(node));
    dims[0] = tp_node_attr_int(node, "length", 0);
    memcpy(dims + 1, value->shape.dims, (size_t)value->shape.rank * sizeof *dims);
    *out_dtype = value->dtype;
    return tp_shape_init(out_shape, value->shape.rank + 1, dims);
}

static tpucl_status stack_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                   const tp_eval_context *context, tp_host_tensor *out)
{
    const int64_t bytes = tp_shape_bytes(&inputs[0].shape, out->dtype);
    if (bytes > 0)
        memcpy((char *)out->data + row_of(node, context->turn) * bytes, inputs[0].data,
               (size_t)bytes);
    return TPUCL_OK;
}

#define LOOP_ATTRS                                                                                 \
    {"loop", TP_ATTR_INT, false, NULL, "number of the loop, from 1"},                              \
    {                                                                                              \
        "length", TP_ATTR_INT, false, NULL, "its turns"                                            \
    }
static const tp_attr_spec last_attrs[] = {LOOP_ATTRS, {0}};
static const tp_attr_spec carry_attrs[] = {
    LOOP_ATTRS, {"index", TP_ATTR_INT, false, NULL, "tells the carries of a loop apart"}, {0}};
static const tp_attr_spec slice_attrs[] = {
    LOOP_ATTRS, {"reverse", TP_ATTR_INT, false, NULL, "1: from the last to the first"}, {0}};

const tp_opdef tp_opdef_loop_slice = {
    .name = "loop_slice",
    .op_class = TP_OP_LOOP,
    .loop_part = TP_LOOP_SLICE,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "In a loop: the turn's element of the operand's first axis.",
    .attrs = slice_attrs,
    .infer = slice_infer,
    .evaluate = slice_evaluate,
};
const tp_opdef tp_opdef_loop_carry = {
    .name = "loop_carry",
    .op_class = TP_OP_LOOP,
    .loop_part = TP_LOOP_CARRY,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "In a loop: the operand in the first turn, then what the turn before left.",
    .attrs = carry_attrs,
    .infer = carry_infer,
    .evaluate = carry_evaluate,
};
const tp_opdef tp_opdef_loop_last = {
    .name = "loop_last",
    .op_class = TP_OP_LOOP,
    .loop_part = TP_LOOP_LAST,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc = "What the last turn leaves in a carry (first operand), which is the second operand of "
           "each turn.",
    .attrs = last_attrs,
    .infer = last_infer,
    .evaluate = last_evaluate,
};
const tp_opdef tp_opdef_loop_stack = {
    .name = "loop_stack",
    .op_class = TP_OP_LOOP,
    .loop_part = TP_LOOP_STACK,
    .min_inputs = 1,
    .max_inputs = 1,
    .doc = "The values of all turns of a loop, along a new first axis.",
    .attrs = slice_attrs,
    .infer = stack_infer,
    .evaluate = stack_evaluate,
};
