/* SPDX-License-Identifier: Apache-2.0
 * A pipeline's inside. Batches are numbered from 0 as this pipeline makes them; batch n lives in slot n mod
 * slot_count. `released` <= `taken` <= `begun`: given back by the consumer, handed out, begun by the
 * threads. */
#ifndef TP_DATA_PIPELINE_INTERNAL_H
#define TP_DATA_PIPELINE_INTERNAL_H

#include "core/thread.h"
#include "data/pipeline.h"

enum {
    TP_PIPELINE_MAX_PREFETCH = 1024,
    TP_PIPELINE_MAX_THREADS = 256,
    TP_PIPELINE_AUTO_PREFETCH = 16 /* as far as it goes by itself */
};

typedef struct tp_pipeline_slot {
    tp_batch batch;
    uint32_t step;
    int64_t *examples;     /* [batch] */
    bool *is_there;        /* [batch] */
    int64_t claimed, done; /* rows */
    bool is_ready;
    tpucl_status status;
    int64_t failed_row; /* the first one, whoever met it when */
    tpucl_error error;
    uint64_t ready_ns;
} tp_pipeline_slot;

/* Counts between two looks at the settings; see pipeline_tune.c. */
typedef struct tp_pipeline_tuner {
    bool tunes_threads, tunes_prefetch;
    int32_t least_threads, calm;
    int64_t batches;
    uint64_t begin_ns, waited_ns;
} tp_pipeline_tuner;

struct tp_pipeline {
    const tp_source *source;
    tp_pipeline_options options;
    int64_t batches_per_epoch;
    uint64_t first_batch; /* number in the training of this pipeline's batch 0 */
    uint64_t batch_bytes;

    tp_mutex mutex; /* guards all below but the stats of the consumer */
    tp_cond work, ready;
    bool has_mutex, has_conds, is_stopped;
    tpucl_status status; /* of what no batch is to blame for */
    tpucl_error error;
    int64_t *order;
    bool has_order;
    uint32_t order_epoch;
    tp_pipeline_slot *slots;
    uint64_t slot_count;
    uint64_t begun, full, taken, released,
        end; /* full: all rows claimed; end: no batch from there on */
    tp_thread **threads;
    int32_t thread_count, active; /* threads from `active` on rest */
    int32_t next_worker;
    int32_t prefetch;
    uint64_t read_ns;

    bool holds; /* the consumer holds batch `taken` - 1 */
    tp_pipeline_tuner tuner;
    uint64_t begin_ns, waited_ns, link_waited_ns, link_free_ns;
    int64_t batches, examples, missing;
};

/* A thread's work until the pipeline stops. */
tpucl_status tp_pipeline_work(void *pipeline);
/* After each batch, by the consumer: other settings when these are too few or too many. */
void tp_pipeline_tune(tp_pipeline *pipeline, uint64_t now_ns, uint64_t waited_ns);

#endif
