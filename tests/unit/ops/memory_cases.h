/* SPDX-License-Identifier: Apache-2.0
 * Dimension numbers of gathers and scatters: CASES of tests/golden/gen_memory.py. Together they have every
 * kind of dim: collapsed and kept, batching, slices of several dims that overlap, components in any order,
 * and indices outside on both sides.
 */
#ifndef TESTS_UNIT_OPS_MEMORY_CASES_H
#define TESTS_UNIT_OPS_MEMORY_CASES_H

#include "golden/memory.h"
#include "graph/builder.h"

typedef struct memory_case {
    const char *name;
    tp_shape operand, indices, dense; /* dense: of the gathered result and of the updates */
    tp_index_dims dims;
    int64_t slices[TP_MAX_RANK];
    const uint32_t *index_values;
    const uint32_t *gathered[2];                                       /* clamp, zero */
    const uint32_t *added[2], *largest[2], *smallest[2], *replaced[2]; /* clamp, skip */
} memory_case;

#define MEMORY_GOLDEN(name)                                                                        \
    .index_values = golden_index_##name,                                                           \
    .gathered = {golden_gather_##name##_clamp, golden_gather_##name##_zero},                       \
    .added = {golden_scatter_##name##_add_clamp, golden_scatter_##name##_add_skip},                \
    .largest = {golden_scatter_##name##_max_clamp, golden_scatter_##name##_max_skip},              \
    .smallest = {golden_scatter_##name##_min_clamp, golden_scatter_##name##_min_skip},             \
    .replaced = {golden_scatter_##name##_replace_clamp, golden_scatter_##name##_replace_skip}

static const memory_case memory_cases[] = {
    {"rows",
     {2, {11, 5}},
     {2, {3, 4}},
     {3, {3, 4, 5}},
     {.window = {2},
      .window_count = 1,
      .collapsed = {0},
      .collapsed_count = 1,
      .map = {0},
      .map_count = 1,
      .vector_dim = 2},
     {1, 5},
     MEMORY_GOLDEN(rows)},
    {"middle",
     {3, {3, 7, 4}},
     {1, {5}},
     {3, {3, 5, 4}},
     {.window = {0, 2},
      .window_count = 2,
      .collapsed = {1},
      .collapsed_count = 1,
      .map = {1},
      .map_count = 1,
      .vector_dim = 1},
     {3, 1, 4},
     MEMORY_GOLDEN(middle)},
    {"along",
     {3, {3, 6, 4}},
     {3, {3, 2, 4}},
     {3, {3, 2, 4}},
     {.collapsed = {1},
      .collapsed_count = 1,
      .batch = {0, 2},
      .index_batch = {0, 2},
      .batch_count = 2,
      .map = {1},
      .map_count = 1,
      .vector_dim = 3},
     {1, 1, 1},
     MEMORY_GOLDEN(along)},
    {"boxes",
     {3, {4, 3, 5}},
     {3, {3, 2, 2}},
     {4, {3, 2, 2, 3}},
     {.window = {1, 3},
      .window_count = 2,
      .collapsed = {1},
      .collapsed_count = 1,
      .map = {2, 0},
      .map_count = 2,
      .vector_dim = 2},
     {2, 1, 3},
     MEMORY_GOLDEN(boxes)},
    {"batched",
     {4, {2, 4, 3, 3}},
     {4, {3, 2, 2, 2}},
     {5, {2, 3, 2, 2, 2}},
     {.window = {0, 4},
      .window_count = 2,
      .batch = {0, 3},
      .index_batch = {1, 0},
      .batch_count = 2,
      .map = {2, 1},
      .map_count = 2,
      .vector_dim = 3},
     {1, 2, 2, 1},
     MEMORY_GOLDEN(batched)},
};

enum { MEMORY_CASES = sizeof memory_cases / sizeof memory_cases[0] };

static inline tp_node_id memory_case_indices(tp_graph *graph, const memory_case *c)
{
    return tp_op_constant(graph, TP_S32, c->indices, c->index_values);
}

#endif
