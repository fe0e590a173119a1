/* SPDX-License-Identifier: Apache-2.0
 * The loops of a generated kernel: an ordered list of loop variables, outermost first. Simplifying
 * splits a variable where all that divides it divides by one constant, and merges neighbours that
 * every index runs through as one, so that an element-wise cluster over equal shapes is one loop, and
 * one with a row or column broadcast is two.
 */
#ifndef TP_COMPILE_VPU_LOOPS_H
#define TP_COMPILE_VPU_LOOPS_H

#include "compile/vpu_ir.h"

typedef struct tp_vpu_loops {
    int32_t vars[TP_IX_MAX_VARS];
    int32_t count;
} tp_vpu_loops;

/* New variables for the axes of `shape`; out_tuple gets their forms. Axes of 1 get no loop. */
void tp_vpu_loops_add(tp_vpu_ir *ir, tp_vpu_loops *loops, const tp_shape *shape, tp_ix *out_tuple);

/* Rewrites all forms of `ir`. Lists given together (kept and reduced axes) are never merged with each
 * other. */
void tp_vpu_loops_simplify(tp_vpu_ir *ir, tp_vpu_loops *const *lists, int32_t list_count);

/* Product of the extents of variables first .. end-1 of the list. */
int64_t tp_vpu_loops_extent(const tp_vpu_ir *ir, const tp_vpu_loops *loops, int32_t first,
                            int32_t end);

#endif
