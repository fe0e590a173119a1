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

/* Five cores, golden_value() in each; the sum is ((0 + 1) + (2 + 3)) + 4. */
enum { CORES = 5, ELEMS = 40 };

/* Compares the result on every core, one core's after the other's, with `golden`; a replicated result
 * with the same `golden` for all. */
static void expect_collective(tp_node_id (*build)(tp_graph *g, tp_node_id x), const char *op,
                              const uint32_t *golden, int64_t elems, bool is_replicated)
{
    static float data[CORES][ELEMS];
    const tp_reference_options options = {.cores = CORES};
    const void *inputs[CORES];
    tp_reference *reference = NULL;
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = tp_graph_add_input(run.graph, "x", TP_F32, (tp_shape){2, {4, 10}});
    tp_graph_add_output(run.graph, "y", build(run.graph, x));
    for (uint32_t core = 0; core < CORES; ++core) {
        inputs[core] = data[core];
        for (uint32_t i = 0; i < ELEMS; ++i)
            data[core][i] = golden_value(60 + core, i);
    }
    EXPECT_OK(tp_reference_create(run.graph, &options, &reference));
    EXPECT_OK(tp_reference_step(reference, inputs, 0));
    for (int32_t core = 0; core < CORES; ++core) {
        const tp_host_tensor *y = tp_reference_output(reference, core, 0);
        cr_assert_eq(tp_shape_elems(&y->shape), elems);
        cr_assert_arr_eq(y->data, golden + (is_replicated ? 0 : core * elems), (size_t)elems * 4,
                         "%s on core %d", op, core);
    }
    coverage_note("shape", op);
    coverage_note("golden", op);
    tp_reference_destroy(reference);
    graph_run_end(&run);
}

static tp_node_id build_all_gather(tp_graph *g, tp_node_id x)
{
    return tp_op_all_gather(g, x, 1, CORES);
}
static tp_node_id build_reduce_scatter(tp_graph *g, tp_node_id x)
{
    return tp_op_reduce_scatter(g, x, 1, CORES);
}
static tp_node_id build_permute(tp_graph *g, tp_node_id x)
{
    const int64_t pairs[] = {2, 0, 0, 1, 4, 3, 1, 4};
    return tp_op_collective_permute(g, x, pairs, 4, CORES);
}
static tp_node_id build_replica_id(tp_graph *g, tp_node_id x)
{
    (void)x;
    return tp_op_replica_id(g, CORES);
}

Test(op_rest, across_cores)
{
    expect_collective(tp_op_all_reduce, "all_reduce", golden_all_reduce, 40, true);
    expect_collective(build_all_gather, "all_gather", golden_all_gather, 200, true);
    expect_collective(build_reduce_scatter, "reduce_scatter", golden_reduce_scatter, 8, false);
    expect_collective(build_permute, "collective_permute", golden_collective_permute, 40, false);
    expect_collective(build_replica_id, "replica_id", (const uint32_t[]){0, 1, 2, 3, 4}, 1, false);
}

/* Four cores in pairs. The loss of a core is the sum of squares of its pair's sums, the whole loss that of all
 * cores: 2 * y on both cores of a pair reach x, and a little more x on one core makes the whole loss grow so. */
enum { PAIRED = 4 };

static double pair_loss(float data[PAIRED][ELEMS], tp_reference *reference)
{
    const void *inputs[PAIRED];
    double loss = 0;
    for (int i = 0; i < PAIRED; ++i)
        inputs[i] = data[i];
    EXPECT_OK(tp_reference_step(reference, inputs, 0));
    for (int32_t core = 0; core < PAIRED; ++core)
        loss += (double)*(const float *)tp_reference_output(reference, core, 1)->data;
    return loss;
}

