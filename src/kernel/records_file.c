/* SPDX-License-Identifier: Apache-2.0
 * Files of tuning records: read with every line distrusted, kept in order, written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/json.h"
#include "core/json_write.h"
#include "kernel/records.h"

/* Far above what a device needs; a file cannot make us hold more. */
enum { MAX_RECORDS = 100000, MAX_TEXT = 255 };
#define MAX_SECONDS 1e9

/* ---- reading ---- */

static tpucl_status read_text(const tp_json *object, const char *key, tp_arena *arena,
                              const char **out_text)
{
    const tp_json *value = NULL;
    char where[TP_JSON_WHERE_BYTES];
    TP_TRY(tp_json_require(object, key, TP_JSON_STRING, &value));
    if (value->string_length == 0 || value->string_length > MAX_TEXT)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%s: expected 1 to %d characters, found %zu",
                       tp_json_where(value, where), MAX_TEXT, value->string_length);
    *out_text = tp_arena_strdup(arena, value->string);
    return *out_text == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
}

static tpucl_status read_number(const tp_json *object, const char *key, double *out_value)
{
    const tp_json *value = NULL;
    TP_TRY(tp_json_require(object, key, TP_JSON_NUMBER, &value));
    return tp_json_as_double(value, 0.0, MAX_SECONDS, out_value);
}

static tpucl_status read_count(const tp_json *object, const char *key, int64_t least, int64_t most,
                               int32_t *out_value)
{
    const tp_json *value = NULL;
    int64_t count = 0;
    TP_TRY(tp_json_require(object, key, TP_JSON_INTEGER, &value));
    TP_TRY(tp_json_as_int64(value, least, most, &count));
    *out_value = (int32_t)count;
    return TPUCL_OK;
}

static tpucl_status read_variant(const tp_json *object, tp_mxu_choice *out_choice)
{
    const char *const *names = tp_mxu_variant_names();
    const tp_json *value = NULL;
    size_t count = 0, index = 0;
    char where[TP_JSON_WHERE_BYTES];
    while (names[count] != NULL)
        count++;
    TP_TRY(tp_json_require(object, "variant", TP_JSON_STRING, &value));
    TP_TRY(tp_json_as_choice(value, names, count, &index));
    if (strcmp(names[index], "clblast_sgemm") == 0)
        return TP_FAIL(
            TPUCL_INVALID_CONFIG,
            "%s: 'clblast_sgemm' adds in an order of its own, so no record may choose it",
            tp_json_where(value, where));
    out_choice->variant = names[index];
    return TPUCL_OK;
}

/* All knobs that the variant has and nothing else, each within what any problem allows; whether it suits
 * the problem is seen when that is planned. */
static tpucl_status read_choice(const tp_json *record, const char *key, tp_mxu_choice *out_choice)
{
    const tp_json *object = NULL;
    const char *keys[TP_MXU_KNOB_COUNT + 1] = {"variant"};
    size_t count = 1;
    *out_choice = (tp_mxu_choice){0};
    TP_TRY(tp_json_require(record, key, TP_JSON_OBJECT, &object));
    TP_TRY(read_variant(object, out_choice));
    for (int knob = 0; knob < TP_MXU_KNOB_COUNT; knob++)
        if (tp_mxu_variant_has_knob(out_choice->variant, (tp_mxu_knob)knob))
            keys[count++] = tp_mxu_knob_describe((tp_mxu_knob)knob)->name;
    TP_TRY(tp_json_check_keys(object, keys, count));
    for (int knob = 0; knob < TP_MXU_KNOB_COUNT; knob++) {
        const tp_mxu_knob_row *row = tp_mxu_knob_describe((tp_mxu_knob)knob);
        if (!tp_mxu_variant_has_knob(out_choice->variant, (tp_mxu_knob)knob)) continue;
        TP_TRY(read_count(object, row->name, row->least, row->most, &out_choice->values[knob]));
    }
    return TPUCL_OK;
}

static tpucl_status read_clock(const tp_json *record, const char **out_clock)
{
    static const char *const clocks[] = {"wall", "processor"};
    const tp_json *value = NULL;
    size_t index = 0;
    TP_TRY(tp_json_require(record, "clock", TP_JSON_STRING, &value));
    TP_TRY(tp_json_as_choice(value, clocks, 2, &index));
    *out_clock = clocks[index];
    return TPUCL_OK;
}

