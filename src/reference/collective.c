/* SPDX-License-Identifier: Apache-2.0
 * See collective.h. */
#include "reference/collective.h"

#include <string.h>

#include "core/alloc.h"
#include "ops/op_view.h"
#include "reference/all_reduce.h"

static tpucl_status sum(const tp_host_tensor *parts, int32_t count, float *out)
{
    const float **data = TP_NEW_ARRAY(const float *, (size_t)count);
    if (!data) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; ++i)
        data[i] = parts[i].data;
    tp_reference_all_reduce(data, count, tp_shape_elems(&parts[0].shape), out);
    tp_free(data);
    return TPUCL_OK;
}

static tpucl_status reduce_scatter(const tp_node *node, const tp_host_tensor *parts, int32_t count,
                                   int32_t position, tp_host_tensor *out)
{
    const int64_t dim = tp_node_attr_int(node, "scatter_dimension", 0);
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(&parts[0].shape, strides);
    float *all = TP_NEW_ARRAY(float, (size_t)tp_shape_elems(&parts[0].shape) + 1);
    if (!all) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = sum(parts, count, all);
    if (status == TPUCL_OK && tp_shape_elems(&out->shape) > 0)
        tp_view_gather(&out->shape, sizeof *all,
                       all + position * out->shape.dims[dim] * strides[dim], strides, out->data);
    tp_free(all);
    return status;
}

static void all_gather(const tp_node *node, const tp_host_tensor *parts, int32_t count,
                       tp_host_tensor *out)
{
    const int64_t dim = tp_node_attr_int(node, "all_gather_dim", 0);
    const size_t size = tp_dtype_size(out->dtype);
    int64_t from[TP_MAX_RANK], to[TP_MAX_RANK];
    tp_shape_strides(&parts[0].shape, from);
    tp_shape_strides(&out->shape, to);
    if (tp_shape_elems(&out->shape) == 0) return;
    for (int32_t i = 0; i < count; ++i) {
        const int64_t at = i * parts[0].shape.dims[dim] * to[dim];
        tp_view_copy(&parts[0].shape, size, parts[i].data, from,
                     (char *)out->data + at * (int64_t)size, to);
    }
}

static void permute(const tp_node *node, const tp_host_tensor *parts, int32_t position,
                    tp_host_tensor *out)
{
    int32_t numbers;
    const int64_t *pairs = tp_node_attr_ints(node, "source_target_pairs", &numbers);
    const size_t bytes = (size_t)tp_shape_bytes(&out->shape, out->dtype);
    memset(out->data, 0, bytes);
    for (int32_t i = 0; i + 1 < numbers; i += 2)
        if (pairs[i + 1] == position) memcpy(out->data, parts[pairs[i]].data, bytes);
}

/* Of the position's own neighbours: what x + -0 leaves out. */
static tpucl_status sum_neighbours(const tp_node *node, const tp_host_tensor *parts, int32_t count,
                                   int32_t position, float *out)
{
    const int32_t group = (int32_t)tp_node_attr_int(node, "group", count);
    const int64_t elems = tp_shape_elems(&parts[0].shape);
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    float *nothing = TP_NEW_ARRAY(float, (size_t)elems + 1);
    tp_host_tensor *own = TP_NEW_ARRAY(tp_host_tensor, (size_t)count);
    if (nothing && own) {
        for (int64_t i = 0; i < elems; ++i)
            nothing[i] = -0.0f;
        for (int32_t i = 0; i < count; ++i) {
            own[i] = parts[i];
            if (i / group != position / group) own[i].data = nothing;
        }
        status = sum(own, count, out);
    }
    tp_free(nothing);
    tp_free(own);
    return status;
}

tpucl_status tp_reference_collective(const tp_node *node, const tp_host_tensor *parts,
                                     int32_t count, int32_t position, tp_host_tensor *out)
{
    if (tp_node_is(node, "all_reduce")) return sum(parts, count, out->data);
    if (tp_node_is(node, "cross_replica_sum"))
        return sum_neighbours(node, parts, count, position, out->data);
    if (tp_node_is(node, "reduce_scatter"))
        return reduce_scatter(node, parts, count, position, out);
    if (tp_node_is(node, "all_gather"))
        all_gather(node, parts, count, out);
    else
        permute(node, parts, position, out);
    return TPUCL_OK;
}

tpucl_status tp_reference_check_groups(const tp_graph *graph, int32_t group_cores)
{
    for (tp_node_id id = 0; id < graph->node_count; ++id) {
        const tp_node *node = &graph->nodes[id];
        if (node->def->op_class != TP_OP_COLLECTIVE && !node->def->depends_on_core) continue;
        const int64_t cores = tp_node_attr_int(node, "cores", group_cores);
        if (cores != group_cores)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "node '%s' is for replica groups of %lld cores, they have %d",
                           node->name, (long long)cores, group_cores);
    }
    return TPUCL_OK;
}
