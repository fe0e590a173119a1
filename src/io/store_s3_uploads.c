/* SPDX-License-Identifier: Apache-2.0
 * Multipart uploads that were begun and never completed: a process that is killed leaves them behind, and their parts
 * cost money until somebody aborts them. */
#include <string.h>
#include "core/alloc.h"
#include "core/array.h"
#include "io/store_internal.h"
#include "io/xml.h"

/* Pages of a thousand, of a server that may never stop naming the same one. */
enum { PAGES = 1000 };

typedef struct upload {
    char *url, *id; /* of an arena */
} upload;
TP_ARRAY_DEFINE(upload_list, upload)

typedef struct work {
    tp_remote *bucket;
    tp_http_client *client;
    tp_http_answer answer;
    const tp_store_options *options;
    const char *root, *key; /* "s3://bucket/", and what keys begin with */
    tp_arena *arena;
    upload_list list;
} work;

/* "<Upload><Key>a/b</Key><UploadId>x</UploadId>...</Upload>": what stands in Initiator and Owner has other names. */
static tpucl_status read_page(work *w)
{
    tp_xml xml = {.rest = {w->answer.text.data, w->answer.text.length}};
    tp_str_builder key = {0}, id = {0};
    tp_view in = {0};
    tpucl_status status = TPUCL_OK;
    w->list.count = 0;
    while (status == TPUCL_OK && (status = tp_xml_next(&xml)) == TPUCL_OK &&
           xml.kind != TP_XML_END) {
        const bool is_upload = tp_view_equal_text(xml.value, "Upload");
        if (xml.kind == TP_XML_OPEN) {
            in = xml.value;
            if (is_upload) key.length = id.length = 0;
        } else if (xml.kind == TP_XML_TEXT) {
            if (tp_view_equal_text(in, "Key")) status = tp_xml_append_text(&key, xml.value);
            if (tp_view_equal_text(in, "UploadId")) status = tp_xml_append_text(&id, xml.value);
        } else {
            in = (tp_view){0};
            /* A server that does not filter must not make us abort what is somebody else's. */
            if (!is_upload || !key.length || !id.length || !tp_str_starts_with(key.data, w->key))
                continue;
            const upload found = {tp_arena_printf(w->arena, "%s%s", w->root, key.data),
                                  tp_arena_strdup(w->arena, id.data)};
            status =
                found.url && found.id ? upload_list_push(&w->list, found) : TPUCL_OUT_OF_MEMORY;
        }
    }
    tp_str_builder_deinit(&key);
    tp_str_builder_deinit(&id);
    return status;
}

static tpucl_status list_page(work *w)
{
    tp_str_builder query = {0};
    tp_retry retry;
    tp_str_append(&query, "?prefix=");
    tp_remote_encode(&query, w->key, false);
    tp_str_append(&query, "&uploads=");
    tpucl_status status = query.status;
    if (status == TPUCL_OK)
        status = tp_remote_send(w->bucket, w->client, w->options,
                                (tp_http_request){.method = "GET"}, query.data, &w->answer, &retry);
    tp_str_builder_deinit(&query);
    TP_TRY(status);
    if (!tp_remote_good(&w->answer))
        return tp_remote_fail(w->bucket, "list the unfinished uploads of", &w->answer, &retry);
    return read_page(w);
}

static tpucl_status abort_one(work *w, const upload *what)
{
    tp_remote *remote;
    tp_str_builder query = {0};
    tp_retry retry;
    TP_TRY(tp_s3_open_target(what->url, false, &remote));
    tp_str_append(&query, "?uploadId=");
    tp_remote_encode(&query, what->id, false);
    tpucl_status status = query.status;
    if (status == TPUCL_OK)
        status =
            tp_remote_send(remote, w->client, w->options, (tp_http_request){.method = "DELETE"},
                           query.data, &w->answer, &retry);
    tp_str_builder_deinit(&query);
    /* 404: it has ended meanwhile, or an answer to an earlier try was lost. */
    if (status == TPUCL_OK && !tp_remote_good(&w->answer) &&
        (w->answer.code != 404 || w->answer.problem[0]))
        status = tp_remote_fail(remote, "abort an unfinished upload of", &w->answer, &retry);
    tp_remote_destroy(remote);
    return status;
}

static tpucl_status abort_all(work *w, size_t *out_count)
{
    for (int page = 0; page < PAGES; page++) {
        TP_TRY(list_page(w));
        if (w->list.count == 0) return TPUCL_OK;
        for (size_t i = 0; i < w->list.count; i++)
            TP_TRY(abort_one(w, &w->list.items[i]));
        *out_count += w->list.count;
    }
    return TP_FAIL(TPUCL_CORRUPT_DATA,
                   "the list of unfinished uploads of '%s' does not end, though they are aborted",
                   w->bucket->name);
}

tpucl_status tp_s3_abort_uploads(const char *prefix, const tp_store_options *options,
                                 size_t *out_count)
{
    work w = {.options = options};
    const char *slash = strchr(prefix + strlen("s3://"), '/');
    TP_TRY(tp_s3_open_target(prefix, true, &w.bucket));
    tpucl_status status = tp_arena_create(0, &w.arena);
    if (status == TPUCL_OK) {
        w.key = slash ? slash + 1 : "";
        w.root = slash ? tp_arena_strndup(w.arena, prefix, (size_t)(w.key - prefix))
                       : tp_arena_printf(w.arena, "%s/", prefix);
        status = w.root ? tp_http_client_create(&w.client) : TPUCL_OUT_OF_MEMORY;
    }
    if (status == TPUCL_OK) status = abort_all(&w, out_count);
    upload_list_deinit(&w.list);
    tp_http_answer_deinit(&w.answer);
    tp_http_client_destroy(w.client);
    tp_remote_destroy(w.bucket);
    tp_arena_destroy(w.arena);
    return status;
}
