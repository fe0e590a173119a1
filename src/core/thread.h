/* SPDX-License-Identifier: Apache-2.0
 * Threads, mutexes, conditions, once: POSIX threads under names of ours. Locking cannot fail on
 * objects that were initialised, so those calls return nothing. */
#ifndef TP_CORE_THREAD_H
#define TP_CORE_THREAD_H

#include <pthread.h>
#include <stdint.h>
#include "core/status.h"

typedef pthread_mutex_t tp_mutex;
typedef pthread_cond_t tp_cond; /* timed waits use the monotonic clock */
typedef pthread_once_t tp_once;
#define TP_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define TP_ONCE_INIT PTHREAD_ONCE_INIT

tpucl_status tp_mutex_init(tp_mutex *mutex) TPUCL_MUST_CHECK;
void tp_mutex_deinit(tp_mutex *mutex);
void tp_mutex_lock(tp_mutex *mutex);
void tp_mutex_unlock(tp_mutex *mutex);

tpucl_status tp_cond_init(tp_cond *cond) TPUCL_MUST_CHECK;
void tp_cond_deinit(tp_cond *cond);
void tp_cond_wait(tp_cond *cond, tp_mutex *mutex);
/* False when `timeout_ns` passed without a signal. */
bool tp_cond_wait_for(tp_cond *cond, tp_mutex *mutex, uint64_t timeout_ns);
void tp_cond_signal(tp_cond *cond);
void tp_cond_broadcast(tp_cond *cond);

void tp_once_run(tp_once *once, void (*function)(void));

typedef struct tp_thread tp_thread;
/* Runs `function(user)` on a new thread; `name` (15 characters shown) is for debuggers. */
tpucl_status tp_thread_create(const char *name, tpucl_status (*function)(void *user), void *user,
                              tp_thread **out_thread) TPUCL_MUST_CHECK;
/* Waits, frees, and returns what the function returned with its error record restored here. NULL is
 * OK. */
tpucl_status tp_thread_join(tp_thread *thread);

/* Processors this process may use, at least 1. */
int tp_thread_processor_count(void);

#endif
