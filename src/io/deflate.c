/* SPDX-License-Identifier: Apache-2.0
 * gzip and zlib streams by zlib. */
#include "io/deflate.h"

#include <string.h>
#include <zlib.h>
#include "core/alloc.h"

enum { IO_BYTES = 1 << 18, GZIP_BITS = 15 + 16, ZLIB_BITS = 15 };

static const char *const names[] = {"auto", "none", "gzip", "zlib"};

bool tp_compression_parse(const char *name, tp_compression *out_compression)
{
    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0) {
            *out_compression = (tp_compression)i;
            return true;
        }
    return false;
}

const char *tp_compression_name(tp_compression compression)
{
    return names[compression];
}

tp_compression tp_compression_sniff(const void *head, size_t length)
{
    const uint8_t *b = head;
    if (length < 2) return TP_COMPRESSION_NONE;
    if (b[0] == 0x1f && b[1] == 0x8b) return TP_COMPRESSION_GZIP;
    /* Deflate with the largest window, and the check of RFC 1950. */
    if (b[0] == 0x78 && (b[0] << 8 | b[1]) % 31 == 0) return TP_COMPRESSION_ZLIB;
    return TP_COMPRESSION_NONE;
}

/* zlib's memory is ours, so that tests of failing allocations see it. */
static voidpf allocate(voidpf user, uInt count, uInt size)
{
    (void)user;
    return tp_alloc_array(count, size);
}

static void release(voidpf user, voidpf ptr)
{
    (void)user;
    tp_free(ptr);
}

/* ---- reading ---- */

typedef struct inflate_reader {
    tp_reader base;
    tp_reader *source;
    tp_compression compression;
    z_stream zlib;
    bool is_open; /* zlib holds memory */
    bool ended;
    uint8_t input[IO_BYTES];
} inflate_reader;

static tpucl_status fail_inflate(const inflate_reader *reader, const char *what)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' cannot be decompressed at offset %llu: %s",
                   reader->base.name,
                   (unsigned long long)(reader->source->offset - reader->zlib.avail_in), what);
}

static tpucl_status refill(inflate_reader *reader)
{
    size_t got = 0;
    TP_TRY(tp_reader_read(reader->source, reader->input, IO_BYTES, &got));
    reader->zlib.next_in = reader->input;
    reader->zlib.avail_in = (uInt)got;
    return TPUCL_OK;
}

/* The end of a stream: of gzip more may follow, padding of zeros included. */
static tpucl_status next_member(inflate_reader *reader)
{
    z_stream *z = &reader->zlib;
    for (;;) {
        if (z->avail_in == 0) TP_TRY(refill(reader));
        if (z->avail_in == 0) {
            reader->ended = true;
            return TPUCL_OK;
        }
        if (reader->compression != TP_COMPRESSION_GZIP)
            return fail_inflate(reader, "bytes follow the end of its zlib stream");
        if (*z->next_in) break;
        z->next_in++;
        z->avail_in--;
    }
    return inflateReset(z) == Z_OK ? TPUCL_OK : fail_inflate(reader, "zlib does not go on");
}

static tpucl_status read_inflated(tp_reader *base, void *out, size_t bytes, size_t *out_got)
{
    inflate_reader *reader = (inflate_reader *)base;
    z_stream *z = &reader->zlib;
    *out_got = 0;
    while (!reader->ended && *out_got == 0) {
        if (z->avail_in == 0) TP_TRY(refill(reader));
        if (z->avail_in == 0)
            return fail_inflate(reader, "the file ends in the middle of its compressed bytes");
        const uInt room = bytes > 1u << 30 ? 1u << 30 : (uInt)bytes;
        z->next_out = out;
        z->avail_out = room;
        const int code = inflate(z, Z_NO_FLUSH);
        *out_got = room - z->avail_out;
        if (code == Z_STREAM_END) {
            TP_TRY(next_member(reader));
        } else if (code == Z_MEM_ERROR) {
            return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to decompress '%s'", base->name);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            return fail_inflate(reader, z->msg ? z->msg : "it needs a dictionary");
        }
    }
    return TPUCL_OK;
}

/* NONE: what was read ahead, then the source itself. */
static tpucl_status read_through(tp_reader *base, void *out, size_t bytes, size_t *out_got)
{
    inflate_reader *reader = (inflate_reader *)base;
    z_stream *z = &reader->zlib;
    if (z->avail_in == 0) return tp_reader_read(reader->source, out, bytes, out_got);
    *out_got = bytes < z->avail_in ? bytes : z->avail_in;
    memcpy(out, z->next_in, *out_got);
    z->next_in += *out_got;
    z->avail_in -= (uInt)*out_got;
    return TPUCL_OK;
}

static void close_inflate(tp_reader *base)
{
    inflate_reader *reader = (inflate_reader *)base;
    if (reader->is_open) inflateEnd(&reader->zlib);
    tp_reader_close(reader->source);
    tp_free(reader);
}

