/* SPDX-License-Identifier: Apache-2.0
 * See neighbour.h.
 */
#include "tune/neighbour.h"

#include <stdio.h>
#include <string.h>
#include "kernel/records.h"
#include "tune/mxu_check.h"

/* The contract's block of k, and a ragged end behind it: docs/precision.md. */
#define K_BLOCK 8192
#define K_CHUNK 128
#define RAGGED 37

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* Rows and columns of what a work-group or work-item does at a time. */
static void tile_of(const tp_mxu_choice *choice, int64_t *out_rows, int64_t *out_columns)
{
    const int32_t *v = choice->values;
    *out_rows = 4;
    *out_columns = 16;
    if (tp_mxu_variant_has_knob(choice->variant, TP_MXU_TILE_M)) *out_rows = v[TP_MXU_TILE_M];
    if (tp_mxu_variant_has_knob(choice->variant, TP_MXU_TILE_VECTORS))
        *out_columns = v[TP_MXU_TILE_VECTORS] * 16;
    if (tp_mxu_variant_has_knob(choice->variant, TP_MXU_VECTOR_WIDTH))
        *out_columns = v[TP_MXU_TILE_VECTORS] * v[TP_MXU_VECTOR_WIDTH];
    if (tp_mxu_variant_has_knob(choice->variant, TP_MXU_THREADS_M)) {
        *out_rows = v[TP_MXU_THREADS_M] * v[TP_MXU_THREAD_M];
        *out_columns = v[TP_MXU_THREADS_N] * v[TP_MXU_THREAD_N];
    }
}

static bool leaves_b_as_it_is(const tp_mxu_choice *choice)
{
    return tp_mxu_variant_has_knob(choice->variant, TP_MXU_B_IS_PACKED) &&
           choice->values[TP_MXU_B_IS_PACKED] == 0;
}

static bool panel_runs_along_m(const tp_mxu_choice *choice)
{
    return tp_mxu_variant_has_knob(choice->variant, TP_MXU_PANEL_BY_ROW) &&
           choice->values[TP_MXU_PANEL_BY_ROW] == 0;
}

static void shrink_dot(const tp_mxu_problem *p, const tp_mxu_choice *choice, tp_mxu_case *out)
{
    int64_t rows, columns;
    tile_of(choice, &rows, &columns);
    out->batch = at_most(p->batch, 2);
    out->m = at_most(p->m, 2 * rows + 3);
    out->n = at_most(p->n, leaves_b_as_it_is(choice) ? 2 * columns : 2 * columns + 5);
    out->k = at_most(p->k, p->k > K_BLOCK ? K_BLOCK + K_CHUNK + RAGGED : K_CHUNK + RAGGED);
    out->a_layout = p->a.stride_outer == 1   ? TP_MXU_COLUMNS
                    : p->a.stride_inner == 1 ? TP_MXU_ROWS
                                             : TP_MXU_GAPS;
    out->b_layout = p->b.stride_outer == 1   ? TP_MXU_ROWS
                    : p->b.stride_inner == 1 ? TP_MXU_COLUMNS
                                             : TP_MXU_GAPS;
}

/* Fewer channels (of one group, or groups), the same number modulo a vector of 16. */
static int64_t fewer(int64_t channels)
{
    return channels <= 48 ? channels : 32 + channels % 16;
}

/* A shorter side with the same padding: a few steps of the kernel. *out_after is the padding at its end. */
static int64_t shorten(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                       int64_t before, bool is_kept, int32_t *out_after)
{
    const int64_t reach = (kernel - 1) * dilation + 1;
    const int64_t after = (out - 1) * stride + reach - in - before;
    *out_after = after > 0 ? (int32_t)after : 0;
    return is_kept ? in : at_most(in, reach + 4 * stride + 1);
}

static void shrink_channels(const tp_mxu_problem *p, const tp_mxu_choice *choice, tp_mxu_conv *c)
{
    int64_t rows,
        columns; /* panels of a filter gradient are 8 or 16 channels: fewer() keeps that */
    tile_of(choice, &rows, &columns);
    const int64_t groups = tp_mxu_groups(&p->conv);
    const int64_t own_in = fewer(p->conv.in_c / groups), own_out = fewer(p->conv.out_c / groups);
    c->groups = fewer(groups);
    c->in_c = own_in * c->groups;
    c->out_c = own_out * c->groups;
    if (leaves_b_as_it_is(choice)) /* n stays a multiple of the tile's columns */
        c->out_c = at_most(p->conv.out_c, 2 * columns);
    if (p->kind != TP_MXU_CONV_FILTER_GRAD && p->k > K_BLOCK) { /* partial sums */
        c->in_c = p->conv.in_c;
        c->out_c = p->conv.out_c;
        c->groups = groups;
    }
}

