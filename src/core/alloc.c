/* SPDX-License-Identifier: Apache-2.0
 * Allocation through one table. Growing copies instead of using realloc, so that a replacement
 * needs two functions only; arrays grow by half, so the copies stay linear. */
#include "core/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void *system_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (alignment <= _Alignof(max_align_t)) return malloc(bytes);
    void *ptr = NULL;
    return posix_memalign(&ptr, alignment, bytes) == 0 ? ptr : NULL;
}

static void system_release(void *user, void *ptr)
{
    (void)user;
    free(ptr);
}

static tp_allocator current = {system_allocate, system_release, NULL};

/* Successes left before the test mode fails everything; negative: off. */
static _Atomic int64_t successes_left = -1;
static _Atomic int64_t allocation_count;

void tp_alloc_set_allocator(const tp_allocator *allocator)
{
    current = allocator ? *allocator : (tp_allocator){system_allocate, system_release, NULL};
}

void tp_alloc_test_fail_after(int64_t successes)
{
    atomic_store(&allocation_count, 0);
    atomic_store(&successes_left, successes);
}

int64_t tp_alloc_test_count(void)
{
    return atomic_load(&allocation_count);
}

static bool test_refuses(void)
{
    atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
    int64_t left = atomic_load_explicit(&successes_left, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak(&successes_left, &left, left - 1)) return false;
    }
    return left == 0;
}

void *tp_alloc_aligned(size_t bytes, size_t alignment)
{
    void *ptr = NULL;
    /* More than PTRDIFF_MAX can never be one object in C (differences of pointers must fit). */
    if (!test_refuses() && bytes <= PTRDIFF_MAX)
        ptr = current.allocate(current.user, bytes ? bytes : 1, alignment);
    if (!ptr) TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    return ptr;
}

void *tp_alloc(size_t bytes)
{
    return tp_alloc_aligned(bytes, _Alignof(max_align_t));
}

void *tp_alloc_zero(size_t bytes)
{
    void *ptr = tp_alloc(bytes);
    if (ptr) memset(ptr, 0, bytes);
    return ptr;
}

void *tp_alloc_array(size_t count, size_t size)
{
    size_t bytes;
    if (!tp_size_mul(count, size, &bytes)) {
        TP_FAIL(TPUCL_OUT_OF_MEMORY, "%zu elements of %zu bytes are more than can be addressed",
                count, size);
        return NULL;
    }
    return tp_alloc_zero(bytes);
}

void *tp_alloc_grow(void *ptr, size_t old_count, size_t new_count, size_t size)
{
    void *grown = tp_alloc_array(new_count, size);
    if (!grown) return NULL;
    if (ptr) memcpy(grown, ptr, (old_count < new_count ? old_count : new_count) * size);
    tp_free(ptr);
    return grown;
}

char *tp_alloc_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = tp_alloc(bytes);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

void tp_free(void *ptr)
{
    if (ptr) current.release(current.user, ptr);
}
