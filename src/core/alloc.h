/* SPDX-License-Identifier: Apache-2.0
 * Host memory. All of the library's own host allocations pass here, so that an embedder can replace
 * the allocator and a test can fail the n-th allocation. Every function that returns NULL has
 * filled the thread's error record (TPUCL_OUT_OF_MEMORY with the number of bytes), so callers
 * write: if (!p) return TPUCL_OUT_OF_MEMORY; Thread-safe, except the two setters, which are called
 * before any thread uses the library. */
#ifndef TP_CORE_ALLOC_H
#define TP_CORE_ALLOC_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

typedef struct tp_allocator {
    /* `alignment` is a power of two, `bytes` is not zero; NULL on failure. */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    /* `ptr` comes from `allocate` and is not NULL. */
    void (*release)(void *user, void *ptr);
    void *user;
} tp_allocator;

/* NULL restores the C library's. Only while nothing of ours is allocated. */
void tp_alloc_set_allocator(const tp_allocator *allocator);

/* Uninitialised / zeroed memory, aligned for any C type. Zero bytes give a pointer that can be
 * freed. */
void *tp_alloc(size_t bytes);
void *tp_alloc_zero(size_t bytes);

/* Zeroed room for `count` elements of `size` bytes; the product is checked for overflow. */
void *tp_alloc_array(size_t count, size_t size);

/* Uninitialised, `alignment` a power of two of at least 16. Freed with tp_free. */
void *tp_alloc_aligned(size_t bytes, size_t alignment);

/* Grows `ptr` (may be NULL) from `old_count` to `new_count` elements; what is added is zeroed. On
 * failure NULL, and `ptr` stays as it was. */
void *tp_alloc_grow(void *ptr, size_t old_count, size_t new_count, size_t size);

char *tp_alloc_strdup(const char *text);

/* Accepts NULL. */
void tp_free(void *ptr);

/* True, and *out = a * b (a + b), unless that overflows. */
static inline bool tp_size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool tp_size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Test mode: after `successes` more allocations every one fails, until switched off with a negative
 * number. tp_alloc_test_count() is the number of allocations since the last call of this function.
 */
void tp_alloc_test_fail_after(int64_t successes);
int64_t tp_alloc_test_count(void);

#define TP_NEW(type) ((type *)tp_alloc_zero(sizeof(type)))
#define TP_NEW_ARRAY(type, count) ((type *)tp_alloc_array((count), sizeof(type)))

#endif
