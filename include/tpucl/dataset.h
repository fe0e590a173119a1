/* SPDX-License-Identifier: Apache-2.0
 * Data sets: examples in a seeded order, cut into batches, prepared ahead on worker threads.
 * tpucl_dataset is thread-compatible. */
#ifndef TPUCL_DATASET_H
#define TPUCL_DATASET_H

#include <string.h>
#include <tpucl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tpucl_dataset tpucl_dataset;

/* Zero or NULL in a field means its default. Only grows. */
typedef struct tpucl_dataset_options {
    size_t struct_size;
    const char *kind;   /* "fashion-mnist" (the default), "idx", "npy", "memory" */
    const char *folder; /* where the files are; default: $TPUCL_DATA_DIR, then the system's */
    const char *part;   /* fashion-mnist: "train" (the default) or "test" */
    const char *inputs_file, *labels_file; /* idx (gzip or plain) and npy */
    tpucl_array inputs, labels; /* memory: [examples, ...] each; borrowed while the set is open. The
                                   names are the graph's input names */
    int64_t batch_size;         /* examples; required */
    double scale,
        offset;   /* value * scale + offset; scale 0: 1/255 for bytes, 1 for anything else */
    bool shuffle; /* a new order every epoch, from `seed` */
    int64_t shuffle_buffer; /* examples; default: the whole set */
    int64_t seed;
    bool repeat;         /* begin again at the end; otherwise TPUCL_END_OF_DATA */
    bool drop_remainder; /* no partial batch at the end */
    int32_t prefetch;    /* batches prepared ahead, at most 1024; default 2 */
} tpucl_dataset_options;

static inline tpucl_dataset_options tpucl_dataset_options_default(void)
{
    tpucl_dataset_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

/* A batch. The last one of an epoch may be partial: `example_count` below the batch size. */
typedef struct tpucl_batch {
    int64_t example_count;
    int32_t array_count;
    const tpucl_array *arrays; /* [example_count, ...] each */
} tpucl_batch;

/* Opens and checks the files. Fashion-MNIST and idx bring "image" (u8, [batch, 28, 28, 1]) and
 * "label" (s32, [batch]); npy the same names with the file's shapes, u8 or f32, s32 or f32.
 * Bytes stay bytes on their way to the device: tpucl_scale makes floats of them there. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_dataset_open(const tpucl_dataset_options *options,
                                                           tpucl_dataset **out_dataset);
TPUCL_API void tpucl_dataset_close(tpucl_dataset *dataset);
/* Borrowed until the next call. TPUCL_END_OF_DATA after the last batch. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_dataset_next(tpucl_dataset *dataset,
                                                           tpucl_batch *out_batch);
/* Back to the first batch of the first epoch. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_dataset_rewind(tpucl_dataset *dataset);
/* Examples of one epoch. */
TPUCL_API int64_t tpucl_dataset_example_count(const tpucl_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
