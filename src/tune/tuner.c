/* SPDX-License-Identifier: Apache-2.0
 * One product after the other, and the file of records: see tuner.h.
 */
#include "tune/tuner.h"

#include <string.h>
#include <time.h>
#include <tpucl/version.h>
#include "core/clock.h"
#include "core/file.h"
#include "core/log.h"

const char *tp_tune_state_name(tp_tune_state state)
{
    static const char *const names[] = {"better", "default", "known", "left", "failed"};
    return names[state];
}

tpucl_status tp_tune_problems_add(tp_tune_problems *problems, const tp_mxu_problem *problem,
                                  int64_t uses, int32_t cores, tp_arena *arena)
{
    char key[TP_MXU_KEY_BYTES];
    const tp_mxu_problem plain =
        tp_mxu_simplify(problem); /* records are asked for by what is planned */
    if (problem->batch == 0 || problem->m == 0 || problem->n == 0 || problem->k == 0)
        return TPUCL_OK;
    tp_mxu_key_print(&plain, key);
    for (size_t i = 0; i < problems->count; i++) {
        if (strcmp(problems->items[i].key, key) != 0) continue;
        problems->items[i].uses += uses;
        return TPUCL_OK;
    }
    tp_tune_problem added = {plain, tp_arena_strdup(arena, key), uses, cores};
    if (added.key == NULL) return TPUCL_OUT_OF_MEMORY;
    added.problem.epilogue = (tp_mxu_epilogue){0};
    added.problem.label = added.key;
    return tp_tune_problems_push(problems, added);
}

const char *tp_tuner_path(const tp_tuner *tuner)
{
    char name[TP_DEVICE_CLASS_BYTES];
    tp_device_class_print(tp_device_get_caps(tuner->device), name);
    return tp_arena_printf(tuner->arena, "%s/%s.json", tuner->folder, name);
}

/* ---- the file ---- */

/* What is wrong in a file will be gone when records are added to it: hours of measuring may hang on a comma. */
static tpucl_status put_aside(const tp_tuner *tuner, const char *path, const char *text,
                              size_t length, const tp_problems *problems)
{
    const char *aside = tp_arena_printf(tuner->arena, "%s.damaged", path);
    if (aside == NULL) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_file_write_atomic(aside, text, length));
    TP_LOG_WARNING("tune", "tuning records are left out, the file as it was is kept as '%s': %s",
                   aside, problems->text);
    return TPUCL_OK;
}

/* What is there and right. */
static tpucl_status read_file(const tp_tuner *tuner, const char *path, tp_record_file *out_file)
{
    char *text = NULL, name[TP_DEVICE_CLASS_BYTES];
    size_t length = 0;
    tp_problems problems = {0};
    const tp_device_caps *caps = tp_device_get_caps(tuner->device);
    *out_file = (tp_record_file){0};
    tpucl_status status = tp_file_read(path, TP_RECORDS_MAX_FILE_BYTES, &text, &length);
    if (status == TPUCL_OK) {
        status = tp_record_file_parse(text, length, path, tuner->arena, &problems, out_file);
        if (status == TPUCL_OK && problems.count > 0) {
            status = put_aside(tuner, path, text, length, &problems);
            if (status != TPUCL_OK) tp_record_file_deinit(out_file);
        }
        tp_free(text);
    } else if (status == TPUCL_NOT_FOUND) {
        tp_error_clear();
        status = TPUCL_OK;
    }
    TP_TRY(status);
    tp_device_class_print(caps, name);
    out_file->device_class = tp_arena_strdup(tuner->arena, name);
    tp_width_class_print(caps, name);
    out_file->width_class = tp_arena_strdup(tuner->arena, name);
    if (out_file->device_class != NULL && out_file->width_class != NULL) return TPUCL_OK;
    tp_record_file_deinit(out_file);
    return TPUCL_OUT_OF_MEMORY;
}

/* Read again, so that what another process added meanwhile stays. */
static tpucl_status keep(const tp_tuner *tuner, const char *path, const tp_mxu_record *record)
{
    tp_record_file file;
    TP_TRY(read_file(tuner, path, &file));
    tpucl_status status = tp_record_file_put(&file, record);
    if (status == TPUCL_OK) status = tp_record_file_save(&file, path);
    tp_record_file_deinit(&file);
    return status;
}

/* ---- provenance ---- */

