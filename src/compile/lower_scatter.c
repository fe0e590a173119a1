/* SPDX-License-Identifier: Apache-2.0
 * scatter, in parallel and yet in rising order of the updates: the operand is copied, or filled in, to the
 * result; each *item* (an index vector with its slice) gets a pair (place, number); the pairs are
 * sorted; then the first item of each place combines all of the place's items. Slices must not overlap in
 * part for this. Where an indexed dim has slices longer than 1, each update is an item by itself; in all
 * other cases (embeddings, take along an axis) a slice is an item, and only the indices are sorted.
 */
#include "compile/lower_memory.h"

#include <inttypes.h>
#include <string.h>
#include "graph/opdef.h"

typedef struct scatter_plan {
    tp_node_id operand, indices, updates, head;
    tp_indexing ix;
    bool clamps;
    tp_index_table items, inner; /* of the inner dims the last one is x */
    int64_t item_count, nx, rows;
    int64_t update_stride, stride; /* from x to x + 1 */
    const char *index_options;
} scatter_plan;

/* Dims of the updates that tell items apart. */
static void mark_items(const tp_indexing *ix, bool *is_item)
{
    bool is_plain = true;
    for (int32_t k = 0; k < ix->components; k++)
        is_plain = is_plain && ix->window_dims[k] < 0;
    for (int32_t d = 0; d < ix->rank; d++) {
        /* Dims of the indices have a stride there, unless they have size 1 and do not matter. */
        is_item[d] = !is_plain || ix->index_strides[d] != 0;
    }
}

static tpucl_status plan(tp_lowering *l, const tp_cluster *cluster, scatter_plan *p)
{
    const tp_graph *graph = l->fusion->graph;
    bool is_item[TP_MAX_RANK], is_inner[TP_MAX_RANK];
    p->head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(graph, p->head);
    p->operand = node->inputs[0];
    p->indices = node->inputs[1];
    p->updates = node->inputs[2];
    p->clamps = strcmp(tp_node_attr_text(node, "out_of_range", "skip"), "clamp") == 0;
    TP_TRY(tp_indexing_read(node, &node->shape, &tp_graph_node(graph, p->indices)->shape,
                            &tp_graph_node(graph, p->updates)->shape, &p->ix));
    mark_items(&p->ix, is_item);
    for (int32_t d = 0; d < p->ix.rank; d++)
        is_inner[d] = !is_item[d];
    p->items = tp_index_table_make(&p->ix, p->clamps, is_item);
    p->inner = tp_index_table_make(&p->ix, p->clamps, is_inner);
    p->item_count = tp_index_table_elems(&p->items, p->items.rank);
    const int32_t last = p->inner.rank - 1;
    p->nx = last >= 0 ? p->inner.sizes[last] : 1;
    p->rows = last >= 0 ? tp_index_table_elems(&p->inner, last) : 1;
    p->update_stride = last >= 0 ? p->inner.dense_strides[last] : 1;
    p->stride = last >= 0 ? p->inner.operand_strides[last] : 1;
    p->inner.components = 0;
    if (last >= 0) p->inner.rank = last;
    if (tp_shape_elems(&node->shape) >= UINT32_MAX || p->item_count > INT32_MAX)
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "scatter of %" PRId64 " items into %" PRId64
                       " elements is too large for a kernel",
                       p->item_count, tp_shape_elems(&node->shape));
    p->index_options =
        tp_index_options(l, &p->ix, p->clamps, tp_graph_node(graph, p->indices)->dtype);
    return p->index_options ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status lower_keys(tp_lowering *l, const tp_cluster *cluster, const scatter_plan *p,
                               int32_t table, int32_t pairs)
{
    tp_memory_launch m =
        tp_memory_launch_begin(l, cluster, "scatter", "scatter_keys", p->index_options);
    tp_memory_launch_add_node(&m, p->indices, false);
    tp_memory_launch_add_buffer(&m, table, false);
    tp_memory_launch_add_buffer(&m, pairs, true);
    tp_memory_launch_add_int(&m, p->items.rank);
    tp_memory_launch_add_u32(&m, p->ix.component_stride);
    tp_memory_launch_add_int(&m, p->item_count);
    return tp_memory_launch_end(&m, p->item_count, 1, 1, false);
}

static tpucl_status lower_segments(tp_lowering *l, const tp_cluster *cluster, const scatter_plan *p,
                                   int32_t table, int32_t inner, int32_t pairs)
{
    const tp_node *node = tp_graph_node(l->fusion->graph, p->head);
    const bool is_wide = l->options->caps->type == TP_DEVICE_CPU && p->nx >= 16 &&
                         p->update_stride == 1 && p->stride == 1;
    const char *options = tp_arena_printf(
        l->fusion->arena, "%s%s%s%s", p->index_options, tp_memory_dtype_option(node->dtype),
        tp_memory_kind_option(node), is_wide ? " -DSCATTER_WIDE" : "");
    tp_memory_launch m = tp_memory_launch_begin(l, cluster, "scatter", "scatter_segments", options);
    tp_memory_launch_add_buffer(&m, pairs, false);
    tp_memory_launch_add_node(&m, p->updates, false);
    tp_memory_launch_add_buffer(&m, table, false);
    tp_memory_launch_add_buffer(&m, inner, false);
    tp_memory_launch_add_node(&m, p->head, true);
    tp_memory_launch_add_int(&m, p->items.rank);
    tp_memory_launch_add_int(&m, p->inner.rank);
    tp_memory_launch_add_int(&m, p->item_count);
    tp_memory_launch_add_int(&m, p->nx);
    tp_memory_launch_add_u32(&m, p->update_stride);
    tp_memory_launch_add_u32(&m, p->stride);
    if (node->def->flops) m.launch.flops = node->def->flops(l->fusion->graph, node);
    m.launch.bytes = 3.0 * (double)tp_shape_bytes(&p->ix.dense, node->dtype);
    return tp_memory_launch_end(&m, p->nx, p->item_count, p->rows, true);
}

tpucl_status tp_lower_scatter(tp_lowering *l, const tp_cluster *cluster)
{
    scatter_plan p;
    int32_t table, inner, pairs[2], sorted;
    TP_TRY(plan(l, cluster, &p));
    TP_TRY(tp_lower_operand_to_result(l, cluster, p.operand));
    if (tp_shape_elems(&p.ix.dense) == 0) return TPUCL_OK;
    TP_TRY(tp_index_table_store(l, &p.items, &p.ix, &table));
    TP_TRY(tp_index_table_store(l, &p.inner, &p.ix, &inner));
    TP_TRY(tp_lower_add_pairs(l, cluster, p.item_count, pairs));
    TP_TRY(lower_keys(l, cluster, &p, table, pairs[0]));
    TP_TRY(tp_lower_sort_pairs(l, cluster, 1, p.item_count, p.item_count, pairs[0], pairs[1],
                               &sorted));
    return lower_segments(l, cluster, &p, table, inner, sorted);
}
