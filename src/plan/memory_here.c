/* SPDX-License-Identifier: Apache-2.0
 * Bytes here: the executor's count, with the slabs split at the launch where most of them is in use. What is in no
 * tensor then is gaps: alignment, and room that another moment needs.
 */
#include "plan/memory_internal.h"

/* The slab of one space at one launch, by kind. */
static uint64_t alive_bytes(const tp_program *program, tp_space space, int32_t launch,
                            uint64_t out_bytes[TP_MEMORY_KIND_COUNT])
{
    uint64_t sum = 0;
    for (int kind = 0; kind < TP_MEMORY_KIND_COUNT; kind++)
        out_bytes[kind] = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        if (buffer->space != space || !tp_memory_is_in_slab(buffer) ||
            !tp_memory_is_alive(buffer, launch))
            continue;
        const tp_memory_kind kind = tp_memory_kind_of(program, buffer);
        out_bytes[kind] = tp_add_bytes(out_bytes[kind], buffer->bytes);
        sum = tp_add_bytes(sum, buffer->bytes);
    }
    return sum;
}

/* Returns the gaps. */
static uint64_t add_slab(const tp_program *program, tp_space space, uint64_t slab_bytes,
                         tp_memory_view *view, const char **out_peak_at)
{
    uint64_t most = 0, bytes[TP_MEMORY_KIND_COUNT];
    int32_t peak = 0;
    for (int32_t launch = 0; launch < program->launch_count; launch++) {
        const uint64_t alive = alive_bytes(program, space, launch, bytes);
        if (alive > most) most = alive, peak = launch;
    }
    most = alive_bytes(program, space, peak, bytes);
    for (int kind = 0; kind < TP_MEMORY_KIND_COUNT; kind++)
        tp_memory_add(view, (tp_memory_kind)kind, bytes[kind]);
    const uint64_t gaps = slab_bytes > most ? slab_bytes - most : 0;
    tp_memory_add(view, TP_MEMORY_GAPS, gaps);
    if (program->launch_count && program->launches[peak].label)
        *out_peak_at = program->launches[peak].label;
    return gaps;
}

tpucl_status tp_memory_view_here(const tp_program *program, tp_memory_plan *plan)
{
    tp_footprint one;
    const char *unused = "";
    tp_program_footprint(program, TP_INFEED_DEPTH, TP_RESULTS_DEPTH, &one);
    tp_memory_add_fixed(program, &plan->here);
    uint64_t gaps = add_slab(program, TP_SPACE_CORE, one.core, &plan->here, &plan->here.peak_at);
    gaps += add_slab(program, TP_SPACE_REPLICATED, one.replicated, &plan->here, &unused);
    const uint64_t slabs = tp_add_bytes(one.core, one.replicated);
    plan->waste = slabs ? (double)gaps / (double)slabs : 0;
    plan->here.peak_at = tp_arena_strdup(plan->arena, plan->here.peak_at);
    return plan->here.peak_at ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}
