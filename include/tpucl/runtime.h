/* SPDX-License-Identifier: Apache-2.0
 * A runtime: the machine that a run pretends to be (a topology of cores) and the OpenCL devices
 * that its cores live on. Cores decide what is computed, devices how fast.
 *
 * tpucl_runtime is thread-safe: programs may be compiled on it from several threads. Destroy it
 * after everything made from it. Two runtimes in one process do not meet. */
#ifndef TPUCL_RUNTIME_H
#define TPUCL_RUNTIME_H

#include <string.h>
#include <tpucl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tpucl_runtime tpucl_runtime;

/* Zero or NULL in a field means its default. Only grows. */
typedef struct tpucl_runtime_options {
    size_t struct_size;
    const char *topology; /* built-in name ("v2-8"), path of a .json file, or JSON text that begins
                             with '{'; default "v2-8" */
    const char *device;   /* selector: "0", "0:1", "gpu", part of a name, "cpu/2" for two equal
                             sub-devices; all cores are dealt out to it in equal runs. Default: the
                             topology's placement, else $TPUCL_DEVICE, else the first GPU,
                             accelerator, CPU */
    int32_t split;        /* sub-devices to cut that device into; default 1 */
    int32_t wave_cores;   /* at most so many cores at once per device; default as memory allows */
    bool synchronous; /* wait after every launch: same bits, slower; finds the launch that fails */
} tpucl_runtime_options;

static inline tpucl_runtime_options tpucl_runtime_options_default(void)
{
    tpucl_runtime_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

typedef struct tpucl_device_info {
    char selector[32]; /* what --device and `device` above accept */
    char name[128], vendor[128], platform[128], driver[128], version[128];
    char type[16]; /* "cpu", "gpu", "accelerator" */
    uint32_t compute_units;
    uint64_t memory_bytes, max_allocation_bytes, local_memory_bytes;
    uint32_t max_sub_devices; /* 0: cannot be split */
    bool usable;
    char reason[384]; /* why not, when not usable */
    /* "nvidia-mma", "intel-dpas-16", "intel-dpas-8", "amd-mfma", "amd-wmma-gfx11", "amd-wmma-gfx12": fast math may
     * use it; "" when none is known */
    char matrix_unit[24];
} tpucl_device_info;

typedef struct tpucl_topology_info {
    const char *name; /* borrowed from the runtime */
    int32_t hosts, chips, cores;
    uint64_t hbm_bytes; /* of a core; 0 when the topology does not say */
} tpucl_topology_info;

/* Reads the topology and opens its devices. `options` may be NULL. TPUCL_NO_DEVICE,
 * TPUCL_INVALID_CONFIG (all problems of the topology at once), TPUCL_NOT_FOUND. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_runtime_create(const tpucl_runtime_options *options,
                                                             tpucl_runtime **out_runtime);
TPUCL_API void tpucl_runtime_destroy(tpucl_runtime *runtime);

/* The opened devices, sub-devices counted one by one. */
TPUCL_API int32_t tpucl_runtime_device_count(const tpucl_runtime *runtime);
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_runtime_device_info(const tpucl_runtime *runtime,
                                                                  int32_t index,
                                                                  tpucl_device_info *out_info);
TPUCL_API tpucl_topology_info tpucl_runtime_topology(const tpucl_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif
