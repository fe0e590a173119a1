/* SPDX-License-Identifier: Apache-2.0
 * Staging memory. On CPU devices it is ordinary aligned memory: there is nothing to pin. Elsewhere
 * it is a buffer in host memory, mapped for as long as it lives, which is the one portable way to
 * get pinned pages. */
#include "device/internal.h"

#include "core/alloc.h"

enum {
    PAGE_BYTES = 4096, /* drivers copy whole pages fastest */
    MAPPED_ALIGN_BYTES = 64
};

struct tp_staging {
    tp_device *device;
    cl_mem memory; /* NULL: `data` is ours */
    void *mapped;
    void *data; /* `mapped`, aligned: drivers promise nothing about it */
    size_t bytes;
};

static tpucl_status map_pinned(tp_staging *staging)
{
    const tp_device *device = staging->device;
    const tp_cl_api *cl = device->cl;
    size_t room;
    if (!tp_size_add(staging->bytes, MAPPED_ALIGN_BYTES, &room))
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "staging memory of %zu bytes", staging->bytes);
    cl_int code = CL_SUCCESS;
    staging->memory = cl->CreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                       room, NULL, &code);
    TP_CL_TRY_OUT(staging->memory, code, "clCreateBuffer",
                  "%zu bytes of host memory for device %s '%s'", room, device->label,
                  device->caps.name);
    staging->mapped =
        cl->EnqueueMapBuffer(device->queues[TP_LANE_UPLOAD], staging->memory, CL_TRUE,
                             CL_MAP_READ | CL_MAP_WRITE, 0, room, 0, NULL, NULL, &code);
    TP_CL_TRY_OUT(staging->mapped, code, "clEnqueueMapBuffer",
                  "%zu bytes of host memory for device %s '%s'", room, device->label,
                  device->caps.name);
    const uintptr_t start = (uintptr_t)staging->mapped;
    const uintptr_t beyond = start % MAPPED_ALIGN_BYTES;
    staging->data = (char *)staging->mapped + (beyond ? MAPPED_ALIGN_BYTES - beyond : 0);
    return TPUCL_OK;
}

tpucl_status tp_staging_create(tp_device *device, size_t bytes, tp_staging **out_staging)
{
    *out_staging = NULL;
    if (!bytes)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "staging memory of 0 bytes, expected 1 or more");
    tp_staging *staging = TP_NEW(tp_staging);
    if (!staging) return TPUCL_OUT_OF_MEMORY;
    tp_device_retain(device);
    staging->device = device;
    staging->bytes = bytes;
    tpucl_status status = TPUCL_OK;
    if (device->caps.type == TP_DEVICE_CPU) {
        staging->data = tp_alloc_aligned(bytes, PAGE_BYTES);
        if (!staging->data) status = TPUCL_OUT_OF_MEMORY;
    } else {
        status = map_pinned(staging);
    }
    if (status != TPUCL_OK) {
        tp_staging_destroy(staging);
        return status;
    }
    *out_staging = staging;
    return TPUCL_OK;
}

void tp_staging_destroy(tp_staging *staging)
{
    if (!staging) return;
    tp_device *device = staging->device;
    const tp_cl_api *cl = device->cl;
    if (staging->mapped) {
        const cl_command_queue queue = device->queues[TP_LANE_UPLOAD];
        (void)cl->EnqueueUnmapMemObject(queue, staging->memory, staging->mapped, 0, NULL, NULL);
        (void)cl->Finish(queue);
    }
    if (staging->memory)
        (void)cl->ReleaseMemObject(staging->memory);
    else
        tp_free(staging->data);
    tp_device_release(device);
    tp_free(staging);
}

void *tp_staging_data(tp_staging *staging)
{
    return staging->data;
}

size_t tp_staging_bytes(const tp_staging *staging)
{
    return staging->bytes;
}
