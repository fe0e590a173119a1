/* SPDX-License-Identifier: Apache-2.0
 * Buffers and transfers. With guard zones the memory that kernels see is a sub-buffer of a larger
 * one, so that nothing else changes for them. */
#include "device/internal.h"

#include <stdio.h>
#include <string.h>
#include "core/alloc.h"

static tpucl_status check_size(const tp_device *device, size_t bytes, const char *label)
{
    if (!bytes)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "buffer '%s' of 0 bytes, expected 1 or more", label);
    if (bytes > device->caps.max_allocation_bytes)
        return TP_FAIL(TPUCL_OUT_OF_DEVICE_MEMORY,
                       "buffer '%s' of %zu bytes is larger than the largest single allocation of "
                       "device %s '%s', "
                       "%llu bytes",
                       label, bytes, device->label, device->caps.name,
                       (unsigned long long)device->caps.max_allocation_bytes);
    return TPUCL_OK;
}

static tpucl_status fill_guards(tp_buffer *buffer)
{
    const tp_device *device = buffer->device;
    const tp_cl_api *cl = device->cl;
    const cl_uchar pattern = TP_GUARD_PATTERN;
    const size_t behind = buffer->guard_bytes + buffer->bytes;
    const size_t offsets[2] = {0, behind};
    for (int i = 0; i < 2; i++)
        TP_CL_TRY(cl->EnqueueFillBuffer(device->queues[TP_LANE_COMPUTE], buffer->whole, &pattern, 1,
                                        offsets[i], buffer->guard_bytes, 0, NULL, NULL),
                  "clEnqueueFillBuffer", "guard zone of '%s'", buffer->label);
    /* Other lanes may use the buffer at once. */
    TP_CL_TRY(cl->Finish(device->queues[TP_LANE_COMPUTE]), "clFinish", "guard zones of '%s'",
              buffer->label);
    return TPUCL_OK;
}

static tpucl_status allocate(tp_buffer *buffer)
{
    const tp_device *device = buffer->device;
    const tp_cl_api *cl = device->cl;
    cl_int code = CL_SUCCESS;
    const size_t whole_bytes = buffer->bytes + 2 * buffer->guard_bytes;
    buffer->whole = cl->CreateBuffer(device->context, CL_MEM_READ_WRITE, whole_bytes, NULL, &code);
    TP_CL_TRY_OUT(buffer->whole, code, "clCreateBuffer", "%zu bytes for '%s' on device %s '%s'",
                  whole_bytes, buffer->label, device->label, device->caps.name);
    buffer->memory = buffer->whole;
    if (!buffer->guard_bytes) return TPUCL_OK;
    const cl_buffer_region region = {.origin = buffer->guard_bytes, .size = buffer->bytes};
    cl_mem inner = cl->CreateSubBuffer(buffer->whole, CL_MEM_READ_WRITE,
                                       CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    TP_CL_TRY_OUT(inner, code, "clCreateSubBuffer", "%zu bytes between the guard zones of '%s'",
                  buffer->bytes, buffer->label);
    buffer->memory = inner;
    return fill_guards(buffer);
}

static size_t guard_bytes_of(const tp_device *device)
{
    if (!device->options.guard_zones) return 0;
    const size_t align =
        device->caps.base_address_align_bytes; /* sub-buffers must start at a multiple */
    return (TP_GUARD_BYTES + align - 1) / align * align;
}

tpucl_status tp_buffer_create(tp_device *device, size_t bytes, const char *label,
                              tp_buffer **out_buffer)
{
    *out_buffer = NULL;
    TP_TRY(check_size(device, bytes, label));
    TP_TRY(tp_device_reserve(device, bytes, label));
    tp_buffer *buffer = TP_NEW(tp_buffer);
    if (!buffer) {
        tp_device_unreserve(device, bytes);
        return TPUCL_OUT_OF_MEMORY;
    }
    tp_device_retain(device);
    atomic_init(&buffer->references, 1);
    buffer->device = device;
    buffer->bytes = bytes;
    buffer->guard_bytes = guard_bytes_of(device);
    snprintf(buffer->label, sizeof buffer->label, "%s", label);
    const tpucl_status status = allocate(buffer);
    if (status != TPUCL_OK) {
        tp_buffer_release(buffer);
        return status;
    }
    *out_buffer = buffer;
    return TPUCL_OK;
}

void tp_buffer_retain(tp_buffer *buffer)
{
    atomic_fetch_add(&buffer->references, 1);
}

void tp_buffer_release(tp_buffer *buffer)
{
    if (!buffer || atomic_fetch_sub(&buffer->references, 1) != 1) return;
    const tp_cl_api *cl = buffer->device->cl;
    if (buffer->memory && buffer->memory != buffer->whole)
        (void)cl->ReleaseMemObject(buffer->memory);
    if (buffer->whole) (void)cl->ReleaseMemObject(buffer->whole);
    tp_device_unreserve(buffer->device, buffer->bytes);
    tp_device_release(buffer->device);
    tp_free(buffer);
}

size_t tp_buffer_bytes(const tp_buffer *buffer)
{
    return buffer->bytes;
}

tp_device *tp_buffer_device(const tp_buffer *buffer)
{
    return buffer->device;
}

const char *tp_buffer_label(const tp_buffer *buffer)
{
    return buffer->label;
}

static tpucl_status check_range(const tp_buffer *buffer, size_t offset, size_t bytes)
{
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "%zu bytes at offset %zu are outside buffer '%s' of %zu bytes", bytes, offset,
                   buffer->label, buffer->bytes);
}

