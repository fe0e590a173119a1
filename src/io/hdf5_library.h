/* SPDX-License-Identifier: Apache-2.0
 * The only file that includes libhdf5; for hdf5_read.c, hdf5_table.c and hdf5_write.c alone.
 *
 * Every function that calls the library does so between quiet and loud: libhdf5 prints its error stack
 * unless told otherwise, and an embedder's own setting must come back.
 */
#ifndef TP_IO_HDF5_LIBRARY_H
#define TP_IO_HDF5_LIBRARY_H

#include <hdf5.h>
#include <hdf5_hl.h>
#include "core/array.h"
#include "core/map.h"
#include "io/hdf5.h"

TP_ARRAY_DEFINE(tp_hdf5_datasets, tp_hdf5_dataset)

struct tp_hdf5 {
    tp_arena *arena;
    const char *name;
    hid_t file;
    tp_hdf5_datasets datasets;
    tp_map dataset_paths, group_paths;
    int32_t object_count;
};

typedef struct tp_hdf5_quiet {
    H5E_auto2_t print;
    void *user;
} tp_hdf5_quiet;

static inline tp_hdf5_quiet tp_hdf5_begin(void)
{
    tp_hdf5_quiet quiet = {0};
    H5Eget_auto2(H5E_DEFAULT, &quiet.print, &quiet.user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return quiet;
}

static inline void tp_hdf5_end(const tp_hdf5_quiet *quiet)
{
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, quiet->print, quiet->user);
}

/* "'file': <what> '<path>': <libhdf5's innermost description>", TPUCL_CORRUPT_DATA. */
tpucl_status tp_hdf5_fail(const char *file_name, const char *what, const char *path);

/* Walks the file, checks it and fills the tables. In hdf5_table.c. */
tpucl_status tp_hdf5_read_table(tp_hdf5 *file) TPUCL_MUST_CHECK;

/* How elements of a dataset are read; false when tpucl has no type for them. */
typedef struct tp_hdf5_elements {
    tp_dtype dtype;
    hid_t memory_type;   /* of the library, not to be closed; of s64_t for wide integers */
    bool is_wide;        /* integers that are read as int64_t and then must fit into s32 */
    bool is_opaque_pair; /* bfloat16: two opaque bytes */
} tp_hdf5_elements;
bool tp_hdf5_elements_of(hid_t dataset, hid_t type, tp_hdf5_elements *out_elements);

#endif
