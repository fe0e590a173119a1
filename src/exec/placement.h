/* SPDX-License-Identifier: Apache-2.0
 * Cores to devices: opens what a topology's placement (or a caller's override) names and says which device
 * each core lives on. Which device it is changes the time of a run, never a bit of it.
 */
#ifndef TP_EXEC_PLACEMENT_H
#define TP_EXEC_PLACEMENT_H

#include "core/arena.h"
#include "core/status.h"
#include "device/device.h"
#include "topo/topology.h"

typedef struct tp_placement_options {
    const char *
        selector; /* one or several, comma separated: replaces the topology's placement; NULL: keep it */
    int32_t split; /* > 1: each device named by `selector` as that many equal sub-devices */
    tp_device_options device;
} tp_placement_options;

/* Opened devices and their cores. Owns the devices. */
typedef struct tp_core_map {
    tp_device **devices;
    int32_t device_count;
    int32_t core_count;
    int32_t *owner; /* [core_count]: index into devices */
    tp_arena *arena;
} tp_core_map;

/* Cores are dealt out in contiguous, near-equal runs over the devices of an override. TPUCL_NO_DEVICE and
 * TPUCL_UNSUPPORTED as device/platform.h and tp_device_open_split say; TPUCL_INVALID_CONFIG when there are
 * more devices than cores. */
tpucl_status tp_core_map_open(const tp_topology *topology, const tp_placement_options *options,
                              tp_core_map **out_map);
void tp_core_map_close(tp_core_map *map);

/* Each core becomes `count` cores side by side on the same device: core c is c * count ... after it. */
tpucl_status tp_core_map_repeat(tp_core_map *map, int32_t count);

/* Of all devices, the number of cores on the one that has most. */
int32_t tp_core_map_most_cores(const tp_core_map *map);

#endif
