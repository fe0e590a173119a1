/* SPDX-License-Identifier: Apache-2.0
 * Reading objects behind HTTP: blocks of one size, fetched by a few threads ahead of the reader into a ring of
 * buffers. Every request carries the ETag of the opening, and a body that breaks off goes on at the byte where it
 * broke. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/thread.h"
#include "io/store_internal.h"

enum { THREADS = 4 };

typedef struct block {
    char *bytes; /* block_bytes of them, from the first use on */
    bool ready;
} block;

typedef struct remote_reader {
    tp_reader base;
    tp_remote *remote;
    tp_store_options options;
    uint64_t first, end; /* bytes of the object that are read */
    char etag[TP_HTTP_ETAG_BYTES];
    tp_mutex mutex;
    tp_cond changed;
    tp_thread *threads[THREADS];
    int32_t thread_count;
    block *ring;         /* [options.blocks]; block i in i % blocks */
    uint64_t count;      /* of blocks */
    uint64_t next_fetch; /* guarded by mutex from here on */
    uint64_t current;
    size_t used;      /* bytes of the current block that were read; the reader's own */
    atomic_bool stop; /* read without the mutex between tries */
    tpucl_status failed;
    tpucl_error error;
} remote_reader;

tpucl_status tp_remote_stat(const tp_remote *remote, const tp_store_options *options,
                            tp_store_info *out_info)
{
    tp_http_client *client;
    tp_http_answer answer = {0};
    tp_retry retry;
    TP_TRY(tp_http_client_create(&client));
    tpucl_status status = tp_remote_send(remote, client, options,
                                         (tp_http_request){.method = "HEAD"}, "", &answer, &retry);
    *out_info = (tp_store_info){0};
    if (status == TPUCL_OK && tp_remote_good(&answer)) {
        out_info->exists = true;
        out_info->bytes = answer.length;
        memcpy(out_info->etag, answer.etag, sizeof answer.etag);
        if (!answer.has_length)
            status = TP_FAIL(TPUCL_UNSUPPORTED,
                             "the server does not say how long '%s' is; download it first",
                             remote->name);
    } else if (status == TPUCL_OK && (answer.code != 404 || answer.problem[0])) {
        status = tp_remote_fail(remote, "look at", &answer, &retry);
    }
    tp_http_answer_deinit(&answer);
    tp_http_client_destroy(client);
    return status;
}

/* ---- a block ---- */

static tpucl_status check_answer(const remote_reader *reader, const tp_http_answer *answer,
                                 uint64_t at, uint64_t end)
{
    const char *name = reader->remote->name;
    if (answer->etag[0] && strcmp(answer->etag, reader->etag) != 0)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' was replaced while it was read, begin anew", name);
    if (answer->code == 200 && at == 0 && end == reader->end) return TPUCL_OK;
    if (answer->code != 206)
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "the server of '%s' does not send parts of it (code %d for a range); "
                       "download it first",
                       name, (int)answer->code);
    if (!answer->has_total || answer->range_first != at || answer->total != reader->end)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "the server of '%s' sent other bytes than those that were asked for", name);
    return TPUCL_OK;
}

/* Bytes at..end into `out`. What a broken answer brought is kept. */
static tpucl_status fetch(remote_reader *reader, tp_http_client *client, uint64_t at, uint64_t end,
                          char *out, tp_http_answer *answer)
{
    char range[80], pin[TP_HTTP_ETAG_BYTES + 16];
    tp_retry retry = tp_retry_begin(&reader->options);
    (void)snprintf(pin, sizeof pin, "If-Match: %s", reader->etag);
    /* Weak tags ("W/...") never match by the rules of HTTP; they are compared in the answer only. */
    const char *match = reader->etag[0] == '"' ? pin : NULL;
    for (;;) {
        (void)snprintf(range, sizeof range, "Range: bytes=%llu-%llu", (unsigned long long)at,
                       (unsigned long long)(end - 1));
        const tp_http_request request = {.method = "GET",
                                         .headers = {range, match},
                                         .into = out,
                                         .into_bytes = (size_t)(end - at)};
        TP_TRY(tp_remote_try(reader->remote, client, request, "", answer));
        if (answer->code >= 200 && answer->code < 300) {
            TP_TRY(check_answer(reader, answer, at, end));
            at += answer->got;
            out += answer->got;
            if (at == end) return TPUCL_OK;
            if (!answer->problem[0])
                return TP_FAIL(TPUCL_CORRUPT_DATA, "the server of '%s' sent too little",
                               reader->remote->name);
            if (answer->got) { /* progress: the budget is for standing still */
                const int32_t tries = retry.tries;
                retry = tp_retry_begin(&reader->options);
                retry.tries = tries;
            }
        }
        if (reader->stop || !tp_retry_again(&retry, answer))
            return tp_remote_fail(reader->remote, "read", answer, &retry);
    }
}

static tpucl_status fetch_blocks(remote_reader *reader, tp_http_client *client,
                                 tp_http_answer *answer)
{
    const size_t size = reader->options.block_bytes;
    for (;;) {
        tp_mutex_lock(&reader->mutex);
        while (!reader->stop && !reader->failed && reader->next_fetch < reader->count &&
               reader->next_fetch >= reader->current + (uint64_t)reader->options.blocks)
            tp_cond_wait(&reader->changed, &reader->mutex);
        const bool done = reader->stop || reader->failed || reader->next_fetch == reader->count;
        const uint64_t index = reader->next_fetch;
        if (!done) reader->next_fetch++;
        tp_mutex_unlock(&reader->mutex);
        if (done) return TPUCL_OK;
        block *to = &reader->ring[index % (uint64_t)reader->options.blocks];
        const uint64_t at = reader->first + index * size;
        const uint64_t left = reader->end - at;
        const size_t length = left < size ? (size_t)left : size;
        if (!to->bytes) to->bytes = tp_alloc(reader->count == 1 ? length : size);
        if (!to->bytes) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(fetch(reader, client, at, at + length, to->bytes, answer));
        tp_mutex_lock(&reader->mutex);
        to->ready = true;
        tp_cond_broadcast(&reader->changed);
        tp_mutex_unlock(&reader->mutex);
    }
}

