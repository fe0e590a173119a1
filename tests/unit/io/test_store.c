/* SPDX-License-Identifier: Apache-2.0
 * Local files as a store, addresses that are refused, and the XML of buckets. tests/store has the buckets. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "io/remote.h"
#include "io/store.h"
#include "io/xml.h"

static void must(tpucl_status status)
{
    cr_assert(status == TPUCL_OK, "%s", tpucl_last_error()->message);
}

static void put(const char *url, const char *text)
{
    tp_writer *writer;
    must(tp_store_open_writer(url, NULL, &writer));
    must(tp_writer_write(writer, text, strlen(text)));
    must(tp_writer_commit(writer));
}

Test(store, files_are_written_listed_read_and_removed)
{
    char folder[] = "/tmp/tpucl-store-XXXXXX", back[8] = "";
    tp_arena *arena;
    tp_reader *reader;
    tp_store_info info;
    const tp_store_entry *entries;
    size_t count, got;
    cr_assert(mkdtemp(folder));
    must(tp_arena_create(0, &arena));
    char *deep = tp_store_join(arena, folder, "b/c/deep"),
         *flat = tp_store_join(arena, folder, "ab");
    put(deep, "deep");
    put(flat, "12345");
    must(tp_store_list(tp_store_join(arena, folder, ""), NULL, arena, &entries, &count));
    cr_assert(count == 2);
    cr_assert_str_eq(entries[0].url, flat);
    cr_assert_str_eq(entries[1].url, deep);
    cr_assert(entries[0].bytes == 5);
    must(tp_store_list(tp_store_join(arena, folder, "b/c/d"), NULL, arena, &entries, &count));
    cr_assert(count == 1);
    must(tp_store_list(tp_store_join(arena, folder, "none/a"), NULL, arena, &entries, &count));
    cr_assert(count == 0);
    must(tp_store_open_reader(flat, 3, NULL, &reader));
    must(tp_reader_read(reader, back, sizeof back, &got));
    tp_reader_close(reader);
    cr_assert(got == 2 && memcmp(back, "45", 2) == 0);
    must(tp_store_remove(flat, NULL));
    must(tp_store_stat(flat, NULL, &info));
    cr_assert(!info.exists);
    must(tp_store_stat(deep, NULL, &info));
    cr_assert(info.exists && info.bytes == 4);
    must(tp_store_remove(deep, NULL));
    tp_arena_destroy(arena);
}

Test(store, addresses_that_cannot_be_are_refused)
{
    tp_store_info info;
    tp_writer *writer;
    cr_assert(tp_store_stat("ftp://a/b", NULL, &info) == TPUCL_UNSUPPORTED);
    cr_assert(tp_store_open_writer("http://a/b", NULL, &writer) == TPUCL_UNSUPPORTED);
    cr_assert(tp_store_stat("http://user:sesame@a/b", NULL, &info) == TPUCL_INVALID_ARGUMENT);
    cr_assert(!strstr(tpucl_last_error()->message, "sesame"));
    cr_assert(tp_store_stat("s3://a/b", NULL, &info) == TPUCL_INVALID_ARGUMENT);
    cr_assert(tp_store_stat("s3://bucket", NULL, &info) == TPUCL_INVALID_ARGUMENT);
}

Test(store, half_of_a_pair_of_keys_or_a_token_over_http_is_refused)
{
    tp_store_info info;
    setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
    unsetenv("AWS_SECRET_ACCESS_KEY");
    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    cr_assert(tp_store_stat("s3://bucket/a", NULL, &info) == TPUCL_INVALID_CONFIG);
    setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "hidden", 1);
    setenv("GS_ENDPOINT", "http://127.0.0.1:1", 1);
    cr_assert(tp_store_stat("gs://bucket/a", NULL, &info) == TPUCL_INVALID_CONFIG);
    cr_assert(!strstr(tpucl_last_error()->message, "hidden"));
}

/* ---- AWS's files ---- */

