/* SPDX-License-Identifier: Apache-2.0
 * What the evaluations of attention and of its gradient share: one head's operands as dense f32, scores of
 * a block, which keys may be seen, which probabilities are dropped.
 */
#ifndef TP_OPS_ATTENTION_ROWS_H
#define TP_OPS_ATTENTION_ROWS_H

#include "graph/attention.h"
#include "num/reduce.h"
#include "ops/host_values.h"

/* The attributes of both ops. */
extern const tp_attr_spec tp_attention_attrs[];

/* One head of one example. */
typedef struct tp_attention_head {
    int64_t batch, number; /* which */
    float *query;          /* [queries][depth] */
    float *key;            /* [keys][depth] */
    float *key_columns;    /* [blocks of keys][depth][keys of the block] */
    float *value;          /* [keys][width] */
    float *scores;         /* [128][128], scratch */
    const tp_host_tensor *mask;
    tp_eval_context context;
} tp_attention_head;

/* What a query has seen so far. */
typedef struct tp_attention_state {
    float largest, sum, keep; /* keep: what becomes of the sums so far */
    float *seen;              /* [width] */
} tp_attention_state;

/* Allocates; deinit() frees, also after a failure. */
tpucl_status tp_attention_head_init(tp_attention_head *out_head, const tp_attention_geometry *g);
void tp_attention_head_deinit(tp_attention_head *head);
void tp_attention_head_load(tp_attention_head *head, const tp_attention_geometry *g,
                            const tp_host_tensor *inputs, const tp_host_tensor *mask,
                            const tp_eval_context *context, int64_t batch, int64_t number);

/* Keys of a block: 128, or what is left. */
int64_t tp_attention_block_keys(const tp_attention_geometry *g, int64_t block);

/* out[count][keys of the block] = scale * (query . key), flushed. */
tpucl_status tp_attention_scores(const tp_attention_geometry *g, const tp_attention_head *head,
                                 int64_t first, int64_t count, int64_t block, float *out);

bool tp_attention_may_see(const tp_attention_geometry *g, const tp_attention_head *head,
                          int64_t query, int64_t key);

/* p * tp_attention_raise(), or 0 where it is dropped. */
float tp_attention_drop(const tp_attention_geometry *g, const tp_attention_head *head,
                        int64_t query, int64_t key, float p);

/* to[row][e] = x[batch, row, head, e] for the first `elems` of the last axis of x. */
void tp_attention_load_rows(const tp_host_tensor *x, int64_t batch, int64_t head, int64_t elems,
                            float *to);

#endif
