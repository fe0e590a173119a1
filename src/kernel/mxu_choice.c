/* SPDX-License-Identifier: Apache-2.0
 * See mxu_choice.h. The conditions are those that the kernels state: kernels/mxu/panel_pack.clh,
 * mxu_register.cl, mxu_local.cl.
 */
#include "kernel/mxu_choice.h"

#include <stdio.h>
#include <string.h>
#include "kernel/mxu_plan.h"

static const tp_mxu_knob_row rows[TP_MXU_KNOB_COUNT] = {
    [TP_MXU_TILE_M] = {"TILE_M", 1, 16},
    [TP_MXU_VECTOR_WIDTH] = {"VECTOR_WIDTH", 4, 16},
    [TP_MXU_TILE_VECTORS] = {"TILE_VECTORS", 1, 4},
    [TP_MXU_PANEL_BY_ROW] = {"PANEL_BY_ROW", 0, 1},
    [TP_MXU_B_IS_PACKED] = {"B_IS_PACKED", 0, 1},
    [TP_MXU_GROUPS_PER_UNIT] = {"GROUPS_PER_UNIT", 1, 64},
    [TP_MXU_THREADS_M] = {"THREADS_M", 1, 64},
    [TP_MXU_THREADS_N] = {"THREADS_N", 1, 64},
    [TP_MXU_THREAD_M] = {"THREAD_M", 1, 8},
    [TP_MXU_THREAD_N] = {"THREAD_N", 1, 8},
    [TP_MXU_TILE_K] = {"TILE_K", 1, 128},
    [TP_MXU_GROUP_PANELS] = {"GROUP_PANELS", 1, 8},
    [TP_MXU_GROUP_TILES] = {"GROUP_TILES", 1, 8},
};

#define KNOB(name) (1u << TP_MXU_##name)
static const struct {
    const char *name;
    uint32_t knobs;
} variants[] = {
    {"mxu_pairs", KNOB(TILE_M) | KNOB(TILE_VECTORS) | KNOB(PANEL_BY_ROW) | KNOB(GROUPS_PER_UNIT)},
    {"mxu_outer", KNOB(GROUP_PANELS) | KNOB(GROUP_TILES) | KNOB(TILE_VECTORS)},
    {"mxu_register", KNOB(TILE_M) | KNOB(VECTOR_WIDTH) | KNOB(TILE_VECTORS) | KNOB(PANEL_BY_ROW) |
                         KNOB(B_IS_PACKED) | KNOB(GROUPS_PER_UNIT)},
    {"mxu_local",
     KNOB(THREADS_M) | KNOB(THREADS_N) | KNOB(THREAD_M) | KNOB(THREAD_N) | KNOB(TILE_K)},
    {"mxu_subgroup", KNOB(TILE_M) | KNOB(THREAD_N)},
    {"mxu_direct", KNOB(TILE_M)},
    {"mxu_grouped", KNOB(TILE_M)},
};

const tp_mxu_knob_row *tp_mxu_knob_describe(tp_mxu_knob knob)
{
    return &rows[knob];
}

static uint32_t knobs_of(const char *variant)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        if (strcmp(variants[i].name, variant) == 0) return variants[i].knobs;
    return 0;
}

bool tp_mxu_variant_has_knob(const char *variant, tp_mxu_knob knob)
{
    return (knobs_of(variant) >> knob & 1u) != 0;
}

/* ---- whether it is right ---- */

typedef struct check {
    const tp_mxu_problem *problem;
    const int32_t *values;
    tp_arena *arena;
    const char *reason;
} check;

static tpucl_status refuse(check *c, tp_mxu_knob knob, const char *why)
{
    c->reason = tp_arena_printf(c->arena, "%s %d: %s", rows[knob].name, c->values[knob], why);
    return c->reason == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
}

/* A panel that runs along m: kernels/mxu/panel_pack.clh. */
static tpucl_status check_panel_along_m(check *c)
{
    const tp_mxu_problem *p = c->problem;
    const int32_t tile_m = c->values[TP_MXU_TILE_M];
    switch (p->kind) {
    case TP_MXU_DOT:
        if (p->a.stride_outer == 1) return TPUCL_OK;
        return refuse(c, TP_MXU_PANEL_BY_ROW, "A does not run along m");
    case TP_MXU_CONV:
        if (p->conv.in_c == 1 && p->conv.stride_w == 1 && p->conv.out_w % tile_m == 0)
            return TPUCL_OK;
        return refuse(c, TP_MXU_PANEL_BY_ROW,
                      "a panel has to be a piece of one output line, of one channel with stride 1");
    case TP_MXU_CONV_FILTER_GRAD:
        if ((tile_m == 8 || tile_m == 16) && p->conv.in_c % tile_m == 0) return TPUCL_OK;
        return refuse(
            c, TP_MXU_PANEL_BY_ROW,
            "a panel has to be 8 or 16 channels of one tap, and those divide the channels");
    case TP_MXU_CONV_INPUT_GRAD:
        break;
    }
    return refuse(c, TP_MXU_PANEL_BY_ROW, "an input gradient runs along k");
}

