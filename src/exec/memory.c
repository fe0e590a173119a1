/* SPDX-License-Identifier: Apache-2.0
 * How many cores run in one wave, and the memory for it. A core's HBM is a limit of the topology: what is
 * counted against it is what that core would hold. The device's memory is another limit: it decides only
 * how many cores run at once.
 */
#include "exec/executor_internal.h"
#include "program/footprint.h"

static const char *mebibytes(tp_arena *arena, uint64_t bytes)
{
    const char *text = tp_arena_printf(arena, "%.1f MiB", (double)bytes / 1048576.0);
    return text ? text : "?";
}

static tp_footprint count_footprint(const tp_executor *executor, const tp_program *program)
{
    tp_footprint footprint;
    tp_program_footprint(program, tp_executor_infeed_depth(executor),
                         tp_executor_results_depth(executor), &footprint);
    return footprint;
}

uint64_t tp_executor_core_bytes(const tp_executor *executor, const tp_program *program)
{
    const tp_footprint footprint = count_footprint(executor, program);
    return tp_footprint_bytes(&footprint);
}

static tpucl_status check_core_hbm(const tp_loaded *loaded, const tp_program *program)
{
    uint64_t limit = loaded->executor->options.core_hbm_bytes;
    uint64_t used = tp_executor_core_bytes(loaded->executor, program);
    const tp_footprint use = count_footprint(loaded->executor, program);
    if (!limit || used <= limit) return TPUCL_OK;
    tp_arena *arena = loaded->arena;
    return TP_FAIL(
        TPUCL_OUT_OF_DEVICE_MEMORY,
        "program '%s' needs %s on each core, its HBM has %s: %s too much. Activations and "
        "gradients %s, copies of weights %s, variables and optimizer slots %s, infeed, "
        "results and constants %s. A smaller per-core batch or mixed_bfloat16 makes it smaller",
        program->name, mebibytes(arena, used), mebibytes(arena, limit),
        mebibytes(arena, used - limit), mebibytes(arena, use.core),
        mebibytes(arena, use.replicated), mebibytes(arena, use.variables),
        mebibytes(arena, used - use.core - use.replicated - use.variables));
}

static int32_t most_cores_of_a_site(const tp_executor *executor, int32_t device)
{
    int32_t most = 0;
    for (int32_t i = 0; i < executor->site_count; i++)
        if (executor->sites[i].device == device && executor->sites[i].core_count > most)
            most = executor->sites[i].core_count;
    return most;
}

int32_t tp_memory_wave(const tp_executor *executor, const tp_program *program, int32_t device,
                       uint64_t free_bytes, int32_t *out_wanted)
{
    const uint64_t reserve = free_bytes / 16; /* partial sums, the driver's own needs */
    const uint64_t core_bytes = count_footprint(executor, program).core;
    const uint64_t max_allocation =
        tp_device_get_caps(executor->map->devices[device])->max_allocation_bytes;
    int32_t wave = most_cores_of_a_site(executor, device);
    const int32_t parts = executor->options.micro_batches;
    if (parts > 1 && !program->is_resident) wave = (wave + parts - 1) / parts;
    if (executor->options.wave_cores && executor->options.wave_cores < wave &&
        !program->is_resident)
        wave = executor->options.wave_cores;
    *out_wanted = wave;
    if (program->most_cores && program->most_cores < wave) wave = program->most_cores;
    for (int32_t s = 0; s < program->core_slab_segments; s++)
        while (wave > 0 &&
               tp_multiply_bytes(program->core_bytes[s], (uint64_t)wave) > max_allocation)
            wave--;
    while (wave > 0 && tp_multiply_bytes(core_bytes, (uint64_t)wave) > free_bytes - reserve)
        wave--;
    return program->is_resident && wave < *out_wanted ? 0 : wave;
}

