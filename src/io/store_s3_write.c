/* SPDX-License-Identifier: Apache-2.0
 * Writing to buckets: what fits into one part is one PUT at commit; more is a multipart upload, which becomes visible
 * when it is completed and is aborted when anything fails, because parts that lie around cost money. */
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/array.h"
#include "io/store_internal.h"
#include "io/xml.h"

enum { PARTS = 10000 };

typedef struct part_tag {
    char etag[TP_HTTP_ETAG_BYTES];
} part_tag;
TP_ARRAY_DEFINE(tag_list, part_tag)

typedef struct s3_writer {
    tp_writer base;
    tp_remote *remote;
    tp_http_client *client;
    tp_http_answer answer;
    tp_store_options options;
    char *buffer; /* options.part_bytes */
    size_t filled;
    char *upload; /* id, percent-encoded; NULL: no multipart upload */
    tag_list tags;
} s3_writer;

static tpucl_status send(s3_writer *writer, const char *method, const char *query, const void *body,
                         size_t length, tp_retry *out_retry)
{
    const tp_http_request request = {.method = method, .body = body, .body_bytes = length};
    return tp_remote_send(writer->remote, writer->client, &writer->options, request, query,
                          &writer->answer, out_retry);
}

static tpucl_status fail(s3_writer *writer, const tp_retry *retry)
{
    return tp_remote_fail(writer->remote, "write", &writer->answer, retry);
}

static void find_text(const s3_writer *writer, const char *name, char *out, size_t bytes)
{
    tp_xml_find((tp_view){writer->answer.text.data, writer->answer.text.length}, name, out, bytes);
}

static void destroy(s3_writer *writer)
{
    tp_http_answer_deinit(&writer->answer);
    tp_http_client_destroy(writer->client);
    tp_remote_destroy(writer->remote);
    tag_list_deinit(&writer->tags);
    tp_free(writer->upload);
    tp_free(writer->buffer);
    tp_free(writer);
}

static void abort_s3(tp_writer *base)
{
    s3_writer *writer = (s3_writer *)base;
    if (writer->upload) {
        tpucl_error error;
        tp_error_capture(&error);
        tp_str_builder query = {0};
        tp_retry retry;
        tp_str_builder_printf(&query, "?uploadId=%s", writer->upload);
        if (query.status == TPUCL_OK) {
            const tpucl_status ignored = send(writer, "DELETE", query.data, NULL, 0, &retry);
            (void)ignored;
        }
        tp_str_builder_deinit(&query);
        tp_error_restore(&error);
    }
    destroy(writer);
}

static tpucl_status begin_upload(s3_writer *writer)
{
    char id[1024];
    tp_retry retry;
    TP_TRY(send(writer, "POST", "?uploads=", "", 0, &retry));
    if (!tp_remote_good(&writer->answer)) return fail(writer, &retry);
    find_text(writer, "UploadId", id, sizeof id);
    if (!id[0] || strlen(id) == sizeof id - 1)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "cannot write '%s': the server gave the upload no id",
                       writer->remote->name);
    tp_str_builder encoded = {0};
    tp_remote_encode(&encoded, id, false);
    return tp_str_builder_finish(&encoded, &writer->upload, NULL);
}

static tpucl_status send_part(s3_writer *writer)
{
    if (!writer->upload) TP_TRY(begin_upload(writer));
    if (writer->tags.count == PARTS)
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' is longer than %d parts", writer->remote->name,
                       (int)PARTS);
    tp_str_builder query = {0};
    tp_retry retry;
    tp_str_builder_printf(&query, "?partNumber=%zu&uploadId=%s", writer->tags.count + 1,
                          writer->upload);
    tpucl_status status = query.status;
    if (status == TPUCL_OK)
        status = send(writer, "PUT", query.data, writer->buffer, writer->filled, &retry);
    tp_str_builder_deinit(&query);
    TP_TRY(status);
    if (!tp_remote_good(&writer->answer)) return fail(writer, &retry);
    part_tag tag;
    memcpy(tag.etag, writer->answer.etag, sizeof tag.etag);
    /* It comes back to the server in XML. */
    if (!tag.etag[0] || strpbrk(tag.etag, "<>&"))
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "cannot write '%s': the server gave a part no proper ETag",
                       writer->remote->name);
    writer->filled = 0;
    return tag_list_push(&writer->tags, tag);
}

