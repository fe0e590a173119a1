/* SPDX-License-Identifier: Apache-2.0
 * The list of devices for people and scripts. */
#include <tpucl/tools.h>
#include "api/handles.h"
#include "core/alloc.h"
#include "core/json_write.h"

struct tpucl_device_list {
    tp_device_list *list;
};

tpucl_status tpucl_device_list_create(tpucl_device_list **out_list)
{
    TP_API_NEED(out_list);
    *out_list = NULL;
    tpucl_device_list *list = TP_NEW(tpucl_device_list);
    if (!list) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_device_list_create(&list->list), failed);
    *out_list = list;
    return TPUCL_OK;
failed:
    tp_free(list);
    return status;
}

void tpucl_device_list_destroy(tpucl_device_list *list)
{
    if (!list) return;
    tp_device_list_destroy(list->list);
    tp_free(list);
}

int32_t tpucl_device_list_count(const tpucl_device_list *list)
{
    return list ? (int32_t)tp_device_list_count(list->list) : 0;
}

tpucl_status tpucl_device_list_info(const tpucl_device_list *list, int32_t index,
                                    tpucl_device_info *out_info)
{
    TP_API_NEED(list);
    TP_API_NEED(out_info);
    int32_t count = tpucl_device_list_count(list);
    if (index < 0 || index >= count)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "device %d of a list of %d", (int)index, (int)count);
    const tp_device_entry *entry = tp_device_list_entry(list->list, (uint32_t)index);
    tp_api_device_info(entry->selector, &entry->caps, entry->usable, entry->reason, out_info);
    return TPUCL_OK;
}

tpucl_status tpucl_device_list_select(const tpucl_device_list *list, const char *selector,
                                      int32_t *out_index)
{
    TP_API_NEED(list);
    TP_API_NEED(out_index);
    tp_device_choice choice;
    TP_TRY(tp_device_list_select(list->list, selector, &choice));
    *out_index = (int32_t)choice.index;
    return TPUCL_OK;
}

const char *tpucl_device_list_note(const tpucl_device_list *list, int32_t index)
{
    if (!list || index < 0 || (uint32_t)index >= tp_device_list_note_count(list->list)) return NULL;
    return tp_device_list_note(list->list, (uint32_t)index);
}

void tp_api_write_device(tp_json_writer *writer, const tpucl_device_info *info)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "selector", info->selector);
    tp_json_put_string(writer, "name", info->name);
    tp_json_put_string(writer, "vendor", info->vendor);
    tp_json_put_string(writer, "platform", info->platform);
    tp_json_put_string(writer, "driver", info->driver);
    tp_json_put_string(writer, "version", info->version);
    tp_json_put_string(writer, "type", info->type);
    tp_json_put_int(writer, "compute_units", info->compute_units);
    tp_json_key(writer, "memory_bytes");
    tp_json_write_uint(writer, info->memory_bytes);
    tp_json_key(writer, "max_allocation_bytes");
    tp_json_write_uint(writer, info->max_allocation_bytes);
    tp_json_key(writer, "local_memory_bytes");
    tp_json_write_uint(writer, info->local_memory_bytes);
    tp_json_put_int(writer, "max_sub_devices", info->max_sub_devices);
    tp_json_put_string(writer, "matrix_unit", *info->matrix_unit ? info->matrix_unit : NULL);
    tp_json_put_bool(writer, "usable", info->usable);
    tp_json_put_string(writer, "reason", info->usable ? NULL : info->reason);
    tp_json_end_object(writer);
}

void tp_api_begin_report(tp_json_writer *writer, const tpucl_device_info *device)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "version", tpucl_version_string());
    tp_json_put_int(writer, "contract", TPUCL_CONTRACT_VERSION);
    tp_json_key(writer, "device");
    tp_api_write_device(writer, device);
}

tpucl_status tpucl_device_list_json(const tpucl_device_list *list, int32_t only, char **out_text)
{
    TP_API_NEED(list);
    TP_API_NEED(out_text);
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_key(&writer, "devices");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; i < tpucl_device_list_count(list); ++i) {
        tpucl_device_info info;
        if (only >= 0 && i != only) continue;
        const tp_device_entry *entry = tp_device_list_entry(list->list, (uint32_t)i);
        tp_api_device_info(entry->selector, &entry->caps, entry->usable, entry->reason, &info);
        tp_api_write_device(&writer, &info);
    }
    tp_json_end_array(&writer);
    tp_json_key(&writer, "notes");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; tpucl_device_list_note(list, i); ++i)
        tp_json_write_string(&writer, tpucl_device_list_note(list, i));
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    TP_TRY(tp_json_writer_finish(&writer, out_text));
    return TPUCL_OK;
}