/* What a transfer of zero bytes comes down to. */
static tpucl_status only_order(tp_device *device, tp_lane lane, tp_event *const *wait,
                               uint32_t wait_count, tp_event **out_event)
{
    TP_TRY(tp_lane_wait(device, lane, wait, wait_count));
    return out_event ? tp_lane_mark(device, lane, out_event) : TPUCL_OK;
}

tpucl_status tp_buffer_upload(tp_buffer *buffer, size_t offset_bytes, const void *src, size_t bytes,
                              tp_lane lane, bool is_blocking, tp_event *const *wait,
                              uint32_t wait_count, tp_event **out_event)
{
    tp_device *device = buffer->device;
    if (out_event) *out_event = NULL;
    TP_TRY(check_range(buffer, offset_bytes, bytes));
    if (!bytes) return only_order(device, lane, wait, wait_count, out_event);
    tp_lane_prepare_wait(device, lane, wait_count);
    TP_CL_TRY(device->cl->EnqueueWriteBuffer(device->queues[lane], buffer->memory, is_blocking,
                                             offset_bytes, bytes, src, wait_count,
                                             wait_count ? tp_cl_events(wait) : NULL,
                                             (cl_event *)(void *)out_event),
              "clEnqueueWriteBuffer", "%zu bytes to '%s' of device %s", bytes, buffer->label,
              device->label);
    return tp_lane_after_enqueue(device, lane, out_event);
}

tpucl_status tp_buffer_download(tp_buffer *buffer, size_t offset_bytes, void *dst, size_t bytes,
                                tp_lane lane, bool is_blocking, tp_event *const *wait,
                                uint32_t wait_count, tp_event **out_event)
{
    tp_device *device = buffer->device;
    if (out_event) *out_event = NULL;
    TP_TRY(check_range(buffer, offset_bytes, bytes));
    if (!bytes) return only_order(device, lane, wait, wait_count, out_event);
    tp_lane_prepare_wait(device, lane, wait_count);
    TP_CL_TRY(device->cl->EnqueueReadBuffer(device->queues[lane], buffer->memory, is_blocking,
                                            offset_bytes, bytes, dst, wait_count,
                                            wait_count ? tp_cl_events(wait) : NULL,
                                            (cl_event *)(void *)out_event),
              "clEnqueueReadBuffer", "%zu bytes from '%s' of device %s", bytes, buffer->label,
              device->label);
    return tp_lane_after_enqueue(device, lane, out_event);
}

tpucl_status tp_buffer_copy(tp_buffer *src, size_t src_offset_bytes, tp_buffer *dst,
                            size_t dst_offset_bytes, size_t bytes, tp_lane lane,
                            tp_event *const *wait, uint32_t wait_count, tp_event **out_event)
{
    tp_device *device = src->device;
    if (out_event) *out_event = NULL;
    if (dst->device != device)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "copy from '%s' of device %s to '%s' of device %s, expected one device",
                       src->label, device->label, dst->label, dst->device->label);
    TP_TRY(check_range(src, src_offset_bytes, bytes));
    TP_TRY(check_range(dst, dst_offset_bytes, bytes));
    if (!bytes) return only_order(device, lane, wait, wait_count, out_event);
    tp_lane_prepare_wait(device, lane, wait_count);
    TP_CL_TRY(device->cl->EnqueueCopyBuffer(device->queues[lane], src->memory, dst->memory,
                                            src_offset_bytes, dst_offset_bytes, bytes, wait_count,
                                            wait_count ? tp_cl_events(wait) : NULL,
                                            (cl_event *)(void *)out_event),
              "clEnqueueCopyBuffer", "%zu bytes from '%s' to '%s' of device %s", bytes, src->label,
              dst->label, device->label);
    return tp_lane_after_enqueue(device, lane, out_event);
}

