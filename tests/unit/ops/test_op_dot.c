/* SPDX-License-Identifier: Apache-2.0
 * dot_general: bits against tests/golden/gen_ops.py, gradients against differences, mistakes.
 */
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "golden/ops.h"
#include "graph/attrs.h"
#include "graph/geometry.h"

static void check_matmul(const char *precision, int64_t m, int64_t n, int64_t k,
                         const uint32_t *golden)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id a = graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){m, k});
    const tp_node_id b = graph_run_input(&run, TP_F32, 2, 2, (int64_t[]){k, n});
    graph_run_expect_bits(&run, tp_op_matmul(run.graph, a, b, precision), golden, m * n);
    graph_run_end(&run);
}

Test(op_dot, precisions)
{
    check_matmul("default", 3, 5, 300, golden_dot_default_300);
    check_matmul("high", 3, 5, 300, golden_dot_high_300);
    check_matmul("highest", 3, 5, 300, golden_dot_highest_300);
    check_matmul("f32", 3, 5, 300, golden_dot_f32_300);
}

Test(op_dot, more_than_two_blocks)
{
    check_matmul("default", 1, 2, 16500, golden_dot_default_16500);
}

static const tp_dot_dims batched = {.lhs_batch = {1, 0},
                                    .rhs_batch = {4, 3},
                                    .lhs_contract = {4, 2},
                                    .rhs_contract = {0, 1},
                                    .batch_count = 2,
                                    .contract_count = 2};

Test(op_dot, batching_and_contracting_dimensions_in_any_order)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id a = graph_run_input(&run, TP_F32, 3, 5, (int64_t[]){2, 5, 3, 4, 6});
    const tp_node_id b = graph_run_input(&run, TP_F32, 4, 5, (int64_t[]){6, 3, 7, 2, 5});
    const tp_node_id c = tp_op_dot_general(run.graph, a, b, &batched, "default");
    graph_run_expect_bits(&run, c, golden_dot_batched, 5 * 2 * 4 * 7);
    const tp_shape expected = {.rank = 4, .dims = {5, 2, 4, 7}};
    cr_assert(tp_shape_equal(&tp_graph_node(run.graph, c)->shape, &expected));
    graph_run_end(&run);
}

/* bf16 operands are what f32 operands are rounded to. */
Test(op_dot, bf16_operands_give_the_same_bits)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id a = graph_run_input(&run, TP_BF16, 1, 2, (int64_t[]){3, 300});
    const tp_node_id b = graph_run_input(&run, TP_BF16, 2, 2, (int64_t[]){300, 5});
    graph_run_expect_bits(&run, tp_op_matmul(run.graph, a, b, "default"), golden_dot_default_300,
                          15);
    graph_run_end(&run);
}

Test(op_dot, empty_sum_is_zero)
{
    static const uint32_t zeros[6];
    check_matmul("default", 2, 3, 0, zeros);
}

static tp_node_id build_batched(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_dot_general(graph, in[0], in[1], &batched, "f32");
}

static tp_node_id build_matmul(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_matmul(graph, in[0], in[1], "f32");
}

Test(op_dot, gradients)
{
    tp_gradcheck(
        (tp_gradcheck_case){.build = build_batched, .shapes = {"[2,2,3,2,2]", "[2,3,3,2,2]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_matmul, .shapes = {"[3,4]", "[4,5]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_matmul, .shapes = {"[2,3,4]", "[4,5]"}});
}

Test(op_dot, gradients_of_a_dense_layer_need_no_transpose)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id a = graph_run_input(&run, TP_F32, 3, 2, (int64_t[]){3, 4});
    const tp_node_id b = graph_run_input(&run, TP_F32, 4, 2, (int64_t[]){4, 5});
    const tp_node_id y = tp_op_matmul(run.graph, a, b, "f32");
    tp_node_id d[2];
    tp_graph_gradients(run.graph, tp_op_reduce(run.graph, y, "add", NULL, 0), (tp_node_id[]){a, b},
                       2, d);
    EXPECT_OK(tp_graph_check(run.graph));
    for (int32_t i = 0; i < run.graph->node_count; i++)
        cr_assert(!tp_node_is(&run.graph->nodes[i], "transpose"));
    graph_run_end(&run);
}

