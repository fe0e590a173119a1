/* SPDX-License-Identifier: Apache-2.0
 * Comparing and choosing.
 *
 *   compare     direction: EQ NE LT LE GT GE. f32, bf16, s32, u32, u8; pred only EQ and NE. Gives
 *               pred. A
 *               NaN is unequal to everything, itself included; -0 equals +0
 *   and or xor  pred, s32, u32; not as well
 *   select      (pred, on_true, on_false): any dtype
 *   clamp       (low, x, high): min(max(x, low), high)
 *   is_finite   pred
 */
#include "ops/op_elementwise.h"

#include <string.h>

#include "graph/builder.h"
#include "num/exact_math.h"
#include "ops/op_util.h"

/* ---- compare ---- */
static tpucl_status compare_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                  tp_shape *out_shape)
{
    TP_TRY(tp_op_infer_same(graph, node, TP_DTYPES_ALL, out_dtype, out_shape));
    const char *direction = tp_node_attr_text(node, "direction", "");
    if (*out_dtype == TP_PRED && strcmp(direction, "EQ") != 0 && strcmp(direction, "NE") != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "compare %s of pred, expected EQ or NE", direction);
    *out_dtype = TP_PRED;
    return TPUCL_OK;
}

/* One loop per direction, so that compilers can vectorise. */
#define COMPARE_LOOP(operator)                                                                     \
    for (int64_t i = 0; i < count; ++i)                                                            \
    y[i] = (uint8_t)(a[i] operator b[i])
#define COMPARE_FUNCTION(name, type)                                                               \
    static void name(const char *direction, const type *a, const type *b, uint8_t *y,              \
                     int64_t count)                                                                \
    {                                                                                              \
        if (strcmp(direction, "EQ") == 0)                                                          \
            COMPARE_LOOP(==);                                                                      \
        else if (strcmp(direction, "NE") == 0)                                                     \
            COMPARE_LOOP(!=);                                                                      \
        else if (strcmp(direction, "LT") == 0)                                                     \
            COMPARE_LOOP(<);                                                                       \
        else if (strcmp(direction, "LE") == 0)                                                     \
            COMPARE_LOOP(<=);                                                                      \
        else if (strcmp(direction, "GT") == 0)                                                     \
            COMPARE_LOOP(>);                                                                       \
        else                                                                                       \
            COMPARE_LOOP(>=);                                                                      \
    }
COMPARE_FUNCTION(compare_f32, float)
COMPARE_FUNCTION(compare_s32, int32_t)
COMPARE_FUNCTION(compare_u32, uint32_t)
COMPARE_FUNCTION(compare_u8, uint8_t)

static tpucl_status compare_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                     const tp_eval_context *context, tp_host_tensor *out)
{
    (void)context;
    const char *direction = tp_node_attr_text(node, "direction", "");
    const int64_t elems = tp_shape_elems(&out->shape);
    const void *a = inputs[0].data, *b = inputs[1].data;
    uint8_t *y = out->data;
    switch (inputs[0].dtype) {
    case TP_S32:
        compare_s32(direction, a, b, y, elems);
        break;
    case TP_U32:
        compare_u32(direction, a, b, y, elems);
        break;
    case TP_U8:
    case TP_PRED:
        compare_u8(direction, a, b, y, elems);
        break;
    default:
        for (int64_t first = 0; first < elems; first += TP_OP_CHUNK) {
            float left[TP_OP_CHUNK], right[TP_OP_CHUNK];
            const int64_t count = elems - first < TP_OP_CHUNK ? elems - first : TP_OP_CHUNK;
            compare_f32(direction, tp_op_read(&inputs[0], first, count, left),
                        tp_op_read(&inputs[1], first, count, right), y + first, count);
        }
    }
    return TPUCL_OK;
}

static const char *compare_vpu(const tp_graph *graph, const tp_node *node)
{
    static const char *const table[][2] = {{"EQ", "VPU_EQ($0, $1)"}, {"NE", "VPU_NE($0, $1)"},
                                           {"LT", "VPU_LT($0, $1)"}, {"LE", "VPU_LE($0, $1)"},
                                           {"GT", "VPU_GT($0, $1)"}, {"GE", "VPU_GE($0, $1)"}};
    (void)graph;
    const char *direction = tp_node_attr_text(node, "direction", "");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i)
        if (strcmp(direction, table[i][0]) == 0) return table[i][1];
    return tp_op_no_expression(node, node->dtype);
}

