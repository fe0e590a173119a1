/* SPDX-License-Identifier: Apache-2.0
 * See indexing.h. The checks are the constraints of StableHLO's gather (C1 to C22); those of scatter
 * are the same ones, with the slice sizes taken from the updates. */
#include "graph/indexing.h"

#include <string.h>

#include "graph/attrs.h"

/* Attribute names, in the order of fields_of(); [0] of gather, [1] of scatter. */
static const char *const list_names[5][2] = {
    {"offset_dims", "update_window_dims"},
    {"collapsed_slice_dims", "inserted_window_dims"},
    {"operand_batching_dims", "input_batching_dims"},
    {"start_indices_batching_dims", "scatter_indices_batching_dims"},
    {"start_index_map", "scatter_dims_to_operand_dims"}};

static bool is_scatter_node(const tp_node *node)
{
    return tp_node_is(node, "scatter");
}

tpucl_status tp_index_dims_read(const tp_node *node, tp_index_dims *out)
{
    *out = (tp_index_dims){0};
    int64_t *const lists[5] = {out->window, out->collapsed, out->batch, out->index_batch, out->map};
    int32_t counts[5];
    for (int i = 0; i < 5; ++i) {
        const char *name = list_names[i][is_scatter_node(node)];
        const int64_t *ints = tp_node_attr_ints(node, name, &counts[i]);
        if (counts[i] > TP_MAX_RANK)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' lists %d dims, a tensor has at most %d",
                           name, counts[i], TP_MAX_RANK);
        for (int32_t k = 0; k < counts[i]; ++k)
            lists[i][k] = ints[k];
    }
    if (counts[2] != counts[3])
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%d batching dims of the operand and %d of the indices, expected pairs",
                       counts[2], counts[3]);
    out->window_count = counts[0];
    out->collapsed_count = counts[1];
    out->batch_count = counts[2];
    out->map_count = counts[4];
    out->vector_dim = tp_node_attr_int(node, "index_vector_dim", 0);
    return TPUCL_OK;
}

int32_t tp_index_dims_attrs(const tp_index_dims *dims, bool is_scatter, tp_attr *attrs)
{
    const int64_t *const lists[5] = {dims->window, dims->collapsed, dims->batch, dims->index_batch,
                                     dims->map};
    const int32_t counts[5] = {dims->window_count, dims->collapsed_count, dims->batch_count,
                               dims->batch_count, dims->map_count};
    int32_t count = 0;
    for (int i = 0; i < 5; ++i)
        attrs[count++] = tp_attr_ints(list_names[i][is_scatter], lists[i], counts[i]);
    attrs[count++] = tp_attr_int("index_vector_dim", dims->vector_dim);
    return count;
}

/* ---- checks ---- */

static bool is_in(const int64_t *list, int32_t count, int64_t value)
{
    for (int32_t i = 0; i < count; ++i)
        if (list[i] == value) return true;
    return false;
}

/* Numbers of a tensor's dims: in range, none twice, and rising where asked. */
static tpucl_status check_dims(const char *what, const int64_t *dims, int32_t count, int64_t rank,
                               bool is_rising)
{
    for (int32_t i = 0; i < count; ++i) {
        if (dims[i] < 0 || dims[i] >= rank)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s %lld, expected 0 to %lld", what,
                           (long long)dims[i], (long long)rank - 1);
        if (is_in(dims, i, dims[i]))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s %lld is named twice", what,
                           (long long)dims[i]);
        if (is_rising && i > 0 && dims[i] < dims[i - 1])
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s %lld comes after %lld, expected rising ones",
                           what, (long long)dims[i], (long long)dims[i - 1]);
    }
    return TPUCL_OK;
}

