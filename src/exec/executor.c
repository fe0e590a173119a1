/* SPDX-License-Identifier: Apache-2.0
 * Executor and loading: which cores are where, and everything a program needs before its first step. */
#include "exec/executor_internal.h"

#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "program/footprint.h"

static tpucl_status copy_groups(tp_executor *executor)
{
    const tp_executor_options *options = &executor->options;
    int32_t cores = executor->map->core_count;
    executor->group_count = options->group_cores ? options->group_count : 1;
    if (executor->group_count < 1 || cores % executor->group_count != 0)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%d cores do not make %d replica groups of equal size",
                       cores, executor->group_count);
    executor->group_size = cores / executor->group_count;
    executor->group_cores = TP_ARENA_NEW_ARRAY(executor->arena, int32_t, (size_t)cores);
    bool *seen = TP_ARENA_NEW_ARRAY(executor->arena, bool, (size_t)cores);
    if (!executor->group_cores || !seen) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < cores; i++) {
        int32_t core = options->group_cores ? options->group_cores[i] : i;
        if (core < 0 || core >= cores || seen[core])
            return TP_FAIL(
                TPUCL_INVALID_CONFIG,
                "replica groups name core %d %s; each of the cores 0 to %d belongs to one "
                "group",
                core, core < 0 || core >= cores ? "out of range" : "twice", cores - 1);
        seen[core] = true;
        executor->group_cores[i] = core;
    }
    return TPUCL_OK;
}

/* Sites in device order, and in each device in group order; records are numbered the same way. */
static tpucl_status make_sites(tp_executor *executor)
{
    const tp_core_map *map = executor->map;
    size_t most = (size_t)map->device_count * (size_t)executor->group_count;
    executor->sites = TP_ARENA_NEW_ARRAY(executor->arena, tp_site, most);
    executor->uses = TP_ARENA_NEW_ARRAY(executor->arena, bool, most);
    executor->record_of_core =
        TP_ARENA_NEW_ARRAY(executor->arena, int32_t, (size_t)map->core_count);
    executor->records_on = TP_ARENA_NEW_ARRAY(executor->arena, int32_t, (size_t)map->device_count);
    if (!executor->sites || !executor->uses || !executor->record_of_core || !executor->records_on)
        return TPUCL_OUT_OF_MEMORY;
    for (int32_t d = 0; d < map->device_count; d++)
        for (int32_t g = 0; g < executor->group_count; g++) {
            tp_site site = {.device = d, .group = g, .first_record = executor->records_on[d]};
            site.positions =
                TP_ARENA_NEW_ARRAY(executor->arena, int32_t, (size_t)executor->group_size);
            if (!site.positions) return TPUCL_OUT_OF_MEMORY;
            for (int32_t p = 0; p < executor->group_size; p++) {
                int32_t core = executor->group_cores[g * executor->group_size + p];
                if (map->owner[core] != d) continue;
                executor->record_of_core[core] = executor->records_on[d]++;
                site.positions[site.core_count++] = p;
            }
            if (!site.core_count) continue;
            executor->uses[d * executor->group_count + g] = true;
            executor->sites[executor->site_count++] = site;
        }
    return TPUCL_OK;
}

tpucl_status tp_executor_create(const tp_core_map *map, const tp_executor_options *options,
                                tp_executor **out_executor)
{
    tp_arena *arena = NULL;
    tpucl_status status = TPUCL_OK;
    TP_TRY(tp_arena_create(0, &arena));
    tp_executor *executor = TP_ARENA_NEW(arena, tp_executor);
    if (!executor) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    executor->map = map;
    executor->arena = arena;
    if (options) executor->options = *options;
    TP_TRY_GOTO(status, copy_groups(executor), done);
    TP_TRY_GOTO(status, make_sites(executor), done);
    TP_TRY_GOTO(status,
                tp_variables_create(map, executor->group_count, executor->uses,
                                    executor->options.seed, &executor->variables),
                done);
    *out_executor = executor;
done:
    if (status != TPUCL_OK) tp_executor_destroy(executor);
    return status;
}

