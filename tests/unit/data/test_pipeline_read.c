/* SPDX-License-Identifier: Apache-2.0
 * A pipeline over a source that reads: whatever the threads do, batches are the same; the first failure is
 * reported; examples that are left out; the link; the settings that it finds. */
#include <criterion/criterion.h>
#include <string.h>
#include "core/clock.h"
#include "core/thread.h"
#include "data/pipeline.h"

enum { COUNT = 103 };

typedef struct fake {
    int64_t fails_at, missing_at; /* -1: never */
    uint64_t slow_ns;
    int32_t workers;
    tp_mutex mutex;
} fake;

static tpucl_status open_worker(const tp_source *source, void **out_worker)
{
    fake *f = source->state;
    tp_mutex_lock(&f->mutex);
    f->workers++;
    tp_mutex_unlock(&f->mutex);
    *out_worker = f;
    return TPUCL_OK;
}

static void close_worker(void *worker)
{
    fake *f = worker;
    if (!f) return;
    tp_mutex_lock(&f->mutex);
    f->workers--;
    tp_mutex_unlock(&f->mutex);
}

/* Takes longer for some than for others, so that threads overtake each other. */
static tpucl_status read_example(const tp_source *source, void *worker,
                                 const tp_source_place *place, void *const *out, bool *out_is_there)
{
    const fake *f = source->state;
    cr_assert_eq(worker, source->state);
    if (f->slow_ns) tp_clock_sleep_ns(f->slow_ns * (uint64_t)(1 + place->example % 3));
    if (f->fails_at >= 0 && place->example >= f->fails_at)
        return TP_FAIL(TPUCL_IO_ERROR, "example %lld", (long long)place->example);
    const int32_t values[] = {(int32_t)place->example, (int32_t)place->row, (int32_t)place->step,
                              place->is_training};
    memcpy(out[0], values, sizeof values);
    *out_is_there = place->example != f->missing_at;
    return TPUCL_OK;
}

static void destroy(void *state)
{
    (void)state;
}

static const tp_source_ops ops = {.open_worker = open_worker,
                                  .close_worker = close_worker,
                                  .read = read_example,
                                  .destroy = destroy};

static tp_source source_of(fake *f)
{
    tp_source source = {.field_count = 1, .example_count = COUNT, .ops = &ops, .state = f};
    const int64_t dims[] = {4};
    cr_assert(tp_mutex_init(&f->mutex) == TPUCL_OK);
    source.fields[0] = (tp_field){.name = "value", .dtype = TP_S32, .bytes = 16};
    cr_assert(tp_shape_init(&source.fields[0].shape, 1, dims) == TPUCL_OK);
    return source;
}

Test(pipeline_read, threads_change_nothing)
{
    fake f = {.fails_at = -1, .missing_at = 7, .slow_ns = 20000};
    const tp_source source = source_of(&f);
    int32_t wanted[22][10][4];
    for (int32_t threads = 1; threads <= 7; threads += 3) {
        tp_pipeline *pipeline = NULL;
        const tp_pipeline_options options = {.batch = 10,
                                             .shuffle = true,
                                             .shuffle_buffer = 30,
                                             .seed = 3,
                                             .epochs = 2,
                                             .threads = threads,
                                             .prefetch = threads,
                                             .is_training = true};
        cr_assert(tp_pipeline_create(&source, &options, &pipeline) == TPUCL_OK);
        for (int i = 0; i < 22; i++) {
            const tp_batch *batch = NULL;
            cr_assert(tp_pipeline_next(pipeline, &batch) == TPUCL_OK);
            if (threads == 1)
                memcpy(wanted[i], batch->arrays[0], sizeof wanted[i]);
            else
                cr_assert_arr_eq(batch->arrays[0], wanted[i], sizeof wanted[i], "batch %d", i);
            cr_assert_eq(batch->valid + batch->missing, i % 11 == 10 ? 3 : 10);
            for (int row = 0; row < 10; row++)
                if (row < batch->valid)
                    cr_assert(wanted[i][row][2] == i && wanted[i][row][3] == 1 &&
                              wanted[i][row][0] != 7 && wanted[i][row][1] >= row);
                else
                    cr_assert_eq(wanted[i][row][0], 0);
        }
        tp_pipeline_stats stats;
        tp_pipeline_get_stats(pipeline, &stats);
        cr_assert(stats.missing == 2 && stats.batches == 22 && stats.examples == 2 * COUNT - 2);
        cr_assert(!stats.is_auto && stats.threads == threads && stats.prefetch == threads);
        cr_assert_eq(tp_pipeline_next(pipeline, &(const tp_batch *){NULL}), TPUCL_END_OF_DATA);
        tp_pipeline_destroy(pipeline);
        cr_assert_eq(f.workers, 0);
    }
}

