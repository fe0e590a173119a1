/* SPDX-License-Identifier: Apache-2.0
 * From a graph to a program. Needs no device, only its capabilities.
 */
#ifndef TP_COMPILE_COMPILE_H
#define TP_COMPILE_COMPILE_H

#include "graph/graph.h"
#include "kernel/mxu.h"
#include "program/program.h"
#include "topo/device_caps.h"

typedef struct tp_compile_options {
    const char *name;                /* of the program: "train"; NULL: "program" */
    const tp_device_caps *caps;      /* required */
    const tp_mxu_allow *allow;       /* variants that may be used; NULL: all */
    uint64_t max_slab_segment_bytes; /* 0: caps->max_allocation_bytes */
    int32_t cores;                   /* of the device, at most, that run it in one wave; 0: one */
    bool is_fast_math;               /* products may leave the contract */
    /* graphs after each pass, clusters, program and kernels are written there; NULL: TPUCL_DUMP, if that
     * is set */
    const char *dump_folder;
} tp_compile_options;

/* The caller owns *out_program. The graph is not changed. TPUCL_UNSUPPORTED where an op has no lowering,
 * with the node named. */
tpucl_status tp_compile(const tp_graph *graph, const tp_compile_options *options,
                        tp_program **out_program) TPUCL_MUST_CHECK;

#endif
