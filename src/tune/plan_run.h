/* SPDX-License-Identifier: Apache-2.0
 * Runs a product's launches alone on a device: what verifying, tuning and measuring kernels need,
 * where a program and its executor would be in the way. Each tensor has a buffer of its own; the
 * parts of the cores lie one behind the other with a guard zone after each, and the device can
 * watch the buffers' ends (tp_device_options.guard_zones).
 *
 * Threads: thread-compatible.
 */
#ifndef TP_TUNE_PLAN_RUN_H
#define TP_TUNE_PLAN_RUN_H

#include "device/device.h"
#include "device/launch.h"
#include "kernel/mxu.h"

/* Room for one tensor per core (parts = cores), or once (parts = 1). */
typedef struct tp_plan_tensor {
    tp_buffer *buffer;
    size_t element_bytes, elements, parts;
    size_t lead_elements,
        pitch_elements; /* in front of the first part; from one part to the next */
} tp_plan_tensor;

/* Filled with the guard pattern. Zero elements are fine. `lead_elements` go in front: an odd number
 * shows kernels that count on alignment, 0 gives them the buffer's own. */
tpucl_status tp_plan_tensor_create(tp_device *device, const char *label, size_t element_bytes,
                                   size_t elements, size_t parts, size_t lead_elements,
                                   tp_plan_tensor *out_tensor);
void tp_plan_tensor_deinit(tp_plan_tensor *tensor);
tpucl_status tp_plan_tensor_write(tp_plan_tensor *tensor, size_t part, const void *elements);
tpucl_status tp_plan_tensor_read(tp_plan_tensor *tensor, size_t part, void *out_elements);
/* TPUCL_NOT_EXACT when a byte between or around the parts has changed. */
tpucl_status tp_plan_tensor_check(tp_plan_tensor *tensor);

/* Launches bound to tensors, ready to be enqueued again and again. */
typedef struct tp_plan_run tp_plan_run;

/* Builds the programs. `tensors[i]` is what launch arguments call tensor i; they must outlive the
 * run. The launches are borrowed, too. */
tpucl_status tp_plan_run_create(tp_device *device, const tp_launch *launches, int32_t count,
                                tp_plan_tensor *tensors, int32_t cores, tp_plan_run **out_run);
void tp_plan_run_destroy(tp_plan_run *run);
/* Enqueues launches first .. last - 1 on the compute lane. */
tpucl_status tp_plan_run_enqueue(tp_plan_run *run, int32_t first, int32_t last);

#endif
