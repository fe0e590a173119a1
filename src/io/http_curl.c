/* SPDX-License-Identifier: Apache-2.0
 * HTTP through libcurl. What its signing needs to be right from 7.86 on (before 8.9 it neither encodes paths nor
 * sorts queries nor adds the hash of the payload) is done by the caller, and by the header x-amz-content-sha256
 * here. Headers without a value are signed wrongly by 7.88, so none is ever sent with a signature: curl's
 * "Expect: 100-continue" stays, with a short wait. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "core/alloc.h"
#include "core/hash.h"
#include "core/thread.h"
#include "io/http.h"

enum { CONNECT_MS = 10000, STALL_S = 30, EXPECT_MS = 200, REDIRECTS = 5 };

struct tp_http_client {
    CURL *easy;
    char problem[CURL_ERROR_SIZE];
};

static tp_once global_once = TP_ONCE_INIT;

static void init_global(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

void tp_http_answer_deinit(tp_http_answer *answer)
{
    tp_str_builder_deinit(&answer->text);
}

tpucl_status tp_http_client_create(tp_http_client **out_client)
{
    tp_once_run(&global_once, init_global);
    tp_http_client *client = TP_NEW(tp_http_client);
    if (!client) return TPUCL_OUT_OF_MEMORY;
    client->easy = curl_easy_init();
    if (!client->easy) {
        tp_free(client);
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "libcurl has no memory for a connection");
    }
    *out_client = client;
    return TPUCL_OK;
}

void tp_http_client_destroy(tp_http_client *client)
{
    if (!client) return;
    curl_easy_cleanup(client->easy);
    tp_free(client);
}

/* ---- the answer ---- */

typedef struct transfer {
    CURL *easy;
    const tp_http_request *request;
    tp_http_answer *answer;
    bool too_long;
} transfer;

static bool header_is(tp_view line, const char *name, tp_view *out_value)
{
    const size_t length = strlen(name);
    if (line.length <= length || line.data[length] != ':') return false;
    if (strncasecmp(line.data, name, length) != 0) return false;
    *out_value = tp_view_trim((tp_view){line.data + length + 1, line.length - length - 1});
    return true;
}

static void keep(char *out, size_t bytes, tp_view value)
{
    if (value.length < bytes) {
        memcpy(out, value.data, value.length);
        out[value.length] = 0;
    }
}

/* "bytes 0-99/1234" */
static void read_range(tp_http_answer *answer, tp_view value)
{
    tp_view unit, first, last;
    if (!tp_view_next(&value, ' ', &unit) || !tp_view_next(&value, '-', &first) ||
        !tp_view_next(&value, '/', &last))
        return;
    answer->has_total = tp_str_parse_uint64(first, &answer->range_first) == TPUCL_OK &&
                        tp_str_parse_uint64(value, &answer->total) == TPUCL_OK;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *user)
{
    tp_http_answer *answer = ((transfer *)user)->answer;
    const tp_view line = {bytes, size * count};
    tp_view value;
    uint64_t number;
    if (line.length >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        /* Another answer begins, after a redirection or "100 Continue". */
        answer->etag[0] = answer->region[0] = 0;
        answer->has_length = answer->has_total = false;
        answer->retry_after_s = -1;
    } else if (header_is(line, "etag", &value)) {
        keep(answer->etag, sizeof answer->etag, value);
    } else if (header_is(line, "x-amz-bucket-region", &value)) {
        keep(answer->region, sizeof answer->region, value);
    } else if (header_is(line, "content-length", &value)) {
        answer->has_length = tp_str_parse_uint64(value, &answer->length) == TPUCL_OK;
    } else if (header_is(line, "content-range", &value)) {
        read_range(answer, value);
    } else if (header_is(line, "retry-after", &value)) {
        /* The other form, a date, is rare from stores and left out. */
        if (tp_str_parse_uint64(value, &number) == TPUCL_OK && number < 86400)
            answer->retry_after_s = (int64_t)number;
    }
    return size * count;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *user)
{
    transfer *t = user;
    const size_t length = size * count;
    long code = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &code);
    if (t->request->into && code >= 200 && code < 300) {
        if (length > t->request->into_bytes - t->answer->got) {
            t->too_long = true;
            return 0;
        }
        memcpy((char *)t->request->into + t->answer->got, bytes, length);
        t->answer->got += length;
        return length;
    }
    if (length > TP_HTTP_TEXT_BYTES - t->answer->text.length) {
        t->too_long = true;
        return 0;
    }
    tp_str_append_bytes(&t->answer->text, bytes, length);
    return t->answer->text.status == TPUCL_OK ? length : 0;
}