static tpucl_status check_numbers(const tp_index_dims *d, const tp_shape *operand,
                                  const tp_shape *indices)
{
    if (d->vector_dim < 0 || d->vector_dim > indices->rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "index_vector_dim %lld, expected 0 to %d",
                       (long long)d->vector_dim, indices->rank);
    TP_TRY(check_dims("collapsed dim", d->collapsed, d->collapsed_count, operand->rank, true));
    TP_TRY(check_dims("operand batching dim", d->batch, d->batch_count, operand->rank, true));
    TP_TRY(
        check_dims("indices batching dim", d->index_batch, d->batch_count, indices->rank, false));
    TP_TRY(check_dims("indexed dim", d->map, d->map_count, operand->rank, false));
    for (int32_t i = 0; i < d->batch_count; ++i) {
        if (is_in(d->collapsed, d->collapsed_count, d->batch[i]) ||
            is_in(d->map, d->map_count, d->batch[i]))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "operand dim %lld is a batching dim and cannot be collapsed or indexed",
                           (long long)d->batch[i]);
        if (d->index_batch[i] == d->vector_dim)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "index_vector_dim %lld cannot be a batching dim of the indices",
                           (long long)d->vector_dim);
        if (operand->dims[d->batch[i]] != indices->dims[d->index_batch[i]])
            return TP_FAIL(
                TPUCL_INVALID_ARGUMENT,
                "batching dim %lld of the operand has %lld elements, its partner %lld of "
                "the indices %lld",
                (long long)d->batch[i], (long long)operand->dims[d->batch[i]],
                (long long)d->index_batch[i], (long long)indices->dims[d->index_batch[i]]);
    }
    const int64_t components = d->vector_dim < indices->rank ? indices->dims[d->vector_dim] : 1;
    if (components != d->map_count)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "index vectors have %lld components, but %d operand dims are indexed",
                       (long long)components, d->map_count);
    if (d->window_count + d->collapsed_count + d->batch_count != operand->rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "%d window, %d collapsed and %d batching dims, expected one for each of the "
                       "operand's %d dims",
                       d->window_count, d->collapsed_count, d->batch_count, operand->rank);
    return TPUCL_OK;
}

static tpucl_status check_slices(const tp_index_dims *d, const int64_t *slices,
                                 const tp_shape *operand)
{
    for (int32_t dim = 0; dim < operand->rank; ++dim) {
        const bool is_dropped =
            is_in(d->collapsed, d->collapsed_count, dim) || is_in(d->batch, d->batch_count, dim);
        const int64_t most = is_dropped && operand->dims[dim] > 1 ? 1 : operand->dims[dim];
        if (slices[dim] < 0 || slices[dim] > most)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "slices have %lld elements in operand dim %d, expected 0 to %lld%s",
                           (long long)slices[dim], dim, (long long)most,
                           is_dropped ? ": it is collapsed or batching" : "");
    }
    return TPUCL_OK;
}

/* ---- normal form ---- */

/* Dense dims that run through the slice: window dim i through the i-th operand dim that is neither
 * collapsed nor batching. */
static void place_windows(const tp_index_dims *d, const int64_t *slices, const tp_shape *operand,
                          tp_indexing *out)
{
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(operand, strides);
    int32_t next = 0;
    for (int32_t k = 0; k < d->map_count; ++k)
        out->window_dims[k] = -1;
    for (int32_t dim = 0; dim < operand->rank; ++dim) {
        if (is_in(d->collapsed, d->collapsed_count, dim) || is_in(d->batch, d->batch_count, dim))
            continue;
        const int32_t at = (int32_t)d->window[next++];
        out->sizes[at] = slices[dim];
        out->operand_strides[at] = strides[dim];
        for (int32_t k = 0; k < d->map_count; ++k)
            if (d->map[k] == dim && slices[dim] > 1) out->window_dims[k] = at;
    }
    for (int32_t k = 0; k < d->map_count; ++k) {
        out->steps[k] = strides[d->map[k]];
        out->extents[k] = operand->dims[d->map[k]];
        out->limits[k] = out->extents[k] - slices[d->map[k]];
    }
}

/* The other dense dims run, in order, through the dims of the indices but for the vector's. */
static void place_batches(const tp_index_dims *d, const tp_shape *operand, const tp_shape *indices,
                          tp_indexing *out)
{
    int64_t strides[TP_MAX_RANK], operand_strides[TP_MAX_RANK];
    tp_shape_strides(indices, strides);
    tp_shape_strides(operand, operand_strides);
    int32_t from = 0;
    for (int32_t at = 0; at < out->rank; ++at) {
        if (is_in(d->window, d->window_count, at)) continue;
        if (from == d->vector_dim) ++from;
        out->sizes[at] = indices->dims[from];
        out->index_strides[at] = strides[from];
        for (int32_t i = 0; i < d->batch_count; ++i)
            if (d->index_batch[i] == from) out->operand_strides[at] = operand_strides[d->batch[i]];
        ++from;
    }
    out->component_stride = d->vector_dim < indices->rank ? strides[d->vector_dim] : 0;
}

