/* SPDX-License-Identifier: Apache-2.0
 * From clusters in order to launches and buffers. Private to compile/.
 */
#ifndef TP_COMPILE_LOWER_H
#define TP_COMPILE_LOWER_H

#include "compile/compile.h"
#include "compile/pass.h"
#include "program/program_builder.h"

TP_ARRAY_DEFINE(tp_launch_list, tp_launch)
TP_ARRAY_DEFINE(tp_launch_refs, tp_launch *)

/* One sum over cores: buffers in CORE and in REPLICATED of equal size. */
typedef struct tp_reduce_pair {
    int32_t level;
    int32_t core_buffer; /* -1: the launches that make it sum it, too */
    int32_t replicated_buffer;
} tp_reduce_pair;
TP_ARRAY_DEFINE(tp_reduce_list, tp_reduce_pair)

/* A packed form of a tensor that several products share. */
typedef struct tp_shared_pack {
    tp_node_id from; /* the node, as one buffer may hold several, one after the other */
    const char *key;
    int32_t buffer, level;
    int32_t loop; /* of a core's own pack, 0: outside of loops */
    bool is_per_core;
} tp_shared_pack;
TP_ARRAY_DEFINE(tp_pack_list, tp_shared_pack)

/* Launches first .. first + count - 1 of a segment. */
typedef struct tp_lowered_loop {
    int32_t loop, segment, first, count;
} tp_lowered_loop;
TP_ARRAY_DEFINE(tp_loop_list, tp_lowered_loop)

typedef struct tp_lowering {
    tp_fusion *fusion;
    const tp_compile_options *options;
    tp_program_builder *builder;
    int32_t *buffer_of;     /* per node; -1: none */
    tp_node_id *takes_from; /* per node: the operand whose memory it gets, TP_NO_NODE */
    tp_node_id *host;       /* per node: the loop_stack or loop_carry whose memory it is made in */
    int32_t *memory_of;     /* per loop_carry: the buffer with both turns' values; -1 */
    bool *is_summed;        /* per product: its launches sum it over cores */
    tp_launch_list *segments; /* 2 per level: replicated, per core */
    int32_t segment_count;
    tp_reduce_list reduces;
    tp_pack_list packs;
    tp_loop_list loops;
} tp_lowering;

/* Fills builder's program but for the places of slab buffers. */
tpucl_status tp_lower(tp_lowering *lowering);
void tp_lowering_deinit(tp_lowering *lowering);

/* Adds a launch to the segment of `level`. Its tensors are buffers already. */
tpucl_status tp_lower_add_launch(tp_lowering *lowering, int32_t level, bool is_per_core,
                                 const tp_launch *launch);
/* Memory that only the lowering knows of. */
tpucl_status tp_lower_add_scratch(tp_lowering *lowering, const char *name, tp_dtype dtype,
                                  uint64_t bytes, bool is_per_core, int32_t *out_buffer);
/* A copy of args with nodes replaced by their buffers and TP_VPU_SCRATCH by `scratch`. */
tpucl_status tp_lower_map_args(tp_lowering *lowering, const tp_kernel_arg *args, int32_t count,
                               int32_t scratch, const tp_kernel_arg **out_args);
/* "name op" of a cluster, for listings. */
const char *tp_lower_label(tp_lowering *lowering, const tp_cluster *cluster);

/* lower_loop.c. Fills in `host`; makes the buffer of a node that is a view; begins or ends the loops
 * around the cluster that is lowered next (NULL: none is left). */
tpucl_status tp_lower_find_hosts(tp_lowering *lowering);
bool tp_lower_is_view(const tp_lowering *lowering, tp_node_id id);
tpucl_status tp_lower_add_view(tp_lowering *lowering, tp_node_id id);
tpucl_status tp_lower_enter_loop(tp_lowering *lowering, const tp_cluster *next);
/* Makes a node's buffer, if it has none yet. */
tpucl_status tp_lower_add_buffer(tp_lowering *lowering, tp_node_id id);

tpucl_status tp_lower_mxu(tp_lowering *lowering, const tp_cluster *cluster);
tpucl_status tp_lower_window(tp_lowering *lowering, const tp_cluster *cluster);
tpucl_status tp_lower_memory(tp_lowering *lowering, const tp_cluster *cluster);

/* Places CORE and REPLICATED buffers by their lifetimes and fills in the reductions of the segments
 * (segment 2 * level + 1 of the builder's program has level's). */
tpucl_status tp_pass_memory(tp_program *program, const tp_reduce_list *reduces,
                            uint64_t max_segment_bytes);

#endif
