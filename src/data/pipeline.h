/* SPDX-License-Identifier: Apache-2.0
 * Source to batches: order, read, batch, pad, prefetch. Threads of its own keep `prefetch` batches ready.
 *
 * Batches never cross an epoch's end: the last one of an epoch is padded with zeros and says how many of
 * its rows are real, or is left out. What batch i of epoch e holds depends on seed, e and i only, never on
 * the number of threads: each row has its place before anybody reads it. So the whole state of a pipeline
 * is how many batches were taken, and going on needs nothing else.
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
    int32_t prefetch;     /* batches kept ready, at most 1024; 0: found while it runs */
    int32_t threads;      /* that read, at most 256; 0: found while it runs */
    uint32_t start_epoch; /* to go on where an earlier pipeline was: */
    int64_t start_batch;  /* batches of start_epoch to leave out */
    bool is_training;     /* random changes of the source's are wanted */
    bool drop_remainder;  /* the last batch of an epoch is left out unless it is full */
    /* A batch is handed out when it would have come through a link of this speed; 0: at once. */
    double link_bytes_per_second;
} tp_pipeline_options;

/* Borrowed until the next tp_pipeline_next. */
typedef struct tp_batch {
    void *arrays
        [TP_SOURCE_MAX_FIELDS]; /* [batch, field shape], row-major, in the source's field order */
    int64_t valid;              /* rows that are examples; the others are zero */
    int64_t missing;            /* damaged examples that were left out: as many rows less */
    uint32_t epoch;
    int64_t index; /* in the epoch */
    bool is_last_of_epoch;
} tp_batch;

/* What was found, and what it cost. */
typedef struct tp_pipeline_stats {
    int32_t threads, prefetch; /* now */
    bool is_auto;              /* either was found, not told */
    int64_t batches, examples, missing;
    double seconds;      /* since the first batch was asked for */
    double waited;       /* of these, for batches */
    double waited_link;  /* of these, for the link */
    double read_seconds; /* of all threads together, reading */
} tp_pipeline_stats;

/* Borrows the source. */
tpucl_status tp_pipeline_create(const tp_source *source, const tp_pipeline_options *options,
                                tp_pipeline **out_pipeline);
void tp_pipeline_destroy(tp_pipeline *pipeline);

/* TPUCL_END_OF_DATA behind the last epoch. After a failure every further call fails alike. */
tpucl_status tp_pipeline_next(tp_pipeline *pipeline, const tp_batch **out_batch);

int64_t tp_pipeline_batches_per_epoch(const tp_pipeline *pipeline);
void tp_pipeline_get_stats(tp_pipeline *pipeline, tp_pipeline_stats *out_stats);

#endif
