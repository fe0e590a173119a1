/* SPDX-License-Identifier: Apache-2.0
 * A slab: one buffer per segment. Drivers often allocate at first use only, so each segment is
 * touched here: running out of memory must show before a run starts, not in the middle of a step.
 * */
#include "device/slab.h"

#include <stdio.h>
#include "core/alloc.h"
#include "device/internal.h"

struct tp_slab {
    tp_buffer **segments;
    uint32_t segment_count;
    uint64_t bytes;
};

static tpucl_status sum_segments(const uint64_t *segment_bytes, uint32_t count, const char *label,
                                 uint64_t *out_total)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        if (__builtin_add_overflow(total, segment_bytes[i], &total) || segment_bytes[i] > SIZE_MAX)
            return TP_FAIL(TPUCL_OUT_OF_DEVICE_MEMORY,
                           "slab '%s': %u segments add up to more than 64 bits", label, count);
    *out_total = total;
    return TPUCL_OK;
}

/* Books and gives back: only the message matters, the segments book for themselves. */
static tpucl_status check_total(tp_device *device, uint64_t total, const char *label)
{
    TP_TRY(tp_device_reserve(device, total, label));
    tp_device_unreserve(device, total);
    return TPUCL_OK;
}

static tpucl_status create_segments(tp_slab *slab, tp_device *device, const uint64_t *segment_bytes,
                                    const char *label)
{
    for (uint32_t i = 0; i < slab->segment_count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.48s[%u]", label, i);
        TP_TRY(tp_buffer_create(device, (size_t)segment_bytes[i], name, &slab->segments[i]));
        const uint8_t zero = 0;
        TP_TRY(tp_buffer_fill(slab->segments[i], 0, 1, &zero, 1, TP_LANE_COMPUTE, NULL, 0, NULL));
    }
    return tp_lane_finish(device, TP_LANE_COMPUTE);
}

tpucl_status tp_slab_create(tp_device *device, const uint64_t *segment_bytes,
                            uint32_t segment_count, const char *label, tp_slab **out_slab)
{
    *out_slab = NULL;
    uint64_t total = 0;
    TP_TRY(sum_segments(segment_bytes, segment_count, label, &total));
    TP_TRY(check_total(device, total, label));
    tp_slab *slab = TP_NEW(tp_slab);
    if (!slab) return TPUCL_OUT_OF_MEMORY;
    slab->bytes = total;
    slab->segments = TP_NEW_ARRAY(tp_buffer *, segment_count);
    if (slab->segments) slab->segment_count = segment_count;
    const tpucl_status status =
        slab->segments ? create_segments(slab, device, segment_bytes, label) : TPUCL_OUT_OF_MEMORY;
    if (status != TPUCL_OK) {
        tp_slab_destroy(slab);
        return status;
    }
    *out_slab = slab;
    return TPUCL_OK;
}

void tp_slab_destroy(tp_slab *slab)
{
    if (!slab) return;
    for (uint32_t i = 0; i < slab->segment_count; i++)
        tp_buffer_release(slab->segments[i]);
    tp_free(slab->segments);
    tp_free(slab);
}

uint32_t tp_slab_segment_count(const tp_slab *slab)
{
    return slab->segment_count;
}

tp_buffer *tp_slab_segment(const tp_slab *slab, uint32_t index)
{
    return index < slab->segment_count ? slab->segments[index] : NULL;
}

uint64_t tp_slab_bytes(const tp_slab *slab)
{
    return slab->bytes;
}