static tpucl_status read_record(const tp_json *value, tp_arena *arena, tp_mxu_record *out)
{
    static const char *const keys[] = {"problem",         "best",   "default", "best_seconds",
                                       "default_seconds", "ratio",  "spread",  "rounds",
                                       "clock",           "device", "driver",  "tpucl",
                                       "kernels",         "date",   "contract"};
    *out = (tp_mxu_record){0};
    TP_TRY(tp_json_expect(value, TP_JSON_OBJECT));
    TP_TRY(tp_json_check_keys(value, keys, sizeof keys / sizeof keys[0]));
    TP_TRY(read_text(value, "problem", arena, &out->problem));
    const tp_json *best = tp_json_member(value, "best");
    out->has_best = best == NULL || best->kind != TP_JSON_NULL;
    if (out->has_best) TP_TRY(read_choice(value, "best", &out->best));
    TP_TRY(read_choice(value, "default", &out->heuristic));
    TP_TRY(read_number(value, "best_seconds", &out->best_seconds));
    TP_TRY(read_number(value, "default_seconds", &out->default_seconds));
    TP_TRY(read_number(value, "ratio", &out->ratio));
    TP_TRY(read_number(value, "spread", &out->spread));
    TP_TRY(read_count(value, "rounds", 1, INT32_MAX, &out->rounds));
    TP_TRY(read_clock(value, &out->clock));
    TP_TRY(read_text(value, "device", arena, &out->device));
    TP_TRY(read_text(value, "driver", arena, &out->driver));
    TP_TRY(read_text(value, "tpucl", arena, &out->tpucl));
    TP_TRY(read_text(value, "kernels", arena, &out->kernels));
    TP_TRY(read_text(value, "date", arena, &out->date));
    return read_count(value, "contract", 1, INT32_MAX, &out->contract);
}

static int compare_records(const void *left, const void *right)
{
    return strcmp(((const tp_mxu_record *)left)->problem, ((const tp_mxu_record *)right)->problem);
}

/* Sorted, each problem once: of two records for one the order of the file is not to decide. */
static void sort_records(tp_record_file *file, const char *name, tp_problems *problems)
{
    tp_mxu_record_array *all = &file->records;
    size_t kept = 0;
    if (all->count > 0) qsort(all->items, all->count, sizeof *all->items, compare_records);
    for (size_t i = 0; i < all->count; i++) {
        size_t end = i + 1;
        while (end < all->count && strcmp(all->items[end].problem, all->items[i].problem) == 0)
            end++;
        if (end == i + 1)
            all->items[kept++] = all->items[i];
        else
            tp_problems_add(problems, "%s: %zu records for problem '%s', expected one", name,
                            end - i, all->items[i].problem);
        i = end - 1;
    }
    all->count = kept;
}

static tpucl_status read_records(const tp_json *root, tp_arena *arena, tp_problems *problems,
                                 tp_record_file *out_file)
{
    const tp_json *all = NULL;
    if (!tp_problems_add_failed(problems, tp_json_require(root, "records", TP_JSON_ARRAY, &all)))
        return TPUCL_OK;
    if (all->count > MAX_RECORDS) {
        tp_problems_add(problems, "%s: %zu records, expected at most %d",
                        tp_json_name(root->document), all->count, MAX_RECORDS);
        return TPUCL_OK;
    }
    TP_TRY(tp_mxu_record_array_reserve(&out_file->records, all->count));
    for (size_t i = 0; i < all->count; i++) {
        tp_mxu_record record;
        if (tp_problems_add_failed(problems, read_record(&all->items[i], arena, &record)))
            TP_TRY(tp_mxu_record_array_push(&out_file->records, record));
    }
    return TPUCL_OK;
}

static bool read_head(const tp_json *root, tp_arena *arena, tp_problems *problems,
                      tp_record_file *out_file)
{
    static const char *const keys[] = {"format", "device_class", "width_class", "records"};
    int32_t format = 0;
    const size_t before = problems->count;
    if (!tp_problems_add_failed(problems, tp_json_expect(root, TP_JSON_OBJECT)) ||
        !tp_problems_add_failed(
            problems, read_count(root, "format", TP_RECORDS_FORMAT, TP_RECORDS_FORMAT, &format)))
        return false;
    tp_json_report_unknown(root, keys, sizeof keys / sizeof keys[0], problems);
    tp_problems_add_failed(problems,
                           read_text(root, "device_class", arena, &out_file->device_class));
    tp_problems_add_failed(problems, read_text(root, "width_class", arena, &out_file->width_class));
    return problems->count == before;
}

