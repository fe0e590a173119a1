/* SPDX-License-Identifier: Apache-2.0
 * The walk over a hostile HDF5 file: what may be in it, and the table of its datasets. */
#include <string.h>
#include "core/str.h"
#include "io/hdf5_library.h"

/* ---- element types ---- */

static bool is_half(hid_t type)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    return H5Tget_size(type) == 2 && H5Tget_precision(type) == 16 && H5Tget_offset(type) == 0 &&
           H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
           sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 &&
           mantissa_bits == 10 && H5Tget_ebias(type) == 15;
}

static bool is_float(hid_t type)
{
    return H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0 ||
           H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0 ||
           is_half(type);
}

/* Whether the dataset has the attribute dtype = "bfloat16", which is how Keras marks such data. */
static bool is_marked_bfloat16(hid_t dataset)
{
    char text[16] = {0};
    bool is_marked = false;
    if (H5Aexists(dataset, "dtype") <= 0) return false;
    const hid_t attribute = H5Aopen(dataset, "dtype", H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1) {
        char *variable = NULL;
        if (H5Tis_variable_str(type) > 0) {
            if (H5Aread(attribute, type, &variable) >= 0 && variable)
                is_marked = strcmp(variable, "bfloat16") == 0;
            if (variable) H5free_memory(variable);
        } else if (H5Tget_size(type) < sizeof text && H5Aread(attribute, type, text) >= 0) {
            is_marked = strcmp(text, "bfloat16") == 0;
        }
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return is_marked;
}

bool tp_hdf5_elements_of(hid_t dataset, hid_t type, tp_hdf5_elements *out_elements)
{
    const H5T_class_t class = H5Tget_class(type);
    const size_t bytes = H5Tget_size(type);
    const bool may_be_pair = bytes == 2 && (class == H5T_OPAQUE || class == H5T_INTEGER);
    *out_elements = (tp_hdf5_elements){.dtype = TP_F32, .memory_type = H5T_NATIVE_FLOAT};
    if (may_be_pair && is_marked_bfloat16(dataset)) {
        out_elements->dtype = TP_BF16;
        out_elements->is_opaque_pair = class == H5T_OPAQUE;
        out_elements->memory_type = H5T_NATIVE_UINT16;
        return true;
    }
    if (class == H5T_FLOAT) return is_float(type);
    if (class != H5T_INTEGER || bytes > 8 || H5Tget_precision(type) != 8 * bytes) return false;
    const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    if (bytes == 1 && !is_signed) {
        out_elements->dtype = TP_U8;
        out_elements->memory_type = H5T_NATIVE_UCHAR;
    } else if (bytes == 4 && !is_signed) {
        out_elements->dtype = TP_U32;
        out_elements->memory_type = H5T_NATIVE_UINT32;
    } else {
        out_elements->dtype = TP_S32;
        out_elements->is_wide = bytes == 8;
        out_elements->memory_type = bytes == 8 ? H5T_NATIVE_INT64 : H5T_NATIVE_INT32;
    }
    return true;
}

/* ---- datasets ---- */

static tpucl_status corrupt(const tp_hdf5_guest *guest, const char *path, const char *what)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': '%.200s' %s", guest->name, path, what);
}

static tpucl_status check_layout(const tp_hdf5_guest *guest, const char *path, hid_t creation)
{
    const H5D_layout_t layout = H5Pget_layout(creation);
    if (layout != H5D_CONTIGUOUS && layout != H5D_COMPACT && layout != H5D_CHUNKED)
        return corrupt(guest, path, "is a virtual dataset: its data are in other files");
    if (H5Pget_external_count(creation) != 0)
        return corrupt(guest, path, "has its data in other files");
    const int filters = H5Pget_nfilters(creation);
    if (filters < 0 || filters > 4) return corrupt(guest, path, "has too many filters");
    for (int i = 0; i < filters; i++) {
        unsigned int flags, config, values[8];
        size_t value_count = 8;
        const H5Z_filter_t filter =
            H5Pget_filter2(creation, (unsigned)i, &flags, &value_count, values, 0, NULL, &config);
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE)
            return corrupt(guest, path,
                           "goes through a filter other than deflate and shuffle; save it again "
                           "without that compression");
    }
    return TPUCL_OK;
}

static tpucl_status read_shape(const tp_hdf5_guest *guest, const char *path, hid_t space,
                               tp_shape *shape)
{
    hsize_t dims[H5S_MAX_RANK];
    int64_t checked[TP_MAX_RANK];
    const H5S_class_t class = H5Sget_simple_extent_type(space);
    if (class == H5S_NULL) return tp_shape_init(shape, 1, (const int64_t[]){0});
    if (class != H5S_SCALAR && class != H5S_SIMPLE)
        return tp_hdf5_fail(guest, "the shape of", path);
    const int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    if (rank < 0 || rank > TP_MAX_RANK)
        return corrupt(guest, path, "has more than 8 dimensions, or none that can be read");
    for (int i = 0; i < rank; i++) {
        if (dims[i] > (hsize_t)TP_MAX_ELEMS)
            return corrupt(guest, path, "has a dimension of more than 2^40");
        checked[i] = (int64_t)dims[i];
    }
    if (tp_shape_init(shape, rank, checked) != TPUCL_OK)
        return corrupt(guest, path, "has more than 2^40 elements");
    return TPUCL_OK;
}

