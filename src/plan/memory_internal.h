/* SPDX-License-Identifier: Apache-2.0
 * What the files of the memory plan share.
 */
#ifndef TP_PLAN_MEMORY_INTERNAL_H
#define TP_PLAN_MEMORY_INTERNAL_H

#include "plan/memory.h"

/* The kind of a buffer that is no view. */
tp_memory_kind tp_memory_kind_of(const tp_program *program, const tp_program_buffer *buffer);
/* The segment whose reduction reads it (CORE) or writes it (REPLICATED); -1: none. */
int32_t tp_memory_summed_in(const tp_program *program, const tp_program_buffer *buffer);
/* It has memory of its own that comes and goes with the launches. */
bool tp_memory_is_in_slab(const tp_program_buffer *buffer);
static inline bool tp_memory_is_alive(const tp_program_buffer *buffer, int32_t launch)
{
    return buffer->first_use <= launch && buffer->last_use >= launch;
}

/* What does not come and go: variables, rings, constants. */
void tp_memory_add_fixed(const tp_program *program, tp_memory_view *view);
void tp_memory_add(tp_memory_view *view, tp_memory_kind kind, uint64_t bytes);
/* Whole bytes of a number, UINT64_MAX for what is more. */
uint64_t tp_memory_whole(double bytes);

tpucl_status tp_memory_view_here(const tp_program *program, tp_memory_plan *plan);
tpucl_status tp_memory_view_tpu(const tp_program *program, tp_memory_plan *plan);

#endif
