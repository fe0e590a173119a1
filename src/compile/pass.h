/* SPDX-License-Identifier: Apache-2.0
 * The passes. The first ones turn a graph into a graph; pass_fuse divides the nodes of the last graph
 * into clusters, one per launch (or few); pass_schedule orders them; lower.c makes launches of them,
 * and pass_memory places the buffers.
 */
#ifndef TP_COMPILE_PASS_H
#define TP_COMPILE_PASS_H

#include "compile/vpu_kernel.h"
#include "core/array.h"
#include "graph/graph.h"

/* ---- graph to graph ---- */

/* Collectives in terms of all_reduce and replica_id. */
tpucl_status tp_pass_collective(const tp_graph *graph, tp_graph **out_graph);
/* Convolutions of few groups with many channels each as one convolution a group. */
tpucl_status tp_pass_groups(const tp_graph *graph, tp_graph **out_graph);
/* Identities that change no bit, equal nodes merged, relu's mask taken from its result. */
tpucl_status tp_pass_canonical(const tp_graph *graph, tp_graph **out_graph);
/* Brings operands of products into an order that needs one stride per role, and gives every output,
 * update and operand of an all_reduce a node of its own. */
tpucl_status tp_pass_layout(const tp_graph *graph, tp_graph **out_graph);

/* ---- clusters ---- */

TP_ARRAY_DEFINE(tp_node_list, tp_node_id)

typedef enum tp_cluster_kind {
    TP_CLUSTER_MAP,        /* element-wise: roots only */
    TP_CLUSTER_REDUCE,     /* heads: reductions of one shape */
    TP_CLUSTER_MXU,        /* heads[0]: the product */
    TP_CLUSTER_WINDOW,     /* heads[0] */
    TP_CLUSTER_MEMORY,     /* heads[0] */
    TP_CLUSTER_ALL_REDUCE, /* heads[0]; no launch: part of the segment's reduction */
    TP_CLUSTER_LOOP        /* heads[0]: one of a loop's own ops; no launch: a view of memory */
} tp_cluster_kind;

typedef struct tp_cluster {
    tp_cluster_kind kind;
    bool is_dead; /* merged into another one, or not needed */
    bool is_replicated;
    tp_node_list heads, roots; /* roots: stored by the cluster, heads among them */
    tp_node_list reads;        /* stored nodes that it loads, each once */
    int32_t level;             /* how many reductions over cores come before it */
    int32_t loop;              /* the loop that runs it, 0: none; all its nodes are of one */
} tp_cluster;

TP_ARRAY_DEFINE(tp_cluster_list, tp_cluster)

/* Where an MXU operand is read from: a stored node and the strides of the roles in it. */
typedef struct tp_operand_view {
    tp_node_id base;
    int64_t stride_batch, stride_outer, stride_inner;
} tp_operand_view;

typedef struct tp_fusion {
    tp_arena *arena;
    const tp_graph *graph;
    const tp_device_caps *caps;
    /* Per node. */
    bool *is_live, *is_replicated;
    bool *is_stored;           /* has memory of its own */
    bool *is_forced;           /* ... whoever reads it: port, operand of a product */
    int32_t *cluster_of;       /* cluster that stores it, -1 */
    int32_t *user_start;       /* users of node i: users[user_start[i]] .. users[user_start[i+1]] */
    tp_node_id *users;         /* live ones */
    tp_operand_view *operands; /* MXU nodes: 2 per node, at 2 * id */
    tp_cluster_list clusters;
    /* Set by pass_schedule. */
    int32_t level_count;
    int32_t *order; /* live clusters in order of execution */
    int32_t order_count;
    bool *is_in_place; /* per update: the cluster may write into the variable itself */
} tp_fusion;

/* `graph` and `caps` must outlive it. */
tpucl_status tp_fusion_create(const tp_graph *graph, const tp_device_caps *caps,
                              tp_fusion **out_fusion);
void tp_fusion_destroy(tp_fusion *fusion);

/* precision: where products read their operands (a convert to bf16 of an f32 tensor that is in memory
 * anyway happens while packing); marks what has to be stored for them. */
tpucl_status tp_pass_precision(tp_fusion *fusion);
/* What is stored, what is recomputed; clusters; merging. */
tpucl_status tp_pass_fuse(tp_fusion *fusion);
/* Levels and order. */
tpucl_status tp_pass_schedule(tp_fusion *fusion);

/* ---- shared by the cluster passes ---- */

tp_vpu_target tp_fusion_target(const tp_fusion *fusion);
/* Is the node computed by generated code (element-wise, moves, random, iota, scalar constants)? */
bool tp_fusion_is_fusible(const tp_fusion *fusion, tp_node_id node);
/* Is operand `input` of this head written by a launch of its own, because all its elements are one
 * constant? (The zeros that an embedding's gradient is scattered into need no memory.) */
bool tp_fusion_is_fill(const tp_fusion *fusion, tp_node_id head, int32_t input);
/* An MXU node's product: batch entries, rows and columns of its result. */
tpucl_status tp_fusion_product_size(const tp_fusion *fusion, tp_node_id node, int64_t *out_batch,
                                    int64_t *out_m, int64_t *out_n);
/* Fills cluster->reads anew. */
tpucl_status tp_cluster_find_reads(tp_fusion *fusion, int32_t cluster);
/* Does `from` have to run before `to`, because of what is stored? A loop runs as a whole: seen from
 * outside, what one of its clusters reads comes before all of them. */
tpucl_status tp_cluster_reaches(tp_fusion *fusion, int32_t from, int32_t to, bool *out_reaches);
/* One line per cluster, for dumps. */
tpucl_status tp_fusion_print(const tp_fusion *fusion, tp_str_builder *out);
/* Heads, roots of b go to a; b is dead; reads of a are found anew. */
tpucl_status tp_cluster_merge(tp_fusion *fusion, int32_t a, int32_t b);

/* OpenCL guarantees 1024 bytes of kernel arguments, and a tensor takes 24 of them. */
#define TP_FUSE_MAX_READS 30

/* pass_fuse's second half: epilogues, sibling reductions, element-wise clusters of one size. */
tpucl_status tp_fuse_attach(tp_fusion *fusion);

#endif
