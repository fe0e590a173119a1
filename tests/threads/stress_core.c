/* SPDX-License-Identifier: Apache-2.0
 * Queue, pool, trace and log used from many threads at once. Prints nothing when all is well; the results
 * are checked here, the races by the thread sanitizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/log.h"
#include "core/pool.h"
#include "core/queue.h"
#include "core/alloc.h"
#include "core/json.h"
#include "core/str.h"
#include "core/thread.h"
#include "prof/trace.h"

enum { PRODUCERS = 3, CONSUMERS = 2, ITEMS = 2000 };

static void require(bool condition, const char *what)
{
    if (condition) return;
    fprintf(stderr, "stress_core: %s\n", what);
    exit(1);
}

static void require_ok(tpucl_status status)
{
    require(status == TPUCL_OK, tpucl_last_error()->message);
}

typedef struct shared {
    tp_queue *queue;
    tp_trace *trace;
    tp_mutex mutex;
    int64_t sum, count;
} shared;

static tpucl_status produce(void *user)
{
    shared *s = user;
    int lane = tp_trace_lane(s->trace, "produce");
    for (int64_t i = 1; i <= ITEMS; i++) {
        int64_t *item = tp_alloc(sizeof *item);
        if (!item) return TPUCL_OUT_OF_MEMORY;
        *item = i;
        tp_trace_zone(s->trace, lane, "item", (uint64_t)i, (uint64_t)i + 1, i);
        TP_LOG_DEBUG("test", "item %lld", (long long)i);
        tpucl_status status = tp_queue_push(s->queue, item);
        if (status != TPUCL_OK) {
            tp_free(item);
            return status;
        }
    }
    return TPUCL_OK;
}

static tpucl_status consume(void *user)
{
    shared *s = user;
    void *item;
    tpucl_status status;
    while ((status = tp_queue_pop(s->queue, &item)) == TPUCL_OK) {
        tp_mutex_lock(&s->mutex);
        s->sum += *(int64_t *)item;
        s->count++;
        tp_mutex_unlock(&s->mutex);
        tp_free(item);
    }
    return status == TPUCL_END_OF_DATA ? TPUCL_OK : status;
}

static void count_line(void *user, tpucl_log_level level, const char *subsystem, const char *line)
{
    (void)level, (void)subsystem, (void)line;
    __atomic_fetch_add((int64_t *)user, 1, __ATOMIC_RELAXED);
}

static void run_queue(void)
{
    shared s = {0};
    int64_t lines = 0;
    tp_thread *producers[PRODUCERS], *consumers[CONSUMERS];
    tpucl_log_set_level(TPUCL_LOG_DEBUG);
    tpucl_log_set_sink(count_line, &lines);
    require_ok(tp_queue_create(5, tp_free, &s.queue));
    require_ok(tp_trace_create(100, &s.trace));
    require_ok(tp_mutex_init(&s.mutex));
    for (int i = 0; i < CONSUMERS; i++)
        require_ok(tp_thread_create("consumer", consume, &s, &consumers[i]));
    for (int i = 0; i < PRODUCERS; i++)
        require_ok(tp_thread_create("producer", produce, &s, &producers[i]));
    for (int i = 0; i < PRODUCERS; i++)
        require_ok(tp_thread_join(producers[i]));
    tp_queue_close(s.queue);
    for (int i = 0; i < CONSUMERS; i++)
        require_ok(tp_thread_join(consumers[i]));
    require(s.count == PRODUCERS * ITEMS, "an item was lost or came twice");
    require(s.sum == (int64_t)PRODUCERS * ITEMS * (ITEMS + 1) / 2, "an item was changed");
    require(lines == PRODUCERS * ITEMS, "a line of the log was lost");
    require(tp_trace_lost(s.trace) == PRODUCERS * (ITEMS - 100), "zones were miscounted");
    tpucl_log_set_sink(NULL, NULL);
    tp_mutex_deinit(&s.mutex);
    tp_trace_destroy(s.trace);
    tp_queue_destroy(s.queue);
}

/* A consumer that gives up while producers are blocked. */
static void run_cancel(void)
{
    shared s = {0};
    tp_thread *producers[PRODUCERS];
    void *item;
    require_ok(tp_queue_create(2, tp_free, &s.queue));
    for (int i = 0; i < PRODUCERS; i++)
        require_ok(tp_thread_create("producer", produce, &s, &producers[i]));
    for (int i = 0; i < 50; i++) {
        require_ok(tp_queue_pop(s.queue, &item));
        tp_free(item);
    }
    tp_queue_cancel(s.queue, NULL);
    for (int i = 0; i < PRODUCERS; i++)
        require(tp_thread_join(producers[i]) == TPUCL_INTERRUPTED, "a producer was not stopped");
    tp_queue_destroy(s.queue);
}

/* Every part parses a text and converts numbers: what they share (cJSON's globals, the locale) must hold. */
static tpucl_status parse_part(void *user, size_t begin, size_t end, int worker)
{
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        char text[64], number[TP_STR_DOUBLE_BYTES];
        tp_str_from_double((double)i + 0.5, number);
        int length = snprintf(text, sizeof text, "[%zu, %s]", i, number);
        tp_json_document *document;
        TP_TRY(tp_json_parse(text, (size_t)length, "part", &document));
        ((double *)user)[i] = tp_json_root(document)->items[1].number;
        tp_json_destroy(document);
    }
    return TPUCL_OK;
}

static void run_pool(void)
{
    static double results[3000];
    tp_pool *pool;
    require_ok(tp_pool_create(4, &pool));
    for (int repeat = 0; repeat < 10; repeat++) {
        memset(results, 0, sizeof results);
        require_ok(tp_pool_parallel_for(pool, 3000, 7, parse_part, results));
        for (int i = 0; i < 3000; i++)
            require(results[i] == i + 0.5, "a part was not done");
    }
    tp_pool_destroy(pool);
}

int main(void)
{
    run_queue();
    run_cancel();
    run_pool();
    return 0;
}