void tp_executor_destroy(tp_executor *executor)
{
    if (!executor) return;
    for (int32_t d = 0; d < executor->map->device_count; d++)
        if (tp_device_finish(executor->map->devices[d]) != TPUCL_OK)
            break; /* nothing left to wait for */
    tp_variables_destroy(executor->variables);
    tp_arena_destroy(executor->arena);
}

tp_variables *tp_executor_variables(tp_executor *executor)
{
    return executor->variables;
}

tpucl_status tp_executor_finish(tp_executor *executor)
{
    for (int32_t d = 0; d < executor->map->device_count; d++)
        TP_TRY(tp_device_finish(executor->map->devices[d]));
    return TPUCL_OK;
}

int32_t tp_executor_infeed_depth(const tp_executor *executor)
{
    return executor->options.infeed_depth ? executor->options.infeed_depth : TP_INFEED_DEPTH;
}

int32_t tp_executor_results_depth(const tp_executor *executor)
{
    return executor->options.results_depth ? executor->options.results_depth : TP_RESULTS_DEPTH;
}

static tpucl_status allocate_tables(tp_loaded *loaded)
{
    tp_executor *executor = loaded->executor;
    tp_arena *arena = loaded->arena;
    size_t devices = (size_t)executor->map->device_count, groups = (size_t)executor->group_count;
    size_t depth = (size_t)loaded->infeed_depth, results = (size_t)loaded->results_depth;
    loaded->devices = TP_ARENA_NEW_ARRAY(arena, tp_bound_device, devices);
    loaded->sites = TP_ARENA_NEW_ARRAY(arena, tp_bound_site, (size_t)executor->site_count);
    loaded->plans = TP_ARENA_NEW_ARRAY(arena, const tp_tree_plan *, groups);
    loaded->feeds = TP_ARENA_NEW_ARRAY(arena, tp_feed, depth);
    loaded->result_records = TP_ARENA_NEW_ARRAY(
        arena, unsigned char, results *groups * loaded->programs[0]->result_bytes + 1);
    loaded->result_done = TP_ARENA_NEW_ARRAY(arena, tp_event *, results * groups);
    loaded->result_tickets = TP_ARENA_NEW_ARRAY(arena, uint64_t, results);
    loaded->slot_tickets = TP_ARENA_NEW_ARRAY(arena, uint64_t, depth);
    loaded->variable_index =
        TP_ARENA_NEW_ARRAY(arena, int32_t, (size_t)loaded->programs[0]->variable_count + 1);
    if (!loaded->devices || !loaded->sites || !loaded->plans || !loaded->feeds ||
        !loaded->result_records || !loaded->result_done || !loaded->result_tickets ||
        !loaded->slot_tickets || !loaded->variable_index)
        return TPUCL_OUT_OF_MEMORY;
    for (size_t d = 0; d < devices; d++) {
        loaded->devices[d].staging = TP_ARENA_NEW_ARRAY(arena, tp_staging *, depth);
        loaded->devices[d].slot_done = TP_ARENA_NEW_ARRAY(arena, tp_event *, depth);
        if (!loaded->devices[d].staging || !loaded->devices[d].slot_done)
            return TPUCL_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < depth; i++)
        loaded->feeds[i] = (tp_feed){loaded, (int32_t)i, false};
    for (int32_t i = 0; i < executor->site_count; i++) {
        loaded->sites[i].site = &executor->sites[i];
        loaded->sites[i].program = loaded->programs[executor->sites[i].device];
    }
    return TPUCL_OK;
}

