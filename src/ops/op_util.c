/* SPDX-License-Identifier: Apache-2.0
 * Shared rules and host loops of the op families. */
#include "ops/op_util.h"

#include "core/str.h"
#include "num/bf16.h"

tpucl_status tp_op_check_dtype(const tp_graph *graph, const tp_node *node, int32_t index,
                               uint32_t dtypes)
{
    const tp_dtype dtype = tp_op_input(graph, node, index)->dtype;
    if (dtypes & TP_DTYPE_BIT(dtype)) return TPUCL_OK;
    char list[64];
    size_t length = 0;
    list[0] = '\0';
    for (int i = 0; i < TP_DTYPE_COUNT; ++i) {
        if (!(dtypes & TP_DTYPE_BIT(i))) continue;
        const char *name = tp_dtype_name((tp_dtype)i);
        for (const char *c = length ? ", " : ""; *c; ++c)
            list[length++] = *c;
        while (*name)
            list[length++] = *name++;
        list[length] = '\0';
    }
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "input %d is %s, expected one of %s", index,
                   tp_dtype_name(dtype), list);
}

tpucl_status tp_op_check_same_shape(const tp_graph *graph, const tp_node *node, int32_t a,
                                    int32_t b)
{
    const tp_node *left = tp_op_input(graph, node, a), *right = tp_op_input(graph, node, b);
    if (tp_shape_equal(&left->shape, &right->shape)) return TPUCL_OK;
    char left_text[TP_SHAPE_TEXT_MAX], right_text[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&left->shape, left_text, sizeof left_text);
    tp_shape_format(&right->shape, right_text, sizeof right_text);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "input %d has shape %s and input %d has %s, expected equal ones", a, left_text,
                   b, right_text);
}

tpucl_status tp_op_check_same_type(const tp_graph *graph, const tp_node *node, int32_t a, int32_t b)
{
    const tp_dtype left = tp_op_input(graph, node, a)->dtype,
                   right = tp_op_input(graph, node, b)->dtype;
    if (left != right)
        return TP_FAIL(
            TPUCL_INVALID_ARGUMENT,
            "input %d is %s and input %d is %s, expected equal ones; convert one of them", a,
            tp_dtype_name(left), b, tp_dtype_name(right));
    return tp_op_check_same_shape(graph, node, a, b);
}

tpucl_status tp_op_infer_same(const tp_graph *graph, const tp_node *node, uint32_t dtypes,
                              tp_dtype *out_dtype, tp_shape *out_shape)
{
    TP_TRY(tp_op_check_dtype(graph, node, 0, dtypes));
    for (int32_t i = 1; i < node->input_count; ++i)
        TP_TRY(tp_op_check_same_type(graph, node, 0, i));
    *out_dtype = tp_op_input(graph, node, 0)->dtype;
    *out_shape = tp_op_input(graph, node, 0)->shape;
    return TPUCL_OK;
}

const float *tp_op_read(const tp_host_tensor *tensor, int64_t first, int64_t count, float *buffer)
{
    if (tensor->dtype == TP_F32) return (const float *)tensor->data + first;
    tp_bf16_to_f32_array((const tp_bf16 *)tensor->data + first, buffer, (size_t)count);
    return buffer;
}

void tp_op_write(tp_host_tensor *tensor, int64_t first, int64_t count, const float *values)
{
    if (tensor->dtype == TP_BF16) {
        tp_bf16_from_f32_array(values, (tp_bf16 *)tensor->data + first, (size_t)count);
        return;
    }
    float *dst = (float *)tensor->data + first;
    for (int64_t i = 0; i < count; ++i)
        dst[i] = tp_flush(values[i]);
}

static int64_t chunk_size(int64_t elems, int64_t first)
{
    return elems - first < TP_OP_CHUNK ? elems - first : TP_OP_CHUNK;
}

void tp_op_map_unary(tp_op_unary_fn function, const tp_host_tensor *x, tp_host_tensor *out)
{
    float in[TP_OP_CHUNK], result[TP_OP_CHUNK];
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t first = 0; first < elems; first += TP_OP_CHUNK) {
        const int64_t count = chunk_size(elems, first);
        function(tp_op_read(x, first, count, in), result, count);
        tp_op_write(out, first, count, result);
    }
}

void tp_op_map_binary(tp_op_binary_fn function, const tp_host_tensor *a, const tp_host_tensor *b,
                      tp_host_tensor *out)
{
    float left[TP_OP_CHUNK], right[TP_OP_CHUNK], result[TP_OP_CHUNK];
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t first = 0; first < elems; first += TP_OP_CHUNK) {
        const int64_t count = chunk_size(elems, first);
        function(tp_op_read(a, first, count, left), tp_op_read(b, first, count, right), result,
                 count);
        tp_op_write(out, first, count, result);
    }
}

const char *tp_op_no_expression(const tp_node *node, tp_dtype dtype)
{
    (void)TP_FAIL(TPUCL_UNSUPPORTED, "'%s' has no expression for %s", node->def->name,
                  tp_dtype_name(dtype));
    return NULL;
}
