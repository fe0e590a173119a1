/* SPDX-License-Identifier: Apache-2.0
 * Web servers and buckets on bad days (tests/servers/odd_server): reading over http, signing and tokens for Google,
 * budgets and Retry-After, answers that are hostile. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "io/http.h"
#include "io/store.h"

enum { BODY_BYTES = 3000000 };

static const tp_store_options quick = {
    .block_bytes = 1 << 20, .first_pause_ns = 1000000, .retry_ns = 20000000000};

static void setup(void)
{
    setenv("AWS_ENDPOINT_URL_S3", getenv("ODD_SERVER"), 1);
    setenv("AWS_ACCESS_KEY_ID", "aws-id", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "aws-secret", 1);
    setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
    unsetenv("GOOGLE_OAUTH_ACCESS_TOKEN");
}

TestSuite(odd, .init = setup);

static void must(tpucl_status status)
{
    cr_assert(status == TPUCL_OK, "%s", tpucl_last_error()->message);
}

static void expect_words(const char *a, const char *b)
{
    const char *message = tpucl_last_error()->message;
    cr_assert(strstr(message, a) && strstr(message, b), "%s", message);
    cr_assert(!strstr(message, "aws-secret") && !strstr(message, "gs/secret+"), "%s", message);
}

/* Borrowed until the next call. */
static const char *web(const char *path)
{
    static char url[256];
    (void)snprintf(url, sizeof url, "%s%s", getenv("ODD_SERVER"), path);
    return url;
}

static tpucl_status read_web(const char *path, uint64_t offset, unsigned char *out, size_t *out_got)
{
    tp_reader *reader = NULL;
    TP_TRY(tp_store_open_reader(web(path), offset, &quick, &reader));
    const tpucl_status status = tp_reader_read(reader, out, BODY_BYTES, out_got);
    tp_reader_close(reader);
    return status;
}

static tpucl_status stat_of(const char *url, const tp_store_options *options)
{
    tp_store_info info;
    return tp_store_stat(url, options, &info);
}

static tpucl_status list_of(const char *prefix)
{
    tp_arena *arena;
    const tp_store_entry *entries;
    size_t count;
    must(tp_arena_create(0, &arena));
    const tpucl_status status = tp_store_list(prefix, &quick, arena, &entries, &count);
    tp_arena_destroy(arena);
    return status;
}

/* ---- http ---- */

static void expect_body(const unsigned char *back, size_t got, size_t offset)
{
    cr_assert(got == BODY_BYTES - offset, "%zu", got);
    for (size_t i = offset; i < BODY_BYTES; i++)
        cr_assert(back[i - offset] == (i * 7 + i / 251) % 256, "byte %zu", i);
}

Test(odd, web_servers_are_read_in_ranges)
{
    unsigned char *back = malloc(BODY_BYTES);
    size_t got = 0;
    must(read_web("/file/a?token=sesame", 0, back, &got));
    expect_body(back, got, 0);
    must(read_web("/moved/a", 1234567, back, &got));
    expect_body(back, got, 1234567);
    must(read_web("/small/a", 0, back, &got));
    cr_assert(got == 5 && memcmp(back, "small", 5) == 0);
    must(read_web("/empty/a", 0, back, &got));
    cr_assert(got == 0);
    free(back);
}

Test(odd, web_servers_that_cannot_be_read_say_why)
{
    unsigned char *back = malloc(BODY_BYTES);
    size_t got;
    cr_assert(read_web("/none/a?token=sesame", 0, back, &got) == TPUCL_NOT_FOUND);
    expect_words("/none/a", "does not exist");
    cr_assert(!strstr(tpucl_last_error()->message, "sesame"));
    cr_assert(read_web("/whole/a", 0, back, &got) == TPUCL_UNSUPPORTED);
    expect_words("/whole/a", "does not send parts of it");
    cr_assert(read_web("/unsized/a", 0, back, &got) == TPUCL_UNSUPPORTED);
    expect_words("/unsized/a", "does not say how long");
    cr_assert(read_web("/replaced/a", 0, back, &got) == TPUCL_CORRUPT_DATA);
    expect_words("/replaced/a", "was replaced while it was read");
    cr_assert(read_web("/shifted/a", 0, back, &got) == TPUCL_CORRUPT_DATA);
    expect_words("/shifted/a", "other bytes than those that were asked for");
    cr_assert(read_web("/circle/a", 0, back, &got) == TPUCL_IO_ERROR);
    expect_words("/circle/a", "redirect");
    cr_assert(read_web("/file/a", BODY_BYTES + 1, back, &got) == TPUCL_INVALID_ARGUMENT);
    free(back);
}

Test(odd, certificates_that_nobody_signed_are_refused_at_once)
{
    char url[128];
    (void)snprintf(url, sizeof url, "%s/file/a", getenv("ODD_SERVER_TLS"));
    const uint64_t begin = tp_clock_now_ns();
    cr_assert(stat_of(url, &quick) == TPUCL_IO_ERROR);
    expect_words("/file/a", "certificate");
    cr_assert(tp_clock_now_ns() - begin < 15000000000u, "it was tried again");
}

