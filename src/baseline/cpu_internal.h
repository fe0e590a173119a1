/* SPDX-License-Identifier: Apache-2.0
 * What the files of the CPU baseline share. */
#ifndef TP_BASELINE_CPU_INTERNAL_H
#define TP_BASELINE_CPU_INTERNAL_H

#include "baseline/cpu_runner.h"
#include "baseline/openblas.h"
#include "core/arena.h"
#include "graph/geometry.h"

enum { TP_CPU_TILE = 1024 }; /* elements: a cluster of 60 values stays within 256 KiB */

typedef enum tp_cpu_action {
    TP_CPU_NOTHING, /* dead, or data that is already there */
    TP_CPU_ALIAS,   /* the same elements as its input: reshape, all_reduce of one core */
    TP_CPU_TILED,   /* part of a cluster */
    TP_CPU_WHOLE    /* by itself: products, reductions, windows, reindexing */
} tp_cpu_action;

/* Element-wise nodes of one number of elements, in id order. */
typedef struct tp_cpu_cluster {
    tp_node_id *nodes;
    int32_t count;
    int64_t elems;
} tp_cpu_cluster;

/* What runs, in order: a cluster (cluster >= 0) or a node. */
typedef struct tp_cpu_item {
    int32_t cluster;
    tp_node_id node;
} tp_cpu_item;

struct tp_cpu_runner {
    const tp_graph *graph;
    tp_arena *arena;
    tp_pool *pool;
    tp_openblas *blas;
    uint64_t seed;
    uint32_t step;
    tp_cpu_action *actions; /* [node_count] */
    int32_t *cluster_of;    /* [node_count], -1 */
    int32_t *slot_of;       /* [node_count]: place among the nodes of its cluster */
    tp_host_tensor *values; /* [node_count]; data NULL: lives in a cluster's tiles only */
    tp_cpu_cluster *clusters;
    int32_t cluster_count;
    tp_cpu_item *items;
    int32_t item_count;
    void **variables; /* [variable_count]; updates are copied in when the step ends */
    float **tiles;    /* [threads]: scratch of clusters */
    float *columns;   /* patches of convolutions */
    int64_t column_elems;
};

/* cpu_plan.c */
tpucl_status tp_cpu_plan(tp_cpu_runner *runner);
/* cpu_tile.c */
tpucl_status tp_cpu_run_cluster(tp_cpu_runner *runner, const tp_cpu_cluster *cluster);
/* cpu_product.c */
tpucl_status tp_cpu_run_product(tp_cpu_runner *runner, tp_node_id id);
int64_t tp_cpu_column_elems(const tp_graph *graph, const tp_node *node);
/* cpu_reduce.c */
tpucl_status tp_cpu_run_reduce(tp_cpu_runner *runner, tp_node_id id);
/* cpu_window.c */
tpucl_status tp_cpu_run_window(tp_cpu_runner *runner, tp_node_id id);
/* cpu_runner.c: by the op's own rule, on one thread. */
tpucl_status tp_cpu_run_plain(tp_cpu_runner *runner, tp_node_id id);

static inline const tp_node *tp_cpu_node(const tp_cpu_runner *runner, tp_node_id id)
{
    return tp_graph_node(runner->graph, id);
}

/* The pixel under kernel cell (ky, kx) of output (oy, ox), or -1 in the padding. */
int64_t tp_cpu_pixel_at(const tp_conv_geometry *g, int64_t oy, int64_t ox, int64_t ky, int64_t kx);

/* cpu_depthwise.c: one channel in and out of each group. */
bool tp_cpu_is_depthwise(const tp_conv_geometry *g);
tpucl_status tp_cpu_run_depthwise(tp_cpu_runner *runner, const tp_conv_geometry *g,
                                  tp_conv_kind kind, const float *first, const float *second,
                                  float *out);

#endif
