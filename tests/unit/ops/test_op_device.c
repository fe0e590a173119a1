/* SPDX-License-Identifier: Apache-2.0
 * Every element-wise and random op in every dtype that it takes: compiled, run on the default device, and
 * compared with the host's evaluation, bit by bit, on values that matter (zeros of both signs, infinities,
 * NaN, ends of ranges, ties) and on plain ones. Operands depend on an input, so that nothing is folded. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "harness/program_run.h"

#include "graph/builder.h"
#include "num/bf16.h"
#include "ops/registry.h"

#define SPECIALS 24
#define ELEMS (SPECIALS * SPECIALS)

TestSuite(op_device, .timeout = 300);

static const float special_floats[SPECIALS] = {
    0.0f,          -0.0f,          1.0f,          -1.0f,          0.5f,      -2.5f,
    3.5f,          3.4028235e38f,  -1e38f,        1.1754944e-38f, -1.5e-38f, 8388607.5f,
    2147483648.0f, -2147483648.0f, 4294967296.0f, 255.5f,         INFINITY,  -INFINITY,
    NAN,           1e-30f,         -1e-20f,       0.1f,           88.7f,     -3.14159f};
static const uint32_t special_ints[SPECIALS] = {
    0u,          1u,          2u,          3u,          7u,          0xffffffffu,
    0xfffffffeu, 0xfffffff9u, 0x7fffffffu, 0x80000000u, 0x80000001u, 255u,
    256u,        257u,        16777216u,   16777217u,   16777219u,   33554435u,
    0xfeffffffu, 123456789u,  0x00ff00ffu, 65535u,      1000u,       0xaaaaaaaau};

typedef struct ops_graph {
    tp_graph *graph;
    tp_node_id mask; /* true everywhere, as no compiler can know */
} ops_graph;

static ops_graph begin(void)
{
    ops_graph g;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &g.graph), TPUCL_OK);
    const tp_node_id x = tp_graph_add_input(g.graph, "x", TP_F32, (tp_shape){1, {ELEMS}});
    g.mask = tp_op_compare(g.graph, "LT", x, tp_op_scalar(g.graph, TP_F32, 1e30));
    return g;
}

static void end(ops_graph *g)
{
    cr_assert_eq(tp_graph_check(g->graph), TPUCL_OK, "%s", tpucl_last_error()->message);
    program_run_expect_equal(g->graph, &(program_run_options){.cores = 2, .steps = 2, .seed = 3});
    tp_graph_destroy(g->graph);
}

static void output(ops_graph *g, const char *op, tp_node_id node)
{
    char name[64];
    snprintf(name, sizeof name, "%s to %s", op,
             node == TP_NO_NODE ? "?" : tp_dtype_name(g->graph->nodes[node].dtype));
    tp_graph_add_output(g->graph, name, node);
}

/* Element i is special value i / SPECIALS (left) or i % SPECIALS (right): all pairs. */
static tp_node_id operand(ops_graph *g, tp_dtype dtype, bool is_left)
{
    union {
        float f32[ELEMS];
        tp_bf16 bf16[ELEMS];
        uint32_t u32[ELEMS];
        uint8_t u8[ELEMS];
    } data;
    for (int i = 0; i < ELEMS; ++i) {
        const int at = is_left ? i / SPECIALS : i % SPECIALS;
        if (dtype == TP_F32)
            data.f32[i] = tp_flush(special_floats[at]);
        else if (dtype == TP_BF16)
            data.bf16[i] = tp_bf16_from_f32(special_floats[at]);
        else if (tp_dtype_size(dtype) == 4)
            data.u32[i] = special_ints[at];
        else
            data.u8[i] =
                (uint8_t)(dtype == TP_PRED ? special_ints[at] & 1u : special_ints[at] >> 1);
    }
    const tp_shape shape = {1, {ELEMS}};
    const tp_node_id value = tp_op_constant(g->graph, dtype, shape, &data);
    const tp_node_id other = tp_op_fill(g->graph, dtype, shape, 1);
    return tp_op_select(g->graph, g->mask, value, other);
}

#define UNARY(op) output(&g, #op, tp_op_##op(g.graph, a));
#define BINARY(op) output(&g, #op, tp_op_##op(g.graph, a, b));
#define FLOAT_UNARY_OPS(X)                                                                         \
    X(abs);                                                                                        \
    X(negate);                                                                                     \
    X(sign);                                                                                       \
    X(exponential);                                                                                \
    X(exponential_minus_one);                                                                      \
    X(log);                                                                                        \
    X(log_plus_one);                                                                               \
    X(sqrt);                                                                                       \
    X(rsqrt);                                                                                      \
    X(cbrt);                                                                                       \
    X(tanh);                                                                                       \
    X(logistic);                                                                                   \
    X(erf);                                                                                        \
    X(sine);                                                                                       \
    X(cosine);                                                                                     \
    X(floor);                                                                                      \
    X(ceil);                                                                                       \
    X(round_nearest_even);                                                                         \
    X(is_finite)

