/* SPDX-License-Identifier: Apache-2.0
 * Element-wise arithmetic on two operands. Integer division follows XLA: by zero gives -1 (all
 * bits set), INT_MIN / -1 gives INT_MIN; see num/exact_basic.h. maximum and minimum propagate NaN
 * and order -0 below +0; where the operands are equal the whole gradient goes to the second one,
 * so that maximum(x, 0) has Keras' gradient of relu. */
#include "ops/op_elementwise.h"

#include "graph/builder.h"
#include "num/exact_math.h"
#include "ops/op_util.h"

/* ---- gradients: d_inputs from d (of the result y = op(a, b)) ---- */
#define GRADIENT(op, d_a, d_b)                                                                     \
    static void op##_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)       \
    {                                                                                              \
        const tp_node_id a = g->nodes[y].inputs[0], b = g->nodes[y].inputs[1];                     \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        d_inputs[0] = d_a;                                                                         \
        d_inputs[1] = d_b;                                                                         \
    }
GRADIENT(add, d, d)
GRADIENT(subtract, d, tp_op_negate(g, d))
GRADIENT(multiply, tp_op_multiply(g, d, b), tp_op_multiply(g, d, a))
GRADIENT(divide, tp_op_divide(g, d, b),
         tp_op_negate(g, tp_op_divide(g, tp_op_multiply(g, d, y), b)))
/* y = a - n * b with the integer n = (a - y) / b */
GRADIENT(remainder, d,
         tp_op_negate(g, tp_op_multiply(g, d,
                                        tp_op_round_nearest_even(
                                            g, tp_op_divide(g, tp_op_subtract(g, a, y), b)))))

/* d where `mask` is set, and where it is not. */
static void split_gradient(tp_graph *g, tp_node_id mask, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node_id zero = tp_op_fill(g, g->nodes[d].dtype, g->nodes[d].shape, 0);
    d_inputs[0] = tp_op_select(g, mask, d, zero);
    d_inputs[1] = tp_op_select(g, mask, zero, d);
}

/* a > b exactly when max(a, b) > b, NaN included. Asking the result means that of relu(a) =
 * maximum(a, 0) only the result has to be kept for the gradient. */
static void maximum_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node_id b = g->nodes[y].inputs[1];
    split_gradient(g, tp_op_compare(g, "GT", y, b), d, d_inputs);
}

static void minimum_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node_id b = g->nodes[y].inputs[1];
    split_gradient(g, tp_op_compare(g, "LT", y, b), d, d_inputs);
}

/* d b a^(b-1), and d y log(a) where a is above 0 (elsewhere log has no value and d_b is 0). */
static void power_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)
{
    const tp_node_id a = g->nodes[y].inputs[0], b = g->nodes[y].inputs[1];
    const tp_dtype dtype = g->nodes[a].dtype;
    const tp_node_id lower = tp_op_power(g, a, tp_op_add_scalar(g, b, -1));
    d_inputs[0] = tp_op_multiply(g, d, tp_op_multiply(g, b, lower));
    const tp_node_id is_positive = tp_op_compare(g, "GT", a, tp_op_scalar(g, dtype, 0));
    const tp_node_id log_a =
        tp_op_log(g, tp_op_select(g, is_positive, a, tp_op_scalar(g, dtype, 1)));
    d_inputs[1] = tp_op_multiply(g, d, tp_op_multiply(g, y, log_a));
}

/* ---- integers, as bits ---- */
typedef uint32_t (*int_fn)(uint32_t a, uint32_t b);

#define INT_FUNCTION(name, expression)                                                             \
    static uint32_t name(uint32_t a, uint32_t b)                                                   \
    {                                                                                              \
        return expression;                                                                         \
    }
INT_FUNCTION(add_int, a + b)
INT_FUNCTION(subtract_int, a - b)
INT_FUNCTION(multiply_int, a *b)
INT_FUNCTION(maximum_s32, (int32_t)a > (int32_t)b ? a : b)
INT_FUNCTION(minimum_s32, (int32_t)a < (int32_t)b ? a : b)
INT_FUNCTION(maximum_u32, a > b ? a : b)
INT_FUNCTION(minimum_u32, a < b ? a : b)
INT_FUNCTION(divide_s32, (uint32_t)tp_vpu_s32_divide((int32_t)a, (int32_t)b))
INT_FUNCTION(remainder_s32, (uint32_t)tp_vpu_s32_remainder((int32_t)a, (int32_t)b))
INT_FUNCTION(divide_u32, tp_vpu_u32_divide(a, b))
INT_FUNCTION(remainder_u32, tp_vpu_u32_remainder(a, b))

static void map_int(int_fn function, const tp_host_tensor *inputs, tp_host_tensor *out)
{
    const uint32_t *a = inputs[0].data, *b = inputs[1].data;
    uint32_t *y = out->data;
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t i = 0; i < elems; ++i)
        y[i] = function(a[i], b[i]);
}

/* ---- floats ---- */
#define FLOAT_FUNCTION(name, expression)                                                           \
    static void name(const float *a, const float *b, float *y, int64_t count)                      \
    {                                                                                              \
        for (int64_t i = 0; i < count; ++i)                                                        \
            y[i] = expression;                                                                     \
    }
