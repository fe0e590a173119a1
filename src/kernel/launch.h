/* SPDX-License-Identifier: Apache-2.0
 * A launch as plain data: which kernel, which arguments, which grid. Kernel plans produce launches,
 * programs hold them, the executor binds and enqueues them.
 *
 * Tensors. A tensor argument becomes THREE OpenCL arguments: base buffer (cl_mem), element offset
 * (ulong), and element stride from one core to the next (ulong; 0 for what stands once per device).
 * In kernels these are written with TP_TENSOR and TP_AT of lib/tensor.clh.
 *
 * Cores. A program is for one core; the executor runs it for a wave of cores at once by multiplying
 * global[2] by the number of cores in the wave. `grid_z` is global[2] of a single core: a kernel
 * finds its core (counted within the wave) as get_global_id(2) / grid_z, its own z as
 * get_global_id(2) % grid_z. (Not get_group_id: where the driver chooses the local size, it may cut
 * dimension 2 as well.) local[2] is 1 or left to the driver. A launch over replicated tensors only
 * (is_per_core false) runs once per device.
 */
#ifndef TP_KERNEL_LAUNCH_H
#define TP_KERNEL_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tp_arg_kind {
    TP_ARG_TENSOR,    /* `tensor`: index into the buffer table of the owner (plan or program) */
    TP_ARG_S32,       /* `s32` */
    TP_ARG_U32,       /* `u32` */
    TP_ARG_U64,       /* `u64` */
    TP_ARG_F32,       /* `f32` */
    TP_ARG_CORE_BASE, /* uint: global id of the wave's first core (keys random numbers) */
    TP_ARG_CORE_STEP, /* uint: distance of global ids from core to core of the wave, usually 1 */
    TP_ARG_POSITION, /* uint: place of the wave's first core in its replica group; the others follow */
    TP_ARG_STEP,     /* uint: number of the training step, from 0 */
    TP_ARG_SEED,     /* ulong: the run's seed */
    TP_ARG_LOCAL,    /* __local memory of `u64` bytes */
    TP_ARG_CORES,    /* uint: cores of the wave */
    /* float buffer, ulong offset in elements, uint: the sum over the wave's cores goes there. 1: it is of all cores,
     * the result, and `tensor` is where that stands; 0: a partial sum, which others are added to. Only launches that
     * sum cores have it. */
    TP_ARG_SUM
} tp_arg_kind;

typedef struct tp_kernel_arg {
    tp_arg_kind kind;
    int32_t tensor;
    bool
        is_written; /* TP_ARG_TENSOR: the launch stores into it (it may read it, too); TP_ARG_SUM: true */
    uint64_t offset_elems; /* TP_ARG_TENSOR: added to the buffer's own offset */
    union {
        int32_t s32;
        uint32_t u32;
        uint64_t u64;
        float f32;
    };
} tp_kernel_arg;

/* Does it name a buffer? */
static inline bool tp_arg_is_tensor(const tp_kernel_arg *arg)
{
    return arg->kind == TP_ARG_TENSOR || arg->kind == TP_ARG_SUM;
}

typedef enum tp_launch_kind {
    TP_LAUNCH_KERNEL,       /* one of our kernels */
    TP_LAUNCH_CLBLAST_SGEMM /* library product: see `gemm`; `args` are the tensors A, B, C */
} tp_launch_kind;

/* Row-major C[batch][m][n] = A[batch][m][k] * B[batch][k][n], f32; transposed operands are stored
 * [k][m], [n][k]. */
typedef struct tp_library_gemm {
    int64_t batch, m, n, k;
    bool transpose_a, transpose_b;
    int64_t lda, ldb, ldc;                /* elements */
    int64_t stride_a, stride_b, stride_c; /* elements from one batch entry to the next */
} tp_library_gemm;

typedef struct tp_launch {
    tp_launch_kind kind;
    const char *label; /* for listings and traces: "dense_1/dot_general mxu_register 14x32" */
    /* OpenCL C with #include lines still in it; borrowed from the owner's arena */
    const char *source;
    const char *options; /* "-DTILE_M=14 ...", may be "" */
    const char *entry;   /* kernel name in `source` */
    const tp_kernel_arg *args;
    int32_t arg_count;
    size_t global[3], local[3]; /* for one core; local all 0 lets the driver choose */
    size_t grid_z;              /* global[2] for one core */
    bool is_per_core;
    bool sums_cores; /* per core, but one grid goes through all cores of the wave: see TP_ARG_SUM */
    tp_library_gemm gemm;
    double flops,
        bytes; /* per core, for reports: 2 per multiply-add; bytes read and written once */
} tp_launch;

#endif
