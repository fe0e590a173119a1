/* SPDX-License-Identifier: Apache-2.0
 * Plans kernels/mxu/mxu_subgroup.cl: products whose work-items hand A to each other.
 */
#include "kernel/mxu_plan.h"

/* The defaults of the kernel's knobs. */
enum { TILE_M = 8, COLUMNS = 2 };

/* Sub-groups of 16 where a kernel may ask for them, or of 8; 0: of neither. */
static int size_of(const tp_device_caps *caps)
{
    return caps->subgroup_sizes & 16 ? 16 : caps->subgroup_sizes & 8 ? 8 : 0;
}

static tpucl_status decline(const tp_mxu_builder *builder, bool is_forced, const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    if (!is_forced && size_of(builder->caps) == 0)
        *out_reason = "no kernel may ask the device for sub-groups of 8 or 16";
    else if (!is_forced && builder->caps->type == TP_DEVICE_CPU)
        *out_reason = "a CPU's sub-groups are loops, tiles of vectors say it better";
    else if (!is_forced && (problem->m < TILE_M || problem->n < 8))
        *out_reason = "m or n is a small part of a tile";
    if (*out_reason != NULL) return TPUCL_OK;
    return tp_mxu_check_units(builder, out_reason);
}

static tpucl_status plan(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_device_caps *caps = builder->caps;
    const bool is_emulated = size_of(caps) == 0;
    const int size = is_emulated ? 16 : size_of(caps);
    const int rows = tp_mxu_knob_value(builder, TP_MXU_TILE_M, TILE_M);
    const int columns = tp_mxu_knob_value(builder, TP_MXU_THREAD_N, COLUMNS);
    const tp_mxu_launch launch = {
        .what = is_emulated ? "mxu_subgroup, emulated" : "mxu_subgroup",
        .text = "mxu/mxu_subgroup.cl",
        .options = tp_arena_printf(
            builder->arena, "-DSUBGROUP=%d -DTILE_M=%d -DCOLUMNS=%d -DSUBGROUP_IS_EMULATED=%d",
            size, rows, columns, is_emulated),
        .entry = "mxu_subgroup",
        .global = {(size_t)(tp_mxu_ceil_div(problem->n, size * columns) * size),
                   (size_t)tp_mxu_ceil_div(problem->m, rows), 1},
        .local = {(size_t)size, 1, 1},
        .bytes = tp_mxu_a_bytes(problem) + tp_mxu_b_bytes(problem) + tp_mxu_c_bytes(problem),
    };
    if (launch.options == NULL) return TPUCL_OUT_OF_MEMORY;
    return tp_mxu_add_product(builder, launch, problem->a_tensor, problem->b_tensor,
                              is_emulated ? 4 * rows * size : 4);
}

const tp_mxu_variant tp_mxu_variant_subgroup = {
    .name = "mxu_subgroup", .decline = decline, .plan = plan};
