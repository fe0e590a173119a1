/* SPDX-License-Identifier: Apache-2.0
 * The batching thread. Buffers go round between two queues: free ones to the producer, full ones to the
 * consumer, who gives back the one it had when it asks for the next.
 */
#include "data/pipeline.h"

#include <string.h>
#include "core/alloc.h"
#include "core/queue.h"
#include "core/thread.h"
#include "data/order.h"

enum { DEFAULT_PREFETCH = 2, MAX_PREFETCH = 1024 };

struct tp_pipeline {
    const tp_source *source;
    tp_pipeline_options options;
    int64_t batches_per_epoch;
    int64_t *order;
    tp_batch *batches;
    int32_t batch_count;
    tp_queue *free, *full;
    tp_thread *thread;
    tp_batch *held; /* by the consumer */
};

static void fill_batch(const tp_pipeline *pipeline, int64_t index, uint32_t epoch, tp_batch *batch)
{
    const tp_source *source = pipeline->source;
    int64_t rows = pipeline->options.batch, begin = index * rows;
    int64_t left = pipeline->options.count - begin;
    batch->valid = left < rows ? left : rows;
    batch->epoch = epoch;
    batch->index = index;
    batch->is_last_of_epoch = index + 1 == pipeline->batches_per_epoch;
    for (int32_t f = 0; f < source->field_count; f++) {
        uint64_t bytes = source->fields[f].bytes;
        char *to = batch->arrays[f];
        const char *from = source->arrays[f];
        for (int64_t row = 0; row < batch->valid; row++) {
            int64_t example = pipeline->options.first + pipeline->order[begin + row];
            memcpy(to + (uint64_t)row * bytes, from + (uint64_t)example * bytes, bytes);
        }
        memset(to + (uint64_t)batch->valid * bytes, 0, (uint64_t)(rows - batch->valid) * bytes);
    }
}

static tpucl_status produce_epoch(tp_pipeline *pipeline, uint32_t epoch, int64_t first_batch)
{
    const tp_pipeline_options *options = &pipeline->options;
    TP_TRY(tp_order_fill(options->count, options->shuffle ? options->shuffle_buffer : 1,
                         options->seed, epoch, pipeline->order));
    for (int64_t i = first_batch; i < pipeline->batches_per_epoch; i++) {
        void *batch = NULL;
        TP_TRY(tp_queue_pop(pipeline->free, &batch));
        fill_batch(pipeline, i, epoch, batch);
        TP_TRY(tp_queue_push(pipeline->full, batch));
    }
    return TPUCL_OK;
}

static tpucl_status produce(void *user)
{
    tp_pipeline *pipeline = user;
    const tp_pipeline_options *options = &pipeline->options;
    tpucl_status status = tp_source_wait(pipeline->source);
    uint32_t epoch = options->start_epoch;
    int64_t first_batch = options->start_batch;
    for (; status == TPUCL_OK && (options->epochs == 0 || epoch < options->epochs); epoch++) {
        status = produce_epoch(pipeline, epoch, first_batch);
        first_batch = 0;
    }
    if (status == TPUCL_OK) {
        tp_queue_close(pipeline->full);
    } else {
        tpucl_error error;
        tp_error_capture(&error);
        tp_queue_cancel(pipeline->full, &error);
    }
    return status;
}

static tpucl_status allocate_batches(tp_pipeline *pipeline)
{
    const tp_source *source = pipeline->source;
    pipeline->batch_count = pipeline->options.prefetch + 2; /* one being filled, one held */
    pipeline->batches = TP_NEW_ARRAY(tp_batch, (size_t)pipeline->batch_count);
    pipeline->order = TP_NEW_ARRAY(int64_t, (size_t)pipeline->options.count);
    if (!pipeline->batches || !pipeline->order) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < pipeline->batch_count; i++)
        for (int32_t f = 0; f < source->field_count; f++) {
            pipeline->batches[i].arrays[f] =
                tp_alloc_array((size_t)pipeline->options.batch, source->fields[f].bytes);
            if (!pipeline->batches[i].arrays[f])
                return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for batches of %lld examples",
                               (long long)pipeline->options.batch);
        }
    return TPUCL_OK;
}

