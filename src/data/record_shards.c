/* SPDX-License-Identifier: Apache-2.0
 * Sharded record files. */
#include "data/record_shards.h"

#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/array.h"
#include "core/file.h"
#include "core/str.h"
#include "io/store.h"

enum { MAX_DESCRIPTION = 1 << 20, MAX_FILES = 1 << 20 };
TP_ARRAY_DEFINE(name_list, const char *)

int64_t tp_record_shards_begin(const tp_record_shards *shards, int32_t shard)
{
    /* In 128 bits: the product may exceed 64. */
    return (int64_t)((__int128)shards->records * shard / shards->count);
}

const char *tp_record_shards_path(const tp_record_shards *shards, int32_t shard, tp_arena *arena)
{
    return tp_arena_printf(arena, "%s-%05d-of-%05d", shards->prefix, (int)shard,
                           (int)shards->count);
}

tpucl_status tp_record_shards_has(const tp_record_shards *shards, int32_t shard, tp_arena *arena,
                                  bool *out_has)
{
    const char *path = tp_record_shards_path(shards, shard, arena);
    return path ? tp_store_exists(path, out_has) : TPUCL_OUT_OF_MEMORY;
}

/* ---- the description ---- */

static const char *description_path(const tp_record_shards *shards, tp_arena *arena)
{
    return tp_arena_printf(arena, "%s.records.json", shards->prefix);
}

static tpucl_status is_same(const char *path, const char *description, bool *out_same)
{
    char *text = NULL;
    TP_TRY(tp_store_exists(path, out_same));
    if (!*out_same) return TPUCL_OK;
    TP_TRY(tp_store_read(path, MAX_DESCRIPTION, &text, NULL));
    *out_same = strcmp(text, description) == 0;
    tp_free(text);
    return TPUCL_OK;
}

static tpucl_status make_parents(const char *prefix, tp_arena *arena)
{
    const size_t folder = (size_t)(tp_file_base_name(prefix) - prefix);
    if (folder == 0) return TPUCL_OK;
    const char *path = tp_arena_strndup(arena, prefix, folder);
    return path ? tp_store_make_folder(path) : TPUCL_OUT_OF_MEMORY;
}

/* Another number of shards is another set of names; those are found by the pattern. */
static tpucl_status clear_others(const tp_record_shards *shards, bool force, tp_arena *arena)
{
    const char *pattern = tp_arena_printf(
        arena, "%s-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]", shards->prefix);
    const char *const *names;
    int32_t count = 0;
    if (!pattern) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = tp_record_paths_expand(&pattern, 1, arena, &names, &count);
    if (status == TPUCL_NOT_FOUND) {
        tp_error_clear();
        return TPUCL_OK;
    }
    if (status != TPUCL_OK) return status;
    if (!force)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "'%s' is there already and was made of other things or in another way; "
                       "remove it, name another place, or replace it (--force)",
                       names[0]);
    for (int32_t i = 0; i < count; i++)
        TP_TRY(tp_store_remove(names[i], NULL));
    return TPUCL_OK;
}

tpucl_status tp_record_shards_begin_work(const tp_record_shards *shards, const char *description,
                                         bool force)
{
    tp_arena *arena = NULL;
    bool same = false;
    TP_TRY(tp_arena_create(0, &arena));
    const char *path = description_path(shards, arena);
    tpucl_status status = path ? make_parents(shards->prefix, arena) : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) status = is_same(path, description, &same);
    if (status == TPUCL_OK && (!same || force)) status = clear_others(shards, force, arena);
    if (status == TPUCL_OK && !same)
        status = tp_store_write(path, description, strlen(description));
    tp_arena_destroy(arena);
    return status;
}

tpucl_status tp_record_shards_open(const tp_record_shards *shards, int32_t shard, tp_arena *arena,
                                   tp_record_writer **out_writer)
{
    tp_writer *target = NULL;
    const char *path = tp_record_shards_path(shards, shard, arena);
    if (!path) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_store_create(path, &target));
    return tp_record_writer_adopt(target, shards->compression, out_writer);
}

/* ---- names to read ---- */

static tpucl_status add(name_list *list, tp_arena *arena, const char *path)
{
    const char *copy = tp_arena_strdup(arena, path);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    if (list->count == MAX_FILES)
        return TP_FAIL(TPUCL_UNSUPPORTED, "more than %d files of records", MAX_FILES);
    return name_list_push(list, copy);
}

