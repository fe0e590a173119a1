/* SPDX-License-Identifier: Apache-2.0
 * Attention and its gradient on the default device against the host's evaluation, bit by bit. */
#include <criterion/criterion.h>

#include "harness/program_run.h"
#include "ops/registry.h"
#include "unit/ops/attention_cases.h"

TestSuite(op_attention_device, .timeout = 300);

static void expect_equal(const attention_case *c, const program_run_options *options)
{
    tp_graph *graph = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    attention_case_build(graph, c);
    cr_assert_eq(tp_graph_check(graph), TPUCL_OK, "%s: %s", c->name, tpucl_last_error()->message);
    program_run_expect_equal(graph, options);
    tp_graph_destroy(graph);
}

Test(op_attention_device, every_case)
{
    for (int i = 0; i < ATTENTION_CASES; i++)
        expect_equal(&attention_cases[i], &(program_run_options){.cores = 1, .seed = 5});
}

/* Random numbers differ from core to core; scratch memory is one core's own. */
Test(op_attention_device, waves_of_cores)
{
    expect_equal(&attention_cases[9],
                 &(program_run_options){.cores = 3, .wave_cores = 2, .seed = 6});
}

Test(op_attention_device, as_on_a_gpu)
{
    expect_equal(&attention_cases[2],
                 &(program_run_options){.cores = 1, .seed = 7, .as_gpu = true});
}
