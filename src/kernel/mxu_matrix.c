/* SPDX-License-Identifier: Apache-2.0
 * Plans kernels/mxu/mxu_matrix.cl: products on matrix units, for fast math.
 */
#include "kernel/mxu_plan.h"

/* The defaults of the kernel's knobs: 64 x 64 results of four warps. */
enum { WARPS = 4, LANES = 32, TILE_M = 64, TILE_N = 64, TILE_K = 32, SLICE_PITCH = TILE_K / 2 + 4 };
enum { EMULATION_WORDS = LANES * 6 }; /* matrix_unit.clh */

static int64_t local_bytes(bool is_emulated)
{
    const int64_t words =
        (TILE_M + TILE_N) * SLICE_PITCH + WARPS * (is_emulated ? EMULATION_WORDS : 1);
    return 4 * words;
}

static tpucl_status decline(const tp_mxu_builder *builder, bool is_forced, const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_device_caps *caps = builder->caps;
    const bool is_emulated = caps->matrix_unit == TP_MATRIX_UNIT_NONE;
    if (!problem->is_fast_math)
        *out_reason = "matrix units have their own order of summation, only fast math may use them";
    else if (problem->precision != TP_PRECISION_DEFAULT)
        *out_reason = "matrix units multiply bf16 in one pass";
    else if (is_emulated && !is_forced)
        *out_reason = "the device has no matrix unit that is known here";
    else if (caps->max_work_group_size < WARPS * LANES)
        *out_reason = "work-groups of 128 are too large for the device";
    else if ((int64_t)caps->local_memory_bytes < local_bytes(is_emulated))
        *out_reason = "the slices do not fit into local memory";
    else if (!is_forced && (problem->m < 16 || problem->n < 8))
        *out_reason = "m or n is smaller than a fragment of 16 x 8";
    if (*out_reason != NULL) return TPUCL_OK;
    return tp_mxu_check_units(builder, out_reason);
}

static tpucl_status plan(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    const bool is_emulated = builder->caps->matrix_unit == TP_MATRIX_UNIT_NONE;
    const tp_mxu_launch launch = {
        .what = is_emulated ? "mxu_matrix, emulated" : "mxu_matrix",
        .text = "mxu/mxu_matrix.cl",
        .options = tp_arena_printf(builder->arena,
                                   "-DMATRIX_UNIT=%d -DA_RUNS_ALONG_M=%d -DB_RUNS_ALONG_N=%d",
                                   (int)builder->caps->matrix_unit, tp_mxu_a_runs_along_m(problem),
                                   tp_mxu_b_runs_along_n(problem)),
        .entry = "mxu_matrix",
        .global = {(size_t)(tp_mxu_ceil_div(problem->n, TILE_N) * WARPS * LANES),
                   (size_t)tp_mxu_ceil_div(problem->m, TILE_M), 1},
        .local = {WARPS * LANES, 1, 1},
        .bytes = tp_mxu_a_bytes(problem) + tp_mxu_b_bytes(problem) + tp_mxu_c_bytes(problem),
    };
    if (launch.options == NULL) return TPUCL_OUT_OF_MEMORY;
    return tp_mxu_add_product(builder, launch, problem->a_tensor, problem->b_tensor,
                              local_bytes(is_emulated));
}

const tp_mxu_variant tp_mxu_variant_matrix = {
    .name = "mxu_matrix", .decline = decline, .plan = plan};
