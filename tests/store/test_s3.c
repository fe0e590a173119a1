/* SPDX-License-Identifier: Apache-2.0
 * Stores against a real S3 server, which tests/servers/with_rgw starts; the same through faults. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "io/store.h"

enum { MIB = 1 << 20 };

static const tp_store_options quick = {.block_bytes = 1 << 20,
                                       .part_bytes = 5 << 20,
                                       .first_pause_ns = 20000000,
                                       .retry_ns = 60000000000};

static unsigned char *make_bytes(size_t length, unsigned seed)
{
    unsigned char *bytes = malloc(length + 1);
    uint32_t x = seed * 2654435761u + 1;
    for (size_t i = 0; i < length; i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(x >> 24);
    }
    return bytes;
}

static void must(tpucl_status status)
{
    cr_assert(status == TPUCL_OK, "%s", tpucl_last_error()->message);
}

static void put(const char *url, const void *bytes, size_t length)
{
    tp_writer *writer;
    must(tp_store_open_writer(url, &quick, &writer));
    for (size_t at = 0; at < length; at += 777777) {
        const size_t left = length - at;
        must(tp_writer_write(writer, (const char *)bytes + at, left < 777777 ? left : 777777));
    }
    must(tp_writer_commit(writer));
}

static void expect(const char *url, uint64_t offset, const unsigned char *bytes, size_t length)
{
    tp_reader *reader;
    size_t got;
    must(tp_store_open_reader(url, offset, &quick, &reader));
    unsigned char *back = malloc(length + 2);
    must(tp_reader_read(reader, back, length - (size_t)offset + 1, &got));
    cr_assert(got == length - offset, "%zu bytes of %s", got, url);
    cr_assert(memcmp(back, bytes + offset, got) == 0, "%s", url);
    tp_reader_close(reader);
    free(back);
}

static bool last_error_has(const char *text)
{
    return strstr(tpucl_last_error()->message, text) != NULL;
}

Test(store, sizes_come_back)
{
    static const size_t sizes[] = {0, 1, MIB, 5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 20 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char url[64];
        tp_store_info info;
        (void)snprintf(url, sizeof url, "s3://tpucl-test/sizes/%zu", sizes[i]);
        unsigned char *bytes = make_bytes(sizes[i], (unsigned)i);
        put(url, bytes, sizes[i]);
        expect(url, 0, bytes, sizes[i]);
        if (sizes[i] > MIB) expect(url, MIB - 3, bytes, sizes[i]);
        expect(url, sizes[i], bytes, sizes[i]);
        must(tp_store_stat(url, &quick, &info));
        cr_assert(info.exists && info.bytes == sizes[i]);
        /* More than one part was a multipart upload. */
        cr_assert((strchr(info.etag, '-') != NULL) == (sizes[i] > 5 * MIB), "%s", info.etag);
        must(tp_store_remove(url, &quick));
        must(tp_store_remove(url, &quick));
        must(tp_store_stat(url, &quick, &info));
        cr_assert(!info.exists);
        free(bytes);
    }
}

Test(store, odd_keys_are_written_listed_and_read)
{
    static const char *const keys[] = {"a b", "a%20b",   "a&b<c>\"'",
                                       "a+b", "a=b:c@d", "\xC3\xA9\xE2\x82\xAC"};
    enum { COUNT = sizeof keys / sizeof keys[0] };
    tp_arena *arena;
    const tp_store_entry *entries;
    size_t count;
    char url[COUNT][96];
    must(tp_arena_create(0, &arena));
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(url[i], sizeof url[i], "s3://tpucl-test/odd keys/%s", keys[i]);
        put(url[i], keys[i], strlen(keys[i]));
        expect(url[i], 0, (const unsigned char *)keys[i], strlen(keys[i]));
    }
    tp_store_options pages = quick;
    pages.page_count = 2;
    must(tp_store_list("s3://tpucl-test/odd keys/", &pages, arena, &entries, &count));
    cr_assert(count == COUNT, "%zu", count);
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_str_eq(entries[i].url, url[i]); /* keys[] is sorted */
        cr_assert(entries[i].bytes == strlen(keys[i]));
    }
    must(tp_store_list("s3://tpucl-test/odd keys/a+", &pages, arena, &entries, &count));
    cr_assert(count == 1);
    must(tp_store_list("s3://tpucl-test/none/", &pages, arena, &entries, &count));
    cr_assert(count == 0);
    for (size_t i = 0; i < COUNT; i++)
        must(tp_store_remove(url[i], &quick));
    tp_arena_destroy(arena);
}

