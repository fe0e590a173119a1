/* SPDX-License-Identifier: Apache-2.0
 * The records for a device: which files there are, and which of them says something about a problem.
 */
#include "kernel/records.h"

#include <stdatomic.h>
#include <string.h>
#include "core/embedded.h"
#include "core/env.h"
#include "core/file.h"
#include "core/log.h"

extern const tp_embedded_file tp_embedded_tuning[];

TP_ARRAY_DEFINE(source_array, tp_record_source)

struct tp_mxu_records {
    tp_arena *arena;
    char device_class[TP_DEVICE_CLASS_BYTES], width_class[TP_DEVICE_CLASS_BYTES];
    source_array sources;
};

const char *tp_record_tier_name(tp_record_tier tier)
{
    return tier == TP_RECORDS_OVERLAY   ? "overlay"
           : tier == TP_RECORDS_SHIPPED ? "shipped"
                                        : "related";
}

void tp_mxu_records_warn(const char *text)
{
    /* Files are read again for every program; the reader wants to hear of them once. */
    static atomic_flag was_said = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&was_said))
        TP_LOG_INFO("kernel", "%s", text);
    else
        TP_LOG_WARNING("kernel", "%s", text);
}

static tpucl_status add_source(tp_mxu_records *records, tp_record_source *source,
                               const tp_problems *problems)
{
    if (problems->count > 0) {
        const tpucl_status said = tp_problems_result(problems, TPUCL_INVALID_CONFIG, source->name);
        source->problems = tp_arena_printf(records->arena, "tuning records are left out: %s",
                                           tpucl_last_error()->message);
        tp_error_clear();
        if (said == TPUCL_OUT_OF_MEMORY || source->problems == NULL) return TPUCL_OUT_OF_MEMORY;
        tp_mxu_records_warn(source->problems);
    }
    return source_array_push(&records->sources, *source);
}

/* Parsed; `wanted_class` is the device class that it has to be of, or NULL. */
static tpucl_status read_source(tp_mxu_records *records, const char *text, size_t length,
                                const char *wanted_class, tp_record_source *source)
{
    tp_problems problems = {0};
    TP_TRY(
        tp_record_file_parse(text, length, source->name, records->arena, &problems, &source->file));
    source->is_there = true;
    if (problems.count == 0 && wanted_class != NULL &&
        strcmp(source->file.device_class, wanted_class) != 0) {
        tp_problems_add(&problems, "%s: 'device_class' is '%s', expected '%s'", source->name,
                        source->file.device_class, wanted_class);
        source->file.records.count = 0;
    }
    const tpucl_status status = add_source(records, source, &problems);
    if (status != TPUCL_OK) tp_record_file_deinit(&source->file);
    return status;
}

static tpucl_status add_overlay(tp_mxu_records *records)
{
    const char *folder = tp_records_folder(records->arena);
    char *text = NULL;
    size_t length = 0;
    tp_problems problems = {0};
    tp_record_source source = {.tier = TP_RECORDS_OVERLAY};
    if (folder == NULL) return TPUCL_OK;
    source.name = tp_arena_printf(records->arena, "%s/%s.json", folder, records->device_class);
    if (source.name == NULL) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = tp_file_read(source.name, TP_RECORDS_MAX_FILE_BYTES, &text, &length);
    if (status == TPUCL_OUT_OF_MEMORY) return status;
    if (status == TPUCL_OK) {
        status = read_source(records, text, length, records->device_class, &source);
        tp_free(text);
        return status;
    }
    if (status != TPUCL_NOT_FOUND) tp_problems_add_failed(&problems, status);
    tp_error_clear();
    return add_source(records, &source, &problems);
}

static tpucl_status add_embedded(tp_mxu_records *records, bool is_of_class)
{
    for (const tp_embedded_file *file = tp_embedded_tuning; file->name != NULL; file++) {
        const size_t length = strlen(records->device_class);
        const bool matches = strncmp(file->name, records->device_class, length) == 0 &&
                             strcmp(file->name + length, ".json") == 0;
        if (matches != is_of_class) continue;
        tp_record_source source = {
            .tier = is_of_class ? TP_RECORDS_SHIPPED : TP_RECORDS_RELATED,
            .name = tp_arena_printf(records->arena, "tuning/%s", file->name),
        };
        if (source.name == NULL) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(read_source(records, file->text, file->length_bytes, NULL, &source));
        tp_record_source *added = &records->sources.items[records->sources.count - 1];
        if (is_of_class || strcmp(added->file.width_class, records->width_class) == 0) continue;
        tp_record_file_deinit(&added->file);
        records->sources.count--;
    }
    return TPUCL_OK;
}

/* The class's own file may not exist; that is worth seeing. */
static tpucl_status add_shipped(tp_mxu_records *records)
{
    const size_t before = records->sources.count;
    TP_TRY(add_embedded(records, true));
    if (records->sources.count == before) {
        tp_record_source source = {
            .tier = TP_RECORDS_SHIPPED,
            .name = tp_arena_printf(records->arena, "tuning/%s.json", records->device_class),
        };
        if (source.name == NULL) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(source_array_push(&records->sources, source));
    }
    return add_embedded(records, false);
}

tpucl_status tp_mxu_records_open(const tp_device_caps *caps, tp_mxu_records **out_records)
{
    tpucl_status status = TPUCL_OK;
    bool is_on = true;
    TP_TRY(tp_env_flag(TP_ENV_TUNING, true, &is_on));
    tp_mxu_records *records = TP_NEW(tp_mxu_records);
    if (records == NULL) return TPUCL_OUT_OF_MEMORY;
    TP_TRY_GOTO(status, tp_arena_create(0, &records->arena), done);
    tp_device_class_print(caps, records->device_class);
    tp_width_class_print(caps, records->width_class);
    if (is_on) {
        TP_TRY_GOTO(status, add_overlay(records), done);
        TP_TRY_GOTO(status, add_shipped(records), done);
    }
    *out_records = records;
    records = NULL;
done:
    tp_mxu_records_close(records);
    return status;
}

void tp_mxu_records_close(tp_mxu_records *records)
{
    if (records == NULL) return;
    for (size_t i = 0; i < records->sources.count; i++)
        tp_record_file_deinit(&records->sources.items[i].file);
    source_array_deinit(&records->sources);
    tp_arena_destroy(records->arena);
    tp_free(records);
}

const tp_record_source *tp_mxu_records_source(const tp_mxu_records *records, int32_t index)
{
    if (index < 0 || (size_t)index >= records->sources.count) return NULL;
    return &records->sources.items[index];
}

const tp_mxu_record *tp_mxu_records_find(const tp_mxu_records *records,
                                         const tp_mxu_problem *problem,
                                         const tp_record_source **out_source)
{
    char key[TP_MXU_KEY_BYTES];
    tp_mxu_key_print(problem, key);
    for (size_t i = 0; i < records->sources.count; i++) {
        const tp_mxu_record *found = tp_record_file_find(&records->sources.items[i].file, key);
        if (found == NULL) continue;
        if (out_source != NULL) *out_source = &records->sources.items[i];
        return found;
    }
    return NULL;
}
