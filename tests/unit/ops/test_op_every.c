/* SPDX-License-Identifier: Apache-2.0
 * The ops that the other op tests do not bring to a device, in graphs small enough for a simulator: each
 * compared with the interpreter, bit by bit. tools/coverage shows what is still missing. */
#include <criterion/criterion.h>
#include <string.h>

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

/* Longer than what a work-item of a CPU takes of a line, in vectors of channels and one by one, with windows that
 * overlap and padding on both ends. */
Test(op_every, gradient_of_long_lines)
{
    const tp_window window = {.size = {3, 3}, .strides = {2, 2}, .padding = {1, 1, 1, 1}};
    tp_graph *g = begin();
    const tp_node_id image = tp_graph_add_input(g, "image", TP_F32, (tp_shape){4, {1, 5, 150, 17}});
    const tp_node_id d = tp_graph_add_input(g, "d", TP_F32, (tp_shape){4, {1, 3, 75, 17}});
    tp_graph_add_output(g, "scatter", tp_op_select_and_scatter(g, image, d, &window));
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

/* Zeros of both signs must come through, too: x * 0. */
static void check_collectives(int32_t cores, int32_t wave_cores)
{
    const int64_t ring[] = {0, 1, 1, cores > 2 ? 2 : 0};
    tp_graph *g = begin();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){2, {2, 3}});
    const tp_node_id b = tp_graph_add_input(g, "b", TP_BF16, (tp_shape){1, {3}});
    const tp_node_id wide = tp_graph_add_input(g, "wide", TP_F32, (tp_shape){2, {3, 2 * cores}});
    const tp_node_id zeros = tp_op_multiply_scalar(g, x, 0);
    tp_graph_add_output(g, "gather first", tp_op_all_gather(g, x, 0, cores));
    tp_graph_add_output(g, "gather last", tp_op_all_gather(g, zeros, 1, cores));
    tp_graph_add_output(g, "gather bf16", tp_op_all_gather(g, b, 0, cores));
    tp_graph_add_output(g, "scatter", tp_op_reduce_scatter(g, wide, 1, cores));
    tp_graph_add_output(g, "permute", tp_op_collective_permute(g, zeros, ring, 2, cores));
    tp_graph_add_output(g, "permute bf16", tp_op_collective_permute(g, b, ring, 1, cores));
    tp_graph_add_output(g, "sum of all", tp_op_cross_replica_sum(g, x, cores, cores));
    tp_graph_add_output(g, "sum of one", tp_op_cross_replica_sum(g, x, 1, cores));
    if (cores % 2 == 0)
        tp_graph_add_output(g, "sum of two", tp_op_cross_replica_sum(g, zeros, 2, cores));
    const tp_node_id id = tp_op_replica_id(g, cores);
    tp_graph_add_output(g, "id", id);
    tp_graph_add_output(g, "of all", tp_op_all_reduce(g, tp_op_convert(g, id, TP_F32)));
    cr_assert_eq(tp_graph_check(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    program_run_expect_equal(
        g, &(program_run_options){.cores = cores, .wave_cores = wave_cores, .seed = 4});
    tp_graph_destroy(g);
}

Test(op_every, across_cores)
{
    check_collectives(2, 0);
    check_collectives(5, 2);
    check_collectives(3, 1);
    check_collectives(4, 2);
}

Test(op_every, wrong_group_is_refused)
{
    char text[512];
    tp_graph *g = begin();
    tp_graph_add_output(g, "id", tp_op_replica_id(g, 3));
    cr_assert_not(program_run_compare(g, &(program_run_options){.cores = 2}, text, sizeof text));
    cr_assert(strstr(text, "is for replica groups of 3 cores, they have 2"), "%s", text);
    tp_graph_destroy(g);
}

static void accumulate(void *user, tp_graph *g, const tp_node_id *carries, const tp_node_id *slices,
                       tp_node_id *out_next, tp_node_id *out_stacked)
{
    (void)user;
    out_stacked[0] = tp_op_multiply(g, carries[0], slices[0]);
    out_next[0] = tp_op_add(g, carries[0], slices[0]);
}

Test(op_every, loops)
{
    tp_graph *g = begin();
    const tp_node_id xs = tp_graph_add_input(g, "xs", TP_F32, (tp_shape){3, {3, 2, 5}});
    const tp_node_id start = tp_graph_add_input(g, "start", TP_F32, (tp_shape){2, {2, 5}});
    tp_node_id last, stack;
    const tp_scan scan = {.length = 3,
                          .init = &start,
                          .xs = &xs,
                          .carry_count = 1,
                          .xs_count = 1,
                          .stack_count = 1,
                          .body = accumulate};
    tp_op_scan(g, &scan, &last, &stack);
    tp_graph_add_output(g, "last", last);
    tp_graph_add_output(g, "stack", stack);
    end(g);
}
