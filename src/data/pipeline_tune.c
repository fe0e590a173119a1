/* SPDX-License-Identifier: Apache-2.0
 * Finds how many threads read and how many batches are kept ready. A consumer that waits gets another
 * thread, and when all of them work, another batch ahead; one that has not waited for a long time gives a
 * thread back, because the devices may be the same processors. A thread that was missed after it was given
 * back is kept for good, so that this ends. None of it changes what is in a batch. */
#include "core/log.h"
#include "data/pipeline_internal.h"

enum { PERIOD_BATCHES = 4, CALM_PERIODS = 4 };
static const uint64_t period_ns = 100 * 1000 * 1000;
/* Shares of the time: from the upper one on it counts as waiting, below the lower one as none. */
static const double waits = 0.02, waits_not = 0.001;

static void change(tp_pipeline *pipeline, int32_t threads, int32_t prefetch)
{
    tp_mutex_lock(&pipeline->mutex);
    pipeline->active = threads;
    pipeline->prefetch = prefetch;
    tp_cond_broadcast(&pipeline->work);
    tp_mutex_unlock(&pipeline->mutex);
    TP_LOG_DEBUG("data", "input: %d threads, %d batches ahead", threads, prefetch);
}

void tp_pipeline_tune(tp_pipeline *pipeline, uint64_t now_ns, uint64_t waited_ns)
{
    tp_pipeline_tuner *tuner = &pipeline->tuner;
    int32_t threads = pipeline->active, prefetch = pipeline->prefetch;
    tuner->batches++;
    tuner->waited_ns += waited_ns;
    if (tuner->batches < PERIOD_BATCHES || now_ns - tuner->begin_ns < period_ns) return;
    const double share = (double)tuner->waited_ns / (double)(now_ns - tuner->begin_ns);
    tuner->calm = share < waits_not ? tuner->calm + 1 : 0;
    if (share > waits && tuner->tunes_threads && threads < pipeline->thread_count) {
        threads++;
        tuner->least_threads = threads;
    } else if (share > waits && tuner->tunes_prefetch && prefetch < TP_PIPELINE_AUTO_PREFETCH) {
        prefetch++;
    } else if (tuner->calm == CALM_PERIODS && tuner->tunes_threads &&
               threads > tuner->least_threads) {
        threads--;
        tuner->calm = 0;
    }
    if (threads != pipeline->active || prefetch != pipeline->prefetch)
        change(pipeline, threads, prefetch);
    tuner->batches = 0;
    tuner->waited_ns = 0;
    tuner->begin_ns = now_ns;
}
