/* SPDX-License-Identifier: Apache-2.0
 * Every rule of the verifier, broken once.
 */
#include "toy_program.h"

static void expect_refused(tp_program *program, const char *part)
{
    cr_assert_eq(tp_program_verify(program), TPUCL_INTERNAL, "nothing found, expected '%s'", part);
    cr_assert(strstr(tpucl_last_error()->message, part), "'%s' is not in: %s", part,
              tpucl_last_error()->message);
    tp_program_destroy(program);
}

Test(program_verify, buffer_outside_of_its_space)
{
    tp_program *program = toy_program();
    program->buffers[TOY_H].offset_bytes = 256;
    expect_refused(program, "'h' (64 bytes at 256) is outside");
}

Test(program_verify, offset_not_aligned)
{
    tp_program *program = toy_program();
    program->buffers[TOY_H].offset_bytes = 64;
    expect_refused(program, "not aligned to 128");
}

Test(program_verify, offset_that_overflows)
{
    tp_program *program = toy_program();
    program->buffers[TOY_H].offset_bytes = UINT64_MAX - 127;
    expect_refused(program, "is outside");
}

Test(program_verify, no_such_slab_segment)
{
    tp_program *program = toy_program();
    program->buffers[TOY_G].slab_segment = 1;
    expect_refused(program, "slab segment 1 of 1");
}

Test(program_verify, no_such_variable)
{
    tp_program *program = toy_program();
    program->buffers[TOY_W].variable = 3;
    expect_refused(program, "variable 3");
}

Test(program_verify, no_such_buffer)
{
    tp_program *program = toy_program();
    ((tp_kernel_arg *)program->launches[0].args)[0].tensor = TOY_COUNT;
    expect_refused(program, "'first' names buffer 5 of 5");
}

Test(program_verify, argument_behind_its_buffer)
{
    tp_program *program = toy_program();
    ((tp_kernel_arg *)program->launches[0].args)[1].offset_elems = 17;
    expect_refused(program, "starts 17 elements into");
}

Test(program_verify, two_live_buffers_overlap)
{
    tp_program *program = toy_program();
    program->buffers[TOY_H].offset_bytes = 0;
    expect_refused(program, "'h' and 2 'g' are live at once");
}

Test(program_verify, buffers_that_live_one_after_the_other_may_overlap)
{
    tp_program *program = toy_program();
    ((tp_kernel_arg *)program->launches[1].args)[0].tensor = TOY_X;
    program->buffers[TOY_X].last_use = 1;
    program->buffers[TOY_H].last_use = 0;
    program->buffers[TOY_H].offset_bytes = 0;
    EXPECT_OK(tp_program_verify(program));
    tp_program_destroy(program);
}

Test(program_verify, read_before_written)
{
    tp_program *program = toy_program();
    ((tp_kernel_arg *)program->launches[0].args)[1].is_written = false;
    expect_refused(program, "'first' reads buffer 1 'h' before anything wrote it");
}

Test(program_verify, sum_that_nothing_makes)
{
    tp_program *program = toy_program();
    program->segments[0].has_reduce = false;
    expect_refused(program, "'update' reads buffer 3 'sum' before anything wrote it");
}

Test(program_verify, planner_forgot_a_use)
{
    tp_program *program = toy_program();
    program->buffers[TOY_H].last_use = 0;
    expect_refused(program, "used in launches 0..1 but planned for 0..0");
}

Test(program_verify, core_work_writes_what_stands_once)
{
    tp_program *program = toy_program();
    ((tp_kernel_arg *)program->launches[0].args)[1].tensor = TOY_W;
    expect_refused(program, "'first' writes buffer 4 'w', which it may not");
}

Test(program_verify, sum_over_cores_by_a_launch_that_knows_one)
{
    tp_program *program = toy_program();
    tp_kernel_arg *arg = &((tp_kernel_arg *)program->launches[0].args)[1];
    arg->kind = TP_ARG_SUM, arg->tensor = TOY_SUM;
    program->most_cores = 8;
    expect_refused(program, "'first' sums over cores into buffer 3 'sum'");
}

Test(program_verify, replicated_work_uses_what_each_core_has)
{
    tp_program *program = toy_program();
    ((tp_kernel_arg *)program->launches[2].args)[0].tensor = TOY_X;
    expect_refused(program, "runs once per device but uses buffer 0 'x' of a core");
}

Test(program_verify, launch_in_a_segment_of_the_other_kind)
{
    tp_program *program = toy_program();
    program->launches[1].is_per_core = false;
    expect_refused(program, "'second' is in a segment of the other kind");
}

Test(program_verify, segments_leave_launches_out)
{
    tp_program *program = toy_program();
    program->segments[0].launch_count = 1;
    program->segments[1].first_launch = 1;
    program->segments[1].launch_count = 1;
    expect_refused(program, "'second' is in a segment of the other kind");
}

Test(program_verify, port_in_the_wrong_space)
{
    tp_program *program = toy_program();
    program->inputs[0].buffer = TOY_G;
    expect_refused(program, "input 'x' is not a buffer of that space");
}
