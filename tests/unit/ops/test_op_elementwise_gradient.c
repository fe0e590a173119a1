/* SPDX-License-Identifier: Apache-2.0
 * Gradients of the element-wise ops against differences. */
#include <criterion/criterion.h>

#include "harness/gradcheck.h"

#define UNARY(op, center)                                                                          \
    static tp_node_id build_##op(tp_graph *g, const tp_node_id *in)                                \
    {                                                                                              \
        return tp_op_##op(g, in[0]);                                                               \
    }                                                                                              \
    Test(op_elementwise_gradient, op)                                                              \
    {                                                                                              \
        tp_gradcheck(                                                                              \
            (tp_gradcheck_case){.build = build_##op, .shapes = {"[5,7]"}, .middle = center});      \
    }
UNARY(abs, 0)
UNARY(negate, 0)
UNARY(exponential, 0)
UNARY(exponential_minus_one, 0)
UNARY(log, 1.5)
UNARY(log_plus_one, 0.25)
UNARY(sqrt, 1.5)
UNARY(rsqrt, 1.5)
UNARY(cbrt, 1.5)
UNARY(tanh, 0)
UNARY(logistic, 0)
UNARY(erf, 0)
UNARY(sine, 0)
UNARY(cosine, 0)

#define BINARY(op, center)                                                                         \
    static tp_node_id build_##op(tp_graph *g, const tp_node_id *in)                                \
    {                                                                                              \
        return tp_op_##op(g, in[0], in[1]);                                                        \
    }                                                                                              \
    Test(op_elementwise_gradient, op)                                                              \
    {                                                                                              \
        tp_gradcheck((tp_gradcheck_case){                                                          \
            .build = build_##op, .shapes = {"[3,7]", "[3,7]"}, .middle = center});                 \
    }                                                                                              \
    Test(op_elementwise_gradient, op##_broadcast)                                                  \
    {                                                                                              \
        tp_gradcheck((tp_gradcheck_case){                                                          \
            .build = build_##op, .shapes = {"[3,1]", "[4,1,5]"}, .middle = center});               \
    }
BINARY(add, 0)
BINARY(subtract, 0)
BINARY(multiply, 0)
BINARY(divide, 1.5)
BINARY(maximum, 0)
BINARY(minimum, 0)
BINARY(power, 1.5)

/* The quotient stays close to 3.5, away from integers. */
static tp_node_id build_remainder(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id a = tp_op_add_scalar(g, tp_op_multiply_scalar(g, in[0], 0.5), 3.5);
    return tp_op_remainder(g, a, tp_op_add_scalar(g, tp_op_multiply_scalar(g, in[1], 0.5), 1.0));
}
Test(op_elementwise_gradient, remainder)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_remainder, .shapes = {"[4]", "[4]"}});
}

static tp_node_id build_select(tp_graph *g, const tp_node_id *in)
{
    return tp_op_select(g, tp_op_compare(g, "GT", in[0], in[1]), tp_op_sine(g, in[1]), in[2]);
}
Test(op_elementwise_gradient, select)
{
    tp_gradcheck((tp_gradcheck_case){
        .build = build_select, .shapes = {"[3,4]", "[3,4]", "[3,4]"}, .without_inputs = 1});
}

static tp_node_id build_clamp(tp_graph *g, const tp_node_id *in)
{
    return tp_op_clamp(g, in[0], in[1], in[2]);
}
Test(op_elementwise_gradient, clamp)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_clamp, .shapes = {"[11]", "[11]", "[11]"}});
}

static tp_node_id build_steps(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id rounded = tp_op_add(g, tp_op_floor(g, in[0]), tp_op_ceil(g, in[0]));
    return tp_op_add(g, tp_op_round_nearest_even(g, in[0]),
                     tp_op_add(g, rounded, tp_op_sign(g, in[0])));
}
Test(op_elementwise_gradient, steps_have_none)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_steps, .shapes = {"[4]"}, .without_inputs = 1});
}

/* x * x through bf16: the gradient is rounded, too, so the tolerance is that of bf16. */
static tp_node_id build_convert(tp_graph *g, const tp_node_id *in)
{
    const tp_node_id narrow = tp_op_convert(g, in[0], TP_BF16);
    return tp_op_convert(g, tp_op_multiply(g, narrow, narrow), TP_F32);
}
Test(op_elementwise_gradient, convert)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_convert, .shapes = {"[4]"}, .tolerance = 0.15});
}
