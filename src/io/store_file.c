/* SPDX-License-Identifier: Apache-2.0
 * Local files as a store: a path, or file:// before one. */
#include <string.h>
#include "core/array.h"
#include "core/file.h"
#include "io/store_internal.h"

TP_ARRAY_DEFINE(entry_list, tp_store_entry)

static tpucl_status stat_file(const char *url, const tp_store_options *options,
                              tp_store_info *out_info)
{
    (void)options;
    const char *path = tp_store_path(url);
    if (!tp_file_exists(path) || tp_file_is_folder(path)) return TPUCL_OK;
    out_info->exists = true;
    return tp_file_size(path, &out_info->bytes);
}

static tpucl_status open_reader(const char *url, uint64_t offset, const tp_store_options *options,
                                tp_reader **out_reader)
{
    (void)options;
    return tp_reader_open_file(tp_store_path(url), offset, out_reader);
}

static tpucl_status open_writer(const char *url, const tp_store_options *options,
                                tp_writer **out_writer)
{
    (void)options;
    const char *path = tp_store_path(url), *name = tp_file_base_name(path);
    if (name > path + 1) {
        tp_str_builder folder = {0};
        tp_str_append_bytes(&folder, path, (size_t)(name - path) - 1);
        const tpucl_status status =
            folder.status == TPUCL_OK ? tp_file_make_folders(folder.data) : folder.status;
        tp_str_builder_deinit(&folder);
        TP_TRY(status);
    }
    return tp_writer_open_file(path, out_writer);
}

static tpucl_status remove_file(const char *url, const tp_store_options *options)
{
    (void)options;
    return tp_file_remove(tp_store_path(url));
}

/* Files in `folder` and below whose address begins with `prefix`; files that are being written are none. */
static tpucl_status walk(tp_arena *arena, const char *folder, const char *prefix, entry_list *list)
{
    const char *const *names;
    size_t count;
    const char *path = tp_store_path(folder);
    TP_TRY(tp_file_list(path[0] ? path : ".", arena, &names, &count));
    const size_t length = strlen(prefix);
    for (size_t i = 0; i < count; i++) {
        const char *url = tp_arena_printf(arena, "%s%s", folder, names[i]);
        if (!url) return TPUCL_OUT_OF_MEMORY;
        const size_t common = strlen(url) < length ? strlen(url) : length;
        if (memcmp(url, prefix, common) != 0) continue;
        if (tp_file_is_folder(tp_store_path(url))) {
            const char *below = tp_arena_printf(arena, "%s/", url);
            if (!below) return TPUCL_OUT_OF_MEMORY;
            TP_TRY(walk(arena, below, prefix, list));
        } else if (strlen(url) >= length && !tp_str_ends_with(url, ".part")) {
            tp_store_entry entry = {.url = url};
            TP_TRY(tp_file_size(tp_store_path(url), &entry.bytes));
            TP_TRY(entry_list_push(list, entry));
        }
    }
    return TPUCL_OK;
}

static tpucl_status list_files(const char *prefix, const tp_store_options *options, tp_arena *arena,
                               const tp_store_entry **out_entries, size_t *out_count)
{
    (void)options;
    entry_list list = {0};
    const char *path = tp_store_path(prefix);
    const size_t length = (size_t)(tp_file_base_name(path) - prefix);
    char *folder = tp_arena_strndup(arena, prefix, length);
    tpucl_status status = folder ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    *out_count = 0;
    *out_entries = NULL;
    /* Buckets have no folders: one that is not there holds nothing. */
    if (status == TPUCL_OK && (!*tp_store_path(folder) || tp_file_is_folder(tp_store_path(folder))))
        status = walk(arena, folder, prefix, &list);
    if (status == TPUCL_OK && list.count) {
        tp_store_entry *entries = TP_ARENA_NEW_ARRAY(arena, tp_store_entry, list.count);
        if (entries) memcpy(entries, list.items, list.count * sizeof *entries);
        if (entries) tp_store_sort(entries, list.count);
        status = entries ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
        *out_entries = entries;
        *out_count = list.count;
    }
    entry_list_deinit(&list);
    return status;
}

const tp_store_ops tp_store_file = {"file://",  stat_file,   open_reader, open_writer,
                                    list_files, remove_file, NULL};
