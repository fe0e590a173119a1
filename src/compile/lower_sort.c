/* SPDX-License-Identifier: Apache-2.0
 * Sorting pairs by merging: runs of SORT_RUN, then runs twice as long with every launch. sort and top_k:
 * elements to pairs, pairs in order, and back.
 */
#include "compile/lower_memory.h"

#include <string.h>
#include "graph/opdef.h"

enum { SORT_RUN = 32 }; /* sort_pairs.cl's default */

tpucl_status tp_lower_add_pairs(tp_lowering *l, const tp_cluster *cluster, int64_t count,
                                int32_t out_buffers[2])
{
    for (int i = 0; i < 2; i++)
        TP_TRY(tp_lower_add_scratch(l, "pairs to be sorted", TP_U32, (uint64_t)count * 8,
                                    !cluster->is_replicated, &out_buffers[i]));
    return TPUCL_OK;
}

/* One launch over all pairs; width 0: the first runs. */
static tpucl_status lower_pass(tp_lowering *l, const tp_cluster *cluster, int64_t rows, int64_t n,
                               int64_t width, int64_t keep, int32_t from, int32_t to)
{
    tp_memory_launch m =
        tp_memory_launch_begin(l, cluster, "sort_pairs", width ? "sort_merge" : "sort_runs", "");
    tp_memory_launch_add_buffer(&m, from, false);
    tp_memory_launch_add_buffer(&m, to, true);
    tp_memory_launch_add_int(&m, n);
    tp_memory_launch_add_int(&m, rows);
    if (width) tp_memory_launch_add_int(&m, width);
    if (width) tp_memory_launch_add_int(&m, keep);
    m.launch.bytes = 16.0 * (double)rows * (double)(width > keep ? n / width * keep : n);
    return tp_memory_launch_end(&m, n, rows, 1, true);
}

tpucl_status tp_lower_sort_pairs(tp_lowering *l, const tp_cluster *cluster, int64_t rows, int64_t n,
                                 int64_t keep, int32_t first, int32_t second, int32_t *out_buffer)
{
    int32_t from = first, to = second;
    for (int64_t width = 0; width < n; width = width ? 2 * width : SORT_RUN) {
        TP_TRY(lower_pass(l, cluster, rows, n, width, keep, from, to));
        const int32_t done = to;
        to = from;
        from = done;
    }
    *out_buffer = from;
    return TPUCL_OK;
}

/* ---- sort, top_k ---- */

typedef struct sort_plan {
    tp_node_id operand, head;
    int64_t n, k, inner, lines;
    const char *options;
} sort_plan;

static const char *order_option(const tp_node *node)
{
    if (tp_node_is(node, "top_k")) return " -DSORT_LARGEST_FIRST";
    const char *direction = tp_node_attr_text(node, "direction", "");
    return strcmp(direction, "descending") == 0 ? " -DSORT_FALLING" : "";
}

static tpucl_status plan(tp_lowering *l, const tp_cluster *cluster, sort_plan *p)
{
    const tp_graph *graph = l->fusion->graph;
    p->head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(graph, p->head);
    p->operand = node->inputs[0];
    const tp_node *x = tp_graph_node(graph, p->operand);
    const int64_t axis =
        tp_node_is(node, "top_k") ? x->shape.rank - 1 : tp_node_attr_int(node, "axis", 0);
    const bool wants_indices = strcmp(tp_node_attr_text(node, "result", ""), "indices") == 0;
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(&x->shape, strides);
    p->n = x->shape.dims[axis];
    p->k = node->shape.dims[axis];
    p->inner = strides[axis];
    p->lines = p->n ? tp_shape_elems(&x->shape) / p->n : 0;
    p->options = tp_arena_printf(l->fusion->arena, "%s%s%s", tp_memory_dtype_option(x->dtype),
                                 order_option(node), wants_indices ? " -DSORT_INDICES" : "");
    return p->options ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status lower_take(tp_lowering *l, const tp_cluster *cluster, const sort_plan *p,
                               int32_t pairs)
{
    const tp_node *node = tp_graph_node(l->fusion->graph, p->head);
    tp_memory_launch m = tp_memory_launch_begin(l, cluster, "sort_keys", "sort_take", p->options);
    tp_memory_launch_add_node(&m, p->operand, false);
    tp_memory_launch_add_buffer(&m, pairs, false);
    tp_memory_launch_add_node(&m, p->head, true);
    tp_memory_launch_add_int(&m, p->n);
    tp_memory_launch_add_int(&m, p->k);
    tp_memory_launch_add_int(&m, p->inner);
    tp_memory_launch_add_int(&m, p->lines);
    m.launch.flops = node->def->flops(l->fusion->graph, node);
    return tp_memory_launch_end(&m, p->k, p->lines, 1, true);
}

tpucl_status tp_lower_sort(tp_lowering *l, const tp_cluster *cluster)
{
    sort_plan p;
    int32_t pairs[2], sorted;
    TP_TRY(plan(l, cluster, &p));
    if (p.k == 0 || p.lines == 0) return TPUCL_OK;
    TP_TRY(tp_lower_add_pairs(l, cluster, p.n * p.lines, pairs));
    tp_memory_launch m = tp_memory_launch_begin(l, cluster, "sort_keys", "sort_keys", p.options);
    tp_memory_launch_add_node(&m, p.operand, false);
    tp_memory_launch_add_buffer(&m, pairs[0], true);
    tp_memory_launch_add_int(&m, p.n);
    tp_memory_launch_add_int(&m, p.inner);
    tp_memory_launch_add_int(&m, p.lines);
    TP_TRY(tp_memory_launch_end(&m, p.n, p.lines, 1, true));
    TP_TRY(tp_lower_sort_pairs(l, cluster, p.lines, p.n, p.k, pairs[0], pairs[1], &sorted));
    return lower_take(l, cluster, &p, sorted);
}
