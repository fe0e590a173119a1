/* SPDX-License-Identifier: Apache-2.0
 * In the guest: elements of datasets, text attributes. */
#include <string.h>
#include "core/alloc.h"
#include "io/hdf5_library.h"

/* The deepest entry of libhdf5's stack says what was wrong; those above only say who was called. */
static herr_t keep_description(unsigned depth, const H5E_error2_t *error, void *user)
{
    if (depth == 0 && error->desc) *(const char **)user = error->desc;
    return 0;
}

tpucl_status tp_hdf5_fail(const tp_hdf5_guest *guest, const char *what, const char *path)
{
    const char *description = NULL;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_description, &description);
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': %s '%.200s' cannot be read: %.200s", guest->name,
                   what, path, description ? description : "the HDF5 library gives no reason");
}

/* ---- elements ---- */

static tpucl_status narrow(const tp_hdf5_guest *guest, const tp_hdf5_dataset *dataset,
                           const int64_t *wide, int32_t *out_elements)
{
    const int64_t count = tp_shape_elems(&dataset->shape);
    for (int64_t i = 0; i < count; i++) {
        if (wide[i] < INT32_MIN || wide[i] > INT32_MAX)
            return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': '%s' holds %lld, which has no 32-bit integer",
                           guest->name, dataset->path, (long long)wide[i]);
        out_elements[i] = (int32_t)wide[i];
    }
    return TPUCL_OK;
}

static tpucl_status read_elements(tp_hdf5_guest *guest, const tp_hdf5_dataset *dataset,
                                  hid_t handle, hid_t type, void *out_elements)
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
        status = tp_hdf5_fail(guest, "the dataset", dataset->path);
    else if (elements.is_wide)
        status = narrow(guest, dataset, target, out_elements);
    if (target != out_elements) tp_free(target);
    return status;
}

tpucl_status tp_hdf5_read_elements(tp_hdf5_guest *guest, const tp_hdf5_dataset *dataset,
                                   void *out_elements)
{
    const hid_t handle = H5Dopen2(guest->file, dataset->path, H5P_DEFAULT);
    if (handle < 0) return tp_hdf5_fail(guest, "the dataset", dataset->path);
    const hid_t type = H5Dget_type(handle);
    const tpucl_status status = read_elements(guest, dataset, handle, type, out_elements);
    H5Tclose(type);
    H5Dclose(handle);
    return status;
}

/* ---- text attributes ---- */

/* Appends the texts of an open attribute. */
static tpucl_status read_texts(const tp_hdf5_guest *guest, const char *name, hid_t attribute,
                               hid_t type, hid_t space, tp_hdf5_texts *list)
{
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const size_t bytes = H5Tget_size(type);
    size_t room;
    /* h5py stores an empty list as an empty list of numbers */
    if (count == 0) return TPUCL_OK;
    if (count < 0 || H5Tget_class(type) != H5T_STRING ||
        !tp_size_mul((size_t)count, bytes, &room) || room > TP_HDF5_MAX_TEXT_BYTES)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': the attribute '%s' is no text of a sane length",
                       guest->name, name);
    char *raw = TP_NEW_ARRAY(char, room + 1);
    if (!raw) return TPUCL_OUT_OF_MEMORY;
    const bool is_variable = H5Tis_variable_str(type) > 0;
    tpucl_status status = TPUCL_OK;
    if (H5Aread(attribute, type, raw) < 0) {
        status = tp_hdf5_fail(guest, "the attribute", name);
        tp_free(raw);
        return status;
    }
    for (hssize_t i = 0; i < count && status == TPUCL_OK; i++) {
        const char *text = raw + (size_t)i * bytes;
        if (is_variable) memcpy(&text, raw + (size_t)i * bytes, sizeof text);
        if (!text) text = ""; /* the library's form of an empty text */
        const size_t length = is_variable ? strlen(text) : strnlen(text, bytes);
        const char *copy = tp_arena_strndup(guest->arena, text, length);
        status = copy ? tp_hdf5_texts_push(list, copy) : TPUCL_OUT_OF_MEMORY;
    }
    if (is_variable) H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw);
    tp_free(raw);
    return status;
}

/* *out_exists is false, and nothing appended, when there is no such attribute. */
static tpucl_status read_attribute(tp_hdf5_guest *guest, const char *group, const char *name,
                                   tp_hdf5_texts *list, bool *out_exists)
{
    const hid_t object = H5Gopen2(guest->file, *group ? group : "/", H5P_DEFAULT);
    if (object < 0) return tp_hdf5_fail(guest, "the group", group);
    tpucl_status status = TPUCL_OK;
    *out_exists = H5Aexists(object, name) > 0;
    if (*out_exists) {
        const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
        const hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
        const hid_t space = attribute < 0 ? -1 : H5Aget_space(attribute);
        if (type < 0 || space < 0)
            status = tp_hdf5_fail(guest, "the attribute", name);
        else
            status = read_texts(guest, name, attribute, type, space, list);
        if (space >= 0) H5Sclose(space);
        if (type >= 0) H5Tclose(type);
        if (attribute >= 0) H5Aclose(attribute);
    }
    H5Gclose(object);
    return status;
}

/* name, or name0, name1, ... until one is missing. */
tpucl_status tp_hdf5_read_texts(tp_hdf5_guest *guest, const char *group, const char *name,
                                tp_hdf5_texts *texts, bool *out_exists)
{
    TP_TRY(read_attribute(guest, group, name, texts, out_exists));
    for (int piece = 0; !*out_exists || piece > 0; piece++) {
        bool is_there = false;
        const char *piece_name = tp_arena_printf(guest->arena, "%s%d", name, piece);
        if (!piece_name) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(read_attribute(guest, group, piece_name, texts, &is_there));
        if (!is_there) break;
        *out_exists = true;
    }
    return TPUCL_OK;
}
