/* SPDX-License-Identifier: Apache-2.0
 * Finds the records of one file. A plain file on this machine: from length to length, their checksums
 * checked, contents passed over. Everything else is read to its end and kept. */
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/crc32c.h"
#include "core/log.h"
#include "data/record_index_internal.h"
#include "io/store.h"

enum { OPEN_FILES = 256, MAX_RECORD_BYTES = 1 << 30, NEAR_BYTES = 1 << 16, FAR_BYTES = 512 };

/* ---- plain files ---- */

typedef struct walker {
    int descriptor;
    const char *path;
    uint8_t window[NEAR_BYTES];
    uint64_t begin; /* of the window in the file */
    size_t length;
} walker;

static uint64_t little_endian(const uint8_t *b, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | b[i];
    return value;
}

/* The bytes at `offset`; as many as a record's head has, unless the file ends before. Lengths that lie near
 * to each other come with one reading, those far apart cost a block of the disk each. */
static tpucl_status look(walker *w, uint64_t offset, bool is_near, const uint8_t **out_head,
                         size_t *out_there)
{
    const uint64_t end = w->begin + w->length;
    if (offset < w->begin || offset + TP_RECORD_HEAD_BYTES > end) {
        w->begin = offset;
        TP_TRY(tp_record_file_read(w->descriptor, w->path, offset, w->window,
                                   is_near ? NEAR_BYTES : FAR_BYTES, &w->length));
    }
    *out_head = w->window + (offset - w->begin);
    *out_there = w->length - (size_t)(offset - w->begin);
    if (*out_there > TP_RECORD_HEAD_BYTES) *out_there = TP_RECORD_HEAD_BYTES;
    return TPUCL_OK;
}

static bool is_good_head(const uint8_t *head)
{
    return tp_crc32c_mask(tp_crc32c(0, head, 8)) == little_endian(head + 8, 4);
}

static tpucl_status walk(walker *w, uint64_t file_bytes, uint32_t file, tp_record_list *records)
{
    uint64_t at = 0, last_length = 0;
    while (at < file_bytes) {
        const uint8_t *head;
        size_t there;
        TP_TRY(look(w, at, last_length < NEAR_BYTES / 4, &head, &there));
        if (there < TP_RECORD_HEAD_BYTES)
            return TP_FAIL(TPUCL_CORRUPT_DATA,
                           "'%s' ends in the head of the record at offset %llu; the file was cut",
                           w->path, (unsigned long long)at);
        const uint64_t length = little_endian(head, 8);
        if (!is_good_head(head) || length > MAX_RECORD_BYTES)
            return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': the length at offset %llu (%llu) %s", w->path,
                           (unsigned long long)at, (unsigned long long)length,
                           is_good_head(head) ? "is above 1 GiB"
                                              : "does not fit its checksum; this is no TFRecord "
                                                "file, or it is damaged");
        const uint64_t next = at + TP_RECORD_HEAD_BYTES + length + TP_RECORD_TAIL_BYTES;
        if (next > file_bytes)
            return TP_FAIL(
                TPUCL_CORRUPT_DATA,
                "'%s' ends in the record at offset %llu, of %llu bytes; the file was cut", w->path,
                (unsigned long long)at, (unsigned long long)length);
        TP_TRY(tp_record_list_push(
            records, (tp_record_entry){at + TP_RECORD_HEAD_BYTES, (uint32_t)length, file}));
        last_length = length;
        at = next;
    }
    return TPUCL_OK;
}

static tpucl_status walk_file(tp_record_index *index, int32_t number, int descriptor)
{
    tp_record_file *file = &index->files[number];
    walker *w = TP_NEW(walker);
    if (!w) return TPUCL_OUT_OF_MEMORY;
    w->descriptor = descriptor;
    w->path = file->path;
    const off_t bytes = lseek(descriptor, 0, SEEK_END);
    const tpucl_status status =
        bytes < 0
            ? TP_FAIL(TPUCL_IO_ERROR, "'%s' is no file that can be read at any place", file->path)
            : walk(w, (uint64_t)bytes, (uint32_t)number, &file->records);
    tp_free(w);
    return status;
}