static const tp_attr_spec compare_attrs[] = {
    {"direction", TP_ATTR_TEXT, false, "EQ|NE|LT|LE|GT|GE", "which comparison"}, {0}};
const tp_opdef tp_opdef_compare = {
    .name = "compare",
    .op_class = TP_OP_ELEMENTWISE,
    .min_inputs = 2,
    .max_inputs = 2,
    .doc = "pred: whether the comparison holds; none but NE does for a NaN.",
    .attrs = compare_attrs,
    .infer = compare_infer,
    .evaluate = compare_evaluate,
    .vpu = compare_vpu};

/* ---- and, or, xor, not ---- */
static tpucl_status logic_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    return tp_op_infer_same(graph, node, TP_DTYPES_PRED | TP_DTYPES_INT, out_dtype, out_shape);
}

/* Bytes will do for all dtypes; `not` of a pred keeps to its lowest bit. */
#define LOGIC(op, inputs_count, expression, text, sentence)                                        \
    static tpucl_status op##_evaluate(const tp_node *node, const tp_host_tensor *inputs,           \
                                      const tp_eval_context *context, tp_host_tensor *out)         \
    {                                                                                              \
        (void)node;                                                                                \
        (void)context;                                                                             \
        const uint8_t *a = inputs[0].data, *b = inputs[inputs_count - 1].data;                     \
        const uint8_t mask = out->dtype == TP_PRED ? 1 : 255;                                      \
        uint8_t *y = out->data;                                                                    \
        const int64_t bytes = tp_shape_bytes(&out->shape, out->dtype);                             \
        (void)b;                                                                                   \
        for (int64_t i = 0; i < bytes; ++i)                                                        \
            y[i] = (uint8_t)(mask & (expression));                                                 \
        return TPUCL_OK;                                                                           \
    }                                                                                              \
    static const char *op##_vpu(const tp_graph *graph, const tp_node *node)                        \
    {                                                                                              \
        (void)graph;                                                                               \
        (void)node;                                                                                \
        return text;                                                                               \
    }                                                                                              \
    const tp_opdef tp_opdef_##op = {.name = #op,                                                   \
                                    .op_class = TP_OP_ELEMENTWISE,                                 \
                                    .min_inputs = inputs_count,                                    \
                                    .max_inputs = inputs_count,                                    \
                                    .doc = sentence,                                               \
                                    .infer = logic_infer,                                          \
                                    .evaluate = op##_evaluate,                                     \
                                    .vpu = op##_vpu};

LOGIC(and, 2, a[i] & b[i], "$0 & $1", "Both; of integers bit by bit.")
LOGIC(or, 2, a[i] | b[i], "$0 | $1", "Either; of integers bit by bit.")
LOGIC(xor, 2, a[i] ^ b[i], "$0 ^ $1", "One but not both; of integers bit by bit.")
LOGIC(not, 1, ~a[i], "~$0", "The opposite; of integers every bit.")

/* ---- select ---- */
static tpucl_status select_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                 tp_shape *out_shape)
{
    TP_TRY(tp_op_check_dtype(graph, node, 0, TP_DTYPES_PRED));
    TP_TRY(tp_op_check_same_type(graph, node, 1, 2));
    TP_TRY(tp_op_check_same_shape(graph, node, 0, 1));
    *out_dtype = tp_op_input(graph, node, 1)->dtype;
    *out_shape = tp_op_input(graph, node, 1)->shape;
    return TPUCL_OK;
}

static tpucl_status select_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                    const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)context;
    const uint8_t *mask = inputs[0].data;
    const int64_t elems = tp_shape_elems(&out->shape);
    const size_t size = tp_dtype_size(out->dtype);
    for (int64_t i = 0; i < elems; ++i) {
        const char *chosen = inputs[mask[i] ? 1 : 2].data;
        memcpy((char *)out->data + (size_t)i * size, chosen + (size_t)i * size, size);
    }
    return TPUCL_OK;
}

