/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/array.h"
#include "harness/alloc_loop.h"

TP_ARRAY_DEFINE(ints, int)

Test(alloc, array_is_zeroed_and_refuses_overflow)
{
    unsigned char *bytes = tp_alloc_array(100, 3);
    for (int i = 0; i < 300; i++)
        cr_assert_eq(bytes[i], 0);
    tp_free(bytes);
    cr_assert_null(tp_alloc_array(SIZE_MAX / 2, 3));
    cr_assert_eq(tpucl_last_error()->status, TPUCL_OUT_OF_MEMORY);
}

Test(alloc, zero_bytes_and_alignment)
{
    void *nothing = tp_alloc(0);
    cr_assert_not_null(nothing);
    tp_free(nothing);
    tp_free(NULL);
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        void *ptr = tp_alloc_aligned(100, alignment);
        cr_assert_eq((uintptr_t)ptr % alignment, 0);
        tp_free(ptr);
    }
}

Test(alloc, grow_keeps_and_zeroes)
{
    int *values = tp_alloc_array(2, sizeof(int));
    values[0] = 7;
    values[1] = 8;
    values = tp_alloc_grow(values, 2, 5, sizeof(int));
    cr_assert(values[0] == 7 && values[1] == 8 && values[2] == 0 && values[4] == 0);
    cr_assert_null(tp_alloc_grow(values, 5, SIZE_MAX, sizeof(int)));
    cr_assert_eq(values[1], 8); /* untouched by the failure */
    tp_free(values);
}

Test(alloc, nth_allocation_fails)
{
    tp_alloc_test_fail_after(2);
    void *a = tp_alloc(8), *b = tp_alloc(8), *c = tp_alloc(8), *d = tp_alloc(8);
    cr_assert(a && b && !c && !d);
    cr_assert_eq(tp_alloc_test_count(), 4);
    tp_alloc_test_fail_after(-1);
    tp_free(a);
    tp_free(b);
}

Test(array, grows_and_appends)
{
    ints array = {0};
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(ints_push(&array, i), TPUCL_OK);
    const int more[] = {-1, -2};
    cr_assert_eq(ints_append(&array, more, 2), TPUCL_OK);
    cr_assert_eq(array.count, 1002);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(array.items[i], i);
    cr_assert_eq(array.items[1001], -2);
    volatile size_t too_many = SIZE_MAX; /* volatile: or the compiler sees through it and warns */
    cr_assert_eq(ints_append(&array, more, too_many), TPUCL_OUT_OF_MEMORY);
    cr_assert_eq(ints_append(&array, more, too_many / 8), TPUCL_OUT_OF_MEMORY);
    cr_assert_eq(array.count, 1002);
    ints_deinit(&array);
    cr_assert(array.items == NULL && array.count == 0);
}

static tpucl_status use_arena(void *user)
{
    (void)user;
    tp_arena *arena;
    TP_TRY(tp_arena_create(256, &arena));
    bool good = true;
    for (size_t i = 1; i < 100 && good; i++) {
        unsigned char *item = tp_arena_alloc(arena, i * 3);
        good = item != NULL;
        if (!good) break;
        cr_assert_eq((uintptr_t)item % 16, 0);
        for (size_t k = 0; k < i * 3; k++)
            cr_assert_eq(item[k], 0);
        memset(item, 0xff, i * 3); /* the next item must not see it */
    }
    tp_arena_destroy(arena);
    return good ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

Test(arena, items_are_zeroed_aligned_apart_and_freed)
{
    alloc_loop_run(use_arena, NULL);
}

Test(arena, text)
{
    tp_arena *arena;
    cr_assert_eq(tp_arena_create(0, &arena), TPUCL_OK);
    cr_assert_str_eq(tp_arena_strdup(arena, "abc"), "abc");
    cr_assert_str_eq(tp_arena_strndup(arena, "abcdef", 2), "ab");
    cr_assert_str_eq(tp_arena_printf(arena, "%d-%s", 5, "x"), "5-x");
    cr_assert_null(tp_arena_alloc(arena, SIZE_MAX - 3));
    cr_assert_null(tp_arena_alloc_array(arena, SIZE_MAX / 4, 8));
    tp_arena_destroy(arena);
    tp_arena_destroy(NULL);
}