tpucl_status tp_record_file_parse(const char *text, size_t length, const char *name,
                                  tp_arena *arena, tp_problems *problems, tp_record_file *out_file)
{
    tp_json_document *document = NULL;
    tpucl_status status = TPUCL_OK;
    *out_file = (tp_record_file){.device_class = "", .width_class = ""};
    if (!tp_problems_add_failed(problems, tp_json_parse(text, length, name, &document)))
        return problems->is_out_of_memory ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
    const tp_json *root = tp_json_root(document);
    if (read_head(root, arena, problems, out_file))
        status = read_records(root, arena, problems, out_file);
    if (status == TPUCL_OK) sort_records(out_file, name, problems);
    if (problems->is_out_of_memory) status = TPUCL_OUT_OF_MEMORY;
    if (status != TPUCL_OK) tp_record_file_deinit(out_file);
    tp_json_destroy(document);
    return status;
}

void tp_record_file_deinit(tp_record_file *file)
{
    tp_mxu_record_array_deinit(&file->records);
}

const tp_mxu_record *tp_record_file_find(const tp_record_file *file, const char *problem)
{
    const tp_mxu_record key = {.problem = problem};
    if (file->records.count == 0) return NULL;
    return bsearch(&key, file->records.items, file->records.count, sizeof key, compare_records);
}

tpucl_status tp_record_file_put(tp_record_file *file, const tp_mxu_record *record)
{
    const tp_mxu_record *old = tp_record_file_find(file, record->problem);
    if (old != NULL) {
        file->records.items[old - file->records.items] = *record;
        return TPUCL_OK;
    }
    TP_TRY(tp_mxu_record_array_push(&file->records, *record));
    qsort(file->records.items, file->records.count, sizeof *record, compare_records);
    return TPUCL_OK;
}

/* ---- writing ---- */

static void write_choice(tp_json_writer *writer, const char *key, const tp_mxu_choice *choice)
{
    tp_json_key(writer, key);
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "variant", choice->variant);
    for (int knob = 0; knob < TP_MXU_KNOB_COUNT; knob++)
        if (tp_mxu_variant_has_knob(choice->variant, (tp_mxu_knob)knob))
            tp_json_put_int(writer, tp_mxu_knob_describe((tp_mxu_knob)knob)->name,
                            choice->values[knob]);
    tp_json_end_object(writer);
}

void tp_mxu_record_write(tp_json_writer *writer, const tp_mxu_record *record)
{
    tp_json_put_string(writer, "problem", record->problem);
    if (record->has_best)
        write_choice(writer, "best", &record->best);
    else
        tp_json_put_string(writer, "best", NULL);
    write_choice(writer, "default", &record->heuristic);
    tp_json_put_double(writer, "best_seconds", record->best_seconds);
    tp_json_put_double(writer, "default_seconds", record->default_seconds);
    tp_json_put_double(writer, "ratio", record->ratio);
    tp_json_put_double(writer, "spread", record->spread);
    tp_json_put_int(writer, "rounds", record->rounds);
    tp_json_put_string(writer, "clock", record->clock);
    tp_json_put_string(writer, "device", record->device);
    tp_json_put_string(writer, "driver", record->driver);
    tp_json_put_string(writer, "tpucl", record->tpucl);
    tp_json_put_int(writer, "contract", record->contract);
    tp_json_put_string(writer, "kernels", record->kernels);
    tp_json_put_string(writer, "date", record->date);
}

void tp_record_file_write(tp_json_writer *writer, const tp_record_file *file)
{
    tp_json_begin_object(writer);
    tp_json_put_int(writer, "format", TP_RECORDS_FORMAT);
    tp_json_put_string(writer, "device_class", file->device_class);
    tp_json_put_string(writer, "width_class", file->width_class);
    tp_json_key(writer, "records");
    tp_json_begin_array(writer);
    for (size_t i = 0; i < file->records.count; i++) {
        tp_json_begin_object(writer);
        tp_mxu_record_write(writer, &file->records.items[i]);
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
    tp_json_end_object(writer);
}

tpucl_status tp_record_file_save(const tp_record_file *file, const char *path)
{
    tp_json_writer writer = {0};
    tp_record_file_write(&writer, file);
    return tp_json_writer_save(&writer, path);
}
