/* SPDX-License-Identifier: Apache-2.0
 * The disk cache without a device: what is stored comes back, and nothing that is not as stored
 * does. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "device/program_cache.h"

static char folder[128];
static tp_program_cache *cache;

static void key_of(int n, uint8_t out_key[32])
{
    memset(out_key, 0, 32);
    out_key[0] = (uint8_t)n;
    out_key[31] = 0xAB;
}

static void path_of(int n, char out_path[256])
{
    snprintf(out_path, 256, "%s/%02x%060dab.clbin", folder, n, 0);
}

static void open_cache(uint64_t max_bytes)
{
    snprintf(folder, sizeof folder, "%s/tpucl-cache-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    cr_assert(mkdtemp(folder));
    cr_assert_eq(tp_program_cache_open(folder, max_bytes, &cache), TPUCL_OK);
}

static void close_cache(void)
{
    char command[256];
    tp_program_cache_close(cache);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
}

static bool is_stored(int n)
{
    uint8_t key[32];
    void *data;
    size_t bytes;
    key_of(n, key);
    const tpucl_status status = tp_program_cache_load(cache, key, &data, &bytes);
    if (status != TPUCL_OK) {
        cr_assert_eq(status, TPUCL_NOT_FOUND);
        cr_assert_null(data);
        return false;
    }
    tp_free(data);
    return true;
}

static void store(int n, const void *data, size_t bytes)
{
    uint8_t key[32];
    key_of(n, key);
    tp_program_cache_store(cache, key, data, bytes);
}

Test(program_cache, stores_and_loads)
{
    open_cache(0);
    uint8_t key[32];
    key_of(1, key);
    cr_assert_not(is_stored(1));
    store(1, "binary", 6);
    void *data;
    size_t bytes;
    cr_assert_eq(tp_program_cache_load(cache, key, &data, &bytes), TPUCL_OK);
    cr_assert_eq(bytes, 6);
    cr_assert_eq(memcmp(data, "binary", 6), 0);
    tp_free(data);
    store(1, "", 0);
    cr_assert(is_stored(1), "an empty binary is a binary");
    tp_program_cache_counts counts;
    tp_program_cache_get_counts(cache, &counts);
    cr_assert_eq(counts.hits, 2);
    cr_assert_eq(counts.misses, 1);
    cr_assert_eq(counts.stores, 2);
    cr_assert_eq(counts.rejected, 0);
    close_cache();
}

/* The layout that the header promises, byte by byte; the checksum is zlib's crc32 of the rest,
 * computed with Python: hex(zlib.crc32(bytes([1]) + bytes(30) + b"\xab" + (3).to_bytes(8, "little")
 * + b"abc")) */
