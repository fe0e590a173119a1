/* SPDX-License-Identifier: Apache-2.0
 * Bounded blocking queue of pointers, for any number of producers and consumers. Thread-safe.
 * Ownership of an item passes to the queue with a push that returns TPUCL_OK, and to the consumer
 * with a pop that does. */
#ifndef TP_CORE_QUEUE_H
#define TP_CORE_QUEUE_H

#include <stddef.h>
#include "core/status.h"

typedef struct tp_queue tp_queue;

/* `discard` is called for every item that nobody takes (cancel, destroy); NULL when items need
 * nothing. */
tpucl_status tp_queue_create(size_t capacity, void (*discard)(void *item),
                             tp_queue **out_queue) TPUCL_MUST_CHECK;
/* No thread may be inside the queue any more. */
void tp_queue_destroy(tp_queue *queue);

/* Blocks while full. TPUCL_INTERRUPTED after close or cancel; the item then stays the caller's. */
tpucl_status tp_queue_push(tp_queue *queue, void *item) TPUCL_MUST_CHECK;
/* Blocks while empty. TPUCL_END_OF_DATA once closed and drained. After a cancel: the reason that
 * was given, or TPUCL_INTERRUPTED. */
tpucl_status tp_queue_pop(tp_queue *queue, void **out_item) TPUCL_MUST_CHECK;
/* Like pop, but at once: *out_item is NULL with TPUCL_OK when the queue is empty and still open. */
tpucl_status tp_queue_try_pop(tp_queue *queue, void **out_item) TPUCL_MUST_CHECK;
size_t tp_queue_count(tp_queue *queue);

/* No further pushes; what is inside can still be taken. */
void tp_queue_close(tp_queue *queue);
/* Wakes everybody, discards what is inside. `reason` (may be NULL) is what every later pop reports;
 * the first reason wins. */
void tp_queue_cancel(tp_queue *queue, const tpucl_error *reason);

#endif
