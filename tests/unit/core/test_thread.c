/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "core/pool.h"
#include "core/queue.h"
#include "core/thread.h"

static tpucl_status fail_with(void *user)
{
    return TP_FAIL_CODE(TPUCL_IO_ERROR, 5, "worker %s", (const char *)user);
}

Test(thread, join_brings_the_error_here)
{
    tp_thread *thread;
    cr_assert_eq(tp_thread_create("worker", fail_with, "seven", &thread), TPUCL_OK);
    tp_error_clear();
    cr_assert_eq(tp_thread_join(thread), TPUCL_IO_ERROR);
    cr_assert_str_eq(tpucl_last_error()->message, "worker seven");
    cr_assert_eq(tp_thread_join(NULL), TPUCL_OK);
    cr_assert_geq(tp_thread_processor_count(), 1);
}

Test(thread, timed_wait_ends)
{
    tp_mutex mutex;
    tp_cond cond;
    cr_assert_eq(tp_mutex_init(&mutex), TPUCL_OK);
    cr_assert_eq(tp_cond_init(&cond), TPUCL_OK);
    tp_mutex_lock(&mutex);
    cr_assert_not(tp_cond_wait_for(&cond, &mutex, 1000000));
    tp_mutex_unlock(&mutex);
    tp_cond_deinit(&cond);
    tp_mutex_deinit(&mutex);
}

/* ---- queue ---- */

enum { ITEMS = 2000 };
static int items[2 * ITEMS];
static _Atomic int discarded;

static void discard(void *item)
{
    (void)item;
    discarded++;
}

typedef struct producer {
    tp_queue *queue;
    int first;
} producer;

static tpucl_status produce(void *user)
{
    const producer *p = user;
    for (int i = 0; i < ITEMS; i++) {
        items[p->first + i] = p->first + i;
        TP_TRY(tp_queue_push(p->queue, &items[p->first + i]));
    }
    return TPUCL_OK;
}

Test(queue, every_item_arrives_once_and_in_each_producers_order)
{
    tp_queue *queue;
    tp_thread *threads[2];
    static bool seen[2 * ITEMS];
    int last[2] = {-1, ITEMS - 1};
    cr_assert_eq(tp_queue_create(3, NULL, &queue), TPUCL_OK);
    producer producers[2] = {{queue, 0}, {queue, ITEMS}};
    for (int i = 0; i < 2; i++)
        cr_assert_eq(tp_thread_create("p", produce, &producers[i], &threads[i]), TPUCL_OK);
    for (int i = 0; i < 2 * ITEMS; i++) {
        void *item;
        cr_assert_eq(tp_queue_pop(queue, &item), TPUCL_OK);
        int value = *(int *)item;
        cr_assert_not(seen[value]);
        seen[value] = true;
        cr_assert_eq(value, last[value >= ITEMS] + 1);
        last[value >= ITEMS] = value;
    }
    for (int i = 0; i < 2; i++)
        cr_assert_eq(tp_thread_join(threads[i]), TPUCL_OK);
    tp_queue_close(queue);
    void *item;
    cr_assert_eq(tp_queue_pop(queue, &item), TPUCL_END_OF_DATA);
    cr_assert_eq(tp_queue_push(queue, items), TPUCL_INTERRUPTED);
    tp_queue_destroy(queue);
}

Test(queue, close_lets_the_rest_be_taken)
{
    tp_queue *queue;
    void *item;
    cr_assert_eq(tp_queue_create(2, discard, &queue), TPUCL_OK);
    cr_assert_eq(tp_queue_try_pop(queue, &item), TPUCL_OK);
    cr_assert_null(item);
    cr_assert_eq(tp_queue_push(queue, &items[0]), TPUCL_OK);
    cr_assert_eq(tp_queue_push(queue, &items[1]), TPUCL_OK);
    cr_assert_eq(tp_queue_count(queue), 2);
    tp_queue_close(queue);
    cr_assert_eq(tp_queue_pop(queue, &item), TPUCL_OK);
    cr_assert_eq(item, &items[0]);
    tp_queue_destroy(queue); /* the other one is discarded */
    cr_assert_eq(discarded, 1);
    cr_assert_eq(tp_queue_create(0, NULL, &queue), TPUCL_INVALID_ARGUMENT);
    cr_assert_eq(tp_queue_create((size_t)-1, NULL, &queue), TPUCL_OUT_OF_MEMORY);
}

static tpucl_status push_until_refused(void *user)
{
    for (;;)
        TP_TRY(tp_queue_push(user, &items[0]));
}

Test(queue, cancel_wakes_a_producer_and_gives_the_reason)
{
    tp_queue *queue;
    tp_thread *thread;
    void *item;
    cr_assert_eq(tp_queue_create(2, discard, &queue), TPUCL_OK);
    cr_assert_eq(tp_thread_create("p", push_until_refused, queue, &thread), TPUCL_OK);
    cr_assert_eq(tp_queue_pop(queue, &item), TPUCL_OK);
    TP_FAIL(TPUCL_CORRUPT_DATA, "shard 3 ends early");
    tp_queue_cancel(queue, tpucl_last_error());
    cr_assert_eq(tp_thread_join(thread), TPUCL_INTERRUPTED);
    tp_queue_cancel(queue, NULL);
    cr_assert_eq(tp_queue_pop(queue, &item), TPUCL_CORRUPT_DATA);
    cr_assert_str_eq(tpucl_last_error()->message, "shard 3 ends early");
    tp_queue_destroy(queue);
}

