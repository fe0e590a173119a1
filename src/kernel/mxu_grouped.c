/* SPDX-License-Identifier: Apache-2.0
 * Plans kernels/mxu/mxu_grouped.cl: convolutions of several groups of channels.
 */
#include "kernel/mxu_plan.h"

static bool is_depthwise(const tp_mxu_problem *problem)
{
    const int64_t groups = tp_mxu_groups(&problem->conv);
    return problem->conv.in_c == groups && problem->conv.out_c == groups;
}

/* Rows that share a load of B. Taps of a filter gradient: as many as there are, up to the 3 x 3 that
 * depthwise filters mostly have, with two sums each in registers. Pixels of a depthwise convolution: of one
 * line, if a number between 4 and 8 divides it. */
static int choose_rows(const tp_mxu_problem *problem, int columns)
{
    const bool is_filter_grad = problem->kind == TP_MXU_CONV_FILTER_GRAD;
    const int most = !is_filter_grad ? 4 : columns == 16 ? 9 : 3;
    const int64_t width = problem->kind == TP_MXU_CONV ? problem->conv.out_w : problem->conv.in_w;
    for (int rows = 8; rows > 4 && !is_filter_grad && columns == 16 && is_depthwise(problem);
         rows--)
        if (width % rows == 0) return rows;
    return problem->m < most ? (int)problem->m : most;
}

static tpucl_status decline(const tp_mxu_builder *builder, bool is_forced, const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    (void)is_forced;
    if (problem->kind == TP_MXU_DOT || tp_mxu_groups(&problem->conv) == 1) {
        *out_reason = "there are no groups of channels";
        return TPUCL_OK;
    }
    return tp_mxu_check_units(builder, out_reason);
}

static tpucl_status plan(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    const int columns = builder->caps->preferred_float_vector >= 4 ? 16 : 1;
    const int rows = tp_mxu_knob_value(builder, TP_MXU_TILE_M, choose_rows(problem, columns));
    const char *what = tp_arena_printf(builder->arena, "mxu_grouped %dx%d", rows, columns);
    const char *options =
        tp_arena_printf(builder->arena, "-DTILE_M=%d -DCOLUMNS=%d -DB_RUNS_ALONG_N=%d", rows,
                        columns, is_depthwise(problem) || problem->kind != TP_MXU_CONV_INPUT_GRAD);
    if (what == NULL || options == NULL) return TPUCL_OUT_OF_MEMORY;
    const tp_mxu_launch launch = {
        .what = what,
        .text = "mxu/mxu_grouped.cl",
        .options = options,
        .entry = "mxu_grouped",
        .global = {(size_t)tp_mxu_ceil_div(problem->n, columns),
                   (size_t)tp_mxu_ceil_div(problem->m, rows), 1},
        .bytes = tp_mxu_a_bytes(problem) + tp_mxu_b_bytes(problem) + tp_mxu_c_bytes(problem),
    };
    return tp_mxu_add_product(builder, launch, problem->a_tensor, problem->b_tensor, 16);
}

const tp_mxu_variant tp_mxu_variant_grouped = {
    .name = "mxu_grouped", .takes_groups = true, .decline = decline, .plan = plan};