/* ---- the request ---- */

static bool add_header(struct curl_slist **inout_list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*inout_list, line);
    if (longer) *inout_list = longer;
    return longer != NULL;
}

static bool add_secret_header(struct curl_slist **inout_list, const char *name, const char *value)
{
    tp_str_builder line = {0};
    tp_str_builder_printf(&line, "%s: %s", name, value);
    const bool good = line.status == TPUCL_OK && add_header(inout_list, line.data);
    tp_str_builder_deinit(&line);
    return good;
}

static bool make_headers(const tp_http_request *request, struct curl_slist **out_list)
{
    bool good = true;
    for (int32_t i = 0; i < TP_HTTP_HEADERS && request->headers[i]; i++)
        good = good && add_header(out_list, request->headers[i]);
    if (request->body)
        good = good && add_header(out_list, "Content-Type: application/octet-stream");
    if (request->bearer) {
        tp_str_builder value = {0};
        tp_str_builder_printf(&value, "Bearer %s", request->bearer);
        good = good && value.status == TPUCL_OK &&
               add_secret_header(out_list, "Authorization", value.data);
        tp_str_builder_deinit(&value);
    }
    if (!request->keys) return good;
    char hash[TP_SHA256_HEX_BYTES];
    tp_sha256_hex(request->body ? request->body : "", request->body_bytes, hash);
    good = good && add_secret_header(out_list, "x-amz-content-sha256", hash);
    if (request->keys->token)
        good = good && add_secret_header(out_list, "x-amz-security-token", request->keys->token);
    return good;
}

static bool may_pass(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_SEND_FAIL_REWIND:
        return true;
    default:
        return false;
    }
}

static void sign(CURL *easy, const tp_http_keys *keys)
{
    char provider[128];
    (void)snprintf(provider, sizeof provider, "aws:amz:%s:s3", keys->region);
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, provider);
    curl_easy_setopt(easy, CURLOPT_USERNAME, keys->id);
    curl_easy_setopt(easy, CURLOPT_PASSWORD, keys->secret);
}

static void set_up(tp_http_client *client, const tp_http_request *request, transfer *t,
                   struct curl_slist *headers)
{
    CURL *easy = client->easy;
    curl_easy_reset(easy);
    client->problem[0] = 0;
    const bool https = tp_str_starts_with(request->url, "https:");
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->problem);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request->follow ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L); /* keys may hold "/../" */
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    curl_easy_setopt(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, (long)EXPECT_MS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "tpucl");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    if (tp_str_equal(request->method, "HEAD")) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (request->body) {
        /* Fields are kept by the caller, so that curl can send them again on a fresh connection. */
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    } else if (!tp_str_equal(request->method, "GET")) {
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    }
    if (request->keys) sign(easy, request->keys);
}

tpucl_status tp_http_perform(tp_http_client *client, const tp_http_request *request,
                             tp_http_answer *answer)
{
    tp_http_answer_deinit(answer);
    *answer = (tp_http_answer){.retry_after_s = -1};
    struct curl_slist *headers = NULL;
    if (!make_headers(request, &headers)) {
        curl_slist_free_all(headers);
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for a request's headers");
    }
    transfer t = {client->easy, request, answer, false};
    set_up(client, request, &t, headers);
    const CURLcode result = curl_easy_perform(client->easy);
    long code = 0;
    curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &code);
    answer->code = (int32_t)code;
    if (result != CURLE_OK) {
        answer->passing = may_pass(result);
        const char *why = t.too_long           ? "the answer is longer than what was asked for"
                          : client->problem[0] ? client->problem
                                               : curl_easy_strerror(result);
        (void)snprintf(answer->problem, sizeof answer->problem, "%s", why);
    }
    /* The handle keeps no pointer into the caller's memory, and no secret. */
    curl_easy_reset(client->easy);
    curl_slist_free_all(headers);
    return answer->text.status;
}
