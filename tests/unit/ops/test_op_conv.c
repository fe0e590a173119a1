/* SPDX-License-Identifier: Apache-2.0
 * Convolution and its gradients: bits against tests/golden/gen_ops.py, gradients against differences.
 */
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "golden/ops.h"
#include "graph/geometry.h"

typedef struct conv_case {
    int64_t x[4], w[4], y[4];
    tp_window window;
    const char *precision;
    const uint32_t *forward, *input_grad, *filter_grad;
} conv_case;

#define CASE(name)                                                                                 \
    golden_conv_##name, golden_conv_##name##_input_grad, golden_conv_##name##_filter_grad

static const conv_case cases[] = {
    {{2, 5, 6, 3}, {3, 2, 3, 4}, {2, 3, 5, 4}, {.strides = {1, 1}}, "default", CASE(plain)},
    {{1, 7, 6, 2},
     {3, 3, 2, 3},
     {1, 4, 2, 3},
     {.strides = {2, 3}, .padding = {1, 2, 0, 1}},
     "highest",
     CASE(strided)},
    {{1, 8, 9, 1},
     {2, 3, 1, 2},
     {1, 3, 9, 2},
     {.strides = {2, 1}, .padding = {1, 0, 3, 1}, .dilation = {3, 2}},
     "f32",
     CASE(dilated)},
    {{1, 4, 4, 20},
     {3, 3, 20, 2},
     {1, 4, 4, 2},
     {.strides = {1, 1}, .padding = {1, 1, 1, 1}},
     "default",
     CASE(wide)},
    {{2, 4, 5, 6},
     {3, 2, 3, 4},
     {2, 3, 3, 4},
     {.strides = {1, 2}, .padding = {1, 0, 0, 1}, .groups = 2},
     "default",
     CASE(groups)},
    {{1, 6, 5, 3},
     {3, 3, 1, 3},
     {1, 3, 5, 3},
     {.strides = {2, 1}, .padding = {1, 1, 1, 1}, .groups = 3},
     "f32",
     CASE(depthwise)},
    {{1, 5, 5, 2},
     {2, 2, 1, 6},
     {1, 4, 5, 6},
     {.strides = {1, 1}, .padding = {0, 1, 1, 0}, .dilation = {2, 1}, .groups = 2},
     "high",
     CASE(multiplier)},
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

static int64_t elems(const int64_t *dims)
{
    return dims[0] * dims[1] * dims[2] * dims[3];
}

static tp_shape shape(const int64_t *dims)
{
    return (tp_shape){.rank = 4, .dims = {dims[0], dims[1], dims[2], dims[3]}};
}

static void check_case(const conv_case *c)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id x = graph_run_input(&run, TP_F32, 5, 4, c->x);
    const tp_node_id w = graph_run_input(&run, TP_F32, 6, 4, c->w);
    const tp_node_id dy = graph_run_input(&run, TP_F32, 7, 4, c->y);
    const tp_window *window = &c->window;
    graph_run_expect_bits(&run, tp_op_convolution(g, x, w, window, c->precision), c->forward,
                          elems(c->y));
    graph_run_expect_bits(&run,
                          tp_op_convolution_input_grad(g, dy, w, shape(c->x), window, c->precision),
                          c->input_grad, elems(c->x));
    graph_run_expect_bits(
        &run, tp_op_convolution_filter_grad(g, x, dy, shape(c->w), window, c->precision),
        c->filter_grad, elems(c->w));
    graph_run_end(&run);
}

Test(op_conv, bits)
{
    for (int i = 0; i < CASE_COUNT; i++)
        check_case(&cases[i]);
}

static tp_node_id build_plain(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_convolution(graph, in[0], in[1], &cases[0].window, "f32");
}

static tp_node_id build_strided(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_convolution(graph, in[0], in[1], &cases[1].window, "f32");
}

static tp_node_id build_dilated(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_convolution(graph, in[0], in[1], &cases[2].window, "f32");
}

static const tp_window grouped = {.strides = {2, 1}, .padding = {1, 1, 0, 1}, .groups = 2};

static tp_node_id build_grouped(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_convolution(graph, in[0], in[1], &grouped, "f32");
}

static tp_node_id build_grouped_transposed(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_convolution_input_grad(graph, in[0], in[1], shape((int64_t[]){1, 5, 4, 2}),
                                        &grouped, "f32");
}

/* The transposed convolution: images [1,7,6,2] from a gradient [1,3,3,2] with strides 3 and 2, unevenly
 * padded. */
static const tp_window transposed = {.strides = {3, 2}, .padding = {1, 1, 0, 1}};

