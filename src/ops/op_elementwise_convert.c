/* SPDX-License-Identifier: Apache-2.0
 * convert: the same value in another dtype, attribute `dtype`.
 *
 *   f32 -> bf16            to nearest even; bf16 -> f32 exact
 *   float -> s32, u32, u8  towards zero; out of range gives the end of the range, NaN 0
 *   s32, u32, u8 -> float  to nearest even
 *   integer -> integer     the low bits
 *   anything -> pred       whether it is not zero (a NaN is not); pred -> anything: 0 or 1
 *
 * stochastic_round: f32 and random words (u32) of its shape to bf16. The upper half of the word is added to
 * the bits below the bf16 number, and a carry rounds away from zero: with the probability (lower bits) *
 * 2^-16, so that the expected result is the operand. Infinities and NaN stay. Gupta et al., "Deep Learning
 * with Limited Numerical Precision" (2015), section 3.1; for weights of bf16 models Zamirai et al.,
 * "Revisiting BFloat16 Training" (2020). Not differentiable: it is for updates.
 */
#include "ops/op_elementwise.h"

#include <string.h>

#include "graph/attrs.h"
#include "graph/builder.h"
#include "num/bf16.h"
#include "num/exact_math.h"
#include "ops/op_util.h"

static tpucl_status convert_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                  tp_shape *out_shape)
{
    *out_shape = tp_op_input(graph, node, 0)->shape;
    return tp_node_attr_dtype(node, "dtype", out_dtype);
}

static void convert_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_dtype from = tp_op_input(g, &g->nodes[y], 0)->dtype;
    if (tp_dtype_is_float(from) && tp_dtype_is_float(g->nodes[y].dtype))
        d_inputs[0] = tp_op_convert(g, d, from);
}

/* Element i of an integer or pred tensor; s32 in two's complement, so that low bits are right. */
static uint32_t read_bits(const tp_host_tensor *tensor, int64_t i)
{
    return tp_dtype_size(tensor->dtype) == 4 ? ((const uint32_t *)tensor->data)[i]
                                             : ((const uint8_t *)tensor->data)[i];
}

static void write_bits(tp_host_tensor *tensor, int64_t i, uint32_t bits)
{
    if (tensor->dtype == TP_PRED)
        ((uint8_t *)tensor->data)[i] = bits != 0;
    else if (tensor->dtype == TP_U8)
        ((uint8_t *)tensor->data)[i] = (uint8_t)bits;
    else
        ((uint32_t *)tensor->data)[i] = bits;
}

static uint32_t bits_from_float(tp_dtype dtype, float value)
{
    switch (dtype) {
    case TP_S32:
        return (uint32_t)tp_vpu_s32_from_f32(value);
    case TP_U32:
        return tp_vpu_u32_from_f32(value);
    case TP_U8:
        return tp_vpu_u8_from_f32(value);
    default:
        return value != 0.0f;
    }
}

static void convert_chunk(const tp_host_tensor *from, tp_host_tensor *to, int64_t first,
                          int64_t count)
{
    float buffer[TP_OP_CHUNK];
    if (tp_dtype_is_float(from->dtype)) {
        const float *values = tp_op_read(from, first, count, buffer);
        if (tp_dtype_is_float(to->dtype))
            tp_op_write(to, first, count, values);
        else
            for (int64_t i = 0; i < count; ++i)
                write_bits(to, first + i, bits_from_float(to->dtype, values[i]));
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        const uint32_t bits = read_bits(from, first + i);
        if (tp_dtype_is_float(to->dtype))
            buffer[i] = from->dtype == TP_S32 ? tp_vpu_f32_from_s32((int32_t)bits)
                                              : tp_vpu_f32_from_u32(bits);
        else
            write_bits(to, first + i, bits);
    }
    if (tp_dtype_is_float(to->dtype)) tp_op_write(to, first, count, buffer);
}

static tpucl_status convert_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                     const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)context;
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t first = 0; first < elems; first += TP_OP_CHUNK)
        convert_chunk(&inputs[0], out, first,
                      elems - first < TP_OP_CHUNK ? elems - first : TP_OP_CHUNK);
    return TPUCL_OK;
}

