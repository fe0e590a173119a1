/* SPDX-License-Identifier: Apache-2.0
 * Runs plans on the host with one float per core and compares with the tree of num/reduce.h, bit for bit. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "comm/tree_plan.h"
#include "num/reduce.h"

enum { MAX_CORES = 64, MAX_DEVICES = 8 };

static float value_of(int32_t core)
{
    return (float)((core * 7919 + 13) % 1001) * 1.1e-3f + 1.0f / (float)(core + 3);
}

/* What the executor does, on one float. */
static float run_plan(const tp_tree_plan *plan, const int32_t *ids)
{
    static float slots[MAX_DEVICES][MAX_CORES];
    for (int32_t d = 0; d < plan->device_count; d++)
        for (int32_t i = 0; i < plan->devices[d].op_count; i++) {
            const tp_tree_op *op = &plan->devices[d].ops[i];
            if (op->kind == TP_TREE_ADD) {
                slots[d][op->slot] += slots[d][op->slot + 1];
                continue;
            }
            float wave[MAX_CORES];
            for (int32_t k = 0; k < op->count; k++)
                wave[k] = value_of(ids[op->begin + k]);
            slots[d][op->slot] = tp_tree_reduce(TP_REDUCE_ADD, wave, op->count, 1);
        }
    float *parts[MAX_CORES];
    for (int32_t i = 0; i < plan->leaf_count; i++)
        parts[i] = &slots[plan->leaves[i].device][plan->leaves[i].slot];
    tp_tree_combine_leaves(plan, parts, 1);
    return *parts[0];
}

static void check_same_bits(const int32_t *owner, const int32_t *ids, int32_t n, int32_t devices,
                            const int32_t *limit)
{
    tp_arena *arena = NULL;
    const tp_tree_plan *plan = NULL;
    cr_assert_eq(tp_arena_create(0, &arena), TPUCL_OK);
    cr_assert_eq(tp_tree_plan_create(owner, ids, n, devices, limit, arena, &plan), TPUCL_OK);
    float all[MAX_CORES];
    for (int32_t i = 0; i < n; i++)
        all[i] = value_of(ids[i]);
    float expected = tp_tree_reduce(TP_REDUCE_ADD, all, n, 1), found = run_plan(plan, ids);
    cr_assert_eq(memcmp(&expected, &found, 4), 0,
                 "n %d on %d devices, waves of %d: %a, expected %a", n, devices, limit[0],
                 (double)found, (double)expected);
    tp_arena_destroy(arena);
}

Test(tree_plan, any_mapping_gives_the_tree_of_the_contract)
{
    srand(7);
    for (int32_t n = 1; n <= 33; n++)
        for (int32_t devices = 1; devices <= MAX_DEVICES; devices++)
            for (int32_t limit = 1; limit <= 9; limit++) {
                int32_t owner[MAX_CORES], ids[MAX_CORES], limits[MAX_DEVICES];
                for (int32_t d = 0; d < devices; d++)
                    limits[d] = limit;
                for (int32_t i = 0; i < n; i++) {
                    owner[i] = limit % 2 ? i * devices / n : rand() % devices;
                    ids[i] = limit % 3 ? i : (i * 5) % n;
                }
                check_same_bits(owner, ids, n, devices, limits);
            }
}

Test(tree_plan, waves_are_within_their_limit_and_have_evenly_spaced_ids)
{
    int32_t owner[6] = {0}, ids[6] = {0, 2, 4, 1, 3, 5}, limit[1] = {4};
    tp_arena *arena = NULL;
    const tp_tree_plan *plan = NULL;
    cr_assert_eq(tp_arena_create(0, &arena), TPUCL_OK);
    cr_assert_eq(tp_tree_plan_create(owner, ids, 6, 1, limit, arena, &plan), TPUCL_OK);
    int32_t covered = 0;
    for (int32_t i = 0; i < plan->devices[0].op_count; i++) {
        const tp_tree_op *op = &plan->devices[0].ops[i];
        if (op->kind != TP_TREE_RUN) continue;
        cr_assert_leq(op->count, 4);
        for (int32_t k = 2; k < op->count; k++)
            cr_assert_eq(ids[op->begin + k] - ids[op->begin + k - 1],
                         ids[op->begin + 1] - ids[op->begin]);
        covered += op->count;
    }
    cr_assert_eq(covered, 6);
    tp_arena_destroy(arena);
}

Test(tree_plan, wrong_owner_or_limit_is_refused)
{
    int32_t owner[2] = {0, 3}, ids[2] = {0, 1}, limit[1] = {1};
    tp_arena *arena = NULL;
    const tp_tree_plan *plan = NULL;
    cr_assert_eq(tp_arena_create(0, &arena), TPUCL_OK);
    cr_assert_eq(tp_tree_plan_create(owner, ids, 2, 1, limit, arena, &plan),
                 TPUCL_INVALID_ARGUMENT);
    owner[1] = 0, limit[0] = 0;
    cr_assert_eq(tp_tree_plan_create(owner, ids, 2, 1, limit, arena, &plan),
                 TPUCL_INVALID_ARGUMENT);
    tp_arena_destroy(arena);
}
