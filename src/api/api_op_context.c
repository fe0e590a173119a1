/* SPDX-License-Identifier: Apache-2.0
 * What a callback of an op from outside may ask for. */
#include "api/op_internal.h"

/* The place of operand `index`, of the result for -1; -1 where there is none. */
static int32_t place_of(const tpucl_op_context *context, int32_t index)
{
    if (!context) return -1;
    if (index == -1) return context->has_result ? context->input_count : -1;
    return index >= 0 && index < context->input_count ? index : -1;
}

int32_t tpucl_op_input_count(const tpucl_op_context *context)
{
    return context ? context->input_count : 0;
}

tpucl_dtype tpucl_op_dtype(const tpucl_op_context *context, int32_t index)
{
    const int32_t place = place_of(context, index);
    return place < 0 ? TPUCL_F32 : tp_api_dtype_public(context->dtypes[place]);
}

tpucl_shape tpucl_op_shape(const tpucl_op_context *context, int32_t index)
{
    const tpucl_shape none = {-1, {0}};
    const int32_t place = place_of(context, index);
    return place < 0 ? none : tp_api_shape_public(&context->shapes[place]);
}

int64_t tpucl_op_elements(const tpucl_op_context *context, int32_t index)
{
    const int32_t place = place_of(context, index);
    return place < 0 ? 0 : tp_shape_elems(&context->shapes[place]);
}

static const tp_attr *attribute(const tpucl_op_context *context, const char *name,
                                tp_attr_kind kind)
{
    if (!context || !name) return NULL;
    const tp_attr *attr = tp_node_attr(context->node, name);
    return attr && attr->kind == kind ? attr : NULL;
}

int64_t tpucl_op_int(const tpucl_op_context *context, const char *name, int64_t fallback)
{
    const tp_attr *attr = attribute(context, name, TP_ATTR_INT);
    return attr ? attr->int_value : fallback;
}

double tpucl_op_float(const tpucl_op_context *context, const char *name, double fallback)
{
    const tp_attr *attr = attribute(context, name, TP_ATTR_FLOAT);
    return attr ? attr->float_value : fallback;
}

const char *tpucl_op_text(const tpucl_op_context *context, const char *name, const char *fallback)
{
    const tp_attr *attr = attribute(context, name, TP_ATTR_TEXT);
    return attr ? attr->text : fallback;
}

const int64_t *tpucl_op_ints(const tpucl_op_context *context, const char *name, int32_t *out_count)
{
    const tp_attr *attr = attribute(context, name, TP_ATTR_INTS);
    if (out_count) *out_count = attr ? attr->ints_count : 0;
    return attr ? attr->ints : NULL;
}

tpucl_status tpucl_op_fail(const char *message)
{
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s", message ? message : "no reason given");
}
