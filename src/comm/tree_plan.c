/* SPDX-License-Identifier: Apache-2.0
 * Walks the balanced tree once, from the root: a subtree that one device owns becomes waves and additions
 * on that device, any other is left to the host. */
#include "comm/tree_plan.h"

#include "core/alloc.h"

typedef struct device_draft {
    tp_tree_op *ops;
    int32_t op_count, slot_used, slot_count;
} device_draft;

typedef struct draft {
    const int32_t *owner, *core_ids, *wave_limit;
    device_draft *devices;
    tp_tree_leaf *leaves;
    int32_t leaf_count;
} draft;

int32_t tp_tree_split(int32_t n)
{
    int32_t half = 1;
    while (half * 2 < n)
        half *= 2;
    return half;
}

static bool has_one_owner(const draft *d, int32_t begin, int32_t count)
{
    for (int32_t i = 1; i < count; i++)
        if (d->owner[begin + i] != d->owner[begin]) return false;
    return true;
}

static bool is_one_wave(const draft *d, int32_t begin, int32_t count)
{
    if (count > d->wave_limit[d->owner[begin]]) return false;
    for (int32_t i = 2; i < count; i++)
        if (d->core_ids[begin + i] - d->core_ids[begin + i - 1] !=
            d->core_ids[begin + 1] - d->core_ids[begin])
            return false;
    return count == 1 || d->core_ids[begin + 1] > d->core_ids[begin];
}

/* Emits what leads to the sum of a subtree owned by one device, in slot `slot`. */
static void plan_owned(draft *d, int32_t begin, int32_t count, int32_t slot)
{
    device_draft *device = &d->devices[d->owner[begin]];
    if (slot + 1 > device->slot_count) device->slot_count = slot + 1;
    if (is_one_wave(d, begin, count)) {
        device->ops[device->op_count++] = (tp_tree_op){TP_TREE_RUN, begin, count, slot};
        return;
    }
    int32_t left = tp_tree_split(count);
    plan_owned(d, begin, left, slot);
    plan_owned(d, begin + left, count - left, slot + 1);
    device->ops[device->op_count++] = (tp_tree_op){TP_TREE_ADD, begin, count, slot};
}

static void plan_subtree(draft *d, int32_t begin, int32_t count)
{
    if (has_one_owner(d, begin, count)) {
        int32_t owner = d->owner[begin];
        int32_t slot = d->devices[owner].slot_used++;
        plan_owned(d, begin, count, slot);
        d->leaves[d->leaf_count++] = (tp_tree_leaf){begin, count, owner, slot};
        return;
    }
    int32_t left = tp_tree_split(count);
    plan_subtree(d, begin, left);
    plan_subtree(d, begin + left, count - left);
}

tpucl_status tp_tree_plan_create(const int32_t *owner, const int32_t *core_ids,
                                 int32_t position_count, int32_t device_count,
                                 const int32_t *wave_limit, tp_arena *arena,
                                 const tp_tree_plan **out_plan)
{
    if (position_count < 1 || device_count < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "a tree over %d cores on %d devices has no plan",
                       position_count, device_count);
    for (int32_t i = 0; i < position_count; i++)
        if (owner[i] < 0 || owner[i] >= device_count || wave_limit[owner[i]] < 1)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "core %d is on device %d with waves of at most %d; there are %d devices",
                           core_ids[i], owner[i],
                           owner[i] < 0 || owner[i] >= device_count ? 0 : wave_limit[owner[i]],
                           device_count);

    tp_tree_plan *plan = TP_ARENA_NEW(arena, tp_tree_plan);
    tp_tree_device *devices = TP_ARENA_NEW_ARRAY(arena, tp_tree_device, (size_t)device_count);
    draft d = {owner, core_ids, wave_limit, NULL, NULL, 0};
    d.devices = TP_ARENA_NEW_ARRAY(arena, device_draft, (size_t)device_count);
    d.leaves = TP_ARENA_NEW_ARRAY(arena, tp_tree_leaf, (size_t)position_count);
    if (!plan || !devices || !d.devices || !d.leaves) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < device_count; i++) { /* a tree of n waves has n - 1 additions */
        d.devices[i].ops = TP_ARENA_NEW_ARRAY(arena, tp_tree_op, 2 * (size_t)position_count);
        if (!d.devices[i].ops) return TPUCL_OUT_OF_MEMORY;
    }
    plan_subtree(&d, 0, position_count);
    for (int32_t i = 0; i < device_count; i++)
        devices[i] =
            (tp_tree_device){d.devices[i].ops, d.devices[i].op_count, d.devices[i].slot_count};
    *plan = (tp_tree_plan){position_count, device_count, devices, d.leaves, d.leaf_count};
    *out_plan = plan;
    return TPUCL_OK;
}

/* Sums the leaves inside (begin, count) into the first of them; *leaf moves past the last. */
static void combine(const tp_tree_plan *plan, float *const *parts, uint64_t elems, int32_t count,
                    int32_t *leaf)
{
    if (plan->leaves[*leaf].count == count) {
        (*leaf)++;
        return;
    }
    int32_t left_leaf = *leaf, left = tp_tree_split(count);
    combine(plan, parts, elems, left, leaf);
    int32_t right_leaf = *leaf;
    combine(plan, parts, elems, count - left, leaf);
    float *sum = parts[left_leaf];
    const float *part = parts[right_leaf];
    for (uint64_t i = 0; i < elems; i++)
        sum[i] += part[i];
}

void tp_tree_combine_leaves(const tp_tree_plan *plan, float *const *parts, uint64_t elems)
{
    int32_t leaf = 0;
    combine(plan, parts, elems, plan->position_count, &leaf);
}
