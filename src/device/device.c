/* SPDX-License-Identifier: Apache-2.0
 * Opening and closing. One context per device, because NVIDIA's driver makes devices of one context
 * wait for each other (KataGo pull request 304), and one per sub-device so that cores share nothing
 * by accident. */
#include "device/internal.h"

#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "core/log.h"
#include "device/caps.h"
#include "device/platform_internal.h"

static void write_build_options(tp_device *device)
{
    const tp_device_caps *caps = &device->caps;
    /* Every device from OpenCL 1.2 to 3.0 must accept CL1.2, and our kernels need nothing newer;
     * without the option strict compilers assume another version. -w: some drivers print warnings
     * to standard error, which is not ours to fill. The macros are those of
     * kernels/lib/platform.clh. */
    snprintf(device->build_options, sizeof device->build_options, "-cl-std=CL1.2 -w%s%s%s",
             caps->fma_is_fast ? "" : " -DTP_SLOW_FMA=1",
             caps->has_correct_divide_sqrt
                 ? " -cl-fp32-correctly-rounded-divide-sqrt -DTP_CORRECT_DIVIDE=1"
                 : "",
             device->quirks.build_options);
}

static tpucl_status create_lanes(tp_device *device)
{
    const tp_cl_api *cl = device->cl;
    const cl_command_queue_properties properties =
        device->options.profiling ? CL_QUEUE_PROFILING_ENABLE : 0;
    const int count = device->has_one_lane ? 1 : TP_LANE_COUNT;
    for (int lane = 0; lane < count; lane++) {
        cl_int code = CL_SUCCESS;
        device->queues[lane] =
            cl->CreateCommandQueue(device->context, device->id, properties, &code);
        TP_CL_TRY_OUT(device->queues[lane], code, "clCreateCommandQueue",
                      "lane %d of device %s '%s'", lane, device->label, device->caps.name);
    }
    for (int lane = count; lane < TP_LANE_COUNT; lane++)
        device->queues[lane] = device->queues[0];
    return TPUCL_OK;
}

/* Waits for what was enqueued after the close (objects keep their device), and then some: PoCL 3.1
 * reports a command as done a moment before its worker thread lets go of it, and then reads the
 * device through it, which for a sub-device may be freed by then, and at the end of the process for
 * any device. Commands hold references to their queue, so ours being the last one says that all are
 * gone. */
static void drain(const tp_device *device, cl_command_queue queue)
{
    enum { POLLS = 1000 };
    const uint64_t pause_ns = 100000;
    const tp_cl_api *cl = device->cl;
    (void)cl->Finish(queue);
    for (int poll = 0; poll < POLLS; poll++) {
        cl_uint references = 0;
        if (cl->GetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references,
                                    NULL) != CL_SUCCESS ||
            references <= 1)
            return;
        tp_clock_sleep_ns(pause_ns);
    }
}

static void destroy(tp_device *device)
{
    const tp_cl_api *cl = device->cl;
    tp_build_state_deinit(device);
    const int queue_count = device->has_one_lane ? 1 : TP_LANE_COUNT;
    for (int lane = 0; lane < queue_count; lane++)
        if (device->queues[lane])
            (void)cl->Flush(device->queues[lane]); /* one may wait for another */
    for (int lane = 0; lane < queue_count; lane++)
        if (device->queues[lane]) drain(device, device->queues[lane]);
    for (int lane = 0; lane < queue_count; lane++)
        if (device->queues[lane]) (void)cl->ReleaseCommandQueue(device->queues[lane]);
    if (device->context) (void)cl->ReleaseContext(device->context);
    if (device->is_sub_device) (void)cl->ReleaseDevice(device->id);
    tp_mutex_deinit(&device->memory_mutex);
    tp_free(device);
}

void tp_device_retain(tp_device *device)
{
    atomic_fetch_add(&device->references, 1);
}

void tp_device_release(tp_device *device)
{
    if (atomic_fetch_sub(&device->references, 1) == 1) destroy(device);
}

static tpucl_status set_up(tp_device *device)
{
    const tp_device_caps *caps = &device->caps;
    cl_int code = CL_SUCCESS;
    device->context = device->cl->CreateContext(NULL, 1, &device->id, NULL, NULL, &code);
    TP_CL_TRY_OUT(device->context, code, "clCreateContext", "device %s '%s' (%s)", device->label,
                  caps->name, caps->platform);
    TP_TRY(create_lanes(device));
    write_build_options(device);
    return tp_build_state_init(device);
}

