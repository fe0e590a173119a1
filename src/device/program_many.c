/* SPDX-License-Identifier: Apache-2.0
 * Many programs by several threads. The threads take the next source in order, so when one fails,
 * all before it were begun, and the failure with the lowest number is the one to report whatever
 * the timing. */
#include "device/build_state.h"

#include <string.h>
#include "core/alloc.h"

enum { MAX_THREADS = 8 };

typedef struct many {
    tp_device *device;
    const tp_device_program_source *sources;
    uint32_t count;
    tp_build_callback callback;
    void *user;
    tp_device_program **programs;
    atomic_uint next;
    atomic_bool has_failed;

    tp_mutex mutex; /* guards what follows, and keeps callbacks apart */
    uint32_t done, failed_index;
    bool *is_reported; /* [count]: by tp_device_compile_apart, NULL: none */
    tpucl_error failure;
} many;

static void note_failure(many *job, uint32_t index)
{
    tp_mutex_lock(&job->mutex);
    if (!atomic_load(&job->has_failed) || index < job->failed_index) {
        job->failed_index = index;
        tp_error_capture(&job->failure);
    }
    atomic_store(&job->has_failed, true);
    tp_mutex_unlock(&job->mutex);
}

static void note_success(many *job, uint32_t index, double seconds, bool was_cached)
{
    tp_mutex_lock(&job->mutex);
    if (job->is_reported && job->is_reported[index]) {
        tp_mutex_unlock(&job->mutex);
        return;
    }
    job->done++;
    const tp_build_progress progress = {.done = job->done,
                                        .total = job->count,
                                        .label = job->sources[index].label,
                                        .seconds = seconds,
                                        .was_cached = was_cached};
    if (job->callback) job->callback(&progress, job->user);
    tp_mutex_unlock(&job->mutex);
}

static tpucl_status work(void *user)
{
    many *job = user;
    while (!atomic_load(&job->has_failed)) {
        const uint32_t index = atomic_fetch_add(&job->next, 1);
        if (index >= job->count) break;
        double seconds = 0;
        bool was_cached = false;
        if (tp_device_program_build_timed(job->device, &job->sources[index], &job->programs[index],
                                          &seconds, &was_cached) == TPUCL_OK)
            note_success(job, index, seconds, was_cached);
        else
            note_failure(job, index);
    }
    return TPUCL_OK;
}

/* The caller is one of the threads. Fewer than wanted (no memory for more) only takes longer. */
static void run_threads(many *job, uint32_t threads)
{
    tp_thread *helpers[MAX_THREADS] = {0};
    uint32_t started = 0;
    while (started + 1 < threads &&
           tp_thread_create("tpucl build", work, job, &helpers[started]) == TPUCL_OK)
        started++;
    (void)work(job);
    for (uint32_t i = 0; i < started; i++)
        (void)tp_thread_join(helpers[i]);
}

static uint32_t thread_count(const tp_device *device, uint32_t wanted, uint32_t count)
{
    if (device->quirks.effects & TP_QUIRK_SERIAL_BUILDS) return 1;
    uint32_t threads = wanted ? wanted : (uint32_t)tp_thread_processor_count();
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    return threads < count ? threads : count;
}

tpucl_status tp_device_program_build_many(tp_device *device,
                                          const tp_device_program_source *sources, uint32_t count,
                                          uint32_t threads, tp_build_callback callback, void *user,
                                          tp_device_program **out_programs)
{
    many job = {.device = device,
                .sources = sources,
                .count = count,
                .callback = callback,
                .user = user,
                .programs = out_programs};
    for (uint32_t i = 0; i < count; i++)
        out_programs[i] = NULL;
    if (!count) return TPUCL_OK;
    atomic_init(&job.next, 0);
    atomic_init(&job.has_failed, false);
    TP_TRY(tp_mutex_init(&job.mutex));
    job.is_reported = TP_NEW_ARRAY(bool, count);
    if (job.is_reported)
        job.done = tp_device_compile_apart(device, sources, count, callback, user, job.is_reported);
    run_threads(&job, thread_count(device, threads, count));
    tp_free(job.is_reported);
    tp_mutex_deinit(&job.mutex);
    if (!atomic_load(&job.has_failed)) return TPUCL_OK;
    for (uint32_t i = 0; i < count; i++) {
        tp_device_program_release(out_programs[i]);
        out_programs[i] = NULL;
    }
    tp_error_restore(&job.failure);
    return job.failure.status;
}
