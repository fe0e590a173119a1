/* SPDX-License-Identifier: Apache-2.0
 * Which rows of a global batch a core gets, and what they weigh: rows c * B .. (c + 1) * B - 1 for core c, B
 * the per-core batch. Rows behind the last example have weight 0. Of everybody who fills infeed records. */
#ifndef TP_TRAIN_SHARD_H
#define TP_TRAIN_SHARD_H

#include <stddef.h>
#include <stdint.h>

/* How many of the core's rows are examples, when the global batch begins with `examples` of them. */
static inline int64_t tp_shard_rows(int32_t core, int64_t per_core_batch, int64_t examples)
{
    const int64_t rows = examples - core * per_core_batch;
    return rows < 0 ? 0 : rows < per_core_batch ? rows : per_core_batch;
}

/* [per_core_batch]: 1 for the first `rows`, 0 for the others. */
static inline void tp_shard_fill_weights(float *out_weights, int64_t per_core_batch, int64_t rows)
{
    for (int64_t row = 0; row < per_core_batch; row++)
        out_weights[row] = row < rows ? 1.0f : 0.0f;
}

/* Sum of weights in the core's replica group. `group_cores` holds core ids, group after group, `core_count`
 * in all; NULL: one group. 1 for a group without examples: nothing is divided by zero. */
static inline float tp_shard_group_weight(const int32_t *group_cores, int32_t group_size,
                                          int32_t core_count, int32_t core, int64_t per_core_batch,
                                          int64_t examples)
{
    int64_t sum = 0;
    int32_t first = 0;
    if (!group_cores) return examples > 0 ? (float)examples : 1.0f;
    for (int32_t i = 0; i < core_count; i++)
        if (group_cores[i] == core) first = i / group_size * group_size;
    for (int32_t i = first; i < first + group_size; i++)
        sum += tp_shard_rows(group_cores[i], per_core_batch, examples);
    return sum > 0 ? (float)sum : 1.0f;
}

#endif