tpucl_status tp_buffer_fill(tp_buffer *buffer, size_t offset_bytes, size_t bytes,
                            const void *pattern, size_t pattern_bytes, tp_lane lane,
                            tp_event *const *wait, uint32_t wait_count, tp_event **out_event)
{
    tp_device *device = buffer->device;
    if (out_event) *out_event = NULL;
    TP_TRY(check_range(buffer, offset_bytes, bytes));
    const bool is_power =
        pattern_bytes && pattern_bytes <= 16 && !(pattern_bytes & (pattern_bytes - 1));
    if (!is_power || offset_bytes % pattern_bytes || bytes % pattern_bytes)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "fill of %zu bytes at offset %zu of '%s' with a pattern of %zu bytes, "
                       "expected multiples of "
                       "1, 2, 4, 8 or 16",
                       bytes, offset_bytes, buffer->label, pattern_bytes);
    if (!bytes) return only_order(device, lane, wait, wait_count, out_event);
    tp_lane_prepare_wait(device, lane, wait_count);
    TP_CL_TRY(device->cl->EnqueueFillBuffer(device->queues[lane], buffer->memory, pattern,
                                            pattern_bytes, offset_bytes, bytes, wait_count,
                                            wait_count ? tp_cl_events(wait) : NULL,
                                            (cl_event *)(void *)out_event),
              "clEnqueueFillBuffer", "%zu bytes of '%s' of device %s", bytes, buffer->label,
              device->label);
    return tp_lane_after_enqueue(device, lane, out_event);
}

tpucl_status tp_buffer_write(tp_buffer *buffer, size_t offset_bytes, const void *src, size_t bytes)
{
    return tp_buffer_upload(buffer, offset_bytes, src, bytes, TP_LANE_COMPUTE, true, NULL, 0, NULL);
}

tpucl_status tp_buffer_read(tp_buffer *buffer, size_t offset_bytes, void *dst, size_t bytes)
{
    return tp_buffer_download(buffer, offset_bytes, dst, bytes, TP_LANE_COMPUTE, true, NULL, 0,
                              NULL);
}

/* Offsets count from the buffer's first byte, so those before it are negative. */
static tpucl_status report_damage(const tp_buffer *buffer, const unsigned char *zones)
{
    size_t changed = 0;
    long long first = 0;
    for (size_t i = 0; i < 2 * buffer->guard_bytes; i++) {
        if (zones[i] == TP_GUARD_PATTERN) continue;
        const bool is_before = i < buffer->guard_bytes;
        if (!changed++)
            first = (long long)i - (long long)buffer->guard_bytes +
                    (is_before ? 0 : (long long)buffer->bytes);
    }
    if (!changed) return TPUCL_OK;
    return TP_FAIL(TPUCL_DEVICE_ERROR,
                   "a kernel wrote outside buffer '%s' of %zu bytes: %zu bytes changed, the first "
                   "at offset %lld",
                   buffer->label, buffer->bytes, changed, first);
}

tpucl_status tp_buffer_check_guards(tp_buffer *buffer)
{
    const size_t guard = buffer->guard_bytes;
    const tp_device *device = buffer->device;
    if (!guard) return TPUCL_OK;
    TP_TRY(tp_device_finish(buffer->device));
    unsigned char *zones = tp_alloc(2 * guard);
    if (!zones) return TPUCL_OUT_OF_MEMORY;
    const cl_command_queue queue = device->queues[TP_LANE_COMPUTE];
    cl_int code = device->cl->EnqueueReadBuffer(queue, buffer->whole, CL_TRUE, 0, guard, zones, 0,
                                                NULL, NULL);
    if (code == CL_SUCCESS)
        code = device->cl->EnqueueReadBuffer(queue, buffer->whole, CL_TRUE, guard + buffer->bytes,
                                             guard, zones + guard, 0, NULL, NULL);
    const tpucl_status status =
        code == CL_SUCCESS
            ? report_damage(buffer, zones)
            : TP_CL_FAIL(code, "clEnqueueReadBuffer", "guard zones of '%s'", buffer->label);
    tp_free(zones);
    return status;
}
