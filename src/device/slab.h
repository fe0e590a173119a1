/* SPDX-License-Identifier: Apache-2.0
 * One logical region of device memory, handed out by the memory plan as (segment, offset). Devices
 * limit a single allocation (tp_device_caps.max_allocation_bytes), so a slab is one or more
 * segments, each one buffer. The planner gets that limit, places every item inside one segment, and
 * hands over how many bytes each segment needs; the slab only allocates.
 */
#ifndef TP_DEVICE_SLAB_H
#define TP_DEVICE_SLAB_H

#include "device/buffer.h"

typedef struct tp_slab tp_slab;

/* All segments or none. Checks the total against the device's memory first:
 * TPUCL_OUT_OF_DEVICE_MEMORY has the total, what is used already and the limit. */
tpucl_status tp_slab_create(tp_device *device, const uint64_t *segment_bytes,
                            uint32_t segment_count, const char *label, tp_slab **out_slab);
void tp_slab_destroy(tp_slab *slab);

uint32_t tp_slab_segment_count(const tp_slab *slab);
tp_buffer *tp_slab_segment(const tp_slab *slab, uint32_t index); /* borrowed */
uint64_t tp_slab_bytes(const tp_slab *slab);

#endif
