/* SPDX-License-Identifier: Apache-2.0
 * Shared by the two halves of the misbehaving OpenCL: fake_cl.c (specification, counting, the
 * corruption) and fake_cl_entries.c (the entry points). */
#ifndef TPUCL_TESTS_FAKE_CL_STATE_H
#define TPUCL_TESTS_FAKE_CL_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include "device/cl_api.h"

typedef enum fake_entry {
#define FAKE_ENTRY(name) FAKE_##name,
    TP_CL_ENTRY_LIST(FAKE_ENTRY)
#undef FAKE_ENTRY
        FAKE_ENTRY_COUNT
} fake_entry;

typedef enum fake_platforms {
    FAKE_PLATFORMS_REAL,
    FAKE_PLATFORMS_NONE,
    FAKE_PLATFORMS_ZERO,
    FAKE_PLATFORMS_EMPTY,
    FAKE_PLATFORMS_BROKEN,
    FAKE_PLATFORMS_NAMELESS
} fake_platforms;

typedef struct fake_specification {
    int fail_entry; /* -1: none */
    int fail_nth;
    cl_int fail_code;
    fake_platforms platforms;
    bool devices_broken;
    uint64_t max_alloc;
    size_t max_group;
    uint32_t align_bits;
    char driver[64], version[64];
    char corrupt[64];
    int corrupt_every;
    bool corrupt_reads, refuse_binaries;
} fake_specification;

extern tp_cl_api fake_real; /* the OpenCL behind us */
extern fake_specification fake_wanted;
extern cl_platform_id fake_extra_platform; /* no real handle: never passed on */

/* Counts a call; true when it is to fail, with the code. Loads the real OpenCL at first use. */
bool fake_enter(fake_entry entry, cl_int *out_code);

/* +1 for each object made or retained, -1 for each released. */
void fake_count_object(int change);

/* Which handles are buffers, and how large. */
void fake_note_buffer(cl_mem memory, size_t bytes);
void fake_forget_buffer(cl_mem memory);

/* Remembers a buffer argument, for the corruption. */
void fake_note_arg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value);
void fake_forget_kernel(cl_kernel kernel);

/* Launches through the real OpenCL and corrupts what the specification says. */
cl_int fake_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                   const size_t *global, const size_t *local, cl_uint wait_count,
                   const cl_event *wait, cl_event *out_event);

/* The table of fake entry points; in the library they are exported instead. */
void fake_fill_table(tp_cl_api *out_table);

#endif
