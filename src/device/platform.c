/* SPDX-License-Identifier: Apache-2.0
 * Enumeration. Whatever a driver answers, the list is made: a platform that fails is left out and a
 * device that fails is listed as unusable, each with its reason. */
#include "device/platform_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/env.h"
#include "device/caps.h"
#include "device/cl_error.h"

/* More than any machine has; a driver that reports more is taken at its first ones. */
enum { MAX_PLATFORMS = 64, MAX_DEVICES = 256 };

typedef struct platform_info {
    cl_platform_id id;
    char name[128], version[128];
    size_t order; /* as the loader gave it: last key of the sort */
} platform_info;

static tpucl_status add_note(tp_device_list *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static tpucl_status add_note(tp_device_list *list, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *copy = tp_alloc_strdup(text);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = tp_notes_push(&list->notes, copy);
    if (status != TPUCL_OK) tp_free(copy);
    return status;
}

/* For entries that the driver answered, with its text cut to fit. */
static cl_int platform_text(const tp_cl_api *cl, cl_platform_id id, cl_platform_info what,
                            char *out_text, size_t room)
{
    char text[1024] = {0};
    const cl_int code = cl->GetPlatformInfo(id, what, sizeof text - 1, text, NULL);
    snprintf(out_text, room, "%s", text);
    return code;
}

static int compare_platforms(const void *left, const void *right)
{
    const platform_info *a = left, *b = right;
    const int by_name = strcmp(a->name, b->name);
    if (by_name) return by_name;
    const int by_version = strcmp(a->version, b->version);
    if (by_version) return by_version;
    return a->order < b->order ? -1 : a->order > b->order;
}

static void fill_entry(const tp_cl_api *cl, const platform_info *platform, cl_device_id id,
                       tp_device_entry *entry)
{
    snprintf(entry->selector, sizeof entry->selector, "%u:%u", entry->platform_index,
             entry->device_index);
    snprintf(entry->platform_version, sizeof entry->platform_version, "%s", platform->version);
    if (tp_caps_read(cl, id, platform->name, &entry->caps) != TPUCL_OK) {
        snprintf(entry->caps.platform, sizeof entry->caps.platform, "%s", platform->name);
        snprintf(entry->reason, sizeof entry->reason, "%.380s", tpucl_last_error()->message);
        tp_error_clear();
        return;
    }
    tp_quirks_find(&entry->caps, &entry->quirks);
    if (entry->quirks.effects & TP_QUIRK_FMA_IS_FAST) entry->caps.fma_is_fast = true;
    char buffer[sizeof entry->reason];
    const char *reason = tp_caps_unusable(cl, id, &entry->caps, buffer, sizeof buffer);
    if (entry->quirks.effects & TP_QUIRK_SKIP) reason = entry->quirks.reasons;
    if (reason) snprintf(entry->reason, sizeof entry->reason, "%s", reason);
    entry->usable = !reason;
}

static tpucl_status add_devices(tp_device_list *list, const tp_cl_api *cl,
                                const platform_info *platform, uint32_t platform_index,
                                uint32_t *out_count)
{
    cl_device_id ids[MAX_DEVICES] = {0};
    cl_uint count = 0;
    *out_count = 0;
    const cl_int code =
        cl->GetDeviceIDs(platform->id, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &count);
    if (code == CL_DEVICE_NOT_FOUND || (code == CL_SUCCESS && count == 0))
        return add_note(list, "platform '%s' has no devices: skipped", platform->name);
    if (code != CL_SUCCESS)
        return add_note(list, "platform '%s' failed to list its devices with %s (%d): skipped",
                        platform->name, tp_cl_error_name(code), (int)code);
    if (count > MAX_DEVICES) count = MAX_DEVICES;
    for (uint32_t i = 0; i < count; i++) {
        tp_listed_device item = {.entry = {.platform_index = platform_index, .device_index = i},
                                 .id = ids[i]};
        if (ids[i])
            fill_entry(cl, platform, ids[i], &item.entry);
        else
            snprintf(item.entry.reason, sizeof item.entry.reason,
                     "the driver lists a device without a handle");
        TP_TRY(tp_listed_devices_push(&list->devices, item));
        if (!item.entry.usable)
            TP_TRY(add_note(list, "device %s '%s' of platform '%s' is not usable: %.300s",
                            item.entry.selector, item.entry.caps.name, platform->name,
                            item.entry.reason));
    }
    *out_count = count;
    return TPUCL_OK;
}

static tpucl_status note_no_platform(tp_device_list *list, cl_int code)
{
    const char *folder = tp_env_text(TP_ENV_OCL_ICD_VENDORS);
    char detail[64] = "";
    if (code != CL_SUCCESS)
        snprintf(detail, sizeof detail, " (%s, %d)", tp_cl_error_name(code), (int)code);
    return add_note(
        list,
        "the OpenCL loader found no platform%s; it looks for drivers in '%s'%s: install one "
        "(Debian: pocl-opencl-icd runs on any CPU), or see why what is listed there does not load "
        "(OCL_ICD_DEBUG=7 says it; a limit of memory, 'ulimit -v', is one cause)",
        detail, folder ? folder : "/etc/OpenCL/vendors", folder ? " (OCL_ICD_VENDORS)" : "");
}

/* Fills `out_platforms` (room for MAX_PLATFORMS), sorted. */
static tpucl_status list_platforms(tp_device_list *list, const tp_cl_api *cl,
                                   platform_info *out_platforms, size_t *out_count)
{
    cl_platform_id ids[MAX_PLATFORMS] = {0};
    cl_uint count = 0;
    *out_count = 0;
    const cl_int code = cl->GetPlatformIDs(MAX_PLATFORMS, ids, &count);
    if (code != CL_SUCCESS || count == 0) return note_no_platform(list, code);
    if (count > MAX_PLATFORMS) count = MAX_PLATFORMS;
    for (cl_uint i = 0; i < count; i++) {
        platform_info info = {.id = ids[i], .order = i};
        const cl_int name_code =
            platform_text(cl, ids[i], CL_PLATFORM_NAME, info.name, sizeof info.name);
        if (name_code != CL_SUCCESS || !info.name[0]) {
            TP_TRY(add_note(
                list,
                "platform number %u does not answer when asked for its name (%s, %d): skipped", i,
                tp_cl_error_name(name_code), (int)name_code));
            continue;
        }
        (void)platform_text(cl, ids[i], CL_PLATFORM_VERSION, info.version, sizeof info.version);
        out_platforms[(*out_count)++] = info;
    }
    qsort(out_platforms, *out_count, sizeof out_platforms[0], compare_platforms);
    return TPUCL_OK;
}

static tpucl_status enumerate(tp_device_list *list)
{
    if (tp_cl_api_load() != TPUCL_OK) {
        TP_TRY(add_note(list, "%.500s", tpucl_last_error()->message));
        tp_error_clear();
        return TPUCL_OK;
    }
    const tp_cl_api *cl = tp_cl_api_current();
    platform_info platforms[MAX_PLATFORMS];
    size_t count;
    TP_TRY(list_platforms(list, cl, platforms, &count));
    uint32_t index = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t devices;
        TP_TRY(add_devices(list, cl, &platforms[i], index, &devices));
        if (devices) index++; /* empty platforms take no number */
    }
    return TPUCL_OK;
}

