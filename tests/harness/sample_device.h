/* SPDX-License-Identifier: Apache-2.0
 * Devices and a product for tests that need no OpenCL: what a device can do is a plain struct. */
#ifndef TESTS_HARNESS_SAMPLE_DEVICE_H
#define TESTS_HARNESS_SAMPLE_DEVICE_H

#include "kernel/mxu.h"

/* Two compute units with vectors of 16 floats; local memory is ordinary memory. */
static inline tp_device_caps sample_cpu(void)
{
    return (tp_device_caps){
        .type = TP_DEVICE_CPU,
        .compute_units = 2,
        .max_work_group_size = 4096,
        .max_allocation_bytes = 1 << 30,
        .local_memory_bytes = 1 << 20,
        .local_memory_is_ordinary = true,
        .preferred_float_vector = 16,
    };
}

/* 20 compute units with 48 KiB of local memory each. */
static inline tp_device_caps sample_gpu(void)
{
    return (tp_device_caps){
        .type = TP_DEVICE_GPU,
        .compute_units = 20,
        .max_work_group_size = 1024,
        .max_allocation_bytes = 1 << 30,
        .local_memory_bytes = 49152,
        .preferred_float_vector = 1,
    };
}

/* Bfloat16 [m,784] times [784,512] to f32, both row-major. Without an epilogue. */
static inline tp_mxu_problem sample_dense(int64_t m)
{
    return (tp_mxu_problem){
        .batch = 1,
        .m = m,
        .n = 512,
        .k = 784,
        .a = {.dtype = TP_BF16, .stride_batch = m * 784, .stride_outer = 784, .stride_inner = 1},
        .b = {.dtype = TP_BF16, .stride_batch = 784 * 512, .stride_outer = 1, .stride_inner = 512},
        .c_dtype = TP_F32,
        .label = "dense",
    };
}

#endif
