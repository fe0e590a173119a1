/* SPDX-License-Identifier: Apache-2.0
 * Windows and their gradients: bits against tests/golden/gen_ops.py, gradients against differences.
 */
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "golden/ops.h"

static const int64_t x_dims[] = {2, 5, 4, 3}, y_dims[] = {2, 3, 4, 3};
static const tp_window window = {.size = {3, 2}, .strides = {2, 1}, .padding = {1, 1, 0, 1}};

/* NaN, infinities and zeros of both signs in place of elements 0, 7, 14, 21, 28: see gen_ops.py. */
static void make_special(float *x)
{
    const float specials[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
    for (int i = 0; i < 5; i++)
        x[7 * i] = specials[i];
}

Test(op_window, bits)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id x = graph_run_input(&run, TP_F32, 10, 4, x_dims);
    const tp_node_id dy = graph_run_input(&run, TP_F32, 11, 4, y_dims);
    const tp_shape shape = tp_graph_node(g, x)->shape;
    graph_run_expect_bits(&run, tp_op_reduce_window(g, x, "add", &window), golden_window_add, 72);
    graph_run_expect_bits(&run, tp_op_reduce_window(g, x, "max", &window), golden_window_max, 72);
    graph_run_expect_bits(&run, tp_op_select_and_scatter(g, x, dy, &window), golden_window_scatter,
                          120);
    graph_run_expect_bits(&run, tp_op_reduce_window_grad(g, dy, shape, &window), golden_window_grad,
                          120);
    graph_run_end(&run);
}

Test(op_window, nan_infinity_and_zeros)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id x = graph_run_input(&run, TP_F32, 10, 4, x_dims);
    const tp_node_id dy = graph_run_input(&run, TP_F32, 11, 4, y_dims);
    make_special(run.data[0]);
    graph_run_expect_bits(&run, tp_op_reduce_window(g, x, "max", &window),
                          golden_window_max_special, 72);
    graph_run_expect_bits(&run, tp_op_select_and_scatter(g, x, dy, &window),
                          golden_window_scatter_special, 120);
    graph_run_end(&run);
}

static float scattered(const float *elements, int at)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_window pair = {.size = {1, 4}, .strides = {1, 4}};
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 4, (int64_t[]){1, 1, 4, 1});
    const tp_node_id dy = graph_run_input(&run, TP_F32, 1, 4, (int64_t[]){1, 1, 1, 1});
    memcpy(run.data[0], elements, 16);
    *(float *)run.data[1] = 3.0f;
    const tp_host_tensor *d =
        graph_run_eval(&run, tp_op_select_and_scatter(run.graph, x, dy, &pair));
    const float value = ((const float *)d->data)[at];
    graph_run_end(&run);
    return value;
}

Test(op_window, first_largest_takes_all)
{
    cr_assert(scattered((float[]){1, 2, 2, 1}, 1) == 3.0f);
    cr_assert(scattered((float[]){1, 2, 2, 1}, 2) == 0.0f);
    cr_assert(scattered((float[]){-0.0f, 0.0f, 0.0f, -1}, 1) == 3.0f);
    cr_assert(scattered((float[]){9, NAN, NAN, 9}, 1) == 3.0f);
    cr_assert(scattered((float[]){-INFINITY, -INFINITY, -INFINITY, -INFINITY}, 0) == 3.0f);
}

static tp_node_id build_add(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_reduce_window(graph, in[0], "add", &window);
}

static tp_node_id build_max(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_reduce_window(graph, in[0], "max", &window);
}

Test(op_window, gradients)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_add, .shapes = {"[2,5,4,3]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_max, .shapes = {"[2,5,4,3]"}});
}

/* bf16 windows are summed in f32 and rounded once, gradients too. */
Test(op_window, bf16)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_window row = {.size = {1, 4}, .strides = {1, 1}};
    const tp_node_id x = graph_run_input(&run, TP_BF16, 1, 4, (int64_t[]){1, 1, 4, 1});
    for (int i = 0; i < 4; i++)
        ((tp_bf16 *)run.data[0])[i] = tp_bf16_from_f32(i ? 1.0f : 256.0f);
    const tp_host_tensor *y = graph_run_eval(&run, tp_op_reduce_window(g, x, "add", &row));
    cr_assert(y->dtype == TP_BF16 && tp_bf16_to_f32(*(const tp_bf16 *)y->data) == 260.0f);
    const tp_node_id dy = graph_run_input(&run, TP_BF16, 2, 4, (int64_t[]){1, 1, 1, 1});
    const tp_node_id d = tp_op_select_and_scatter(g, x, dy, &row);
    cr_assert(tp_graph_node(g, d)->dtype == TP_BF16);
    const tp_bf16 expected = *(const tp_bf16 *)run.data[1];
    cr_assert(*(const tp_bf16 *)graph_run_eval(&run, d)->data == expected);
    graph_run_end(&run);
}

Test(op_window, mistakes)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 4, x_dims);
    const tp_node_id dy = graph_run_input(&run, TP_F32, 1, 4, x_dims);
    tp_op_select_and_scatter(run.graph, x, dy, &window);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, "the windows are [2,3,4,3]");
    graph_run_end(&run);

    graph_run_begin(&run);
    const tp_window tall = {.size = {6, 1}, .strides = {1, 1}};
    const tp_node_id small = graph_run_input(&run, TP_F32, 1, 4, x_dims);
    tp_op_reduce_window(run.graph, small, "max", &tall);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, "does not fit into 5");
    graph_run_end(&run);
}
