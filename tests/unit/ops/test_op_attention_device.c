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

static uint64_t peak_bytes(int64_t length)
{
    const attention_case c = {.batch = 1,
                              .queries = length,
                              .keys = length,
                              .heads = 1,
                              .shared = 1,
                              .depth = 8,
                              .width = 8,
                              .options = {.scale = 1, .dropout = 0.5},
                              .dtype = TP_F32,
                              .precision = "default"};
    tp_graph *graph = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    attention_case_build(graph, &c);
    tp_program *program = program_run_compile(graph, &(program_run_options){.cores = 1});
    const uint64_t bytes = program->peak_core_bytes;
    tp_program_destroy(program);
    tp_graph_destroy(graph);
    return bytes;
}

/* With its gradient, and on the device's plan: four times the length takes at most four times the memory, less
 * than a byte for each pair of a query and a key. */
Test(op_attention_device, memory_grows_with_the_length)
{
    const uint64_t short_bytes = peak_bytes(1024), long_bytes = peak_bytes(4096);
    cr_assert(long_bytes <= 4 * short_bytes && long_bytes < 4096 * 4096, "%llu, %llu",
              (unsigned long long)short_bytes, (unsigned long long)long_bytes);
}