Test(store, a_replaced_object_is_noticed)
{
    const char *url = "s3://tpucl-test/replaced";
    unsigned char *first = make_bytes(8 * MIB, 1), *second = make_bytes(8 * MIB, 2);
    unsigned char *back = malloc(8 * MIB);
    tp_reader *reader;
    size_t got;
    put(url, first, 8 * MIB);
    tp_store_options few = quick;
    few.blocks = 2;
    must(tp_store_open_reader(url, 0, &few, &reader));
    must(tp_reader_read(reader, back, 100, &got));
    put(url, second, 8 * MIB);
    cr_assert(tp_reader_read(reader, back, 8 * MIB - 100, &got) == TPUCL_CORRUPT_DATA);
    cr_assert(last_error_has("replaced") && last_error_has(url), "%s", tpucl_last_error()->message);
    tp_reader_close(reader);
    free(first), free(second), free(back);
}

Test(store, what_was_aborted_is_not_there)
{
    const char *url = "s3://tpucl-test/aborted";
    unsigned char *bytes = make_bytes(11 * MIB, 3);
    tp_writer *writer;
    tp_store_info info;
    must(tp_store_open_writer(url, &quick, &writer));
    must(tp_writer_write(writer, bytes, 11 * MIB));
    tp_writer_abort(writer);
    must(tp_store_stat(url, &quick, &info));
    cr_assert(!info.exists);
    free(bytes);
}

/* A process that is killed leaves its upload behind: the next one aborts those below its own folder. */
Test(store, unfinished_uploads_are_aborted_below_a_prefix)
{
    static const char *const urls[] = {"s3://tpucl-test/left/a", "s3://tpucl-test/left/b&<c>",
                                       "s3://tpucl-test/kept/a"};
    tp_writer *writers[3];
    size_t count;
    unsigned char *bytes = make_bytes(11 * MIB, 4);
    for (int i = 0; i < 3; i++) {
        must(tp_store_open_writer(urls[i], &quick, &writers[i]));
        must(tp_writer_write(writers[i], bytes, 11 * MIB));
    }
    must(tp_store_abort_uploads("s3://tpucl-test/left/", &quick, &count));
    cr_assert(count >= 2, "%zu", count); /* more where the answer that named one was lost */
    must(tp_store_abort_uploads("s3://tpucl-test/left/", &quick, &count));
    cr_assert(count == 0, "%zu", count);
    cr_assert(tp_writer_commit(writers[0]) == TPUCL_NOT_FOUND);
    cr_assert(last_error_has("NoSuchUpload"), "%s", tpucl_last_error()->message);
    tp_writer_abort(writers[1]);
    must(tp_writer_commit(writers[2]));
    expect(urls[2], 0, bytes, 11 * MIB);
    must(tp_store_remove(urls[2], &quick));
    free(bytes);
}

Test(store, names_of_a_folder_are_its_objects_and_folders)
{
    static const char *const urls[] = {"s3://tpucl-test/names/b/c/d", "s3://tpucl-test/names/b/e",
                                       "s3://tpucl-test/names/a", "s3://tpucl-test/names/b-"};
    tp_arena *arena;
    const char *const *names;
    size_t count;
    char *text;
    must(tp_arena_create(0, &arena));
    for (int i = 0; i < 4; i++)
        put(urls[i], "12345", 5);
    must(tp_store_names("s3://tpucl-test/names", arena, &names, &count));
    cr_assert(count == 3, "%zu", count);
    cr_assert_str_eq(names[0], "a");
    cr_assert_str_eq(names[1], "b");
    cr_assert_str_eq(names[2], "b-");
    must(tp_store_names("s3://tpucl-test/nam", arena, &names, &count));
    cr_assert(count == 0);
    must(tp_store_read(urls[2], 5, &text, &count));
    cr_assert(count == 5 && strcmp(text, "12345") == 0);
    tp_free(text);
    cr_assert(tp_store_read(urls[2], 4, &text, &count) == TPUCL_INVALID_ARGUMENT);
    cr_assert(tp_store_read("s3://tpucl-test/names/none", 4, &text, &count) == TPUCL_NOT_FOUND);
    for (int i = 0; i < 4; i++)
        must(tp_store_remove(urls[i], &quick));
    tp_arena_destroy(arena);
}

Test(store, failures_say_what_to_do_and_no_secret)
{
    tp_reader *reader;
    tp_writer *writer;
    cr_assert(tp_store_open_reader("s3://tpucl-test/none", 0, &quick, &reader) == TPUCL_NOT_FOUND);
    must(tp_store_open_writer("s3://tpucl-no-such-bucket/a", &quick, &writer));
    must(tp_writer_write(writer, "x", 1));
    cr_assert(tp_writer_commit(writer) == TPUCL_NOT_FOUND);
    cr_assert(last_error_has("NoSuchBucket"), "%s", tpucl_last_error()->message);
    setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret", 1);
    must(tp_store_open_writer("s3://tpucl-test/a", &quick, &writer));
    cr_assert(tp_writer_commit(writer) == TPUCL_IO_ERROR);
    cr_assert(last_error_has("SignatureDoesNotMatch") && !last_error_has("wrong-secret"), "%s",
              tpucl_last_error()->message);
}
