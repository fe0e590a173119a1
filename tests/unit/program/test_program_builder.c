/* SPDX-License-Identifier: Apache-2.0
 * What the builder copies, shares and drops.
 */
#include "toy_program.h"

Test(program_builder, copies_everything_and_drops_empty_segments)
{
    tp_program *program = toy_program();
    cr_assert_eq(program->segment_count, 2);
    cr_assert_eq(program->launch_count, 3);
    cr_assert_eq(program->segments[1].first_launch, 2);
    cr_assert_eq(program->variables[0].bytes, 64);
    cr_assert_eq(program->buffers[TOY_H].bytes, 64);
    cr_assert_eq(program->launches[2].args[1].tensor, TOY_W);
    cr_assert_str_eq(program->launches[0].label, "first");
    cr_assert_str_eq(program->inputs[0].name, "x");
    EXPECT_OK(tp_program_verify(program));
    tp_program_destroy(program);
}

Test(program_builder, keeps_equal_sources_once)
{
    tp_program *program = toy_program();
    cr_assert_eq(program->launches[0].source, program->launches[2].source);
    tp_program_destroy(program);
}

Test(program_builder, keeps_equal_constants_once_and_aligned)
{
    static const unsigned char a[5] = {1, 2, 3, 4, 5}, b[5] = {1, 2, 3, 4, 6};
    tp_program_builder *builder = NULL;
    uint64_t first, second, third;
    EXPECT_OK(tp_program_builder_create("constants", &builder));
    EXPECT_OK(tp_program_builder_add_constant(builder, a, sizeof a, &first));
    EXPECT_OK(tp_program_builder_add_constant(builder, b, sizeof b, &second));
    EXPECT_OK(tp_program_builder_add_constant(builder, a, sizeof a, &third));
    cr_assert_eq(first, 0);
    cr_assert_eq(second, TP_PROGRAM_ALIGN_BYTES);
    cr_assert_eq(third, first);
    const tp_program *program = tp_program_builder_program(builder);
    cr_assert_eq(program->constant_bytes, 2 * TP_PROGRAM_ALIGN_BYTES);
    cr_assert_arr_eq(program->constants + second, b, sizeof b);
    tp_program_builder_destroy(builder);
}

Test(program_builder, refuses_a_launch_outside_of_segments)
{
    tp_program_builder *builder = NULL;
    EXPECT_OK(tp_program_builder_create("none", &builder));
    const tp_launch launch = {.label = "lost"};
    cr_assert_eq(tp_program_builder_add_launch(builder, &launch), TPUCL_INTERNAL);
    cr_assert(strstr(tpucl_last_error()->message, "'lost'"));
    tp_program_builder_destroy(builder);
    tp_program_builder_destroy(NULL);
    tp_program_destroy(NULL);
}
