/* SPDX-License-Identifier: Apache-2.0
 * Writes event files. */
#include "io/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/file.h"
#include "core/file_error.h"
#include "io/event_internal.h"
#include "io/proto.h"
#include "io/tfrecord.h"

enum { EVENT_WALL = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1, MANY_BYTES = 1 << 20, HOST_BYTES = 256, TRIES = 100 };
static const char prefix[] = "events.out.tfevents.";

struct tp_event_file {
    tp_writer *target;
    tp_str_builder pending; /* whole records */
};

double tp_event_wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a file that readers see grow ---- */

typedef struct log_writer {
    tp_writer base;
    int descriptor;
    char path[]; /* base.name */
} log_writer;

/* All of it or nothing: readers take a record that is cut for one that is still being written, and what would
 * be appended behind it for its rest. */
static tpucl_status write_log(tp_writer *writer, const void *bytes, size_t length)
{
    const log_writer *log = (const log_writer *)writer;
    const char *from = bytes;
    for (size_t done = 0; done < length;) {
        const ssize_t got = write(log->descriptor, from + done, length - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int code = errno;
            if (done && (ftruncate(log->descriptor, (off_t)writer->offset) != 0 ||
                         lseek(log->descriptor, 0, SEEK_END) < 0))
                return tp_file_fail("cut", log->path, errno);
            return tp_file_fail("write", log->path, code);
        }
        done += (size_t)got;
    }
    return TPUCL_OK;
}

static void abort_log(tp_writer *writer)
{
    close(((log_writer *)writer)->descriptor);
    tp_free(writer);
}

static tpucl_status commit_log(tp_writer *writer)
{
    log_writer *log = (log_writer *)writer;
    tpucl_status status = TPUCL_OK;
    if (fsync(log->descriptor) != 0) status = tp_file_fail("sync", log->path, errno);
    if (close(log->descriptor) != 0 && status == TPUCL_OK)
        status = tp_file_fail("close", log->path, errno);
    tp_free(log);
    return status;
}

static tpucl_status open_log(const char *path, tp_writer **out_writer)
{
    static const tp_writer_ops ops = {write_log, commit_log, abort_log};
    const size_t length = strlen(path) + 1;
    log_writer *log = tp_alloc_zero(sizeof *log + length);
    if (!log) return TPUCL_OUT_OF_MEMORY;
    memcpy(log->path, path, length);
    log->base = (tp_writer){.ops = &ops, .name = log->path};
    log->descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (log->descriptor < 0) {
        const int code = errno;
        tp_free(log);
        return tp_file_fail("make", path, code);
    }
    *out_writer = &log->base;
    return TPUCL_OK;
}

/* ---- names ---- */

tpucl_status tp_event_choose_seconds(const char *folder, tp_arena *arena, int64_t *out_seconds)
{
    const char *const *names;
    size_t count;
    *out_seconds = (int64_t)time(NULL);
    TP_TRY(tp_store_names(folder, arena, &names, &count));
    for (size_t i = 0; i < count; i++) {
        int64_t seconds;
        if (!tp_str_starts_with(names[i], prefix)) continue;
        tp_view rest = tp_view_of(names[i] + sizeof prefix - 1), digits;
        if (!tp_view_next(&rest, '.', &digits) || digits.length != 10 ||
            tp_str_parse_int64(digits, &seconds) != TPUCL_OK)
            continue;
        if (seconds >= *out_seconds) *out_seconds = seconds + 1;
    }
    tp_error_clear(); /* of names that hold no number */
    return TPUCL_OK;
}

/* Six digits for the counter: objects of one run follow each other in the order of their names. */
const char *tp_event_path(const char *folder, int64_t seconds, int counter, tp_arena *arena)
{
    char host[HOST_BYTES] = "localhost";
    if (gethostname(host, sizeof host) != 0) snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    const char *name = tp_arena_printf(arena, "%s%010lld.%s.%d.%06d.v2", prefix, (long long)seconds,
                                       host, (int)getpid(), counter);
    return name ? tp_file_join(arena, folder, name) : NULL;
}

static tpucl_status open_in_folder(const char *folder, tp_arena *arena, tp_writer **out_writer)
{
    int64_t seconds;
    TP_TRY(tp_file_make_folders(folder));
    TP_TRY(tp_event_choose_seconds(folder, arena, &seconds));
    for (int counter = 0;; counter++) {
        const char *path = tp_event_path(folder, seconds, counter, arena);
        if (!path) return TPUCL_OUT_OF_MEMORY;
        const tpucl_status status = open_log(path, out_writer);
        if (status == TPUCL_OK) return tp_file_sync_entry(path);
        if (counter == TRIES || !tp_file_exists(path)) return status;
    }
}