/* "train-00000-of-00008", "x.tfrecord", "x.tfrecords", the last two also with .gz. */
static bool is_record_name(const char *name)
{
    const char *of = strstr(name, "-of-");
    if (of && of - name >= 5 && strspn(of + 4, "0123456789") == 5) return true;
    return strstr(name, ".tfrecord") != NULL;
}

static tpucl_status add_folder(name_list *list, tp_arena *arena, const char *folder)
{
    const char *const *names;
    size_t count;
    const size_t before = list->count;
    TP_TRY(tp_store_names(folder, arena, &names, &count));
    for (size_t i = 0; i < count; i++) {
        const char *path = tp_file_join(arena, folder, names[i]);
        if (!path) return TPUCL_OUT_OF_MEMORY;
        const bool is_folder = !tp_store_is_remote(path) && tp_file_is_folder(tp_store_path(path));
        if (is_record_name(names[i]) && !is_folder) TP_TRY(add(list, arena, path));
    }
    if (list->count > before) return TPUCL_OK;
    return TP_FAIL(TPUCL_NOT_FOUND,
                   "folder '%s' has no files of records (NAME-00000-of-00001 or *.tfrecord)",
                   folder);
}

static tpucl_status add_pattern(name_list *list, tp_arena *arena, const char *pattern)
{
    glob_t found = {0};
    const int code = glob(pattern, 0, NULL, &found);
    tpucl_status status = TPUCL_OK;
    if (code == GLOB_NOMATCH)
        status = TP_FAIL(TPUCL_NOT_FOUND, "no file matches '%s'", pattern);
    else if (code != 0)
        status = TP_FAIL(TPUCL_IO_ERROR, "'%s' cannot be searched for", pattern);
    for (size_t i = 0; status == TPUCL_OK && i < found.gl_pathc; i++)
        status = add(list, arena, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

/* As glob() would: '*' stops at '/'. What stands before the first of its signs is listed. */
static tpucl_status add_remote_pattern(name_list *list, tp_arena *arena, const char *pattern)
{
    const tp_store_entry *entries;
    size_t count;
    const size_t before = list->count;
    const char *prefix = tp_arena_strndup(arena, pattern, strcspn(pattern, "*?["));
    if (!prefix) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_store_list(prefix, NULL, arena, &entries, &count));
    for (size_t i = 0; i < count; i++)
        if (fnmatch(pattern, entries[i].url, FNM_PATHNAME | FNM_PERIOD) == 0)
            TP_TRY(add(list, arena, entries[i].url));
    if (list->count > before) return TPUCL_OK;
    return TP_FAIL(TPUCL_NOT_FOUND, "no object matches '%s'", pattern);
}

/* An object, a pattern, a folder, in this order. Web servers have no lists, and their '?' begins a query. */
static tpucl_status add_remote(name_list *list, tp_arena *arena, const char *url)
{
    bool exists = false;
    if (tp_str_starts_with(url, "http")) return add(list, arena, url);
    if (!tp_str_ends_with(url, "/") && strchr(strstr(url, "://") + 3, '/'))
        TP_TRY(tp_store_exists(url, &exists));
    if (exists) return add(list, arena, url);
    return strpbrk(url, "*?[") ? add_remote_pattern(list, arena, url)
                               : add_folder(list, arena, url);
}

tpucl_status tp_record_paths_expand(const char *const *paths, int32_t count, tp_arena *arena,
                                    const char *const **out_paths, int32_t *out_count)
{
    name_list list = {0};
    tpucl_status status = TPUCL_OK;
    for (int32_t i = 0; i < count && status == TPUCL_OK; i++)
        if (tp_store_is_remote(paths[i]))
            status = add_remote(&list, arena, paths[i]);
        else if (tp_file_is_folder(paths[i]))
            status = add_folder(&list, arena, paths[i]);
        else if (!tp_file_exists(paths[i]) && strpbrk(paths[i], "*?["))
            status = add_pattern(&list, arena, paths[i]);
        else
            status = add(&list, arena, paths[i]);
    const char **names = TP_ARENA_NEW_ARRAY(arena, const char *, list.count + 1);
    if (status == TPUCL_OK && !names) status = TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) {
        if (list.count) memcpy(names, list.items, list.count * sizeof *names);
        *out_paths = names;
        *out_count = (int32_t)list.count;
    }
    name_list_deinit(&list);
    return status;
}
