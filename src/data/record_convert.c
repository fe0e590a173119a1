/* SPDX-License-Identifier: Apache-2.0
 * Writes the files of records one after the other; records of other records. */
#include <string.h>
#include "core/alloc.h"
#include "data/record_make_internal.h"
#include "data/record_shards.h"
#include "io/store.h"

/* ---- files, one after the other ---- */

typedef struct shard_work {
    const tp_make_options *options;
    tp_record_shards shards;
    tp_shards_next next;
    void *user;
    tp_arena *arena;
    tp_make_result *result;
} shard_work;

void tp_shards_describe(tp_json_writer *writer, const tp_make_options *options, int64_t records)
{
    tp_json_put_int(writer, "records", records);
    tp_json_put_int(writer, "shards", options->shards);
    tp_json_put_string(writer, "compression", tp_compression_name(options->compression));
}

static tpucl_status show(const shard_work *work, int64_t done)
{
    const tp_make_options *o = work->options;
    if (!o->progress || o->progress(o->user, done, work->shards.records)) return TPUCL_OK;
    return TP_FAIL(TPUCL_INTERRUPTED,
                   "stopped after %lld of %lld records; the same command goes on with the first "
                   "file that is missing",
                   (long long)done, (long long)work->shards.records);
}

static tpucl_status fill(const shard_work *work, int32_t shard, tp_record_writer *writer)
{
    const int64_t end = tp_record_shards_begin(&work->shards, shard + 1);
    for (int64_t at = tp_record_shards_begin(&work->shards, shard); at < end; at++) {
        tp_view record;
        TP_TRY(show(work, at));
        TP_TRY(work->next(work->user, at, &record));
        TP_TRY(tp_record_writer_put(writer, record.data, record.length));
    }
    return TPUCL_OK;
}

static tpucl_status write_shard(const shard_work *work, int32_t shard)
{
    tp_record_writer *writer = NULL;
    uint64_t bytes = 0;
    const char *path = tp_record_shards_path(&work->shards, shard, work->arena);
    if (!path) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_record_shards_open(&work->shards, shard, work->arena, &writer));
    const tpucl_status status = fill(work, shard, writer);
    if (status != TPUCL_OK) {
        tp_record_writer_abort(writer);
        return status;
    }
    TP_TRY(tp_record_writer_commit(writer));
    TP_TRY(tp_store_size(path, &bytes));
    work->result->bytes += bytes;
    return TPUCL_OK;
}

static tpucl_status check(const tp_make_options *options)
{
    if (options->shards < 1 || options->shards > TP_SHARDS_MAX)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%d files, expected 1 to %d", (int)options->shards,
                       TP_SHARDS_MAX);
    return TPUCL_OK;
}

tpucl_status tp_shards_write(const tp_make_options *options, const char *description,
                             int64_t records, tp_shards_next next, void *user,
                             tp_make_result *out_result)
{
    shard_work work = {.options = options,
                       .shards = {options->output, options->shards, options->compression, records},
                       .next = next,
                       .user = user,
                       .result = out_result};
    TP_TRY(check(options));
    out_result->records = records;
    out_result->files = options->shards;
    TP_TRY(tp_record_shards_begin_work(&work.shards, description, options->force));
    TP_TRY(tp_arena_create(0, &work.arena));
    tpucl_status status = TPUCL_OK;
    for (int32_t i = 0; i < options->shards && status == TPUCL_OK; i++) {
        bool has = false;
        status = tp_record_shards_has(&work.shards, i, work.arena, &has);
        out_result->found += has;
        if (status == TPUCL_OK && !has) status = write_shard(&work, i);
    }
    tp_arena_destroy(work.arena);
    return status == TPUCL_OK ? show(&work, records) : status;
}

/* ---- records of records ---- */

typedef struct converter {
    const char *const *paths;
    int32_t path_count, at;
    tp_record_options records;
    tp_record_reader *reader;
    int64_t given; /* records that were read */
} converter;

static tpucl_status next_of_all(converter *c, tp_record *out_record, bool *out_found)
{
    *out_found = false;
    for (;;) {
        if (!c->reader) {
            tp_reader *source = NULL;
            if (c->at == c->path_count) return TPUCL_OK;
            TP_TRY(tp_store_open_reader(c->paths[c->at++], 0, NULL, &source));
            TP_TRY(tp_record_reader_adopt(source, &c->records, &c->reader));
        }
        TP_TRY(tp_record_reader_next(c->reader, out_record, out_found));
        if (*out_found) {
            c->given++;
            return TPUCL_OK;
        }
        tp_record_reader_close(c->reader);
        c->reader = NULL;
    }
}

static tpucl_status count_all(const converter *from, int64_t *out_count)
{
    converter c = *from;
    tp_record record;
    bool found = true;
    tpucl_status status = TPUCL_OK;
    while (status == TPUCL_OK && found)
        status = next_of_all(&c, &record, &found);
    tp_record_reader_close(c.reader);
    *out_count = c.given;
    return status;
}

/* As tp_shards_write asks for it: over those whose file is there. */
static tpucl_status next_converted(void *user, int64_t at, tp_view *out_record)
{
    converter *c = user;
    tp_record record;
    bool found = true;
    while (found && c->given <= at)
        TP_TRY(next_of_all(c, &record, &found));
    if (!found)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' changed while it was read",
                       c->paths[c->path_count - 1]);
    *out_record = (tp_view){(const char *)record.bytes, record.length};
    return TPUCL_OK;
}

static tpucl_status describe(const converter *c, const tp_make_options *options, int64_t records,
                             char **out_text)
{
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_key(&writer, "records_of");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; i < c->path_count; i++) {
        uint64_t bytes = 0;
        if (tp_store_size(c->paths[i], &bytes) != TPUCL_OK) tp_error_clear();
        tp_json_begin_object(&writer);
        tp_json_put_string(&writer, "path", c->paths[i]);
        tp_json_put_int(&writer, "bytes", (int64_t)bytes);
        tp_json_end_object(&writer);
    }
    tp_json_end_array(&writer);
    tp_shards_describe(&writer, options, records);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

/* By force, what is there is removed first. */
static tpucl_status check_apart(const converter *c, const char *output)
{
    for (int32_t i = 0; i < c->path_count; i++)
        if (tp_str_starts_with(c->paths[i], output) && c->paths[i][strlen(output)] == '-')
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "'%s' is read, and '%s-...' is written; name another place", c->paths[i],
                           output);
    return TPUCL_OK;
}

tpucl_status tp_records_convert(const char *const *paths, int32_t count,
                                const tp_record_options *records, const tp_make_options *options,
                                tp_make_result *out_result)
{
    converter c = {.paths = paths, .path_count = count, .records = *records};
    char *description = NULL;
    int64_t total = 0;
    *out_result = (tp_make_result){0};
    TP_TRY(check_apart(&c, options->output));
    TP_TRY(count_all(&c, &total));
    TP_TRY(describe(&c, options, total, &description));
    const tpucl_status status =
        tp_shards_write(options, description, total, next_converted, &c, out_result);
    tp_record_reader_close(c.reader);
    tp_free(description);
    return status;
}
