/* SPDX-License-Identifier: Apache-2.0
 * Runs a cluster tile by tile: each value of the cluster has a tile in this thread's scratch, computed by the
 * op's own rule on TP_CPU_TILE elements; values that others read go to memory instead.
 */
#include <string.h>
#include "baseline/cpu_internal.h"

typedef struct tile_run {
    tp_cpu_runner *runner;
    const tp_cpu_cluster *cluster;
} tile_run;

static void *tile_data(const tile_run *run, int worker, int32_t slot)
{
    return run->runner->tiles[worker] + (int64_t)slot * TP_CPU_TILE;
}

/* Walks result elements of a broadcast in order: `offset` is where the operand's element is. */
typedef struct walker {
    const tp_shape *shape;
    int64_t strides[TP_MAX_RANK], index[TP_MAX_RANK], offset;
} walker;

static void walker_begin(walker *w, const tp_node *node, const tp_shape *operand, int64_t begin)
{
    int64_t source[TP_MAX_RANK];
    const tp_attr *axes = tp_node_attr(node, "axes");
    *w = (walker){.shape = &node->shape};
    tp_shape_strides(operand, source);
    for (int i = 0; i < operand->rank; i++)
        if (operand->dims[i] != 1) w->strides[axes->ints[i]] = source[i];
    for (int d = node->shape.rank - 1; d >= 0; d--) {
        w->index[d] = begin % node->shape.dims[d];
        begin /= node->shape.dims[d];
        w->offset += w->index[d] * w->strides[d];
    }
}

/* Moves `run` elements on, which stay within the last axis. */
static void walker_advance(walker *w, int64_t run)
{
    int d = w->shape->rank - 1;
    w->offset += run * w->strides[d];
    w->index[d] += run;
    for (; d > 0 && w->index[d] == w->shape->dims[d]; d--) {
        w->offset += w->strides[d - 1] - w->index[d] * w->strides[d];
        w->index[d] = 0;
        w->index[d - 1]++;
    }
}

static void repeat(void *to, const void *from, int64_t count, size_t size)
{
    if (size == 4) {
        uint32_t word;
        memcpy(&word, from, 4);
        for (int64_t i = 0; i < count; i++)
            ((uint32_t *)to)[i] = word;
    } else {
        memset(to, *(const unsigned char *)from, (size_t)count); /* u8 and pred */
    }
}

/* broadcast_in_dim for result elements begin .. end-1. */
static void fill_broadcast(const tp_node *node, const tp_host_tensor *operand, int64_t begin,
                           int64_t end, void *out)
{
    size_t size = tp_dtype_size(node->dtype);
    int last = node->shape.rank - 1;
    if (last < 0 || tp_shape_elems(&operand->shape) == 1) {
        repeat(out, operand->data, end - begin, size);
        return;
    }
    walker w;
    walker_begin(&w, node, &operand->shape, begin);
    for (int64_t at = begin; at < end;) {
        int64_t run = node->shape.dims[last] - w.index[last];
        if (run > end - at) run = end - at;
        const char *from = (const char *)operand->data + (size_t)w.offset * size;
        char *to = (char *)out + (size_t)(at - begin) * size;
        if (w.strides[last] == 1)
            memcpy(to, from, (size_t)run * size);
        else
            repeat(to, from, run, size);
        at += run;
        walker_advance(&w, run);
    }
}

static tpucl_status run_node(const tile_run *run, int32_t slot, int64_t begin, int64_t end,
                             int worker)
{
    tp_cpu_runner *runner = run->runner;
    tp_node_id id = run->cluster->nodes[slot];
    const tp_node *node = tp_cpu_node(runner, id);
    const tp_shape shape = {.rank = 1, .dims = {end - begin}};
    tp_host_tensor out = {node->dtype, shape, tile_data(run, worker, slot)};
    if (runner->values[id].data)
        out.data = (char *)runner->values[id].data + (size_t)begin * tp_dtype_size(node->dtype);
    if (node->def->op_class == TP_OP_BROADCAST) {
        fill_broadcast(node, &runner->values[node->inputs[0]], begin, end, out.data);
        return TPUCL_OK;
    }
    tp_host_tensor inputs[TP_MAX_INPUTS];
    for (int32_t i = 0; i < node->input_count; i++) {
        const tp_host_tensor *value = &runner->values[node->inputs[i]];
        inputs[i] = (tp_host_tensor){value->dtype, shape, NULL};
        if (value->data)
            inputs[i].data = (char *)value->data + (size_t)begin * tp_dtype_size(value->dtype);
        else
            inputs[i].data = tile_data(run, worker, runner->slot_of[node->inputs[i]]);
    }
    tp_node part = *node;
    part.shape = shape;
    const tp_eval_context context = {.seed = runner->seed, .step = runner->step};
    return node->def->evaluate(&part, inputs, &context, &out);
}

static tpucl_status run_tiles(void *user, size_t begin, size_t end, int worker)
{
    const tile_run *run = user;
    for (size_t tile = begin; tile < end; tile++) {
        int64_t first = (int64_t)tile * TP_CPU_TILE, last = first + TP_CPU_TILE;
        if (last > run->cluster->elems) last = run->cluster->elems;
        for (int32_t slot = 0; slot < run->cluster->count; slot++)
            TP_TRY(run_node(run, slot, first, last, worker));
    }
    return TPUCL_OK;
}

tpucl_status tp_cpu_run_cluster(tp_cpu_runner *runner, const tp_cpu_cluster *cluster)
{
    tile_run run = {runner, cluster};
    size_t tiles = (size_t)((cluster->elems + TP_CPU_TILE - 1) / TP_CPU_TILE);
    return tp_pool_parallel_for(tiles > 4 ? runner->pool : NULL, tiles, 4, run_tiles, &run);
}
