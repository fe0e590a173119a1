/* SPDX-License-Identifier: Apache-2.0
 * What a tpucl_program holds: the caller's graph as a training and an evaluation graph, compiled
 * for each device of the runtime. Read-only once made. */
#ifndef TP_API_PROGRAM_INTERNAL_H
#define TP_API_PROGRAM_INTERNAL_H

#include "api/graph_internal.h"
#include "api/runtime_internal.h"
#include "core/arena.h"
#include "program/program.h"

struct tpucl_program {
    tpucl_runtime *runtime;
    tp_arena *arena;
    tp_program **train,
        **evaluate; /* [device_count]; train: NULL when the graph minimises nothing */
    int64_t batch;  /* per core */
    const char *metric_names[TP_API_MAX_METRICS];
    int32_t metric_count;
    bool has_loss;
    int32_t *group_cores; /* as tp_executor_options; NULL: one group of all cores */
    int32_t group_count, group_size;
};

#endif
