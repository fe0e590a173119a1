/* SPDX-License-Identifier: Apache-2.0
 * Streams of every kind: what they have in common. */
#include "io/stream.h"

tpucl_status tp_reader_read(tp_reader *reader, void *out, size_t bytes, size_t *out_got)
{
    char *to = out;
    *out_got = 0;
    while (*out_got < bytes) {
        size_t got = 0;
        TP_TRY(reader->ops->read(reader, to + *out_got, bytes - *out_got, &got));
        if (got == 0) break;
        *out_got += got;
        reader->offset += got;
    }
    return TPUCL_OK;
}

tpucl_status tp_reader_skip(tp_reader *reader, uint64_t bytes, uint64_t *out_got)
{
    char forgotten[16384];
    *out_got = 0;
    while (*out_got < bytes) {
        const uint64_t left = bytes - *out_got;
        size_t got = 0;
        TP_TRY(tp_reader_read(reader, forgotten,
                              left < sizeof forgotten ? (size_t)left : sizeof forgotten, &got));
        if (got == 0) break;
        *out_got += got;
    }
    return TPUCL_OK;
}

void tp_reader_close(tp_reader *reader)
{
    if (reader) reader->ops->close(reader);
}

tpucl_status tp_writer_write(tp_writer *writer, const void *bytes, size_t length)
{
    TP_TRY(writer->ops->write(writer, bytes, length));
    writer->offset += length;
    return TPUCL_OK;
}

tpucl_status tp_writer_commit(tp_writer *writer)
{
    return writer->ops->commit(writer);
}

void tp_writer_abort(tp_writer *writer)
{
    if (writer) writer->ops->abort(writer);
}