static void forget_environment(void)
{
    static const char *const names[] = {
        "AWS_ACCESS_KEY_ID",  "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
        "AWS_PROFILE",        "AWS_DEFAULT_PROFILE",   "AWS_REGION",
        "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL",      "AWS_ENDPOINT_URL_S3",
        "S3_ENDPOINT",        "AWS_CONFIG_FILE",       "AWS_SHARED_CREDENTIALS_FILE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

/* Compares and frees; NULL: none. */
static void expect_credentials(const char *id, const char *secret, const char *token,
                               const char *region, const char *endpoint)
{
    tp_remote *remote = TP_NEW(tp_remote);
    char *found = NULL;
    must(tp_store_credentials("s3://", remote, &found));
    const char *wanted[] = {id, secret, token, region, endpoint},
               *got[] = {remote->id, remote->secret, remote->token, remote->region, found};
    for (int i = 0; i < 5; i++)
        cr_assert(!wanted[i] == !got[i] && (!wanted[i] || strcmp(wanted[i], got[i]) == 0),
                  "%d: '%s', expected '%s'", i, got[i] ? got[i] : "none",
                  wanted[i] ? wanted[i] : "none");
    tp_free(found);
    tp_remote_destroy(remote);
}

Test(store, keys_come_from_the_environment_then_from_the_profile)
{
    char folder[] = "/tmp/tpucl-aws-XXXXXX";
    tp_arena *arena;
    cr_assert(mkdtemp(folder));
    must(tp_arena_create(0, &arena));
    put(tp_store_join(arena, folder, ".aws/credentials"),
        "# aws_access_key_id = no\n[other]\naws_access_key_id=other-id\n"
        "aws_secret_access_key = other=secret/+ \n\n[ default ]\r\n"
        "aws_access_key_id = default-id\r\naws_secret_access_key = default-secret\r\n"
        "[temporary]\naws_access_key_id = t\naws_secret_access_key = u\n"
        "aws_session_token = v\n");
    put(tp_store_join(arena, folder, ".aws/config"),
        "[default]\nregion = eu-west-1\n[profile other]\nregion = eu-north-1\n"
        "endpoint_url = http://127.0.0.1:9/\n; region = no\n");
    forget_environment();
    setenv("HOME", folder, 1);
    expect_credentials("default-id", "default-secret", NULL, "eu-west-1",
                       "https://s3.eu-west-1.amazonaws.com");
    setenv("AWS_DEFAULT_PROFILE", "temporary", 1);
    expect_credentials("t", "u", "v", "us-east-1", "https://s3.us-east-1.amazonaws.com");
    setenv("AWS_PROFILE", "other", 1);
    expect_credentials("other-id", "other=secret/+", NULL, "eu-north-1", "http://127.0.0.1:9");
    setenv("S3_ENDPOINT", "127.0.0.1:3", 1);
    expect_credentials("other-id", "other=secret/+", NULL, "eu-north-1", "https://127.0.0.1:3");
    setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4", 1);
    expect_credentials("other-id", "other=secret/+", NULL, "eu-north-1", "http://127.0.0.1:4");
    setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:5//", 1);
    setenv("AWS_DEFAULT_REGION", "r1", 1);
    expect_credentials("other-id", "other=secret/+", NULL, "r1", "http://127.0.0.1:5");
    setenv("AWS_REGION", "r2", 1);
    setenv("AWS_ACCESS_KEY_ID", "env-id", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "env-secret", 1);
    setenv("AWS_SESSION_TOKEN", "env-token", 1);
    expect_credentials("env-id", "env-secret", "env-token", "r2", "http://127.0.0.1:5");

    /* Other files, and a profile that nobody knows. */
    forget_environment();
    setenv("AWS_SHARED_CREDENTIALS_FILE", tp_store_join(arena, folder, "none"), 1);
    expect_credentials(NULL, NULL, NULL, "eu-west-1", "https://s3.eu-west-1.amazonaws.com");
    forget_environment();
    setenv("AWS_PROFILE", "unknown", 1);
    expect_credentials(NULL, NULL, NULL, "us-east-1", "https://s3.us-east-1.amazonaws.com");
    must(tp_store_remove(tp_store_join(arena, folder, ".aws/credentials"), NULL));
    must(tp_store_remove(tp_store_join(arena, folder, ".aws/config"), NULL));
    must(tp_store_remove_folder(tp_store_join(arena, folder, ".aws")));
    must(tp_store_remove_folder(folder));
    tp_arena_destroy(arena);
}

Test(store, google_takes_a_token_before_a_key)
{
    tp_remote *remote = TP_NEW(tp_remote);
    char *endpoint = NULL;
    unsetenv("GS_ENDPOINT");
    setenv("GS_ACCESS_KEY_ID", "id", 1);
    setenv("GS_SECRET_ACCESS_KEY", "secret", 1);
    setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token", 1);
    must(tp_store_credentials("gs://", remote, &endpoint));
    cr_assert_str_eq(endpoint, "https://storage.googleapis.com");
    cr_assert_str_eq(remote->bearer, "token");
    cr_assert_str_eq(remote->region, "auto");
    cr_assert_str_eq(remote->secret, "secret");
    tp_free(endpoint);
    tp_remote_destroy(remote);
}

static void expect_text(const char *document, const char *expected)
{
    char text[32];
    tp_xml_find(tp_view_of(document), "Code", text, sizeof text);
    cr_assert_str_eq(text, expected);
}

Test(store, xml_gives_text_and_refuses_tricks)
{
    expect_text("<?xml version='1.0'?><Error xmlns=\"a>b\"><Code>a&amp;&#x42;</Code></Error>",
                "a&B");
    expect_text("<!DOCTYPE a [<!ENTITY b \"c\">]><Error><Code>x</Code></Error>", "");
    expect_text("<Error><Code>&b;</Code></Error>", "");
    expect_text("<Error><Code/></Error>", "");
    expect_text("<Error><Code>a\nb</Code>", "a b");
    expect_text("<Error><Co", "");
}