static tpucl_status run_thread(void *user)
{
    remote_reader *reader = user;
    tp_http_client *client = NULL;
    tp_http_answer answer = {0};
    tpucl_status status = tp_http_client_create(&client);
    if (status == TPUCL_OK) status = fetch_blocks(reader, client, &answer);
    tp_http_answer_deinit(&answer);
    tp_http_client_destroy(client);
    if (status == TPUCL_OK) return TPUCL_OK;
    tp_mutex_lock(&reader->mutex);
    if (!reader->failed) {
        reader->failed = status;
        tp_error_capture(&reader->error);
    }
    tp_cond_broadcast(&reader->changed);
    tp_mutex_unlock(&reader->mutex);
    return TPUCL_OK;
}

/* ---- the stream ---- */

static tpucl_status read_remote(tp_reader *base, void *out, size_t bytes, size_t *out_got)
{
    remote_reader *reader = (remote_reader *)base;
    const size_t size = reader->options.block_bytes;
    *out_got = 0;
    if (reader->current == reader->count) return TPUCL_OK;
    block *from = &reader->ring[reader->current % (uint64_t)reader->options.blocks];
    tp_mutex_lock(&reader->mutex);
    while (!from->ready && !reader->failed)
        tp_cond_wait(&reader->changed, &reader->mutex);
    const bool ready = from->ready;
    tp_mutex_unlock(&reader->mutex);
    if (!ready) {
        tp_error_restore(&reader->error);
        return reader->failed;
    }
    const uint64_t left = reader->end - reader->first - reader->current * size;
    const size_t length = left < size ? (size_t)left : size;
    *out_got = bytes < length - reader->used ? bytes : length - reader->used;
    memcpy(out, from->bytes + reader->used, *out_got);
    reader->used += *out_got;
    if (reader->used < length) return TPUCL_OK;
    tp_mutex_lock(&reader->mutex);
    from->ready = false;
    reader->used = 0;
    reader->current++;
    tp_cond_broadcast(&reader->changed);
    tp_mutex_unlock(&reader->mutex);
    return TPUCL_OK;
}

static void close_remote(tp_reader *base)
{
    remote_reader *reader = (remote_reader *)base;
    tp_mutex_lock(&reader->mutex);
    reader->stop = true;
    tp_cond_broadcast(&reader->changed);
    tp_mutex_unlock(&reader->mutex);
    for (int32_t i = 0; i < reader->thread_count; i++) {
        const tpucl_status ignored = tp_thread_join(reader->threads[i]);
        (void)ignored;
    }
    for (int32_t i = 0; reader->ring && i < reader->options.blocks; i++)
        tp_free(reader->ring[i].bytes);
    tp_free(reader->ring);
    tp_cond_deinit(&reader->changed);
    tp_mutex_deinit(&reader->mutex);
    tp_remote_destroy(reader->remote);
    tp_free(reader);
}

static tpucl_status start(remote_reader *reader, uint64_t offset)
{
    static const tp_reader_ops ops = {read_remote, close_remote};
    const tp_store_options *options = &reader->options;
    tp_store_info info;
    TP_TRY(tp_remote_stat(reader->remote, options, &info));
    const char *name = reader->remote->name;
    if (!info.exists) return TP_FAIL(TPUCL_NOT_FOUND, "'%s' does not exist", name);
    if (offset > info.bytes)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' has %llu bytes, cannot begin at %llu", name,
                       (unsigned long long)info.bytes, (unsigned long long)offset);
    reader->base = (tp_reader){.ops = &ops, .name = name, .offset = offset};
    reader->first = offset;
    reader->end = info.bytes;
    memcpy(reader->etag, info.etag, sizeof reader->etag);
    reader->count = (info.bytes - offset + options->block_bytes - 1) / options->block_bytes;
    reader->ring = TP_NEW_ARRAY(block, (size_t)options->blocks);
    if (!reader->ring) return TPUCL_OUT_OF_MEMORY;
    const int32_t most = options->blocks < THREADS ? options->blocks : THREADS;
    while (reader->thread_count < most && (uint64_t)reader->thread_count < reader->count) {
        TP_TRY(
            tp_thread_create("store", run_thread, reader, &reader->threads[reader->thread_count]));
        reader->thread_count++;
    }
    return TPUCL_OK;
}

tpucl_status tp_remote_open_reader(tp_remote *adopted, uint64_t offset,
                                   const tp_store_options *options, tp_reader **out_reader)
{
    remote_reader *reader = TP_NEW(remote_reader);
    tpucl_status status = reader ? tp_mutex_init(&reader->mutex) : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) {
        status = tp_cond_init(&reader->changed);
        if (status != TPUCL_OK) tp_mutex_deinit(&reader->mutex);
    }
    if (status != TPUCL_OK) {
        tp_free(reader);
        tp_remote_destroy(adopted);
        return status;
    }
    reader->remote = adopted;
    reader->options = *options;
    status = start(reader, offset);
    if (status != TPUCL_OK) {
        tpucl_error error;
        tp_error_capture(&error);
        close_remote(&reader->base);
        tp_error_restore(&error);
        return status;
    }
    *out_reader = &reader->base;
    return TPUCL_OK;
}
