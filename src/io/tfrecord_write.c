/* SPDX-License-Identifier: Apache-2.0
 * Writes TFRecord files, collected into large pieces. */
#include <string.h>
#include "core/alloc.h"
#include "core/crc32c.h"
#include "io/tfrecord.h"

enum { BUFFER_BYTES = 1 << 18 };

struct tp_record_writer {
    tp_writer *target;
    size_t used;
    uint8_t buffer[BUFFER_BYTES];
};

static void write_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

void tp_record_frame(const void *bytes, size_t length, uint8_t out_head[TP_RECORD_HEAD_BYTES],
                     uint8_t out_tail[TP_RECORD_TAIL_BYTES])
{
    write_u32(out_head, (uint32_t)length);
    write_u32(out_head + 4, (uint32_t)((uint64_t)length >> 32));
    write_u32(out_head + 8, tp_crc32c_mask(tp_crc32c(0, out_head, 8)));
    write_u32(out_tail, tp_crc32c_mask(tp_crc32c(0, bytes, length)));
}

tpucl_status tp_record_writer_adopt(tp_writer *target, tp_compression compression,
                                    tp_record_writer **out_writer)
{
    const bool is_plain = compression == TP_COMPRESSION_NONE || compression == TP_COMPRESSION_SNIFF;
    if (!is_plain) TP_TRY(tp_writer_adopt_deflate(target, compression, 0, &target));
    tp_record_writer *writer = TP_NEW(tp_record_writer);
    if (!writer) {
        tp_writer_abort(target);
        return TPUCL_OUT_OF_MEMORY;
    }
    writer->target = target;
    *out_writer = writer;
    return TPUCL_OK;
}

static tpucl_status flush(tp_record_writer *writer)
{
    if (writer->used) TP_TRY(tp_writer_write(writer->target, writer->buffer, writer->used));
    writer->used = 0;
    return TPUCL_OK;
}

static tpucl_status put_bytes(tp_record_writer *writer, const void *bytes, size_t length)
{
    if (length > BUFFER_BYTES - writer->used) TP_TRY(flush(writer));
    if (length > BUFFER_BYTES) return tp_writer_write(writer->target, bytes, length);
    if (length) memcpy(writer->buffer + writer->used, bytes, length);
    writer->used += length;
    return TPUCL_OK;
}

tpucl_status tp_record_writer_put(tp_record_writer *writer, const void *bytes, size_t length)
{
    uint8_t head[TP_RECORD_HEAD_BYTES], tail[TP_RECORD_TAIL_BYTES];
    tp_record_frame(bytes, length, head, tail);
    TP_TRY(put_bytes(writer, head, sizeof head));
    TP_TRY(put_bytes(writer, bytes, length));
    return put_bytes(writer, tail, sizeof tail);
}

tpucl_status tp_record_writer_commit(tp_record_writer *writer)
{
    tpucl_status status = flush(writer);
    if (status == TPUCL_OK) {
        status = tp_writer_commit(writer->target);
        writer->target = NULL;
    }
    tp_record_writer_abort(writer);
    return status;
}

void tp_record_writer_abort(tp_record_writer *writer)
{
    if (!writer) return;
    tp_writer_abort(writer->target);
    tp_free(writer);
}
