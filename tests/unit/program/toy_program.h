/* SPDX-License-Identifier: Apache-2.0
 * A program of two segments: x (input) -> h (core) -> g (core) | reduce | sum (replicated) -> w (variable).
 */
#ifndef TESTS_UNIT_PROGRAM_TOY_PROGRAM_H
#define TESTS_UNIT_PROGRAM_TOY_PROGRAM_H

#include <criterion/criterion.h>
#include <string.h>
#include "program/program_builder.h"

enum { TOY_X, TOY_H, TOY_G, TOY_SUM, TOY_W, TOY_COUNT };

#define EXPECT_OK(call) cr_assert_eq((call), TPUCL_OK, "%s: %s", #call, tpucl_last_error()->message)

static inline void toy_launch(tp_program_builder *builder, const char *label, bool is_per_core,
                              int32_t from, int32_t to)
{
    const tp_kernel_arg args[] = {
        {.kind = TP_ARG_TENSOR, .tensor = from},
        {.kind = TP_ARG_TENSOR, .tensor = to, .is_written = true},
        {.kind = TP_ARG_S32, .s32 = 16},
    };
    const tp_launch launch = {.label = label,
                              .source = "kernel void k() {}",
                              .options = "-DA",
                              .entry = "k",
                              .args = args,
                              .arg_count = 3,
                              .global = {16, 1, 1},
                              .grid_z = 1,
                              .is_per_core = is_per_core,
                              .flops = 32};
    EXPECT_OK(tp_program_builder_add_launch(builder, &launch));
}

/* Correct; what a test breaks it breaks in the result. */
static inline tp_program *toy_program(void)
{
    static const struct {
        const char *name;
        tp_space space;
        uint64_t offset;
        int32_t first, last;
    } rows[TOY_COUNT] = {{"x", TP_SPACE_INPUT, 0, 0, 0},
                         {"h", TP_SPACE_CORE, 128, 0, 1},
                         {"g", TP_SPACE_CORE, 0, 1, 1},
                         {"sum", TP_SPACE_REPLICATED, 0, 0, 2},
                         {"w", TP_SPACE_VARIABLE, 0, 2, 2}};
    tp_program_builder *builder = NULL;
    tp_program *program = NULL;
    int32_t index;
    EXPECT_OK(tp_program_builder_create("toy", &builder));
    tp_program_variable variable = {.name = "w", .dtype = TP_F32};
    EXPECT_OK(tp_shape_init(&variable.shape, 1, (int64_t[]){16}));
    EXPECT_OK(tp_program_builder_add_variable(builder, &variable, &index));
    for (int32_t i = 0; i < TOY_COUNT; i++) {
        const tp_program_buffer buffer = {.name = rows[i].name,
                                          .dtype = TP_F32,
                                          .shape = variable.shape,
                                          .space = rows[i].space,
                                          .offset_bytes = rows[i].offset};
        EXPECT_OK(tp_program_builder_add_buffer(builder, &buffer, &index));
        cr_assert_eq(index, i);
    }
    EXPECT_OK(tp_program_builder_begin_segment(builder, true));
    toy_launch(builder, "first", true, TOY_X, TOY_H);
    toy_launch(builder, "second", true, TOY_H, TOY_G);
    EXPECT_OK(tp_program_builder_begin_segment(builder, false));
    toy_launch(builder, "update", false, TOY_SUM, TOY_W);
    EXPECT_OK(tp_program_builder_begin_segment(builder, true)); /* empty: dropped */
    EXPECT_OK(tp_program_builder_add_port(builder, TP_PORT_INPUT, "x", TOY_X));
    tp_program *draft = tp_program_builder_program(builder);
    draft->core_bytes[0] = 256;
    draft->replicated_bytes[0] = 128;
    draft->core_slab_segments = draft->replicated_slab_segments = 1;
    draft->input_bytes = 128;
    draft->segments[0].has_reduce = true;
    draft->segments[0].reduce.core_elems = draft->segments[0].reduce.elems = 32;
    for (int32_t i = 0; i < TOY_COUNT; i++) {
        draft->buffers[i].first_use = rows[i].first;
        draft->buffers[i].last_use = rows[i].last;
    }
    EXPECT_OK(tp_program_builder_finish(builder, &program));
    return program;
}

#endif
