/* SPDX-License-Identifier: Apache-2.0
 * Whole objects and folders, for code that works on local files and on buckets alike. */
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/file.h"
#include "core/str.h"
#include "io/store.h"

/* ---- whole objects ---- */

/* The length is that of the opening: a store that then sends another one is refused by its reader. */
static tpucl_status read_all(const char *url, uint64_t length, char **out_bytes, size_t *out_length)
{
    tp_reader *reader = NULL;
    size_t got = 0;
    char *bytes = tp_alloc((size_t)length + 1);
    if (!bytes)
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for the %llu bytes of '%s'",
                       (unsigned long long)length, url);
    tpucl_status status = tp_store_open_reader(url, 0, NULL, &reader);
    if (status == TPUCL_OK) status = tp_reader_read(reader, bytes, (size_t)length, &got);
    tp_reader_close(reader);
    if (status == TPUCL_OK && got != length)
        status = TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' has %zu bytes, expected %llu", url, got,
                         (unsigned long long)length);
    if (status != TPUCL_OK) {
        tp_free(bytes);
        return status;
    }
    bytes[got] = 0;
    *out_bytes = bytes;
    if (out_length) *out_length = got;
    return TPUCL_OK;
}

tpucl_status tp_store_read(const char *url, uint64_t max_bytes, char **out_bytes,
                           size_t *out_length)
{
    uint64_t length = 0;
    if (!tp_store_is_remote(url))
        return tp_file_read(tp_store_path(url), (size_t)max_bytes, out_bytes, out_length);
    TP_TRY(tp_store_size(url, &length));
    if (length > max_bytes || length >= SIZE_MAX)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' has %llu bytes, expected at most %llu", url,
                       (unsigned long long)length, (unsigned long long)max_bytes);
    return read_all(url, length, out_bytes, out_length);
}

tpucl_status tp_store_create(const char *url, tp_writer **out_writer)
{
    return tp_store_is_remote(url) ? tp_store_open_writer(url, NULL, out_writer)
                                   : tp_writer_open_file(tp_store_path(url), out_writer);
}

tpucl_status tp_store_write(const char *url, const void *bytes, size_t length)
{
    tp_writer *writer = NULL;
    if (!tp_store_is_remote(url)) return tp_file_write_atomic(tp_store_path(url), bytes, length);
    TP_TRY(tp_store_open_writer(url, NULL, &writer));
    const tpucl_status status = tp_writer_write(writer, bytes, length);
    if (status != TPUCL_OK) {
        tp_writer_abort(writer);
        return status;
    }
    return tp_writer_commit(writer);
}

tpucl_status tp_store_size(const char *url, uint64_t *out_bytes)
{
    tp_store_info info;
    if (!tp_store_is_remote(url)) return tp_file_size(tp_store_path(url), out_bytes);
    TP_TRY(tp_store_stat(url, NULL, &info));
    if (!info.exists) return TP_FAIL(TPUCL_NOT_FOUND, "'%s' does not exist", url);
    *out_bytes = info.bytes;
    return TPUCL_OK;
}

tpucl_status tp_store_exists(const char *url, bool *out_exists)
{
    tp_store_info info = {0};
    *out_exists = !tp_store_is_remote(url) && tp_file_exists(tp_store_path(url));
    if (!tp_store_is_remote(url)) return TPUCL_OK;
    TP_TRY(tp_store_stat(url, NULL, &info));
    *out_exists = info.exists;
    return TPUCL_OK;
}

/* ---- folders ---- */

tpucl_status tp_store_make_folder(const char *url)
{
    return tp_store_is_remote(url) ? TPUCL_OK : tp_file_make_folders(tp_store_path(url));
}

tpucl_status tp_store_remove_folder(const char *url)
{
    return tp_store_is_remote(url) ? TPUCL_OK : tp_file_remove_folder(tp_store_path(url));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

tpucl_status tp_store_names(const char *folder, tp_arena *arena, const char *const **out_names,
                            size_t *out_count)
{
    const tp_store_entry *entries;
    size_t count = 0;
    if (!tp_store_is_remote(folder))
        return tp_file_list(tp_store_path(folder), arena, out_names, out_count);
    const char *prefix = tp_store_join(arena, folder, "");
    if (!prefix) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_store_list(prefix, NULL, arena, &entries, &count));
    const char **names = TP_ARENA_NEW_ARRAY(arena, const char *, count + 1);
    if (!names) return TPUCL_OUT_OF_MEMORY;
    *out_names = names;
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        const char *rest = entries[i].url + strlen(prefix);
        const size_t length = strcspn(rest, "/");
        const char *last = *out_count ? names[*out_count - 1] : "";
        /* Some tools make an empty object called as the folder. */
        if (length == 0 || (strlen(last) == length && memcmp(last, rest, length) == 0)) continue;
        names[*out_count] = tp_arena_strndup(arena, rest, length);
        if (!names[(*out_count)++]) return TPUCL_OUT_OF_MEMORY;
    }
    /* Keys are in the order of "b-", "b/c"; names are not. */
    if (*out_count) qsort(names, *out_count, sizeof *names, compare_names);
    return TPUCL_OK;
}