static tpucl_status write_s3(tp_writer *base, const void *bytes, size_t length)
{
    s3_writer *writer = (s3_writer *)base;
    const char *from = bytes;
    while (length) {
        if (writer->filled == writer->options.part_bytes) TP_TRY(send_part(writer));
        const size_t room = writer->options.part_bytes - writer->filled;
        const size_t now = length < room ? length : room;
        memcpy(writer->buffer + writer->filled, from, now);
        writer->filled += now;
        from += now;
        length -= now;
    }
    return TPUCL_OK;
}

/* The completing answer may be lost after the work was done: a second try then finds no upload any more. */
static tpucl_status check_completed(s3_writer *writer, const tp_retry *retry, bool *out_done)
{
    char code[64], suffix[32];
    tp_store_info info;
    find_text(writer, "Code", code, sizeof code);
    *out_done = false;
    if (retry->tries < 2 || !tp_str_equal(code, "NoSuchUpload")) return TPUCL_OK;
    TP_TRY(tp_remote_stat(writer->remote, &writer->options, &info));
    (void)snprintf(suffix, sizeof suffix, "-%zu\"", writer->tags.count);
    *out_done =
        info.exists && info.bytes == writer->base.offset && tp_str_ends_with(info.etag, suffix);
    return TPUCL_OK;
}

static tpucl_status complete(s3_writer *writer)
{
    tp_str_builder query = {0}, body = {0};
    tp_retry retry;
    bool done = false;
    if (writer->filled) TP_TRY(send_part(writer));
    tp_str_builder_printf(&query, "?uploadId=%s", writer->upload);
    tp_str_append(&body, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < writer->tags.count; i++)
        tp_str_builder_printf(&body, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag></Part>",
                              i + 1, writer->tags.items[i].etag);
    tp_str_append(&body, "</CompleteMultipartUpload>");
    tpucl_status status = query.status ? query.status : body.status;
    if (status == TPUCL_OK)
        status = send(writer, "POST", query.data, body.data, body.length, &retry);
    tp_str_builder_deinit(&query);
    tp_str_builder_deinit(&body);
    TP_TRY(status);
    /* "200" may come before the work is done, and the failure in the document. */
    char code[64];
    find_text(writer, "Code", code, sizeof code);
    if (tp_remote_good(&writer->answer) && !code[0]) return TPUCL_OK;
    TP_TRY(check_completed(writer, &retry, &done));
    return done ? TPUCL_OK : fail(writer, &retry);
}

static tpucl_status commit_s3(tp_writer *base)
{
    s3_writer *writer = (s3_writer *)base;
    tpucl_status status;
    if (writer->upload) {
        status = complete(writer);
    } else {
        tp_retry retry;
        status = send(writer, "PUT", "", writer->buffer, writer->filled, &retry);
        if (status == TPUCL_OK && !tp_remote_good(&writer->answer)) status = fail(writer, &retry);
    }
    if (status == TPUCL_OK)
        destroy(writer);
    else
        abort_s3(base);
    return status;
}

tpucl_status tp_s3_open_writer(tp_remote *adopted, const tp_store_options *options,
                               tp_writer **out_writer)
{
    static const tp_writer_ops ops = {write_s3, commit_s3, abort_s3};
    s3_writer *writer = TP_NEW(s3_writer);
    if (!writer) {
        tp_remote_destroy(adopted);
        return TPUCL_OUT_OF_MEMORY;
    }
    writer->base = (tp_writer){.ops = &ops, .name = adopted->name};
    writer->remote = adopted;
    writer->options = *options;
    writer->buffer = tp_alloc(options->part_bytes);
    tpucl_status status =
        writer->buffer ? tp_http_client_create(&writer->client) : TPUCL_OUT_OF_MEMORY;
    if (status != TPUCL_OK) {
        destroy(writer);
        return status;
    }
    *out_writer = &writer->base;
    return TPUCL_OK;
}
