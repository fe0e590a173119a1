/* SPDX-License-Identifier: Apache-2.0
 * Requests that are repeated, and what is said when they fail. */
#include "io/remote.h"
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "io/xml.h"

static const uint64_t second_ns = 1000000000u, longest_pause_ns = 32000000000u;

static void wipe(char *secret)
{
    if (secret) explicit_bzero(secret, strlen(secret));
    tp_free(secret);
}

void tp_remote_destroy(tp_remote *remote)
{
    if (!remote) return;
    tp_free(remote->name);
    tp_free(remote->url);
    tp_free(remote->id);
    tp_free(remote->region);
    wipe(remote->secret);
    wipe(remote->token);
    wipe(remote->bearer);
    tp_free(remote);
}

void tp_remote_encode(tp_str_builder *out, const char *text, bool slash)
{
    for (; *text; text++) {
        const char c = *text;
        const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                           (c >= '0' && c <= '9') || strchr("-._~", c) || (slash && c == '/');
        if (plain)
            tp_str_append_char(out, c);
        else
            tp_str_builder_printf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
}

/* ---- tries ---- */

tp_retry tp_retry_begin(const tp_store_options *options)
{
    const uint64_t now = tp_clock_now_ns();
    return (tp_retry){.begin_ns = now,
                      .budget_ns = options->retry_ns,
                      .pause_ns = options->first_pause_ns,
                      .random = now ^ (uint64_t)(uintptr_t)options};
}

/* splitmix64 (Steele, Lea, Flood 2014): pauses of many readers must not coincide. */
static uint64_t draw(uint64_t *inout_state)
{
    uint64_t z = *inout_state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void find_code(const tp_http_answer *answer, const char *name, char *out, size_t bytes)
{
    tp_xml_find((tp_view){answer->text.data, answer->text.length}, name, out, bytes);
}

static bool worth_another(const tp_http_answer *answer)
{
    if (answer->problem[0]) return answer->passing;
    switch (answer->code) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        return true;
    default:
        break;
    }
    char code[64];
    find_code(answer, "Code", code, sizeof code);
    return tp_str_equal(code, "RequestTimeout") || tp_str_equal(code, "SlowDown") ||
           tp_str_equal(code, "InternalError");
}

bool tp_retry_again(tp_retry *retry, const tp_http_answer *answer)
{
    retry->tries++;
    if (!worth_another(answer)) return false;
    uint64_t pause = draw(&retry->random) % (retry->pause_ns + 1);
    if (answer->retry_after_s > 0) pause += (uint64_t)answer->retry_after_s * second_ns;
    const uint64_t spent = tp_clock_now_ns() - retry->begin_ns;
    if (spent + pause > retry->budget_ns) return false;
    tp_clock_sleep_ns(pause);
    if (retry->pause_ns < longest_pause_ns) retry->pause_ns *= 2;
    return true;
}

tpucl_status tp_remote_try(const tp_remote *remote, tp_http_client *client, tp_http_request request,
                           const char *query, tp_http_answer *answer)
{
    const tp_http_keys keys = {remote->id, remote->secret, remote->token, remote->region};
    tp_str_builder url = {0};
    tp_str_builder_printf(&url, "%s%s", remote->url, query);
    tpucl_status status = url.status;
    if (status == TPUCL_OK) {
        request.url = url.data;
        request.follow = remote->follow;
        request.bearer = remote->bearer;
        request.keys = remote->id && !remote->bearer ? &keys : NULL;
        status = tp_http_perform(client, &request, answer);
    }
    tp_str_builder_deinit(&url);
    return status;
}

tpucl_status tp_remote_send(const tp_remote *remote, tp_http_client *client,
                            const tp_store_options *options, tp_http_request request,
                            const char *query, tp_http_answer *answer, tp_retry *out_retry)
{
    *out_retry = tp_retry_begin(options);
    do {
        TP_TRY(tp_remote_try(remote, client, request, query, answer));
    } while (tp_retry_again(out_retry, answer));
    return TPUCL_OK;
}

/* ---- failures ---- */

static const char *advice(const tp_remote *remote, const tp_http_answer *answer, const char *code)
{
    if (tp_str_equal(code, "RequestTimeTooSkewed"))
        return "; this machine's clock is wrong, set it (the server refuses signatures that are 15 "
               "minutes off)";
    if (tp_str_equal(code, "SignatureDoesNotMatch"))
        return "; the secret does not belong to the key";
    if (tp_str_equal(code, "InvalidAccessKeyId"))
        return "; the server does not know the access key";
    if (tp_str_equal(code, "ExpiredToken"))
        return "; the session token has expired, fetch a new one";
    if (tp_str_equal(code, "NoSuchBucket")) return "; check the bucket's name and the endpoint";
    if (answer->code == 412) return "; it was replaced while it was read, begin anew";
    if (answer->code == 301 || answer->code == 307)
        return "; the bucket is in another region, set AWS_REGION";
    if (answer->code != 401 && answer->code != 403) return "";
    return remote->id || remote->bearer ? "; the credentials do not allow this"
                                        : "; no credentials were found, set AWS_ACCESS_KEY_ID and "
                                          "AWS_SECRET_ACCESS_KEY (s3://) or "
                                          "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY (gs://)";
}

tpucl_status tp_remote_fail(const tp_remote *remote, const char *action,
                            const tp_http_answer *answer, const tp_retry *retry)
{
    char code[64], text[256], tries[96] = "";
    find_code(answer, "Code", code, sizeof code);
    find_code(answer, "Message", text, sizeof text);
    const double seconds = (double)(tp_clock_now_ns() - retry->begin_ns) * 1e-9;
    if (retry->tries > 1)
        (void)snprintf(tries, sizeof tries,
                       " (%d tries in %.1f s; TPUCL_STORE_RETRY allows longer)", (int)retry->tries,
                       seconds);
    if (answer->problem[0])
        return TP_FAIL_CODE(TPUCL_IO_ERROR, answer->code, "cannot %s '%s': %s%s", action,
                            remote->name, answer->problem, tries);
    const tpucl_status status = answer->code == 404   ? TPUCL_NOT_FOUND
                                : answer->code == 412 ? TPUCL_CORRUPT_DATA
                                                      : TPUCL_IO_ERROR;
    return TP_FAIL_CODE(status, answer->code, "cannot %s '%s': the server answers %d %s%s%s%s%s",
                        action, remote->name, (int)answer->code, code, text[0] ? ": " : "", text,
                        advice(remote, answer, code), tries);
}