FLOAT_FUNCTION(add_chunk, a[i] + b[i])
FLOAT_FUNCTION(subtract_chunk, a[i] - b[i])
FLOAT_FUNCTION(multiply_chunk, a[i] * b[i])
FLOAT_FUNCTION(divide_chunk, tp_math_divide(a[i], b[i]))
FLOAT_FUNCTION(maximum_chunk, tp_vpu_max(a[i], b[i]))
FLOAT_FUNCTION(minimum_chunk, tp_vpu_min(a[i], b[i]))
FLOAT_FUNCTION(power_chunk, tp_math_pow(a[i], b[i]))
FLOAT_FUNCTION(remainder_chunk, tp_vpu_remainder(a[i], b[i]))

/* ---- definitions ---- */
static tpucl_status infer_number(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                 tp_shape *out_shape)
{
    return tp_op_infer_same(graph, node, TP_DTYPES_FLOAT | TP_DTYPES_INT, out_dtype, out_shape);
}

static tpucl_status infer_float(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    return tp_op_infer_same(graph, node, TP_DTYPES_FLOAT, out_dtype, out_shape);
}

static tpucl_status power_evaluate(const tp_node *node, const tp_host_tensor *inputs,
                                   const tp_eval_context *context, tp_host_tensor *out)
{
    (void)node;
    (void)context;
    tp_op_map_binary(power_chunk, &inputs[0], &inputs[1], out);
    return TPUCL_OK;
}

static const char *power_vpu(const tp_graph *graph, const tp_node *node)
{
    (void)graph;
    (void)node;
    return "EM(math_pow)($0, $1)";
}

const tp_opdef tp_opdef_power = {.name = "power",
                                 .op_class = TP_OP_ELEMENTWISE,
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .doc = "The first operand to the power of the second, as C's pow.",
                                 .infer = infer_float,
                                 .gradient = power_gradient,
                                 .evaluate = power_evaluate,
                                 .vpu = power_vpu};

#define BINARY(op, text, s32, s32_text, u32, u32_text, subnormal, sentence)                        \
    static tpucl_status op##_evaluate(const tp_node *node, const tp_host_tensor *inputs,           \
                                      const tp_eval_context *context, tp_host_tensor *out)         \
    {                                                                                              \
        (void)node;                                                                                \
        (void)context;                                                                             \
        if (out->dtype == TP_S32)                                                                  \
            map_int(s32, inputs, out);                                                             \
        else if (out->dtype == TP_U32)                                                             \
            map_int(u32, inputs, out);                                                             \
        else                                                                                       \
            tp_op_map_binary(op##_chunk, &inputs[0], &inputs[1], out);                             \
        return TPUCL_OK;                                                                           \
    }                                                                                              \
    static const char *op##_vpu(const tp_graph *graph, const tp_node *node)                        \
    {                                                                                              \
        (void)graph;                                                                               \
        return node->dtype == TP_S32 ? s32_text : node->dtype == TP_U32 ? u32_text : text;         \
    }                                                                                              \
    const tp_opdef tp_opdef_##op = {.name = #op,                                                   \
                                    .op_class = TP_OP_ELEMENTWISE,                                 \
                                    .min_inputs = 2,                                               \
                                    .max_inputs = 2,                                               \
                                    .doc = sentence,                                               \
                                    .infer = infer_number,                                         \
                                    .gradient = op##_gradient,                                     \
                                    .evaluate = op##_evaluate,                                     \
                                    .vpu = op##_vpu,                                               \
                                    .may_make_subnormal = subnormal};

BINARY(add, "$0 + $1", add_int, "VPU_AS_VI(VPU_AS_VU($0) + VPU_AS_VU($1))", add_int, "$0 + $1",
       true, "Sum.")
BINARY(subtract, "$0 - $1", subtract_int, "VPU_AS_VI(VPU_AS_VU($0) - VPU_AS_VU($1))", subtract_int,
       "$0 - $1", true, "Difference.")
BINARY(multiply, "$0 * $1", multiply_int, "VPU_AS_VI(VPU_AS_VU($0) * VPU_AS_VU($1))", multiply_int,
       "$0 * $1", true, "Product, element by element.")
BINARY(divide, "EM(math_divide)($0, $1)", divide_s32, "EM(vpu_s32_divide)($0, $1)", divide_u32,
       "EM(vpu_u32_divide)($0, $1)", false,
       "Quotient, correctly rounded; of integers towards zero, by zero -1 (all bits set).")
BINARY(maximum, "EM(vpu_max)($0, $1)", maximum_s32, "max($0, $1)", maximum_u32, "max($0, $1)",
       false, "The larger; NaN if either is, and +0 > -0.")
BINARY(minimum, "EM(vpu_min)($0, $1)", minimum_s32, "min($0, $1)", minimum_u32, "min($0, $1)",
       false, "The smaller; NaN if either is, and -0 < +0.")
BINARY(remainder, "EM(vpu_remainder)($0, $1)", remainder_s32, "EM(vpu_s32_remainder)($0, $1)",
       remainder_u32, "EM(vpu_u32_remainder)($0, $1)", false,
       "What division towards zero leaves, exact, with the sign of the first operand.")
