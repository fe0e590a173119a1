/* SPDX-License-Identifier: Apache-2.0
 * Stands for hdf5_*.c in a build without libhdf5. */
#include "io/hdf5.h"

static tpucl_status refuse(const char *name)
{
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "'%s' needs HDF5, and this build of tpucl has no libhdf5; install its "
                   "development files and build again",
                   name);
}

tpucl_status tp_hdf5_open(const char *path, tp_hdf5 **out_file)
{
    (void)out_file;
    return refuse(path);
}

tpucl_status tp_hdf5_open_bytes(const void *bytes, size_t length, const char *name,
                                tp_hdf5 **out_file)
{
    (void)bytes, (void)length, (void)out_file;
    return refuse(name);
}

void tp_hdf5_close(tp_hdf5 *file)
{
    (void)file;
}

int32_t tp_hdf5_dataset_count(const tp_hdf5 *file)
{
    (void)file;
    return 0;
}

const tp_hdf5_dataset *tp_hdf5_dataset_at(const tp_hdf5 *file, int32_t index)
{
    (void)file, (void)index;
    return NULL;
}

const tp_hdf5_dataset *tp_hdf5_find_dataset(const tp_hdf5 *file, const char *path)
{
    (void)file, (void)path;
    return NULL;
}

bool tp_hdf5_has_group(const tp_hdf5 *file, const char *path)
{
    (void)file, (void)path;
    return false;
}

tpucl_status tp_hdf5_read(tp_hdf5 *file, const tp_hdf5_dataset *dataset, void *out_elements)
{
    (void)file, (void)out_elements;
    return refuse(dataset->path);
}

tpucl_status tp_hdf5_attribute_text(tp_hdf5 *file, const char *group, const char *name,
                                    tp_arena *arena, const char **out_text)
{
    (void)file, (void)group, (void)arena, (void)out_text;
    return refuse(name);
}

tpucl_status tp_hdf5_attribute_texts(tp_hdf5 *file, const char *group, const char *name,
                                     tp_arena *arena, const char *const **out_texts,
                                     size_t *out_count)
{
    (void)file, (void)group, (void)arena, (void)out_texts, (void)out_count;
    return refuse(name);
}

tpucl_status tp_hdf5_writer_create(tp_hdf5_writer **out_writer)
{
    (void)out_writer;
    return refuse("a weights file");
}

tpucl_status tp_hdf5_put_group(tp_hdf5_writer *writer, const char *path)
{
    (void)writer;
    return refuse(path);
}

tpucl_status tp_hdf5_put_dataset(tp_hdf5_writer *writer, const char *path, tp_dtype dtype,
                                 const tp_shape *shape, const void *elements)
{
    (void)writer, (void)dtype, (void)shape, (void)elements;
    return refuse(path);
}

tpucl_status tp_hdf5_put_text(tp_hdf5_writer *writer, const char *group, const char *name,
                              const char *text)
{
    (void)writer, (void)group, (void)text;
    return refuse(name);
}

tpucl_status tp_hdf5_writer_finish(tp_hdf5_writer *writer, char **out_bytes, size_t *out_length)
{
    (void)writer, (void)out_bytes, (void)out_length;
    return refuse("a weights file");
}

void tp_hdf5_writer_destroy(tp_hdf5_writer *writer)
{
    (void)writer;
}
