/* SPDX-License-Identifier: Apache-2.0
 * A small loop and its gradient on the default device. What compiling makes of loops is tested in
 * tests/unit/compile/test_loop.c.
 */
#include <criterion/criterion.h>

#include "harness/program_run.h"

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "ops/registry.h"

static void turn(void *user, tp_graph *g, const tp_node_id *carries, const tp_node_id *slices,
                 tp_node_id *out_next, tp_node_id *out_stacked)
{
    const tp_node_id *u = user;
    out_next[0] =
        tp_op_tanh(g, tp_op_add(g, slices[0], tp_op_matmul(g, carries[0], *u, "default")));
    out_stacked[0] = out_next[0];
}

Test(op_loop_device, loop_and_gradient, .timeout = 300)
{
    tp_graph *g = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &g), TPUCL_OK);
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){3, {3, 2, 5}});
    const tp_node_id h = tp_graph_add_input(g, "h", TP_F32, (tp_shape){2, {2, 5}});
    tp_node_id u = tp_graph_add_input(g, "u", TP_F32, (tp_shape){2, {5, 5}});
    tp_node_id last, stack, d[3];
    const tp_node_id wrt[] = {x, h, u};
    const tp_scan scan = {.length = 3,
                          .reverse = true,
                          .init = &h,
                          .xs = &x,
                          .carry_count = 1,
                          .xs_count = 1,
                          .stack_count = 1,
                          .body = turn,
                          .user = &u};
    tp_op_scan(g, &scan, &last, &stack);
    const tp_node_id loss =
        tp_op_add(g, tp_op_reduce(g, tp_op_multiply(g, stack, x), "add", NULL, 0),
                  tp_op_reduce(g, last, "add", NULL, 0));
    tp_graph_gradients(g, loss, wrt, 3, d);
    tp_graph_add_output(g, "last", last);
    tp_graph_add_output(g, "stack", stack);
    for (int i = 0; i < 3; i++)
        tp_graph_add_output(g, (const char *[]){"dx", "dh", "du"}[i], d[i]);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    program_run_expect_equal(
        g, &(program_run_options){.cores = 2, .wave_cores = 1, .steps = 2, .seed = 3});
    tp_graph_destroy(g);
}
