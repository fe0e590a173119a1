/* SPDX-License-Identifier: Apache-2.0
 * What gather, scatter, dynamic_slice and dynamic_update_slice have in common: a *dense* tensor (the
 * gathered result; the scattered updates) whose every element lies somewhere in an *indexed* one (the
 * operand), at a place that `indices` say. Dimension numbers and meaning are StableHLO's
 * (https://openxla.org/stablehlo/spec, gather and scatter); both ops come down to one normal form:
 *
 *   element c of the dense tensor, c below sizes[], lies at
 *       sum over d of c[d] * operand_strides[d]  +  sum over k of place[k] * steps[k]
 *   with start[k] = indices[sum over d of c[d] * index_strides[d]  +  k * component_stride].
 *   Clamping: place[k] = start[k] brought into 0 .. limits[k], so that whole slices fit.
 *   Not clamping: place[k] = start[k], and c has a place at all only where, for each k,
 *       0 <= start[k] + (window_dims[k] < 0 ? 0 : c[window_dims[k]]) < extents[k].
 */
#ifndef TP_GRAPH_INDEXING_H
#define TP_GRAPH_INDEXING_H

#include "graph/graph.h"

/* Dimension numbers. Names as in StableHLO: gather / scatter. */
typedef struct tp_index_dims {
    int64_t window[TP_MAX_RANK]; /* offset_dims / update_window_dims: dense dims that run through
                                         a slice, rising */
    /* collapsed_slice_dims / inserted_window_dims: operand dims where slices have size 1 that the dense
     * tensor lacks, rising */
    int64_t collapsed[TP_MAX_RANK];
    int64_t batch[TP_MAX_RANK]; /* operand_batching_dims / input_batching_dims, rising */
    /* start_indices_batching_dims / scatter_indices_batching_dims */
    int64_t index_batch[TP_MAX_RANK];
    int64_t map[TP_MAX_RANK]; /* start_index_map / scatter_dims_to_operand_dims: operand dim of each
                                 component of an index vector */
    int32_t window_count, collapsed_count, batch_count, map_count;
    /* index_vector_dim: of `indices`; their rank: the vectors have one component */
    int64_t vector_dim;
} tp_index_dims;

typedef struct tp_indexing {
    tp_shape dense; /* its dims are `sizes` */
    int32_t rank;
    int64_t sizes[TP_MAX_RANK], operand_strides[TP_MAX_RANK], index_strides[TP_MAX_RANK];
    int32_t components;
    int64_t component_stride;
    int64_t steps[TP_MAX_RANK], limits[TP_MAX_RANK], extents[TP_MAX_RANK];
    int32_t window_dims[TP_MAX_RANK]; /* -1: the slice has size 1 there */
} tp_indexing;

/* Checks dimension numbers against shapes; slice_sizes has one number per dim of the operand. */
tpucl_status tp_indexing_make(const tp_index_dims *dims, const int64_t *slice_sizes,
                              const tp_shape *operand, const tp_shape *indices,
                              tp_indexing *out_indexing) TPUCL_MUST_CHECK;

/* The dimension numbers in the attributes of a gather or scatter. */
tpucl_status tp_index_dims_read(const tp_node *node, tp_index_dims *out_dims) TPUCL_MUST_CHECK;

/* Of a gather, dynamic_slice, scatter or dynamic_update_slice node, from its attributes and the shapes
 * of the operand, the indices and (the last two ops) the updates. */
tpucl_status tp_indexing_read(const tp_node *node, const tp_shape *operand, const tp_shape *indices,
                              const tp_shape *updates, tp_indexing *out_indexing) TPUCL_MUST_CHECK;

/* Attributes of both ops for builders and gradients: fills items of `attrs` (room for 7), which
 * borrow from *dims; returns how many. */
int32_t tp_index_dims_attrs(const tp_index_dims *dims, bool is_scatter, tp_attr *attrs);

#endif
