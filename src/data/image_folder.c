/* SPDX-License-Identifier: Apache-2.0
 * Lists folders of images. */
#include "data/image_folder.h"

#include <string.h>
#include <strings.h>
#include "core/alloc.h"
#include "core/array.h"
#include "core/file.h"
#include "io/store.h"

TP_ARRAY_DEFINE(file_list, tp_image_file)
TP_ARRAY_DEFINE(class_list, const char *)

static bool is_image_name(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    const char *point = strrchr(name, '.');
    for (int i = 0; point && point != name && i < 3; i++)
        if (strcasecmp(point, endings[i]) == 0) return name[0] != '.';
    return false;
}

static tpucl_status add_class(tp_image_folder *folder, const char *path, int32_t class_index,
                              file_list *files)
{
    const char *const *names;
    size_t count;
    TP_TRY(tp_store_names(path, folder->arena, &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (!is_image_name(names[i])) continue;
        const char *file = tp_file_join(folder->arena, path, names[i]);
        if (!file) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(file_list_push(files, (tp_image_file){file, class_index}));
    }
    return TPUCL_OK;
}

static tpucl_status list(tp_image_folder *folder, const char *path, file_list *files,
                         class_list *classes)
{
    const char *const *names;
    size_t count;
    TP_TRY(tp_store_names(path, folder->arena, &names, &count));
    for (size_t i = 0; i < count; i++) {
        const char *below = tp_file_join(folder->arena, path, names[i]);
        if (!below) return TPUCL_OUT_OF_MEMORY;
        if (names[i][0] == '.') continue;
        if (!tp_store_is_remote(below) && !tp_file_is_folder(tp_store_path(below))) continue;
        const size_t before = files->count;
        TP_TRY(add_class(folder, below, (int32_t)classes->count, files));
        /* A bucket's objects beside the classes look like folders with nothing in them. */
        if (tp_store_is_remote(below) && files->count == before) continue;
        TP_TRY(class_list_push(classes, names[i]));
    }
    if (files->count) return TPUCL_OK;
    return TP_FAIL(
        TPUCL_NOT_FOUND,
        "'%s' holds no images: expected a folder for each class with .png, .jpg or .jpeg "
        "files in it",
        path);
}

tpucl_status tp_image_folder_open(const char *path, tp_image_folder *out_folder)
{
    file_list files = {0};
    class_list classes = {0};
    tp_image_folder folder = {0};
    TP_TRY(tp_arena_create(0, &folder.arena));
    tpucl_status status = list(&folder, path, &files, &classes);
    if (status == TPUCL_OK) {
        const char **names = TP_ARENA_NEW_ARRAY(folder.arena, const char *, classes.count + 1);
        folder.files = TP_ARENA_NEW_ARRAY(folder.arena, tp_image_file, files.count + 1);
        if (names && folder.files) {
            memcpy(names, classes.items, classes.count * sizeof *names);
            memcpy(folder.files, files.items, files.count * sizeof *files.items);
            folder.classes = names;
            folder.class_count = (int32_t)classes.count;
            folder.file_count = (int64_t)files.count;
        } else {
            status = TPUCL_OUT_OF_MEMORY;
        }
    }
    file_list_deinit(&files);
    class_list_deinit(&classes);
    if (status != TPUCL_OK) {
        tp_image_folder_close(&folder);
        return status;
    }
    *out_folder = folder;
    return TPUCL_OK;
}

void tp_image_folder_close(tp_image_folder *folder)
{
    tp_arena_destroy(folder->arena);
    folder->arena = NULL;
}
