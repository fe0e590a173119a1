/* SPDX-License-Identifier: Apache-2.0
 * Memory ops on the default device against the host's evaluation, bit by bit: every case of
 * memory_cases.h and every dtype. Larger sizes: test_op_memory_sizes.c. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "harness/program_run.h"

#include "ops/registry.h"
#include "unit/ops/memory_cases.h"

TestSuite(op_memory_device, .timeout = 300);

static tp_graph *begin(void)
{
    tp_graph *graph = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    return graph;
}

static void output(tp_graph *graph, const char *name, const char *what, tp_node_id node)
{
    char text[64];
    snprintf(text, sizeof text, "%s %s", name, what);
    tp_graph_add_output(graph, text, node);
}

/* On the device as it is, in waves, and compiled as for a GPU. */
static void end(tp_graph *graph, int32_t int_limit)
{
    cr_assert_eq(tp_graph_check(graph), TPUCL_OK, "%s", tpucl_last_error()->message);
    program_run_expect_equal(
        graph,
        &(program_run_options){.cores = 3, .wave_cores = 2, .seed = 5, .int_limit = int_limit});
    program_run_expect_equal(
        graph,
        &(program_run_options){.cores = 2, .seed = 6, .int_limit = int_limit, .as_gpu = true});
    tp_graph_destroy(graph);
}

/* s32 indices from -2 to limit - 3. */
static tp_node_id shifted_indices(tp_graph *graph, tp_shape shape)
{
    const tp_node_id raw = tp_graph_add_input(graph, "indices", TP_S32, shape);
    return tp_op_subtract(graph, raw, tp_op_fill(graph, TP_S32, shape, 2));
}

static void check_case(const memory_case *c, tp_dtype dtype)
{
    static const char *const kinds[] = {"add", "max", "min", "replace"};
    tp_graph *g = begin();
    const tp_node_id x = tp_graph_add_input(g, "x", dtype, c->operand);
    const tp_node_id u = tp_graph_add_input(g, "u", dtype, c->dense);
    const tp_node_id at = shifted_indices(g, c->indices);
    output(g, "gather", "clamp", tp_op_gather(g, x, at, &c->dims, c->slices, "clamp"));
    output(g, "gather", "zero", tp_op_gather(g, x, at, &c->dims, c->slices, "zero"));
    for (int kind = dtype == TP_U8 || dtype == TP_PRED ? 3 : 0; kind < 4; ++kind) {
        output(g, kinds[kind], "clamp", tp_op_scatter(g, x, at, u, &c->dims, kinds[kind], "clamp"));
        output(g, kinds[kind], "skip", tp_op_scatter(g, x, at, u, &c->dims, kinds[kind], "skip"));
    }
    end(g, 12);
}

Test(op_memory_device, every_case_f32)
{
    for (int i = 0; i < MEMORY_CASES; ++i)
        check_case(&memory_cases[i], TP_F32);
}

Test(op_memory_device, every_dtype)
{
    for (int dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype)
        if (dtype != TP_F32) check_case(&memory_cases[dtype % MEMORY_CASES], (tp_dtype)dtype);
}

/* The fill of an operand that is also an output, or that somebody else reads. */
Test(op_memory_device, filled_operands)
{
    tp_graph *g = begin();
    const tp_shape shape = {1, {40}};
    const tp_node_id u = tp_graph_add_input(g, "u", TP_F32, shape);
    const tp_node_id at = shifted_indices(g, shape);
    const tp_node_id ones = tp_op_fill(g, TP_F32, shape, 1);
    tp_graph_add_output(g, "ones", ones);
    tp_graph_add_output(g, "onto ones", tp_op_put_along_axis(g, ones, at, u, 0, "add"));
    tp_graph_add_output(g, "sum", tp_op_add(g, ones, u));
    const tp_node_id scalar = tp_op_fill(g, TP_BF16, (tp_shape){1, {1}}, 3);
    tp_graph_add_output(
        g, "one element",
        tp_op_put_along_axis(g, scalar, tp_op_fill(g, TP_S32, (tp_shape){1, {1}}, 0),
                             tp_op_fill(g, TP_BF16, (tp_shape){1, {1}}, 2), 0, "add"));
    end(g, 45);
}

/* Indices and tables of one element are constants in memory, not numbers in a kernel's text. */
Test(op_memory_device, constants_of_one_element)
{
    tp_graph *g = begin();
    const int32_t two = 2;
    const float seven = 7;
    const tp_shape one = {1, {1}};
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){1, {5}});
    const tp_node_id at = tp_op_constant(g, TP_S32, one, &two);
    const tp_node_id table = tp_op_constant(g, TP_F32, one, &seven);
    tp_graph_add_output(g, "taken", tp_op_take(g, x, at, 0));
    tp_graph_add_output(g, "of one",
                        tp_op_take(g, table, shifted_indices(g, (tp_shape){1, {4}}), 0));
    tp_graph_add_output(g, "put", tp_op_put_along_axis(g, x, at, table, 0, "add"));
    tp_graph_add_output(g, "scalar", tp_op_take(g, x, tp_op_scalar(g, TP_S32, 3), 0));
    tp_graph_add_output(g, "number",
                        tp_op_add(g, x, tp_op_broadcast_to(g, table, (tp_shape){1, {5}})));
    end(g, 5);
}
