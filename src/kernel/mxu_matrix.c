/* SPDX-License-Identifier: Apache-2.0
 * Plans kernels/mxu/mxu_matrix.cl: products on matrix units, for fast math.
 */
#include "kernel/mxu_plan.h"

/* The defaults of the kernel's knobs: 64 x 64 results of four warps. */
enum { WARPS = 4, TILE_M = 64, TILE_N = 64, TILE_K = 32, SLICE_PITCH = TILE_K / 2 + 4 };

/* FRAGMENT_M, FRAGMENT_N and LANES of kernels/mxu/matrix_unit_*.clh; all have 16 steps of k. */
typedef struct unit_row {
    int64_t fragment_m, fragment_n, lanes;
} unit_row;

static const unit_row units[] = {
    [TP_MATRIX_UNIT_NVIDIA] = {16, 8, 32},      [TP_MATRIX_UNIT_INTEL_16] = {8, 16, 16},
    [TP_MATRIX_UNIT_INTEL_8] = {8, 8, 8},       [TP_MATRIX_UNIT_MFMA] = {16, 16, 64},
    [TP_MATRIX_UNIT_WMMA_GFX11] = {16, 16, 32}, [TP_MATRIX_UNIT_WMMA_GFX12] = {16, 16, 32},
};

/* A device without a unit emulates NVIDIA's, when it is told to. */
static tp_matrix_unit unit_of(const tp_device_caps *caps)
{
    return caps->matrix_unit == TP_MATRIX_UNIT_NONE ? TP_MATRIX_UNIT_NVIDIA : caps->matrix_unit;
}

static bool is_emulated(const tp_device_caps *caps)
{
    return caps->matrix_unit == TP_MATRIX_UNIT_NONE || caps->matrix_unit_is_emulated;
}

static int64_t local_bytes(const tp_device_caps *caps)
{
    const unit_row *unit = &units[unit_of(caps)];
    const int64_t block_words = (unit->fragment_m + unit->fragment_n) * 16;
    return 4 * ((TILE_M + TILE_N) * SLICE_PITCH + WARPS * (is_emulated(caps) ? block_words : 1));
}

static tpucl_status decline(const tp_mxu_builder *builder, bool is_forced, const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_device_caps *caps = builder->caps;
    const unit_row *unit = &units[unit_of(caps)];
    if (!problem->is_fast_math)
        *out_reason = "matrix units have their own order of summation, only fast math may use them";
    else if (problem->precision != TP_PRECISION_DEFAULT)
        *out_reason = "matrix units multiply bf16 in one pass";
    else if (is_emulated(caps) && !is_forced)
        *out_reason = "the device has no matrix unit that is known here";
    else if ((int64_t)caps->max_work_group_size < WARPS * unit->lanes)
        *out_reason = "work-groups of four warps are too large for the device";
    else if ((int64_t)caps->local_memory_bytes < local_bytes(caps))
        *out_reason = "the slices do not fit into local memory";
    else if (!is_forced && (problem->m < unit->fragment_m || problem->n < unit->fragment_n))
        *out_reason = "m or n is smaller than what the unit multiplies at once";
    if (*out_reason != NULL) return TPUCL_OK;
    return tp_mxu_check_units(builder, out_reason);
}

static tpucl_status plan(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_device_caps *caps = builder->caps;
    const size_t items = (size_t)(WARPS * units[unit_of(caps)].lanes);
    const tp_mxu_launch launch = {
        .what = is_emulated(caps) ? "mxu_matrix, emulated" : "mxu_matrix",
        .text = "mxu/mxu_matrix.cl",
        .options =
            tp_arena_printf(builder->arena,
                            "-DMATRIX_UNIT=%d -DMATRIX_UNIT_IS_EMULATED=%d -DA_RUNS_ALONG_M=%d "
                            "-DB_RUNS_ALONG_N=%d",
                            (int)unit_of(caps), is_emulated(caps), tp_mxu_a_runs_along_m(problem),
                            tp_mxu_b_runs_along_n(problem)),
        .entry = "mxu_matrix",
        .global = {(size_t)tp_mxu_ceil_div(problem->n, TILE_N) * items,
                   (size_t)tp_mxu_ceil_div(problem->m, TILE_M), 1},
        .local = {items, 1, 1},
        .bytes = tp_mxu_a_bytes(problem) + tp_mxu_b_bytes(problem) + tp_mxu_c_bytes(problem),
    };
    if (launch.options == NULL) return TPUCL_OUT_OF_MEMORY;
    return tp_mxu_add_product(builder, launch, problem->a_tensor, problem->b_tensor,
                              local_bytes(caps));
}

const tp_mxu_variant tp_mxu_variant_matrix = {
    .name = "mxu_matrix", .decline = decline, .plan = plan};