static tpucl_status begin_inflate(inflate_reader *reader)
{
    const int bits = reader->compression == TP_COMPRESSION_GZIP ? GZIP_BITS : ZLIB_BITS;
    if (reader->compression == TP_COMPRESSION_NONE) return TPUCL_OK;
    reader->zlib.zalloc = allocate;
    reader->zlib.zfree = release;
    if (inflateInit2(&reader->zlib, bits) != Z_OK)
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to decompress '%s'", reader->base.name);
    reader->is_open = true;
    return TPUCL_OK;
}

tpucl_status tp_reader_adopt_inflate(tp_reader *source, tp_compression compression,
                                     const void *head, size_t head_length, tp_reader **out_reader)
{
    static const tp_reader_ops inflated = {read_inflated, close_inflate},
                               through = {read_through, close_inflate};
    inflate_reader *reader = head_length <= IO_BYTES ? TP_NEW(inflate_reader) : NULL;
    if (!reader) {
        tp_reader_close(source);
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to decompress");
    }
    reader->base = (tp_reader){&inflated, source->name, 0};
    reader->source = source;
    reader->compression =
        compression == TP_COMPRESSION_SNIFF ? tp_compression_sniff(head, head_length) : compression;
    if (reader->compression == TP_COMPRESSION_NONE)
        reader->base = (tp_reader){&through, source->name, source->offset - head_length};
    if (head_length) memcpy(reader->input, head, head_length);
    reader->zlib.next_in = reader->input;
    reader->zlib.avail_in = (uInt)head_length;
    const tpucl_status status = begin_inflate(reader);
    if (status != TPUCL_OK) {
        close_inflate(&reader->base);
        return status;
    }
    *out_reader = &reader->base;
    return TPUCL_OK;
}

/* ---- writing ---- */

typedef struct deflate_writer {
    tp_writer base;
    tp_writer *target;
    z_stream zlib;
    uint8_t output[IO_BYTES];
} deflate_writer;

static tpucl_status run_deflate(deflate_writer *writer, const void *bytes, size_t length, int flush)
{
    z_stream *z = &writer->zlib;
    const uint8_t *from = bytes;
    int code = Z_OK;
    do {
        if (z->avail_in == 0 && length) {
            z->next_in = (Bytef *)(uintptr_t)from; /* zlib does not write there */
            z->avail_in = length > 1u << 30 ? 1u << 30 : (uInt)length;
            from += z->avail_in;
            length -= z->avail_in;
        }
        z->next_out = writer->output;
        z->avail_out = IO_BYTES;
        code = deflate(z, length ? Z_NO_FLUSH : flush);
        if (code == Z_STREAM_ERROR)
            return TP_FAIL(TPUCL_INTERNAL, "'%s': zlib does not compress", writer->base.name);
        const size_t got = IO_BYTES - z->avail_out;
        if (got) TP_TRY(tp_writer_write(writer->target, writer->output, got));
    } while (z->avail_in || length || (flush == Z_FINISH && code != Z_STREAM_END));
    return TPUCL_OK;
}

static tpucl_status write_deflated(tp_writer *base, const void *bytes, size_t length)
{
    if (!length) return TPUCL_OK;
    return run_deflate((deflate_writer *)base, bytes, length, Z_NO_FLUSH);
}

static void abort_deflate(tp_writer *base)
{
    deflate_writer *writer = (deflate_writer *)base;
    deflateEnd(&writer->zlib);
    tp_writer_abort(writer->target);
    tp_free(writer);
}

static tpucl_status commit_deflate(tp_writer *base)
{
    deflate_writer *writer = (deflate_writer *)base;
    tpucl_status status = run_deflate(writer, NULL, 0, Z_FINISH);
    if (status != TPUCL_OK) {
        abort_deflate(base);
        return status;
    }
    status = tp_writer_commit(writer->target);
    writer->target = NULL;
    abort_deflate(base);
    return status;
}

tpucl_status tp_writer_adopt_deflate(tp_writer *target, tp_compression compression, int level,
                                     tp_writer **out_writer)
{
    static const tp_writer_ops ops = {write_deflated, commit_deflate, abort_deflate};
    deflate_writer *writer = TP_NEW(deflate_writer);
    const int bits = compression == TP_COMPRESSION_GZIP ? GZIP_BITS : ZLIB_BITS;
    if (writer) {
        writer->base = (tp_writer){&ops, target->name, 0};
        writer->target = target;
        writer->zlib.zalloc = allocate;
        writer->zlib.zfree = release;
        if (deflateInit2(&writer->zlib, level ? level : Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, 8,
                         Z_DEFAULT_STRATEGY) == Z_OK) {
            *out_writer = &writer->base;
            return TPUCL_OK;
        }
    }
    const tpucl_status status =
        TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to compress '%s'", target->name);
    tp_free(writer);
    tp_writer_abort(target);
    return status;
}