static tpucl_status check_options(const tp_source *source, tp_pipeline_options *options)
{
    if (options->batch < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "a batch of %lld rows; expected at least 1",
                       (long long)options->batch);
    if (options->count == 0) options->count = source->example_count - options->first;
    if (options->first < 0 || options->count < 1 ||
        options->count > source->example_count - options->first)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "examples %lld to %lld are asked for, the source has %lld",
                       (long long)options->first, (long long)(options->first + options->count - 1),
                       (long long)source->example_count);
    if (options->prefetch > MAX_PREFETCH)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%d batches are to be kept ready; expected at most %d", options->prefetch,
                       MAX_PREFETCH);
    if (options->prefetch < 1) options->prefetch = DEFAULT_PREFETCH;
    return TPUCL_OK;
}

static tpucl_status start(tp_pipeline *pipeline)
{
    TP_TRY(check_options(pipeline->source, &pipeline->options));
    int64_t batch = pipeline->options.batch, count = pipeline->options.count;
    pipeline->batches_per_epoch = count / batch + (count % batch != 0);
    if (pipeline->options.start_batch < 0 ||
        pipeline->options.start_batch > pipeline->batches_per_epoch)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "start at batch %lld of %lld",
                       (long long)pipeline->options.start_batch,
                       (long long)pipeline->batches_per_epoch);
    TP_TRY(allocate_batches(pipeline));
    TP_TRY(tp_queue_create((size_t)pipeline->batch_count, NULL, &pipeline->free));
    TP_TRY(tp_queue_create((size_t)pipeline->batch_count, NULL, &pipeline->full));
    for (int32_t i = 0; i < pipeline->batch_count; i++)
        TP_TRY(tp_queue_push(pipeline->free, &pipeline->batches[i]));
    return tp_thread_create("tpucl-data", produce, pipeline, &pipeline->thread);
}

tpucl_status tp_pipeline_create(const tp_source *source, const tp_pipeline_options *options,
                                tp_pipeline **out_pipeline)
{
    tp_pipeline *pipeline = TP_NEW(tp_pipeline);
    if (!pipeline) return TPUCL_OUT_OF_MEMORY;
    pipeline->source = source;
    pipeline->options = *options;
    tpucl_status status = start(pipeline);
    if (status != TPUCL_OK) {
        tp_error_trail(__func__, __FILE__, __LINE__);
        tp_pipeline_destroy(pipeline);
        return status;
    }
    *out_pipeline = pipeline;
    return TPUCL_OK;
}

void tp_pipeline_destroy(tp_pipeline *pipeline)
{
    if (!pipeline) return;
    tpucl_error error; /* the thread's "interrupted" must not replace the caller's record */
    tp_error_capture(&error);
    if (pipeline->thread) {
        tp_queue_cancel(pipeline->free, NULL);
        tp_queue_cancel(pipeline->full, NULL);
        tpucl_status ignored = tp_thread_join(pipeline->thread);
        (void)ignored;
    }
    tp_error_restore(&error);
    if (pipeline->free) tp_queue_destroy(pipeline->free);
    if (pipeline->full) tp_queue_destroy(pipeline->full);
    for (int32_t i = 0; pipeline->batches && i < pipeline->batch_count; i++)
        for (int32_t f = 0; f < pipeline->source->field_count; f++)
            tp_free(pipeline->batches[i].arrays[f]);
    tp_free(pipeline->batches);
    tp_free(pipeline->order);
    tp_free(pipeline);
}

tpucl_status tp_pipeline_next(tp_pipeline *pipeline, const tp_batch **out_batch)
{
    void *batch = NULL;
    if (pipeline->held) TP_TRY(tp_queue_push(pipeline->free, pipeline->held));
    pipeline->held = NULL;
    TP_TRY(tp_queue_pop(pipeline->full, &batch));
    pipeline->held = batch;
    *out_batch = batch;
    return TPUCL_OK;
}

int64_t tp_pipeline_batches_per_epoch(const tp_pipeline *pipeline)
{
    return pipeline->batches_per_epoch;
}
