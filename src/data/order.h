/* SPDX-License-Identifier: Apache-2.0
 * In which order an epoch visits examples: a pure function of (seed, epoch), so that the shuffle's state is
 * just the epoch and the position, and resuming needs nothing else.
 *
 * With a buffer smaller than the set this is a windowed shuffle as in tf.data: a buffer is filled from the
 * examples in order; each draw takes a random slot, which the next example refills. With the whole set in
 * the buffer that is a uniform permutation.
 */
#ifndef TP_DATA_ORDER_H
#define TP_DATA_ORDER_H

#include "core/status.h"

/* Fills out[0 .. count-1] with a permutation of 0 .. count-1. `buffer` 0 or >= count: the whole set;
 * 1: file order. */
tpucl_status tp_order_fill(int64_t count, int64_t buffer, uint64_t seed, uint32_t epoch,
                           int64_t *out);

#endif
