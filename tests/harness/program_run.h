/* SPDX-License-Identifier: Apache-2.0
 * Compiles a graph, runs it through the executor on the default device, runs the reference interpreter on
 * the same inputs, and compares every output of every step and all variables at the end: bits, any NaN
 * being as good as another.
 */
#ifndef TESTS_HARNESS_PROGRAM_RUN_H
#define TESTS_HARNESS_PROGRAM_RUN_H

#include "compile/compile.h"
#include "device/device.h"
#include "exec/executor.h"

typedef struct program_run_options {
    int32_t cores, wave_cores;  /* wave_cores 0: as many as fit */
    int32_t steps;              /* 0: 2 */
    uint32_t seed;              /* of inputs, random ops and initial values */
    int32_t int_limit;          /* integer inputs are 0 .. int_limit - 1; 0: 3 */
    const char *forced_variant; /* of products, NULL: the catalogue's choice */
    bool as_gpu;                /* compiled as for a GPU: one element a work-item, groups of 256 */
    uint64_t max_slab_segment_bytes;
    const char *dump_folder;
} program_run_options;

/* The default device, opened once per process; NULL (and the test is skipped) when there is none. */
tp_device *program_run_device(void);

/* Writes the first difference, or why it could not run, into `out_text` (may be the empty text); true when
 * all is equal. The graph is borrowed. */
bool program_run_compare(const tp_graph *graph, const program_run_options *options, char *out_text,
                         size_t text_bytes);

/* Fails the running Criterion test with that text. */
void program_run_expect_equal(const tp_graph *graph, const program_run_options *options);

/* Compiles for the default device; fails the test when it cannot. */
tp_program *program_run_compile(const tp_graph *graph, const program_run_options *options);

#endif
