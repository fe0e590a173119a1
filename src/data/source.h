/* SPDX-License-Identifier: Apache-2.0
 * A source: a fixed number of examples that can be read in any order, from any thread. Each example has
 * named fields of fixed dtype and shape ("image" u8 [28,28,1], "label" s32 []).
 *
 * Files are hostile until parsed: sizes are checked against the file before anything is allocated.
 * Thread-safe once created.
 */
#ifndef TP_DATA_SOURCE_H
#define TP_DATA_SOURCE_H

#include "core/status.h"
#include "num/dtype.h"
#include "num/shape.h"

enum { TP_SOURCE_MAX_FIELDS = 32 };

typedef struct tp_field {
    const char *name;
    tp_dtype dtype;
    tp_shape shape; /* of one example */
    uint64_t bytes; /* of one example */
} tp_field;

/* Where an example is wanted: what its random numbers are drawn by. */
typedef struct tp_source_place {
    int64_t example;
    int64_t row;   /* in the global batch */
    uint32_t step; /* batches before this one since the training began */
    bool is_training;
} tp_source_place;

typedef struct tp_source tp_source;

/* A source that reads examples one by one, instead of having all of them in `arrays`. */
typedef struct tp_source_ops {
    /* What a thread needs to read: one each, any number of them. Closing accepts NULL. */
    tpucl_status (*open_worker)(const tp_source *source, void **out_worker);
    void (*close_worker)(void *worker);
    /* An example's fields to out[field]. *out_is_there false: it is damaged, and is to be left out. */
    tpucl_status (*read)(const tp_source *source, void *worker, const tp_source_place *place,
                         void *const *out, bool *out_is_there);
    /* From now on labels of the field are 0 .. classes - 1 or `ignored` (NaN: nothing is), or reading fails.
     * Before other threads know the source. */
    void (*expect_classes)(tp_source *source, int32_t field, int64_t classes, double ignored);
    tpucl_status (*wait)(
        const tp_source *source); /* as tp_source_wait; NULL: there is nothing to wait for */
    void (*destroy)(void *state); /* accepts NULL */
} tp_source_ops;

struct tp_source {
    tp_field fields[TP_SOURCE_MAX_FIELDS];
    int32_t field_count;
    int32_t label_count; /* the last fields are labels, the others inputs */
    int64_t example_count;
    void *arrays[TP_SOURCE_MAX_FIELDS]; /* [example_count, shape], row-major; owned */
    bool is_borrowed;                   /* arrays belong to the caller of tp_source_from_arrays */
    struct tp_source_loader *loader;    /* fills an array in the background; NULL: all is there */
    const tp_source_ops *ops; /* NULL: the examples are in `arrays`; else some fields may be */
    void *state;              /* of ops */
};

/* IDX files (gzip or plain): `inputs` of any rank, u8, gives field "image" (rank 3 gets a channel axis:
 * [28,28] -> [28,28,1]); `labels` of rank 1, u8, gives "label" s32 []. Counts must be equal.
 * TPUCL_CORRUPT_DATA names file, offset, what was expected and found. */
tpucl_status tp_source_open_idx(const char *inputs, const char *labels, tp_source **out_source);

/* Debian's dataset-fashion-mnist, or a folder with the four files; NULL: TPUCL_DATA_DIR, then the system's
 * folder. TPUCL_NOT_FOUND says which package brings it. */
tpucl_status tp_source_open_fashion_mnist(const char *folder, bool is_test, tp_source **out_source);

/* .npy files, C order: inputs u8 or f32 (f64 is narrowed) -> "image"; labels integers of any width -> "label"
 * s32 when rank 1, floats -> "label" f32 [..]. */
tpucl_status tp_source_open_npy(const char *inputs, const char *labels, tp_source **out_source);

typedef struct tp_source_file {
    const char *path, *name; /* the name of the field */
    bool is_label;
} tp_source_file;

/* Several .npy files, inputs before labels, all with as many examples: fields of those names. Bytes of inputs
 * stay u8; other integers become s32, floats f32. */
tpucl_status tp_source_open_npy_files(const tp_source_file *files, int32_t file_count,
                                      tp_source **out_source);

/* One more array of a source that was read from .npy files, with as many examples. */
tpucl_status tp_source_add_npy(tp_source *source, const tp_source_file *file);

/* The caller's arrays, borrowed: they outlive the source and do not change. `fields` names and shapes are
 * copied. */
tpucl_status tp_source_from_arrays(const tp_field *fields, const void *const *arrays,
                                   int32_t field_count, int64_t example_count,
                                   tp_source **out_source);

/* Large files of inputs go on being read after they were opened and their headers checked; labels are there
 * at once. The arrays are complete, or the reason why not is reported, when this returns. Any number of
 * threads may call it, any number of times. */
tpucl_status tp_source_wait(const tp_source *source);

/* Rounds inputs of f32 to bf16 (to nearest), once they are read; their fields are bf16 then. For sources that own
 * their arrays, before other threads know them. */
tpucl_status tp_source_narrow_inputs(tp_source *source);

void tp_source_destroy(tp_source *source);

/* Index of a field by name; -1: none. */
int32_t tp_source_find_field(const tp_source *source, const char *name);

#endif
