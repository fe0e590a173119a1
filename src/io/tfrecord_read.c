/* SPDX-License-Identifier: Apache-2.0
 * Reads TFRecord files. Records are given out where they lie in the buffer, which is as large as a core's
 * second-level cache holds: the sum is made over bytes that were just copied there. */
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/crc32c.h"
#include "core/log.h"
#include "io/tfrecord.h"

enum { FIRST_BUFFER_BYTES = 1 << 18, FAULT_BYTES = sizeof((tpucl_error *)0)->message };
static const uint64_t default_max_bytes = UINT64_C(1) << 30;

struct tp_record_reader {
    tp_reader *source;
    tp_record_options options;
    tp_compression compression;
    uint8_t *buffer;
    size_t capacity, begin, end; /* of the buffer: what is there lies from begin to end */
    uint64_t offset;             /* of buffer[begin] in the decompressed file */
    bool ended;
    tp_record_counts counts;
    char first_fault[FAULT_BYTES];
};

static uint32_t read_u32(const uint8_t *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool is_good_head(const uint8_t *head)
{
    return tp_crc32c_mask(tp_crc32c(0, head, 8)) == read_u32(head + 8);
}

/* ---- the buffer ---- */

static tpucl_status grow(tp_record_reader *reader, size_t wanted)
{
    size_t capacity = reader->capacity;
    while (capacity < wanted)
        capacity *= 2;
    uint8_t *larger = tp_alloc(capacity);
    if (!larger)
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "'%s': no memory for a record of %zu bytes",
                       reader->source->name, wanted);
    memcpy(larger, reader->buffer + reader->begin, reader->end - reader->begin);
    tp_free(reader->buffer);
    reader->buffer = larger;
    reader->capacity = capacity;
    reader->end -= reader->begin;
    reader->begin = 0;
    return TPUCL_OK;
}

/* Reads until `wanted` bytes lie there, or the file ends: *out_have says how many of them do. */
static tpucl_status have(tp_record_reader *reader, size_t wanted, size_t *out_have)
{
    while (reader->end - reader->begin < wanted) {
        size_t got = 0;
        if (reader->begin + wanted > reader->capacity || reader->end == reader->capacity) {
            const size_t there = reader->end - reader->begin;
            if (reader->begin) {
                memmove(reader->buffer, reader->buffer + reader->begin, there);
                reader->end = there;
                reader->begin = 0;
            }
            /* Twice what is there at most: a length alone costs no memory. */
            if (reader->end == reader->capacity) TP_TRY(grow(reader, 2 * reader->capacity));
        }
        const tpucl_status status = tp_reader_read(reader->source, reader->buffer + reader->end,
                                                   reader->capacity - reader->end, &got);
        reader->end += got;
        if (status != TPUCL_OK) {
            /* What came before the failure is good; the next read fails again. */
            if (reader->end - reader->begin < wanted) return status;
            tp_error_clear();
        }
        if (got == 0) break;
    }
    const size_t there = reader->end - reader->begin;
    *out_have = there < wanted ? there : wanted;
    return TPUCL_OK;
}

static void take(tp_record_reader *reader, size_t bytes)
{
    reader->begin += bytes;
    reader->offset += bytes;
}

/* ---- opening ---- */

static tpucl_status open_source(tp_record_reader *reader)
{
    size_t got = 0;
    tp_compression compression = reader->options.compression;
    uint8_t head[TP_RECORD_HEAD_BYTES];
    TP_TRY(tp_reader_read(reader->source, head, sizeof head, &got));
    if (compression == TP_COMPRESSION_SNIFF)
        compression = got == sizeof head && is_good_head(head) ? TP_COMPRESSION_NONE
                                                               : tp_compression_sniff(head, got);
    reader->compression = compression;
    if (compression == TP_COMPRESSION_NONE) {
        memcpy(reader->buffer, head, got);
        reader->end = got;
        reader->offset = reader->source->offset - got;
        return TPUCL_OK;
    }
    tp_reader *source = reader->source;
    reader->source = NULL;
    /* An empty file has no records, whatever it is said to be compressed with. */
    if (got == 0) compression = TP_COMPRESSION_NONE;
    return tp_reader_adopt_inflate(source, compression, head, got, &reader->source);
}

tpucl_status tp_record_reader_adopt(tp_reader *source, const tp_record_options *options,
                                    tp_record_reader **out_reader)
{
    tp_record_reader *reader = TP_NEW(tp_record_reader);
    if (!reader) {
        tp_reader_close(source);
        return TPUCL_OUT_OF_MEMORY;
    }
    reader->source = source;
    if (options) reader->options = *options;
    if (!reader->options.max_record_bytes) reader->options.max_record_bytes = default_max_bytes;
    reader->capacity = FIRST_BUFFER_BYTES;
    reader->buffer = tp_alloc(reader->capacity);
    const tpucl_status status = reader->buffer ? open_source(reader) : TPUCL_OUT_OF_MEMORY;
    if (status != TPUCL_OK) {
        tp_record_reader_close(reader);
        return status;
    }
    *out_reader = reader;
    return TPUCL_OK;
}

