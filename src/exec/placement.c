/* SPDX-License-Identifier: Apache-2.0
 * Opens the devices of a placement. */
#include "exec/placement.h"

#include <string.h>
#include "core/alloc.h"

enum { MAX_DEVICES = 256 };

static tpucl_status add_devices(tp_core_map *map, const tp_device_list *list, uint32_t index,
                                uint32_t split, const tp_device_options *options)
{
    if ((uint64_t)map->device_count + split > MAX_DEVICES)
        return TP_FAIL(TPUCL_UNSUPPORTED, "%llu devices are asked for, at most %d are supported",
                       (unsigned long long)map->device_count + split, MAX_DEVICES);
    TP_TRY(tp_device_open_split(list, index, split, options, map->devices + map->device_count));
    map->device_count += (int32_t)split;
    return TPUCL_OK;
}

/* "0,1" or "gpu,cpu": one device (or its sub-devices) per entry. */
static tpucl_status open_selected(tp_core_map *map, const tp_device_list *list,
                                  const tp_placement_options *options)
{
    char *text = tp_arena_strdup(map->arena, options->selector ? options->selector : "");
    if (!text) return TPUCL_OUT_OF_MEMORY;
    for (char *item = text; item;) {
        char *comma = strchr(item, ',');
        if (comma) *comma = '\0';
        tp_device_choice choice;
        TP_TRY(tp_device_list_select(list, item, &choice));
        uint32_t split = options->split > 1 ? (uint32_t)options->split : choice.split;
        TP_TRY(add_devices(map, list, choice.index, split, &options->device));
        item = comma ? comma + 1 : NULL;
    }
    if (map->device_count > map->core_count)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "%d devices for %d cores: every device needs at least one core; name fewer "
                       "devices, a smaller split or a larger topology",
                       map->device_count, map->core_count);
    for (int32_t core = 0; core < map->core_count; core++)
        map->owner[core] = (int32_t)((int64_t)core * map->device_count / map->core_count);
    return TPUCL_OK;
}

static tpucl_status open_placement(tp_core_map *map, const tp_device_list *list,
                                   const tp_topology *topology, const tp_device_options *options)
{
    for (size_t i = 0; i < topology->placement_count; i++) {
        const tp_placement *placement = &topology->placement[i];
        tp_device_choice choice;
        TP_TRY(tp_device_list_select(list, placement->device, &choice));
        uint32_t split = placement->split > 1 ? (uint32_t)placement->split : choice.split;
        if (split > placement->core_count)
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "placement %zu of topology '%s' splits device '%s' in %u for %zu cores: "
                           "every sub-device needs at least one core",
                           i, topology->name, placement->device, split, placement->core_count);
        int32_t first = map->device_count;
        TP_TRY(add_devices(map, list, choice.index, split, options));
        for (size_t k = 0; k < placement->core_count; k++)
            map->owner[placement->cores[k]] = first + (int32_t)(k * split / placement->core_count);
    }
    return TPUCL_OK;
}

tpucl_status tp_core_map_open(const tp_topology *topology, const tp_placement_options *options,
                              tp_core_map **out_map)
{
    tpucl_status status = TPUCL_OK;
    tp_arena *arena = NULL;
    tp_core_map *map = NULL;
    tp_device_list *list = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    map = TP_ARENA_NEW(arena, tp_core_map);
    if (map) {
        map->arena = arena;
        map->core_count = topology->cores;
        map->devices = TP_ARENA_NEW_ARRAY(arena, tp_device *, MAX_DEVICES);
        map->owner = TP_ARENA_NEW_ARRAY(arena, int32_t, (size_t)topology->cores);
    }
    if (!map || !map->devices || !map->owner) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    TP_TRY_GOTO(status, tp_device_list_create(&list), done);
    if (topology->placement_count && !options->selector && options->split <= 1)
        TP_TRY_GOTO(status, open_placement(map, list, topology, &options->device), done);
    else
        TP_TRY_GOTO(status, open_selected(map, list, options), done);
    *out_map = map;
done:
    tp_device_list_destroy(list);
    if (status != TPUCL_OK) tp_core_map_close(map);
    return status;
}

tpucl_status tp_core_map_repeat(tp_core_map *map, int32_t count)
{
    const int32_t cores = map->core_count * count;
    int32_t *owner = TP_ARENA_NEW_ARRAY(map->arena, int32_t, (size_t)cores);
    if (!owner) return TPUCL_OUT_OF_MEMORY;
    for (int32_t core = 0; core < cores; core++)
        owner[core] = map->owner[core / count];
    map->owner = owner;
    map->core_count = cores;
    return TPUCL_OK;
}

void tp_core_map_close(tp_core_map *map)
{
    if (!map) return;
    for (int32_t i = 0; i < map->device_count; i++)
        tp_device_close(map->devices[i]);
    tp_arena_destroy(map->arena);
}

int32_t tp_core_map_most_cores(const tp_core_map *map)
{
    int32_t most = 0;
    for (int32_t d = 0; d < map->device_count; d++) {
        int32_t count = 0;
        for (int32_t core = 0; core < map->core_count; core++)
            count += map->owner[core] == d;
        if (count > most) most = count;
    }
    return most;
}