static tpucl_status plan_trees(tp_loaded *loaded)
{
    tp_executor *executor = loaded->executor;
    int32_t devices = executor->map->device_count, size = executor->group_size;
    int32_t *owner = TP_ARENA_NEW_ARRAY(loaded->arena, int32_t, (size_t)size);
    int32_t *limit = TP_ARENA_NEW_ARRAY(loaded->arena, int32_t, (size_t)devices);
    if (!owner || !limit) return TPUCL_OUT_OF_MEMORY;
    for (int32_t d = 0; d < devices; d++) {
        tp_bound_device *bound = &loaded->devices[d];
        size_t kernels = (size_t)bound->wave_cores + 1;
        limit[d] = bound->wave_cores;
        bound->sum_partial = TP_ARENA_NEW_ARRAY(loaded->arena, tp_device_kernel *, kernels);
        bound->sum_final = TP_ARENA_NEW_ARRAY(loaded->arena, tp_device_kernel *, kernels);
        if (!bound->sum_partial || !bound->sum_final) return TPUCL_OUT_OF_MEMORY;
    }
    for (int32_t g = 0; g < executor->group_count; g++) {
        const int32_t *cores = executor->group_cores + g * size;
        for (int32_t p = 0; p < size; p++)
            owner[p] = executor->map->owner[cores[p]];
        TP_TRY(tp_tree_plan_create(owner, cores, size, devices, limit, loaded->arena,
                                   &loaded->plans[g]));
        if (loaded->plans[g]->leaf_count > loaded->exchange_count)
            loaded->exchange_count = loaded->plans[g]->leaf_count;
    }
    return TPUCL_OK;
}

uint64_t tp_program_largest_reduce(const tp_program *program)
{
    uint64_t most = 0;
    for (int32_t i = 0; i < program->segment_count; i++)
        if (program->segments[i].has_reduce && program->segments[i].reduce.elems > most)
            most = program->segments[i].reduce.elems;
    return most;
}

static tpucl_status allocate_sums(tp_loaded *loaded)
{
    loaded->most_sum_elems = tp_program_largest_reduce(loaded->programs[0]);
    for (int32_t i = 0; i < loaded->executor->site_count; i++) {
        tp_bound_site *bound = &loaded->sites[i];
        bound->partial_count =
            loaded->plans[bound->site->group]->devices[bound->site->device].slot_count;
        bound->partials =
            TP_ARENA_NEW_ARRAY(loaded->arena, tp_buffer *, (size_t)bound->partial_count + 1);
        if (!bound->partials) return TPUCL_OUT_OF_MEMORY;
    }
    size_t count = (size_t)loaded->exchange_count;
    loaded->exchange = TP_ARENA_NEW_ARRAY(loaded->arena, float *, count + 1);
    loaded->exchange_events = TP_ARENA_NEW_ARRAY(loaded->arena, tp_event *, count + 1);
    if (!loaded->exchange || !loaded->exchange_events) return TPUCL_OUT_OF_MEMORY;
    const uint64_t elems = loaded->most_sum_elems;
    for (size_t i = 0; count > 1 && elems && i < count; i++) {
        loaded->exchange[i] = tp_alloc_aligned(elems * sizeof(float), 64);
        if (!loaded->exchange[i])
            return TP_FAIL(TPUCL_OUT_OF_MEMORY,
                           "no memory for %llu bytes of sums that cross devices",
                           (unsigned long long)(elems * sizeof(float)));
    }
    return TPUCL_OK;
}

/* A program may be written for replica groups of one size. */
static tpucl_status check_groups(const tp_loaded *loaded)
{
    const int32_t cores = loaded->programs[0]->group_cores;
    if (cores == 0 || cores == loaded->executor->group_size) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "program '%s' is for replica groups of %d cores, they have %d",
                   loaded->programs[0]->name, cores, loaded->executor->group_size);
}

