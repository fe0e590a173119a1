/* SPDX-License-Identifier: Apache-2.0
 * What a tpucl_runtime holds. Read-only after its creation. */
#ifndef TP_API_RUNTIME_INTERNAL_H
#define TP_API_RUNTIME_INTERNAL_H

#include "api/handles.h"
#include "exec/placement.h"
#include "topo/topology.h"

struct tpucl_runtime {
    tp_topology *topology;
    tp_program_cache *cache; /* NULL when there is no folder for it */
    tp_core_map *map;
    int32_t wave_cores; /* 0: as many as memory allows */
};

#endif
