/* SPDX-License-Identifier: Apache-2.0
 * Lets every allocation of an operation fail in turn, and watches that nothing leaks, that a failure has a
 * message, and that the operation still works afterwards: once with all failing from one on, as when memory is
 * short, and once with one alone, which shows failures that nobody looks at. */
#ifndef TP_TESTS_HARNESS_ALLOC_LOOP_H
#define TP_TESTS_HARNESS_ALLOC_LOOP_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include "core/alloc.h"

static _Atomic int64_t alloc_loop_live; /* allocations that were not released yet */

/* Allocations before one is refused; negative: none is. */
static _Atomic int64_t alloc_loop_until_refusal = -1;

static inline void *alloc_loop_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    void *ptr = NULL;
    if (alloc_loop_until_refusal-- == 0) return NULL;
    if (posix_memalign(&ptr, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0)
        return NULL;
    alloc_loop_live++;
    return ptr;
}

static inline void alloc_loop_release(void *user, void *ptr)
{
    (void)user;
    alloc_loop_live--;
    free(ptr);
}

static inline void alloc_loop_all_from_one_on(tpucl_status (*run)(void *user), void *user)
{
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    int64_t n = 0;
    for (; status != TPUCL_OK && n < 100000; n++) {
        tp_error_clear();
        tp_alloc_test_fail_after(n);
        status = run(user);
        tp_alloc_test_fail_after(-1);
        cr_assert_eq(alloc_loop_live, 0, "allocation %d failed: %d leaks", (int)n,
                     (int)alloc_loop_live);
        if (status == TPUCL_OK) break;
        cr_assert_eq(status, TPUCL_OUT_OF_MEMORY, "allocation %d failed: status %s, message '%s'",
                     (int)n, tpucl_status_name(status), tpucl_last_error()->message);
        cr_assert_neq(tpucl_last_error()->message[0], '\0');
    }
    cr_assert_eq(status, TPUCL_OK);
    cr_assert_gt(n, 0, "the operation allocates nothing, so this test shows nothing");
}

static inline void alloc_loop_one_alone(tpucl_status (*run)(void *user), void *user)
{
    int64_t n = 0;
    for (bool was_refused = true; was_refused && n < 100000; n++) {
        tp_error_clear();
        alloc_loop_until_refusal = n;
        const tpucl_status status = run(user);
        was_refused = alloc_loop_until_refusal < 0;
        alloc_loop_until_refusal = -1;
        cr_assert_eq(alloc_loop_live, 0, "allocation %d failed: %d leaks", (int)n,
                     (int)alloc_loop_live);
        cr_assert_eq(status, was_refused ? TPUCL_OUT_OF_MEMORY : TPUCL_OK,
                     "allocation %d failed alone: status %s", (int)n, tpucl_status_name(status));
    }
}

/* `run` does the whole operation and cleans up after itself; it must succeed when memory does, and only then. */
static inline void alloc_loop_run(tpucl_status (*run)(void *user), void *user)
{
    const tp_allocator counting = {alloc_loop_allocate, alloc_loop_release, NULL};
    tp_alloc_set_allocator(&counting);
    alloc_loop_all_from_one_on(run, user);
    alloc_loop_one_alone(run, user);
    tp_alloc_set_allocator(NULL);
}

#endif