static tpucl_status check_register(check *c, int32_t width, bool b_is_packed)
{
    const int32_t vectors = c->values[TP_MXU_TILE_VECTORS];
    if (width != 4 && width != 8 && width != 16)
        return refuse(c, TP_MXU_VECTOR_WIDTH, "expected 4, 8 or 16");
    if (vectors != 1 && vectors != 2 && vectors != 4)
        return refuse(c, TP_MXU_TILE_VECTORS, "expected 1, 2 or 4");
    if (vectors * width % 16 != 0)
        return refuse(c, TP_MXU_TILE_VECTORS, "a tile has to have a multiple of 16 columns");
    if (c->values[TP_MXU_PANEL_BY_ROW] == 0) TP_TRY(check_panel_along_m(c));
    if (c->reason != NULL || b_is_packed) return TPUCL_OK;
    const bool along_n = c->problem->kind != TP_MXU_CONV_INPUT_GRAD &&
                         tp_mxu_operand_b(c->problem).stride_outer == 1;
    if (width == 4 || !along_n || c->problem->n % (vectors * width) != 0)
        return refuse(c, TP_MXU_B_IS_PACKED,
                      "B has to run along n, and n to be a multiple of the tile's columns");
    return TPUCL_OK;
}

static tpucl_status check_variant(check *c, const char *variant)
{
    if (strcmp(variant, "mxu_register") == 0)
        return check_register(c, c->values[TP_MXU_VECTOR_WIDTH], c->values[TP_MXU_B_IS_PACKED]);
    const bool is_pairs = strcmp(variant, "mxu_pairs") == 0;
    if ((is_pairs || strcmp(variant, "mxu_outer") == 0) && c->values[TP_MXU_TILE_VECTORS] > 2)
        return refuse(c, TP_MXU_TILE_VECTORS, "expected 1 or 2");
    if (is_pairs) return check_register(c, 16, true);
    if (strcmp(variant, "mxu_local") == 0 && TP_MXU_K_CHUNK % c->values[TP_MXU_TILE_K] != 0)
        return refuse(c, TP_MXU_TILE_K, "it has to divide 128");
    return TPUCL_OK;
}

tpucl_status tp_mxu_choice_check(const tp_mxu_problem *problem, const tp_device_caps *caps,
                                 const tp_mxu_choice *choice, tp_arena *arena,
                                 const char **out_reason)
{
    check c = {.problem = problem, .values = choice->values, .arena = arena};
    for (int knob = 0; knob < TP_MXU_KNOB_COUNT && c.reason == NULL; knob++) {
        const int32_t value = choice->values[knob];
        if (!tp_mxu_variant_has_knob(choice->variant, (tp_mxu_knob)knob)) continue;
        if (value >= rows[knob].least && value <= rows[knob].most) continue;
        c.reason = tp_arena_printf(arena, "%s is %d, expected %d to %d", rows[knob].name, value,
                                   rows[knob].least, rows[knob].most);
        if (c.reason == NULL) return TPUCL_OUT_OF_MEMORY;
    }
    if (c.reason == NULL) TP_TRY(check_variant(&c, choice->variant));
    const bool is_in_pairs =
        strcmp(choice->variant, "mxu_pairs") == 0 || strcmp(choice->variant, "mxu_outer") == 0;
    if (c.reason == NULL && is_in_pairs && !caps->has_bf16_pairs)
        c.reason = "the device has no instruction for pairs of bf16";
    *out_reason = c.reason;
    return TPUCL_OK;
}

/* ---- comparing, printing ---- */

bool tp_mxu_choice_equal(const tp_mxu_choice *a, const tp_mxu_choice *b)
{
    if (strcmp(a->variant, b->variant) != 0) return false;
    for (int knob = 0; knob < TP_MXU_KNOB_COUNT; knob++)
        if (tp_mxu_variant_has_knob(a->variant, (tp_mxu_knob)knob) &&
            a->values[knob] != b->values[knob])
            return false;
    return true;
}

const char *tp_mxu_choice_print(const tp_mxu_choice *choice, char out_text[TP_MXU_CHOICE_BYTES])
{
    size_t length = (size_t)snprintf(out_text, TP_MXU_CHOICE_BYTES, "%.32s", choice->variant);
    for (int knob = 0; knob < TP_MXU_KNOB_COUNT; knob++)
        if (tp_mxu_variant_has_knob(choice->variant, (tp_mxu_knob)knob))
            length += (size_t)snprintf(out_text + length, TP_MXU_CHOICE_BYTES - length, " %s=%d",
                                       rows[knob].name, choice->values[knob]);
    return out_text;
}
