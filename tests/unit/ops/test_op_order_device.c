/* SPDX-License-Identifier: Apache-2.0
 * cumulative, sort, top_k and the dynamic slices on the default device against the host's evaluation, bit by
 * bit: every kind and dtype, values that matter. Larger sizes: test_op_memory_sizes.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/program_run.h"

#include "graph/builder.h"
#include "num/bf16.h"
#include "ops/registry.h"

TestSuite(op_order_device, .timeout = 300);

static tp_graph *begin(void)
{
    tp_graph *graph = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    return graph;
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

/* An input with NaN, infinities, zeros of both signs and many equal elements in it, as data of a dtype. */
static tp_node_id with_specials(tp_graph *g, const char *name, tp_dtype dtype, tp_shape shape)
{
    const tp_node_id x = tp_graph_add_input(g, name, dtype, shape);
    if (!tp_dtype_is_float(dtype)) return x;
    static const float specials[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1.0f, 1.0f, -2.0f};
    const int64_t elems = tp_shape_elems(&shape);
    float *values = calloc((size_t)elems + 1, sizeof *values);
    uint8_t *is_special = calloc((size_t)elems + 1, 1);
    for (int64_t i = 0; i < elems; ++i) {
        values[i] = specials[i * 5 % 8];
        is_special[i] = i * 7 % 5 < 2;
    }
    const tp_node_id mask = tp_op_constant(g, TP_PRED, shape, is_special);
    const tp_node_id data = tp_op_convert(g, tp_op_constant(g, TP_F32, shape, values), dtype);
    free(values);
    free(is_special);
    return tp_op_select(g, mask, data, x);
}

static void output(tp_graph *graph, const char *name, int number, tp_node_id node)
{
    char text[64];
    snprintf(text, sizeof text, "%s %d", name, number);
    tp_graph_add_output(graph, text, node);
}

static void check_cumulative(tp_dtype dtype, tp_shape shape, int64_t axis)
{
    static const char *const kinds[] = {"add", "multiply", "max", "min"};
    tp_graph *g = begin();
    const tp_node_id x = tp_graph_add_input(g, "x", dtype, shape);
    const tp_node_id s = with_specials(g, "s", dtype, shape);
    for (int kind = 0; kind < 4; ++kind)
        for (int mode = 0; mode < 4; ++mode)
            output(g, kinds[kind], mode,
                   tp_op_cumulative(g, kind < 2 && mode < 2 ? x : s, kinds[kind], axis, mode & 1,
                                    mode >> 1));
    end(g, 50);
}

Test(op_order_device, cumulative)
{
    check_cumulative(TP_F32, (tp_shape){3, {3, 17, 35}}, 1);
    check_cumulative(TP_F32, (tp_shape){2, {5, 300}}, 1);
    check_cumulative(TP_BF16, (tp_shape){2, {40, 21}}, 0);
    check_cumulative(TP_S32, (tp_shape){2, {9, 33}}, 0);
    check_cumulative(TP_U32, (tp_shape){1, {1}}, 0);
}

static void check_sort(tp_dtype dtype, tp_shape shape, int64_t axis)
{
    tp_graph *g = begin();
    const tp_node_id x = with_specials(g, "x", dtype, shape);
    for (int falling = 0; falling < 2; ++falling) {
        output(g, "sort", falling, tp_op_sort(g, x, axis, falling));
        output(g, "argsort", falling, tp_op_argsort(g, x, axis, falling));
    }
    const int64_t n = shape.dims[shape.rank - 1];
    tp_node_id where;
    output(g, "top_k", 0, tp_op_top_k(g, x, n < 5 ? n : 5, NULL));
    output(g, "top_k", 1, tp_op_top_k(g, x, n, &where));
    output(g, "top_k", 2, where);
    output(g, "top_k", 3, tp_op_top_k_indices(g, x, 1));
    end(g, dtype == TP_PRED ? 2 : 100);
}

Test(op_order_device, sort_every_dtype)
{
    for (int dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype)
        check_sort((tp_dtype)dtype, (tp_shape){3, {2, 37, 3}}, dtype % 3);
}

static void check_dynamic(tp_dtype dtype, tp_shape shape, tp_shape box)
{
    tp_graph *g = begin();
    const tp_node_id x = tp_graph_add_input(g, "x", dtype, shape);
    const tp_node_id u = tp_graph_add_input(g, "u", dtype, box);
    const tp_node_id raw = tp_graph_add_input(g, "start", TP_S32, (tp_shape){1, {shape.rank}});
    const tp_node_id start = tp_op_add_scalar(g, raw, -3);
    output(g, "slice", 0, tp_op_dynamic_slice(g, x, start, box.dims));
    output(g, "update", 0, tp_op_dynamic_update_slice(g, x, u, start));
    output(g, "onto ones", 0,
           tp_op_dynamic_update_slice(g, tp_op_fill(g, dtype, shape, 1), u, start));
    output(g, "unsigned", 0, tp_op_dynamic_slice(g, x, tp_op_convert(g, start, TP_U32), box.dims));
    end(g, 9);
}

Test(op_order_device, dynamic_slices)
{
    for (int dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype)
        check_dynamic((tp_dtype)dtype, (tp_shape){3, {4, 7, 9}}, (tp_shape){3, {2, 7, 4}});
    check_dynamic(TP_F32, (tp_shape){2, {30, 40}}, (tp_shape){2, {30, 40}});
    check_dynamic(TP_F32, (tp_shape){4, {2, 3, 4, 5}}, (tp_shape){4, {1, 2, 3, 1}});
    check_dynamic(TP_F32, (tp_shape){1, {1}}, (tp_shape){1, {1}});
}