static tpucl_status load(tp_loaded *loaded, tp_build_callback callback, void *user)
{
    tp_executor *executor = loaded->executor;
    const uint64_t begin_ns = tp_clock_now_ns();
    TP_TRY(check_groups(loaded));
    TP_TRY(tp_memory_check(loaded));
    TP_TRY(allocate_tables(loaded));
    for (int32_t i = 0; i < loaded->programs[0]->variable_count; i++)
        TP_TRY(tp_variables_add(executor->variables, &loaded->programs[0]->variables[i],
                                &loaded->variable_index[i]));
    TP_TRY(tp_memory_allocate(loaded));
    TP_TRY(plan_trees(loaded));
    TP_TRY(allocate_sums(loaded));
    loaded->memory_seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
    return tp_bind(loaded, callback, user);
}

tpucl_status tp_executor_load(tp_executor *executor, const tp_program *const *programs,
                              tp_build_callback callback, void *user, tp_loaded **out_loaded)
{
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    size_t devices = (size_t)executor->map->device_count;
    tp_loaded *loaded = TP_ARENA_NEW(arena, tp_loaded);
    const tp_program **copies = TP_ARENA_NEW_ARRAY(arena, const tp_program *, devices);
    if (!loaded || !copies) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    memcpy(copies, programs, devices * sizeof *copies);
    loaded->executor = executor;
    loaded->arena = arena;
    loaded->programs = copies;
    loaded->infeed_depth = tp_executor_infeed_depth(executor);
    loaded->results_depth = tp_executor_results_depth(executor);
    tpucl_status status = load(loaded, callback, user);
    if (status != TPUCL_OK) {
        tp_error_trail(__func__, __FILE__, __LINE__);
        tpucl_error error; /* releasing may fail itself */
        tp_error_capture(&error);
        tp_executor_unload(loaded);
        tp_error_restore(&error);
        return status;
    }
    *out_loaded = loaded;
    return TPUCL_OK;
}

static void release_device(tp_loaded *loaded, tp_bound_device *bound)
{
    tp_device_kernel_destroy(bound->add);
    tp_device_kernel_destroy(bound->flush);
    for (int32_t i = 0; i <= bound->wave_cores; i++) {
        if (bound->sum_partial) tp_device_kernel_destroy(bound->sum_partial[i]);
        if (bound->sum_final) tp_device_kernel_destroy(bound->sum_final[i]);
    }
    for (int32_t i = 0; i < loaded->infeed_depth; i++) {
        if (bound->staging) tp_staging_destroy(bound->staging[i]);
        if (bound->slot_done) tp_event_release(bound->slot_done[i]);
    }
    tp_slab_destroy(bound->core);
    tp_buffer_release(bound->input);
    tp_buffer_release(bound->output);
    tp_buffer_release(bound->result);
    tp_buffer_release(bound->constants);
}

void tp_executor_unload(tp_loaded *loaded)
{
    if (!loaded) return;
    tp_executor *executor = loaded->executor;
    tpucl_status ignored = tp_executor_finish(executor); /* a failed device has nothing in flight */
    (void)ignored;
    if (loaded->sites) tp_bind_release(loaded);
    for (int32_t i = 0; loaded->sites && i < executor->site_count; i++) {
        tp_slab_destroy(loaded->sites[i].replicated);
        for (int32_t k = 0; loaded->sites[i].partials && k < loaded->sites[i].partial_count; k++)
            tp_buffer_release(loaded->sites[i].partials[k]);
    }
    for (int32_t i = 0; loaded->result_done && i < loaded->results_depth * executor->group_count;
         i++)
        tp_event_release(loaded->result_done[i]);
    for (int32_t i = 0; loaded->exchange && i < loaded->exchange_count; i++)
        tp_free(loaded->exchange[i]);
    for (int32_t d = 0; loaded->devices && d < executor->map->device_count; d++)
        release_device(loaded, &loaded->devices[d]);
    tp_arena_destroy(loaded->arena);
}

void tp_loaded_get_times(const tp_loaded *loaded, tp_loaded_times *out_times)
{
    *out_times = loaded->times;
}
