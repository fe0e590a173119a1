/* SPDX-License-Identifier: Apache-2.0
 * Typed growable arrays. TP_ARRAY_DEFINE(tp_ints, int) makes the type tp_ints {items, count,
 * capacity}, which starts zeroed, and
 *
 *   tpucl_status tp_ints_reserve(tp_ints *array, size_t wanted)      room for `wanted` elements in all
 *   tpucl_status tp_ints_push(tp_ints *array, int value)
 *   tpucl_status tp_ints_append(tp_ints *array, const int *values, size_t count)
 *   void tp_ints_deinit(tp_ints *array)                              frees; it may be used again
 *
 * On failure the array is unchanged. */
#ifndef TP_CORE_ARRAY_H
#define TP_CORE_ARRAY_H

#include <string.h>
#include "core/alloc.h"
#include "core/status.h"

/* The capacity to grow to: at least `wanted`, half as much again as before, 8 at first. */
static inline size_t tp_array_next_capacity(size_t capacity, size_t wanted)
{
    size_t next = capacity < 8 ? 8 : capacity + capacity / 2;
    return next < wanted ? wanted : next;
}

#define TP_ARRAY_DEFINE(name, type)                                                                \
    typedef struct name {                                                                          \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    } name;                                                                                        \
    __attribute__((unused)) static inline tpucl_status name##_reserve(name *array, size_t wanted)  \
    {                                                                                              \
        if (wanted <= array->capacity) return TPUCL_OK;                                            \
        size_t capacity = tp_array_next_capacity(array->capacity, wanted);                         \
        type *items = tp_alloc_grow(array->items, array->count, capacity, sizeof(type));           \
        if (!items) return TPUCL_OUT_OF_MEMORY;                                                    \
        array->items = items;                                                                      \
        array->capacity = capacity;                                                                \
        return TPUCL_OK;                                                                           \
    }                                                                                              \
    __attribute__((unused)) static inline tpucl_status name##_push(name *array, type value)        \
    {                                                                                              \
        TP_TRY(name##_reserve(array, array->count + 1));                                           \
        array->items[array->count++] = value;                                                      \
        return TPUCL_OK;                                                                           \
    }                                                                                              \
    __attribute__((unused)) static inline tpucl_status name##_append(                              \
        name *array, type const *values, size_t count)                                             \
    {                                                                                              \
        size_t wanted;                                                                             \
        if (!tp_size_add(array->count, count, &wanted))                                            \
            return TP_FAIL(TPUCL_OUT_OF_MEMORY, "array of %zu elements is too large", count);      \
        TP_TRY(name##_reserve(array, wanted));                                                     \
        if (count) memcpy(array->items + array->count, values, count * sizeof(type));              \
        array->count = wanted;                                                                     \
        return TPUCL_OK;                                                                           \
    }                                                                                              \
    __attribute__((unused)) static inline void name##_deinit(name *array)                          \
    {                                                                                              \
        tp_free(array->items);                                                                     \
        array->items = NULL;                                                                       \
        array->count = array->capacity = 0;                                                        \
    }

#endif
