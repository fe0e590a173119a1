/* SPDX-License-Identifier: Apache-2.0
 * The insides of devices, buffers, programs and kernels. Private to src/device. */
#ifndef TP_DEVICE_INTERNAL_H
#define TP_DEVICE_INTERNAL_H

#include <stdatomic.h>
#include "core/array.h"
#include "core/hash.h"
#include "core/thread.h"
#include "device/buffer.h"
#include "device/cl_api.h"
#include "device/cl_error.h"
#include "device/device.h"
#include "device/launch.h"
#include "device/program_build.h"

/* One context and its lanes. `references`: the opener's, one per buffer, program reference, kernel.
 * */
struct tp_device {
    atomic_uint references;
    const tp_cl_api *cl;
    cl_device_id id;
    bool is_sub_device; /* `id` is ours to release */
    cl_context context;
    cl_command_queue queues[TP_LANE_COUNT]; /* all the same with one lane */
    bool has_one_lane;
    tp_device_caps caps;
    tp_quirks quirks;
    tp_device_options options;
    atomic_bool is_synchronous;
    char label[48];
    char identity[704];
    char build_options[512];

    tp_mutex memory_mutex;
    tp_device_memory memory;

    struct tp_build_state *build; /* program_build.c */
};

struct tp_buffer {
    atomic_uint references;
    tp_device *device;
    cl_mem memory; /* what kernels see */
    cl_mem whole;  /* with the guard zones around it; `memory` itself without */
    size_t bytes;
    size_t guard_bytes; /* 0: none */
    char label[64];
};

typedef enum tp_device_program_state {
    TP_PROGRAM_BUILDING, /* one thread is at it, others wait */
    TP_PROGRAM_READY,
    TP_PROGRAM_FAILED /* out of the list, those who waited try themselves */
} tp_device_program_state;

/* A built program. The memory cache's reference does not keep the device alive, the users' do. */
struct tp_device_program {
    atomic_uint references;
    tp_device_program_state state;
    tp_device *device;
    cl_program program;
    uint8_t key[TP_SHA256_BYTES];
    char label[64];
    tp_device_program *next; /* in the device's list */
};

struct tp_device_kernel {
    tp_device_program *program; /* a user's reference */
    tp_device *device;
    cl_kernel kernel;
    tp_device_kernel_limits limits;
    char name[128];
};

/* Sets up and tears down device->build. */
tpucl_status tp_build_state_init(tp_device *device);
void tp_build_state_deinit(tp_device *device);

void tp_device_retain(tp_device *device);
void tp_device_release(tp_device *device);

/* Books `bytes` against the limit, or TPUCL_OUT_OF_DEVICE_MEMORY with the numbers; `label` for the
 * message. */
tpucl_status tp_device_reserve(tp_device *device, uint64_t bytes, const char *label);
void tp_device_unreserve(tp_device *device, uint64_t bytes);

/* Around every enqueue: before, flushes what the command waits for; after, finishes the lane on a
 * synchronous device, and releases *inout_event (may be NULL) when that fails. */
void tp_lane_prepare_wait(tp_device *device, tp_lane lane, uint32_t wait_count);
tpucl_status tp_lane_after_enqueue(tp_device *device, tp_lane lane, tp_event **inout_event);

static inline const cl_event *tp_cl_events(tp_event *const *events)
{
    return (const cl_event *)(const void *)events; /* tp_event is cl_event under another name */
}

#endif
