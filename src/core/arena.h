/* SPDX-License-Identifier: Apache-2.0
 * Bump arena: many small objects that die together. Under the address sanitizer each item is an
 * allocation of its own, so that a step over its end is seen.
 * Functions that return NULL have filled the error record. Thread-compatible. */
#ifndef TP_CORE_ARENA_H
#define TP_CORE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include "core/status.h"

typedef struct tp_arena tp_arena;

/* `block_bytes`: size of the blocks that items are cut from; 0 means 16 KiB. Larger items get a
 * block of their own. */
tpucl_status tp_arena_create(size_t block_bytes, tp_arena **out_arena) TPUCL_MUST_CHECK;
void tp_arena_destroy(tp_arena *arena);

/* Zeroed, 16-byte aligned. */
void *tp_arena_alloc(tp_arena *arena, size_t bytes);
void *tp_arena_alloc_array(tp_arena *arena, size_t count, size_t size);

char *tp_arena_strdup(tp_arena *arena, const char *text);
/* The first `length` bytes, zero-terminated. */
char *tp_arena_strndup(tp_arena *arena, const char *text, size_t length);
char *tp_arena_printf(tp_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define TP_ARENA_NEW(arena, type) ((type *)tp_arena_alloc((arena), sizeof(type)))
#define TP_ARENA_NEW_ARRAY(arena, type, count)                                                     \
    ((type *)tp_arena_alloc_array((arena), (count), sizeof(type)))

#endif
