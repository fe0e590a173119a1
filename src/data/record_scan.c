/* SPDX-License-Identifier: Apache-2.0
 * Counts, checks and looks into records. */
#include "data/record_scan.h"

#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "io/store.h"

enum { PROGRESS_BYTES = 1 << 24, EXAMPLE_BLOCK_BYTES = 1 << 16 };

typedef struct scanner {
    tp_scan *scan;
    const tp_scan_options *options;
    tp_map by_key;
    tp_arena *arena; /* of one record */
    uint64_t done_bytes, total_bytes, shown_bytes;
} scanner;

/* ---- features ---- */

/* Keys are anybody's bytes; what is no text shows as '?'. */
static char *printable(tp_view bytes, tp_arena *arena)
{
    char *text = tp_arena_strndup(arena, bytes.data, bytes.length);
    for (size_t i = 0; text && i < bytes.length;) {
        const size_t length = tp_str_utf8_length(text + i, bytes.length - i);
        if (length == 0 || (uint8_t)text[i] < 32) {
            text[i++] = '?';
        } else {
            i += length;
        }
    }
    return text;
}

static tpucl_status copy_sample(scanner *s, const tp_feature_values *values, tp_feature_values *out)
{
    static const size_t bytes[] = {1, sizeof(tp_view), sizeof(float), sizeof(int64_t)};
    const size_t count =
        values->count < TP_SCAN_SAMPLE_VALUES ? values->count : TP_SCAN_SAMPLE_VALUES;
    *out = (tp_feature_values){.kind = values->kind, .count = count};
    void *copy = tp_arena_alloc_array(s->scan->arena, count + 1, bytes[values->kind]);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    if (count) memcpy(copy, values->bytes, count * bytes[values->kind]);
    out->bytes = copy;
    if (values->kind != TP_FEATURE_BYTES) return TPUCL_OK;
    for (size_t i = 0; i < count; i++) {
        tp_view *view = (tp_view *)copy + i;
        if (view->length > TP_SCAN_SAMPLE_BYTES) view->length = TP_SCAN_SAMPLE_BYTES;
        view->data = tp_arena_strndup(s->scan->arena, view->data, view->length);
        if (!view->data) return TPUCL_OUT_OF_MEMORY;
    }
    return TPUCL_OK;
}

static tpucl_status find_feature(scanner *s, tp_view key, const tp_feature_values *values,
                                 tp_scan_feature **out)
{
    tp_scan *scan = s->scan;
    const char *text = printable(key, s->arena);
    size_t index = (size_t)scan->feature_count;
    if (!text) return TPUCL_OUT_OF_MEMORY;
    if (!tp_map_find(&s->by_key, text, &index)) {
        if (scan->feature_count == TP_SCAN_MAX_FEATURES)
            return TP_FAIL(TPUCL_UNSUPPORTED, "the records have more than %d different features",
                           TP_SCAN_MAX_FEATURES);
        tp_scan_feature *feature = &scan->features[index];
        *feature = (tp_scan_feature){.key = tp_arena_strdup(scan->arena, text),
                                     .kind = values->kind,
                                     .min_count = INT64_MAX};
        if (!feature->key) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(copy_sample(s, values, &feature->sample));
        TP_TRY(tp_map_add(&s->by_key, feature->key, index));
        scan->feature_count++;
    }
    *out = &scan->features[index];
    return TPUCL_OK;
}

static tpucl_status add_feature(scanner *s, const tp_feature_entry *entry)
{
    tp_feature_values values;
    tp_scan_feature *feature = NULL;
    TP_TRY(tp_feature_decode(entry->feature, s->arena, &values));
    TP_TRY(find_feature(s, entry->key, &values, &feature));
    const int64_t count = (int64_t)values.count;
    feature->records++;
    feature->is_mixed |= feature->kind != values.kind;
    if (count < feature->min_count) feature->min_count = count;
    if (count > feature->max_count) feature->max_count = count;
    for (size_t i = 0; values.kind == TP_FEATURE_BYTES && i < values.count; i++)
        feature->bytes += values.bytes[i].length;
    return TPUCL_OK;
}

/* What is no Example is counted, no failure. */
static tpucl_status look_into(scanner *s, const tp_record *record)
{
    const tp_feature_entry *entries;
    size_t count = 0;
    TP_TRY(tp_arena_create(EXAMPLE_BLOCK_BYTES, &s->arena));
    const tp_view bytes = {(const char *)record->bytes, record->length};
    tpucl_status status = tp_example_list(bytes, s->arena, &entries, &count);
    for (size_t i = 0; status == TPUCL_OK && i < count; i++)
        status = add_feature(s, &entries[i]);
    tp_arena_destroy(s->arena);
    s->arena = NULL;
    s->scan->parsed++;
    /* An event, say, parses as an Example without features. */
    if (status == TPUCL_CORRUPT_DATA || (status == TPUCL_OK && count == 0)) {
        s->scan->not_examples++;
        tp_error_clear();
        return TPUCL_OK;
    }
    return status;
}

