/* SPDX-License-Identifier: Apache-2.0
 * Buckets of S3 and of what speaks like it; gs:// is Google's XML interface with HMAC keys or a bearer token.
 * Addresses are always endpoint/bucket/key: certificates fit whatever the bucket is called. */
#include <string.h>
#include "core/alloc.h"
#include "core/array.h"
#include "io/store_internal.h"
#include "io/xml.h"

TP_ARRAY_DEFINE(entry_list, tp_store_entry)

/* Bucket names: letters, digits, '.', '-', '_', 3 to 63 of them. */
static tpucl_status check_bucket(const char *url, tp_view bucket)
{
    bool good = bucket.length >= 3 && bucket.length <= 63;
    for (size_t i = 0; good && i < bucket.length; i++) {
        const char c = bucket.data[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               strchr(".-_", c);
    }
    if (good) return TPUCL_OK;
    return TP_FAIL(
        TPUCL_INVALID_ARGUMENT,
        "'%s' names no bucket: 3 to 63 letters, digits, '.', '-' and '_' are expected behind "
        "the scheme",
        url);
}

/* The address of the object, or of its bucket. */
tpucl_status tp_s3_open_target(const char *url, bool whole_bucket, tp_remote **out_remote)
{
    const char *scheme = tp_str_starts_with(url, "gs://") ? "gs://" : "s3://";
    const char *rest = url + strlen(scheme);
    const tp_view bucket = {rest, strcspn(rest, "/")};
    const char *key = rest + bucket.length + (rest[bucket.length] == '/');
    TP_TRY(check_bucket(url, bucket));
    if (!whole_bucket && (!*key || strlen(key) > 1024))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' needs a key of 1 to 1024 bytes", url);
    tp_remote *remote = TP_NEW(tp_remote);
    if (!remote) return TPUCL_OUT_OF_MEMORY;
    char *endpoint = NULL;
    tp_str_builder address = {0};
    tpucl_status status;
    remote->name = tp_alloc_strdup(url);
    TP_TRY_GOTO(status, remote->name ? TPUCL_OK : TPUCL_OUT_OF_MEMORY, done);
    TP_TRY_GOTO(status, tp_store_credentials(scheme, remote, &endpoint), done);
    tp_str_builder_printf(&address, "%s/%.*s", endpoint, TP_VIEW_ARGS(bucket));
    if (!whole_bucket) {
        tp_str_append_char(&address, '/');
        tp_remote_encode(&address, key, true);
    }
    status = tp_str_builder_finish(&address, &remote->url, NULL);
done:
    tp_str_builder_deinit(&address);
    tp_free(endpoint);
    if (status == TPUCL_OK)
        *out_remote = remote;
    else
        tp_remote_destroy(remote);
    return status;
}

static tpucl_status stat_s3(const char *url, const tp_store_options *options,
                            tp_store_info *out_info)
{
    tp_remote *remote;
    TP_TRY(tp_s3_open_target(url, false, &remote));
    const tpucl_status status = tp_remote_stat(remote, options, out_info);
    tp_remote_destroy(remote);
    return status;
}

static tpucl_status open_reader(const char *url, uint64_t offset, const tp_store_options *options,
                                tp_reader **out_reader)
{
    tp_remote *remote;
    TP_TRY(tp_s3_open_target(url, false, &remote));
    return tp_remote_open_reader(remote, offset, options, out_reader);
}

static tpucl_status open_writer(const char *url, const tp_store_options *options,
                                tp_writer **out_writer)
{
    tp_remote *remote;
    TP_TRY(tp_s3_open_target(url, false, &remote));
    return tp_s3_open_writer(remote, options, out_writer);
}

static tpucl_status remove_s3(const char *url, const tp_store_options *options)
{
    tp_remote *remote;
    tp_http_client *client = NULL;
    tp_http_answer answer = {0};
    tp_retry retry;
    TP_TRY(tp_s3_open_target(url, false, &remote));
    tpucl_status status = tp_http_client_create(&client);
    if (status == TPUCL_OK)
        status = tp_remote_send(remote, client, options, (tp_http_request){.method = "DELETE"}, "",
                                &answer, &retry);
    if (status == TPUCL_OK && !tp_remote_good(&answer) && (answer.code != 404 || answer.problem[0]))
        status = tp_remote_fail(remote, "remove", &answer, &retry);
    tp_http_answer_deinit(&answer);
    tp_http_client_destroy(client);
    tp_remote_destroy(remote);
    return status;
}

/* ---- lists ---- */

/* A list that goes on for ever must not fill the memory. */
enum { MOST_OBJECTS = 1 << 20 };

typedef struct object_page {
    const char *prefix; /* of all keys, borrowed */
    entry_list list;
    tp_str_builder key, token;
    uint64_t bytes;
    bool more;
} object_page;

static tpucl_status end_entry(object_page *page, tp_arena *arena, const char *root)
{
    tp_store_entry entry = {.bytes = page->bytes};
    if (!page->key.length || strlen(page->key.data) != page->key.length)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "the server lists an object without a proper key");
    if (!tp_str_starts_with(page->key.data, page->prefix))
        return TP_FAIL(TPUCL_CORRUPT_DATA, "the server lists objects that were not asked for");
    if (page->list.count == MOST_OBJECTS)
        return TP_FAIL(TPUCL_UNSUPPORTED, "there are more than %d objects below '%s%s'",
                       (int)MOST_OBJECTS, root, page->prefix);
    entry.url = tp_arena_printf(arena, "%s%s", root, page->key.data);
    if (!entry.url) return TPUCL_OUT_OF_MEMORY;
    return entry_list_push(&page->list, entry);
}

