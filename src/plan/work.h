/* SPDX-License-Identifier: Apache-2.0
 * What one core does in a step, as far as its time depends on it: products from the graph, everything else from the
 * compiled program, where element-wise work is fused. No machine is in it; plan/project.h brings that.
 */
#ifndef TP_PLAN_WORK_H
#define TP_PLAN_WORK_H

#include "core/arena.h"
#include "core/array.h"
#include "graph/graph.h"
#include "program/program.h"

typedef struct tp_work_item {
    const char *layer; /* "" for what belongs to none: loss, optimizer */
    double count;      /* how often: turns of its loop */
    bool is_product;
    bool is_f32;           /* products of f32 operands, not of bf16 ones */
    double batch, m, n, k; /* products: batch entries of m x k with k x n */
    /* Products: multiplications that fast convolution leaves, of each one; 1 where there is none. For kernels of
     * r x r with stride 1 in tiles of 2 x 2: ((2 + r - 1) / 2 r)^2 (Lavin, Gray: "Fast Algorithms for Convolutional
     * Neural Networks", 2015). */
    double fast_share;
    double bytes; /* to and from memory, each operand once */
} tp_work_item;

TP_ARRAY_DEFINE(tp_work_items, tp_work_item)

typedef struct tp_work {
    tp_arena *arena;
    tp_work_items items;
    int64_t examples;      /* of one core */
    double input_bytes;    /* that the host feeds one core */
    double gradient_bytes; /* summed over cores, f32 */
    double longest_loop;   /* turns; 1: there is no loop */
} tp_work;

/* Both are only read and need not outlive the work. */
tpucl_status tp_work_create(const tp_graph *graph, const tp_program *program, int64_t examples,
                            tp_work **out_work) TPUCL_MUST_CHECK;
void tp_work_destroy(tp_work *work);

#endif
