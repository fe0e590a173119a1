/* SPDX-License-Identifier: Apache-2.0
 * HDF5 files, as Keras stores weights in them: groups, datasets, text attributes. A file is hostile until
 * parsed. Opening walks the whole file once and refuses
 *   - soft, external and user-defined links (they lead out of the file, or in circles), named types
 *   - more objects, deeper groups or longer names than any model has
 *   - datasets stored outside the file, virtual ones, filters other than deflate and shuffle
 *   - ranks and sizes beyond the limits of shapes, and datasets that announce more than TP_HDF5_MAX_RATIO
 *     times what is stored of them
 * before memory is asked for. libhdf5 itself does not survive hostile files, so it reads in a child process,
 * which is started by open, ends with close, has limits on time and memory, and whose answers are checked: when
 * it dies, that is TPUCL_CORRUPT_DATA. Its error stack becomes part of one sentence.
 *
 * tp_hdf5 is thread-compatible. The writer uses the library in this process, whose state is global: one writer
 * at a time. A build without libhdf5 answers with TPUCL_UNSUPPORTED.
 */
#ifndef TP_IO_HDF5_H
#define TP_IO_HDF5_H

#include <stddef.h>
#include <stdint.h>
#include "core/arena.h"
#include "core/status.h"
#include "num/dtype.h"
#include "num/shape.h"

enum {
    TP_HDF5_MAX_OBJECTS = 1 << 16,
    TP_HDF5_MAX_DEPTH = 32,
    TP_HDF5_MAX_PATH_BYTES = 1024,
    TP_HDF5_MAX_RATIO = 1000,
    TP_HDF5_RATIO_FREE_BYTES = 256 * 1024,
    TP_HDF5_MAX_TEXT_BYTES = 256 << 20 /* of one attribute: a model_config may be large */
};

typedef struct tp_hdf5 tp_hdf5;

typedef struct tp_hdf5_dataset {
    const char *path; /* "layers/dense/vars/0" */
    bool is_readable; /* false: elements that tpucl has no type for (texts, tables, ...) */
    tp_dtype dtype;   /* as read: f64 and f16 are read as f32, other integers as s32 */
    tp_shape shape;
} tp_hdf5_dataset;

tpucl_status tp_hdf5_open(const char *path, tp_hdf5 **out_file) TPUCL_MUST_CHECK;
/* `bytes` are borrowed for the call (the child has its own copy of them); `name` appears in messages. */
tpucl_status tp_hdf5_open_bytes(const void *bytes, size_t length, const char *name,
                                tp_hdf5 **out_file) TPUCL_MUST_CHECK;
void tp_hdf5_close(tp_hdf5 *file);

/* Datasets by groups, each group's in byte order of names. Borrowed until closed. */
int32_t tp_hdf5_dataset_count(const tp_hdf5 *file);
const tp_hdf5_dataset *tp_hdf5_dataset_at(const tp_hdf5 *file, int32_t index);
const tp_hdf5_dataset *tp_hdf5_find_dataset(const tp_hdf5 *file, const char *path);
bool tp_hdf5_has_group(const tp_hdf5 *file, const char *path); /* "" is the root */

/* All elements, row-major, into room for tp_shape_bytes(shape, dtype). Integers beyond s32 are
 * TPUCL_CORRUPT_DATA. */
tpucl_status tp_hdf5_read(tp_hdf5 *file, const tp_hdf5_dataset *dataset,
                          void *out_elements) TPUCL_MUST_CHECK;

/* A text attribute of a group, fixed or variable in length; *out_text is NULL when it is absent. */
tpucl_status tp_hdf5_attribute_text(tp_hdf5 *file, const char *group, const char *name,
                                    tp_arena *arena, const char **out_text) TPUCL_MUST_CHECK;
/* A list of texts. Keras splits lists of more than 64512 bytes into name0, name1, ...: joined here.
 * *out_texts is NULL when it is absent, never for an empty list. */
tpucl_status tp_hdf5_attribute_texts(tp_hdf5 *file, const char *group, const char *name,
                                     tp_arena *arena, const char *const **out_texts,
                                     size_t *out_count) TPUCL_MUST_CHECK;

/* ---- writing, in memory ---- */
typedef struct tp_hdf5_writer tp_hdf5_writer;
tpucl_status tp_hdf5_writer_create(tp_hdf5_writer **out_writer) TPUCL_MUST_CHECK;
/* Missing parents are made; a group that exists is fine. */
tpucl_status tp_hdf5_put_group(tp_hdf5_writer *writer, const char *path) TPUCL_MUST_CHECK;
/* f32, bf16 (two opaque bytes and the attribute dtype = "bfloat16", as Keras does), s32, u32, u8. */
tpucl_status tp_hdf5_put_dataset(tp_hdf5_writer *writer, const char *path, tp_dtype dtype,
                                 const tp_shape *shape, const void *elements) TPUCL_MUST_CHECK;
tpucl_status tp_hdf5_put_text(tp_hdf5_writer *writer, const char *group, const char *name,
                              const char *text) TPUCL_MUST_CHECK;
/* The file's bytes (tp_free). */
tpucl_status tp_hdf5_writer_finish(tp_hdf5_writer *writer, char **out_bytes,
                                   size_t *out_length) TPUCL_MUST_CHECK;
void tp_hdf5_writer_destroy(tp_hdf5_writer *writer);

#endif