static tpucl_status take_text(object_page *page, tp_view in, bool in_contents, tp_view text)
{
    if (in_contents && tp_view_equal_text(in, "Key")) return tp_xml_append_text(&page->key, text);
    if (in_contents && tp_view_equal_text(in, "Size"))
        return tp_str_parse_uint64(tp_view_trim(text), &page->bytes);
    if (tp_view_equal_text(in, "NextContinuationToken"))
        return tp_xml_append_text(&page->token, text);
    if (tp_view_equal_text(in, "IsTruncated"))
        page->more = tp_view_equal_text(tp_view_trim(text), "true");
    return TPUCL_OK;
}

static tpucl_status read_page(object_page *page, tp_view document, tp_arena *arena,
                              const char *root)
{
    tp_xml xml = {.rest = document};
    tp_view in = {0};
    bool in_contents = false;
    page->more = false;
    tp_str_builder_deinit(&page->token);
    for (;;) {
        TP_TRY(tp_xml_next(&xml));
        if (xml.kind == TP_XML_END) return TPUCL_OK;
        const bool contents = tp_view_equal_text(xml.value, "Contents");
        if (xml.kind == TP_XML_OPEN) {
            in = xml.value;
            if (contents) {
                in_contents = true;
                page->bytes = 0;
                tp_str_builder_deinit(&page->key);
            }
        } else if (xml.kind == TP_XML_CLOSE) {
            if (contents && in_contents) TP_TRY(end_entry(page, arena, root));
            if (contents) in_contents = false;
            in = (tp_view){0};
        } else {
            TP_TRY(take_text(page, in, in_contents, xml.value));
        }
    }
}

static tpucl_status list_pages(const tp_remote *remote, const char *key,
                               const tp_store_options *options, tp_arena *arena, const char *root,
                               tp_http_client *client, tp_http_answer *answer, object_page *page)
{
    do {
        tp_str_builder query = {0};
        tp_retry retry;
        const size_t before = page->list.count;
        tp_str_append_char(&query, '?');
        if (page->more) {
            tp_str_append(&query, "continuation-token=");
            tp_remote_encode(&query, page->token.data, false);
            tp_str_append_char(&query, '&');
        }
        tp_str_builder_printf(&query, "list-type=2&max-keys=%d&prefix=", (int)options->page_count);
        tp_remote_encode(&query, key, false);
        tpucl_status status = query.status;
        if (status == TPUCL_OK)
            status = tp_remote_send(remote, client, options, (tp_http_request){.method = "GET"},
                                    query.data, answer, &retry);
        tp_str_builder_deinit(&query);
        TP_TRY(status);
        if (!tp_remote_good(answer)) return tp_remote_fail(remote, "list", answer, &retry);
        TP_TRY(read_page(page, (tp_view){answer->text.data, answer->text.length}, arena, root));
        if (page->more && (!page->token.length || page->list.count == before))
            return TP_FAIL(TPUCL_CORRUPT_DATA,
                           "the list of '%s' does not end: the server has more, "
                           "but does not say where",
                           remote->name);
    } while (page->more);
    return TPUCL_OK;
}

static tpucl_status list_s3(const char *prefix, const tp_store_options *options, tp_arena *arena,
                            const tp_store_entry **out_entries, size_t *out_count)
{
    tp_remote *remote;
    tp_http_client *client = NULL;
    tp_http_answer answer = {0};
    object_page page = {0};
    const char *bucket = strstr(prefix, "://") + 3;
    const char *slash = strchr(bucket, '/');
    const char *key = slash ? slash + 1 : "";
    page.prefix = key;
    TP_TRY(tp_s3_open_target(prefix, true, &remote));
    char *root = slash ? tp_arena_strndup(arena, prefix, (size_t)(key - prefix))
                       : tp_arena_printf(arena, "%s/", prefix);
    tpucl_status status = root ? tp_http_client_create(&client) : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK)
        status = list_pages(remote, key, options, arena, root, client, &answer, &page);
    *out_count = page.list.count;
    tp_store_entry *entries = TP_ARENA_NEW_ARRAY(arena, tp_store_entry, page.list.count + 1);
    if (entries && page.list.count)
        memcpy(entries, page.list.items, page.list.count * sizeof *entries);
    if (entries)
        tp_store_sort(entries, page.list.count);
    else if (status == TPUCL_OK)
        status = TPUCL_OUT_OF_MEMORY;
    *out_entries = entries;
    entry_list_deinit(&page.list);
    tp_str_builder_deinit(&page.key);
    tp_str_builder_deinit(&page.token);
    tp_http_answer_deinit(&answer);
    tp_http_client_destroy(client);
    tp_remote_destroy(remote);
    return status;
}

const tp_store_ops tp_store_s3 = {"s3://", stat_s3,   open_reader,        open_writer,
                                  list_s3, remove_s3, tp_s3_abort_uploads};
const tp_store_ops tp_store_gs = {"gs://", stat_s3,   open_reader,        open_writer,
                                  list_s3, remove_s3, tp_s3_abort_uploads};
