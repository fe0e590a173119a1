/* SPDX-License-Identifier: Apache-2.0
 * Plans kernels/mxu/mxu_pairs.cl: the register tile on processors that multiply pairs of bf16.
 */
#include "kernel/mxu_register.h"

/* Input gradients of strided convolutions: kernels/mxu/phases.clh. Runs of 16 channels are what its
 * panels are made of. */
static bool goes_by_phase(const tp_mxu_problem *problem)
{
    const tp_mxu_conv *c = &problem->conv;
    return problem->kind == TP_MXU_CONV_INPUT_GRAD && c->stride_h * c->stride_w > 1 &&
           c->out_c % 16 == 0;
}

static int64_t panels_of_phases(const tp_mxu_conv *c, int rows)
{
    int64_t panels = 0;
    for (int64_t y = 0; y < c->stride_h && y < c->in_h; y++)
        for (int64_t x = 0; x < c->stride_w && x < c->in_w; x++)
            panels += tp_mxu_ceil_div(c->images * tp_mxu_ceil_div(c->in_h - y, c->stride_h) *
                                          tp_mxu_ceil_div(c->in_w - x, c->stride_w),
                                      rows);
    return panels;
}

/* The tile of vectors of 16 floats, which the kernel is written for; a panel in pairs takes half of
 * what it takes as f32. */
static tp_mxu_tile choose_tile(const tp_mxu_builder *builder)
{
    tp_mxu_tile t = tp_mxu_choose_tile(builder, 16);
    t.by_phase = goes_by_phase(builder->problem);
    if (t.by_phase) t.panels = panels_of_phases(&builder->problem->conv, t.rows);
    t.panel_bytes /= 2;
    t.panel_is_packed = (uint64_t)t.panel_bytes > builder->caps->local_memory_bytes;
    return t;
}

static tpucl_status decline(const tp_mxu_builder *builder, bool is_forced, const char **out_reason)
{
    const tp_mxu_problem *problem = builder->problem;
    if (problem->precision == TP_PRECISION_F32) {
        *out_reason = "f32 operands do not fit into pairs of bf16";
        return TPUCL_OK;
    }
    if (!is_forced && !builder->caps->has_bf16_pairs) {
        *out_reason = "the device has no instruction for pairs of bf16";
        return TPUCL_OK;
    }
    const tp_mxu_tile t = choose_tile(builder);
    if (t.panel_is_packed) {
        *out_reason = tp_arena_printf(builder->arena, "a panel has %lld bytes, local memory %llu",
                                      (long long)t.panel_bytes,
                                      (unsigned long long)builder->caps->local_memory_bytes);
        return *out_reason == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
    }
    TP_TRY(tp_mxu_check_units(builder, out_reason));
    if (*out_reason != NULL) return TPUCL_OK;
    TP_TRY(tp_mxu_check_scratch(builder, "packed B", tp_mxu_packed_b_bytes(problem, &t, true),
                                out_reason));
    if (*out_reason != NULL || is_forced) return TPUCL_OK;
    if (!t.b_is_packed) {
        *out_reason = "B is read too few times to be worth packing";
        return TPUCL_OK;
    }
    return tp_mxu_check_small(builder, out_reason);
}

static tpucl_status plan(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_mxu_tile t = choose_tile(builder);
    int32_t b = problem->b_tensor;
    TP_TRY(tp_mxu_pack_b(builder, &t, true, &b));
    const char *what = tp_arena_printf(builder->arena, "mxu_pairs %dx%d", t.rows, t.columns);
    /* forced on a device without the instruction, to check the rest */
    const char *options =
        tp_arena_printf(builder->arena,
                        "-DTILE_M=%d -DTILE_VECTORS=%d -DPANEL_BY_ROW=%d -DPAIRS_ARE_STEPS=%d "
                        "-DTP_BF16_CONVERT=%d -DINPUT_PHASES=%d",
                        t.rows, t.vectors, t.panel_by_row, !builder->caps->has_bf16_pairs,
                        builder->caps->has_bf16_pairs, t.by_phase);
    if (what == NULL || options == NULL) return TPUCL_OUT_OF_MEMORY;
    const tp_mxu_launch launch = {
        .what = what,
        .text = "mxu/mxu_pairs.cl",
        .options = options,
        .entry = "mxu_pairs",
        .global = {(size_t)t.panels, (size_t)tp_mxu_choose_shares(builder, &t), 1},
        .local = {1, 1, 1},
        .bytes = tp_mxu_a_bytes(problem) + tp_mxu_c_bytes(problem) +
                 tp_mxu_packed_b_bytes(problem, &t, true),
    };
    return tp_mxu_add_product(builder, launch, problem->a_tensor, b, t.panel_bytes);
}

const tp_mxu_variant tp_mxu_variant_pairs = {.name = "mxu_pairs", .decline = decline, .plan = plan};
