/* SPDX-License-Identifier: Apache-2.0
 * Kernels: arguments and launches. Every tp_device_kernel is an OpenCL kernel object of its own, so
 * a launch that comes back every step sets its arguments once and afterwards only those that
 * change.
 *
 * A tensor argument (kernel/launch.h) is three of these arguments: tp_device_kernel_set_buffer,
 * then two tp_device_kernel_set_bytes with a uint64_t. A kernel does not hold references to its
 * buffers: keep them.
 *
 * Threads: one kernel, one thread at a time.
 */
#ifndef TP_DEVICE_LAUNCH_H
#define TP_DEVICE_LAUNCH_H

#include "device/buffer.h"
#include "device/program_build.h"

typedef struct tp_device_kernel tp_device_kernel;

/* TPUCL_NOT_FOUND when the program has no such entry. */
tpucl_status tp_device_kernel_create(tp_device_program *program, const char *entry,
                                     tp_device_kernel **out_kernel);
void tp_device_kernel_destroy(tp_device_kernel *kernel);

tpucl_status tp_device_kernel_set_buffer(tp_device_kernel *kernel, uint32_t index,
                                         const tp_buffer *buffer);
tpucl_status tp_device_kernel_set_bytes(tp_device_kernel *kernel, uint32_t index, const void *value,
                                        size_t bytes);
tpucl_status tp_device_kernel_set_local(tp_device_kernel *kernel, uint32_t index, size_t bytes);

typedef struct tp_device_kernel_limits {
    size_t max_work_group_size; /* for this kernel on this device */
    size_t preferred_work_group_multiple;
    uint64_t local_memory_bytes, private_memory_bytes;
    size_t required_work_group_size[3]; /* all 0: none */
    uint32_t arg_count;
} tp_device_kernel_limits;
void tp_device_kernel_get_limits(const tp_device_kernel *kernel,
                                 tp_device_kernel_limits *out_limits);

/* Enqueues on the compute lane. local all 0 (or NULL) lets the driver choose; otherwise each local
 * size must divide its global size, and their product must fit the kernel's and the device's
 * limits: if not, TPUCL_INVALID_ARGUMENT with the numbers (TPUCL_UNSUPPORTED where only this device
 * is too small). A global size of 0 enqueues nothing; an event asked for then stands for what came
 * before on the lane. */
tpucl_status tp_device_kernel_enqueue(tp_device_kernel *kernel, const size_t global[3],
                                      const size_t local[3], tp_event *const *wait,
                                      uint32_t wait_count, tp_event **out_event);

#endif
