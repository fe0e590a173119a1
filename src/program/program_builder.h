/* SPDX-License-Identifier: Apache-2.0
 * Puts a program together: buffers, then segments of launches, then ports. Text and arguments are
 * copied into the program's arena. While it is under construction the program itself may be changed
 * through tp_program_builder_program() (the memory planner writes offsets and sizes there).
 * Thread-compatible.
 */
#ifndef TP_PROGRAM_PROGRAM_BUILDER_H
#define TP_PROGRAM_PROGRAM_BUILDER_H

#include "program/program.h"

typedef struct tp_program_builder tp_program_builder;

tpucl_status tp_program_builder_create(const char *name, tp_program_builder **out_builder);
/* Gives up what was built so far; NULL is fine. */
void tp_program_builder_destroy(tp_program_builder *builder);

/* Borrowed. Its arrays move when something is added. */
tp_program *tp_program_builder_program(tp_program_builder *builder);

/* `bytes` 0 is filled in from dtype and shape. */
tpucl_status tp_program_builder_add_buffer(tp_program_builder *builder,
                                           const tp_program_buffer *buffer, int32_t *out_index);
tpucl_status tp_program_builder_add_variable(tp_program_builder *builder,
                                             const tp_program_variable *variable,
                                             int32_t *out_index);
/* Copies `data` to an aligned place among the constants; equal bytes are kept once. */
tpucl_status tp_program_builder_add_constant(tp_program_builder *builder, const void *data,
                                             uint64_t bytes, uint64_t *out_offset_bytes);

/* Launches belong to the segment begun last. Equal sources are kept once, so that they can be
 * compared by pointer. */
tpucl_status tp_program_builder_begin_segment(tp_program_builder *builder, bool is_per_core);
tpucl_status tp_program_builder_add_launch(tp_program_builder *builder, const tp_launch *launch);

/* The launches of the segment begun last from its launch `first` on, `count` of them, are a loop. */
tpucl_status tp_program_builder_add_loop(tp_program_builder *builder, int32_t first, int32_t count,
                                         int64_t turns);

typedef enum tp_port_kind { TP_PORT_INPUT, TP_PORT_OUTPUT, TP_PORT_RESULT } tp_port_kind;
tpucl_status tp_program_builder_add_port(tp_program_builder *builder, tp_port_kind kind,
                                         const char *name, int32_t buffer);

/* Hands the program over and ends the builder, also on failure. Empty segments without a reduction
 * are dropped. */
tpucl_status tp_program_builder_finish(tp_program_builder *builder, tp_program **out_program);

#endif
