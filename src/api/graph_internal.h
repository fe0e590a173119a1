/* SPDX-License-Identifier: Apache-2.0
 * What a tpucl_graph holds: the forward pass as the caller built it, and what to do with it. The
 * graphs that are compiled are made from it, so that one description serves training and
 * evaluation. */
#ifndef TP_API_GRAPH_INTERNAL_H
#define TP_API_GRAPH_INTERNAL_H

#include "api/handles.h"
#include "graph/graph.h"
#include "optim/cross_shard.h"
#include "optim/optimizer.h"

/* A value per example whose mean over the global batch is reported. */
typedef struct tp_api_metric {
    const char *name; /* in the graph's arena */
    tp_node_id node;
} tp_api_metric;

enum { TP_API_MAX_METRICS = 16 };

struct tpucl_graph {
    tp_graph *graph;
    int64_t batch;                             /* per core; 0 until the first input */
    tp_api_metric metrics[TP_API_MAX_METRICS]; /* [0]: the loss, once `has_loss` */
    int32_t metric_count;
    bool has_loss;
    tp_optim_config optimizer;
    tp_cross_shard_reduction reduction;
    tp_core_group *groups; /* in the arena; group_count 0: one group of all cores */
    int32_t group_count;
};

/* What is compiled, for a topology of `cores`. Inputs: the caller's, then "weight" (f32 [batch]:
 * 1 for an example, 0 for padding) and, for training, "denominator" (f32 []: sum of weights over
 * the replica group in this step). Outputs: "sum/<metric>" and "weight_sum" (f32 [],
 * replicated). Mistakes of the builder are reported here. The caller owns the graph. */
tpucl_status tp_api_graph_train(const tpucl_graph *graph, int32_t cores, tp_graph **out_graph);
tpucl_status tp_api_graph_evaluate(const tpucl_graph *graph, tp_graph **out_graph);

#endif
