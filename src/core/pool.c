/* SPDX-License-Identifier: Apache-2.0
 * Workers sleep on a condition until a loop is posted; parts are handed out by an atomic counter,
 * so which thread runs a part varies, but what a part is never does. */
#include "core/pool.h"

#include <stdatomic.h>
#include <string.h>
#include "core/alloc.h"
#include "core/env.h"
#include "core/thread.h"

enum { MAX_THREADS = 1024 };

typedef struct loop {
    size_t count, grain, part_count;
    tp_pool_function function;
    void *user;
    _Atomic size_t next_part;
    _Atomic int failed; /* stops the handing out */
    tp_mutex mutex;     /* of the three below */
    size_t failed_part;
    tpucl_status status;
    tpucl_error record;
} loop;

typedef struct worker {
    struct tp_pool *pool;
    tp_thread *thread;
    int index;
} worker;

struct tp_pool {
    int thread_count; /* with the caller, who is worker 0 */
    worker *workers;  /* thread_count - 1 */
    tp_mutex mutex;
    tp_cond posted, finished;
    loop *current;
    uint64_t generation; /* of the loops posted so far */
    int busy;            /* workers that have not finished the current loop */
    bool stopping;
};

static void run_part(loop *l, size_t part, int worker_index)
{
    size_t begin = part * l->grain;
    size_t end = l->count - begin < l->grain ? l->count : begin + l->grain;
    tpucl_status status = l->function(l->user, begin, end, worker_index);
    if (status == TPUCL_OK) return;
    tp_mutex_lock(&l->mutex);
    if (l->status == TPUCL_OK || part < l->failed_part) {
        l->status = status;
        l->failed_part = part;
        tp_error_capture(&l->record);
    }
    tp_mutex_unlock(&l->mutex);
    atomic_store(&l->failed, 1);
}

static void run_loop(loop *l, int worker_index)
{
    while (!atomic_load(&l->failed)) {
        size_t part = atomic_fetch_add(&l->next_part, 1);
        if (part >= l->part_count) break;
        run_part(l, part, worker_index);
    }
}

static tpucl_status work(void *user)
{
    worker *w = user;
    tp_pool *pool = w->pool;
    uint64_t seen = 0;
    tp_mutex_lock(&pool->mutex);
    for (;;) {
        while (!pool->stopping && pool->generation == seen)
            tp_cond_wait(&pool->posted, &pool->mutex);
        if (pool->stopping) break;
        seen = pool->generation;
        loop *l = pool->current;
        tp_mutex_unlock(&pool->mutex);
        run_loop(l, w->index);
        tp_mutex_lock(&pool->mutex);
        if (--pool->busy == 0) tp_cond_signal(&pool->finished);
    }
    tp_mutex_unlock(&pool->mutex);
    return TPUCL_OK;
}

static tpucl_status start_workers(tp_pool *pool)
{
    pool->workers = TP_NEW_ARRAY(worker, (size_t)pool->thread_count);
    if (!pool->workers) return TPUCL_OUT_OF_MEMORY;
    for (int i = 1; i < pool->thread_count; i++) {
        worker *w = &pool->workers[i - 1];
        w->pool = pool;
        w->index = i;
        TP_TRY(tp_thread_create("tpucl-pool", work, w, &w->thread));
    }
    return TPUCL_OK;
}

tpucl_status tp_pool_create(int threads, tp_pool **out_pool)
{
    *out_pool = NULL;
    if (threads < 0 || threads > MAX_THREADS)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "expected 0 to %d threads, found %d", MAX_THREADS,
                       threads);
    int64_t count = threads;
    if (!threads)
        TP_TRY(tp_env_int(TP_ENV_THREADS, 1, MAX_THREADS, tp_thread_processor_count(), &count));
    tp_pool *pool = TP_NEW(tp_pool);
    if (!pool) return TPUCL_OUT_OF_MEMORY;
    pool->thread_count = (int)count;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_mutex_init(&pool->mutex), no_mutex);
    TP_TRY_GOTO(status, tp_cond_init(&pool->posted), no_posted);
    TP_TRY_GOTO(status, tp_cond_init(&pool->finished), no_finished);
    status = start_workers(pool);
    if (status != TPUCL_OK) {
        tp_pool_destroy(pool);
        return status;
    }
    *out_pool = pool;
    return TPUCL_OK;
no_finished:
    tp_cond_deinit(&pool->posted);
no_posted:
    tp_mutex_deinit(&pool->mutex);
no_mutex:
    tp_free(pool);
    return status;
}

void tp_pool_destroy(tp_pool *pool)
{
    if (!pool) return;
    tp_mutex_lock(&pool->mutex);
    pool->stopping = true;
    tp_cond_broadcast(&pool->posted);
    tp_mutex_unlock(&pool->mutex);
    for (int i = 0; pool->workers && i < pool->thread_count - 1; i++) {
        tpucl_status ignored = tp_thread_join(pool->workers[i].thread);
        (void)ignored; /* work() cannot fail */
    }
    tp_free(pool->workers);
    tp_cond_deinit(&pool->finished);
    tp_cond_deinit(&pool->posted);
    tp_mutex_deinit(&pool->mutex);
    tp_free(pool);
}

int tp_pool_thread_count(const tp_pool *pool)
{
    return pool ? pool->thread_count : 1;
}

tpucl_status tp_pool_parallel_for(tp_pool *pool, size_t count, size_t grain,
                                  tp_pool_function function, void *user)
{
    if (grain == 0) grain = 1;
    loop l = {.count = count, .grain = grain, .function = function, .user = user};
    l.part_count = count / grain + (count % grain != 0);
    TP_TRY(tp_mutex_init(&l.mutex));
    bool shared = pool && pool->thread_count > 1 && l.part_count > 1;
    if (shared) {
        tp_mutex_lock(&pool->mutex);
        pool->current = &l;
        pool->generation++;
        pool->busy = pool->thread_count - 1;
        tp_cond_broadcast(&pool->posted);
        tp_mutex_unlock(&pool->mutex);
    }
    run_loop(&l, 0);
    if (shared) {
        tp_mutex_lock(&pool->mutex);
        while (pool->busy)
            tp_cond_wait(&pool->finished, &pool->mutex);
        tp_mutex_unlock(&pool->mutex);
    }
    tp_mutex_deinit(&l.mutex);
    if (l.status != TPUCL_OK) tp_error_restore(&l.record);
    return l.status;
}
