/* SPDX-License-Identifier: Apache-2.0
 * Runtimes: a topology and the devices its cores live on. */
#include "api/runtime_internal.h"

#include "core/alloc.h"
#include "core/env.h"

/* A name, a path, or the JSON itself. */
static tpucl_status load_topology(const char *topology, tp_topology **out_topology)
{
    if (!topology) topology = "v2-8";
    if (topology[strspn(topology, " \t\r\n")] != '{') {
        TP_TRY(tp_topology_load(topology, out_topology));
        return TPUCL_OK;
    }
    tp_json_document *document = NULL;
    TP_TRY(tp_json_parse(topology, strlen(topology), "topology", &document));
    tpucl_status status = tp_topology_from_json(tp_json_root(document), out_topology);
    tp_json_destroy(document);
    TP_TRY(status);
    return TPUCL_OK;
}

/* Kernels are kept on disk where that is possible; where it is not, they are built every time. */
static tpucl_status open_cache(tp_program_cache **out_cache)
{
    tpucl_status status = tp_program_cache_open(NULL, 0, out_cache);
    if (status == TPUCL_NOT_FOUND) {
        tp_error_clear();
        *out_cache = NULL;
        return TPUCL_OK;
    }
    TP_TRY(status);
    return TPUCL_OK;
}

tpucl_status tpucl_runtime_create(const tpucl_runtime_options *options, tpucl_runtime **out_runtime)
{
    TP_API_NEED(out_runtime);
    *out_runtime = NULL;
    tpucl_runtime_options all;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_runtime_options));
    if (all.split < 0 || all.wave_cores < 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' is %d, expected 0 (the default) or more",
                       all.split < 0 ? "split" : "wave_cores",
                       all.split < 0 ? all.split : all.wave_cores);
    tpucl_runtime *runtime = TP_NEW(tpucl_runtime);
    if (!runtime) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    tp_placement_options placement = {.selector = all.device, .split = all.split};
    runtime->wave_cores = all.wave_cores;
    TP_TRY_GOTO(status, tp_env_flag(TP_ENV_SYNC, all.synchronous, &placement.device.synchronous),
                failed);
    placement.device.synchronous |= all.synchronous;
    TP_TRY_GOTO(status, load_topology(all.topology, &runtime->topology), failed);
    TP_TRY_GOTO(status, open_cache(&runtime->cache), failed);
    placement.device.cache = runtime->cache;
    TP_TRY_GOTO(status, tp_core_map_open(runtime->topology, &placement, &runtime->map), failed);
    *out_runtime = runtime;
    return TPUCL_OK;
failed:
    tpucl_runtime_destroy(runtime);
    return status;
}

void tpucl_runtime_destroy(tpucl_runtime *runtime)
{
    if (!runtime) return;
    if (runtime->map) tp_core_map_close(runtime->map);
    if (runtime->cache) tp_program_cache_close(runtime->cache);
    tp_topology_destroy(runtime->topology);
    tp_free(runtime);
}

int32_t tpucl_runtime_device_count(const tpucl_runtime *runtime)
{
    return runtime ? runtime->map->device_count : 0;
}

tpucl_status tpucl_runtime_device_info(const tpucl_runtime *runtime, int32_t index,
                                       tpucl_device_info *out_info)
{
    TP_API_NEED(runtime);
    TP_API_NEED(out_info);
    if (index < 0 || index >= runtime->map->device_count)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "device %d of a runtime with %d", (int)index,
                       (int)runtime->map->device_count);
    const tp_device *device = runtime->map->devices[index];
    tp_api_device_info(tp_device_label(device), tp_device_get_caps(device), true, "", out_info);
    return TPUCL_OK;
}

tpucl_topology_info tpucl_runtime_topology(const tpucl_runtime *runtime)
{
    const tp_topology *topology = runtime->topology;
    return (tpucl_topology_info){
        .name = topology->name,
        .hosts = topology->hosts,
        .chips = topology->chips,
        .cores = topology->cores,
        .hbm_bytes = (uint64_t)tp_topology_figure(topology, TP_FIGURE_HBM_BYTES, 0),
    };
}