/* Announced sizes must be near what is there: zeros that were never stored are a cheap bomb. */
static tpucl_status check_size(const tp_hdf5_guest *guest, const char *path, hid_t dataset,
                               hid_t creation, uint64_t bytes, size_t element_bytes)
{
    const uint64_t stored = H5Dget_storage_size(dataset);
    if (bytes > TP_HDF5_RATIO_FREE_BYTES && bytes / TP_HDF5_MAX_RATIO > stored)
        return corrupt(guest, path, "announces more than 1000 times what is stored of it");
    if (H5Pget_layout(creation) != H5D_CHUNKED) return TPUCL_OK;
    hsize_t dims[H5S_MAX_RANK];
    uint64_t chunk_bytes = element_bytes;
    const int rank = H5Pget_chunk(creation, H5S_MAX_RANK, dims);
    bool is_sane = rank >= 0;
    for (int i = 0; i < rank && is_sane; i++)
        is_sane = !__builtin_mul_overflow(chunk_bytes, dims[i], &chunk_bytes);
    if (!is_sane || (chunk_bytes > TP_HDF5_RATIO_FREE_BYTES && chunk_bytes / 4 > bytes))
        return corrupt(guest, path, "has chunks that are much larger than itself");
    return TPUCL_OK;
}

static tpucl_status read_dataset(tp_hdf5_guest *guest, hid_t dataset, const char *path)
{
    tp_hdf5_dataset row = {.path = tp_arena_strdup(guest->arena, path)};
    tp_hdf5_elements elements;
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const hid_t creation = H5Dget_create_plist(dataset);
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    if (!row.path) goto done;
    if (type < 0 || space < 0 || creation < 0) {
        status = tp_hdf5_fail(guest, "the dataset", path);
        goto done;
    }
    TP_TRY_GOTO(status, check_layout(guest, path, creation), done);
    TP_TRY_GOTO(status, read_shape(guest, path, space, &row.shape), done);
    row.is_readable = tp_hdf5_elements_of(dataset, type, &elements);
    row.dtype = elements.dtype;
    const size_t element_bytes = H5Tget_size(type);
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)tp_shape_elems(&row.shape), element_bytes, &bytes)) {
        status = corrupt(guest, path, "has more bytes than can be counted");
        goto done;
    }
    TP_TRY_GOTO(status, check_size(guest, path, dataset, creation, bytes, element_bytes), done);
    status = tp_hdf5_datasets_push(&guest->datasets, row);
done:
    if (creation >= 0) H5Pclose(creation);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return status;
}

/* ---- groups ---- */

typedef struct walk {
    tp_hdf5_guest *guest;
    const char *path; /* of the group, "" for the root */
    int depth;
    tpucl_status status;
} walk;

static tpucl_status walk_group(tp_hdf5_guest *guest, hid_t group, const char *path, int depth);

static tpucl_status walk_object(tp_hdf5_guest *guest, hid_t parent, const char *name,
                                const char *path, int depth)
{
    if (++guest->object_count > TP_HDF5_MAX_OBJECTS)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' has more than %d groups and datasets", guest->name,
                       TP_HDF5_MAX_OBJECTS);
    const hid_t object = H5Oopen(parent, name, H5P_DEFAULT);
    if (object < 0) return tp_hdf5_fail(guest, "the object", path);
    const H5I_type_t kind = H5Iget_type(object);
    tpucl_status status;
    if (kind == H5I_GROUP)
        status = walk_group(guest, object, path, depth + 1);
    else if (kind == H5I_DATASET)
        status = read_dataset(guest, object, path);
    else
        status = corrupt(guest, path, "is neither a group nor a dataset");
    H5Oclose(object);
    return status;
}

/* Names stand between slashes in paths, and end up in messages and files. */
static bool is_name_sane(const char *name)
{
    const size_t length = strlen(name);
    if (length == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return false;
    for (size_t i = 0; i < length;) {
        const size_t step = tp_str_utf8_length(name + i, length - i);
        if (step == 0 || (unsigned char)name[i] < 0x20) return false;
        i += step;
    }
    return true;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *user)
{
    walk *at = user;
    char path[TP_HDF5_MAX_PATH_BYTES];
    const size_t length = strlen(at->path) + strlen(name) + 2;
    if (length > sizeof path || !is_name_sane(name)) {
        at->status = corrupt(at->guest, at->path, "holds something whose name is too long or odd");
        return -1;
    }
    strcpy(path, at->path);
    if (*path) strcat(path, "/");
    strcat(path, name);
    if (link->type != H5L_TYPE_HARD)
        at->status = corrupt(at->guest, path, "is a link; models have none");
    else
        at->status = walk_object(at->guest, group, name, path, at->depth);
    return at->status == TPUCL_OK ? 0 : -1;
}

static tpucl_status walk_group(tp_hdf5_guest *guest, hid_t group, const char *path, int depth)
{
    walk at = {.guest = guest, .path = path, .depth = depth};
    if (depth > TP_HDF5_MAX_DEPTH)
        return corrupt(guest, path, "is a group inside more than 32 others");
    const char *copy = tp_arena_strdup(guest->arena, path);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_hdf5_texts_push(&guest->groups, copy));
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_link, &at) >= 0) return TPUCL_OK;
    return at.status != TPUCL_OK ? at.status : tp_hdf5_fail(guest, "the group", path);
}

tpucl_status tp_hdf5_read_table(tp_hdf5_guest *guest)
{
    const hid_t root = H5Gopen2(guest->file, "/", H5P_DEFAULT);
    if (root < 0) return tp_hdf5_fail(guest, "the group", "/");
    const tpucl_status status = walk_group(guest, root, "", 0);
    H5Gclose(root);
    return status;
}
