/* SPDX-License-Identifier: Apache-2.0
 * Device memory. Buffers are reference-counted, because work in flight outlives the call that
 * enqueued it. Every allocation is checked against the device's largest single allocation and its
 * memory before OpenCL is asked, so the message has all the numbers (TPUCL_OUT_OF_DEVICE_MEMORY).
 *
 * Transfers take a wait list (NULL and 0: nothing) and an optional out_event (NULL: none is made).
 * With `is_blocking` they return when the data has arrived; otherwise the host memory must stay as
 * it is until the event is done. Ranges are checked against the buffer; a range of zero bytes does
 * nothing but order.
 *
 * Guard zones (tp_device_options.guard_zones): TP_GUARD_BYTES of TP_GUARD_PATTERN before and behind
 * every buffer, checked by tp_buffer_check_guards. Buffers then start at another address, nothing
 * else differs.
 */
#ifndef TP_DEVICE_BUFFER_H
#define TP_DEVICE_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include "device/device.h"

#define TP_GUARD_BYTES 4096
#define TP_GUARD_PATTERN 0xA5

typedef struct tp_buffer tp_buffer;

/* `label` is copied and names the buffer in messages. Zero bytes are TPUCL_INVALID_ARGUMENT. The
 * content is not defined until written. */
tpucl_status tp_buffer_create(tp_device *device, size_t bytes, const char *label,
                              tp_buffer **out_buffer);
void tp_buffer_retain(tp_buffer *buffer);
/* Drops one reference; NULL is fine. OpenCL keeps the memory until commands that use it are done.
 */
void tp_buffer_release(tp_buffer *buffer);

size_t tp_buffer_bytes(const tp_buffer *buffer);
tp_device *tp_buffer_device(const tp_buffer *buffer); /* borrowed */
const char *tp_buffer_label(const tp_buffer *buffer); /* borrowed */

/* Host to device. `lane` is usually TP_LANE_UPLOAD; order against other lanes is the caller's. */
tpucl_status tp_buffer_upload(tp_buffer *buffer, size_t offset_bytes, const void *src, size_t bytes,
                              tp_lane lane, bool is_blocking, tp_event *const *wait,
                              uint32_t wait_count, tp_event **out_event);

/* Device to host. */
tpucl_status tp_buffer_download(tp_buffer *buffer, size_t offset_bytes, void *dst, size_t bytes,
                                tp_lane lane, bool is_blocking, tp_event *const *wait,
                                uint32_t wait_count, tp_event **out_event);

/* Device to device, both buffers of the same device; the ranges may not overlap. */
tpucl_status tp_buffer_copy(tp_buffer *src, size_t src_offset_bytes, tp_buffer *dst,
                            size_t dst_offset_bytes, size_t bytes, tp_lane lane,
                            tp_event *const *wait, uint32_t wait_count, tp_event **out_event);

/* Repeats a pattern of 1, 2, 4, 8 or 16 bytes; offset and bytes are multiples of it. */
tpucl_status tp_buffer_fill(tp_buffer *buffer, size_t offset_bytes, size_t bytes,
                            const void *pattern, size_t pattern_bytes, tp_lane lane,
                            tp_event *const *wait, uint32_t wait_count, tp_event **out_event);

/* Blocking, in order behind everything on the compute lane: for set-up, tests and read-outs. */
tpucl_status tp_buffer_write(tp_buffer *buffer, size_t offset_bytes, const void *src, size_t bytes);
tpucl_status tp_buffer_read(tp_buffer *buffer, size_t offset_bytes, void *dst, size_t bytes);

/* Reads both zones back (after finishing all lanes). TPUCL_DEVICE_ERROR names the buffer, where the
 * first changed byte is and how many changed. TPUCL_OK at once when the device has no guard zones.
 */
tpucl_status tp_buffer_check_guards(tp_buffer *buffer);

/* Host memory that transfers fast: pinned where the driver has that, 64-byte aligned everywhere.
 * One thread at a time; destroy it only after the transfers that use it. */
typedef struct tp_staging tp_staging;
tpucl_status tp_staging_create(tp_device *device, size_t bytes, tp_staging **out_staging);
void tp_staging_destroy(tp_staging *staging);
void *tp_staging_data(tp_staging *staging); /* borrowed, `bytes` long */
size_t tp_staging_bytes(const tp_staging *staging);

#endif
