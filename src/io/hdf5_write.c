/* SPDX-License-Identifier: Apache-2.0
 * HDF5 files made in memory: the same calls give the same bytes, because no times are stored. */
#include <string.h>
#include "io/hdf5_library.h"

/* libhdf5 prints its error stack unless told otherwise; an embedder's own setting must come back. */
typedef struct quiet_state {
    H5E_auto2_t print;
    void *user;
} quiet_state;

static quiet_state quiet_begin(void)
{
    quiet_state quiet = {0};
    H5Eget_auto2(H5E_DEFAULT, &quiet.print, &quiet.user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return quiet;
}

static void quiet_end(const quiet_state *quiet)
{
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, quiet->print, quiet->user);
}

struct tp_hdf5_writer {
    hid_t file, group_creation; /* the latter makes missing parents */
};

static tpucl_status fail(const char *what, const char *path)
{
    return TP_FAIL(TPUCL_INTERNAL, "the HDF5 library could not %s '%.200s'", what, path);
}

tpucl_status tp_hdf5_writer_create(tp_hdf5_writer **out_writer)
{
    enum { GROW_BYTES = 1 << 20 };
    tp_hdf5_writer *writer = TP_NEW(tp_hdf5_writer);
    if (!writer) return TPUCL_OUT_OF_MEMORY;
    const quiet_state quiet = quiet_begin();
    const hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, GROW_BYTES, 0);
    H5Pset_obj_track_times(creation, 0);
    writer->file = H5Fcreate("memory", H5F_ACC_TRUNC, creation, access);
    writer->group_creation = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(writer->group_creation, 1);
    H5Pclose(creation);
    H5Pclose(access);
    quiet_end(&quiet);
    if (writer->file >= 0 && writer->group_creation >= 0) {
        *out_writer = writer;
        return TPUCL_OK;
    }
    tp_hdf5_writer_destroy(writer);
    return fail("make", "a file in memory");
}

void tp_hdf5_writer_destroy(tp_hdf5_writer *writer)
{
    if (!writer) return;
    const quiet_state quiet = quiet_begin();
    if (writer->group_creation >= 0) H5Pclose(writer->group_creation);
    if (writer->file >= 0) H5Fclose(writer->file);
    quiet_end(&quiet);
    tp_free(writer);
}

/* H5Lexists wants every parent to exist. */
static bool exists(hid_t file, const char *path)
{
    char part[TP_HDF5_MAX_PATH_BYTES];
    const size_t length = strlen(path);
    if (length >= sizeof part) return false;
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != 0) continue;
        const char kept = part[i];
        part[i] = 0;
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0) return false;
        part[i] = kept;
    }
    return true;
}

tpucl_status tp_hdf5_put_group(tp_hdf5_writer *writer, const char *path)
{
    tpucl_status status = TPUCL_OK;
    const quiet_state quiet = quiet_begin();
    if (!exists(writer->file, path)) {
        const hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
        H5Pset_obj_track_times(creation, 0);
        const hid_t group =
            H5Gcreate2(writer->file, path, writer->group_creation, creation, H5P_DEFAULT);
        H5Pclose(creation);
        if (group < 0)
            status = fail("make the group", path);
        else
            H5Gclose(group);
    }
    quiet_end(&quiet);
    return status;
}

/* One text of variable length, as h5py writes a Python string. */
static tpucl_status put_text(hid_t object, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    tpucl_status status = TPUCL_OK;
    if (attribute < 0 || H5Awrite(attribute, type, &text) < 0)
        status = fail("write the attribute", name);
    if (attribute >= 0) H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    return status;
}

tpucl_status tp_hdf5_put_text(tp_hdf5_writer *writer, const char *group, const char *name,
                              const char *text)
{
    const quiet_state quiet = quiet_begin();
    tpucl_status status = TPUCL_OK;
    const hid_t object = H5Gopen2(writer->file, *group ? group : "/", H5P_DEFAULT);
    if (object < 0) {
        status = fail("find the group", group);
    } else {
        status = put_text(object, name, text);
        H5Gclose(object);
    }
    quiet_end(&quiet);
    return status;
}

/* Types in the file are little-endian; a new type of two opaque bytes for bf16. */
static hid_t file_type(tp_dtype dtype)
{
    switch (dtype) {
    case TP_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case TP_S32:
        return H5Tcopy(H5T_STD_I32LE);
    case TP_U32:
        return H5Tcopy(H5T_STD_U32LE);
    case TP_U8:
        return H5Tcopy(H5T_STD_U8LE);
    case TP_BF16: {
        const hid_t type = H5Tcreate(H5T_OPAQUE, 2);
        H5Tset_tag(type, "");
        return type;
    }
    default:
        return -1;
    }
}

tpucl_status tp_hdf5_put_dataset(tp_hdf5_writer *writer, const char *path, tp_dtype dtype,
                                 const tp_shape *shape, const void *elements)
{
    hsize_t dims[TP_MAX_RANK];
    tpucl_status status = TPUCL_OK;
    for (int i = 0; i < shape->rank; i++)
        dims[i] = (hsize_t)shape->dims[i];
    const quiet_state quiet = quiet_begin();
    const hid_t type = file_type(dtype);
    const hid_t space = H5Screate_simple(shape->rank, dims, NULL);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(creation, 0);
    const hid_t dataset =
        H5Dcreate2(writer->file, path, type, space, writer->group_creation, creation, H5P_DEFAULT);
    /* Hosts are little-endian, as devices are (num/dtype.h), so memory has the file's type. */
    if (dataset < 0 || H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements) < 0)
        status = fail("write the dataset", path);
    else if (dtype == TP_BF16)
        status = put_text(dataset, "dtype", "bfloat16");
    if (dataset >= 0) H5Dclose(dataset);
    H5Pclose(creation);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    quiet_end(&quiet);
    return status;
}

tpucl_status tp_hdf5_writer_finish(tp_hdf5_writer *writer, char **out_bytes, size_t *out_length)
{
    const quiet_state quiet = quiet_begin();
    tpucl_status status = TPUCL_OK;
    ssize_t length = H5Fflush(writer->file, H5F_SCOPE_GLOBAL) < 0
                         ? -1
                         : H5Fget_file_image(writer->file, NULL, 0);
    char *bytes = length < 0 ? NULL : tp_alloc((size_t)length + 1);
    if (length < 0)
        status = fail("finish", "the file");
    else if (!bytes)
        status = TPUCL_OUT_OF_MEMORY;
    else if (H5Fget_file_image(writer->file, bytes, (size_t)length) != length)
        status = fail("copy", "the file");
    quiet_end(&quiet);
    if (status != TPUCL_OK) {
        tp_free(bytes);
        return status;
    }
    *out_bytes = bytes;
    *out_length = (size_t)length;
    return TPUCL_OK;
}
