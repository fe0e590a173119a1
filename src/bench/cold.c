/* SPDX-License-Identifier: Apache-2.0
 * See cold.h. */
#include "bench/cold.h"

#include "core/alloc.h"
#include "device/buffer.h"

#define LEAST_BYTES                                                                                \
    ((uint64_t)64 << 20) /* where the driver does not say how large its caches are */

struct tp_cold {
    tp_device *device;
    tp_buffer *buffer;
    size_t bytes;
    uint32_t pattern; /* another one each time */
};

tpucl_status tp_cold_create(tp_device *device, tp_cold **out_cold)
{
    const tp_device_caps *caps = tp_device_get_caps(device);
    uint64_t bytes = 2 * caps->cache_bytes > LEAST_BYTES ? 2 * caps->cache_bytes : LEAST_BYTES;
    if (bytes > caps->max_allocation_bytes) bytes = caps->max_allocation_bytes;
    tp_cold *cold = TP_NEW(tp_cold);
    if (!cold) return TPUCL_OUT_OF_MEMORY;
    cold->device = device;
    cold->bytes = (size_t)(bytes & ~(uint64_t)15);
    const tpucl_status status = tp_buffer_create(device, cold->bytes, "cold", &cold->buffer);
    if (status != TPUCL_OK) {
        tp_free(cold);
        return status;
    }
    *out_cold = cold;
    return TPUCL_OK;
}

void tp_cold_destroy(tp_cold *cold)
{
    if (!cold) return;
    tp_buffer_release(cold->buffer);
    tp_free(cold);
}

tpucl_status tp_cold_sweep(void *user)
{
    tp_cold *cold = user;
    cold->pattern++;
    TP_TRY(tp_buffer_fill(cold->buffer, 0, cold->bytes, &cold->pattern, sizeof cold->pattern,
                          TP_LANE_COMPUTE, NULL, 0, NULL));
    return tp_lane_finish(cold->device, TP_LANE_COMPUTE);
}