Test(pipeline_read, the_first_row_that_fails_is_reported_at_its_batch)
{
    fake f = {.fails_at = 34, .missing_at = -1, .slow_ns = 20000};
    const tp_source source = source_of(&f);
    const tp_pipeline_options options = {.batch = 10, .threads = 5, .prefetch = 4};
    tp_pipeline *pipeline = NULL;
    const tp_batch *batch = NULL;
    cr_assert(tp_pipeline_create(&source, &options, &pipeline) == TPUCL_OK);
    for (int i = 0; i < 3; i++)
        cr_assert(tp_pipeline_next(pipeline, &batch) == TPUCL_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(tp_pipeline_next(pipeline, &batch), TPUCL_IO_ERROR);
        cr_assert_str_eq(tpucl_last_error()->message, "example 34");
    }
    tp_pipeline_destroy(pipeline);
}

Test(pipeline_read, a_remainder_can_be_dropped)
{
    fake f = {.fails_at = 100, .missing_at = -1}; /* its last three examples are never read */
    const tp_source source = source_of(&f);
    tp_pipeline_options options = {.batch = 10, .epochs = 2, .drop_remainder = true, .threads = 2};
    tp_pipeline *pipeline = NULL;
    const tp_batch *batch = NULL;
    cr_assert(tp_pipeline_create(&source, &options, &pipeline) == TPUCL_OK);
    cr_assert_eq(tp_pipeline_batches_per_epoch(pipeline), 10);
    for (int i = 0; i < 20; i++)
        cr_assert(tp_pipeline_next(pipeline, &batch) == TPUCL_OK && batch->valid == 10);
    cr_assert_eq(tp_pipeline_next(pipeline, &batch), TPUCL_END_OF_DATA);
    tp_pipeline_destroy(pipeline);
    options.batch = 104;
    cr_assert_eq(tp_pipeline_create(&source, &options, &pipeline), TPUCL_INVALID_ARGUMENT);
}

/* 160 bytes a batch at 16000 bytes a second: 10 ms each. */
Test(pipeline_read, batches_come_no_faster_than_the_link)
{
    fake f = {.fails_at = -1, .missing_at = -1};
    const tp_source source = source_of(&f);
    const tp_pipeline_options options = {.batch = 10, .link_bytes_per_second = 16000};
    tp_pipeline *pipeline = NULL;
    const tp_batch *batch = NULL;
    const uint64_t begin_ns = tp_clock_now_ns();
    cr_assert(tp_pipeline_create(&source, &options, &pipeline) == TPUCL_OK);
    for (int i = 0; i < 10; i++)
        cr_assert(tp_pipeline_next(pipeline, &batch) == TPUCL_OK);
    cr_assert_geq(tp_clock_now_ns() - begin_ns, 100 * 1000 * 1000);
    tp_pipeline_stats stats;
    tp_pipeline_get_stats(pipeline, &stats);
    cr_assert(stats.waited_link > 0.05 && stats.waited_link <= stats.waited);
    tp_pipeline_destroy(pipeline);
}

/* A consumer that always waits: as many batches ahead as there may be; the threads are all at work
 * already. */
Test(pipeline_read, settings_follow_the_waiting)
{
    fake f = {.fails_at = -1, .missing_at = -1, .slow_ns = 1000 * 1000};
    const tp_source source = source_of(&f);
    const tp_pipeline_options options = {.batch = 10};
    tp_pipeline *pipeline = NULL;
    const tp_batch *batch = NULL;
    tp_pipeline_stats stats;
    cr_assert(tp_pipeline_create(&source, &options, &pipeline) == TPUCL_OK);
    tp_pipeline_get_stats(pipeline, &stats);
    cr_assert(stats.is_auto && stats.prefetch == 2);
    for (int i = 0; i < 60; i++)
        cr_assert(tp_pipeline_next(pipeline, &batch) == TPUCL_OK);
    tp_pipeline_get_stats(pipeline, &stats);
    cr_assert_gt(stats.prefetch, 2);
    cr_assert_eq(stats.threads, tp_thread_processor_count());
    tp_pipeline_destroy(pipeline);
}
