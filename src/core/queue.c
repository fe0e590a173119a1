/* SPDX-License-Identifier: Apache-2.0
 * A ring under one mutex. */
#include "core/queue.h"

#include <string.h>
#include "core/alloc.h"
#include "core/thread.h"

struct tp_queue {
    tp_mutex mutex;
    tp_cond not_full, not_empty;
    void (*discard)(void *item);
    size_t capacity, first, count;
    bool closed, cancelled;
    tpucl_error reason; /* of the cancel */
    void *items[];
};

tpucl_status tp_queue_create(size_t capacity, void (*discard)(void *item), tp_queue **out_queue)
{
    *out_queue = NULL;
    size_t bytes;
    if (capacity == 0) return TP_FAIL(TPUCL_INVALID_ARGUMENT, "a queue needs room for 1 item");
    if (!tp_size_mul(capacity, sizeof(void *), &bytes) ||
        !tp_size_add(bytes, sizeof(tp_queue), &bytes))
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "a queue of %zu items is too large", capacity);
    tp_queue *queue = tp_alloc_zero(bytes);
    if (!queue) return TPUCL_OUT_OF_MEMORY;
    queue->capacity = capacity;
    queue->discard = discard;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_mutex_init(&queue->mutex), no_mutex);
    TP_TRY_GOTO(status, tp_cond_init(&queue->not_full), no_not_full);
    TP_TRY_GOTO(status, tp_cond_init(&queue->not_empty), no_not_empty);
    *out_queue = queue;
    return TPUCL_OK;
no_not_empty:
    tp_cond_deinit(&queue->not_full);
no_not_full:
    tp_mutex_deinit(&queue->mutex);
no_mutex:
    tp_free(queue);
    return status;
}

static void *take_first(tp_queue *queue)
{
    void *item = queue->items[queue->first];
    queue->first = (queue->first + 1) % queue->capacity;
    queue->count--;
    return item;
}

static void discard_all(tp_queue *queue)
{
    while (queue->count) {
        void *item = take_first(queue);
        if (queue->discard) queue->discard(item);
    }
}

void tp_queue_destroy(tp_queue *queue)
{
    if (!queue) return;
    discard_all(queue);
    tp_cond_deinit(&queue->not_empty);
    tp_cond_deinit(&queue->not_full);
    tp_mutex_deinit(&queue->mutex);
    tp_free(queue);
}

tpucl_status tp_queue_push(tp_queue *queue, void *item)
{
    tp_mutex_lock(&queue->mutex);
    while (queue->count == queue->capacity && !queue->closed)
        tp_cond_wait(&queue->not_full, &queue->mutex);
    bool accepted = !queue->closed;
    if (accepted) {
        queue->items[(queue->first + queue->count) % queue->capacity] = item;
        queue->count++;
        tp_cond_signal(&queue->not_empty);
    }
    tp_mutex_unlock(&queue->mutex);
    return accepted ? TPUCL_OK : TP_FAIL(TPUCL_INTERRUPTED, "the queue takes no more items");
}

static tpucl_status pop(tp_queue *queue, bool wait, void **out_item)
{
    *out_item = NULL;
    tp_mutex_lock(&queue->mutex);
    while (wait && queue->count == 0 && !queue->closed)
        tp_cond_wait(&queue->not_empty, &queue->mutex);
    bool cancelled = queue->cancelled, ended = queue->closed && queue->count == 0;
    if (!cancelled && queue->count) {
        *out_item = take_first(queue);
        tp_cond_signal(&queue->not_full);
    }
    tp_mutex_unlock(&queue->mutex);
    if (cancelled && queue->reason.status != TPUCL_OK) { /* set before `cancelled`, never after */
        tp_error_restore(&queue->reason);
        return queue->reason.status;
    }
    if (cancelled) return TP_FAIL(TPUCL_INTERRUPTED, "the queue was cancelled");
    if (ended) return TP_FAIL(TPUCL_END_OF_DATA, "the queue has no further items");
    return TPUCL_OK;
}

tpucl_status tp_queue_pop(tp_queue *queue, void **out_item)
{
    return pop(queue, true, out_item);
}

tpucl_status tp_queue_try_pop(tp_queue *queue, void **out_item)
{
    return pop(queue, false, out_item);
}

size_t tp_queue_count(tp_queue *queue)
{
    tp_mutex_lock(&queue->mutex);
    size_t count = queue->count;
    tp_mutex_unlock(&queue->mutex);
    return count;
}

void tp_queue_close(tp_queue *queue)
{
    tp_mutex_lock(&queue->mutex);
    queue->closed = true;
    tp_cond_broadcast(&queue->not_full);
    tp_cond_broadcast(&queue->not_empty);
    tp_mutex_unlock(&queue->mutex);
}

void tp_queue_cancel(tp_queue *queue, const tpucl_error *reason)
{
    tp_mutex_lock(&queue->mutex);
    if (!queue->cancelled && reason) queue->reason = *reason;
    queue->closed = queue->cancelled = true;
    discard_all(queue);
    tp_cond_broadcast(&queue->not_full);
    tp_cond_broadcast(&queue->not_empty);
    tp_mutex_unlock(&queue->mutex);
}
