/* SPDX-License-Identifier: Apache-2.0
 * A program: a graph compiled for a runtime's devices. Immutable and thread-safe once made. It
 * needs its runtime, not its graph. */
#ifndef TPUCL_PROGRAM_H
#define TPUCL_PROGRAM_H

#include <tpucl/graph.h>
#include <tpucl/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tpucl_program tpucl_program;

typedef struct tpucl_program_options {
    size_t struct_size;
    bool fast; /* may leave the exact contract where a device is faster without it */
} tpucl_program_options;

static inline tpucl_program_options tpucl_program_options_default(void)
{
    tpucl_program_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

/* What one step of ONE core costs, as planned. */
typedef struct tpucl_program_stats {
    double flops;             /* a multiply-add counts 2 */
    uint64_t bytes_moved;     /* read and written by its launches */
    uint64_t peak_bytes;      /* of the core's memory for activations, gradients and scratch */
    uint64_t parameter_count; /* elements of trainable variables */
    uint64_t variable_bytes;  /* of all variables, the optimizer's included */
    int32_t launches;
    int32_t cores;
    bool exact; /* every launch follows the numeric contract */
} tpucl_program_stats;

/* Compiles a graph; reports the first mistake made while it was built. `options` may be NULL. The
 * first use of a device takes a while, because kernels are checked on it before they are used;
 * TPUCL_NOT_EXACT when it does not reproduce the contract. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_program_compile(tpucl_runtime *runtime,
                                                              const tpucl_graph *graph,
                                                              const tpucl_program_options *options,
                                                              tpucl_program **out_program);
TPUCL_API void tpucl_program_destroy(tpucl_program *program);
TPUCL_API tpucl_program_stats tpucl_program_query(const tpucl_program *program);
/* One line per launch and buffer; caller frees with tpucl_free. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_program_print(const tpucl_program *program,
                                                            char **out_text);

#ifdef __cplusplus
}
#endif
#endif
