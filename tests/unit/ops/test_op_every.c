/* SPDX-License-Identifier: Apache-2.0
 * The ops that the other op tests do not bring to a device, in graphs small enough for a simulator: each
 * compared with the interpreter, bit by bit. tools/coverage shows what is still missing. */
#include <criterion/criterion.h>

#include "harness/program_run.h"

#include "graph/builder.h"
#include "ops/registry.h"

TestSuite(op_every, .timeout = 300);

static tp_graph *begin(void)
{
    tp_graph *graph = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    return graph;
}

static void end(tp_graph *graph)
{
    cr_assert_eq(tp_graph_check(graph), TPUCL_OK, "%s", tpucl_last_error()->message);
    program_run_expect_equal(graph, &(program_run_options){.cores = 2, .seed = 4});
    tp_graph_destroy(graph);
}

Test(op_every, sources)
{
    tp_graph *g = begin();
    const tp_shape shape = {2, {3, 5}};
    const float data[] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15};
    const tp_variable weight = {.name = "w",
                                .dtype = TP_F32,
                                .shape = shape,
                                .init = TP_INIT_UNIFORM,
                                .init_a = -1,
                                .init_b = 1,
                                .is_trainable = true,
                                .is_model = true};
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape);
    const tp_node_id w = tp_graph_add_variable(g, &weight);
    const tp_node_id c = tp_op_constant(g, TP_F32, shape, data);
    const tp_node_id step = tp_op_convert(g, tp_op_step(g), TP_F32);
    const tp_node_id numbers = tp_op_iota(g, TP_F32, shape, 1);
    const tp_node_id sum = tp_op_add(g, tp_op_multiply(g, x, w), tp_op_add(g, c, numbers));
    tp_graph_add_output(g, "y", tp_op_stop_gradient(g, tp_op_add(g, sum, step)));
    tp_graph_add_update(g, w, tp_op_add(g, w, tp_op_all_reduce(g, sum)));
    end(g);
}

Test(op_every, shapes)
{
    static const int64_t swap[] = {1, 0}, start[] = {1, 0}, limit[] = {4, 5}, strides[] = {2, 1},
                         low[] = {1, 0}, high[] = {0, 2}, axes[] = {0, 2}, last[] = {1};
    tp_graph *g = begin();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){2, {4, 5}});
    const tp_node_id parts[] = {x, x};
    tp_graph_add_output(g, "broadcast_in_dim",
                        tp_op_broadcast_in_dim(g, x, (tp_shape){3, {4, 3, 5}}, axes));
    tp_graph_add_output(g, "reshape", tp_op_reshape(g, x, (tp_shape){2, {2, 10}}));
    tp_graph_add_output(g, "transpose", tp_op_transpose(g, x, swap));
    tp_graph_add_output(g, "slice", tp_op_slice(g, x, start, limit, strides));
    tp_graph_add_output(g, "pad", tp_op_pad(g, x, tp_op_scalar(g, TP_F32, 2), low, high, NULL));
    tp_graph_add_output(g, "concatenate", tp_op_concatenate(g, parts, 2, 1));
    tp_graph_add_output(g, "reverse", tp_op_reverse(g, x, last, 1));
    end(g);
}

Test(op_every, reductions_and_windows)
{
    static const int64_t rows[] = {1};
    static const char *const kinds[] = {"add", "max", "min", "multiply"};
    const tp_window window = {.size = {2, 2}, .strides = {1, 2}};
    tp_graph *g = begin();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){2, {4, 35}});
    const tp_node_id image = tp_graph_add_input(g, "image", TP_F32, (tp_shape){4, {1, 4, 6, 2}});
    const tp_node_id d = tp_graph_add_input(g, "d", TP_F32, (tp_shape){4, {1, 3, 3, 2}});
    for (int i = 0; i < 4; ++i)
        tp_graph_add_output(g, kinds[i], tp_op_reduce(g, x, kinds[i], rows, 1));
    tp_graph_add_output(g, "argmax", tp_op_argmax(g, x, 1));
    tp_graph_add_output(g, "argmin", tp_op_argmin(g, x, 0));
    tp_graph_add_output(g, "window max", tp_op_reduce_window(g, image, "max", &window));
    tp_graph_add_output(g, "window add", tp_op_reduce_window(g, image, "add", &window));
    tp_graph_add_output(g, "scatter", tp_op_select_and_scatter(g, image, d, &window));
    tp_graph_add_output(g, "spread",
                        tp_op_reduce_window_grad(g, d, (tp_shape){4, {1, 4, 6, 2}}, &window));
    end(g);
}

Test(op_every, products)
{
    const tp_window window = {.strides = {1, 1}, .padding = {1, 0, 0, 1}};
    const tp_shape image_shape = {4, {2, 4, 3, 2}}, filter_shape = {4, {2, 2, 2, 3}};
    tp_graph *g = begin();
    const tp_node_id a = tp_graph_add_input(g, "a", TP_F32, (tp_shape){2, {3, 7}});
    const tp_node_id b = tp_graph_add_input(g, "b", TP_F32, (tp_shape){2, {7, 5}});
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, image_shape);
    const tp_node_id w = tp_graph_add_input(g, "w", TP_F32, filter_shape);
    const tp_node_id y = tp_op_convolution(g, x, w, &window, "default");
    tp_graph_add_output(g, "dot_general", tp_op_matmul(g, a, b, "default"));
    tp_graph_add_output(g, "convolution", y);
    tp_graph_add_output(g, "input_grad",
                        tp_op_convolution_input_grad(g, y, w, image_shape, &window, "default"));
    tp_graph_add_output(g, "filter_grad",
                        tp_op_convolution_filter_grad(g, x, y, filter_shape, &window, "default"));
    end(g);
}
