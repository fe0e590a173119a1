/* SPDX-License-Identifier: Apache-2.0
 * Bytes in order, whatever they come from or go to: a file, an object of a bucket, a decompressor on top of
 * another stream. Formats (records, event files, checkpoints) are written against these two alone.
 *
 * Who implements one embeds the struct first in its own and fills `ops`; everybody else calls the functions
 * below. Thread-compatible: one thread at a time.
 */
#ifndef TP_IO_STREAM_H
#define TP_IO_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

/* ---- reading ---- */

typedef struct tp_reader tp_reader;

typedef struct tp_reader_ops {
    /* Up to `bytes`, at least one unless the stream has ended: *out_got 0 is the end. */
    tpucl_status (*read)(tp_reader *reader, void *out, size_t bytes, size_t *out_got);
    /* Frees everything, the reader included. */
    void (*close)(tp_reader *reader);
} tp_reader_ops;

struct tp_reader {
    const tp_reader_ops *ops;
    const char *name; /* path or address, for messages; lives as long as the reader */
    uint64_t offset;  /* of the next byte, from the stream's own beginning */
};

/* Reads all of `bytes` unless the stream ends before: *out_got says how many. */
tpucl_status tp_reader_read(tp_reader *reader, void *out, size_t bytes,
                            size_t *out_got) TPUCL_MUST_CHECK;
/* Reads and forgets. Fewer than `bytes` only at the end. */
tpucl_status tp_reader_skip(tp_reader *reader, uint64_t bytes, uint64_t *out_got) TPUCL_MUST_CHECK;
/* Accepts NULL. */
void tp_reader_close(tp_reader *reader);

/* A file from `offset` on; pipes only from 0. */
tpucl_status tp_reader_open_file(const char *path, uint64_t offset,
                                 tp_reader **out_reader) TPUCL_MUST_CHECK;
/* Bytes of the caller, borrowed, as is `name`. */
tpucl_status tp_reader_open_bytes(const void *bytes, size_t length, const char *name,
                                  tp_reader **out_reader) TPUCL_MUST_CHECK;

/* ---- writing ---- */

typedef struct tp_writer tp_writer;

typedef struct tp_writer_ops {
    tpucl_status (*write)(tp_writer *writer, const void *bytes, size_t length);
    /* What was written is safe and visible under the name when this returns TPUCL_OK. Frees the writer in
     * every case; on failure nothing of it is visible. */
    tpucl_status (*commit)(tp_writer *writer);
    /* Gives up and frees: nothing of it becomes visible. */
    void (*abort)(tp_writer *writer);
} tp_writer_ops;

struct tp_writer {
    const tp_writer_ops *ops;
    const char *name; /* as a reader's */
    uint64_t offset;  /* bytes written so far */
};

tpucl_status tp_writer_write(tp_writer *writer, const void *bytes, size_t length) TPUCL_MUST_CHECK;
tpucl_status tp_writer_commit(tp_writer *writer) TPUCL_MUST_CHECK;
/* Accepts NULL. */
void tp_writer_abort(tp_writer *writer);

/* Aside, synced and renamed at commit: core/file.h's writer. */
tpucl_status tp_writer_open_file(const char *path, tp_writer **out_writer) TPUCL_MUST_CHECK;

#endif
