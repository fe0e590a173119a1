/* SPDX-License-Identifier: Apache-2.0
 * Settings of kernel variants that come from outside: which are right for a problem, and that a plan follows
 * them. */
#include <criterion/criterion.h>
#include <string.h>
#include "harness/sample_device.h"
#include "kernel/mxu_choice.h"

static tp_arena *arena;
static tp_mxu_problem problem;
static tp_mxu_plan plan;
static tp_device_caps cpu;

static void setup(void)
{
    cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
    cpu = sample_cpu();
    problem = sample_dense(130);
    cr_assert(tp_mxu_plain_epilogue(&problem, arena) == TPUCL_OK);
}

static void teardown(void)
{
    tp_arena_destroy(arena);
}

TestSuite(mxu_choice, .init = setup, .fini = teardown);

static tp_mxu_choice register_choice(int rows, int width, int vectors, int by_row, int packed,
                                     int groups)
{
    return (tp_mxu_choice){.variant = "mxu_register",
                           .values = {[TP_MXU_TILE_M] = rows,
                                      [TP_MXU_VECTOR_WIDTH] = width,
                                      [TP_MXU_TILE_VECTORS] = vectors,
                                      [TP_MXU_PANEL_BY_ROW] = by_row,
                                      [TP_MXU_B_IS_PACKED] = packed,
                                      [TP_MXU_GROUPS_PER_UNIT] = groups}};
}

static const char *reason_of(const tp_mxu_choice *choice)
{
    const char *reason = NULL;
    cr_assert(tp_mxu_choice_check(&problem, &cpu, choice, arena, &reason) == TPUCL_OK);
    return reason;
}

static const tp_launch *product_launch(void)
{
    for (int32_t i = 0; i < plan.launch_count; i++)
        if (strcmp(plan.launches[i].entry, plan.variant) == 0) return &plan.launches[i];
    return NULL;
}

Test(mxu_choice, a_plan_follows_it)
{
    const tp_mxu_choice choice = register_choice(5, 8, 4, 1, 0, 30);
    const tp_mxu_allow allow = {.forced_choice = &choice};
    cr_assert(tp_mxu_plan_create(&problem, &cpu, &allow, 3, arena, &plan) == TPUCL_OK);
    cr_assert_str_eq(plan.variant, "mxu_register");
    cr_assert(tp_mxu_choice_equal(&plan.choice, &choice));
    const tp_launch *launch = product_launch();
    cr_assert(strstr(launch->options, "-DTILE_M=5 -DVECTOR_WIDTH=8 -DTILE_VECTORS=4") != NULL);
    cr_assert(strstr(launch->options, "-DB_IS_PACKED=0") != NULL);
    cr_assert(launch->global[0] == 26 && launch->global[1] == 3 && plan.scratch_count == 0);
}

Test(mxu_choice, what_heuristics_choose_is_told_and_gives_the_same_plan)
{
    tp_mxu_plan again;
    cr_assert(tp_mxu_plan_create(&problem, &cpu, NULL, 3, arena, &plan) == TPUCL_OK);
    const tp_mxu_allow allow = {.forced_choice = &plan.choice};
    cr_assert(tp_mxu_plan_create(&problem, &cpu, &allow, 3, arena, &again) == TPUCL_OK);
    cr_assert_str_eq(again.variant, plan.variant);
    cr_assert(again.launch_count == plan.launch_count);
    for (int32_t i = 0; i < plan.launch_count; i++) {
        cr_assert_str_eq(again.launches[i].options, plan.launches[i].options);
        cr_assert(memcmp(again.launches[i].global, plan.launches[i].global,
                         sizeof plan.launches[i].global) == 0);
    }
}

Test(mxu_choice, local_and_direct_follow_it_too)
{
    tp_mxu_choice choice = {.variant = "mxu_local",
                            .values = {[TP_MXU_THREADS_M] = 8,
                                       [TP_MXU_THREADS_N] = 32,
                                       [TP_MXU_THREAD_M] = 2,
                                       [TP_MXU_THREAD_N] = 1,
                                       [TP_MXU_TILE_K] = 32}};
    const tp_mxu_allow allow = {.forced_choice = &choice};
    cr_assert(tp_mxu_plan_create(&problem, &cpu, &allow, 3, arena, &plan) == TPUCL_OK);
    const tp_launch *launch = product_launch();
    cr_assert(launch->local[0] == 32 && launch->local[1] == 8);
    cr_assert(launch->global[0] == 512 && launch->global[1] == 72);
    choice = (tp_mxu_choice){.variant = "mxu_direct", .values = {[TP_MXU_TILE_M] = 7}};
    cr_assert(tp_mxu_plan_create(&problem, &cpu, &allow, 3, arena, &plan) == TPUCL_OK);
    cr_assert(product_launch()->global[1] == 19);
}

