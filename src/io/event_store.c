/* SPDX-License-Identifier: Apache-2.0
 * Event files in buckets. */
#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/thread.h"
#include "io/event_internal.h"

typedef struct event_store {
    tp_writer base;
    char *folder; /* base.name */
    tp_event_store_options options;
    tp_thread *thread;
    tp_mutex mutex;
    tp_cond changed;
    tp_str_builder waiting; /* guarded by mutex from here on */
    bool is_last;           /* no more will come */
    uint64_t dropped;       /* writes */
    tpucl_status failed;
    tpucl_error error;
} event_store;

/* ---- the thread ---- */

/* What the thread alone knows. */
typedef struct sender {
    event_store *to;
    tp_arena *arena;
    int64_t seconds;
    int counter;
    const char *path;      /* NULL: no object was begun */
    tp_str_builder object; /* all of it, as it was put and will be put again */
    uint64_t put_at;
} sender;

/* Waits for something to put, and then until it is time; gives what waits. */
static bool take(const sender *s, tp_str_builder *out)
{
    event_store *to = s->to;
    tp_mutex_lock(&to->mutex);
    while (!to->waiting.length && !to->is_last)
        tp_cond_wait(&to->changed, &to->mutex);
    for (uint64_t now = tp_clock_now_ns(); s->path && !to->is_last; now = tp_clock_now_ns()) {
        const uint64_t due = s->put_at + to->options.pause_ns;
        if (now >= due) break;
        (void)tp_cond_wait_for(&to->changed, &to->mutex, due - now);
    }
    *out = to->waiting;
    to->waiting = (tp_str_builder){0};
    tp_mutex_unlock(&to->mutex);
    return out->length > 0;
}

/* The first one of a run carries its START; those that follow go on with it. */
static tpucl_status begin_object(sender *s)
{
    const char *folder = s->to->folder;
    if (!s->path) TP_TRY(tp_event_choose_seconds(folder, s->arena, &s->seconds));
    const bool is_first = !s->path;
    s->path = tp_event_path(folder, s->seconds, s->counter++, s->arena);
    if (!s->path) return TPUCL_OUT_OF_MEMORY;
    s->object.length = 0;
    return is_first ? TPUCL_OK : tp_event_put_version(&s->object);
}

static tpucl_status put(sender *s, const tp_str_builder *records)
{
    tp_writer *writer = NULL;
    if (!s->path || s->object.length + records->length > s->to->options.roll_bytes)
        TP_TRY(begin_object(s));
    tp_str_append_bytes(&s->object, records->data, records->length);
    TP_TRY(s->object.status);
    TP_TRY(tp_store_open_writer(s->path, &s->to->options.store, &writer));
    const tpucl_status status = tp_writer_write(writer, s->object.data, s->object.length);
    if (status != TPUCL_OK) {
        tp_writer_abort(writer);
        return status;
    }
    s->put_at = tp_clock_now_ns();
    return tp_writer_commit(writer);
}

static tpucl_status run(void *user)
{
    sender s = {.to = user};
    tp_str_builder records = {0};
    tpucl_status status = tp_arena_create(0, &s.arena);
    while (status == TPUCL_OK && take(&s, &records)) {
        status = put(&s, &records);
        tp_str_builder_deinit(&records);
    }
    tp_str_builder_deinit(&s.object);
    tp_arena_destroy(s.arena);
    if (status == TPUCL_OK) return TPUCL_OK;
    tp_mutex_lock(&s.to->mutex);
    s.to->failed = status;
    tp_error_capture(&s.to->error);
    tp_mutex_unlock(&s.to->mutex);
    return TPUCL_OK;
}

/* ---- the writer ---- */

static tpucl_status write_store(tp_writer *writer, const void *bytes, size_t length)
{
    event_store *store = (event_store *)writer;
    tp_mutex_lock(&store->mutex);
    tpucl_status status = store->failed;
    const bool is_full = store->waiting.length + length > store->options.most_bytes;
    if (status != TPUCL_OK) {
        tp_error_restore(&store->error);
    } else if (is_full) {
        if (store->dropped++ == 0)
            TP_LOG_WARNING("io", "'%s' is too slow, events for TensorBoard are left out",
                           store->folder);
    } else {
        tp_str_append_bytes(&store->waiting, bytes, length);
        status = store->waiting.status;
        tp_cond_signal(&store->changed);
    }
    tp_mutex_unlock(&store->mutex);
    return status;
}

static void destroy(event_store *store)
{
    tp_str_builder_deinit(&store->waiting);
    tp_cond_deinit(&store->changed);
    tp_mutex_deinit(&store->mutex);
    tp_free(store->folder);
    tp_free(store);
}

static tpucl_status commit_store(tp_writer *writer)
{
    event_store *store = (event_store *)writer;
    tp_mutex_lock(&store->mutex);
    store->is_last = true;
    tp_cond_signal(&store->changed);
    tp_mutex_unlock(&store->mutex);
    tpucl_status status = tp_thread_join(store->thread);
    if (store->failed != TPUCL_OK) {
        status = store->failed;
        tp_error_restore(&store->error);
    }
    destroy(store);
    return status;
}

static void abort_store(tp_writer *writer)
{
    event_store *store = (event_store *)writer;
    tpucl_error error; /* the caller's, of why it gives up */
    tp_error_capture(&error);
    tp_mutex_lock(&store->mutex);
    store->waiting.length = 0;
    tp_mutex_unlock(&store->mutex);
    const tpucl_status ignored = commit_store(writer);
    (void)ignored;
    tp_error_restore(&error);
}

static void complete(const tp_event_store_options *options, tp_event_store_options *out)
{
    *out = options ? *options : (tp_event_store_options){0};
    if (out->pause_ns == 0) out->pause_ns = 30000000000u;
    if (out->roll_bytes == 0) out->roll_bytes = 8 << 20;
    if (out->most_bytes == 0) out->most_bytes = 16 << 20;
}

tpucl_status tp_event_store_open(const char *folder, const tp_event_store_options *options,
                                 tp_writer **out_writer)
{
    static const tp_writer_ops ops = {write_store, commit_store, abort_store};
    event_store *store = TP_NEW(event_store);
    if (!store) return TPUCL_OUT_OF_MEMORY;
    complete(options, &store->options);
    store->folder = tp_alloc_strdup(folder);
    store->base = (tp_writer){.ops = &ops, .name = store->folder};
    tpucl_status status = store->folder ? tp_mutex_init(&store->mutex) : TPUCL_OUT_OF_MEMORY;
    if (status != TPUCL_OK) {
        tp_free(store->folder);
        tp_free(store);
        return status;
    }
    status = tp_cond_init(&store->changed);
    if (status == TPUCL_OK) status = tp_thread_create("events", run, store, &store->thread);
    if (status != TPUCL_OK) {
        destroy(store);
        return status;
    }
    *out_writer = &store->base;
    return TPUCL_OK;
}
