/* SPDX-License-Identifier: Apache-2.0
 * What an OpenCL device can do, as plain data: device/ fills it in, kernel/ and compile/ read it.
 * So compiling and planning need no OpenCL, and a test can describe any device it likes.
 */
#ifndef TP_TOPO_DEVICE_CAPS_H
#define TP_TOPO_DEVICE_CAPS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tp_device_type { TP_DEVICE_CPU, TP_DEVICE_GPU, TP_DEVICE_ACCELERATOR } tp_device_type;

/* Units that multiply small blocks of bf16 with sums in f32; the numbers are MATRIX_UNIT of
 * kernels/mxu/matrix_unit.clh. Fast math only. */
typedef enum tp_matrix_unit {
    TP_MATRIX_UNIT_NONE,
    TP_MATRIX_UNIT_NVIDIA,     /* mma.sync of PTX: compute capability 8.0 on */
    TP_MATRIX_UNIT_INTEL_16,   /* DPAS by sub-groups of 16 */
    TP_MATRIX_UNIT_INTEL_8,    /* DPAS by sub-groups of 8 */
    TP_MATRIX_UNIT_MFMA,       /* AMD, gfx90a and gfx94x, gfx95x */
    TP_MATRIX_UNIT_WMMA_GFX11, /* AMD */
    TP_MATRIX_UNIT_WMMA_GFX12
} tp_matrix_unit;

typedef struct tp_device_caps {
    char name[128], vendor[128], platform[128], driver[128], version[128]; /* as the driver says */
    tp_device_type type;
    uint32_t compute_units;
    uint64_t max_work_group_size; /* work-items */
    uint64_t max_work_item_sizes[3];
    uint64_t memory_bytes;         /* global memory */
    uint64_t max_allocation_bytes; /* largest single buffer; often far below memory_bytes */
    uint64_t local_memory_bytes;
    bool local_memory_is_ordinary; /* CPU devices: __local is plain memory, staging gains nothing */
    uint64_t cache_bytes;          /* last-level, 0 when the driver does not say */
    uint32_t cache_line_bytes;
    uint32_t base_address_align_bytes; /* the driver reports bits; device/ converts */
    uint32_t preferred_float_vector;   /* CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT: 16 on AVX-512, 1 on
                                          most GPUs */
    bool fma_is_fast;                  /* CL_FP_FMA in the single-precision config */
    bool has_denormals;                /* CL_FP_DENORM */
    bool has_correct_divide_sqrt;      /* CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT */
    bool has_subgroups, has_fp16, has_fp64;
    uint32_t subgroup_sizes; /* sum of the sizes (powers of two) that a kernel may require */
    /* Its kernels may use AVX512_BF16's VDPBF16PS: it is this host's processor, and that has it. */
    bool has_bf16_pairs;
    tp_matrix_unit matrix_unit;
    bool matrix_unit_is_emulated; /* by local memory: tests set it */
    uint32_t max_sub_devices;     /* 0 or 1: cannot be split */
    double profiling_resolution_ns;
} tp_device_caps;

#endif
