/* SPDX-License-Identifier: Apache-2.0
 * Merging clusters: element-wise clusters into the epilogue of the product or reduction that they
 * read, sibling reductions, and element-wise clusters of one size. Two clusters may become one when no
 * third one has to run between them.
 */
#include "compile/pass.h"

#include <string.h>
#include "compile/vpu_pieces.h"
#include "graph/geometry.h"
#include "graph/opdef.h"

/* OpenCL guarantees 1024 bytes of kernel arguments, a tensor takes 24; half of it is left to the
 * kernel itself. */
#define MAX_EPILOGUE_TENSORS 20
#define MAX_MAP_TENSORS 34
#define MAX_ROOTS 16
/* Below this many elements a launch costs more than its work. */
#define TINY_ELEMS 4096

static int64_t elems_of(const tp_fusion *fusion, tp_node_id id)
{
    return tp_shape_elems(&tp_graph_node(fusion->graph, id)->shape);
}

static bool list_has(const tp_node_list *list, tp_node_id id)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == id) return true;
    return false;
}

/* Is there a path from `from` to `to` with another cluster in between? */
static tpucl_status has_detour(tp_fusion *fusion, int32_t from, int32_t to, bool *out_has)
{
    *out_has = false;
    const tp_cluster *cluster = &fusion->clusters.items[to];
    for (size_t i = 0; i < cluster->reads.count && !*out_has; i++) {
        const int32_t producer = fusion->cluster_of[cluster->reads.items[i]];
        if (producer < 0 || producer == from || producer == to) continue;
        TP_TRY(tp_cluster_reaches(fusion, from, producer, out_has));
    }
    return TPUCL_OK;
}

/* Distinct tensors of both together. */
static size_t count_tensors(const tp_cluster *a, const tp_cluster *b)
{
    size_t count = a->reads.count + a->roots.count + b->roots.count;
    for (size_t i = 0; i < b->reads.count; i++) {
        const tp_node_id id = b->reads.items[i];
        if (!list_has(&a->reads, id) && !list_has(&a->roots, id)) count++;
    }
    return count;
}

/* ---- epilogues ---- */

/* Tries the generator on the head with all roots; its refusal is an answer, not an error. */
static tpucl_status can_generate(tp_fusion *fusion, const tp_cluster *head_cluster,
                                 const tp_node_list *more, bool *out_can)
{
    tp_node_id roots[2 * MAX_ROOTS];
    int32_t count = 0;
    for (size_t i = 0; i < head_cluster->roots.count; i++)
        roots[count++] = head_cluster->roots.items[i];
    for (size_t i = 0; i < more->count; i++)
        roots[count++] = more->items[i];
    const tp_vpu_target target = tp_fusion_target(fusion);
    const tp_node_id head = head_cluster->heads.items[0];
    tpucl_status status;
    if (head_cluster->kind == TP_CLUSTER_MXU) {
        int64_t batch, m, n;
        TP_TRY(tp_fusion_product_size(fusion, head, &batch, &m, &n));
        status = tp_vpu_epilogue_is_possible(&target, head, batch, m, n, roots, count, out_can);
    } else {
        tp_vpu_reduce_plan plan;
        status = tp_vpu_reduce_create(&target, head_cluster->heads.items,
                                      (int32_t)head_cluster->heads.count, roots, count, "", &plan);
        *out_can = status == TPUCL_OK;
    }
    if (status == TPUCL_OUT_OF_MEMORY) return status;
    if (status != TPUCL_OK) {
        *out_can = false;
        tp_error_clear();
    }
    return TPUCL_OK;
}

static tpucl_status may_attach(tp_fusion *fusion, int32_t head_index, int32_t map_index,
                               bool *out_may)
{
    *out_may = false;
    const tp_cluster *head = &fusion->clusters.items[head_index];
    const tp_cluster *map = &fusion->clusters.items[map_index];
    if (head->is_replicated != map->is_replicated || head->loop != map->loop) return TPUCL_OK;
    if (elems_of(fusion, head->heads.items[0]) != elems_of(fusion, map->roots.items[0]))
        return TPUCL_OK;
    if (head->roots.count + map->roots.count > MAX_ROOTS ||
        count_tensors(head, map) > MAX_EPILOGUE_TENSORS)
        return TPUCL_OK;
    bool has;
    TP_TRY(has_detour(fusion, head_index, map_index, &has));
    if (has) return TPUCL_OK;
    return can_generate(fusion, head, &map->roots, out_may);
}

