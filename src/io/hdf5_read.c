/* SPDX-License-Identifier: Apache-2.0
 * Opening HDF5 files, elements of datasets, text attributes. */
#include <string.h>
#include "core/file.h"
#include "core/str.h"
#include "io/hdf5_library.h"

/* The deepest entry of libhdf5's stack says what was wrong; those above only say who was called. */
static herr_t keep_description(unsigned depth, const H5E_error2_t *error, void *user)
{
    if (depth == 0 && error->desc) *(const char **)user = error->desc;
    return 0;
}

tpucl_status tp_hdf5_fail(const char *file_name, const char *what, const char *path)
{
    const char *description = NULL;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_description, &description);
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': %s '%.200s' cannot be read: %.200s", file_name, what,
                   path, description ? description : "the HDF5 library gives no reason");
}

/* ---- open, close ---- */

static tpucl_status make(const char *name, tp_hdf5 **out_file)
{
    tp_arena *arena;
    TP_TRY(tp_arena_create(0, &arena));
    tp_hdf5 *file = TP_ARENA_NEW(arena, tp_hdf5);
    const char *copy = tp_arena_strdup(arena, name);
    if (!file || !copy) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    *file = (tp_hdf5){.arena = arena, .name = copy, .file = -1};
    *out_file = file;
    return TPUCL_OK;
}

/* Checks what was opened; gives it up when something is wrong. */
static tpucl_status finish_open(tp_hdf5 *file, tp_hdf5 **out_file)
{
    const tpucl_status status = file->file < 0 ? tp_hdf5_fail(file->name, "the file", file->name)
                                               : tp_hdf5_read_table(file);
    if (status != TPUCL_OK) {
        tp_hdf5_close(file);
        return status;
    }
    *out_file = file;
    return TPUCL_OK;
}

tpucl_status tp_hdf5_open(const char *path, tp_hdf5 **out_file)
{
    tp_hdf5 *file;
    uint64_t bytes;
    TP_TRY(tp_file_size(path, &bytes));
    TP_TRY(make(path, &file));
    const tp_hdf5_quiet quiet = tp_hdf5_begin();
    file->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const tpucl_status status = finish_open(file, out_file);
    tp_hdf5_end(&quiet);
    return status;
}

tpucl_status tp_hdf5_open_bytes(const void *bytes, size_t length, const char *name,
                                tp_hdf5 **out_file)
{
    tp_hdf5 *file;
    TP_TRY(make(name, &file));
    const tp_hdf5_quiet quiet = tp_hdf5_begin();
    /* Opened for reading, the library never writes to the image. */
    file->file = H5LTopen_file_image((void *)(uintptr_t)bytes, length,
                                     H5LT_FILE_IMAGE_DONT_COPY | H5LT_FILE_IMAGE_DONT_RELEASE);
    const tpucl_status status = finish_open(file, out_file);
    tp_hdf5_end(&quiet);
    return status;
}

void tp_hdf5_close(tp_hdf5 *file)
{
    if (!file) return;
    const tp_hdf5_quiet quiet = tp_hdf5_begin();
    if (file->file >= 0) H5Fclose(file->file);
    tp_hdf5_end(&quiet);
    tp_hdf5_datasets_deinit(&file->datasets);
    tp_map_deinit(&file->dataset_paths);
    tp_map_deinit(&file->group_paths);
    tp_arena_destroy(file->arena);
}

/* ---- tables ---- */

int32_t tp_hdf5_dataset_count(const tp_hdf5 *file)
{
    return (int32_t)file->datasets.count;
}

const tp_hdf5_dataset *tp_hdf5_dataset_at(const tp_hdf5 *file, int32_t index)
{
    return &file->datasets.items[index];
}

const tp_hdf5_dataset *tp_hdf5_find_dataset(const tp_hdf5 *file, const char *path)
{
    size_t index;
    return tp_map_find(&file->dataset_paths, path, &index) ? &file->datasets.items[index] : NULL;
}