/* ---- files kept in memory ---- */

static tpucl_status keep(tp_record_index *index, uint64_t most, tp_record_file *file,
                         size_t *inout_capacity, size_t end, const tp_record *record)
{
    if (end + record->length > *inout_capacity) {
        size_t capacity = *inout_capacity ? *inout_capacity : (size_t)1 << 20;
        while (capacity < end + record->length)
            capacity *= 2;
        uint8_t *larger = tp_alloc(capacity);
        if (!larger) return TPUCL_OUT_OF_MEMORY;
        if (end) memcpy(larger, file->bytes, end);
        tp_free(file->bytes);
        file->bytes = larger;
        *inout_capacity = capacity;
    }
    index->resident_bytes += record->length;
    if (index->resident_bytes > most)
        return TP_FAIL(TPUCL_OUT_OF_MEMORY,
                       "compressed and remote records are kept in memory, and '%s' goes beyond the "
                       "%llu bytes allowed; raise data.resident_bytes, or write plain files here "
                       "with 'tpucl records convert'",
                       file->path, (unsigned long long)most);
    memcpy(file->bytes + end, record->bytes, record->length);
    return TPUCL_OK;
}

static tpucl_status keep_records(tp_record_index *index, int32_t number, uint64_t most,
                                 tp_record_reader *reader)
{
    tp_record_file *file = &index->files[number];
    size_t capacity = 0, end = 0;
    for (;;) {
        tp_record record;
        bool found = false;
        TP_TRY(tp_record_reader_next(reader, &record, &found));
        if (!found) return TPUCL_OK;
        TP_TRY(keep(index, most, file, &capacity, end, &record));
        TP_TRY(tp_record_list_push(
            &file->records, (tp_record_entry){end, (uint32_t)record.length, (uint32_t)number}));
        end += record.length;
    }
}

static tpucl_status keep_file(tp_record_index *index, int32_t number,
                              const tp_record_index_options *options)
{
    const tp_record_options records = {.policy = options->policy};
    tp_reader *source = NULL;
    tp_record_reader *reader = NULL;
    TP_TRY(tp_store_open_reader(index->files[number].path, 0, NULL, &source));
    TP_TRY(tp_record_reader_adopt(source, &records, &reader));
    const tpucl_status status = keep_records(index, number, options->resident_bytes, reader);
    index->faults += (int64_t)tp_record_reader_counts(reader).faults;
    tp_record_reader_close(reader);
    return status;
}

/* ---- either ---- */

static tpucl_status is_compressed(int descriptor, const char *path, bool *out_compressed)
{
    uint8_t head[TP_RECORD_HEAD_BYTES];
    size_t got = 0;
    TP_TRY(tp_record_file_read(descriptor, path, 0, head, sizeof head, &got));
    *out_compressed = !(got == sizeof head && is_good_head(head)) &&
                      tp_compression_sniff(head, got) != TP_COMPRESSION_NONE;
    return TPUCL_OK;
}

static tpucl_status index_local(tp_record_index *index, int32_t number,
                                const tp_record_index_options *options)
{
    tp_record_file *file = &index->files[number];
    int descriptor;
    bool compressed = false;
    TP_TRY(tp_record_file_open(file->path, &descriptor));
    tpucl_status status = is_compressed(descriptor, file->path, &compressed);
    if (status == TPUCL_OK && !compressed) status = walk_file(index, number, descriptor);
    if (status == TPUCL_OK && !compressed && number < OPEN_FILES)
        file->descriptor = descriptor;
    else
        close(descriptor);
    if (compressed) return keep_file(index, number, options);
    if (status != TPUCL_CORRUPT_DATA || options->policy != TP_RECORD_SKIP) return status;
    TP_LOG_WARNING("data", "%s; what follows in this file is left out",
                   tpucl_last_error()->message);
    tp_error_clear();
    index->faults++;
    return TPUCL_OK;
}

tpucl_status tp_record_file_index(tp_record_index *index, int32_t number,
                                  const tp_record_index_options *options)
{
    if (strstr(index->files[number].path, "://")) return keep_file(index, number, options);
    return index_local(index, number, options);
}
