/* SPDX-License-Identifier: Apache-2.0
 * The consumer's side: options, threads, the next batch. */
#include "data/pipeline.h"

#include "core/alloc.h"
#include "core/clock.h"
#include "core/env.h"
#include "data/pipeline_internal.h"

enum { DEFAULT_PREFETCH = 2 };

static tpucl_status check_range(const char *what, int64_t value, int64_t most)
{
    if (value >= 0 && value <= most) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%lld %s; expected at most %lld", (long long)value, what,
                   (long long)most);
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
    if (options->drop_remainder && options->count < options->batch)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%lld examples make no whole batch of %lld, and others are to be left out",
                       (long long)options->count, (long long)options->batch);
    TP_TRY(
        check_range("batches are to be kept ready", options->prefetch, TP_PIPELINE_MAX_PREFETCH));
    return check_range("threads are to read", options->threads, TP_PIPELINE_MAX_THREADS);
}

static tpucl_status choose_settings(tp_pipeline *pipeline)
{
    int64_t processors = 1;
    const tp_pipeline_options *options = &pipeline->options;
    /* Copying is nothing that a second thread would help with. */
    const bool reads = pipeline->source->ops != NULL;
    pipeline->tuner = (tp_pipeline_tuner){.tunes_threads = reads && !options->threads,
                                          .tunes_prefetch = !options->prefetch,
                                          .least_threads = 1};
    TP_TRY(tp_env_int(TP_ENV_THREADS, 1, 1024, tp_thread_processor_count(), &processors));
    if (processors > TP_PIPELINE_MAX_THREADS) processors = TP_PIPELINE_MAX_THREADS;
    pipeline->thread_count = !reads ? 1 : options->threads ? options->threads : (int32_t)processors;
    pipeline->active = pipeline->thread_count;
    pipeline->prefetch = options->prefetch ? options->prefetch : DEFAULT_PREFETCH;
    const int32_t most = options->prefetch ? options->prefetch : TP_PIPELINE_AUTO_PREFETCH;
    pipeline->slot_count = (uint64_t)most + 2;
    return TPUCL_OK;
}

static tpucl_status count_batches(tp_pipeline *pipeline)
{
    const tp_pipeline_options *options = &pipeline->options;
    const int64_t batch = options->batch, count = options->count;
    pipeline->batches_per_epoch = count / batch + (count % batch != 0 && !options->drop_remainder);
    if (options->start_batch < 0 || options->start_batch > pipeline->batches_per_epoch)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "start at batch %lld of %lld",
                       (long long)options->start_batch, (long long)pipeline->batches_per_epoch);
    const uint64_t per_epoch = (uint64_t)pipeline->batches_per_epoch;
    pipeline->first_batch = options->start_epoch * per_epoch + (uint64_t)options->start_batch;
    const uint64_t all = (uint64_t)options->epochs * per_epoch;
    pipeline->end = !options->epochs              ? UINT64_MAX
                    : all < pipeline->first_batch ? 0
                                                  : all - pipeline->first_batch;
    for (int32_t f = 0; f < pipeline->source->field_count; f++)
        pipeline->batch_bytes += pipeline->source->fields[f].bytes * (uint64_t)batch;
    return TPUCL_OK;
}

static tpucl_status start(tp_pipeline *pipeline)
{
    TP_TRY(tp_mutex_init(&pipeline->mutex));
    pipeline->has_mutex = true;
    TP_TRY(tp_cond_init(&pipeline->work));
    if (tp_cond_init(&pipeline->ready) != TPUCL_OK) {
        tp_cond_deinit(&pipeline->work);
        return TPUCL_OUT_OF_MEMORY;
    }
    pipeline->has_conds = true;
    TP_TRY(check_options(pipeline->source, &pipeline->options));
    TP_TRY(count_batches(pipeline));
    TP_TRY(choose_settings(pipeline));
    pipeline->order = TP_NEW_ARRAY(int64_t, (size_t)pipeline->options.count);
    pipeline->slots = TP_NEW_ARRAY(tp_pipeline_slot, (size_t)pipeline->slot_count);
    pipeline->threads = TP_NEW_ARRAY(tp_thread *, (size_t)pipeline->thread_count);
    if (!pipeline->order || !pipeline->slots || !pipeline->threads) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < pipeline->thread_count; i++)
        TP_TRY(tp_thread_create("tpucl-data", tp_pipeline_work, pipeline, &pipeline->threads[i]));
    return TPUCL_OK;
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

static void join_threads(tp_pipeline *pipeline)
{
    tpucl_error error; /* what a thread met must not replace the caller's record */
    if (!pipeline->threads) return;
    tp_error_capture(&error);
    tp_mutex_lock(&pipeline->mutex);
    pipeline->is_stopped = true;
    tp_cond_broadcast(&pipeline->work);
    tp_mutex_unlock(&pipeline->mutex);
    for (int32_t i = 0; i < pipeline->thread_count; i++) {
        tpucl_status ignored = tp_thread_join(pipeline->threads[i]);
        (void)ignored;
    }
    tp_error_restore(&error);
}

