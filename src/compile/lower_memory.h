/* SPDX-License-Identifier: Apache-2.0
 * What the lowerings of memory ops share. Private to compile/.
 */
#ifndef TP_COMPILE_LOWER_MEMORY_H
#define TP_COMPILE_LOWER_MEMORY_H

#include "compile/lower.h"
#include "graph/indexing.h"

/* A launch under construction. The first mistake stays in args.status. */
typedef struct tp_memory_launch {
    tp_lowering *lowering;
    const tp_cluster *cluster;
    tp_launch launch;
    tp_vpu_args args;
} tp_memory_launch;

/* `source` is a file of kernels/memory without its suffix. */
tp_memory_launch tp_memory_launch_begin(tp_lowering *lowering, const tp_cluster *cluster,
                                        const char *source, const char *entry, const char *options);
void tp_memory_launch_add_buffer(tp_memory_launch *launch, int32_t buffer, bool is_written);
void tp_memory_launch_add_node(tp_memory_launch *launch, tp_node_id node, bool is_written);
void tp_memory_launch_add_int(tp_memory_launch *launch, int64_t value);
void tp_memory_launch_add_u32(tp_memory_launch *launch, int64_t value);
/* Adds grid_z, chunk_x and, for `has_rows`, chunk_y for nx by ny by nz elements, and the launch to its
 * segment; nothing where there are no elements. */
tpucl_status tp_memory_launch_end(tp_memory_launch *launch, int64_t nx, int64_t ny, int64_t nz,
                                  bool has_rows);

/* " -DMEMORY_F32" and the like, for memory/combine.clh. */
const char *tp_memory_dtype_option(tp_dtype dtype);

/* " -DMEMORY_ADD" and the like, of the attribute `kind`. */
const char *tp_memory_kind_option(const tp_node *node);

/* A table for memory/indexing.clh: some dims of the dense tensor, neighbours merged where they run on. */
typedef struct tp_index_table {
    int32_t rank, components;
    int64_t sizes[TP_MAX_RANK], operand_strides[TP_MAX_RANK], index_strides[TP_MAX_RANK],
        dense_strides[TP_MAX_RANK];
    bool is_window[TP_MAX_RANK]; /* runs through a slice that may lie partly outside */
    int32_t window_dims[TP_MAX_RANK];
} tp_index_table;

/* Of the dims marked in is_taken (NULL: all). */
tp_index_table tp_index_table_make(const tp_indexing *indexing, bool clamps, const bool *is_taken);
/* Product of the sizes of the first `rank` dims. */
int64_t tp_index_table_elems(const tp_index_table *table, int32_t rank);
/* As a constant of the program. */
tpucl_status tp_index_table_store(tp_lowering *lowering, const tp_index_table *table,
                                  const tp_indexing *indexing, int32_t *out_buffer);
/* The knobs of memory/indexing.clh. */
const char *tp_index_options(tp_lowering *lowering, const tp_indexing *indexing, bool clamps,
                             tp_dtype index_dtype);

/* Copies the operand of a head to its result, or fills it where the operand is one constant. */
tpucl_status tp_lower_operand_to_result(tp_lowering *lowering, const tp_cluster *cluster,
                                        tp_node_id operand);

/* Sorts [rows][n] pairs (memory/pairs.clh), which are in `first`, as far as the first `keep` of each row;
 * the other buffer is as large. The result is in *out_buffer, one of the two. */
tpucl_status tp_lower_sort_pairs(tp_lowering *lowering, const tp_cluster *cluster, int64_t rows,
                                 int64_t n, int64_t keep, int32_t first, int32_t second,
                                 int32_t *out_buffer);
/* Two buffers of `count` pairs. */
tpucl_status tp_lower_add_pairs(tp_lowering *lowering, const tp_cluster *cluster, int64_t count,
                                int32_t out_buffers[2]);

tpucl_status tp_lower_scatter(tp_lowering *lowering, const tp_cluster *cluster);
/* An op from outside: its own kernel behind the words of kernels/lib. */
tpucl_status tp_lower_external(tp_lowering *lowering, const tp_cluster *cluster);
tpucl_status tp_lower_sort(tp_lowering *lowering, const tp_cluster *cluster);
/* attention and attention_grad. */
tpucl_status tp_lower_attention(tp_lowering *lowering, const tp_cluster *cluster);

#endif