static void compare_all(ops_graph *g, tp_node_id a, tp_node_id b)
{
    static const char *const directions[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    const int count = g->graph->nodes[a].dtype == TP_PRED ? 2 : 6;
    for (int i = 0; i < count; ++i)
        output(g, directions[i], tp_op_compare(g->graph, directions[i], a, b));
}

static void float_unary(tp_dtype dtype)
{
    ops_graph g = begin();
    const tp_node_id a = operand(&g, dtype, true);
    FLOAT_UNARY_OPS(UNARY);
    end(&g);
}

static void float_binary(tp_dtype dtype)
{
    ops_graph g = begin();
    const tp_node_id a = operand(&g, dtype, true), b = operand(&g, dtype, false);
    BINARY(add);
    BINARY(subtract);
    BINARY(multiply);
    BINARY(divide);
    BINARY(maximum);
    BINARY(minimum);
    BINARY(power);
    BINARY(remainder);
    output(&g, "clamp", tp_op_clamp(g.graph, b, a, tp_op_scalar(g.graph, dtype, 2)));
    output(&g, "select", tp_op_select(g.graph, tp_op_compare(g.graph, "LT", a, b), a, b));
    compare_all(&g, a, b);
    end(&g);
}

static void integer(tp_dtype dtype)
{
    ops_graph g = begin();
    const tp_node_id a = operand(&g, dtype, true), b = operand(&g, dtype, false);
    BINARY(add);
    BINARY(subtract);
    BINARY(multiply);
    BINARY(divide);
    BINARY(remainder);
    BINARY(maximum);
    BINARY(minimum);
    BINARY(and);
    BINARY(or);
    BINARY(xor);
    UNARY(not );
    if (dtype == TP_S32) {
        UNARY(abs);
        UNARY(negate);
        UNARY(sign);
    }
    output(&g, "clamp", tp_op_clamp(g.graph, b, a, tp_op_scalar(g.graph, dtype, 7)));
    output(&g, "select", tp_op_select(g.graph, tp_op_compare(g.graph, "LT", a, b), a, b));
    compare_all(&g, a, b);
    end(&g);
}

Test(op_device, f32_unary)
{
    float_unary(TP_F32);
}

Test(op_device, bf16_unary)
{
    float_unary(TP_BF16);
}

Test(op_device, f32_binary)
{
    float_binary(TP_F32);
}

Test(op_device, bf16_binary)
{
    float_binary(TP_BF16);
}

Test(op_device, s32)
{
    integer(TP_S32);
}

Test(op_device, u32)
{
    integer(TP_U32);
}

Test(op_device, pred_and_u8)
{
    ops_graph g = begin();
    tp_node_id a = operand(&g, TP_PRED, true), b = operand(&g, TP_PRED, false);
    BINARY(and);
    BINARY(or);
    BINARY(xor);
    UNARY(not );
    compare_all(&g, a, b);
    output(&g, "select", tp_op_select(g.graph, a, b, tp_op_not(g.graph, b)));
    end(&g);

    g = begin();
    a = operand(&g, TP_U8, true), b = operand(&g, TP_U8, false);
    output(&g, "select", tp_op_select(g.graph, tp_op_compare(g.graph, "LT", a, b), a, b));
    compare_all(&g, a, b);
    end(&g);
}

Test(op_device, convert_from_all_to_all)
{
    for (int from = 0; from < TP_DTYPE_COUNT; ++from) {
        ops_graph g = begin();
        const tp_node_id a = operand(&g, (tp_dtype)from, true);
        for (int to = 0; to < TP_DTYPE_COUNT; ++to) {
            if (from == to) continue;
            const tp_node_id y = tp_op_convert(g.graph, a, (tp_dtype)to);
            output(&g, tp_dtype_name((tp_dtype)from), y);
            /* once more inside the kernel, where no store cuts bits off */
            char name[32];
            snprintf(name, sizeof name, "%s to %s and on", tp_dtype_name((tp_dtype)from),
                     tp_dtype_name((tp_dtype)to));
            output(&g, name, tp_op_convert(g.graph, y, to == TP_F32 ? TP_S32 : TP_F32));
        }
        end(&g);
    }
}

Test(op_device, random)
{
    ops_graph g = begin();
    const tp_shape shape = {2, {37, 9}};
    output(&g, "uniform", tp_op_uniform(g.graph, TP_F32, shape, 4));
    output(&g, "uniform", tp_op_uniform(g.graph, TP_BF16, shape, 4));
    output(&g, "normal", tp_op_normal(g.graph, TP_F32, shape, 0));
    output(&g, "normal", tp_op_normal(g.graph, TP_BF16, shape, 2147483647));
    output(&g, "bernoulli", tp_op_bernoulli(g.graph, shape, 0.3, 9));
    output(&g, "random_bits", tp_op_random_bits(g.graph, shape, 2147483647));
    end(&g);
}

/* All pairs of special values and words; and inside the kernel, where no store cuts bits off. */
Test(op_device, stochastic_round)
{
    ops_graph g = begin();
    const tp_node_id y =
        tp_op_stochastic_round(g.graph, operand(&g, TP_F32, true), operand(&g, TP_U32, false));
    output(&g, "stochastic_round", y);
    output(&g, "stochastic_round and on", tp_op_convert(g.graph, y, TP_F32));
    end(&g);

    g = begin();
    const tp_shape shape = {2, {37, 9}};
    output(&g, "by chance",
           tp_op_stochastic_round(g.graph, tp_op_normal(g.graph, TP_F32, shape, 3),
                                  tp_op_random_bits(g.graph, shape, 4)));
    end(&g);
}