static void select_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node_id mask = g->nodes[y].inputs[0];
    const tp_node_id zero = tp_op_fill(g, g->nodes[d].dtype, g->nodes[d].shape, 0);
    d_inputs[1] = tp_op_select(g, mask, d, zero);
    d_inputs[2] = tp_op_select(g, mask, zero, d);
}

static const char *select_vpu(const tp_graph *graph, const tp_node *node)
{
    (void)graph;
    (void)node;
    return "VPU_SELECT($0, $1, $2)";
}

const tp_opdef tp_opdef_select = {
    .name = "select",
    .op_class = TP_OP_ELEMENTWISE,
    .min_inputs = 3,
    .max_inputs = 3,
    .doc = "The second operand where the first (pred) holds, else the third.",
    .infer = select_infer,
    .gradient = select_gradient,
    .evaluate = select_evaluate,
    .vpu = select_vpu};

/* ---- clamp ---- */
static tpucl_status clamp_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    return tp_op_infer_same(graph, node, TP_DTYPES_FLOAT | TP_DTYPES_INT, out_dtype, out_shape);
}

static tpucl_status clamp_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                   const tp_eval_context *context, tp_host_tensor *out)
{
    tp_host_tensor at_least = *out;
    const tp_host_tensor max_inputs[] = {inputs[1], inputs[0]};
    TP_TRY(tp_opdef_maximum.evaluate(node, max_inputs, context, &at_least));
    const tp_host_tensor min_inputs[] = {at_least, inputs[2]};
    return tp_opdef_minimum.evaluate(node, min_inputs, context,
                                     out); /* element-wise, so in place */
}

/* d reaches x inside the closed interval, and the bound that took x's place outside it. */
static void clamp_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node_id low = g->nodes[y].inputs[0], x = g->nodes[y].inputs[1],
                     high = g->nodes[y].inputs[2];
    const tp_node_id zero = tp_op_fill(g, g->nodes[d].dtype, g->nodes[d].shape, 0);
    const tp_node_id is_above = tp_op_compare(g, "GT", tp_op_maximum(g, x, low), high);
    const tp_node_id is_below =
        tp_op_and(g, tp_op_not(g, is_above), tp_op_compare(g, "LT", x, low));
    d_inputs[0] = tp_op_select(g, is_below, d, zero);
    d_inputs[1] = tp_op_select(g, tp_op_or(g, is_above, is_below), zero, d);
    d_inputs[2] = tp_op_select(g, is_above, d, zero);
}

static const char *clamp_vpu(const tp_graph *graph, const tp_node *node)
{
    (void)graph;
    return tp_dtype_is_float(node->dtype) ? "EM(vpu_min)(EM(vpu_max)($1, $0), $2)"
                                          : "min(max($1, $0), $2)";
}

const tp_opdef tp_opdef_clamp = {.name = "clamp",
                                 .op_class = TP_OP_ELEMENTWISE,
                                 .min_inputs = 3,
                                 .max_inputs = 3,
                                 .doc = "minimum(maximum(x, low), high) of operands low, x, high.",
                                 .infer = clamp_infer,
                                 .gradient = clamp_gradient,
                                 .evaluate = clamp_evaluate,
                                 .vpu = clamp_vpu};

/* ---- is_finite ---- */
static tpucl_status is_finite_infer(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                    tp_shape *out_shape)
{
    TP_TRY(tp_op_infer_same(graph, node, TP_DTYPES_FLOAT, out_dtype, out_shape));
    *out_dtype = TP_PRED;
    return TPUCL_OK;
}

static tpucl_status is_finite_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                       const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)context;
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t i = 0; i < elems; ++i) {
        float value;
        ((uint8_t *)out->data)[i] = tp_vpu_is_finite(*tp_op_read(&inputs[0], i, 1, &value)) ? 1 : 0;
    }
    return TPUCL_OK;
}

static const char *is_finite_vpu(const tp_graph *graph, const tp_node *node)
{
    (void)graph;
    (void)node;
    return "VPU_NE(VPU_AS_VU($0) & (VU)(0x7f800000u), (VU)(0x7f800000u))";
}

const tp_opdef tp_opdef_is_finite = {.name = "is_finite",
                                     .op_class = TP_OP_ELEMENTWISE,
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .doc = "pred: neither infinite nor NaN.",
                                     .infer = is_finite_infer,
                                     .evaluate = is_finite_evaluate,
                                     .vpu = is_finite_vpu};
