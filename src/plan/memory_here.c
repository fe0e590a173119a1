/* SPDX-License-Identifier: Apache-2.0
 * Bytes here: the executor's count, with the slabs split at the launch where most of them is in use. What is in no
 * tensor then is gaps: alignment, and room that another moment needs.
 */
#include "plan/memory_internal.h"

/* What lies in one slab, in the order of the program's buffers. */
typedef struct held {
    uint64_t bytes;
    tp_memory_kind kind;
    int32_t summed_in; /* -1: it is in no sum over cores */
    int32_t first, last;
} held;

/* What is summed over cores lies side by side, so all of it is taken from the first part to the last. */
static void join_sums(held *items, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        for (int32_t k = 0; k < count && items[i].summed_in >= 0; k++) {
            if (items[k].summed_in != items[i].summed_in) continue;
            if (items[k].first < items[i].first) items[i].first = items[k].first;
            if (items[k].last > items[i].last) items[i].last = items[k].last;
        }
}

static int32_t list_held(const tp_program *program, tp_space space, held *items)
{
    int32_t count = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        if (buffer->space != space || !tp_memory_is_in_slab(buffer)) continue;
        items[count++] = (held){.bytes = buffer->bytes,
                                .kind = tp_memory_kind_of(program, buffer),
                                .summed_in = tp_memory_summed_in(program, buffer),
                                .first = buffer->first_use,
                                .last = buffer->last_use};
    }
    join_sums(items, count);
    return count;
}

/* The slab at one launch, by kind; returns the sum. */
static uint64_t held_bytes(const held *items, int32_t count, int32_t launch,
                           uint64_t out_bytes[TP_MEMORY_KIND_COUNT])
{
    uint64_t sum = 0;
    for (int kind = 0; kind < TP_MEMORY_KIND_COUNT; kind++)
        out_bytes[kind] = 0;
    for (int32_t i = 0; i < count; i++) {
        if (items[i].first > launch || items[i].last < launch) continue;
        out_bytes[items[i].kind] = tp_add_bytes(out_bytes[items[i].kind], items[i].bytes);
        sum = tp_add_bytes(sum, items[i].bytes);
    }
    return sum;
}

static tpucl_status add_slab(const tp_program *program, tp_space space, uint64_t slab_bytes,
                             tp_memory_plan *plan, const char **out_peak_at, uint64_t *inout_gaps)
{
    uint64_t most = 0, bytes[TP_MEMORY_KIND_COUNT];
    int32_t peak = 0;
    held *items = TP_ARENA_NEW_ARRAY(plan->arena, held, (size_t)program->buffer_count + 1);
    if (!items) return TPUCL_OUT_OF_MEMORY;
    const int32_t count = list_held(program, space, items);
    for (int32_t launch = 0; launch < program->launch_count; launch++) {
        const uint64_t sum = held_bytes(items, count, launch, bytes);
        if (sum > most) most = sum, peak = launch;
    }
    most = held_bytes(items, count, peak, bytes);
    for (int kind = 0; kind < TP_MEMORY_KIND_COUNT; kind++)
        tp_memory_add(&plan->here, (tp_memory_kind)kind, bytes[kind]);
    const uint64_t gaps = slab_bytes > most ? slab_bytes - most : 0;
    tp_memory_add(&plan->here, TP_MEMORY_GAPS, gaps);
    *inout_gaps = tp_add_bytes(*inout_gaps, gaps);
    if (program->launch_count && program->launches[peak].label)
        *out_peak_at = program->launches[peak].label;
    return TPUCL_OK;
}

tpucl_status tp_memory_view_here(const tp_program *program, tp_memory_plan *plan)
{
    tp_footprint one;
    const char *unused = "";
    tp_program_footprint(program, TP_INFEED_DEPTH, TP_RESULTS_DEPTH, &one);
    tp_memory_add_fixed(program, &plan->here);
    uint64_t gaps = 0;
    TP_TRY(add_slab(program, TP_SPACE_CORE, one.core, plan, &plan->here.peak_at, &gaps));
    TP_TRY(add_slab(program, TP_SPACE_REPLICATED, one.replicated, plan, &unused, &gaps));
    const uint64_t slabs = tp_add_bytes(one.core, one.replicated);
    plan->waste = slabs ? (double)gaps / (double)slabs : 0;
    plan->here.peak_at = tp_arena_strdup(plan->arena, plan->here.peak_at);
    return plan->here.peak_at ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}
