/* SPDX-License-Identifier: Apache-2.0
 * The only file that includes libhdf5; for the files hdf5_*.c.
 *
 * libhdf5 does not survive hostile files: a few flipped bytes make it write outside its memory, leak or ask for
 * petabytes. So a file is read by a process of its own, the guest, which does nothing else and has limits on
 * memory and time. The host (hdf5_host.c) asks it for the table, for texts and for elements over a socket, and
 * believes none of the answers. When the guest dies, the file is corrupt; that is all.
 *
 *   hdf5_host.c    the functions of io/hdf5.h: starts the guest, asks, checks answers
 *   hdf5_guest.c   the guest: answers requests
 *   hdf5_table.c   in the guest: the walk over the file
 *   hdf5_read.c    in the guest: elements and texts
 *   hdf5_write.c   writing, in the calling process: what is written is our own
 */
#ifndef TP_IO_HDF5_LIBRARY_H
#define TP_IO_HDF5_LIBRARY_H

#include <hdf5.h>
#include <hdf5_hl.h>
#include "core/array.h"
#include "core/map.h"
#include "io/hdf5.h"

TP_ARRAY_DEFINE(tp_hdf5_datasets, tp_hdf5_dataset)
TP_ARRAY_DEFINE(tp_hdf5_texts, const char *)

/* The guest's view of a file. */
typedef struct tp_hdf5_guest {
    tp_arena *arena;
    const char *name;
    hid_t file;
    tp_hdf5_datasets datasets;
    tp_hdf5_texts groups; /* paths, "" for the root */
    int32_t object_count;
} tp_hdf5_guest;

/* "'file': <what> '<path>' cannot be read: <libhdf5's innermost description>", TPUCL_CORRUPT_DATA. */
tpucl_status tp_hdf5_fail(const tp_hdf5_guest *guest, const char *what, const char *path);

/* Walks the file, checks it and fills the tables. */
tpucl_status tp_hdf5_read_table(tp_hdf5_guest *guest) TPUCL_MUST_CHECK;
/* Elements as dataset->dtype, row-major. */
tpucl_status tp_hdf5_read_elements(tp_hdf5_guest *guest, const tp_hdf5_dataset *dataset,
                                   void *out_elements) TPUCL_MUST_CHECK;
/* Appends the texts of an attribute, out of all its pieces when it was split. */
tpucl_status tp_hdf5_read_texts(tp_hdf5_guest *guest, const char *group, const char *name,
                                tp_hdf5_texts *texts, bool *out_exists) TPUCL_MUST_CHECK;

/* How elements of a dataset are read; false when tpucl has no type for them. */
typedef struct tp_hdf5_elements {
    tp_dtype dtype;
    hid_t memory_type;   /* of the library, not to be closed */
    bool is_wide;        /* integers that are read as int64_t and then must fit into s32 */
    bool is_opaque_pair; /* bfloat16 as two opaque bytes */
} tp_hdf5_elements;
bool tp_hdf5_elements_of(hid_t dataset, hid_t type, tp_hdf5_elements *out_elements);

/* ---- between host and guest ---- */

typedef enum tp_hdf5_question {
    TP_HDF5_ASK_TABLE,
    TP_HDF5_ASK_ELEMENTS,
    TP_HDF5_ASK_TEXTS
} tp_hdf5_question;

typedef struct tp_hdf5_request {
    int32_t question;                              /* tp_hdf5_question */
    int32_t dataset;                               /* ELEMENTS: its index */
    char group[TP_HDF5_MAX_PATH_BYTES], name[256]; /* TEXTS */
} tp_hdf5_request;

/* Followed by `bytes` bytes: a table (below), elements, or texts, each ended by a zero. */
typedef struct tp_hdf5_answer {
    int32_t status;
    int32_t exists; /* TEXTS */
    uint64_t bytes;
    char message[512];
} tp_hdf5_answer;

/* A row of the table; groups have rank -1. */
typedef struct tp_hdf5_row {
    int32_t rank, dtype, is_readable;
    int64_t dims[TP_MAX_RANK];
    char path[TP_HDF5_MAX_PATH_BYTES];
} tp_hdf5_row;

/* All of the bytes, or false when the other side is gone. */
bool tp_hdf5_transfer(int socket, void *bytes, size_t length, bool is_sending);

/* What is to be opened. */
typedef struct tp_hdf5_source {
    const char *name;  /* path, or what it is called in messages */
    const void *bytes; /* NULL: the file at that path */
    size_t length;
} tp_hdf5_source;

/* The guest's whole life: opens, answers until the socket closes. Returns when there is nothing left to do. */
void tp_hdf5_serve(int socket, const tp_hdf5_source *source);

#endif
