/* SPDX-License-Identifier: Apache-2.0
 * Atomic replacement: write aside, fsync, rename, fsync the folder. A crash at any point leaves
 * either the old file or the new one, never a part. The file aside is "<path>.<unique>.part"; one
 * that a crash left behind is never mistaken for a result. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/file_error.h"

enum { BUFFER_BYTES = 64 * 1024 };

struct tp_file_writer {
    char *path, *part_path;
    int descriptor;
    size_t buffered;
    unsigned char buffer[BUFFER_BYTES];
};

static void release(tp_file_writer *writer)
{
    if (writer->descriptor >= 0) close(writer->descriptor);
    tp_free(writer->path);
    tp_free(writer->part_path);
    tp_free(writer);
}

/* Creates "<path>.<unique>.part" with the mode that any new file gets; sets errno on failure. */
static int create_part(char *part_path, size_t size, const char *path)
{
    static _Atomic unsigned counter;
    for (int attempt = 0; attempt < 100; attempt++) {
        unsigned long long unique = tp_clock_now_ns() % 1000000000u;
        snprintf(part_path, size, "%s.%lld-%u-%09llu.part", path, (long long)getpid(),
                 atomic_fetch_add(&counter, 1), unique);
        int descriptor = open(part_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

tpucl_status tp_file_writer_open(const char *path, tp_file_writer **out_writer)
{
    enum { SUFFIX_BYTES = 64 }; /* at most 20 + 10 + 9 digits, points, dashes, "part" */
    *out_writer = NULL;
    if (!*path) return tp_file_fail("write", path, ENOENT);
    if (tp_file_is_folder(path)) return tp_file_fail("write", path, EISDIR);
    tp_file_writer *writer = TP_NEW(tp_file_writer);
    if (!writer) return TPUCL_OUT_OF_MEMORY;
    writer->descriptor = -1;
    size_t part_size = strlen(path) + SUFFIX_BYTES;
    writer->path = tp_alloc_strdup(path);
    writer->part_path = writer->path ? tp_alloc(part_size) : NULL;
    if (!writer->part_path) {
        release(writer);
        return TPUCL_OUT_OF_MEMORY;
    }
    writer->descriptor = create_part(writer->part_path, part_size, path);
    if (writer->descriptor < 0) {
        int code = errno;
        release(writer);
        return tp_file_fail("create", path, code);
    }
    *out_writer = writer;
    return TPUCL_OK;
}

static tpucl_status write_fully(const tp_file_writer *writer, const unsigned char *bytes,
                                size_t length)
{
    while (length) {
        ssize_t written = write(writer->descriptor, bytes, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return tp_file_fail("write", writer->path, errno);
        bytes += written;
        length -= (size_t)written;
    }
    return TPUCL_OK;
}

static tpucl_status flush(tp_file_writer *writer)
{
    size_t buffered = writer->buffered;
    writer->buffered = 0;
    return write_fully(writer, writer->buffer, buffered);
}

tpucl_status tp_file_writer_write(tp_file_writer *writer, const void *bytes, size_t length)
{
    if (length > BUFFER_BYTES - writer->buffered) TP_TRY(flush(writer));
    if (length >= BUFFER_BYTES) return write_fully(writer, bytes, length);
    if (length) memcpy(writer->buffer + writer->buffered, bytes, length);
    writer->buffered += length;
    return TPUCL_OK;
}

/* A file that is replaced hands its mode on. */
static tpucl_status keep_mode(const tp_file_writer *writer)
{
    struct stat info;
    if (stat(writer->path, &info) != 0) return TPUCL_OK;
    if (fchmod(writer->descriptor, info.st_mode & 0777) != 0)
        return tp_file_fail("set the mode of", writer->path, errno);
    return TPUCL_OK;
}

tpucl_status tp_file_sync_entry(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    char *folder = tp_alloc(length + 2);
    if (!folder) return TPUCL_OUT_OF_MEMORY;
    memcpy(folder, path, length);
    strcpy(folder + length, length ? "" : slash ? "/" : ".");
    tpucl_status status = TPUCL_OK;
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
        status = tp_file_fail("open folder", folder, errno);
    } else {
        /* Some file systems cannot sync a folder and say EINVAL; there is nothing more to do then.
         */
        if (fsync(descriptor) != 0 && errno != EINVAL)
            status = tp_file_fail("sync folder", folder, errno);
        close(descriptor);
    }
    tp_free(folder);
    return status;
}

tpucl_status tp_file_writer_commit(tp_file_writer *writer)
{
    tpucl_status status = flush(writer);
    if (status == TPUCL_OK) status = keep_mode(writer);
    if (status == TPUCL_OK && fsync(writer->descriptor) != 0)
        status = tp_file_fail("sync", writer->path, errno);
    if (close(writer->descriptor) != 0 && status == TPUCL_OK)
        status = tp_file_fail("close", writer->path, errno);
    writer->descriptor = -1;
    if (status == TPUCL_OK && rename(writer->part_path, writer->path) != 0)
        status = tp_file_fail("replace", writer->path, errno);
    if (status != TPUCL_OK)
        unlink(writer->part_path);
    else
        status = tp_file_sync_entry(writer->path);
    release(writer);
    return status;
}

void tp_file_writer_abort(tp_file_writer *writer)
{
    if (!writer) return;
    unlink(writer->part_path);
    release(writer);
}

tpucl_status tp_file_write_atomic(const char *path, const void *bytes, size_t length)
{
    tp_file_writer *writer;
    TP_TRY(tp_file_writer_open(path, &writer));
    tpucl_status status = tp_file_writer_write(writer, bytes, length);
    if (status != TPUCL_OK) {
        tp_file_writer_abort(writer);
        return status;
    }
    return tp_file_writer_commit(writer);
}
