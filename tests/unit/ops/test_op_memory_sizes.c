/* SPDX-License-Identifier: Apache-2.0
 * Memory ops on the default device against the host's evaluation, bit by bit, at sizes around those of runs,
 * strips and chunks: too large for a simulator. */
#include <criterion/criterion.h>

#include "harness/program_run.h"

#include "graph/builder.h"
#include "ops/registry.h"

TestSuite(op_memory_sizes, .timeout = 300);

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

/* s32 indices from -2 to limit - 3. */
static tp_node_id shifted_indices(tp_graph *graph, tp_shape shape)
{
    const tp_node_id raw = tp_graph_add_input(graph, "indices", TP_S32, shape);
    return tp_op_subtract(graph, raw, tp_op_fill(graph, TP_S32, shape, 2));
}

/* Look-up in a table and its gradient, which is scattered into zeros that need no memory. */
static void check_embedding(int64_t vocabulary, int64_t width, int64_t count)
{
    tp_graph *g = begin();
    const tp_node_id table =
        tp_graph_add_input(g, "table", TP_F32, (tp_shape){2, {vocabulary, width}});
    const tp_node_id d = tp_graph_add_input(g, "d", TP_F32, (tp_shape){2, {count, width}});
    const tp_node_id at = shifted_indices(g, (tp_shape){1, {count}});
    const tp_index_dims dims = {.window = {1},
                                .window_count = 1,
                                .collapsed = {0},
                                .collapsed_count = 1,
                                .map = {0},
                                .map_count = 1,
                                .vector_dim = 1};
    tp_graph_add_output(g, "rows", tp_op_take(g, table, at, 0));
    const tp_node_id zeros = tp_op_fill(g, TP_F32, (tp_shape){2, {vocabulary, width}}, 0);
    tp_graph_add_output(g, "gradient", tp_op_scatter(g, zeros, at, d, &dims, "add", "clamp"));
    tp_graph_add_output(g, "skipped", tp_op_scatter(g, table, at, d, &dims, "add", "skip"));
    end(g, (int32_t)vocabulary + 5);
}

Test(op_memory_sizes, embeddings_of_many_sizes)
{
    check_embedding(1, 1, 1);
    check_embedding(5, 16, 33);
    check_embedding(50, 17, 32);
    check_embedding(300, 40, 31);
    check_embedding(13, 33, 1000);
    check_embedding(2000, 3, 4097);
}

static void check_sort(tp_shape shape)
{
    tp_graph *g = begin();
    const tp_node_id raw = tp_graph_add_input(g, "x", TP_S32, shape);
    const tp_node_id x = tp_op_convert(g, raw, TP_F32); /* many are equal */
    tp_graph_add_output(g, "sort", tp_op_sort(g, x, 1, false));
    tp_graph_add_output(g, "argsort", tp_op_argsort(g, x, 1, true));
    tp_graph_add_output(g, "top_k", tp_op_top_k_indices(g, x, (shape.dims[1] + 1) / 2));
    tp_graph_add_output(g, "top 40",
                        tp_op_top_k_indices(g, x, shape.dims[1] < 40 ? shape.dims[1] : 40));
    tp_graph_add_output(g, "top 3", tp_op_top_k(g, x, shape.dims[1] < 3 ? shape.dims[1] : 3, NULL));
    end(g, 100);
}

Test(op_memory_sizes, sort_every_length)
{
    static const int64_t lengths[] = {1, 2, 31, 32, 33, 64, 65, 127, 1000, 4099};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i)
        check_sort((tp_shape){2, {i % 2 ? 3 : 1, lengths[i]}});
}
