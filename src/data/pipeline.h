/* SPDX-License-Identifier: Apache-2.0
 * Source to batches: order, batch, pad, prefetch. A thread of its own keeps `prefetch` batches ready.
 *
 * Batches never cross an epoch's end: the last one of an epoch is padded with zeros and says how many of its
 * rows are real. What batch i of epoch e holds depends on seed, e and i only.
 *
 * Threads: thread-compatible; the consumer is one thread.
 */
#ifndef TP_DATA_PIPELINE_H
#define TP_DATA_PIPELINE_H

#include "data/source.h"

typedef struct tp_pipeline tp_pipeline;

typedef struct tp_pipeline_options {
    int64_t batch;        /* rows */
    int64_t first, count; /* range of the source's examples; count 0: to the end */
    bool shuffle;
    int64_t shuffle_buffer; /* examples; 0: the whole range */
    uint64_t seed;
    int64_t epochs;       /* 0: without end */
    int32_t prefetch;     /* batches kept ready, at most 1024; 0: 2 */
    uint32_t start_epoch; /* to go on where an earlier pipeline was: */
    int64_t start_batch;  /* batches of start_epoch to leave out */
} tp_pipeline_options;

/* Borrowed until the next tp_pipeline_next. */
typedef struct tp_batch {
    void *arrays
        [TP_SOURCE_MAX_FIELDS]; /* [batch, field shape], row-major, in the source's field order */
    int64_t valid;              /* rows that are examples; the others are zero */
    uint32_t epoch;
    int64_t index; /* in the epoch */
    bool is_last_of_epoch;
} tp_batch;

/* Borrows the source. */
tpucl_status tp_pipeline_create(const tp_source *source, const tp_pipeline_options *options,
                                tp_pipeline **out_pipeline);
void tp_pipeline_destroy(tp_pipeline *pipeline);

/* TPUCL_END_OF_DATA behind the last epoch. */
tpucl_status tp_pipeline_next(tp_pipeline *pipeline, const tp_batch **out_batch);

int64_t tp_pipeline_batches_per_epoch(const tp_pipeline *pipeline);

#endif
