/* SPDX-License-Identifier: Apache-2.0
 * Hash map from a string to an index (into an array of the caller's). Keys are borrowed: they must
 * outlive the map. There is no removal and no iteration, so its order can never leak into a result.
 * Thread-compatible. */
#ifndef TP_CORE_MAP_H
#define TP_CORE_MAP_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

typedef struct tp_map_slot {
    const char *key; /* NULL: free */
    uint64_t hash;
    size_t index;
} tp_map_slot;

/* Zero-initialise; deinit accepts that. */
typedef struct tp_map {
    tp_map_slot *slots;
    size_t count;
    size_t capacity; /* zero or a power of two */
} tp_map;

void tp_map_deinit(tp_map *map);

/* TPUCL_INVALID_ARGUMENT when the key is there already; the map is then unchanged. */
tpucl_status tp_map_add(tp_map *map, const char *key, size_t index) TPUCL_MUST_CHECK;

/* False when absent; *out_index is then untouched. `out_index` may be NULL. */
bool tp_map_find(const tp_map *map, const char *key, size_t *out_index);

#endif
