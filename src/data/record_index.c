/* SPDX-License-Identifier: Apache-2.0
 * Index of records: files, their records, the order among them, reading one. */
#include "data/record_index.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/array.h"
#include "core/crc32c.h"
#include "core/log.h"
#include "data/record_index_internal.h"

static tpucl_status system_failure(const char *what, const char *path)
{
    const int code = errno;
    return TP_FAIL_CODE(code == ENOENT ? TPUCL_NOT_FOUND : TPUCL_IO_ERROR, code,
                        "'%s' cannot be %s: %s", path, what, strerror(code));
}

tpucl_status tp_record_file_open(const char *path, int *out_descriptor)
{
    *out_descriptor = open(path, O_RDONLY | O_CLOEXEC);
    return *out_descriptor < 0 ? system_failure("opened", path) : TPUCL_OK;
}

tpucl_status tp_record_file_read(int descriptor, const char *path, uint64_t offset, void *out,
                                 size_t bytes, size_t *out_got)
{
    size_t got = 0;
    while (got < bytes) {
        const ssize_t n = pread(descriptor, (char *)out + got, bytes - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return system_failure("read", path);
        if (n == 0) break;
        got += (size_t)n;
    }
    *out_got = got;
    return TPUCL_OK;
}

/* ---- the order ---- */

/* As tf.data's InterleaveDataset moves: a place whose file has ended is left for the next one, and gets a
 * new file when it is its turn again. */
static void interleave(tp_record_index *index, int64_t cycle, int64_t block)
{
    int64_t *next = index->cursors; /* by place: its next record, -1: no file */
    int32_t *file = index->places;
    int64_t written = 0, place = 0, taken = 0;
    int32_t opened = 0;
    for (int64_t i = 0; i < cycle; i++)
        next[i] = -1;
    while (written < index->count) {
        if (next[place] < 0 && opened < index->file_count) {
            file[place] = opened++;
            next[place] = 0;
            continue; /* the new file begins a block */
        }
        if (next[place] >= 0 && next[place] < (int64_t)index->files[file[place]].records.count) {
            index->entries[written++] = index->files[file[place]].records.items[next[place]++];
            if (++taken < block) continue;
        } else {
            next[place] = -1;
        }
        taken = 0;
        place = (place + 1) % cycle;
    }
}

static tpucl_status make_order(tp_record_index *index, const tp_record_index_options *options)
{
    int64_t cycle = options->cycle_length ? options->cycle_length : 1;
    if (cycle > index->file_count) cycle = index->file_count;
    for (int32_t i = 0; i < index->file_count; i++)
        index->count += (int64_t)index->files[i].records.count;
    if (!index->count)
        return TP_FAIL(TPUCL_NOT_FOUND, "'%s'%s no record", index->files[0].path,
                       index->file_count > 1 ? " and the files after it hold" : " holds");
    index->entries = TP_NEW_ARRAY(tp_record_entry, (size_t)index->count);
    index->cursors = TP_NEW_ARRAY(int64_t, (size_t)cycle);
    index->places = TP_NEW_ARRAY(int32_t, (size_t)cycle);
    if (!index->entries || !index->cursors || !index->places) return TPUCL_OUT_OF_MEMORY;
    interleave(index, cycle, options->block_length ? options->block_length : 1);
    for (int32_t i = 0; i < index->file_count; i++)
        tp_record_list_deinit(&index->files[i].records);
    return TPUCL_OK;
}

/* ---- opening ---- */

static tpucl_status open_index(tp_record_index *index, const char *const *paths,
                               const tp_record_index_options *options)
{
    index->files = TP_NEW_ARRAY(tp_record_file, (size_t)index->file_count);
    if (!index->files) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < index->file_count; i++)
        index->files[i].descriptor = -1;
    for (int32_t i = 0; i < index->file_count; i++) {
        index->files[i].path = tp_alloc_strdup(paths[i]);
        if (!index->files[i].path) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_record_file_index(index, i, options));
    }
    return make_order(index, options);
}

