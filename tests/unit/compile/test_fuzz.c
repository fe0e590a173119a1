/* SPDX-License-Identifier: Apache-2.0
 * Random graphs, compiled and run, against the reference interpreter: bits. FUZZ_FIRST and FUZZ_COUNT
 * choose other seeds than the few of the ordinary suite.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include "graph/print.h"
#include "harness/program_run.h"
#include "harness/random_graph.h"

static uint32_t number_of(const char *name, uint32_t fallback)
{
    const char *text = getenv(name);
    return text ? (uint32_t)atoi(text) : fallback;
}

static void run_seed(uint32_t seed)
{
    const random_graph_options options = {.seed = seed,
                                          .ops = 6 + (int32_t)(seed % 7) * 4,
                                          .has_random = seed % 3 == 0,
                                          .has_loops = seed % 5 >= 3,
                                          .has_gradients = seed % 5 == 4,
                                          .has_sums = seed % 2 == 0};
    const program_run_options run = {.cores = seed % 4 == 0 ? 3 : 1 + (int32_t)(seed % 2),
                                     .wave_cores = seed % 5 == 0   ? 1
                                                   : seed % 5 == 1 ? 3
                                                                   : 0,
                                     .as_gpu = seed % 11 == 3 || getenv("FUZZ_AS_GPU"),
                                     .seed = seed + 1,
                                     .int_limit = 5};
    char text[2048];
    tp_graph *graph = random_graph_create(&options);
    const bool is_equal = program_run_compare(graph, &run, text, sizeof text);
    if (!is_equal && getenv("FUZZ_PRINT")) {
        tp_str_builder printed = {0};
        tp_graph_print(graph, &printed);
        fprintf(stderr, "%s\n", printed.data);
        tp_str_builder_deinit(&printed);
    }
    tp_graph_destroy(graph);
    if (getenv("FUZZ_GO_ON") && !is_equal)
        fprintf(stderr, "seed %u: %s\n", seed, text);
    else
        cr_assert(is_equal, "seed %u: %s", seed, text);
}

Test(fuzz, random_graphs_give_the_reference_bits, .timeout = 1000)
{
    const uint32_t first = number_of("FUZZ_FIRST", 1), count = number_of("FUZZ_COUNT", 16);
    for (uint32_t i = 0; i < count; i++)
        run_seed(first + i);
}