void tp_record_reader_close(tp_record_reader *reader)
{
    if (!reader) return;
    tp_reader_close(reader->source);
    tp_free(reader->buffer);
    tp_free(reader);
}

/* ---- records ---- */

/* The record that was just filled becomes a warning under TP_RECORD_SKIP. */
static tpucl_status fault(tp_record_reader *reader, tpucl_status status)
{
    if (status != TPUCL_CORRUPT_DATA || reader->options.policy != TP_RECORD_SKIP) return status;
    const char *message = tpucl_last_error()->message;
    if (reader->counts.faults++ == 0)
        snprintf(reader->first_fault, sizeof reader->first_fault, "%s", message);
    TP_LOG_WARNING("io", "%s", message);
    tp_error_clear();
    return TPUCL_OK;
}

static tpucl_status cut(const tp_record_reader *reader, const char *part, uint64_t wanted,
                        size_t there)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA,
                   "'%s' ends in the %s of the record at offset %llu: %zu of %llu bytes are there; "
                   "the file was cut",
                   reader->source->name, part, (unsigned long long)reader->offset, there,
                   (unsigned long long)wanted);
}

/* Length and its sum. *out_found false: the file ended before. */
static tpucl_status read_head(tp_record_reader *reader, uint64_t *out_length, bool *out_found)
{
    size_t there = 0;
    TP_TRY(have(reader, TP_RECORD_HEAD_BYTES, &there));
    *out_found = there > 0;
    if (there == 0) return TPUCL_OK;
    if (there < TP_RECORD_HEAD_BYTES) return cut(reader, "head", TP_RECORD_HEAD_BYTES, there);
    const uint8_t *head = reader->buffer + reader->begin;
    *out_length = read_u32(head) | (uint64_t)read_u32(head + 4) << 32;
    if (!is_good_head(head))
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s': the length at offset %llu (%llu) does not fit its checksum; this is "
                       "no TFRecord file, is compressed in another way than said, or is damaged",
                       reader->source->name, (unsigned long long)reader->offset,
                       (unsigned long long)*out_length);
    if (*out_length > reader->options.max_record_bytes)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s': the record at offset %llu has %llu bytes; at most %llu are read",
                       reader->source->name, (unsigned long long)reader->offset,
                       (unsigned long long)*out_length,
                       (unsigned long long)reader->options.max_record_bytes);
    return TPUCL_OK;
}

/* The whole frame of `length` bytes of contents lies in the buffer afterwards. */
static tpucl_status read_body(tp_record_reader *reader, uint64_t length)
{
    size_t there = 0, wanted = (size_t)length;
    if (length > SIZE_MAX - 16 || !tp_size_add(wanted, 16, &wanted))
        return TP_FAIL(TPUCL_UNSUPPORTED, "a record of %llu bytes is too large for this machine",
                       (unsigned long long)length);
    TP_TRY(have(reader, wanted, &there));
    if (there < wanted)
        return cut(reader, "bytes", length + TP_RECORD_TAIL_BYTES, there - TP_RECORD_HEAD_BYTES);
    return TPUCL_OK;
}

static bool is_good_body(const tp_record_reader *reader, uint64_t length)
{
    const uint8_t *bytes = reader->buffer + reader->begin + TP_RECORD_HEAD_BYTES;
    return reader->options.is_unchecked ||
           tp_crc32c_mask(tp_crc32c(0, bytes, (size_t)length)) == read_u32(bytes + length);
}

tpucl_status tp_record_reader_next(tp_record_reader *reader, tp_record *out_record, bool *out_found)
{
    *out_found = false;
    while (!reader->ended) {
        uint64_t length = 0;
        bool found = false;
        tpucl_status status = read_head(reader, &length, &found);
        if (status == TPUCL_OK && found) status = read_body(reader, length);
        if (status != TPUCL_OK || !found) {
            reader->ended = true;
            return fault(reader, status);
        }
        const tp_record record = {reader->buffer + reader->begin + TP_RECORD_HEAD_BYTES,
                                  (size_t)length, reader->offset};
        const bool is_good = is_good_body(reader, length);
        take(reader, (size_t)length + TP_RECORD_HEAD_BYTES + TP_RECORD_TAIL_BYTES);
        if (is_good) {
            reader->counts.records++;
            reader->counts.bytes += length;
            *out_record = record;
            *out_found = true;
            return TPUCL_OK;
        }
        TP_TRY(fault(reader, TP_FAIL(TPUCL_CORRUPT_DATA,
                                     "'%s': the %llu bytes of the record at offset %llu do not fit "
                                     "their checksum",
                                     reader->source->name, (unsigned long long)length,
                                     (unsigned long long)record.offset)));
    }
    return TPUCL_OK;
}

tp_record_counts tp_record_reader_counts(const tp_record_reader *reader)
{
    return reader->counts;
}

tp_compression tp_record_reader_compression(const tp_record_reader *reader)
{
    return reader->compression;
}

const char *tp_record_reader_first_fault(const tp_record_reader *reader)
{
    return reader->first_fault;
}
