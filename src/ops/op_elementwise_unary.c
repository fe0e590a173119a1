/* SPDX-License-Identifier: Apache-2.0
 * Element-wise ops with one operand. The host's value and the VPU's expression come from the same
 * function of num/exact_math.h, so they have the same bits. Gradients are graph ops and so are
 * rounded wherever the graph is. */
#include "ops/op_elementwise.h"

#include "graph/builder.h"
#include "num/exact_math.h"
#include "ops/op_util.h"

static tp_node_id one_minus(tp_graph *g, tp_node_id a)
{
    return tp_op_add_scalar(g, tp_op_negate(g, a), 1);
}

/* ---- gradients: d_inputs[0] from d (of the result y = op(x)) ---- */
#define GRADIENT(op, expression)                                                                   \
    static void op##_gradient(tp_graph *g, tp_node_id y, tp_node_id d, tp_node_id *d_inputs)       \
    {                                                                                              \
        const tp_node_id x = g->nodes[y].inputs[0];                                                \
        (void)x;                                                                                   \
        d_inputs[0] = expression;                                                                  \
    }
GRADIENT(abs, tp_op_multiply(g, d, tp_op_sign(g, x)))
GRADIENT(negate, tp_op_negate(g, d))
GRADIENT(exponential, tp_op_multiply(g, d, y))
GRADIENT(exponential_minus_one, tp_op_multiply(g, d, tp_op_add_scalar(g, y, 1)))
GRADIENT(log, tp_op_divide(g, d, x))
GRADIENT(log_plus_one, tp_op_divide(g, d, tp_op_add_scalar(g, x, 1)))
GRADIENT(sqrt, tp_op_divide(g, tp_op_multiply_scalar(g, d, 0.5), y))
GRADIENT(rsqrt, tp_op_multiply(g, tp_op_multiply_scalar(g, d, -0.5),
                               tp_op_multiply(g, tp_op_multiply(g, y, y), y)))
GRADIENT(cbrt, tp_op_divide(g, d, tp_op_multiply_scalar(g, tp_op_multiply(g, y, y), 3)))
GRADIENT(tanh, tp_op_multiply(g, d, one_minus(g, tp_op_multiply(g, y, y))))
GRADIENT(logistic, tp_op_multiply(g, d, tp_op_multiply(g, y, one_minus(g, y))))
/* 2 / sqrt(pi) * exp(-x^2) */
GRADIENT(erf, tp_op_multiply(g, d,
                             tp_op_multiply_scalar(
                                 g, tp_op_exponential(g, tp_op_negate(g, tp_op_multiply(g, x, x))),
                                 1.1283791670955126)))
GRADIENT(sine, tp_op_multiply(g, d, tp_op_cosine(g, x)))
GRADIENT(cosine, tp_op_negate(g, tp_op_multiply(g, d, tp_op_sine(g, x))))

/* ---- s32 ---- */
typedef int32_t (*s32_fn)(int32_t x);

static int32_t abs_s32(int32_t x)
{
    return x < 0 ? (int32_t)(0u - (uint32_t)x) : x;
}

static int32_t negate_s32(int32_t x)
{
    return (int32_t)(0u - (uint32_t)x);
}

static int32_t sign_s32(int32_t x)
{
    return (x > 0) - (x < 0);
}

static void map_s32(s32_fn function, const tp_host_tensor *x, tp_host_tensor *out)
{
    const int64_t elems = tp_shape_elems(&out->shape);
    for (int64_t i = 0; i < elems; ++i)
        ((int32_t *)out->data)[i] = function(((const int32_t *)x->data)[i]);
}

/* ---- definitions ---- */
static tpucl_status infer_float(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                tp_shape *out_shape)
{
    return tp_op_infer_same(graph, node, TP_DTYPES_FLOAT, out_dtype, out_shape);
}

static tpucl_status infer_signed(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                                 tp_shape *out_shape)
{
    return tp_op_infer_same(graph, node, TP_DTYPES_FLOAT | TP_DTYPE_BIT(TP_S32), out_dtype,
                            out_shape);
}

/* Host function, evaluation, expression and definition of an op on floats; s32_rule and s32_text
 * are NULL where it has no s32 form. */
