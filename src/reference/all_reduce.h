/* SPDX-License-Identifier: Apache-2.0
 * The cross-core sum of the contract on the host. */
#ifndef TP_REFERENCE_ALL_REDUCE_H
#define TP_REFERENCE_ALL_REDUCE_H

#include <stdint.h>

/* out[i] = the balanced tree over parts[0][i] .. parts[count-1][i], flushed once. `parts` may be
 * the same array several times; `out` is none of them. */
void tp_reference_all_reduce(const float *const *parts, int32_t count, int64_t elems, float *out);

#endif