static const char *convert_vpu(const tp_graph *graph, const tp_node *node)
{
    /* Rows: from; columns: to. Order of tp_dtype: f32 bf16 s32 u32 u8 pred. */
    static const char from_float[] = "$0";
    static const char *const table[TP_DTYPE_COUNT][TP_DTYPE_COUNT] = {
        [TP_F32] = {from_float, from_float, "EM(vpu_s32_from_f32)($0)", "EM(vpu_u32_from_f32)($0)",
                    "EM(vpu_u8_from_f32)($0)", "VPU_NE($0, (VF)(0.0f))"},
        [TP_BF16] = {from_float, from_float, "EM(vpu_s32_from_f32)($0)", "EM(vpu_u32_from_f32)($0)",
                     "EM(vpu_u8_from_f32)($0)", "VPU_NE($0, (VF)(0.0f))"},
        [TP_S32] = {"EM(vpu_f32_from_s32)($0)", "EM(vpu_f32_from_s32)($0)", "$0", "VPU_AS_VU($0)",
                    "VPU_AS_VU($0) & (VU)(255u)", "VPU_NE($0, (VI)(0))"},
        [TP_U32] = {"EM(vpu_f32_from_u32)($0)", "EM(vpu_f32_from_u32)($0)", "VPU_AS_VI($0)", "$0",
                    "$0 & (VU)(255u)", "VPU_NE($0, (VU)(0u))"},
        [TP_U8] = {"EM(vpu_f32_from_u32)($0)", "EM(vpu_f32_from_u32)($0)", "VPU_AS_VI($0)", "$0",
                   "$0", "VPU_NE($0, (VU)(0u))"},
        [TP_PRED] = {"VPU_SELECT($0, (VF)(1.0f), (VF)(0.0f))",
                     "VPU_SELECT($0, (VF)(1.0f), (VF)(0.0f))", "$0 & (VI)(1)",
                     "VPU_AS_VU($0) & (VU)(1u)", "VPU_AS_VU($0) & (VU)(1u)", "$0"},
    };
    return table[tp_op_input(graph, node, 0)->dtype][node->dtype];
}

static const tp_attr_spec convert_attrs[] = {
    {"dtype", TP_ATTR_TEXT, false, "f32|bf16|s32|u32|u8|pred", "of the result"}, {0}};
const tp_opdef tp_opdef_convert = {.name = "convert",
                                   .op_class = TP_OP_ELEMENTWISE,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .doc = "The same value in another dtype.",
                                   .attrs = convert_attrs,
                                   .infer = convert_infer,
                                   .gradient = convert_gradient,
                                   .evaluate = convert_evaluate,
                                   .vpu = convert_vpu};

/* ---- stochastic_round ---- */

static tpucl_status stochastic_infer(const tp_graph *graph, const tp_node *node,
                                     tp_dtype *out_dtype, tp_shape *out_shape)
{
    const tp_node *value = tp_op_input(graph, node, 0), *bits = tp_op_input(graph, node, 1);
    if (value->dtype != TP_F32 || bits->dtype != TP_U32)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "operands are %s and %s, expected f32 and u32",
                       tp_dtype_name(value->dtype), tp_dtype_name(bits->dtype));
    if (!tp_shape_equal(&value->shape, &bits->shape)) {
        char left[TP_SHAPE_TEXT_MAX], right[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&value->shape, left, sizeof left);
        tp_shape_format(&bits->shape, right, sizeof right);
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "operands are %s and %s, expected equal shapes",
                       left, right);
    }
    *out_shape = value->shape;
    *out_dtype = TP_BF16;
    return TPUCL_OK;
}

static tpucl_status stochastic_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                        const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)context;
    const float *values = inputs[0].data;
    const uint32_t *words = inputs[1].data;
    for (int64_t i = 0; i < tp_shape_elems(&out->shape); ++i) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        const bool is_nan = values[i] != values[i];
        const tp_bf16 moved = (tp_bf16)((bits + (words[i] >> 16)) >> 16);
        ((tp_bf16 *)out->data)[i] = is_nan ? tp_bf16_from_f32(values[i]) : moved;
    }
    return TPUCL_OK;
}

static const char *stochastic_vpu(const tp_graph *graph, const tp_node *node)
{
    (void)graph;
    (void)node;
    return "VPU_SELECT(VPU_NE($0, $0), $0, VPU_AS_VF((VPU_AS_VU($0) + ($1 >> (VU)(16u))) & "
           "(VU)(0xffff0000u)))";
}

const tp_opdef tp_opdef_stochastic_round = {
    .name = "stochastic_round",
    .op_class = TP_OP_ELEMENTWISE,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc = "f32 to bf16, up or down by random words (u32): the operand on average.",
    .infer = stochastic_infer,
    .evaluate = stochastic_evaluate,
    .vpu = stochastic_vpu};
