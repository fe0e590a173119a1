/* SPDX-License-Identifier: Apache-2.0
 * cumulative: bits against tests/golden/gen_order.py, order and rounding, gradients against differences. */
#include "golden/order.h"
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "unit/ops/specials.h"

static const char *const kinds[] = {"add", "multiply", "max", "min"};

/* mode: bit 0 exclusive, bit 1 reverse */
#define GOLDEN(kind)                                                                               \
    {                                                                                              \
        golden_cumulative_##kind##_0, golden_cumulative_##kind##_1, golden_cumulative_##kind##_2,  \
            golden_cumulative_##kind##_3                                                           \
    }
static const uint32_t *const golden[4][4] = {GOLDEN(add), GOLDEN(multiply), GOLDEN(max),
                                             GOLDEN(min)};

Test(op_cumulative, bits)
{
    for (int i = 0; i < 16; ++i) {
        graph_run run;
        graph_run_begin(&run);
        const tp_node_id x = graph_run_input(&run, TP_F32, 40, 3, (int64_t[]){2, 5, 3});
        const int mode = i % 4;
        graph_run_expect_bits(&run,
                              tp_op_cumulative(run.graph, x, kinds[i / 4], 1, mode & 1, mode >> 1),
                              golden[i / 4][mode], 30);
        graph_run_end(&run);
    }
}

Test(op_cumulative, nan_infinity_and_zeros)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 41, 2, (int64_t[]){4, 9});
    make_special(run.data[0], 36);
    graph_run_expect_bits(&run, tp_op_cumulative(run.graph, x, "max", 1, false, false),
                          golden_cumulative_max_special, 36);
    graph_run_end(&run);
}

static float last_of(tp_dtype dtype, const float *elements)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, dtype, 1, 1, (int64_t[]){3});
    for (int i = 0; i < 3; ++i)
        if (dtype == TP_F32)
            ((float *)run.data[0])[i] = elements[i];
        else
            ((tp_bf16 *)run.data[0])[i] = tp_bf16_from_f32(elements[i]);
    const tp_host_tensor *y =
        graph_run_eval(&run, tp_op_cumulative(run.graph, x, "add", 0, false, false));
    const float last = dtype == TP_F32 ? ((const float *)y->data)[2]
                                       : tp_bf16_to_f32(((const tp_bf16 *)y->data)[2]);
    graph_run_end(&run);
    return last;
}

/* Sums on the way are neither flushed nor rounded: 1.5 * 2^-126 - 2^-126 is subnormal, and 256 + 1 no bf16. */
Test(op_cumulative, rounds_only_what_is_stored)
{
    cr_assert_eq(last_of(TP_F32, (float[]){0x1.8p-126f, -0x1p-126f, 0x1p-126f}), 0x1.8p-126f);
    cr_assert_eq(last_of(TP_F32, (float[]){1.0f, 0x1p-24f, 0x1p-24f}), 1.0f);
    cr_assert_eq(last_of(TP_BF16, (float[]){256, 1, 1}), 258.0f);
}

Test(op_cumulative, integers)
{
    const int32_t x[] = {2000000000, 2000000000, -5, 7};
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id a = tp_op_constant(g, TP_S32, (tp_shape){1, {4}}, x);
    const tp_node_id b = tp_op_constant(g, TP_U32, (tp_shape){1, {4}}, x);
    graph_run_expect_bits(&run, tp_op_cumulative(g, a, "add", 0, false, false),
                          (uint32_t[]){2000000000u, 4000000000u, 3999999995u, 4000000002u}, 4);
    graph_run_expect_bits(&run, tp_op_cumulative(g, a, "max", 0, true, false),
                          (uint32_t[]){0x80000000u, 2000000000u, 2000000000u, 2000000000u}, 4);
    graph_run_expect_bits(&run, tp_op_cumulative(g, a, "min", 0, false, true),
                          (uint32_t[]){(uint32_t)-5, (uint32_t)-5, (uint32_t)-5, 7}, 4);
    graph_run_expect_bits(&run, tp_op_cumulative(g, b, "max", 0, true, false),
                          (uint32_t[]){0, 2000000000u, 2000000000u, (uint32_t)-5}, 4);
    graph_run_end(&run);
}

#define BUILD(kind, exclusive, reverse)                                                            \
    static tp_node_id build_##kind##_##exclusive##_##reverse(tp_graph *g, const tp_node_id *in)    \
    {                                                                                              \
        const tp_node_id y = tp_op_cumulative(g, in[0], #kind, 1, exclusive, reverse);             \
        const tp_node_id finite =                                                                  \
            tp_op_clamp(g, tp_op_scalar(g, TP_F32, -9), y, tp_op_scalar(g, TP_F32, 9));            \
        return tp_op_multiply(g, finite, finite);                                                  \
    }
#define BUILD_ALL(kind) BUILD(kind, 0, 0) BUILD(kind, 0, 1) BUILD(kind, 1, 0) BUILD(kind, 1, 1)
BUILD_ALL(add)
BUILD_ALL(multiply)
BUILD_ALL(max)
BUILD_ALL(min)
#define CHECK(kind, exclusive, reverse)                                                            \
    tp_gradcheck((tp_gradcheck_case){.build = build_##kind##_##exclusive##_##reverse,              \
                                     .shapes = {"[2,5,3]"}});
#define CHECK_ALL(kind) CHECK(kind, 0, 0) CHECK(kind, 0, 1) CHECK(kind, 1, 0) CHECK(kind, 1, 1)

Test(op_cumulative, gradients){CHECK_ALL(add) CHECK_ALL(multiply) CHECK_ALL(max) CHECK_ALL(min)}

Test(op_cumulative, mistakes)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 1, (int64_t[]){3});
    tp_op_cumulative(run.graph, x, "add", 1, false, false);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT,
                   "cumulative along axis 1 of a tensor of rank 1");
    graph_run_end(&run);
}