tpucl_status tp_device_list_create(tp_device_list **out_list)
{
    *out_list = NULL;
    tp_device_list *list = TP_NEW(tp_device_list);
    if (!list) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = enumerate(list);
    if (status != TPUCL_OK) {
        tp_device_list_destroy(list);
        return status;
    }
    *out_list = list;
    return TPUCL_OK;
}

void tp_device_list_destroy(tp_device_list *list)
{
    if (!list) return;
    for (size_t i = 0; i < list->notes.count; i++)
        tp_free(list->notes.items[i]);
    tp_notes_deinit(&list->notes);
    tp_listed_devices_deinit(&list->devices);
    tp_free(list);
}

uint32_t tp_device_list_count(const tp_device_list *list)
{
    return (uint32_t)list->devices.count;
}

const tp_listed_device *tp_device_list_item(const tp_device_list *list, uint32_t index)
{
    return index < list->devices.count ? &list->devices.items[index] : NULL;
}

const tp_device_entry *tp_device_list_entry(const tp_device_list *list, uint32_t index)
{
    const tp_listed_device *item = tp_device_list_item(list, index);
    return item ? &item->entry : NULL;
}

uint32_t tp_device_list_note_count(const tp_device_list *list)
{
    return (uint32_t)list->notes.count;
}

const char *tp_device_list_note(const tp_device_list *list, uint32_t index)
{
    return index < list->notes.count ? list->notes.items[index] : NULL;
}
