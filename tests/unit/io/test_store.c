/* SPDX-License-Identifier: Apache-2.0
 * Local files as a store, addresses that are refused, and the XML of buckets. tests/store has the buckets. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
