/* SPDX-License-Identifier: Apache-2.0
 * Worker threads that share the iterations of a loop. The partition depends on `count` and `grain`
 * alone, never on the number of threads, so that per-part results can be combined in part order
 * with the same bits on any machine. */
#ifndef TP_CORE_POOL_H
#define TP_CORE_POOL_H

#include <stddef.h>
#include "core/status.h"

typedef struct tp_pool tp_pool;

/* `threads` includes the caller of parallel_for; 0 means TPUCL_THREADS, or one per
 * processor. */
tpucl_status tp_pool_create(int threads, tp_pool **out_pool) TPUCL_MUST_CHECK;
void tp_pool_destroy(tp_pool *pool);
int tp_pool_thread_count(const tp_pool *pool); /* 1 for NULL */

/* Handles iterations begin..end-1, which are part number begin / grain. `worker` is from 0 to
 * threads-1: two calls at the same time never have the same. */
typedef tpucl_status (*tp_pool_function)(void *user, size_t begin, size_t end, int worker);

/* Cuts 0..count-1 into parts of `grain` iterations (0 counts as 1; the last may be shorter) and
 * runs them all; returns when every part is done. After a failure the parts that have not begun are
 * left out, and the failure of the lowest part among those that ran is reported. One loop at a time
 * per pool (thread-compatible); a loop inside a part must use another pool or NULL. With pool NULL
 * the caller does everything itself, in order. */
tpucl_status tp_pool_parallel_for(tp_pool *pool, size_t count, size_t grain,
                                  tp_pool_function function, void *user) TPUCL_MUST_CHECK;

#endif
