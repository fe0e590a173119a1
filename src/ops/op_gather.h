/* SPDX-License-Identifier: Apache-2.0
 * gather (embedding look-up, take along an axis), and what it shares with scatter and the dynamic slices:
 * where on the host an element lies. See graph/indexing.h for the numbers. */
#ifndef TP_OPS_OP_GATHER_H
#define TP_OPS_OP_GATHER_H

#include "graph/indexing.h"
#include "graph/opdef.h"

extern const tp_opdef tp_opdef_gather;

/* Offset in the indexed tensor of the dense element at `at` (one index per dim); false when it has no
 * place, which happens only without `clamps`. `indices` are s32 or u32. */
bool tp_indexing_locate(const tp_indexing *indexing, const tp_host_tensor *indices, bool clamps,
                        const int64_t *at, int64_t *out_offset);

/* Steps `at` to its row-major successor below the dense sizes; false after the last. */
bool tp_indexing_advance(const tp_indexing *indexing, int64_t *at);

/* What the attribute `out_of_range` says; "clamp" when it is absent. */
bool tp_indexing_clamps(const tp_node *node);

/* Fails unless input `index` is s32 or u32. */
tpucl_status tp_indexing_check_indices(const tp_graph *graph, const tp_node *node, int32_t index);

/* Copies elements between `indexed` and `dense` (bytes of `size` each): into dense, or, with
 * `is_store`, into indexed, in rising order of the dense elements. Dense elements without a place
 * become zero, or are left out of a store. */
void tp_indexing_copy(const tp_indexing *indexing, const tp_host_tensor *indices, bool clamps,
                      size_t size, void *indexed, void *dense, bool is_store);

#endif
