/* SPDX-License-Identifier: Apache-2.0
 * Which device sums what, so that any mapping of cores to devices gives the bits of the balanced tree.
 *
 * The tree over n positions splits at the largest power of two below n. A device can finish each subtree
 * whose cores it owns; the plan lists, per device, the waves to run and the additions that lead to its
 * largest such subtrees, and which subtrees are then left to be combined across devices. A wave is itself
 * a subtree, so its sum inside one kernel is part of the same tree.
 *
 *     n = 6, device 0 owns 0..2, device 1 owns 3..5, waves of at most 2:
 *         device 0: run (0,2) -> slot 0; run (2,1) -> slot 1            leaves (0,2), (2,1)
 *         device 1: run (3,1) -> slot 0; run (4,2) -> slot 1            leaves (3,1), (4,2)
 *         across:   ((0,2) + ((2,1) + (3,1))) + (4,2)
 *
 * Pure data, no device. Read-only after creation: thread-safe.
 */
#ifndef TP_COMM_TREE_PLAN_H
#define TP_COMM_TREE_PLAN_H

#include <stdint.h>
#include "core/arena.h"
#include "core/status.h"

typedef enum tp_tree_op_kind {
    TP_TREE_RUN, /* run the wave of positions begin .. begin+count-1; its sum goes to `slot` */
    TP_TREE_ADD  /* slot = slot + (slot + 1) */
} tp_tree_op_kind;

typedef struct tp_tree_op {
    tp_tree_op_kind kind;
    int32_t begin, count; /* RUN: positions in the group */
    int32_t slot;
} tp_tree_op;

/* A subtree that a device has finished. */
typedef struct tp_tree_leaf {
    int32_t begin, count;
    int32_t device, slot;
} tp_tree_leaf;

typedef struct tp_tree_device {
    const tp_tree_op *ops;
    int32_t op_count, slot_count;
} tp_tree_device;

typedef struct tp_tree_plan {
    int32_t position_count, device_count;
    const tp_tree_device *devices;
    const tp_tree_leaf *leaves; /* by rising `begin`; they cover all positions */
    int32_t leaf_count;
} tp_tree_plan;

/* `owner`: device of each position, in 0 .. device_count-1. `wave_limit`: most positions in one wave, per
 * device, at least 1. `core_ids`: global core id of each position; the ids of a wave have one constant
 * distance (launches know a first id and a step), so waves are cut further where that does not hold. The
 * plan lives in `arena`. */
tpucl_status tp_tree_plan_create(const int32_t *owner, const int32_t *core_ids,
                                 int32_t position_count, int32_t device_count,
                                 const int32_t *wave_limit, tp_arena *arena,
                                 const tp_tree_plan **out_plan);

/* Where the tree splits n > 1 positions: the largest power of two below n. */
int32_t tp_tree_split(int32_t n);

/* Adds the leaves across devices: parts[i] is leaf i's array of `elems` f32; parts are overwritten, and
 * parts[0] holds the sum of all at the end. Partial sums are not flushed; the caller flushes the result. */
void tp_tree_combine_leaves(const tp_tree_plan *plan, float *const *parts, uint64_t elems);

#endif
