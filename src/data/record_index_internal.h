/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files of the index: what is known of a file and of a record. */
#ifndef TP_DATA_RECORD_INDEX_INTERNAL_H
#define TP_DATA_RECORD_INDEX_INTERNAL_H

#include "core/array.h"
#include "data/record_index.h"

typedef struct tp_record_entry {
    uint64_t offset; /* of the contents, in the file or in the file's `bytes` */
    uint32_t length, file;
} tp_record_entry;

TP_ARRAY_DEFINE(tp_record_list, tp_record_entry)

typedef struct tp_record_file {
    char *path;
    int descriptor; /* -1: opened for each record */
    uint8_t
        *bytes; /* contents of its records one after the other, or NULL: it is read when needed */
    tp_record_list records; /* until the order is made */
} tp_record_file;

struct tp_record_index {
    tp_record_file *files;
    int32_t file_count;
    int32_t *places; /* for making the order */
    int64_t *cursors;
    tp_record_entry *entries; /* [count] */
    int64_t count, faults;
    uint64_t resident_bytes;
};

/* Finds the records of one file. */
tpucl_status tp_record_file_index(tp_record_index *index, int32_t file,
                                  const tp_record_index_options *options) TPUCL_MUST_CHECK;

tpucl_status tp_record_file_open(const char *path, int *out_descriptor) TPUCL_MUST_CHECK;
/* Fewer than `bytes` only at the end. */
tpucl_status tp_record_file_read(int descriptor, const char *path, uint64_t offset, void *out,
                                 size_t bytes, size_t *out_got) TPUCL_MUST_CHECK;

#endif
