/* SPDX-License-Identifier: Apache-2.0
 * Inside kernel/: what the variants of the MXU catalogue share. A variant says why it declines a
 * problem, or adds scratch and launches to a plan with the helpers below.
 */
#ifndef TP_KERNEL_MXU_PLAN_H
#define TP_KERNEL_MXU_PLAN_H

#include "kernel/mxu.h"
#include "kernel/mxu_choice.h"

/* A plan in the making. */
typedef struct tp_mxu_builder {
    const tp_mxu_problem *problem;
    const tp_device_caps *caps;
    int32_t scratch_base;
    tp_arena *arena;
    tp_mxu_plan *plan;
    const tp_mxu_choice *choice; /* in place of what heuristics choose, or NULL */
} tp_mxu_builder;

/* The value to plan with: the choice's where there is one, else what heuristics say. The plan
 * remembers it. */
int tp_mxu_knob_value(const tp_mxu_builder *builder, tp_mxu_knob knob, int heuristic);

typedef struct tp_mxu_variant {
    const char *name;
    bool takes_groups; /* convolutions of several groups, too: those that do not never see one */
    /* Sets *out_reason to why it cannot run the problem, or (unless `is_forced`) why others do it
     * better; leaves it NULL when it accepts. Fails only for lack of memory. */
    tpucl_status (*decline)(const tp_mxu_builder *builder, bool is_forced, const char **out_reason);
    tpucl_status (*plan)(tp_mxu_builder *builder);
} tp_mxu_variant;

extern const tp_mxu_variant tp_mxu_variant_matrix, tp_mxu_variant_library,
    tp_mxu_variant_outer_cores, tp_mxu_variant_outer, tp_mxu_variant_pairs, tp_mxu_variant_register,
    tp_mxu_variant_subgroup, tp_mxu_variant_local, tp_mxu_variant_direct, tp_mxu_variant_grouped,
    tp_mxu_variant_reference;

#define TP_MXU_K_CHUNK 128
#define TP_MXU_K_BLOCK 8192

/* Precision passes, blocks of k, and both multiplied: the units of kernels/mxu/operands.clh. */
int64_t tp_mxu_passes(const tp_mxu_problem *problem);
int64_t tp_mxu_blocks(const tp_mxu_problem *problem);
int64_t tp_mxu_units(const tp_mxu_problem *problem);
/* bf16 parts that an operand is split into: 1, 2 or 3. */
int64_t tp_mxu_parts(const tp_mxu_problem *problem);

static inline int64_t tp_mxu_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Operands with all their strides; those of a convolution follow from its geometry. */
tp_mxu_operand tp_mxu_operand_a(const tp_mxu_problem *problem);
tp_mxu_operand tp_mxu_operand_b(const tp_mxu_problem *problem);

/* Which way neighbouring elements lie: those of A from m to m + 1, of B from n to n + 1. */
bool tp_mxu_a_runs_along_m(const tp_mxu_problem *problem);
bool tp_mxu_b_runs_along_n(const tp_mxu_problem *problem);

/* Bytes of the operands as stored and of an f32 result, of one core. */
double tp_mxu_a_bytes(const tp_mxu_problem *problem);
double tp_mxu_b_bytes(const tp_mxu_problem *problem);
double tp_mxu_c_bytes(const tp_mxu_problem *problem);
double tp_mxu_flops(const tp_mxu_problem *problem);

/* "-DMXU_KIND=1 ...": the macros of operands.clh for this problem. NULL when memory fails. */
const char *tp_mxu_options(const tp_mxu_builder *builder, bool is_split);

/* The launch's text: `file` with the problem's epilogue in front, or (is_split) with the store of
 * partial sums that kernels fall back to. NULL when memory fails. */
const char *tp_mxu_text(const tp_mxu_builder *builder, const char *file, bool is_split);

/* Adds scratch; *out_position is its place in the plan. */
tpucl_status tp_mxu_add_scratch(tp_mxu_builder *builder, const tp_mxu_scratch *scratch,
                                int32_t *out_position);

/* Arguments of a launch, in order. Room for the longest kernel; an overrun is an internal error. */
typedef struct tp_mxu_args {
    tp_kernel_arg items[64];
    int32_t count;
    bool is_overrun;
} tp_mxu_args;
void tp_mxu_arg_tensor(tp_mxu_args *args, int32_t tensor, bool is_written);
void tp_mxu_arg_u32(tp_mxu_args *args, int64_t value);
void tp_mxu_arg_u64(tp_mxu_args *args, int64_t value);
/* MXU_GEO_TAIL of operands.clh: nothing for a dot_general. */
void tp_mxu_arg_geometry(tp_mxu_args *args, const tp_mxu_problem *problem);
void tp_mxu_arg_local(tp_mxu_args *args, int64_t bytes);

/* What a variant knows about a launch; the rest is filled in from the problem. */
typedef struct tp_mxu_launch {
    const char *what; /* "mxu_register 8x32": the label's second half */
    const char *text, *options, *entry;
    const tp_mxu_args *args;
    size_t global[3], local[3];
    bool is_per_core;
    bool handles_units; /* product launches: the kernel does passes and blocks by itself */
    bool
        sums_cores; /* the same: TP_ARG_SUM and TP_ARG_CORES stand in the place of the epilogue's */
    int64_t level_bytes; /* sums_cores: local memory for the sums on their way */
    int32_t fills;       /* scratch position, or -1 */
    double flops, bytes;
} tp_mxu_launch;
tpucl_status tp_mxu_add_launch(tp_mxu_builder *builder, const tp_mxu_launch *launch);

/* The product launch that all of our own compute kernels have, and, if the problem has several
 * units, the launch that combines them. `launch` has what, options (variant's knobs), text (the
 * file's name), entry, sizes without z (global[2] is 1) and bytes; a_tensor and b_tensor are what
 * the kernel reads. */
tpucl_status tp_mxu_add_product(tp_mxu_builder *builder, tp_mxu_launch launch, int32_t a_tensor,
                                int32_t b_tensor, int64_t local_bytes);

/* Why a scratch array of that many bytes cannot be had, or NULL; false when memory fails. */
tpucl_status tp_mxu_check_scratch(const tp_mxu_builder *builder, const char *what, double bytes,
                                  const char **out_reason);
/* The same for the partial sums of a problem with several units. */
tpucl_status tp_mxu_check_units(const tp_mxu_builder *builder, const char **out_reason);

#endif
