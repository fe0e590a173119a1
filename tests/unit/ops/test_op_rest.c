/* SPDX-License-Identifier: Apache-2.0
 * Golden values (tests/golden/gen_rest.py) of ops whose own tests have none. */
#include "golden/rest.h"
#include "harness/graph_run.h"

static const int64_t dims[] = {6, 40};

Test(op_rest, arguments_of_extremes)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 50, 2, dims);
    memcpy(run.data[0], golden_ties, sizeof golden_ties);
    graph_run_expect_bits(&run, tp_op_argmax(run.graph, x, 1), golden_argmax, 6);
    graph_run_expect_bits(&run, tp_op_argmin(run.graph, x, 1), golden_argmin, 6);
    graph_run_end(&run);
}

Test(op_rest, select_clamp_and_what_changes_nothing)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id x = graph_run_input(&run, TP_F32, 50, 2, dims);
    const tp_node_id y = graph_run_input(&run, TP_F32, 51, 2, dims);
    const tp_node_id is_less = tp_op_compare(g, "LT", x, y);
    graph_run_expect_bits(&run, tp_op_select(g, is_less, x, tp_op_multiply_scalar(g, y, 2)),
                          golden_select, 240);
    graph_run_expect_bits(
        &run, tp_op_clamp(g, tp_op_scalar(g, TP_F32, -0.25), x, tp_op_scalar(g, TP_F32, 0.5)),
        golden_clamp, 240);
    graph_run_expect_bits(&run, tp_op_stop_gradient(g, x), run.data[0], 240);
    graph_run_end(&run);
}

Test(op_rest, numbers)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    graph_run_expect_bits(&run, tp_op_iota(g, TP_S32, (tp_shape){2, {5, 3}}, 0), golden_iota, 15);
    graph_run_expect_bits(&run, tp_op_step(g), (uint32_t[]){0}, 1);
    graph_run_end(&run);
}

Test(op_rest, step_counts)
{
    const tp_reference_options options = {.cores = 1};
    tp_reference *reference = NULL;
    graph_run run;
    graph_run_begin(&run);
    tp_graph_add_output(run.graph, "step", tp_op_step(run.graph));
    EXPECT_OK(tp_reference_create(run.graph, &options, &reference));
    EXPECT_OK(tp_reference_step(reference, NULL, 12345));
    cr_assert_eq(*(const int32_t *)tp_reference_output(reference, 0, 0)->data, 12345);
    tp_reference_destroy(reference);
    graph_run_end(&run);
}

/* Five cores: ((0 + 1) + (2 + 3)) + 4. */
Test(op_rest, all_reduce)
{
    enum { CORES = 5, ELEMS = 40 };
    const tp_reference_options options = {.cores = CORES};
    tp_reference *reference = NULL;
    graph_run run;
    graph_run_begin(&run);
    static float data[CORES][ELEMS];
    const void *inputs[CORES];
    const tp_node_id x = tp_graph_add_input(run.graph, "x", TP_F32, (tp_shape){1, {ELEMS}});
    const tp_node_id sum = tp_op_all_reduce(run.graph, x);
    tp_graph_add_output(run.graph, "sum", sum);
    for (uint32_t core = 0; core < CORES; ++core) {
        inputs[core] = data[core];
        for (uint32_t i = 0; i < ELEMS; ++i)
            data[core][i] = golden_value(60 + core, i);
    }
    EXPECT_OK(tp_reference_create(run.graph, &options, &reference));
    EXPECT_OK(tp_reference_step(reference, inputs, 0));
    const tp_host_tensor *found = tp_reference_output(reference, 0, 0);
    cr_assert(found->shape.rank == 1 && found->shape.dims[0] == ELEMS);
    cr_assert_arr_eq(found->data, golden_all_reduce, sizeof golden_all_reduce);
    coverage_note("shape", "all_reduce");
    coverage_note("golden", "all_reduce");
    tp_reference_destroy(reference);
    graph_run_end(&run);
}
