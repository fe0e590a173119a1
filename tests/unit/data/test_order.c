/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "data/order.h"

static void check_permutation(const int64_t *order, int64_t count)
{
    char seen[1000] = {0};
    for (int64_t i = 0; i < count; i++) {
        cr_assert(order[i] >= 0 && order[i] < count && !seen[order[i]]);
        seen[order[i]] = 1;
    }
}

Test(order, every_buffer_gives_a_permutation)
{
    int64_t order[1000];
    for (int64_t count = 1; count <= 1000; count += 37)
        for (int64_t buffer = 0; buffer <= count + 1; buffer += 1 + count / 5) {
            cr_assert_eq(tp_order_fill(count, buffer, 5, 0, order), TPUCL_OK);
            check_permutation(order, count);
        }
}

Test(order, buffer_of_one_keeps_the_order_and_a_window_bounds_the_distance)
{
    int64_t order[1000];
    cr_assert_eq(tp_order_fill(1000, 1, 5, 0, order), TPUCL_OK);
    for (int64_t i = 0; i < 1000; i++)
        cr_assert_eq(order[i], i);
    cr_assert_eq(tp_order_fill(1000, 10, 5, 0, order), TPUCL_OK);
    for (int64_t i = 0; i < 1000; i++)
        cr_assert_lt(order[i], i + 10); /* nothing comes before it has entered the window */
}

Test(order, depends_on_seed_and_epoch_and_on_nothing_else)
{
    int64_t a[1000], b[1000];
    cr_assert_eq(tp_order_fill(1000, 0, 5, 3, a), TPUCL_OK);
    cr_assert_eq(tp_order_fill(1000, 0, 5, 3, b), TPUCL_OK);
    cr_assert_eq(memcmp(a, b, sizeof a), 0);
    cr_assert_eq(tp_order_fill(1000, 0, 5, 4, b), TPUCL_OK);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
    cr_assert_eq(tp_order_fill(1000, 0, 6, 3, b), TPUCL_OK);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
}

Test(order, positions_are_spread_evenly)
{
    int64_t order[100], low = 0;
    for (uint32_t epoch = 0; epoch < 400; epoch++) {
        cr_assert_eq(tp_order_fill(100, 0, 1, epoch, order), TPUCL_OK);
        for (int i = 0; i < 50; i++)
            low += order[i] < 50;
    }
    cr_assert(low > 9700 && low < 10300, "%lld of 20000", (long long)low);
}
