/* SPDX-License-Identifier: Apache-2.0
 * The numbers of `attention` and `attention_grad`, for rules and lowering alike; see geometry.h.
 *
 *   query [batch, queries, heads, depth]   key [batch, keys, shared, depth]   value [batch, keys, shared, width]
 *   mask  pred [batch or 1, heads or 1, queries or 1, keys]
 *   attention       [batch, queries, heads, width + 2]: what the queries see, the largest score, 1 / sum
 *   attention_grad  1-D: the gradients of query, key and value one after the other, each row-major
 * Query head h takes key head h / (heads / shared), so that neighbours share (grouped-query attention).
 */
#ifndef TP_GRAPH_ATTENTION_H
#define TP_GRAPH_ATTENTION_H

#include <stdbool.h>
#include "core/status.h"
#include "graph/graph.h"
#include "num/mxu.h"

#define TP_ATTENTION_BLOCK 128 /* keys at a time, and queries in a chunk */

typedef struct tp_attention_geometry {
    int64_t batch, queries, keys, heads, shared, depth, width;
    int64_t window; /* query i sees key j only if |i - j| < window; 0: all */
    bool is_causal; /* ... and only if i >= j */
    bool has_mask;
    int64_t mask_strides[3]; /* in elements, of batch, head and query; 0 where one serves all */
    float scale;
    tp_precision precision; /* DEFAULT or F32 */
    double dropout;         /* share of probabilities that are dropped; 0: none */
    uint32_t stream;        /* of the random numbers */
} tp_attention_geometry;

/* Of a node of either op; `mask` is NULL where there is none. */
tpucl_status tp_attention_geometry_read(const tp_node *node, const tp_shape *query,
                                        const tp_shape *key, const tp_shape *value,
                                        const tp_shape *mask,
                                        tp_attention_geometry *out_geometry) TPUCL_MUST_CHECK;

/* Places of the gradients in the result of attention_grad, and its length. */
typedef struct tp_attention_places {
    int64_t query, key, value, end;
} tp_attention_places;
tp_attention_places tp_attention_places_of(const tp_attention_geometry *geometry);

/* What random_bernoulli keeps a probability by, and what a kept one is multiplied with: 1 / (1 - dropout), 0
 * when all are dropped. */
uint32_t tp_attention_threshold(const tp_attention_geometry *geometry);
float tp_attention_raise(const tp_attention_geometry *geometry);

/* Whether the pattern (causal, window) lets any query from first_query on, `queries` of them, see any of the
 * `keys` from first_key on. Pairs of a chunk of queries and a block of keys where it does not take no part. */
bool tp_attention_sees(const tp_attention_geometry *geometry, int64_t first_query, int64_t queries,
                       int64_t first_key, int64_t keys);

#endif