tpucl_status tp_indexing_make(const tp_index_dims *dims, const int64_t *slice_sizes,
                              const tp_shape *operand, const tp_shape *indices, tp_indexing *out)
{
    *out = (tp_indexing){.components = dims->map_count};
    TP_TRY(check_numbers(dims, operand, indices));
    TP_TRY(check_slices(dims, slice_sizes, operand));
    const int32_t batches = indices->rank - (dims->vector_dim < indices->rank ? 1 : 0);
    out->rank = batches + dims->window_count;
    if (out->rank > TP_MAX_RANK)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the result would have %d dims, the limit is %d",
                       out->rank, TP_MAX_RANK);
    TP_TRY(check_dims("window dim", dims->window, dims->window_count, out->rank, true));
    place_windows(dims, slice_sizes, operand, out);
    place_batches(dims, operand, indices, out);
    TP_TRY(tp_shape_init(&out->dense, out->rank, out->sizes));
    const int64_t elems = tp_shape_elems(&out->dense);
    for (int32_t k = 0; k < out->components; ++k)
        if (elems > 0 && out->extents[k] == 0)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "indexed dim %lld of the operand has no elements",
                           (long long)dims->map[k]);
    return TPUCL_OK;
}

/* ---- nodes ---- */

static tpucl_status read_gather(const tp_node *node, const tp_shape *operand,
                                const tp_shape *indices, tp_indexing *out)
{
    tp_index_dims dims;
    int32_t count;
    TP_TRY(tp_index_dims_read(node, &dims));
    const int64_t *slices = tp_node_attr_ints(node, "slice_sizes", &count);
    if (count != operand->rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "'slice_sizes' has %d numbers, the operand has %d dims", count,
                       operand->rank);
    return tp_indexing_make(&dims, slices, operand, indices, out);
}

static tpucl_status read_scatter(const tp_node *node, const tp_shape *operand,
                                 const tp_shape *indices, const tp_shape *updates, tp_indexing *out)
{
    tp_index_dims dims;
    int64_t slices[TP_MAX_RANK];
    int32_t next = 0;
    TP_TRY(tp_index_dims_read(node, &dims));
    for (int32_t dim = 0; dim < operand->rank; ++dim) {
        const bool is_dropped = is_in(dims.collapsed, dims.collapsed_count, dim) ||
                                is_in(dims.batch, dims.batch_count, dim);
        const int64_t at = is_dropped || next >= dims.window_count ? -1 : dims.window[next++];
        /* What is wrong with the list is said by tp_indexing_make. */
        const int64_t most = operand->dims[dim] < 1 ? operand->dims[dim] : 1;
        slices[dim] = at >= 0 && at < updates->rank ? updates->dims[at] : most;
    }
    return tp_indexing_make(&dims, slices, operand, indices, out);
}

/* One index vector with a component for every dim of the operand. */
static tpucl_status read_dynamic(const tp_shape *operand, const tp_shape *start,
                                 const int64_t *sizes, int32_t count, tp_indexing *out)
{
    tp_index_dims dims = {.window_count = operand->rank, .map_count = operand->rank};
    if (start->rank != 1 || start->dims[0] != operand->rank || count != operand->rank)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "a slice of %d sizes of a tensor with %d dims: expected as many sizes, and "
                       "the start as a vector of as many numbers",
                       count, operand->rank);
    for (int32_t i = 0; i < operand->rank; ++i)
        dims.window[i] = dims.map[i] = i;
    return tp_indexing_make(&dims, sizes, operand, start, out);
}

tpucl_status tp_indexing_read(const tp_node *node, const tp_shape *operand, const tp_shape *indices,
                              const tp_shape *updates, tp_indexing *out)
{
    int32_t count;
    if (tp_node_is(node, "gather")) return read_gather(node, operand, indices, out);
    if (tp_node_is(node, "dynamic_slice")) {
        const int64_t *sizes = tp_node_attr_ints(node, "slice_sizes", &count);
        return read_dynamic(operand, indices, sizes, count, out);
    }
    TP_TRY(is_scatter_node(node)
               ? read_scatter(node, operand, indices, updates, out)
               : read_dynamic(operand, indices, updates->dims, updates->rank, out));
    if (tp_shape_equal(&out->dense, updates)) return TPUCL_OK;
    char want[TP_SHAPE_TEXT_MAX], have[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&out->dense, want, sizeof want);
    tp_shape_format(updates, have, sizeof have);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the updates have shape %s, expected %s", have, want);
}