/* Takes over `id` of a sub-device in every case. */
static tpucl_status open_adopt(const tp_device_entry *entry, cl_device_id id, bool is_sub_device,
                               const char *label, const tp_device_caps *caps,
                               const tp_device_options *options, tp_device **out_device)
{
    const tp_cl_api *cl = tp_cl_api_current();
    tp_device *device = TP_NEW(tp_device);
    if (!device || tp_mutex_init(&device->memory_mutex) != TPUCL_OK) {
        tp_free(device);
        if (is_sub_device) (void)cl->ReleaseDevice(id);
        return TPUCL_OUT_OF_MEMORY;
    }
    atomic_init(&device->references, 1);
    device->cl = cl;
    device->id = id;
    device->is_sub_device = is_sub_device;
    device->caps = *caps;
    device->quirks = entry->quirks;
    if (options) device->options = *options;
    atomic_init(&device->is_synchronous, device->options.synchronous);
    device->has_one_lane = device->options.one_lane || (entry->quirks.effects & TP_QUIRK_ONE_LANE);
    snprintf(device->label, sizeof device->label, "%s", label);
    snprintf(device->identity, sizeof device->identity, "%s | %s | %s | %s | %s", caps->name,
             caps->driver, caps->version, caps->platform, entry->platform_version);
    device->memory.limit_bytes = caps->memory_bytes;
    if (device->options.memory_limit_bytes &&
        device->options.memory_limit_bytes < caps->memory_bytes)
        device->memory.limit_bytes = device->options.memory_limit_bytes;
    const tpucl_status status = set_up(device);
    if (status != TPUCL_OK) {
        tp_device_release(device);
        return status;
    }
    TP_LOG_DEBUG("device", "opened %s '%s' with options '%s'", label, caps->name,
                 device->build_options);
    *out_device = device;
    return TPUCL_OK;
}

static tpucl_status find_usable(const tp_device_list *list, uint32_t index,
                                const tp_listed_device **out_item)
{
    const tp_listed_device *item = tp_device_list_item(list, index);
    if (!item)
        return TP_FAIL(TPUCL_NO_DEVICE, "device index %u, but the list has %u", index,
                       tp_device_list_count(list));
    if (!item->entry.usable)
        return TP_FAIL(TPUCL_NO_DEVICE, "device %s '%s' is not usable: %s", item->entry.selector,
                       item->entry.caps.name, item->entry.reason);
    *out_item = item;
    return TPUCL_OK;
}

tpucl_status tp_device_open(const tp_device_list *list, uint32_t index,
                            const tp_device_options *options, tp_device **out_device)
{
    *out_device = NULL;
    const tp_listed_device *item = NULL;
    TP_TRY(find_usable(list, index, &item));
    return open_adopt(&item->entry, item->id, false, item->entry.selector, &item->entry.caps,
                      options, out_device);
}

static tpucl_status check_split(const tp_device_entry *entry, uint32_t split)
{
    const tp_device_caps *caps = &entry->caps;
    const bool is_pocl = strstr(caps->platform, "Portable Computing Language") != NULL;
    if (caps->compute_units < split)
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "device %s '%s' has %u compute units, splitting it into %u needs %u%s",
                       entry->selector, caps->name, caps->compute_units, split, split,
                       is_pocl ? "; start with POCL_MAX_PTHREAD_COUNT set to that number" : "");
    if (caps->max_sub_devices < split || (entry->quirks.effects & TP_QUIRK_NO_SUB_DEVICES))
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "device %s '%s' cannot be split into %u: the driver allows %u sub-devices",
                       entry->selector, caps->name, split, caps->max_sub_devices);
    return TPUCL_OK;
}

/* What is left of the parent for one of `split` sub-devices: they share its memory. */
static tpucl_status sub_device_caps(const tp_cl_api *cl, cl_device_id id,
                                    const tp_device_entry *parent, uint32_t split,
                                    tp_device_caps *out_caps)
{
    TP_TRY(tp_caps_read(cl, id, parent->caps.platform, out_caps));
    out_caps->memory_bytes = parent->caps.memory_bytes / split;
    if (out_caps->max_allocation_bytes > out_caps->memory_bytes)
        out_caps->max_allocation_bytes = out_caps->memory_bytes;
    out_caps->fma_is_fast = parent->caps.fma_is_fast;
    out_caps->max_sub_devices = 0;
    return TPUCL_OK;
}