static void shrink_conv(const tp_mxu_problem *p, const tp_mxu_choice *choice, tp_mxu_case *out)
{
    tp_mxu_conv *c = &out->conv;
    *c = p->conv;
    const bool keeps_lines = panel_runs_along_m(choice) && p->kind == TP_MXU_CONV;
    c->in_h = shorten(c->in_h, c->out_h, c->kernel_h, c->stride_h, c->dilation_h, c->pad_top, false,
                      &out->pad_bottom);
    c->in_w = shorten(c->in_w, c->out_w, c->kernel_w, c->stride_w, c->dilation_w, c->pad_left,
                      keeps_lines, &out->pad_right);
    shrink_channels(p, choice, c);
    c->images = at_most(c->images, 2);
    if (p->kind != TP_MXU_CONV_FILTER_GRAD || p->k <= K_BLOCK) return;
    /* More than a block of pixels, as the problem has. */
    const int64_t reach_h = (c->kernel_h - 1) * c->dilation_h + 1;
    const int64_t reach_w = (c->kernel_w - 1) * c->dilation_w + 1;
    const int64_t pixels = ((c->in_h + c->pad_top + out->pad_bottom - reach_h) / c->stride_h + 1) *
                           ((c->in_w + c->pad_left + out->pad_right - reach_w) / c->stride_w + 1);
    if (pixels > 0) c->images = K_BLOCK / pixels + 2;
}

void tp_mxu_neighbour(const tp_mxu_problem *problem, const tp_mxu_choice *choice, tp_mxu_fill fill,
                      tp_mxu_case *out_case)
{
    *out_case = (tp_mxu_case){.name = "neighbour",
                              .kind = problem->kind,
                              .precision = problem->precision,
                              .a_dtype = problem->a.dtype,
                              .b_dtype = problem->b.dtype,
                              .c_dtype = TP_F32,
                              .b_is_replicated = true,
                              .cores = 2,
                              .fill = fill};
    if (problem->kind == TP_MXU_DOT)
        shrink_dot(problem, choice, out_case);
    else
        shrink_conv(problem, choice, out_case);
}

tpucl_status tp_mxu_check_neighbours(tp_device *device, const tp_mxu_problem *problem,
                                     const tp_mxu_choice *choice, bool *out_is_right,
                                     char out_text[256])
{
    static const struct {
        tp_mxu_fill fill;
        const char *name;
    } fills[] = {{TP_MXU_FILL_ORDINARY, "ordinary operands"},
                 {TP_MXU_FILL_NONFINITE, "operands with NaN and infinities"},
                 {TP_MXU_FILL_TINY, "tiny operands"}};
    *out_is_right = true;
    out_text[0] = '\0';
    for (size_t i = 0; i < sizeof fills / sizeof fills[0] && *out_is_right; i++) {
        tp_mxu_case row;
        tp_mxu_verdict verdict = TP_MXU_WRONG;
        char text[256];
        tp_mxu_neighbour(problem, choice, fills[i].fill, &row);
        TP_TRY(tp_mxu_check_choice(device, &row, choice, &verdict, text));
        *out_is_right = verdict == TP_MXU_PASSED;
        if (!*out_is_right) snprintf(out_text, 256, "%s: %.200s", fills[i].name, text);
    }
    return TPUCL_OK;
}

tpucl_status tp_mxu_neighbour_key(const tp_mxu_problem *problem, const tp_mxu_choice *choice,
                                  char out_text[TP_NEIGHBOUR_KEY_BYTES])
{
    char key[TP_MXU_KEY_BYTES], knobs[TP_MXU_CHOICE_BYTES];
    tp_mxu_case row;
    tp_mxu_problem small;
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tp_mxu_neighbour(problem, choice, TP_MXU_FILL_ORDINARY, &row);
    const tpucl_status status = tp_mxu_case_problem(&row, arena, &small);
    if (status == TPUCL_OK)
        snprintf(out_text, TP_NEIGHBOUR_KEY_BYTES, "%s, %s", tp_mxu_key_print(&small, key),
                 tp_mxu_choice_print(choice, knobs));
    tp_arena_destroy(arena);
    return status;
}