Test(op_rest, sums_over_neighbours)
{
    static float data[PAIRED][ELEMS];
    const tp_reference_options options = {.cores = PAIRED};
    tp_reference *reference = NULL;
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){2, {4, 10}});
    const tp_node_id y = tp_op_cross_replica_sum(g, x, 2, PAIRED);
    const tp_node_id loss = tp_op_reduce(g, tp_op_multiply(g, y, y), "add", NULL, 0);
    tp_node_id gradient;
    tp_graph_add_output(g, "y", y);
    tp_graph_add_output(g, "loss", loss);
    tp_graph_gradients(g, loss, &x, 1, &gradient);
    tp_graph_add_output(g, "gradient", gradient);
    for (uint32_t core = 0; core < PAIRED; ++core)
        for (uint32_t i = 0; i < ELEMS; ++i)
            data[core][i] = golden_value(60 + core, i);
    EXPECT_OK(tp_reference_create(g, &options, &reference));
    pair_loss(data, reference);
    for (int32_t core = 0; core < PAIRED; ++core)
        cr_assert_arr_eq(tp_reference_output(reference, core, 0)->data,
                         golden_cross_replica_sum + core * ELEMS, ELEMS * 4, "core %d", core);
    const float found = ((const float *)tp_reference_output(reference, 2, 2)->data)[7];
    const float at = data[2][7], by = 0x1p-6f;
    data[2][7] = at + by;
    const double above = pair_loss(data, reference);
    data[2][7] = at - by;
    const double below = pair_loss(data, reference);
    cr_assert(fabs((above - below) / (2 * (double)by) - (double)found) < 1e-3, "%g, expected %g",
              (double)found, (above - below) / (2 * (double)by));
    coverage_note("shape", "cross_replica_sum");
    coverage_note("golden", "cross_replica_sum");
    coverage_note("gradient", "cross_replica_sum");
    tp_reference_destroy(reference);
    graph_run_end(&run);
}

/* Two groups of two: each has positions of its own. */
Test(op_rest, groups)
{
    const tp_reference_options options = {.cores = 4, .group_cores = 2};
    tp_reference *reference = NULL;
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id id = tp_op_convert(run.graph, tp_op_replica_id(run.graph, 2), TP_F32);
    const tp_node_id wide = tp_op_reshape(run.graph, id, (tp_shape){1, {1}});
    tp_graph_add_output(run.graph, "all", tp_op_all_gather(run.graph, wide, 0, 2));
    EXPECT_OK(tp_reference_create(run.graph, &options, &reference));
    const void *inputs[] = {NULL};
    EXPECT_OK(tp_reference_step(reference, inputs, 0));
    for (int32_t core = 0; core < 4; ++core)
        cr_assert_arr_eq(tp_reference_output(reference, core, 0)->data, ((float[]){0, 1}), 8);
    tp_reference_destroy(reference);
    const tp_reference_options other = {.cores = 4};
    EXPECT_FAILURE(tp_reference_create(run.graph, &other, &reference), TPUCL_INVALID_ARGUMENT,
                   "is for replica groups of 2 cores, they have 4");
    graph_run_end(&run);
}

static void expect_refused(tp_node_id (*build)(tp_graph *g, tp_node_id x), const char *part)
{
    graph_run run;
    graph_run_begin(&run);
    build(run.graph, graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){4, 10}));
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, part);
    graph_run_end(&run);
}

static tp_node_id build_threes(tp_graph *g, tp_node_id x)
{
    return tp_op_cross_replica_sum(g, x, 3, 5);
}
static tp_node_id build_uneven(tp_graph *g, tp_node_id x)
{
    return tp_op_reduce_scatter(g, x, 1, 3);
}
static tp_node_id build_no_dim(tp_graph *g, tp_node_id x)
{
    return tp_op_all_gather(g, x, 2, 3);
}
static tp_node_id build_twice(tp_graph *g, tp_node_id x)
{
    return tp_op_collective_permute(g, x, (int64_t[]){0, 1, 2, 1}, 2, 3);
}
static tp_node_id build_no_core(tp_graph *g, tp_node_id x)
{
    return tp_op_collective_permute(g, x, (int64_t[]){0, 3}, 1, 3);
}

Test(op_rest, mistakes_across_cores)
{
    expect_refused(build_threes, "groups of 3 of 5 cores");
    expect_refused(build_uneven, "reduce_scatter of 10 elements to 3 cores");
    expect_refused(build_no_dim, "all_gather along dim 2 of a tensor of rank 2");
    expect_refused(build_twice, "names core 1 twice as target");
    expect_refused(build_no_core, "names core 3 of 3");
}
