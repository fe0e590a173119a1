/* SPDX-License-Identifier: Apache-2.0
 * The orders of summation of the numeric contract, for the host: balanced tree and VPU reduction.
 * (The MXU's is in mxu.h.)
 *
 * Partial sums inside one reduction are not flushed, wherever they are kept; the value that comes
 * out is. tp_tree_* work on partial sums and so do not flush; tp_vpu_reduce* do.
 */
#ifndef TP_NUM_REDUCE_H
#define TP_NUM_REDUCE_H

#include <stdint.h>
#include "num/exact_math.h"

#define TP_VPU_LANES 128
#define TP_VPU_BLOCK 8192

typedef enum tp_reduce_op {
    TP_REDUCE_ADD,
    TP_REDUCE_MULTIPLY,
    TP_REDUCE_MAX, /* NaN propagates, +0 > -0 */
    TP_REDUCE_MIN
} tp_reduce_op;

/* One step: earlier op later. */
static inline float tp_reduce_apply(tp_reduce_op op, float earlier, float later)
{
    switch (op) {
    case TP_REDUCE_MULTIPLY:
        return earlier * later;
    case TP_REDUCE_MAX:
        return tp_vpu_max(earlier, later);
    case TP_REDUCE_MIN:
        return tp_vpu_min(earlier, later);
    case TP_REDUCE_ADD:
    default:
        return earlier + later;
    }
}

/* What every lane starts from, and what a reduction over nothing gives: +0, 1, -inf, +inf. */
static inline float tp_reduce_identity(tp_reduce_op op)
{
    switch (op) {
    case TP_REDUCE_MULTIPLY:
        return 1.0f;
    case TP_REDUCE_MAX:
        return -INFINITY;
    case TP_REDUCE_MIN:
        return INFINITY;
    case TP_REDUCE_ADD:
    default:
        return 0.0f;
    }
}

/* Balanced tree, parts arriving one by one in order: split at the largest power of two below n,
 * combine both sides, combine the two. Level i holds the finished subtree of 2^i parts, as in a
 * binary counter; at the end the levels are folded from the last (smallest) to the first. */
typedef struct tp_tree {
    uint64_t count;
    float level[40]; /* 2^40 parts, TP_MAX_ELEMS */
} tp_tree;

static inline void tp_tree_begin(tp_tree *tree)
{
    tree->count = 0;
}

static inline void tp_tree_push(tp_tree *tree, tp_reduce_op op, float part)
{
    int i = 0;
    for (; (tree->count >> i) & 1; i++)
        part = tp_reduce_apply(op, tree->level[i], part);
    tree->level[i] = part;
    tree->count++;
}

/* The combined value; the identity of op if nothing was pushed. */
static inline float tp_tree_end(const tp_tree *tree, tp_reduce_op op)
{
    if (tree->count == 0) return tp_reduce_identity(op);
    int i = 0;
    while (((tree->count >> i) & 1) == 0)
        i++;
    float sum = tree->level[i];
    for (i++; (tree->count >> i) != 0; i++)
        if ((tree->count >> i) & 1) sum = tp_reduce_apply(op, tree->level[i], sum);
    return sum;
}

/* The same over an array of n parts, each `stride` floats after the one before. */
static inline float tp_tree_reduce(tp_reduce_op op, const float *parts, int64_t n, int64_t stride)
{
    tp_tree tree;
    tp_tree_begin(&tree);
    for (int64_t i = 0; i < n; i++)
        tp_tree_push(&tree, op, parts[i * stride]);
    return tp_tree_end(&tree, op);
}

/* The same for parts of any kind (buffers, cores): calls combine(context, left, right) so that part
 * `left` becomes left op right; part 0 holds the result at the end. Calls of one distance are
 * independent of each other, and distances come in rising order: 1, 2, 4... */
static inline void tp_tree_combine(int64_t n,
                                   void (*combine)(void *context, int64_t left, int64_t right),
                                   void *context)
{
    for (int64_t distance = 1; distance < n; distance *= 2)
        for (int64_t left = 0; left + distance < n; left += 2 * distance)
            combine(context, left, left + distance);
}

/* VPU reduction, elements arriving in order: blocks of 8192; in a block element i goes to lane i
 * mod 128, lanes add in rising order and are then combined in halves; blocks by the tree. */
typedef struct tp_vpu_reduction {
    tp_reduce_op op;
    int64_t in_block;
    float lane[TP_VPU_LANES];
    tp_tree blocks;
} tp_vpu_reduction;

void tp_vpu_reduction_begin(tp_vpu_reduction *reduction, tp_reduce_op op);
void tp_vpu_reduction_add(tp_vpu_reduction *reduction, float element);
float tp_vpu_reduction_end(tp_vpu_reduction *reduction);

/* The same over n elements, each `stride` floats after the one before. */
float tp_vpu_reduce(tp_reduce_op op, const float *elements, int64_t n, int64_t stride);

#endif