tpucl_status tp_device_open_split(const tp_device_list *list, uint32_t index, uint32_t split,
                                  const tp_device_options *options, tp_device **out_devices)
{
    if (split < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "splitting a device into 0, expected 1 or more");
    for (uint32_t i = 0; i < split; i++)
        out_devices[i] = NULL;
    if (split == 1) return tp_device_open(list, index, options, out_devices);
    const tp_listed_device *item = NULL;
    TP_TRY(find_usable(list, index, &item));
    const tp_device_entry *entry = &item->entry;
    TP_TRY(check_split(entry, split));

    const tp_cl_api *cl = tp_cl_api_current();
    const uint32_t units = entry->caps.compute_units / split;
    /* Units that do not divide may give more sub-devices than wanted: take the first `split`. */
    const uint32_t made = entry->caps.compute_units / units;
    cl_device_id *ids = TP_NEW_ARRAY(cl_device_id, made);
    if (!ids) return TPUCL_OUT_OF_MEMORY;
    const cl_device_partition_property properties[] = {CL_DEVICE_PARTITION_EQUALLY, (intptr_t)units,
                                                       0};
    cl_uint count = 0;
    const cl_int code = cl->CreateSubDevices(item->id, properties, made, ids, &count);
    tpucl_status status = TPUCL_OK;
    if (code != CL_SUCCESS || count < split)
        status = TP_CL_FAIL(
            code, "clCreateSubDevices", "device %s '%s' in %u times %u of its %u compute units",
            entry->selector, entry->caps.name, split, units, entry->caps.compute_units);
    for (uint32_t i = 0; code == CL_SUCCESS && i < count; i++) {
        tp_device_caps caps;
        if (status == TPUCL_OK && i < split)
            status = sub_device_caps(cl, ids[i], entry, split, &caps);
        if (status != TPUCL_OK || i >= split) {
            if (ids[i]) (void)cl->ReleaseDevice(ids[i]);
            continue;
        }
        char label[48];
        snprintf(label, sizeof label, "%s/%u#%u", entry->selector, split, i);
        status = open_adopt(entry, ids[i], true, label, &caps, options, &out_devices[i]);
    }
    tp_free(ids);
    if (status == TPUCL_OK) return TPUCL_OK;
    tpucl_error record;
    tp_error_capture(&record);
    for (uint32_t i = 0; i < split; i++) {
        tp_device_close(out_devices[i]);
        out_devices[i] = NULL;
    }
    tp_error_restore(&record);
    return status;
}

void tp_device_close(tp_device *device)
{
    if (!device) return;
    tpucl_error record;
    tp_error_capture(&record); /* closing is often part of a clean-up: keep what happened before */
    (void)tp_device_finish(device);
    tp_error_restore(&record);
    tp_device_forget_programs(device);
    tp_device_release(device);
}

const tp_device_caps *tp_device_get_caps(const tp_device *device)
{
    return &device->caps;
}

const char *tp_device_label(const tp_device *device)
{
    return device->label;
}

const char *tp_device_identity(const tp_device *device)
{
    return device->identity;
}

const char *tp_device_build_options(const tp_device *device)
{
    return device->build_options;
}

void tp_device_get_memory(const tp_device *device, tp_device_memory *out_memory)
{
    tp_mutex *mutex =
        (tp_mutex *)&device->memory_mutex; /* reading changes nothing that a caller can see */
    tp_mutex_lock(mutex);
    *out_memory = device->memory;
    tp_mutex_unlock(mutex);
}

tpucl_status tp_device_reserve(tp_device *device, uint64_t bytes, const char *label)
{
    tp_device_memory *memory = &device->memory;
    tp_mutex_lock(&device->memory_mutex);
    const uint64_t used = memory->used_bytes, free_bytes = memory->limit_bytes - used;
    const bool fits = bytes <= free_bytes;
    if (fits) memory->used_bytes += bytes;
    if (memory->used_bytes > memory->peak_bytes) memory->peak_bytes = memory->used_bytes;
    tp_mutex_unlock(&device->memory_mutex);
    if (fits) return TPUCL_OK;
    return TP_FAIL(
        TPUCL_OUT_OF_DEVICE_MEMORY,
        "'%s' needs %llu bytes, but device %s '%s' has %llu of %llu bytes left (%llu in use)",
        label, (unsigned long long)bytes, device->label, device->caps.name,
        (unsigned long long)free_bytes, (unsigned long long)memory->limit_bytes,
        (unsigned long long)used);
}

void tp_device_unreserve(tp_device *device, uint64_t bytes)
{
    tp_mutex_lock(&device->memory_mutex);
    device->memory.used_bytes -= bytes;
    tp_mutex_unlock(&device->memory_mutex);
}

void *tp_device_native_context(const tp_device *device)
{
    return device->context;
}

void *tp_device_native_id(const tp_device *device)
{
    return device->id;
}

void *tp_device_native_queue(const tp_device *device, tp_lane lane)
{
    return device->queues[lane];
}