static tpucl_status fill_provenance(const tp_tuner *tuner, tp_mxu_record *out)
{
    char hash[TP_SHA256_HEX_BYTES], day[16];
    const tp_device_caps *caps = tp_device_get_caps(tuner->device);
    const time_t now = time(NULL);
    struct tm utc;
    TP_TRY(tp_kernel_sources_hash(hash));
    gmtime_r(&now, &utc);
    strftime(day, sizeof day, "%Y-%m-%d", &utc);
    *out = (tp_mxu_record){
        .device = tp_arena_strdup(tuner->arena, caps->name[0] ? caps->name : "unknown"),
        .driver = tp_arena_strdup(tuner->arena, caps->driver[0] ? caps->driver : "unknown"),
        .kernels = tp_arena_strdup(tuner->arena, hash),
        .date = tp_arena_strdup(tuner->arena, day),
        .tpucl = tpucl_version_string(),
        .contract = TPUCL_CONTRACT_VERSION};
    if (out->device && out->driver && out->kernels && out->date) return TPUCL_OK;
    return TPUCL_OUT_OF_MEMORY;
}

/* Measured on what we have: of other kernels, drivers or devices it is to be measured again. */
static bool is_current(const tp_mxu_record *record, const tp_mxu_record *now)
{
    return strcmp(record->device, now->device) == 0 && strcmp(record->driver, now->driver) == 0 &&
           strcmp(record->kernels, now->kernels) == 0 && strcmp(record->tpucl, now->tpucl) == 0 &&
           record->contract == now->contract;
}

/* ---- the list ---- */

typedef struct list {
    const tp_tuner *tuner;
    const tp_tune_problems *problems;
    tp_tune_result *results;
    const char *path;
    tp_mxu_record provenance;
    uint64_t begin_ns, end_ns; /* end 0: no limit */
} list;

static tpucl_status find_known(const list *l)
{
    tp_record_file file;
    if (l->tuner->again) return TPUCL_OK;
    TP_TRY(read_file(l->tuner, l->path, &file));
    for (size_t i = 0; i < l->problems->count; i++) {
        const tp_mxu_record *record = tp_record_file_find(&file, l->problems->items[i].key);
        if (record == NULL || !is_current(record, &l->provenance)) continue;
        l->results[i].state = TP_TUNE_KNOWN;
        l->results[i].record = *record;
    }
    tp_record_file_deinit(&file);
    return TPUCL_OK;
}

static bool is_stopped(const list *l)
{
    return l->tuner->should_stop != NULL && l->tuner->should_stop(l->tuner->user);
}

/* An even share of the time that is left for this and all after it. */
static uint64_t deadline_of(const list *l, size_t index)
{
    size_t left = 0;
    if (l->end_ns == 0) return 0;
    for (size_t i = index; i < l->problems->count; i++)
        left += l->results[i].state == TP_TUNE_LEFT;
    const uint64_t now = tp_clock_now_ns();
    return now >= l->end_ns ? now : now + (l->end_ns - now) / left;
}

static tpucl_status tune_one(const list *l, size_t index)
{
    tp_tune_result *result = &l->results[index];
    const tp_tune_progress progress = {.index = (int32_t)index,
                                       .count = (int32_t)l->problems->count,
                                       .key = result->problem->key,
                                       .best_ratio = 1.0};
    const uint64_t begin_ns = tp_clock_now_ns();
    if (l->tuner->progress != NULL) l->tuner->progress(l->tuner->user, &progress);
    result->record = l->provenance;
    result->record.problem = result->problem->key;
    const tpucl_status status =
        tp_tune_search(l->tuner, result->problem, deadline_of(l, index), &progress, result);
    result->seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
    if (status == TPUCL_OUT_OF_MEMORY) return status;
    if (status != TPUCL_OK) { /* too large for the device, say: the others may be fine */
        result->state = TP_TUNE_FAILED;
        result->text = tp_arena_strdup(l->tuner->arena, tpucl_last_error()->message);
        tp_error_clear();
        return result->text == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
    }
    if (result->state == TP_TUNE_LEFT) return TPUCL_OK;
    return keep(l->tuner, l->path, &result->record);
}

tpucl_status tp_tuner_run(const tp_tuner *tuner, const tp_tune_problems *problems,
                          tp_tune_result *out_results)
{
    list l = {.tuner = tuner, .problems = problems, .results = out_results};
    for (size_t i = 0; i < problems->count; i++)
        out_results[i] =
            (tp_tune_result){.problem = &problems->items[i], .state = TP_TUNE_LEFT, .text = ""};
    l.begin_ns = tp_clock_now_ns();
    if (tuner->seconds > 0.0) l.end_ns = l.begin_ns + (uint64_t)(tuner->seconds * 1e9);
    l.path = tp_tuner_path(tuner);
    if (l.path == NULL) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_file_make_folders(tuner->folder));
    TP_TRY(fill_provenance(tuner, &l.provenance));
    TP_TRY(find_known(&l));
    for (size_t i = 0; i < problems->count && !is_stopped(&l); i++) {
        if (out_results[i].state == TP_TUNE_KNOWN) continue;
        if (l.end_ns != 0 && tp_clock_now_ns() >= l.end_ns) break;
        TP_TRY(tune_one(&l, i));
    }
    return TPUCL_OK;
}

void tp_tune_result_deinit(tp_tune_result *result)
{
    tp_tune_wrongs_deinit(&result->wrong);
}
