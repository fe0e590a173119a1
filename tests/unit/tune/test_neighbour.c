/* SPDX-License-Identifier: Apache-2.0
 * Small products that stand for large ones: whatever settings are right for the large one are right for them,
 * and they are small. */
#include <criterion/criterion.h>
#include <string.h>
#include "kernel/records.h"
#include "tune/neighbour.h"
#include "tune/problem_line.h"
#include "tune/search_space.h"

static const tp_device_caps cpu = {.type = TP_DEVICE_CPU,
                                   .compute_units = 4,
                                   .max_work_group_size = 4096,
                                   .max_allocation_bytes = 1ull << 40,
                                   .local_memory_bytes = 1 << 20,
                                   .local_memory_is_ordinary = true,
                                   .preferred_float_vector = 16,
                                   .has_bf16_pairs = true};

static const char *const lines[] = {
    "dot 1024 1024 1024",
    "dot 4000 1000 300 layout=TN batch=7",
    "dot 512 512 20000 layout=NT",
    "dot 3 2 1",
    "dot 64 65 8193 layout=TT",
    "conv 32 56 56 64 64 3x3",
    "conv 32 56 56 64 128 3x3 stride=2",
    "conv 32 56 56 64 128 1x1 stride=2 pad=valid",
    "conv 64 224 224 3 64 7x7 stride=2",
    "conv 64 28 28 1 32 3x3",
    "conv 64 28 28 1 32 3x3 op=filter_grad",
    "conv 16 14 14 1024 256 3x3",
    "conv 32 56 56 64 64 3x3 op=input_grad",
    "conv 32 56 56 96 64 5x5 stride=2 op=input_grad",
    "conv 32 56 56 64 64 3x3 op=filter_grad",
    "conv 32 57 55 20 33 3x3 dilation=2 op=filter_grad",
    "conv 8 32 32 144 144 3x3 groups=144",
    "conv 8 32 32 256 512 3x3 groups=64 op=input_grad",
    "conv 1 2 2 5 7 2x2 pad=valid",
};

/* Every value of each knob, from where heuristics begin, for every variant. */
static size_t each_choice(const tp_mxu_problem *problem, const char *variant, tp_arena *arena,
                          tp_mxu_choice *out_choices)
{
    size_t rows, count = 0;
    const tp_search_row *space = tp_search_space(&rows);
    const tp_mxu_allow forced = {.forced = variant};
    tp_mxu_plan plan;
    if (tp_mxu_plan_create(problem, &cpu, &forced, 3, arena, &plan) != TPUCL_OK) return 0;
    for (size_t i = 0; i < rows; i++) {
        if (strcmp(space[i].variant, variant) != 0) continue;
        for (int32_t v = 0; v < space[i].value_count; v++) {
            out_choices[count] = plan.choice;
            out_choices[count++].values[space[i].knob] = space[i].values[v];
        }
    }
    return count;
}

static size_t check(const char *text, tp_arena *arena)
{
    tp_mxu_choice choices[64];
    tp_problem_line line;
    tp_mxu_problem problem;
    size_t checked = 0;
    cr_assert(tp_problem_line_parse(tp_view_of(text), &line) == TPUCL_OK);
    tp_problem_line_to_mxu(&line, TP_PRECISION_DEFAULT, &problem);
    cr_assert(tp_mxu_plain_epilogue(&problem, arena) == TPUCL_OK);
    for (size_t v = 0; tp_search_variant(v) != NULL; v++) {
        const size_t count = each_choice(&problem, tp_search_variant(v), arena, choices);
        for (size_t i = 0; i < count; i++) {
            char knobs[TP_MXU_CHOICE_BYTES];
            tp_mxu_case row;
            tp_mxu_problem small;
            tp_mxu_plan plan;
            const tp_mxu_allow allow = {.forced_choice = &choices[i]};
            if (tp_mxu_plan_create(&problem, &cpu, &allow, 3, arena, &plan) != TPUCL_OK) continue;
            tp_mxu_neighbour(&problem, &choices[i], TP_MXU_FILL_ORDINARY, &row);
            cr_assert(tp_mxu_case_problem(&row, arena, &small) == TPUCL_OK);
            tp_mxu_plan again;
            cr_assert(tp_mxu_plan_create(&small, &cpu, &allow, 3, arena, &again) == TPUCL_OK,
                      "%s, %s: %s", text, tp_mxu_choice_print(&choices[i], knobs),
                      tpucl_last_error()->message);
            const double work =
                (double)small.batch * (double)small.m * (double)small.n * (double)small.k;
            cr_assert(work < 5e8, "%s: %.0f multiply-adds", text, work);
            /* partial sums where the large one has them */
            cr_assert((small.k > 8192) == (problem.k > 8192), "%s: k %lld", text,
                      (long long)small.k);
            checked++;
        }
    }
    return checked;
}

Test(neighbour, suits_what_suits_the_product)
{
    size_t checked = 0;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        tp_arena *arena = NULL;
        cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
        const size_t count = check(lines[i], arena);
        cr_assert(count > 5, "%s: %zu", lines[i], count);
        checked += count;
        tp_arena_destroy(arena);
    }
    cr_assert(checked > 400, "%zu", checked);
}

Test(neighbour, has_a_key_of_its_own_for_each_choice)
{
    char a[TP_NEIGHBOUR_KEY_BYTES], b[TP_NEIGHBOUR_KEY_BYTES];
    tp_problem_line line;
    tp_mxu_problem problem;
    tp_mxu_choice choice = {.variant = "mxu_direct", .values = {[TP_MXU_TILE_M] = 4}};
    cr_assert(tp_problem_line_parse(tp_view_of("dot 1024 1024 1024"), &line) == TPUCL_OK);
    tp_problem_line_to_mxu(&line, TP_PRECISION_DEFAULT, &problem);
    cr_assert(tp_mxu_neighbour_key(&problem, &choice, a) == TPUCL_OK);
    problem.m = 2048; /* large ones share their neighbours */
    problem.a.stride_batch = 2048 * 1024;
    cr_assert(tp_mxu_neighbour_key(&problem, &choice, b) == TPUCL_OK);
    cr_assert_str_eq(a, b);
    choice.values[TP_MXU_TILE_M] = 5;
    cr_assert(tp_mxu_neighbour_key(&problem, &choice, b) == TPUCL_OK);
    cr_assert(strcmp(a, b) != 0);
    choice.values[TP_MXU_TILE_M] = 4;
    problem.b.dtype = TP_F32;
    cr_assert(tp_mxu_neighbour_key(&problem, &choice, b) == TPUCL_OK);
    cr_assert(strcmp(a, b) != 0);
}

Test(search_space, is_in_order_and_within_bounds)
{
    size_t count, variants = 0;
    const tp_search_row *rows = tp_search_space(&count);
    while (tp_search_variant(variants) != NULL)
        variants++;
    cr_assert(variants == 7);
    for (size_t i = 0; i < count; i++) {
        const tp_mxu_knob_row *knob = tp_mxu_knob_describe(rows[i].knob);
        cr_assert(tp_mxu_variant_has_knob(rows[i].variant, rows[i].knob));
        cr_assert(rows[i].value_count >= 2 && rows[i].value_count <= TP_SEARCH_MAX_VALUES);
        for (int32_t v = 0; v < rows[i].value_count; v++)
            cr_assert(rows[i].values[v] >= knob->least && rows[i].values[v] <= knob->most);
    }
}