/* ---- Google ---- */

static tpucl_status put_signed(void)
{
    tp_writer *writer;
    must(tp_store_open_writer("gs://signed/a b/\xC3\xA9=+", &quick, &writer));
    must(tp_writer_write(writer, "contents", 8));
    return tp_writer_commit(writer);
}

Test(odd, hmac_keys_sign_for_google)
{
    setenv("GS_ENDPOINT", getenv("ODD_SERVER"), 1);
    setenv("GS_ACCESS_KEY_ID", "gs-id", 1);
    setenv("GS_SECRET_ACCESS_KEY", "gs/secret+", 1);
    must(put_signed());
    must(stat_of("gs://signed/b", &quick));
    must(tp_store_remove("gs://signed/b", &quick));
    setenv("GS_SECRET_ACCESS_KEY", "gs/secret-", 1);
    cr_assert(put_signed() == TPUCL_IO_ERROR);
    expect_words("SignatureDoesNotMatch", "gs://signed/a b/");
}

Test(odd, a_token_goes_into_the_header_and_nothing_is_signed)
{
    tp_http_client *client;
    tp_http_answer answer = {0};
    tp_http_request request = {.method = "PUT", .body = "x", .body_bytes = 1, .bearer = "to.ken"};
    char url[256];
    must(tp_http_client_create(&client));
    (void)snprintf(url, sizeof url, "%s", web("/keep/token"));
    request.url = url;
    must(tp_http_perform(client, &request, &answer));
    must(
        tp_http_perform(client, &(tp_http_request){.method = "GET", .url = web("/last")}, &answer));
    cr_assert(answer.code == 200 && strstr(answer.text.data, "Authorization: Bearer to.ken"), "%s",
              answer.text.data);
    cr_assert(!strstr(answer.text.data, "x-amz"), "%s", answer.text.data);
    tp_http_answer_deinit(&answer);
    tp_http_client_destroy(client);
}

/* ---- tries ---- */

Test(odd, what_retry_after_says_is_waited_for)
{
    const uint64_t begin = tp_clock_now_ns();
    must(stat_of("s3://wait-a-second/a", &quick));
    cr_assert(tp_clock_now_ns() - begin >= 1000000000u);
    must(tp_store_remove("s3://timeout/a", &quick)); /* 400, but RequestTimeout */
}

Test(odd, a_budget_that_is_spent_says_so)
{
    tp_store_options brief = quick;
    brief.retry_ns = 300000000;
    uint64_t begin = tp_clock_now_ns();
    cr_assert(list_of("s3://none-of-this/") == TPUCL_NOT_FOUND); /* not tried again */
    cr_assert(tp_store_remove("s3://never/a", &brief) == TPUCL_IO_ERROR);
    expect_words("'s3://never/a': the server answers 503 SlowDown: reduce your request rate",
                 "tries in");
    expect_words("TPUCL_STORE_RETRY", "s3://never/a");
    begin = tp_clock_now_ns();
    cr_assert(tp_store_remove("s3://wait-an-hour/a", &quick) == TPUCL_IO_ERROR);
    cr_assert(tp_clock_now_ns() - begin < 5000000000u, "an hour does not fit into the budget");
    setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1", 1);
    cr_assert(stat_of("s3://nobody/a", &brief) == TPUCL_IO_ERROR);
    expect_words("s3://nobody/a", "TPUCL_STORE_RETRY");
}

Test(odd, a_wrong_clock_is_named_and_not_tried_again)
{
    const uint64_t begin = tp_clock_now_ns();
    cr_assert(tp_store_remove("s3://skewed/a", &quick) == TPUCL_IO_ERROR);
    expect_words("RequestTimeTooSkewed", "this machine's clock is wrong");
    cr_assert(tp_clock_now_ns() - begin < 5000000000u);
}

/* ---- lists ---- */

Test(odd, hostile_lists_are_refused)
{
    cr_assert(list_of("s3://list-cut/p/") == TPUCL_CORRUPT_DATA);
    expect_words("XML is broken", "");
    cr_assert(list_of("s3://list-huge/p/") == TPUCL_IO_ERROR);
    expect_words("s3://list-huge/p/", "longer than what was asked for");
    cr_assert(list_of("s3://list-same/p/") == TPUCL_CORRUPT_DATA);
    expect_words("s3://list-same/p/", "does not end");
    cr_assert(list_of("s3://list-endless/p/") == TPUCL_UNSUPPORTED);
    expect_words("more than 1048576 objects", "s3://list-endless/p/");
    cr_assert(list_of("s3://list-others/p/") == TPUCL_CORRUPT_DATA);
    expect_words("not asked for", "");
    cr_assert(list_of("s3://list-entities/p/") == TPUCL_CORRUPT_DATA);
}

Test(odd, uploads_that_never_end_are_given_up_and_those_of_others_left_alone)
{
    size_t count;
    cr_assert(tp_store_abort_uploads("s3://uploads-endless/p/", &quick, &count) ==
              TPUCL_CORRUPT_DATA);
    expect_words("does not end", "s3://uploads-endless/p/");
    cr_assert(count == 1000, "%zu", count);
}
