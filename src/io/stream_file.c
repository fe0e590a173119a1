/* SPDX-License-Identifier: Apache-2.0
 * Files and memory as streams. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "core/file_error.h"
#include "io/stream.h"

/* ---- a file to read ---- */

typedef struct file_reader {
    tp_reader base;
    int descriptor;
    char path[]; /* base.name */
} file_reader;

static tpucl_status read_file(tp_reader *reader, void *out, size_t bytes, size_t *out_got)
{
    const file_reader *file = (const file_reader *)reader;
    for (;;) {
        const ssize_t got = read(file->descriptor, out, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return tp_file_fail("read", file->path, errno);
        *out_got = (size_t)got;
        return TPUCL_OK;
    }
}

static void close_file(tp_reader *reader)
{
    file_reader *file = (file_reader *)reader;
    close(file->descriptor);
    tp_free(file);
}

tpucl_status tp_reader_open_file(const char *path, uint64_t offset, tp_reader **out_reader)
{
    static const tp_reader_ops ops = {read_file, close_file};
    const size_t length = strlen(path) + 1;
    file_reader *file = tp_alloc_zero(sizeof *file + length);
    if (!file) return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to open '%s'", path);
    memcpy(file->path, path, length);
    file->base = (tp_reader){.ops = &ops, .name = file->path, .offset = offset};
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (file->descriptor < 0 || (offset && lseek(file->descriptor, (off_t)offset, SEEK_SET) < 0)) {
        const int code = errno;
        const char *action = file->descriptor < 0 ? "open" : "seek in";
        if (file->descriptor >= 0) close(file->descriptor);
        tp_free(file);
        return tp_file_fail(action, path, code);
    }
    *out_reader = &file->base;
    return TPUCL_OK;
}

/* ---- memory to read ---- */

typedef struct bytes_reader {
    tp_reader base;
    const char *bytes;
    size_t left;
} bytes_reader;

static tpucl_status read_bytes(tp_reader *reader, void *out, size_t bytes, size_t *out_got)
{
    bytes_reader *from = (bytes_reader *)reader;
    *out_got = bytes < from->left ? bytes : from->left;
    if (*out_got) memcpy(out, from->bytes, *out_got);
    from->bytes += *out_got;
    from->left -= *out_got;
    return TPUCL_OK;
}

static void close_bytes(tp_reader *reader)
{
    tp_free(reader);
}

tpucl_status tp_reader_open_bytes(const void *bytes, size_t length, const char *name,
                                  tp_reader **out_reader)
{
    static const tp_reader_ops ops = {read_bytes, close_bytes};
    bytes_reader *from = tp_alloc(sizeof *from);
    if (!from) return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to read '%s'", name);
    *from = (bytes_reader){.base = {.ops = &ops, .name = name}, .bytes = bytes, .left = length};
    *out_reader = &from->base;
    return TPUCL_OK;
}

/* ---- a file to write ---- */

typedef struct file_writer {
    tp_writer base;
    tp_file_writer *inner;
    char path[]; /* base.name */
} file_writer;

static tpucl_status write_file(tp_writer *writer, const void *bytes, size_t length)
{
    return tp_file_writer_write(((file_writer *)writer)->inner, bytes, length);
}

static tpucl_status commit_file(tp_writer *writer)
{
    const tpucl_status status = tp_file_writer_commit(((file_writer *)writer)->inner);
    tp_free(writer);
    return status;
}

static void abort_file(tp_writer *writer)
{
    tp_file_writer_abort(((file_writer *)writer)->inner);
    tp_free(writer);
}

tpucl_status tp_writer_open_file(const char *path, tp_writer **out_writer)
{
    static const tp_writer_ops ops = {write_file, commit_file, abort_file};
    const size_t length = strlen(path) + 1;
    file_writer *file = tp_alloc_zero(sizeof *file + length);
    if (!file) return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to write '%s'", path);
    memcpy(file->path, path, length);
    file->base = (tp_writer){.ops = &ops, .name = file->path};
    const tpucl_status status = tp_file_writer_open(path, &file->inner);
    if (status != TPUCL_OK) {
        tp_free(file);
        return status;
    }
    *out_writer = &file->base;
    return TPUCL_OK;
}
