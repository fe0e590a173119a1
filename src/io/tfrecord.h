/* SPDX-License-Identifier: Apache-2.0
 * TFRecord files (TensorFlow, tsl/lib/io/record_writer.h): for each record its length as a little-endian u64, the
 * masked CRC-32C of these 8 bytes, the bytes, their masked CRC-32C. No header, no index; the whole file may be
 * gzip or zlib.
 *
 * Without a good length nothing tells where the next record begins: such a fault ends its file. A record whose
 * bytes are wrong can be left out. Thread-compatible.
 */
#ifndef TP_IO_TFRECORD_H
#define TP_IO_TFRECORD_H

#include "io/deflate.h"

typedef enum tp_record_policy {
    TP_RECORD_STOP, /* a fault is TPUCL_CORRUPT_DATA */
    TP_RECORD_SKIP /* it is logged as a warning and counted; the reader goes on, or ends where it cannot */
} tp_record_policy;

typedef struct tp_record_options { /* zeros are defaults */
    tp_compression compression;
    tp_record_policy policy;
    bool is_unchecked;         /* leaves out the sums over the bytes, not those over lengths */
    uint64_t max_record_bytes; /* 0: 1 GiB */
} tp_record_options;

typedef struct tp_record {
    const uint8_t *bytes; /* until the next call on the reader */
    size_t length;
    uint64_t offset; /* where its length stands, in the decompressed file */
} tp_record;

typedef struct tp_record_counts {
    uint64_t records, bytes; /* given out; bytes of their contents */
    uint64_t faults;         /* left out, or where the file ended early */
} tp_record_counts;

typedef struct tp_record_reader tp_record_reader;

/* Takes `source` over, also when it fails. Sniffing prefers a good record to a compression's magic number. */
tpucl_status tp_record_reader_adopt(tp_reader *source, const tp_record_options *options,
                                    tp_record_reader **out_reader) TPUCL_MUST_CHECK;
/* *out_found is false at the end. Memory grows with what arrives, not with what a length promises. */
tpucl_status tp_record_reader_next(tp_record_reader *reader, tp_record *out_record,
                                   bool *out_found) TPUCL_MUST_CHECK;
tp_record_counts tp_record_reader_counts(const tp_record_reader *reader);
/* What the file is compressed with, as found. */
tp_compression tp_record_reader_compression(const tp_record_reader *reader);
/* The sentence about the first fault under TP_RECORD_SKIP, or "". Borrowed. */
const char *tp_record_reader_first_fault(const tp_record_reader *reader);
/* Accepts NULL. */
void tp_record_reader_close(tp_record_reader *reader);

typedef struct tp_record_writer tp_record_writer;

/* Takes `target` over, also when it fails. SNIFF means NONE. */
tpucl_status tp_record_writer_adopt(tp_writer *target, tp_compression compression,
                                    tp_record_writer **out_writer) TPUCL_MUST_CHECK;
tpucl_status tp_record_writer_put(tp_record_writer *writer, const void *bytes,
                                  size_t length) TPUCL_MUST_CHECK;
/* Frees the writer in every case; what was put is there under its name when this is TPUCL_OK. */
tpucl_status tp_record_writer_commit(tp_record_writer *writer) TPUCL_MUST_CHECK;
/* Accepts NULL. */
void tp_record_writer_abort(tp_record_writer *writer);

enum { TP_RECORD_HEAD_BYTES = 12, TP_RECORD_TAIL_BYTES = 4 };
/* The frame around `length` bytes, for writers of their own. */
void tp_record_frame(const void *bytes, size_t length, uint8_t out_head[TP_RECORD_HEAD_BYTES],
                     uint8_t out_tail[TP_RECORD_TAIL_BYTES]);

#endif