#define UNARY(op, host, text, s32_rule, s32_text, infer_rule, gradient_rule, sentence)             \
    static void op##_chunk(const float *x, float *y, int64_t count)                                \
    {                                                                                              \
        for (int64_t i = 0; i < count; ++i)                                                        \
            y[i] = host(x[i]);                                                                     \
    }                                                                                              \
    static tpucl_status op##_evaluate(const tp_node *node, const tp_host_tensor *inputs,           \
                                      const tp_eval_context *context, tp_host_tensor *out)         \
    {                                                                                              \
        (void)node;                                                                                \
        (void)context;                                                                             \
        const s32_fn s32 = s32_rule;                                                               \
        if (s32 && out->dtype == TP_S32)                                                           \
            map_s32(s32, inputs, out);                                                             \
        else                                                                                       \
            tp_op_map_unary(op##_chunk, inputs, out);                                              \
        return TPUCL_OK;                                                                           \
    }                                                                                              \
    static const char *op##_vpu(const tp_graph *graph, const tp_node *node)                        \
    {                                                                                              \
        (void)graph;                                                                               \
        return node->dtype == TP_S32 ? s32_text : text;                                            \
    }                                                                                              \
    const tp_opdef tp_opdef_##op = {.name = #op,                                                   \
                                    .op_class = TP_OP_ELEMENTWISE,                                 \
                                    .min_inputs = 1,                                               \
                                    .max_inputs = 1,                                               \
                                    .doc = sentence,                                               \
                                    .infer = infer_rule,                                           \
                                    .gradient = gradient_rule,                                     \
                                    .evaluate = op##_evaluate,                                     \
                                    .vpu = op##_vpu};
#define FLOAT_UNARY(op, host, text, gradient_rule, sentence)                                       \
    UNARY(op, host, text, NULL, NULL, infer_float, gradient_rule, sentence)

UNARY(abs, tp_vpu_abs, "EM(vpu_abs)($0)", abs_s32, "VPU_AS_VI(abs($0))", infer_signed, abs_gradient,
      "Absolute value.")
UNARY(negate, tp_vpu_negate, "EM(vpu_negate)($0)", negate_s32,
      "VPU_AS_VI((VU)(0u) - VPU_AS_VU($0))", infer_signed, negate_gradient,
      "The value with the other sign.")
UNARY(sign, tp_vpu_sign, "EM(vpu_sign)($0)", sign_s32, "VPU_GT((VI)(0), $0) - VPU_GT($0, (VI)(0))",
      infer_signed, NULL, "-1, 1, or the operand where it is zero or NaN.")
FLOAT_UNARY(exponential, tp_math_exp, "EM(math_exp)($0)", exponential_gradient,
            "e to the power of x.")
FLOAT_UNARY(exponential_minus_one, tp_math_expm1, "EM(math_expm1)($0)",
            exponential_minus_one_gradient, "e to the power of x, minus 1, accurate near 0.")
FLOAT_UNARY(log, tp_math_log, "EM(math_log)($0)", log_gradient, "Natural logarithm.")
FLOAT_UNARY(log_plus_one, tp_math_log1p, "EM(math_log1p)($0)", log_plus_one_gradient,
            "Natural logarithm of 1 + x, accurate near 0.")
FLOAT_UNARY(sqrt, tp_math_sqrt, "EM(math_sqrt)($0)", sqrt_gradient,
            "Square root, correctly rounded.")
FLOAT_UNARY(rsqrt, tp_math_rsqrt, "EM(math_rsqrt)($0)", rsqrt_gradient,
            "1 divided by the square root, both correctly rounded.")
FLOAT_UNARY(cbrt, tp_math_cbrt, "EM(math_cbrt)($0)", cbrt_gradient, "Cube root, also of negatives.")
FLOAT_UNARY(tanh, tp_math_tanh, "EM(math_tanh)($0)", tanh_gradient, "Hyperbolic tangent.")
FLOAT_UNARY(logistic, tp_math_logistic, "EM(math_logistic)($0)", logistic_gradient,
            "1 / (1 + e^-x).")
FLOAT_UNARY(erf, tp_math_erf, "EM(math_erf)($0)", erf_gradient, "Error function.")
FLOAT_UNARY(sine, tp_math_sin, "EM(math_sin)($0)", sine_gradient, "Sine of radians.")
FLOAT_UNARY(cosine, tp_math_cos, "EM(math_cos)($0)", cosine_gradient, "Cosine of radians.")
FLOAT_UNARY(floor, tp_vpu_floor, "EM(vpu_floor)($0)", NULL, "The next integer downwards.")
FLOAT_UNARY(ceil, tp_vpu_ceil, "EM(vpu_ceil)($0)", NULL, "The next integer upwards.")
FLOAT_UNARY(round_nearest_even, tp_vpu_round_nearest_even, "EM(vpu_round_nearest_even)($0)", NULL,
            "The nearest integer, ties to even.")