bool tp_hdf5_has_group(const tp_hdf5 *file, const char *path)
{
    return tp_map_find(&file->group_paths, path, NULL);
}

/* ---- elements ---- */

static tpucl_status narrow(const tp_hdf5 *file, const tp_hdf5_dataset *dataset, const int64_t *wide,
                           int32_t *out_elements)
{
    const int64_t count = tp_shape_elems(&dataset->shape);
    for (int64_t i = 0; i < count; i++) {
        if (wide[i] < INT32_MIN || wide[i] > INT32_MAX)
            return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': '%s' holds %lld, which has no 32-bit integer",
                           file->name, dataset->path, (long long)wide[i]);
        out_elements[i] = (int32_t)wide[i];
    }
    return TPUCL_OK;
}

static tpucl_status read_elements(tp_hdf5 *file, const tp_hdf5_dataset *dataset, hid_t handle,
                                  hid_t type, void *out_elements)
{
    tp_hdf5_elements elements;
    TP_CHECK(tp_hdf5_elements_of(handle, type, &elements));
    void *target = out_elements;
    if (elements.is_wide) {
        target = TP_NEW_ARRAY(int64_t, (size_t)tp_shape_elems(&dataset->shape) + 1);
        if (!target) return TPUCL_OUT_OF_MEMORY;
    }
    const hid_t memory_type = elements.is_opaque_pair ? type : elements.memory_type;
    tpucl_status status = TPUCL_OK;
    if (H5Dread(handle, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, target) < 0)
        status = tp_hdf5_fail(file->name, "the dataset", dataset->path);
    else if (elements.is_wide)
        status = narrow(file, dataset, target, out_elements);
    if (target != out_elements) tp_free(target);
    return status;
}

tpucl_status tp_hdf5_read(tp_hdf5 *file, const tp_hdf5_dataset *dataset, void *out_elements)
{
    if (!dataset->is_readable)
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s': '%s' holds no numbers that tpucl has a type for",
                       file->name, dataset->path);
    if (tp_shape_elems(&dataset->shape) == 0) return TPUCL_OK;
    const tp_hdf5_quiet quiet = tp_hdf5_begin();
    tpucl_status status;
    const hid_t handle = H5Dopen2(file->file, dataset->path, H5P_DEFAULT);
    if (handle < 0) {
        status = tp_hdf5_fail(file->name, "the dataset", dataset->path);
    } else {
        const hid_t type = H5Dget_type(handle);
        status = read_elements(file, dataset, handle, type, out_elements);
        H5Tclose(type);
        H5Dclose(handle);
    }
    tp_hdf5_end(&quiet);
    return status;
}

/* ---- text attributes ---- */

TP_ARRAY_DEFINE(texts, const char *)

/* Appends the texts of an open attribute. */
static tpucl_status read_texts(const tp_hdf5 *file, const char *name, hid_t attribute, hid_t type,
                               hid_t space, tp_arena *arena, texts *list)
{
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const size_t bytes = H5Tget_size(type);
    size_t room;
    /* h5py stores an empty list as an empty list of numbers */
    if (count == 0) return TPUCL_OK;
    if (count < 0 || H5Tget_class(type) != H5T_STRING ||
        !tp_size_mul((size_t)count, bytes, &room) || room > TP_HDF5_MAX_TEXT_BYTES)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': the attribute '%s' is no text of a sane length",
                       file->name, name);
    char *raw = TP_NEW_ARRAY(char, room + 1);
    if (!raw) return TPUCL_OUT_OF_MEMORY;
    const bool is_variable = H5Tis_variable_str(type) > 0;
    tpucl_status status = TPUCL_OK;
    if (H5Aread(attribute, type, raw) < 0) {
        status = tp_hdf5_fail(file->name, "the attribute", name);
        tp_free(raw);
        return status;
    }
    for (hssize_t i = 0; i < count && status == TPUCL_OK; i++) {
        const char *text = raw + (size_t)i * bytes;
        if (is_variable) memcpy(&text, raw + (size_t)i * bytes, sizeof text);
        if (!text) text = ""; /* the library's form of an empty text */
        const size_t length = is_variable ? strlen(text) : strnlen(text, bytes);
        const char *copy = tp_arena_strndup(arena, text, length);
        status = copy ? texts_push(list, copy) : TPUCL_OUT_OF_MEMORY;
    }
    if (is_variable) H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw);
    tp_free(raw);
    return status;
}

