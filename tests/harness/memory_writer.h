/* SPDX-License-Identifier: Apache-2.0
 * A tp_writer into memory, for tests of formats. */
#ifndef TP_TESTS_MEMORY_WRITER_H
#define TP_TESTS_MEMORY_WRITER_H

#include <stdlib.h>
#include <string.h>
#include "io/stream.h"

typedef struct memory_writer {
    tp_writer base;
    unsigned char *bytes; /* free() */
    size_t length;
    bool committed;
} memory_writer;

static tpucl_status memory_write(tp_writer *writer, const void *bytes, size_t length)
{
    memory_writer *to = (memory_writer *)writer;
    unsigned char *larger = realloc(to->bytes, to->length + length + 1);
    if (!larger) abort();
    to->bytes = larger;
    if (length) memcpy(to->bytes + to->length, bytes, length);
    to->length += length;
    return TPUCL_OK;
}

static tpucl_status memory_commit(tp_writer *writer)
{
    ((memory_writer *)writer)->committed = true;
    return TPUCL_OK;
}

static void memory_abort(tp_writer *writer)
{
    (void)writer;
}

/* The caller's storage; bytes may be read once the format has committed. */
static tp_writer *memory_writer_init(memory_writer *writer)
{
    static const tp_writer_ops ops = {memory_write, memory_commit, memory_abort};
    *writer = (memory_writer){.base = {.ops = &ops, .name = "memory"}};
    return &writer->base;
}

#endif
