/* SPDX-License-Identifier: Apache-2.0
 * What loading would take, before; what was taken, after. Both follow memory.c and reduce.c, buffer by buffer.
 */
#include "exec/executor_internal.h"
#include "program/footprint.h"

/* ---- before ---- */

static uint64_t variable_bytes(const tp_program *program)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < program->variable_count; i++)
        bytes = tp_add_bytes(bytes, program->variables[i].bytes);
    return bytes;
}

/* All but the slab of cores. */
static uint64_t fixed_bytes(const tp_executor *executor, const tp_program *program, int32_t device,
                            bool has_variables)
{
    tp_footprint one;
    tp_program_footprint(program, tp_executor_infeed_depth(executor),
                         tp_executor_results_depth(executor), &one);
    const uint64_t records = (uint64_t)executor->records_on[device];
    uint64_t bytes = tp_multiply_bytes(tp_add_bytes(one.infeed, one.outfeed), records);
    bytes = tp_add_bytes(bytes, tp_multiply_bytes(one.results, (uint64_t)executor->group_count));
    bytes = tp_add_bytes(bytes, one.constants);
    for (int32_t i = 0; i < executor->site_count; i++) {
        if (executor->sites[i].device != device) continue;
        bytes = tp_add_bytes(bytes, one.replicated);
        if (!has_variables) bytes = tp_add_bytes(bytes, variable_bytes(program));
    }
    return bytes;
}

/* Slots of partial sums that a device's waves fill: one more than the last that is no whole group's. The first one of
 * a device that has the whole group lies where the result will be. */
static int32_t partial_slots(const tp_tree_plan *tree, int32_t device, int32_t group_size)
{
    const tp_tree_device *plan = &tree->devices[device];
    int32_t slots = 0;
    for (int32_t i = 0; i < plan->op_count; i++)
        if (plan->ops[i].kind == TP_TREE_RUN && plan->ops[i].count != group_size &&
            plan->ops[i].slot >= slots)
            slots = plan->ops[i].slot + 1;
    return slots > 0 && tree->leaf_count == 1 ? slots - 1 : slots;
}

/* Partial sums of all groups on the device, and the leaves that cross devices. `waves`: [device_count]. */
static tpucl_status count_sums(const tp_executor *executor, const int32_t *waves, int32_t device,
                               tp_arena *arena, uint64_t *out_slots, uint64_t *out_leaves)
{
    const int32_t devices = executor->map->device_count, size = executor->group_size;
    int32_t *owner = TP_ARENA_NEW_ARRAY(arena, int32_t, (size_t)size);
    if (!owner) return TPUCL_OUT_OF_MEMORY;
    for (int32_t g = 0; g < executor->group_count; g++) {
        const int32_t *cores = executor->group_cores + g * size;
        const tp_tree_plan *plan = NULL;
        for (int32_t p = 0; p < size; p++)
            owner[p] = executor->map->owner[cores[p]];
        TP_TRY(tp_tree_plan_create(owner, cores, size, devices, waves, arena, &plan));
        *out_slots += (uint64_t)partial_slots(plan, device, size);
        if (plan->leaf_count > 1 && (uint64_t)plan->leaf_count > *out_leaves)
            *out_leaves = (uint64_t)plan->leaf_count;
    }
    return TPUCL_OK;
}

static uint64_t free_bytes_of(const tp_executor *executor, int32_t device)
{
    tp_device_memory memory;
    tp_device_get_memory(executor->map->devices[device], &memory);
    return memory.limit_bytes - memory.used_bytes;
}

static uint64_t without(uint64_t bytes, uint64_t taken)
{
    return bytes > taken ? bytes - taken : 0;
}