/* ---- files ---- */

static tpucl_status show(scanner *s, uint64_t done_bytes, bool always)
{
    if (!s->options->progress) return TPUCL_OK;
    if (!always && done_bytes - s->shown_bytes < PROGRESS_BYTES) return TPUCL_OK;
    s->shown_bytes = done_bytes;
    if (s->options->progress(s->options->user, done_bytes, s->total_bytes)) return TPUCL_OK;
    return TP_FAIL(TPUCL_INTERRUPTED, "reading records was stopped");
}

static tpucl_status read_file(scanner *s, tp_record_reader *reader, tp_scan_file *file)
{
    tp_record record;
    bool found = true;
    while (found) {
        TP_TRY(tp_record_reader_next(reader, &record, &found));
        if (!found) break;
        const int64_t done = (int64_t)tp_record_reader_counts(reader).records;
        const int64_t limit = s->options->feature_limit;
        if (s->options->with_features && (!limit || done <= limit)) {
            const tpucl_status status = look_into(s, &record);
            if (status != TPUCL_OK) {
                tp_error_note("'%s', record at offset %llu", file->path,
                              (unsigned long long)record.offset);
                return status;
            }
        }
        /* Compressed bytes are not told apart here: their share comes at the file's end. */
        if (file->compression == TP_COMPRESSION_NONE)
            TP_TRY(show(s, s->done_bytes + record.offset, false));
    }
    return TPUCL_OK;
}

static tpucl_status scan_file(scanner *s, tp_scan_file *file)
{
    tp_reader *source = NULL;
    tp_record_reader *reader = NULL;
    tp_record_options options = s->options->records;
    options.policy = TP_RECORD_SKIP;
    TP_TRY(tp_store_open_reader(file->path, 0, NULL, &source));
    TP_TRY(tp_record_reader_adopt(source, &options, &reader));
    file->compression = tp_record_reader_compression(reader);
    tpucl_status status = read_file(s, reader, file);
    file->counts = tp_record_reader_counts(reader);
    if (file->counts.faults) {
        file->fault = tp_arena_strdup(s->scan->arena, tp_record_reader_first_fault(reader));
        if (!file->fault && status == TPUCL_OK) status = TPUCL_OUT_OF_MEMORY;
    }
    tp_record_reader_close(reader);
    TP_TRY(status);
    s->scan->total.records += file->counts.records;
    s->scan->total.bytes += file->counts.bytes;
    s->scan->total.faults += file->counts.faults;
    s->done_bytes += file->file_bytes;
    return show(s, s->done_bytes, true);
}

static int compare_features(const void *a, const void *b)
{
    return strcmp(((const tp_scan_feature *)a)->key, ((const tp_scan_feature *)b)->key);
}

static tpucl_status scan_all(scanner *s)
{
    tp_scan *scan = s->scan;
    for (int32_t i = 0; i < scan->file_count; i++) {
        TP_TRY(tp_store_size(scan->files[i].path, &scan->files[i].file_bytes));
        s->total_bytes += scan->files[i].file_bytes;
    }
    for (int32_t i = 0; i < scan->file_count; i++)
        TP_TRY(scan_file(s, &scan->files[i]));
    qsort(scan->features, (size_t)scan->feature_count, sizeof *scan->features, compare_features);
    return TPUCL_OK;
}

static tpucl_status make_scan(const char *const *paths, int32_t count, tp_scan **out_scan)
{
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tp_scan *scan = TP_ARENA_NEW(arena, tp_scan);
    if (scan) {
        scan->arena = arena;
        scan->files = TP_ARENA_NEW_ARRAY(arena, tp_scan_file, (size_t)count + 1);
        scan->features = TP_ARENA_NEW_ARRAY(arena, tp_scan_feature, TP_SCAN_MAX_FEATURES);
    }
    bool made = scan && scan->files && scan->features;
    for (int32_t i = 0; made && i < count; i++)
        made = (scan->files[i].path = tp_arena_strdup(arena, paths[i])) != NULL;
    if (!made) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    scan->file_count = count;
    *out_scan = scan;
    return TPUCL_OK;
}

tpucl_status tp_scan_records(const char *const *paths, int32_t count,
                             const tp_scan_options *options, tp_scan **out_scan)
{
    scanner s = {.options = options};
    TP_TRY(make_scan(paths, count, &s.scan));
    const tpucl_status status = scan_all(&s);
    tp_map_deinit(&s.by_key);
    if (status != TPUCL_OK) {
        tp_scan_destroy(s.scan);
        return status;
    }
    *out_scan = s.scan;
    return TPUCL_OK;
}

void tp_scan_destroy(tp_scan *scan)
{
    if (scan) tp_arena_destroy(scan->arena);
}