/* ---- events ---- */

static tpucl_status put_event(tp_str_builder *records, const tp_str_builder *event)
{
    uint8_t head[TP_RECORD_HEAD_BYTES], tail[TP_RECORD_TAIL_BYTES];
    TP_TRY(event->status);
    const size_t before = records->length;
    tp_record_frame(event->data, event->length, head, tail);
    tp_str_append_bytes(records, (const char *)head, sizeof head);
    tp_str_append_bytes(records, event->data, event->length);
    tp_str_append_bytes(records, (const char *)tail, sizeof tail);
    const tpucl_status status = records->status;
    if (status != TPUCL_OK) { /* without the half of an event */
        records->status = TPUCL_OK;
        records->length = before;
    }
    return status;
}

static tpucl_status put_built(tp_str_builder *records, tp_str_builder *event)
{
    const tpucl_status status = put_event(records, event);
    tp_str_builder_deinit(event);
    return status;
}

tpucl_status tp_event_put_version(tp_str_builder *records)
{
    tp_str_builder event = {0};
    tp_proto_put_double(&event, EVENT_WALL, tp_event_wall_seconds());
    tp_proto_put_text(&event, EVENT_VERSION, "brain.Event:2");
    return put_built(records, &event);
}

static tpucl_status put_begin(tp_event_file *file, int64_t first_step)
{
    tp_str_builder event = {0};
    TP_TRY(tp_event_put_version(&file->pending));
    tp_proto_put_double(&event, EVENT_WALL, tp_event_wall_seconds());
    tp_proto_put_uint(&event, EVENT_STEP, (uint64_t)first_step);
    const size_t session = tp_proto_begin(&event, EVENT_SESSION);
    tp_proto_put_uint(&event, SESSION_STATUS, SESSION_START);
    tp_proto_end(&event, session);
    return put_built(&file->pending, &event);
}

tpucl_status tp_event_file_adopt(tp_writer *target, int64_t first_step, tp_event_file **out_file)
{
    tp_event_file *file = TP_NEW(tp_event_file);
    if (!file) {
        tp_writer_abort(target);
        return TPUCL_OUT_OF_MEMORY;
    }
    file->target = target;
    tpucl_status status = put_begin(file, first_step);
    if (status == TPUCL_OK) status = tp_event_file_flush(file);
    if (status != TPUCL_OK) {
        tp_event_file_abandon(file);
        return status;
    }
    *out_file = file;
    return TPUCL_OK;
}

tpucl_status tp_event_file_open(const char *folder, int64_t first_step, tp_event_file **out_file)
{
    tp_arena *arena = NULL;
    tp_writer *target = NULL;
    if (tp_store_is_remote(folder)) {
        TP_TRY(tp_event_store_open(folder, NULL, &target));
        return tp_event_file_adopt(target, first_step, out_file);
    }
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status = open_in_folder(tp_store_path(folder), arena, &target);
    tp_arena_destroy(arena);
    if (status != TPUCL_OK) {
        tp_writer_abort(target);
        return status;
    }
    return tp_event_file_adopt(target, first_step, out_file);
}

tpucl_status tp_event_file_put(tp_event_file *file, double wall_seconds, int64_t step,
                               tp_view summary)
{
    tp_str_builder event = {0};
    tp_proto_put_double(&event, EVENT_WALL, wall_seconds);
    tp_proto_put_uint(&event, EVENT_STEP, (uint64_t)step);
    tp_proto_put_bytes(&event, EVENT_SUMMARY, summary.data, summary.length);
    TP_TRY(put_built(&file->pending, &event));
    return file->pending.length < MANY_BYTES ? TPUCL_OK : tp_event_file_flush(file);
}

tpucl_status tp_event_file_flush(tp_event_file *file)
{
    if (file->pending.length)
        TP_TRY(tp_writer_write(file->target, file->pending.data, file->pending.length));
    file->pending.length = 0;
    return TPUCL_OK;
}

const char *tp_event_file_name(const tp_event_file *file)
{
    return file->target->name;
}

tpucl_status tp_event_file_close(tp_event_file *file)
{
    tpucl_status status = tp_event_file_flush(file);
    if (status == TPUCL_OK) {
        status = tp_writer_commit(file->target);
        file->target = NULL;
    }
    tp_event_file_abandon(file);
    return status;
}

void tp_event_file_abandon(tp_event_file *file)
{
    if (!file) return;
    tp_writer_abort(file->target);
    tp_str_builder_deinit(&file->pending);
    tp_free(file);
}
