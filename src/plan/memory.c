/* SPDX-License-Identifier: Apache-2.0
 * The memory plan: kinds, and what both views have in common.
 */
#include "plan/memory_internal.h"

#include <math.h>
#include <string.h>

static const char *const keys[TP_MEMORY_KIND_COUNT] = {
#define KEY(id, key, text) key,
    TP_MEMORY_KIND_LIST(KEY)
#undef KEY
};

static const char *const texts[TP_MEMORY_KIND_COUNT] = {
#define WORDS(id, key, text) text,
    TP_MEMORY_KIND_LIST(WORDS)
#undef WORDS
};

const char *tp_memory_kind_key(tp_memory_kind kind)
{
    return keys[kind];
}

const char *tp_memory_kind_text(tp_memory_kind kind)
{
    return texts[kind];
}

uint64_t tp_memory_whole(double bytes)
{
    if (!(bytes > 0)) return 0;
    return bytes >= 0x1p64 ? UINT64_MAX : (uint64_t)bytes;
}

void tp_memory_add(tp_memory_view *view, tp_memory_kind kind, uint64_t bytes)
{
    view->bytes[kind] = tp_add_bytes(view->bytes[kind], bytes);
    view->total = tp_add_bytes(view->total, bytes);
}

/* ---- kinds ---- */

bool tp_memory_is_in_slab(const tp_program_buffer *buffer)
{
    return (buffer->space == TP_SPACE_CORE || buffer->space == TP_SPACE_REPLICATED) &&
           !buffer->view.is_view && buffer->first_use >= 0;
}

int32_t tp_memory_summed_in(const tp_program *program, const tp_program_buffer *buffer)
{
    const bool is_core = buffer->space == TP_SPACE_CORE;
    for (int32_t i = 0; i < program->segment_count; i++) {
        const tp_program_segment *segment = &program->segments[i];
        const tp_program_reduce *reduce = &segment->reduce;
        const uint64_t begin =
            is_core ? reduce->core_offset_bytes : reduce->replicated_offset_bytes;
        const uint64_t bytes = sizeof(float) * (is_core ? reduce->core_elems : reduce->elems);
        const int32_t slab = is_core ? reduce->core_slab_segment : reduce->replicated_slab_segment;
        const int32_t end = segment->first_launch + segment->launch_count - 1;
        if (segment->has_reduce && buffer->slab_segment == slab && buffer->offset_bytes >= begin &&
            buffer->offset_bytes < begin + bytes && tp_memory_is_alive(buffer, end))
            return i;
    }
    return -1;
}

static bool is_summed(const tp_program *program, const tp_program_buffer *buffer)
{
    return tp_memory_summed_in(program, buffer) >= 0;
}

/* Written where cores compute, read by all of them: before them it is a copy of weights. */
static bool is_copy(const tp_program *program, const tp_program_buffer *buffer)
{
    for (int32_t i = 0; i < program->segment_count; i++) {
        const tp_program_segment *segment = &program->segments[i];
        if (!segment->is_per_core) continue;
        return buffer->first_use < segment->first_launch &&
               buffer->last_use >= segment->first_launch;
    }
    return false;
}

tp_memory_kind tp_memory_kind_of(const tp_program *program, const tp_program_buffer *buffer)
{
    switch (buffer->space) {
    case TP_SPACE_VARIABLE:
        return program->variables[buffer->variable].is_model ? TP_MEMORY_WEIGHTS : TP_MEMORY_SLOTS;
    case TP_SPACE_INPUT:
        return TP_MEMORY_INFEED;
    case TP_SPACE_OUTPUT:
    case TP_SPACE_RESULT:
        return TP_MEMORY_RESULTS;
    case TP_SPACE_CONSTANT:
        return TP_MEMORY_CONSTANTS;
    case TP_SPACE_REPLICATED:
        if (is_summed(program, buffer)) return TP_MEMORY_COLLECTIVE;
        return is_copy(program, buffer) ? TP_MEMORY_COPIES : TP_MEMORY_SLOTS;
    case TP_SPACE_CORE:
    default:
        return is_summed(program, buffer) ? TP_MEMORY_GRADIENTS : TP_MEMORY_ACTIVATIONS;
    }
}