/* The largest number of cores whose slabs fit the device beside what is there already. */
static tpucl_status choose_wave(tp_loaded *loaded, int32_t device)
{
    const tp_program *program = loaded->programs[device];
    tp_device *handle = loaded->executor->map->devices[device];
    tp_device_memory memory;
    int32_t wanted = 0;
    tp_device_get_memory(handle, &memory);
    const uint64_t free_bytes = memory.limit_bytes - memory.used_bytes;
    const int32_t wave = tp_memory_wave(loaded->executor, program, device, free_bytes, &wanted);
    if (!program->is_resident) wanted = 1;
    if (wave < 1)
        return TP_FAIL(
            TPUCL_OUT_OF_DEVICE_MEMORY,
            "device '%s' has %s free (largest allocation %s), program '%s' needs %s for %d "
            "core%s at once; use a smaller batch or a device with more memory",
            tp_device_label(handle), mebibytes(loaded->arena, free_bytes),
            mebibytes(loaded->arena, tp_device_get_caps(handle)->max_allocation_bytes),
            program->name,
            mebibytes(loaded->arena,
                      tp_multiply_bytes(count_footprint(loaded->executor, program).core,
                                        (uint64_t)wanted)),
            wanted, wanted == 1 ? "" : "s");
    loaded->devices[device].wave_cores = wave;
    return TPUCL_OK;
}

static tpucl_status allocate_records(tp_loaded *loaded, int32_t device)
{
    const tp_executor *executor = loaded->executor;
    const tp_program *program = loaded->programs[device];
    tp_bound_device *bound = &loaded->devices[device];
    tp_device *handle = executor->map->devices[device];
    uint64_t records = (uint64_t)executor->records_on[device];
    uint64_t depth = (uint64_t)loaded->infeed_depth;
    if (program->input_bytes) {
        TP_TRY(tp_buffer_create(handle, program->input_bytes * records * depth, "infeed",
                                &bound->input));
        for (int32_t i = 0; i < loaded->infeed_depth; i++)
            TP_TRY(tp_staging_create(handle, program->input_bytes * records, &bound->staging[i]));
    }
    if (program->output_bytes)
        TP_TRY(tp_buffer_create(handle, program->output_bytes * records * depth, "outfeed",
                                &bound->output));
    if (program->result_bytes)
        TP_TRY(tp_buffer_create(handle,
                                program->result_bytes * (uint64_t)loaded->results_depth *
                                    (uint64_t)executor->group_count,
                                "results", &bound->result));
    if (program->constant_bytes) {
        TP_TRY(tp_buffer_create(handle, program->constant_bytes, "constants", &bound->constants));
        TP_TRY(tp_buffer_write(bound->constants, 0, program->constants, program->constant_bytes));
    }
    return TPUCL_OK;
}

static tpucl_status allocate_core_slab(tp_loaded *loaded, int32_t device)
{
    const tp_program *program = loaded->programs[device];
    tp_bound_device *bound = &loaded->devices[device];
    uint64_t bytes[TP_PROGRAM_MAX_SLAB_SEGMENTS];
    if (!program->core_slab_segments) return TPUCL_OK;
    for (int32_t s = 0; s < program->core_slab_segments; s++)
        bytes[s] = program->core_bytes[s] * (uint64_t)bound->wave_cores;
    return tp_slab_create(loaded->executor->map->devices[device], bytes,
                          (uint32_t)program->core_slab_segments, "activations", &bound->core);
}

tpucl_status tp_memory_check(const tp_loaded *loaded)
{
    for (int32_t d = 0; d < loaded->executor->map->device_count; d++)
        TP_TRY(check_core_hbm(loaded, loaded->programs[d]));
    return TPUCL_OK;
}

tpucl_status tp_memory_allocate(tp_loaded *loaded)
{
    const tp_executor *executor = loaded->executor;
    for (int32_t d = 0; d < executor->map->device_count; d++)
        TP_TRY(allocate_records(loaded, d));
    for (int32_t i = 0; i < executor->site_count; i++) {
        tp_bound_site *site = &loaded->sites[i];
        if (site->program->replicated_slab_segments)
            TP_TRY(tp_slab_create(tp_site_device(executor, site->site),
                                  site->program->replicated_bytes,
                                  (uint32_t)site->program->replicated_slab_segments, "replicated",
                                  &site->replicated));
    }
    for (int32_t d = 0; d < executor->map->device_count; d++) {
        TP_TRY(choose_wave(loaded, d));
        TP_TRY(allocate_core_slab(loaded, d));
    }
    return TPUCL_OK;
}