tpucl_status tp_record_index_open(const char *const *paths, int32_t count,
                                  const tp_record_index_options *options,
                                  tp_record_index **out_index)
{
    if (count < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "no file of records; expected at least one");
    tp_record_index *index = TP_NEW(tp_record_index);
    if (!index) return TPUCL_OUT_OF_MEMORY;
    index->file_count = count;
    const tpucl_status status = open_index(index, paths, options);
    if (status != TPUCL_OK) {
        tp_record_index_close(index);
        return status;
    }
    *out_index = index;
    return TPUCL_OK;
}

void tp_record_index_close(tp_record_index *index)
{
    if (!index) return;
    for (int32_t i = 0; index->files && i < index->file_count; i++) {
        tp_record_file *file = &index->files[i];
        if (file->descriptor >= 0) close(file->descriptor);
        tp_record_list_deinit(&file->records);
        tp_free(file->bytes);
        tp_free(file->path);
    }
    tp_free(index->files);
    tp_free(index->entries);
    tp_free(index->cursors);
    tp_free(index->places);
    tp_free(index);
}

int64_t tp_record_index_count(const tp_record_index *index)
{
    return index->count;
}

int64_t tp_record_index_faults(const tp_record_index *index)
{
    return index->faults;
}

void tp_record_index_locate(const tp_record_index *index, int64_t record, const char **out_path,
                            uint64_t *out_offset)
{
    const tp_record_entry *entry = &index->entries[record];
    *out_path = index->files[entry->file].path;
    *out_offset = entry->offset - TP_RECORD_HEAD_BYTES;
}

/* ---- reading ---- */

static tpucl_status reserve(tp_record_buffer *buffer, size_t bytes)
{
    if (bytes <= buffer->capacity) return TPUCL_OK;
    size_t capacity = bytes < ((size_t)1 << 20) ? 2 * bytes : bytes;
    tp_free(buffer->bytes);
    buffer->capacity = 0;
    buffer->bytes = tp_alloc(capacity);
    if (!buffer->bytes) return TPUCL_OUT_OF_MEMORY;
    buffer->capacity = capacity;
    return TPUCL_OK;
}

/* Contents and their sum behind them. */
static tpucl_status fetch(const tp_record_file *file, const tp_record_entry *entry, uint8_t *to)
{
    const size_t bytes = (size_t)entry->length + TP_RECORD_TAIL_BYTES;
    size_t got = 0;
    int descriptor = file->descriptor;
    if (descriptor < 0) TP_TRY(tp_record_file_open(file->path, &descriptor));
    const tpucl_status status =
        tp_record_file_read(descriptor, file->path, entry->offset, to, bytes, &got);
    if (descriptor != file->descriptor) close(descriptor);
    TP_TRY(status);
    if (got == bytes) return TPUCL_OK;
    return TP_FAIL(TPUCL_CORRUPT_DATA,
                   "'%s' ends in the record at offset %llu, which was whole before: the file was "
                   "cut while it was read",
                   file->path, (unsigned long long)(entry->offset - TP_RECORD_HEAD_BYTES));
}

tpucl_status tp_record_index_read(const tp_record_index *index, int64_t record,
                                  tp_record_buffer *buffer, tp_view *out_record)
{
    const tp_record_entry *entry = &index->entries[record];
    const tp_record_file *file = &index->files[entry->file];
    if (file->bytes) { /* checked when it was read */
        *out_record = (tp_view){(const char *)file->bytes + entry->offset, entry->length};
        return TPUCL_OK;
    }
    TP_TRY(reserve(buffer, (size_t)entry->length + TP_RECORD_TAIL_BYTES));
    TP_TRY(fetch(file, entry, buffer->bytes));
    const uint8_t *sum = buffer->bytes + entry->length;
    const uint32_t wanted =
        (uint32_t)sum[0] | (uint32_t)sum[1] << 8 | (uint32_t)sum[2] << 16 | (uint32_t)sum[3] << 24;
    if (tp_crc32c_mask(tp_crc32c(0, buffer->bytes, entry->length)) != wanted)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s': the contents of the record at offset %llu (%u bytes) do not fit "
                       "their checksum",
                       file->path, (unsigned long long)(entry->offset - TP_RECORD_HEAD_BYTES),
                       entry->length);
    *out_record = (tp_view){(const char *)buffer->bytes, entry->length};
    return TPUCL_OK;
}

void tp_record_buffer_deinit(tp_record_buffer *buffer)
{
    tp_free(buffer->bytes);
    *buffer = (tp_record_buffer){0};
}
