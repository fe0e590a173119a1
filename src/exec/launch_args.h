/* SPDX-License-Identifier: Apache-2.0
 * The arguments of a launch (kernel/launch.h) on an OpenCL kernel: one place that knows how each kind of
 * argument is passed. Used for programs and by verify/ for single plans.
 */
#ifndef TP_EXEC_LAUNCH_ARGS_H
#define TP_EXEC_LAUNCH_ARGS_H

#include "device/launch.h"
#include "kernel/launch.h"

typedef struct tp_tensor_place {
    tp_buffer *buffer;
    uint64_t offset_elems, core_stride_elems;
} tp_tensor_place;

/* Says where a tensor is. `arg->offset_elems` is added by the caller; `offset_index` is the OpenCL index of
 * the offset argument, for those that move it later. */
typedef struct tp_tensor_placer {
    tpucl_status (*place)(void *user, const tp_kernel_arg *arg, uint32_t offset_index,
                          tp_tensor_place *out_place);
    void *user;
} tp_tensor_placer;

/* OpenCL indexes of what changes with wave and step; -1: the kernel does not take it. */
typedef struct tp_launch_indexes {
    int32_t core_base, core_step, step, position, cores;
    int32_t sum; /* of the buffer of TP_ARG_SUM; its offset and flag follow */
} tp_launch_indexes;

/* Sets all arguments; core base, step and position start as 0, core step and cores as 1, and a sum goes where the
 * result stands. */
tpucl_status tp_launch_set_args(tp_device_kernel *kernel, const tp_launch *launch, uint64_t seed,
                                const tp_tensor_placer *placer, tp_launch_indexes *out_indexes);

/* Sets a TP_ARG_SUM anew; `index` is tp_launch_indexes.sum. */
tpucl_status tp_launch_set_sum(tp_device_kernel *kernel, int32_t index, tp_buffer *buffer,
                               uint64_t offset_elems, bool is_result);

/* A library product for `cores` cores of a wave: one call each, because the library knows no cores. Placed
 * like the tensors of kernels; enqueued on the compute lane. */
tpucl_status tp_launch_library(tp_device *device, const tp_launch *launch, int32_t cores,
                               const tp_tensor_place places[3]);

#endif
