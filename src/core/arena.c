/* SPDX-License-Identifier: Apache-2.0
 * Blocks in a list, the newest first. Under the address sanitizer every item is a block of its own,
 * of exactly its size, so that the sanitizer's red zones lie between items. */
#include "core/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"

#if defined(__SANITIZE_ADDRESS__)
#define ITEMS_ALONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ITEMS_ALONE 1
#endif
#endif
#ifndef ITEMS_ALONE
#define ITEMS_ALONE 0
#endif

enum { ALIGNMENT = 16, DEFAULT_BLOCK_BYTES = 16 * 1024 };

typedef struct block {
    struct block *next;
    size_t capacity, used;
    _Alignas(ALIGNMENT) unsigned char bytes[];
} block;

struct tp_arena {
    block *blocks; /* items are cut from the first one */
    size_t block_bytes;
};

tpucl_status tp_arena_create(size_t block_bytes, tp_arena **out_arena)
{
    *out_arena = TP_NEW(tp_arena);
    if (!*out_arena) return TPUCL_OUT_OF_MEMORY;
    (*out_arena)->block_bytes = block_bytes ? block_bytes : DEFAULT_BLOCK_BYTES;
    return TPUCL_OK;
}

void tp_arena_destroy(tp_arena *arena)
{
    if (!arena) return;
    for (block *b = arena->blocks; b;) {
        block *next = b->next;
        tp_free(b);
        b = next;
    }
    tp_free(arena);
}

static block *add_block(tp_arena *arena, size_t capacity, bool behind_first)
{
    block *b = tp_alloc(sizeof *b + capacity);
    if (!b) return NULL;
    b->capacity = capacity;
    b->used = 0;
    block **place = behind_first && arena->blocks ? &arena->blocks->next : &arena->blocks;
    b->next = *place;
    *place = b;
    return b;
}

void *tp_arena_alloc(tp_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    block *b = arena->blocks;
    if (ITEMS_ALONE) {
        b = add_block(arena, bytes, false);
    } else if (rounded > arena->block_bytes / 4) {
        b = add_block(arena, rounded, true); /* the rest of the first block stays usable */
    } else if (!b || b->capacity - b->used < rounded) {
        b = add_block(arena, arena->block_bytes, false);
    }
    if (!b) return NULL;
    void *item = b->bytes + b->used;
    b->used += ITEMS_ALONE ? bytes : rounded;
    memset(item, 0, bytes);
    return item;
}

void *tp_arena_alloc_array(tp_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (!tp_size_mul(count, size, &bytes)) {
        TP_FAIL(TPUCL_OUT_OF_MEMORY, "%zu elements of %zu bytes are more than can be addressed",
                count, size);
        return NULL;
    }
    return tp_arena_alloc(arena, bytes);
}

char *tp_arena_strndup(tp_arena *arena, const char *text, size_t length)
{
    char *copy = tp_arena_alloc(arena, length + 1);
    if (copy && length) memcpy(copy, text, length);
    return copy;
}

char *tp_arena_strdup(tp_arena *arena, const char *text)
{
    return tp_arena_strndup(arena, text, strlen(text));
}

char *tp_arena_printf(tp_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        TP_FAIL(TPUCL_INTERNAL, "format '%s' cannot be printed", format);
        return NULL;
    }
    char *text = tp_arena_alloc(arena, (size_t)length + 1);
    if (!text) return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}