Test(mxu_choice, what_a_kernel_cannot_do_is_refused)
{
    const struct {
        tp_mxu_choice choice;
        const char *reason;
    } rows[] = {
        {register_choice(17, 16, 2, 1, 1, 1), "TILE_M is 17, expected 1 to 16"},
        {register_choice(0, 16, 2, 1, 1, 1), "TILE_M is 0, expected 1 to 16"},
        {register_choice(8, 5, 2, 1, 1, 1), "VECTOR_WIDTH 5: expected 4, 8 or 16"},
        {register_choice(8, 16, 3, 1, 1, 1), "TILE_VECTORS 3: expected 1, 2 or 4"},
        {register_choice(8, 8, 1, 1, 1, 1), "TILE_VECTORS 1: a tile has to have"},
        {register_choice(8, 16, 2, 0, 1, 1), "PANEL_BY_ROW 0: A does not run along m"},
        {register_choice(8, 4, 4, 1, 0, 1), "B_IS_PACKED 0: B has to run along n"},
        {register_choice(8, 16, 2, 1, 1, 0), "GROUPS_PER_UNIT is 0, expected 1 to 64"},
        {{.variant = "mxu_local",
          .values = {[TP_MXU_THREADS_M] = 8,
                     [TP_MXU_THREADS_N] = 8,
                     [TP_MXU_THREAD_M] = 2,
                     [TP_MXU_THREAD_N] = 2,
                     [TP_MXU_TILE_K] = 24}},
         "TILE_K 24: it has to divide 128"},
        {{.variant = "mxu_pairs",
          .values = {[TP_MXU_TILE_M] = 8,
                     [TP_MXU_TILE_VECTORS] = 2,
                     [TP_MXU_PANEL_BY_ROW] = 1,
                     [TP_MXU_GROUPS_PER_UNIT] = 1}},
         "the device has no instruction for pairs"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *reason = reason_of(&rows[i].choice);
        cr_assert(reason != NULL && strstr(reason, rows[i].reason) != NULL, "%zu: %s", i,
                  reason ? reason : "accepted");
        const tp_mxu_allow allow = {.forced_choice = &rows[i].choice};
        cr_assert(tp_mxu_plan_create(&problem, &cpu, &allow, 3, arena, &plan) == TPUCL_UNSUPPORTED);
    }
    const tp_mxu_choice good = register_choice(16, 16, 4, 1, 0, 64);
    cr_assert_null(reason_of(&good));
}

Test(mxu_choice, panels_along_m_need_an_operand_that_runs_so)
{
    const tp_mxu_choice wide = register_choice(14, 16, 2, 0, 1, 1),
                        eight = register_choice(8, 16, 2, 0, 1, 1);
    problem.a.stride_outer = 1;
    cr_assert_null(reason_of(&wide));
    problem.kind = TP_MXU_CONV_FILTER_GRAD;
    problem.conv = (tp_mxu_conv){.in_c = 24, .groups = 1, .stride_w = 1, .out_w = 28};
    cr_assert_not_null(reason_of(&wide));
    cr_assert_null(reason_of(&eight));
    problem.conv.in_c = 20;
    cr_assert_not_null(reason_of(&eight));
    problem.kind = TP_MXU_CONV;
    problem.conv.in_c = 1;
    cr_assert_null(reason_of(&wide));
    cr_assert_not_null(reason_of(&eight));
    problem.kind = TP_MXU_CONV_INPUT_GRAD;
    cr_assert_not_null(reason_of(&wide));
}

Test(mxu_choice, prints_its_own_knobs)
{
    char text[TP_MXU_CHOICE_BYTES];
    const tp_mxu_choice choice = {.variant = "mxu_pairs",
                                  .values = {[TP_MXU_TILE_M] = 12,
                                             [TP_MXU_VECTOR_WIDTH] = 3,
                                             [TP_MXU_TILE_VECTORS] = 2,
                                             [TP_MXU_GROUPS_PER_UNIT] = 4}};
    cr_assert_str_eq(tp_mxu_choice_print(&choice, text),
                     "mxu_pairs TILE_M=12 TILE_VECTORS=2 PANEL_BY_ROW=0 GROUPS_PER_UNIT=4");
    tp_mxu_choice other = choice;
    other.values[TP_MXU_VECTOR_WIDTH] = 16; /* not one of its knobs */
    cr_assert(tp_mxu_choice_equal(&other, &choice));
    other.values[TP_MXU_GROUPS_PER_UNIT] = 5;
    cr_assert(!tp_mxu_choice_equal(&other, &choice));
    other = choice;
    other.variant = "mxu_register";
    cr_assert(!tp_mxu_choice_equal(&other, &choice));
    cr_assert(tp_mxu_variant_has_knob("mxu_grouped", TP_MXU_TILE_M));
    cr_assert(!tp_mxu_variant_has_knob("mxu_reference", TP_MXU_TILE_M));
}