void tp_pipeline_destroy(tp_pipeline *pipeline)
{
    if (!pipeline) return;
    join_threads(pipeline);
    for (uint64_t i = 0; pipeline->slots && i < pipeline->slot_count; i++) {
        for (int32_t f = 0; f < pipeline->source->field_count; f++)
            tp_free(pipeline->slots[i].batch.arrays[f]);
        tp_free(pipeline->slots[i].examples);
        tp_free(pipeline->slots[i].is_there);
    }
    if (pipeline->has_conds) {
        tp_cond_deinit(&pipeline->ready);
        tp_cond_deinit(&pipeline->work);
    }
    if (pipeline->has_mutex) tp_mutex_deinit(&pipeline->mutex);
    tp_free(pipeline->slots);
    tp_free(pipeline->order);
    tp_free(pipeline->threads);
    tp_free(pipeline);
}

/* ---- the next batch ---- */

/* The mutex is held. */
static tpucl_status wait_for(tp_pipeline *pipeline, tp_pipeline_slot *slot)
{
    while (pipeline->status == TPUCL_OK && pipeline->taken < pipeline->end &&
           !(pipeline->taken < pipeline->begun && slot->is_ready))
        tp_cond_wait(&pipeline->ready, &pipeline->mutex);
    if (pipeline->taken >= pipeline->end) return TPUCL_END_OF_DATA;
    const bool is_slots = pipeline->taken < pipeline->begun && slot->is_ready;
    const tpucl_status status = is_slots ? slot->status : pipeline->status;
    if (status != TPUCL_OK) tp_error_restore(is_slots ? &slot->error : &pipeline->error);
    return status;
}

/* A batch begins to come through the link when it is ready and the one before it has come. */
static void wait_for_link(tp_pipeline *pipeline, const tp_pipeline_slot *slot)
{
    const double rate = pipeline->options.link_bytes_per_second;
    if (rate <= 0) return;
    const uint64_t needs_ns = (uint64_t)(1e9 * (double)pipeline->batch_bytes / rate);
    const uint64_t from_ns =
        slot->ready_ns > pipeline->link_free_ns ? slot->ready_ns : pipeline->link_free_ns;
    pipeline->link_free_ns = from_ns + needs_ns;
    const uint64_t now_ns = tp_clock_now_ns();
    if (now_ns >= pipeline->link_free_ns) return;
    tp_clock_sleep_ns(pipeline->link_free_ns - now_ns);
    pipeline->link_waited_ns += tp_clock_now_ns() - now_ns;
}

tpucl_status tp_pipeline_next(tp_pipeline *pipeline, const tp_batch **out_batch)
{
    const uint64_t begin_ns = tp_clock_now_ns();
    tp_pipeline_slot *slot = &pipeline->slots[pipeline->taken % pipeline->slot_count];
    if (!pipeline->begin_ns) pipeline->begin_ns = pipeline->tuner.begin_ns = begin_ns;
    tp_mutex_lock(&pipeline->mutex);
    if (pipeline->holds) {
        pipeline->released++;
        pipeline->holds = false;
        tp_cond_broadcast(&pipeline->work);
    }
    const tpucl_status status = wait_for(pipeline, slot);
    if (status == TPUCL_OK) {
        pipeline->taken++;
        pipeline->holds = true;
    }
    tp_mutex_unlock(&pipeline->mutex);
    if (status != TPUCL_OK) return status;
    const uint64_t waited_ns = tp_clock_now_ns() - begin_ns;
    wait_for_link(pipeline, slot);
    const uint64_t now_ns = tp_clock_now_ns();
    pipeline->waited_ns += now_ns - begin_ns;
    pipeline->batches++;
    pipeline->examples += slot->batch.valid;
    pipeline->missing += slot->batch.missing;
    /* The first batch is waited for by everybody. */
    tp_pipeline_tune(pipeline, now_ns, pipeline->batches > 1 ? waited_ns : 0);
    *out_batch = &slot->batch;
    return TPUCL_OK;
}

int64_t tp_pipeline_batches_per_epoch(const tp_pipeline *pipeline)
{
    return pipeline->batches_per_epoch;
}

void tp_pipeline_get_stats(tp_pipeline *pipeline, tp_pipeline_stats *out_stats)
{
    const uint64_t now_ns = tp_clock_now_ns();
    tp_mutex_lock(&pipeline->mutex);
    const uint64_t read_ns = pipeline->read_ns;
    tp_mutex_unlock(&pipeline->mutex);
    *out_stats = (tp_pipeline_stats){
        .threads = pipeline->active,
        .prefetch = pipeline->prefetch,
        .is_auto = pipeline->tuner.tunes_threads || pipeline->tuner.tunes_prefetch,
        .batches = pipeline->batches,
        .examples = pipeline->examples,
        .missing = pipeline->missing,
        .seconds = pipeline->begin_ns ? 1e-9 * (double)(now_ns - pipeline->begin_ns) : 0,
        .waited = 1e-9 * (double)pipeline->waited_ns,
        .waited_link = 1e-9 * (double)pipeline->link_waited_ns,
        .read_seconds = 1e-9 * (double)read_ns};
}