static tp_node_id build_transposed(tp_graph *graph, const tp_node_id *in)
{
    return tp_op_convolution_input_grad(graph, in[0], in[1], shape((int64_t[]){1, 7, 6, 2}),
                                        &transposed, "f32");
}

Test(op_conv, gradients)
{
    tp_gradcheck(
        (tp_gradcheck_case){.build = build_transposed, .shapes = {"[1,3,3,2]", "[3,3,2,2]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_grouped, .shapes = {"[1,5,4,4]", "[3,2,2,4]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_grouped_transposed,
                                     .shapes = {"[1,3,4,4]", "[3,2,1,4]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_plain, .shapes = {"[2,4,3,2]", "[3,2,2,2]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_strided, .shapes = {"[1,7,6,2]", "[3,3,2,1]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_dilated, .shapes = {"[1,8,9,1]", "[2,3,1,2]"}});
}

/* A position that does not exist multiplies by +0, so an infinite weight shows there as NaN. */
Test(op_conv, padding_multiplies)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 5, 4, (int64_t[]){1, 1, 1, 1});
    const tp_node_id w = graph_run_input(&run, TP_F32, 6, 4, (int64_t[]){1, 2, 1, 1});
    ((float *)run.data[0])[0] = 1.0f;
    ((float *)run.data[1])[0] = 2.0f;
    ((float *)run.data[1])[1] = INFINITY;
    const tp_window window = {.strides = {1, 1}, .padding = {0, 0, 0, 1}};
    const tp_host_tensor *y =
        graph_run_eval(&run, tp_op_convolution(run.graph, x, w, &window, "default"));
    cr_assert(isnan(*(const float *)y->data));
    graph_run_end(&run);
}

static void expect_refused(const int64_t *x_dims, int x_rank, const int64_t *w_dims,
                           const tp_window *window, const char *part)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 5, x_rank, x_dims);
    const tp_node_id w = graph_run_input(&run, TP_F32, 6, 4, w_dims);
    tp_op_convolution(run.graph, x, w, window, "default");
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, part);
    graph_run_end(&run);
}

Test(op_conv, mistakes)
{
    const tp_window plain = {.strides = {1, 1}}, still = {.strides = {0, 1}};
    const int64_t x[] = {1, 4, 4, 2}, w[] = {3, 3, 2, 1}, channels[] = {3, 3, 3, 1};
    const int64_t tall[] = {5, 3, 2, 1};
    expect_refused(x, 3, w, &plain, "[images,height,width,channels]");
    expect_refused(x, 4, channels, &plain, "have 2 channels");
    expect_refused(x, 4, tall, &plain, "does not fit");
    expect_refused(x, 4, w, &still, "window_strides");
    const tp_window three = {.strides = {1, 1}, .groups = 3},
                    two = {.strides = {1, 1}, .groups = 2};
    const tp_window negative = {.strides = {1, 1}, .groups = -1};
    const int64_t even[] = {3, 3, 2, 4};
    expect_refused(x, 4, even, &three, "has to divide");
    expect_refused(x, 4, w, &two, "has to divide");
    expect_refused(x, 4, even, &two, "have 1 channels a group");
    expect_refused(x, 4, even, &negative, "feature_group_count is -1");
}

Test(op_conv, gradient_of_another_shape_is_refused)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_window window = {.strides = {1, 1}};
    const tp_node_id d = graph_run_input(&run, TP_F32, 5, 4, (int64_t[]){1, 3, 2, 1});
    const tp_node_id w = graph_run_input(&run, TP_F32, 6, 4, (int64_t[]){3, 3, 2, 1});
    tp_op_convolution_input_grad(run.graph, d, w, shape((int64_t[]){1, 4, 4, 2}), &window,
                                 "default");
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, "expected [1,2,2,1]");
    graph_run_end(&run);
}

/* TensorFlow's SAME: ceil(size / stride) windows, the odd cell at the end. */
Test(op_conv, same_padding)
{
    static const int64_t rows[][6] = {/* size, window, stride, dilation, low, high */
                                      {28, 3, 1, 1, 1, 1}, {28, 3, 2, 1, 0, 1}, {28, 2, 2, 1, 0, 0},
                                      {7, 2, 2, 1, 0, 1},  {5, 5, 1, 1, 2, 2},  {9, 3, 1, 2, 2, 2},
                                      {4, 1, 3, 1, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t low, high;
        tp_geometry_same_padding(rows[i][0], rows[i][1], rows[i][2], rows[i][3], &low, &high);
        cr_assert(low == rows[i][4] && high == rows[i][5], "row %zu: %lld, %lld", i, (long long)low,
                  (long long)high);
    }
}