/* The gradient of lhs is stored like lhs; that of rhs, the weights, is not rounded. */
Test(op_dot, gradient_dtypes)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id a = graph_run_input(&run, TP_BF16, 3, 2, (int64_t[]){3, 4});
    const tp_node_id b = graph_run_input(&run, TP_F32, 4, 2, (int64_t[]){4, 5});
    const tp_node_id narrow = tp_op_convert(run.graph, b, TP_BF16);
    const tp_node_id y = tp_op_matmul(run.graph, a, narrow, "default");
    const tp_node_id loss =
        tp_op_reduce(run.graph, tp_op_multiply(run.graph, y, y), "add", NULL, 0);
    tp_node_id gradients[2];
    tp_graph_gradients(run.graph, loss, (tp_node_id[]){a, b}, 2, gradients);
    EXPECT_OK(tp_graph_check(run.graph));
    const tp_node *d_a = tp_graph_node(run.graph, gradients[0]);
    const tp_node *d_b = tp_graph_node(run.graph, gradients[1]);
    cr_assert(d_a->dtype == TP_BF16 && d_b->dtype == TP_F32);
    cr_assert(tp_node_is(d_b, "dot_general"), "the weight's gradient comes from '%s'",
              d_b->def->name);
    graph_run_end(&run);
}

static void expect_refused(const tp_dot_dims *dims, const char *precision, tp_dtype dtype,
                           const char *part)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id a = graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){3, 4});
    const tp_node_id b = graph_run_input(&run, dtype, 2, 2, (int64_t[]){4, 5});
    tp_op_dot_general(run.graph, a, b, dims, precision);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, part);
    graph_run_end(&run);
}

Test(op_dot, mistakes)
{
    const tp_dot_dims good = {.lhs_contract = {1}, .rhs_contract = {0}, .contract_count = 1};
    const tp_dot_dims unequal = {.lhs_contract = {0}, .rhs_contract = {0}, .contract_count = 1};
    const tp_dot_dims outside = {.lhs_contract = {2}, .rhs_contract = {0}, .contract_count = 1};
    const tp_dot_dims twice = {.lhs_contract = {1, 1}, .rhs_contract = {0, 0}, .contract_count = 2};
    const tp_dot_dims both = {.lhs_batch = {1},
                              .rhs_batch = {0},
                              .lhs_contract = {1},
                              .rhs_contract = {0},
                              .batch_count = 1,
                              .contract_count = 1};
    expect_refused(&good, "exact", TP_F32, "precision");
    expect_refused(&good, "default", TP_S32, "operands must be f32 or bf16");
    expect_refused(&unequal, "default", TP_F32, "on the left is 3");
    expect_refused(&outside, "default", TP_F32, "dimension 2");
    expect_refused(&twice, "default", TP_F32, "twice");
    expect_refused(&both, "default", TP_F32, "both batching and contracting");
}

Test(op_dot, strides_of_maps)
{
    const tp_index_map dense = {.count = 3, .sizes = {2, 3, 4}, .strides = {12, 4, 1}};
    const tp_index_map column = {.count = 2, .sizes = {5, 1}, .strides = {7, 99}};
    const tp_index_map torn = {.count = 2, .sizes = {2, 3}, .strides = {1, 2}};
    int64_t stride;
    cr_assert(tp_index_map_stride(&dense, &stride) && stride == 1);
    cr_assert(tp_index_map_stride(&column, &stride) && stride == 7);
    cr_assert(!tp_index_map_stride(&torn, &stride));
    cr_assert(tp_index_map_offset(&torn, 5) == 1 + 4);
    cr_assert(tp_index_map_offset(&dense, 23) == 23);
}
