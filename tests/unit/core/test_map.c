/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include "core/map.h"
#include "harness/alloc_loop.h"

static tpucl_status fill(void *user)
{
    char(*keys)[16] = user;
    tp_map map = {0};
    tpucl_status status = TPUCL_OK;
    for (size_t i = 0; i < 1000 && status == TPUCL_OK; i++)
        status = tp_map_add(&map, keys[i], i);
    for (size_t i = 0; i < 1000 && status == TPUCL_OK; i++) {
        size_t index = 9999;
        cr_assert(tp_map_find(&map, keys[i], &index));
        cr_assert_eq(index, i);
    }
    tp_map_deinit(&map);
    return status;
}

Test(map, finds_what_was_added)
{
    static char keys[1000][16];
    for (int i = 0; i < 1000; i++)
        snprintf(keys[i], sizeof keys[i], "key%d", i);
    alloc_loop_run(fill, keys);
}

Test(map, refuses_a_second_time)
{
    tp_map map = {0};
    size_t index = 5;
    cr_assert_not(tp_map_find(&map, "a", &index));
    cr_assert_eq(index, 5);
    cr_assert_eq(tp_map_add(&map, "a", 1), TPUCL_OK);
    cr_assert_eq(tp_map_add(&map, "a", 2), TPUCL_INVALID_ARGUMENT);
    cr_assert(tp_map_find(&map, "a", &index) && index == 1);
    cr_assert_not(tp_map_find(&map, "A", NULL));
    tp_map_deinit(&map);
}