void tp_memory_add_fixed(const tp_program *program, tp_memory_view *view)
{
    tp_footprint one;
    tp_program_footprint(program, TP_INFEED_DEPTH, TP_RESULTS_DEPTH, &one);
    for (int32_t i = 0; i < program->variable_count; i++)
        tp_memory_add(view, program->variables[i].is_model ? TP_MEMORY_WEIGHTS : TP_MEMORY_SLOTS,
                      program->variables[i].bytes);
    tp_memory_add(view, TP_MEMORY_INFEED, one.infeed);
    tp_memory_add(view, TP_MEMORY_RESULTS, tp_add_bytes(one.outfeed, one.results));
    tp_memory_add(view, TP_MEMORY_CONSTANTS, one.constants);
}

/* ---- the plan ---- */

uint64_t tp_memory_whole_figure(const tp_topology *topology, tp_figure_id id)
{
    return tp_memory_whole(tp_topology_figure(topology, id, 0));
}

uint64_t tp_memory_capacity(const tp_topology *topology)
{
    return tp_memory_whole_figure(topology, TP_FIGURE_HBM_BYTES);
}

uint64_t tp_memory_plan_bytes(const tp_memory_plan *plan)
{
    return plan->here.total > plan->tpu.total ? plan->here.total : plan->tpu.total;
}

bool tp_memory_plan_fits(const tp_memory_plan *plan, const tp_topology *topology)
{
    const uint64_t capacity = tp_memory_capacity(topology);
    return !capacity || tp_memory_plan_bytes(plan) <= capacity;
}

/* What further micro-batches add to either view. */
static void add_micro_batches(const tp_program *program, int32_t count, tp_memory_view *view)
{
    tp_footprint one;
    uint64_t most = 0, slots = 0;
    if (count < 2) return;
    tp_program_footprint(program, TP_INFEED_DEPTH, TP_RESULTS_DEPTH, &one);
    for (int32_t left = 1; left < count; left *= 2)
        slots++;
    for (int32_t i = 0; i < program->segment_count; i++)
        if (program->segments[i].has_reduce && program->segments[i].reduce.elems > most)
            most = program->segments[i].reduce.elems;
    const uint64_t more = (uint64_t)count - 1;
    tp_memory_add(view, TP_MEMORY_INFEED, tp_multiply_bytes(more, one.infeed));
    tp_memory_add(view, TP_MEMORY_RESULTS, tp_multiply_bytes(more, one.outfeed));
    tp_memory_add(view, TP_MEMORY_COLLECTIVE,
                  tp_multiply_bytes(slots, tp_multiply_bytes(most, sizeof(float))));
}

tpucl_status tp_memory_plan_create(const tp_program *program, const tp_topology *topology,
                                   int32_t micro_batches, tp_memory_plan **out_plan)
{
    const uint64_t reserve = tp_memory_whole_figure(topology, TP_FIGURE_HBM_RESERVED);
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tp_memory_plan *plan = TP_ARENA_NEW(arena, tp_memory_plan);
    if (!plan) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    plan->arena = arena;
    plan->here.peak_at = plan->tpu.peak_at = "";
    plan->is_tiled = tp_topology_figure(topology, TP_FIGURE_MXU_ROWS, 0) > 0;
    tpucl_status status = tp_memory_view_here(program, plan);
    if (status == TPUCL_OK) status = tp_memory_view_tpu(program, plan);
    if (status != TPUCL_OK) {
        tp_memory_plan_destroy(plan);
        return status;
    }
    add_micro_batches(program, micro_batches, &plan->here);
    add_micro_batches(program, micro_batches, &plan->tpu);
    tp_memory_add(&plan->here, TP_MEMORY_RESERVE, reserve);
    tp_memory_add(&plan->tpu, TP_MEMORY_RESERVE, reserve);
    *out_plan = plan;
    return TPUCL_OK;
}

void tp_memory_plan_destroy(tp_memory_plan *plan)
{
    if (plan) tp_arena_destroy(plan->arena);
}
