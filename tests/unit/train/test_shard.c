/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "train/shard.h"

Test(shard, rows_of_a_partial_batch)
{
    static const int64_t full[] = {4, 4, 4}, partial[] = {4, 1, 0};
    for (int32_t core = 0; core < 3; core++) {
        cr_assert_eq(tp_shard_rows(core, 4, 12), full[core]);
        cr_assert_eq(tp_shard_rows(core, 4, 5), partial[core]);
    }
    float weights[4] = {7, 7, 7, 7};
    tp_shard_fill_weights(weights, 4, 1);
    cr_assert(weights[0] == 1 && weights[1] == 0 && weights[3] == 0);
}

Test(shard, groups_count_their_own_examples)
{
    static const int32_t cores[] = {0, 2, 1, 3}; /* {0, 2} and {1, 3} */
    static const float partial[] = {4, 1, 4, 1};
    for (int32_t core = 0; core < 4; core++) {
        cr_assert_eq(tp_shard_group_weight(NULL, 0, 4, core, 4, 5), 5);
        cr_assert_eq(tp_shard_group_weight(cores, 2, 4, core, 4, 5), partial[core]);
        cr_assert_eq(tp_shard_group_weight(cores, 2, 4, core, 4, 16), 8);
    }
    cr_assert_eq(tp_shard_group_weight(cores, 2, 4, 1, 4, 3), 1, "nothing is divided by zero");
}
