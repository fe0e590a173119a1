/* SPDX-License-Identifier: Apache-2.0
 * The threads that fill batches. A thread takes the next few rows of the oldest batch that has some left,
 * and begins a batch when there are none and another may be kept ready; so all of them work on the same
 * batch where they can, and nobody waits for a batch's slowest row before beginning with the next. */
#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "data/order.h"
#include "data/pipeline_internal.h"

typedef struct claim {
    tp_pipeline_slot *slot;
    int64_t begin, end;
} claim;

/* ---- beginning a batch; the mutex is held ---- */

static tpucl_status need_order(tp_pipeline *pipeline, uint32_t epoch)
{
    const tp_pipeline_options *options = &pipeline->options;
    if (pipeline->has_order && pipeline->order_epoch == epoch) return TPUCL_OK;
    TP_TRY(tp_order_fill(options->count, options->shuffle ? options->shuffle_buffer : 1,
                         options->seed, epoch, pipeline->order));
    pipeline->has_order = true;
    pipeline->order_epoch = epoch;
    return TPUCL_OK;
}

static tpucl_status need_memory(const tp_pipeline *pipeline, tp_pipeline_slot *slot)
{
    const tp_source *source = pipeline->source;
    const size_t rows = (size_t)pipeline->options.batch;
    if (slot->is_there) return TPUCL_OK;
    if (!slot->examples) slot->examples = TP_NEW_ARRAY(int64_t, rows);
    for (int32_t f = 0; f < source->field_count; f++) {
        if (!slot->batch.arrays[f])
            slot->batch.arrays[f] = tp_alloc_array(rows, source->fields[f].bytes);
        if (!slot->batch.arrays[f])
            return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for batches of %zu examples", rows);
    }
    slot->is_there = slot->examples ? TP_NEW_ARRAY(bool, rows) : NULL;
    return slot->is_there ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status begin_batch(tp_pipeline *pipeline)
{
    tp_pipeline_slot *slot = &pipeline->slots[pipeline->begun % pipeline->slot_count];
    const uint64_t number = pipeline->first_batch + pipeline->begun;
    const uint64_t per_epoch = (uint64_t)pipeline->batches_per_epoch;
    const uint32_t epoch = (uint32_t)(number / per_epoch);
    const int64_t index = (int64_t)(number % per_epoch), rows = pipeline->options.batch;
    const int64_t left = pipeline->options.count - index * rows;
    TP_TRY(need_order(pipeline, epoch));
    TP_TRY(need_memory(pipeline, slot));
    slot->batch.valid = left < rows ? left : rows;
    slot->batch.missing = 0;
    slot->batch.epoch = epoch;
    slot->batch.index = index;
    slot->batch.is_last_of_epoch = index + 1 == pipeline->batches_per_epoch;
    slot->step = (uint32_t)number;
    slot->claimed = slot->done = 0;
    slot->is_ready = false;
    slot->status = TPUCL_OK;
    for (int64_t row = 0; row < slot->batch.valid; row++)
        slot->examples[row] = pipeline->options.first + pipeline->order[index * rows + row];
    pipeline->begun++;
    return TPUCL_OK;
}

/* Rows to take at once: few enough that all threads have some at a batch's end. */
static int64_t rows_of_claim(const tp_pipeline *pipeline)
{
    if (!pipeline->source->ops) return pipeline->options.batch;
    const int64_t rows = pipeline->options.batch / (4 * (int64_t)pipeline->thread_count);
    return rows < 1 ? 1 : rows > 16 ? 16 : rows;
}

/* False: there is nothing to do now. */
static bool claim_rows(tp_pipeline *pipeline, claim *out_claim)
{
    const uint64_t most = (uint64_t)pipeline->prefetch + 2; /* one being filled, one held */
    if (pipeline->status != TPUCL_OK) return false;
    if (pipeline->full == pipeline->begun) {
        if (pipeline->begun - pipeline->released >= most || pipeline->begun >= pipeline->end)
            return false;
        pipeline->status = begin_batch(pipeline);
        if (pipeline->status != TPUCL_OK) {
            tp_error_capture(&pipeline->error);
            tp_cond_broadcast(&pipeline->ready);
            return false;
        }
    }
    tp_pipeline_slot *slot = &pipeline->slots[pipeline->full % pipeline->slot_count];
    const int64_t wanted = slot->claimed + rows_of_claim(pipeline);
    *out_claim = (claim){slot, slot->claimed, wanted};
    if (wanted >= slot->batch.valid) {
        out_claim->end = slot->batch.valid;
        pipeline->full++;
    }
    slot->claimed = out_claim->end;
    return true;
}

/* ---- rows; the mutex is free ---- */

static void copy_rows(const tp_pipeline *pipeline, const claim *c)
{
    const tp_source *source = pipeline->source;
    for (int32_t f = 0; f < source->field_count; f++) {
        const uint64_t bytes = source->fields[f].bytes;
        char *to = c->slot->batch.arrays[f];
        const char *from = source->arrays[f];
        for (int64_t row = c->begin; row < c->end; row++)
            memcpy(to + (uint64_t)row * bytes, from + (uint64_t)c->slot->examples[row] * bytes,
                   bytes);
    }
    memset(c->slot->is_there + c->begin, true, (size_t)(c->end - c->begin));
}

/* Fills *out_row with the row that failed. */
static tpucl_status read_rows(const tp_pipeline *pipeline, void *worker, const claim *c,
                              int64_t *out_row)
{
    const tp_source *source = pipeline->source;
    for (int64_t row = c->begin; row < c->end; row++) {
        const tp_source_place place = {.example = c->slot->examples[row],
                                       .row = row,
                                       .step = c->slot->step,
                                       .is_training = pipeline->options.is_training};
        void *out[TP_SOURCE_MAX_FIELDS];
        *out_row = row;
        for (int32_t f = 0; f < source->field_count; f++)
            out[f] = (char *)c->slot->batch.arrays[f] + (uint64_t)row * source->fields[f].bytes;
        TP_TRY(source->ops->read(source, worker, &place, out, &c->slot->is_there[row]));
    }
    return TPUCL_OK;
}

/* Rows that are not there make room; what is behind the last example becomes zero. */
static void finish_batch(const tp_pipeline *pipeline, tp_pipeline_slot *slot)
{
    const tp_source *source = pipeline->source;
    int64_t kept = 0;
    for (int64_t row = 0; row < slot->batch.valid; row++) {
        if (!slot->is_there[row]) continue;
        for (int32_t f = 0; f < source->field_count && kept != row; f++) {
            const uint64_t bytes = source->fields[f].bytes;
            char *array = slot->batch.arrays[f];
            memcpy(array + (uint64_t)kept * bytes, array + (uint64_t)row * bytes, bytes);
        }
        kept++;
    }
    slot->batch.missing = slot->batch.valid - kept;
    slot->batch.valid = kept;
    for (int32_t f = 0; f < source->field_count; f++) {
        const uint64_t bytes = source->fields[f].bytes;
        memset((char *)slot->batch.arrays[f] + (uint64_t)kept * bytes, 0,
               (uint64_t)(pipeline->options.batch - kept) * bytes);
    }
}

static void fill(tp_pipeline *pipeline, void *worker, const claim *c)
{
    tp_pipeline_slot *slot = c->slot;
    const uint64_t begin_ns = tp_clock_now_ns();
    tpucl_status status = TPUCL_OK;
    int64_t row = 0;
    if (pipeline->source->ops)
        status = read_rows(pipeline, worker, c, &row);
    else
        copy_rows(pipeline, c);
    const uint64_t now_ns = tp_clock_now_ns();
    tp_mutex_lock(&pipeline->mutex);
    if (status != TPUCL_OK && (slot->status == TPUCL_OK || row < slot->failed_row)) {
        slot->status = status;
        slot->failed_row = row;
        tp_error_capture(&slot->error);
    }
    pipeline->read_ns += now_ns - begin_ns;
    slot->done += c->end - c->begin;
    const bool is_last = slot->done == slot->batch.valid;
    tp_mutex_unlock(&pipeline->mutex);
    if (!is_last) return;
    if (slot->status == TPUCL_OK) finish_batch(pipeline, slot);
    tp_mutex_lock(&pipeline->mutex);
    slot->ready_ns = tp_clock_now_ns();
    slot->is_ready = true;
    tp_cond_broadcast(&pipeline->ready);
    tp_mutex_unlock(&pipeline->mutex);
}

/* ---- the thread ---- */

static void fail_all(tp_pipeline *pipeline, tpucl_status status)
{
    tp_mutex_lock(&pipeline->mutex);
    if (pipeline->status == TPUCL_OK) {
        pipeline->status = status;
        tp_error_capture(&pipeline->error);
    }
    tp_cond_broadcast(&pipeline->ready);
    tp_mutex_unlock(&pipeline->mutex);
}

static void work(tp_pipeline *pipeline, int32_t index, void *worker)
{
    tp_mutex_lock(&pipeline->mutex);
    while (!pipeline->is_stopped) {
        claim c;
        if (index < pipeline->active && claim_rows(pipeline, &c)) {
            tp_cond_broadcast(&pipeline->work); /* perhaps there is more */
            tp_mutex_unlock(&pipeline->mutex);
            fill(pipeline, worker, &c);
            tp_mutex_lock(&pipeline->mutex);
        } else {
            tp_cond_wait(&pipeline->work, &pipeline->mutex);
        }
    }
    tp_mutex_unlock(&pipeline->mutex);
}

tpucl_status tp_pipeline_work(void *user)
{
    tp_pipeline *pipeline = user;
    const tp_source_ops *ops = pipeline->source->ops;
    void *worker = NULL;
    tp_mutex_lock(&pipeline->mutex);
    const int32_t index = pipeline->next_worker++;
    tp_mutex_unlock(&pipeline->mutex);
    tpucl_status status = tp_source_wait(pipeline->source);
    if (status == TPUCL_OK && ops) status = ops->open_worker(pipeline->source, &worker);
    if (status == TPUCL_OK)
        work(pipeline, index, worker);
    else
        fail_all(pipeline, status);
    if (ops) ops->close_worker(worker);
    return TPUCL_OK; /* failures are the consumer's to report */
}
