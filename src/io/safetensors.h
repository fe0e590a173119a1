/* SPDX-License-Identifier: Apache-2.0
 * safetensors files (huggingface/safetensors, README "Format"): u64 little-endian length N, N bytes of JSON
 * {"name": {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {string: string}}, then the
 * elements of all tensors without gaps. Read by torch, jax, numpy and keras helpers.
 *
 * Reading treats the file as hostile: sizes are checked against the file before anything is allocated, and
 * offsets must cover the rest of the file exactly.
 */
#ifndef TP_IO_SAFETENSORS_H
#define TP_IO_SAFETENSORS_H

#include "io/stream.h"
#include "num/dtype.h"
#include "num/shape.h"

typedef struct tp_tensor_entry {
    const char *name;
    tp_dtype dtype; /* TP_F32, TP_BF16, TP_S32, TP_U32, TP_U8 */
    tp_shape shape;
    const void *data; /* row-major */
    uint64_t bytes;
} tp_tensor_entry;

/* Writes aside, syncs, renames. Tensors stand in the file by falling element size, then name; `keys` and
 * `values` (may be NULL) become __metadata__. Names must differ and not be "__metadata__". */
tpucl_status tp_safetensors_write(const char *path, const tp_tensor_entry *entries, int32_t count,
                                  const char *const *keys, const char *const *values,
                                  int32_t metadata_count);

/* The same into a stream, which is neither committed nor aborted. */
tpucl_status tp_safetensors_write_to(tp_writer *writer, const tp_tensor_entry *entries,
                                     int32_t count, const char *const *keys,
                                     const char *const *values, int32_t metadata_count);

typedef struct tp_safetensors tp_safetensors;

/* Reads the whole file. TPUCL_CORRUPT_DATA names file, tensor and what is wrong. */
tpucl_status tp_safetensors_open(const char *path, tp_safetensors **out_file);
/* The bytes of a whole file, called `name` in messages; taken over (tp_free), also on failure. */
tpucl_status tp_safetensors_adopt(char *bytes, size_t length, const char *name,
                                  tp_safetensors **out_file);
/* Accepts NULL. */
void tp_safetensors_close(tp_safetensors *file);

int32_t tp_safetensors_count(const tp_safetensors *file);
/* Borrowed until closed. */
const tp_tensor_entry *tp_safetensors_entry(const tp_safetensors *file, int32_t index);
const tp_tensor_entry *tp_safetensors_find(const tp_safetensors *file, const char *name);

#endif
