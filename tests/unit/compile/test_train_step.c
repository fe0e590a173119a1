/* SPDX-License-Identifier: Apache-2.0
 * Whole training steps, compiled and run on the default device, against the reference interpreter: bits.
 */
#include <criterion/criterion.h>
#include "harness/program_run.h"
#include "harness/sample_graph.h"

static void expect_sample(const tp_sample_options *sample, const program_run_options *options)
{
    tp_graph *graph = tp_sample_graph(sample);
    program_run_expect_equal(graph, options);
    tp_graph_destroy(graph);
}

TestSuite(train_step, .timeout = 100);

Test(train_step, small_mlp_on_one_core)
{
    tp_sample_options sample = tp_sample_small;
    sample.cores = 1;
    expect_sample(&sample, &(program_run_options){.cores = 1, .steps = 3, .seed = 1});
}
