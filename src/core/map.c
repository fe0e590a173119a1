/* SPDX-License-Identifier: Apache-2.0
 * Open addressing with linear probing, at most three quarters full. The hash is 64-bit FNV-1a with
 * a final mix (constants: Fowler, Noll, Vo; MurmurHash3's finaliser). */
#include "core/map.h"

#include <string.h>
#include "core/alloc.h"

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 33);
}

void tp_map_deinit(tp_map *map)
{
    tp_free(map->slots);
    memset(map, 0, sizeof *map);
}

/* The slot that holds `key`, or the free one where it belongs. There is always a free one. */
static tp_map_slot *find_slot(const tp_map *map, const char *key, uint64_t hash)
{
    size_t mask = map->capacity - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        tp_map_slot *slot = &map->slots[i];
        if (!slot->key || (slot->hash == hash && strcmp(slot->key, key) == 0)) return slot;
    }
}

static tpucl_status grow(tp_map *map)
{
    tp_map bigger = {.capacity = map->capacity ? map->capacity * 2 : 16, .count = map->count};
    bigger.slots = TP_NEW_ARRAY(tp_map_slot, bigger.capacity);
    if (!bigger.slots) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < map->capacity; i++) {
        const tp_map_slot *slot = &map->slots[i];
        if (slot->key) *find_slot(&bigger, slot->key, slot->hash) = *slot;
    }
    tp_free(map->slots);
    *map = bigger;
    return TPUCL_OK;
}

tpucl_status tp_map_add(tp_map *map, const char *key, size_t index)
{
    if (tp_map_find(map, key, NULL))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "name '%s' is already taken", key);
    if ((map->count + 1) * 4 > map->capacity * 3) TP_TRY(grow(map));
    uint64_t hash = hash_text(key);
    *find_slot(map, key, hash) = (tp_map_slot){key, hash, index};
    map->count++;
    return TPUCL_OK;
}

bool tp_map_find(const tp_map *map, const char *key, size_t *out_index)
{
    if (!map->count) return false;
    const tp_map_slot *slot = find_slot(map, key, hash_text(key));
    if (!slot->key) return false;
    if (out_index) *out_index = slot->index;
    return true;
}