/* The head that a map cluster could join: of those it reads, the last one. */
static int32_t find_head(const tp_fusion *fusion, int32_t map_index)
{
    const tp_cluster *map = &fusion->clusters.items[map_index];
    int32_t best = -1;
    tp_node_id best_head = -1;
    for (size_t i = 0; i < map->reads.count; i++) {
        const int32_t producer = fusion->cluster_of[map->reads.items[i]];
        if (producer < 0) continue;
        const tp_cluster *cluster = &fusion->clusters.items[producer];
        if (cluster->kind != TP_CLUSTER_MXU && cluster->kind != TP_CLUSTER_REDUCE) continue;
        if (cluster->heads.items[0] <= best_head) continue;
        best = producer;
        best_head = cluster->heads.items[0];
    }
    return best;
}

static tpucl_status attach_epilogues(tp_fusion *fusion)
{
    for (size_t i = 0; i < fusion->clusters.count; i++) {
        const tp_cluster *map = &fusion->clusters.items[i];
        if (map->is_dead || map->kind != TP_CLUSTER_MAP) continue;
        const int32_t head = find_head(fusion, (int32_t)i);
        if (head < 0) continue;
        bool may;
        TP_TRY(may_attach(fusion, head, (int32_t)i, &may));
        if (may) TP_TRY(tp_cluster_merge(fusion, head, (int32_t)i));
    }
    return TPUCL_OK;
}

/* ---- sibling reductions ---- */

static bool reduces_alike(const tp_fusion *fusion, const tp_cluster *a, const tp_cluster *b)
{
    const tp_node *x = tp_graph_node(fusion->graph, a->heads.items[0]);
    const tp_node *y = tp_graph_node(fusion->graph, b->heads.items[0]);
    const tp_shape *from_x = &tp_graph_node(fusion->graph, x->inputs[0])->shape;
    const tp_shape *from_y = &tp_graph_node(fusion->graph, y->inputs[0])->shape;
    if (strcmp(x->def->name, "reduce") != 0 || strcmp(y->def->name, "reduce") != 0 ||
        !tp_shape_equal(from_x, from_y))
        return false;
    int32_t x_count, y_count;
    const int64_t *x_axes = tp_node_attr_ints(x, "axes", &x_count);
    const int64_t *y_axes = tp_node_attr_ints(y, "axes", &y_count);
    return x_count == y_count &&
           (x_count == 0 || memcmp(x_axes, y_axes, (size_t)x_count * sizeof *x_axes) == 0);
}

/* A tensor of at least a quarter of `elems` that both read: then one pass over memory serves both. */
static bool share_read(const tp_fusion *fusion, const tp_cluster *a, const tp_cluster *b,
                       int64_t elems)
{
    for (size_t i = 0; i < a->reads.count; i++) {
        const tp_node_id id = a->reads.items[i];
        if (elems_of(fusion, id) >= elems / 4 && list_has(&b->reads, id)) return true;
    }
    return false;
}

/* No path between the two, in either direction. */
static tpucl_status are_independent(tp_fusion *fusion, int32_t a, int32_t b, bool *out_are)
{
    bool reaches;
    TP_TRY(tp_cluster_reaches(fusion, a, b, &reaches));
    if (!reaches) TP_TRY(tp_cluster_reaches(fusion, b, a, &reaches));
    *out_are = !reaches;
    return TPUCL_OK;
}

static tpucl_status merge_siblings(tp_fusion *fusion)
{
    for (size_t i = 0; i < fusion->clusters.count; i++)
        for (size_t j = i + 1; j < fusion->clusters.count; j++) {
            const tp_cluster *a = &fusion->clusters.items[i], *b = &fusion->clusters.items[j];
            if (a->is_dead || b->is_dead || a->kind != TP_CLUSTER_REDUCE ||
                b->kind != TP_CLUSTER_REDUCE || a->is_replicated != b->is_replicated ||
                a->loop != b->loop)
                continue;
            const tp_node *head = tp_graph_node(fusion->graph, a->heads.items[0]);
            const int64_t elems = elems_of(fusion, head->inputs[0]);
            if (a->heads.count + b->heads.count > TP_VPU_MAX_HEADS ||
                !reduces_alike(fusion, a, b) ||
                (elems > TINY_ELEMS && !share_read(fusion, a, b, elems)) ||
                count_tensors(a, b) > MAX_MAP_TENSORS)
                continue;
            bool are;
            TP_TRY(are_independent(fusion, (int32_t)i, (int32_t)j, &are));
            if (are) TP_TRY(tp_cluster_merge(fusion, (int32_t)i, (int32_t)j));
        }
    return TPUCL_OK;
}

/* ---- element-wise clusters of one size ---- */