/* ---- pool ---- */

typedef struct sums {
    size_t count, grain;
    int64_t parts[64];
    _Atomic int busy[16];
    _Atomic int calls;
    size_t fail_at;
} sums;

static tpucl_status sum_part(void *user, size_t begin, size_t end, int worker)
{
    sums *s = user;
    s->calls++;
    cr_assert_eq(atomic_fetch_add(&s->busy[worker], 1), 0, "a worker is never used twice at once");
    cr_assert(begin % s->grain == 0 && begin < end && end <= s->count);
    for (size_t i = begin; i < end; i++)
        s->parts[begin / s->grain] += (int64_t)i;
    atomic_fetch_sub(&s->busy[worker], 1);
    if (begin >= s->fail_at) return TP_FAIL(TPUCL_IO_ERROR, "part %zu", begin / s->grain);
    return TPUCL_OK;
}

Test(pool, parts_depend_on_count_and_grain_alone)
{
    for (int threads = 1; threads <= 5; threads++) {
        tp_pool *pool;
        cr_assert_eq(tp_pool_create(threads, &pool), TPUCL_OK);
        cr_assert_eq(tp_pool_thread_count(pool), threads);
        for (int repeat = 0; repeat < 200; repeat++) {
            sums s = {.count = 1000, .grain = 64, .fail_at = SIZE_MAX};
            cr_assert_eq(tp_pool_parallel_for(pool, s.count, s.grain, sum_part, &s), TPUCL_OK);
            cr_assert_eq(s.calls, 16);
            int64_t total = 0;
            for (int i = 0; i < 16; i++)
                total += s.parts[i];
            cr_assert_eq(total, 499500);
            cr_assert_eq(s.parts[15], 39180); /* 960 + 961 + ... + 999 */
        }
        tp_pool_destroy(pool);
    }
}

Test(pool, size_from_the_environment)
{
    tp_pool *pool;
    setenv("TPUCL_THREADS", "3", 1);
    cr_assert_eq(tp_pool_create(0, &pool), TPUCL_OK);
    cr_assert_eq(tp_pool_thread_count(pool), 3);
    tp_pool_destroy(pool);
    setenv("TPUCL_THREADS", "0", 1);
    cr_assert_eq(tp_pool_create(0, &pool), TPUCL_INVALID_CONFIG);
    cr_assert_eq(tp_pool_create(-1, &pool), TPUCL_INVALID_ARGUMENT);
}

Test(pool, nothing_to_do_and_no_pool)
{
    sums s = {.count = 10, .grain = 3, .fail_at = SIZE_MAX};
    cr_assert_eq(tp_pool_parallel_for(NULL, 0, 1, sum_part, &s), TPUCL_OK);
    cr_assert_eq(s.calls, 0);
    cr_assert_eq(tp_pool_parallel_for(NULL, 10, 3, sum_part, &s), TPUCL_OK);
    cr_assert_eq(s.parts[3], 9);
    cr_assert_eq(tp_pool_thread_count(NULL), 1);
    tp_pool_destroy(NULL);
}

Test(pool, failure_stops_the_loop_and_is_reported)
{
    tp_pool *pool;
    cr_assert_eq(tp_pool_create(3, &pool), TPUCL_OK);
    sums s = {.count = 64000, .grain = 1000, .fail_at = 5000};
    tp_error_clear();
    cr_assert_eq(tp_pool_parallel_for(pool, s.count, s.grain, sum_part, &s), TPUCL_IO_ERROR);
    cr_assert_str_eq(tpucl_last_error()->message, "part 5");
    cr_assert_lt(s.calls, 64);
    sums good = {.count = 100, .grain = 10, .fail_at = SIZE_MAX};
    cr_assert_eq(tp_pool_parallel_for(pool, good.count, good.grain, sum_part, &good), TPUCL_OK);
    tp_pool_destroy(pool);
}

/* Part 2 fails first, then 1, then 0: each waits until the one above it has begun to fail. */
static tpucl_status fail_from_above(void *user, size_t begin, size_t end, int worker)
{
    _Atomic int *turn = user;
    (void)end, (void)worker;
    while (*turn != (int)begin)
        tp_clock_sleep_ns(100000);
    tpucl_status status = TP_FAIL(TPUCL_IO_ERROR, "part %zu", begin);
    *turn = (int)begin - 1;
    return status;
}

Test(pool, the_lowest_failure_wins)
{
    tp_pool *pool;
    cr_assert_eq(tp_pool_create(3, &pool), TPUCL_OK);
    for (int repeat = 0; repeat < 20; repeat++) {
        _Atomic int turn = 2;
        cr_assert_eq(tp_pool_parallel_for(pool, 3, 1, fail_from_above, &turn), TPUCL_IO_ERROR);
        cr_assert_str_eq(tpucl_last_error()->message, "part 0");
    }
    tp_pool_destroy(pool);
}