tpucl_status tp_executor_forecast(const tp_executor *executor, const tp_program *const *programs,
                                  int32_t device, uint64_t used_bytes, bool has_variables,
                                  tp_forecast *out_forecast)
{
    const int32_t devices = executor->map->device_count;
    const tp_program *program = programs[device];
    const uint64_t sum_bytes = tp_multiply_bytes(tp_program_largest_reduce(program), sizeof(float));
    uint64_t slots = 0, leaves = 0, fixed = 0;
    int32_t wanted = 0;
    tp_footprint one;
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    int32_t *waves = TP_ARENA_NEW_ARRAY(arena, int32_t, (size_t)devices);
    if (!waves) goto done;
    tp_program_footprint(program, tp_executor_infeed_depth(executor),
                         tp_executor_results_depth(executor), &one);
    *out_forecast = (tp_forecast){.free_bytes = free_bytes_of(executor, device)};
    for (int32_t d = 0; d < devices; d++) {
        fixed = tp_add_bytes(fixed_bytes(executor, programs[d], d, has_variables), used_bytes);
        waves[d] = tp_memory_wave(executor, programs[d], d,
                                  without(free_bytes_of(executor, d), fixed), &wanted);
        if (d == device) out_forecast->wave_cores = waves[d];
        if (waves[d] < 1) waves[d] = 1; /* a tree needs one */
        out_forecast->host_bytes =
            tp_add_bytes(out_forecast->host_bytes,
                         tp_multiply_bytes((uint64_t)executor->records_on[d] *
                                               (uint64_t)tp_executor_infeed_depth(executor),
                                           programs[d]->input_bytes));
    }
    status = count_sums(executor, waves, device, arena, &slots, &leaves);
    if (status != TPUCL_OK) goto done;
    fixed = tp_add_bytes(fixed_bytes(executor, program, device, has_variables),
                         tp_multiply_bytes(slots, sum_bytes));
    out_forecast->bytes = tp_add_bytes(fixed, tp_multiply_bytes(one.core, (uint64_t)waves[device]));
    out_forecast->core_bytes = tp_add_bytes(fixed, one.core);
    out_forecast->host_bytes =
        tp_add_bytes(out_forecast->host_bytes, tp_multiply_bytes(leaves, sum_bytes));
done:
    tp_arena_destroy(arena);
    return status;
}

/* ---- after ---- */

static uint64_t buffer_share(const tp_buffer *buffer, uint64_t parts)
{
    return buffer ? tp_buffer_bytes(buffer) / parts : 0;
}

static uint64_t held_variables(const tp_loaded *loaded, const tp_site *site)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < loaded->programs[site->device]->variable_count; i++)
        bytes +=
            buffer_share(tp_variables_buffer(loaded->executor->variables, loaded->variable_index[i],
                                             site->device, site->group),
                         1);
    return bytes;
}

/* Of a core that adds up micro-batches; the first slot is the sum that goes to other devices, if there are any. */
static uint64_t held_partials(const tp_bound_site *site)
{
    uint64_t bytes = 0;
    for (int32_t i = 1; i < site->partial_count; i++)
        bytes += buffer_share(site->partials[i], 1);
    return bytes;
}

static uint64_t held_core_bytes(const tp_loaded *loaded)
{
    const tp_bound_site *site = &loaded->sites[0];
    const tp_bound_device *device = &loaded->devices[site->site->device];
    const uint64_t records = (uint64_t)loaded->executor->records_on[site->site->device];
    uint64_t bytes = held_variables(loaded, site->site);
    if (device->core) bytes += tp_slab_bytes(device->core) / (uint64_t)device->wave_cores;
    if (site->replicated) bytes += tp_slab_bytes(site->replicated);
    const int32_t parts = loaded->executor->options.micro_batches;
    const uint64_t own = parts > 1 ? (uint64_t)parts : 1; /* records */
    bytes += own * (buffer_share(device->input, records) + buffer_share(device->output, records));
    if (parts > 1) bytes += held_partials(site);
    bytes += buffer_share(device->result, (uint64_t)loaded->executor->group_count);
    return bytes + buffer_share(device->constants, 1);
}

void tp_loaded_get_info(const tp_loaded *loaded, tp_loaded_info *out_info)
{
    const tp_program *program = loaded->programs[0];
    tp_footprint one;
    tp_program_footprint(program, loaded->infeed_depth, loaded->results_depth, &one);
    *out_info = (tp_loaded_info){.held_core_bytes = held_core_bytes(loaded),
                                 .wave_cores = loaded->devices[0].wave_cores,
                                 .core_bytes = one.core,
                                 .replicated_bytes = one.replicated,
                                 .variable_bytes = tp_variables_bytes(loaded->executor->variables),
                                 .input_bytes = program->input_bytes,
                                 .memory_seconds = loaded->memory_seconds};
}
