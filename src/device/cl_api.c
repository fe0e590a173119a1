/* SPDX-License-Identifier: Apache-2.0
 * Loads the ICD loader at run time. The library handle is never closed: drivers keep threads and
 * exit handlers that live in it. An OpenCL that is in the process already goes first: that is how
 * Oclgrind and other preloaded libraries put themselves in front of the loader. */
#include "device/cl_api.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/env.h"
#include "core/thread.h"

static const char default_library[] = "libOpenCL.so.1";

static tp_mutex load_mutex = TP_MUTEX_INIT;
static tp_cl_api loaded_table;
static bool is_loaded;
static const tp_cl_api *_Atomic current_table;

/* NULL, or the first entry point that `library` (dlopen's handle or RTLD_DEFAULT) lacks. */
static const char *fill_table(void *library, tp_cl_api *out_table)
{
    const char *missing = NULL;
    /* POSIX lets the address of a function travel in a void *, C11 alone does not: hence memcpy. */
#define FILL_ENTRY(name)                                                                           \
    do {                                                                                           \
        void *symbol = dlsym(library, "cl" #name);                                                 \
        if (!symbol && !missing) missing = "cl" #name;                                             \
        memcpy(&out_table->name, &symbol, sizeof symbol);                                          \
    } while (0);
    TP_CL_ENTRY_LIST(FILL_ENTRY)
#undef FILL_ENTRY
    return missing;
}

tpucl_status tp_cl_api_open(const char *path, tp_cl_api *out_table)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return TP_FAIL(
            TPUCL_NO_DEVICE,
            "the OpenCL library '%s' cannot be loaded (%s); install an OpenCL loader and a driver "
            "(Debian: ocl-icd-libopencl1 and pocl-opencl-icd)",
            path, dlerror());
    const char *missing = fill_table(library, out_table);
    if (!missing) return TPUCL_OK;
    dlclose(library);
    return TP_FAIL(TPUCL_NO_DEVICE,
                   "the OpenCL library '%s' has no '%s'; tpucl needs OpenCL 1.2 or newer", path,
                   missing);
}

/* PoCL compiles a kernel for each work size at its first launch, and once more for any work size when its binary
 * is asked for. One of them is enough: the second, which can be had before anything runs. Measured with PoCL 3.1:
 * no difference in the processor time of a training step of ResNet-50. */
static void compile_kernels_once(void)
{
    (void)setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
}

static tpucl_status open_default(tp_cl_api *out_table)
{
    compile_kernels_once();
    const char *path = tp_env_text(TP_ENV_OPENCL_LIBRARY);
    if (path) return tp_cl_api_open(path, out_table);
    if (!fill_table(RTLD_DEFAULT, out_table)) return TPUCL_OK;
    return tp_cl_api_open(default_library, out_table);
}

tpucl_status tp_cl_api_load(void)
{
    if (atomic_load(&current_table)) return TPUCL_OK;
    tpucl_status status = TPUCL_OK;
    tp_mutex_lock(&load_mutex);
    if (!is_loaded) {
        status = open_default(&loaded_table);
        is_loaded = status == TPUCL_OK;
    }
    if (is_loaded && !atomic_load(&current_table)) atomic_store(&current_table, &loaded_table);
    tp_mutex_unlock(&load_mutex);
    return status;
}

const tp_cl_api *tp_cl_api_current(void)
{
    return atomic_load(&current_table);
}

void tp_cl_api_replace(const tp_cl_api *table)
{
    tp_mutex_lock(&load_mutex);
    atomic_store(&current_table, table ? table : is_loaded ? &loaded_table : NULL);
    tp_mutex_unlock(&load_mutex);
}