static bool reads_root_of(const tp_cluster *reader, const tp_cluster *producer)
{
    for (size_t i = 0; i < producer->roots.count; i++)
        if (list_has(&reader->reads, producer->roots.items[i])) return true;
    return false;
}

/* Does a kernel for both divide in its loops, where kernels for each do not? That happens when one
 * runs through memory in another order, as a transpose does. */
static tpucl_status is_slow_together(tp_fusion *fusion, const tp_cluster *a, const tp_cluster *b,
                                     bool *out_is)
{
    const tp_vpu_target target = tp_fusion_target(fusion);
    tp_node_id roots[2 * MAX_ROOTS];
    int32_t count = 0;
    bool a_divides, b_divides;
    for (size_t i = 0; i < a->roots.count; i++)
        roots[count++] = a->roots.items[i];
    for (size_t i = 0; i < b->roots.count; i++)
        roots[count++] = b->roots.items[i];
    TP_TRY(tp_vpu_map_divides(&target, roots, count, out_is));
    if (!*out_is) return TPUCL_OK;
    TP_TRY(tp_vpu_map_divides(&target, roots, (int32_t)a->roots.count, &a_divides));
    TP_TRY(
        tp_vpu_map_divides(&target, roots + a->roots.count, (int32_t)b->roots.count, &b_divides));
    *out_is = !a_divides && !b_divides;
    return TPUCL_OK;
}

/* Are all roots of one size, or does one read the others as pieces of it? */
static bool has_common_loop(const tp_fusion *fusion, const tp_cluster *a, const tp_cluster *b,
                            bool is_chain)
{
    const int64_t elems_a = elems_of(fusion, a->roots.items[0]);
    const int64_t elems_b = elems_of(fusion, b->roots.items[0]);
    const int64_t most = elems_a > elems_b ? elems_a : elems_b;
    const int64_t least = elems_a < elems_b ? elems_a : elems_b;
    if (least == 0 || most % least != 0 || most / least > (is_chain ? TP_VPU_MAX_PIECES : 1))
        return most == least;
    tp_node_id roots[2 * MAX_ROOTS];
    int32_t count = 0;
    for (size_t i = 0; i < a->roots.count; i++)
        roots[count++] = a->roots.items[i];
    for (size_t i = 0; i < b->roots.count; i++)
        roots[count++] = b->roots.items[i];
    tp_shape loops;
    return tp_vpu_pieces_find(fusion->graph, fusion->is_stored, roots, count, &loops);
}

static tpucl_status may_join_maps(tp_fusion *fusion, int32_t i, int32_t j, bool *out_may)
{
    *out_may = false;
    const tp_cluster *a = &fusion->clusters.items[i], *b = &fusion->clusters.items[j];
    if (a->is_replicated != b->is_replicated || a->loop != b->loop) return TPUCL_OK;
    const int64_t elems = elems_of(fusion, a->roots.items[0]);
    const bool is_chain = reads_root_of(a, b) || reads_root_of(b, a);
    if (a->roots.count + b->roots.count > MAX_ROOTS || !has_common_loop(fusion, a, b, is_chain) ||
        count_tensors(a, b) > MAX_MAP_TENSORS)
        return TPUCL_OK;
    /* In a loop a launch is one in every turn. */
    if (!is_chain && elems > TINY_ELEMS && !a->loop && !share_read(fusion, a, b, elems))
        return TPUCL_OK;
    bool has;
    TP_TRY(has_detour(fusion, i, j, &has));
    if (!has) TP_TRY(has_detour(fusion, j, i, &has));
    if (!has && elems > TINY_ELEMS) TP_TRY(is_slow_together(fusion, a, b, &has));
    *out_may = !has;
    return TPUCL_OK;
}

static tpucl_status join_maps(tp_fusion *fusion)
{
    for (size_t i = 0; i < fusion->clusters.count; i++)
        for (size_t j = i + 1; j < fusion->clusters.count; j++) {
            const tp_cluster *a = &fusion->clusters.items[i], *b = &fusion->clusters.items[j];
            if (a->is_dead || b->is_dead || a->kind != TP_CLUSTER_MAP || b->kind != TP_CLUSTER_MAP)
                continue;
            bool may;
            TP_TRY(may_join_maps(fusion, (int32_t)i, (int32_t)j, &may));
            if (!may) continue;
            TP_TRY(tp_cluster_merge(fusion, (int32_t)i, (int32_t)j));
            j = i; /* what had nothing in common with i may have with both */
        }
    return TPUCL_OK;
}

tpucl_status tp_fuse_attach(tp_fusion *fusion)
{
    TP_TRY(attach_epilogues(fusion));
    TP_TRY(merge_siblings(fusion));
    return join_maps(fusion);
}
