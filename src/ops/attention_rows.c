/* SPDX-License-Identifier: Apache-2.0
 * One head of attention on the host: see attention_rows.h.
 */
#include "ops/attention_rows.h"

#include "core/alloc.h"
#include "num/philox.h"

tpucl_status tp_attention_head_init(tp_attention_head *out_head, const tp_attention_geometry *g)
{
    *out_head =
        (tp_attention_head){.query = TP_NEW_ARRAY(float, (size_t)(g->queries * g->depth)),
                            .key = TP_NEW_ARRAY(float, (size_t)(g->keys * g->depth)),
                            .key_columns = TP_NEW_ARRAY(float, (size_t)(g->keys * g->depth)),
                            .value = TP_NEW_ARRAY(float, (size_t)(g->keys * g->width)),
                            .scores = TP_NEW_ARRAY(float, TP_ATTENTION_BLOCK *TP_ATTENTION_BLOCK)};
    const bool is_whole = out_head->query && out_head->key && out_head->key_columns &&
                          out_head->value && out_head->scores;
    return is_whole ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

void tp_attention_head_deinit(tp_attention_head *head)
{
    tp_free(head->query);
    tp_free(head->key);
    tp_free(head->key_columns);
    tp_free(head->value);
    tp_free(head->scores);
}

void tp_attention_load_rows(const tp_host_tensor *x, int64_t batch, int64_t head, int64_t elems,
                            float *to)
{
    const int64_t rows = x->shape.dims[1], heads = x->shape.dims[2], stride = x->shape.dims[3];
    for (int64_t row = 0; row < rows; row++)
        for (int64_t e = 0; e < elems; e++)
            *to++ = tp_host_load(x, ((batch * rows + row) * heads + head) * stride + e);
}

void tp_attention_head_load(tp_attention_head *head, const tp_attention_geometry *g,
                            const tp_host_tensor *inputs, const tp_host_tensor *mask,
                            const tp_eval_context *context, int64_t batch, int64_t number)
{
    const int64_t shared = number / (g->heads / g->shared);
    head->batch = batch;
    head->number = number;
    head->mask = mask;
    head->context = *context;
    tp_attention_load_rows(&inputs[0], batch, number, g->depth, head->query);
    tp_attention_load_rows(&inputs[1], batch, shared, g->depth, head->key);
    tp_attention_load_rows(&inputs[2], batch, shared, g->width, head->value);
    for (int64_t block = 0; block * TP_ATTENTION_BLOCK < g->keys; block++) {
        const int64_t first = block * TP_ATTENTION_BLOCK, keys = tp_attention_block_keys(g, block);
        for (int64_t e = 0; e < g->depth; e++)
            for (int64_t j = 0; j < keys; j++)
                head->key_columns[first * g->depth + e * keys + j] =
                    head->key[(first + j) * g->depth + e];
    }
}

int64_t tp_attention_block_keys(const tp_attention_geometry *g, int64_t block)
{
    const int64_t left = g->keys - block * TP_ATTENTION_BLOCK;
    return left < TP_ATTENTION_BLOCK ? left : TP_ATTENTION_BLOCK;
}

tpucl_status tp_attention_scores(const tp_attention_geometry *g, const tp_attention_head *head,
                                 int64_t first, int64_t count, int64_t block, float *out)
{
    const int64_t keys = tp_attention_block_keys(g, block);
    TP_TRY(tp_mxu_matmul(g->precision, count, keys, g->depth, head->query + first * g->depth,
                         head->key_columns + block * TP_ATTENTION_BLOCK * g->depth, out));
    for (int64_t i = 0; i < count * keys; i++)
        out[i] = tp_flush(out[i] * g->scale);
    return TPUCL_OK;
}

bool tp_attention_may_see(const tp_attention_geometry *g, const tp_attention_head *head,
                          int64_t query, int64_t key)
{
    if (g->is_causal && key > query) return false;
    if (g->window > 0 && (key - query >= g->window || query - key >= g->window)) return false;
    if (!head->mask) return true;
    const int64_t at = head->batch * g->mask_strides[0] + head->number * g->mask_strides[1] +
                       query * g->mask_strides[2] + key;
    return ((const uint8_t *)head->mask->data)[at] != 0;
}

float tp_attention_drop(const tp_attention_geometry *g, const tp_attention_head *head,
                        int64_t query, int64_t key, float p)
{
    if (g->dropout == 0) return p;
    const tp_eval_context *context = &head->context;
    const tp_random_stream stream =
        tp_random_stream_make((uint32_t)context->seed, (uint32_t)(context->seed >> 32), g->stream,
                              context->core, context->step);
    /* A row has a whole number of blocks; 64 neighbours are the four words of 16 counters, so that 16
     * lanes draw 16 neighbours at once. */
    const int64_t blocks = (g->keys + TP_ATTENTION_BLOCK - 1) / TP_ATTENTION_BLOCK;
    const int64_t row = (head->batch * g->heads + head->number) * g->queries + query;
    const int64_t counter = row * blocks * (TP_ATTENTION_BLOCK / 4) + key / 64 * 16 + key % 16;
    const bool is_kept = tp_random_bernoulli(stream, (uint32_t)counter, (uint32_t)(key / 16 % 4),
                                             tp_attention_threshold(g)) != 0;
    return is_kept ? p * tp_attention_raise(g) : 0.0f;
}