Test(program_cache, layout)
{
    open_cache(0);
    store(1, "abc", 3);
    char path[256], *bytes = NULL;
    size_t length = 0;
    path_of(1, path);
    cr_assert_eq(tp_file_read(path, 1000, &bytes, &length), TPUCL_OK);
    cr_assert_eq(length, 59);
    const uint8_t head[16] = {'T', 'P', 'U', 'C', 'L',  'B',  'I',  'N',
                              1,   0,   0,   0,   0x0D, 0xB3, 0x79, 0xE5};
    cr_assert_arr_eq(bytes, head, 16);
    cr_assert_eq(bytes[16], 1);
    cr_assert_eq((uint8_t)bytes[47], 0xAB);
    const uint8_t tail[11] = {3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'};
    cr_assert_arr_eq(bytes + 48, tail, 11);
    tp_free(bytes);
    close_cache();
}

/* Each byte changed, each length cut, one byte more: always a miss, and the file is gone after. */
Test(program_cache, damaged_files_are_misses)
{
    open_cache(0);
    char path[256], *good = NULL;
    size_t length = 0;
    path_of(7, path);
    store(7, "payload", 7);
    cr_assert_eq(tp_file_read(path, 1000, &good, &length), TPUCL_OK);
    for (size_t i = 0; i < 2 * length + 1; i++) {
        char bad[128];
        size_t bad_length = length;
        memcpy(bad, good, length);
        if (i < length)
            bad[i] ^= 0x10;
        else if (i < 2 * length)
            bad_length = i - length;
        else
            bad[bad_length++] = 0;
        cr_assert_eq(tp_file_write_atomic(path, bad, bad_length), TPUCL_OK);
        cr_assert_not(is_stored(7), "damage %zu", i);
        cr_assert_not(tp_file_exists(path));
    }
    cr_assert_eq(tp_file_write_atomic(path, good, length), TPUCL_OK);
    cr_assert(is_stored(7), "undamaged it is fine");
    tp_free(good);
    close_cache();
}

Test(program_cache, a_file_under_another_key_is_a_miss)
{
    open_cache(0);
    char from[256], to[256];
    store(1, "one", 3);
    path_of(1, from);
    path_of(2, to);
    cr_assert_eq(rename(from, to), 0);
    cr_assert_not(is_stored(2));
    close_cache();
}

/* Room for four: the least recently used go, and a hit counts as use. */
Test(program_cache, evicts_the_least_recently_used)
{
    enum { PAYLOAD = 944 }; /* 1000 bytes a file */
    static const char payload[PAYLOAD];
    open_cache(4000);
    for (int n = 0; n < 4; n++) {
        store(n, payload, PAYLOAD);
        char path[256];
        path_of(n, path);
        const struct timespec times[2] = {{1000 + n, 0}, {1000 + n, 0}};
        cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    cr_assert(is_stored(0), "makes 1 the oldest");
    store(4, payload, PAYLOAD);
    cr_assert(is_stored(0));
    cr_assert_not(is_stored(1));
    cr_assert_not(is_stored(2), "down to three quarters");
    cr_assert(is_stored(3));
    cr_assert(is_stored(4));
    tp_program_cache_counts counts;
    tp_program_cache_get_counts(cache, &counts);
    cr_assert_eq(counts.evicted, 2);
    close_cache();
}

static void put_old(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert_eq(tp_file_write_atomic(path, "x", 1), TPUCL_OK);
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    cr_assert_eq(utimensat(AT_FDCWD, path, old, 0), 0);
}

static bool is_there(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return tp_file_exists(path);
}

/* What a crashed writer left behind goes; what others keep in the folder, however old, stays. */
Test(program_cache, removes_its_own_leftovers_only)
{
    static const char *const others[] = {"thesis.tex", "movie.part", "x.clbin.part", ".part"};
    char leftover[128] = "";
    open_cache(0);
    for (int i = 0; i < 64; i++)
        strcat(leftover, "0");
    strcat(leftover, ".clbin.123-0-000000001.part");
    put_old(leftover);
    for (int i = 0; i < 4; i++)
        put_old(others[i]);
    store(1, "abc", 3); /* the first one looks at what is there */
    cr_assert_not(is_there(leftover));
    for (int i = 0; i < 4; i++)
        cr_assert(is_there(others[i]), "%s is gone", others[i]);
    close_cache();
}

Test(program_cache, an_unwritable_folder_is_no_error)
{
    open_cache(0);
    tp_program_cache_close(cache);
    /* A file where the folder should be fails for everybody, root included. */
    char path[256];
    snprintf(path, sizeof path, "%s/file", folder);
    cr_assert_eq(tp_file_write_atomic(path, "x", 1), TPUCL_OK);
    snprintf(path, sizeof path, "%s/file/programs", folder);
    cr_assert_eq(tp_program_cache_open(path, 0, &cache), TPUCL_OK);
    (void)TP_FAIL(TPUCL_INTERNAL, "an error from before");
    store(1, "abc", 3);
    cr_assert_str_eq(tpucl_last_error()->message, "an error from before",
                     "storing leaves the record alone");
    tp_program_cache_counts counts;
    tp_program_cache_get_counts(cache, &counts);
    cr_assert_eq(counts.stores, 0);
    cr_assert(strstr(counts.last_problem, "file"), "says which: %s", counts.last_problem);
    cr_assert_not(is_stored(1));
    close_cache();
}

Test(program_cache, default_folders)
{
    tp_program_cache *found;
    setenv("TPUCL_CACHE_DIR", "/a", 1);
    setenv("XDG_CACHE_HOME", "/b", 1);
    setenv("HOME", "/c", 1);
    static const struct {
        const char *unset, *expected;
    } steps[] = {{NULL, "/a/programs"},
                 {"TPUCL_CACHE_DIR", "/b/tpucl/programs"},
                 {"XDG_CACHE_HOME", "/c/.cache/tpucl/programs"}};
    for (size_t i = 0; i < 3; i++) {
        if (steps[i].unset) unsetenv(steps[i].unset);
        cr_assert_eq(tp_program_cache_open(NULL, 0, &found), TPUCL_OK);
        cr_assert_str_eq(tp_program_cache_folder(found), steps[i].expected);
        tp_program_cache_close(found);
    }
    unsetenv("HOME");
    cr_assert_eq(tp_program_cache_open(NULL, 0, &found), TPUCL_NOT_FOUND);
    cr_assert(strstr(tpucl_last_error()->message, "XDG_CACHE_HOME"));
}