/* *out_exists is false, and nothing appended, when there is no such attribute. */
static tpucl_status read_attribute(tp_hdf5 *file, const char *group, const char *name,
                                   tp_arena *arena, texts *list, bool *out_exists)
{
    const hid_t object = H5Gopen2(file->file, *group ? group : "/", H5P_DEFAULT);
    if (object < 0) return tp_hdf5_fail(file->name, "the group", group);
    tpucl_status status = TPUCL_OK;
    *out_exists = H5Aexists(object, name) > 0;
    if (*out_exists) {
        const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
        const hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
        const hid_t space = attribute < 0 ? -1 : H5Aget_space(attribute);
        if (type < 0 || space < 0)
            status = tp_hdf5_fail(file->name, "the attribute", name);
        else
            status = read_texts(file, name, attribute, type, space, arena, list);
        if (space >= 0) H5Sclose(space);
        if (type >= 0) H5Tclose(type);
        if (attribute >= 0) H5Aclose(attribute);
    }
    H5Gclose(object);
    return status;
}

tpucl_status tp_hdf5_attribute_text(tp_hdf5 *file, const char *group, const char *name,
                                    tp_arena *arena, const char **out_text)
{
    texts list = {0};
    bool exists = false;
    const tp_hdf5_quiet quiet = tp_hdf5_begin();
    tpucl_status status = read_attribute(file, group, name, arena, &list, &exists);
    tp_hdf5_end(&quiet);
    if (status == TPUCL_OK && exists && list.count != 1)
        status = TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': the attribute '%s' is no single text",
                         file->name, name);
    if (status == TPUCL_OK) *out_text = exists ? list.items[0] : NULL;
    texts_deinit(&list);
    return status;
}

/* name, or name0, name1, ... until one is missing. */
static tpucl_status read_pieces(tp_hdf5 *file, const char *group, const char *name, tp_arena *arena,
                                texts *list, bool *out_exists)
{
    TP_TRY(read_attribute(file, group, name, arena, list, out_exists));
    for (int piece = 0; !*out_exists || piece > 0; piece++) {
        bool is_there = false;
        const char *piece_name = tp_arena_printf(arena, "%s%d", name, piece);
        if (!piece_name) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(read_attribute(file, group, piece_name, arena, list, &is_there));
        if (!is_there) break;
        *out_exists = true;
    }
    return TPUCL_OK;
}

tpucl_status tp_hdf5_attribute_texts(tp_hdf5 *file, const char *group, const char *name,
                                     tp_arena *arena, const char *const **out_texts,
                                     size_t *out_count)
{
    texts list = {0};
    bool exists = false;
    const tp_hdf5_quiet quiet = tp_hdf5_begin();
    tpucl_status status = read_pieces(file, group, name, arena, &list, &exists);
    tp_hdf5_end(&quiet);
    if (status == TPUCL_OK) {
        const char **copy = TP_ARENA_NEW_ARRAY(arena, const char *, list.count + 1);
        if (copy && list.count) memcpy(copy, list.items, list.count * sizeof *copy);
        if (!copy) status = TPUCL_OUT_OF_MEMORY;
        *out_texts = exists ? copy : NULL;
        *out_count = list.count;
    }
    texts_deinit(&list);
    return status;
}
