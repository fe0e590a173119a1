/* SPDX-License-Identifier: Apache-2.0
 * Enqueues the launches of a segment for one wave: the hot path of the host. Only arguments that changed
 * are set again.
 */
#include "core/clock.h"
#include "exec/executor_internal.h"

static uint64_t moving_index(const tp_moving_arg *arg, const tp_loaded *loaded,
                             const tp_bound_site *bound, const tp_wave *wave)
{
    const tp_site *site = bound->site;
    uint64_t record = (uint64_t)(site->first_record + wave->local_begin);
    switch (arg->space) {
    case TP_SPACE_CORE: /* resident: the slab holds all cores of the site */
        return (uint64_t)wave->local_begin;
    case TP_SPACE_RESULT:
        return (uint64_t)(wave->result_slot * loaded->executor->group_count + site->group);
    default: /* INPUT, OUTPUT */
        return (uint64_t)wave->infeed_slot * (uint64_t)loaded->executor->records_on[site->device] +
               record;
    }
}

static uint64_t moving_offset(const tp_moving_arg *arg, const tp_loaded *loaded,
                              const tp_bound_site *bound, const tp_wave *wave)
{
    uint64_t offset = arg->base_elems;
    if (arg->stride_elems) offset += arg->stride_elems * moving_index(arg, loaded, bound, wave);
    if (arg->view)
        offset +=
            (uint64_t)(tp_program_view_shift(arg->view, wave->turn) / (int64_t)arg->elem_bytes);
    return offset;
}

static tpucl_status set_word(tp_device_kernel *kernel, int32_t index, uint32_t word)
{
    if (index < 0) return TPUCL_OK;
    return tp_device_kernel_set_bytes(kernel, (uint32_t)index, &word, sizeof word);
}

static tpucl_status set_moving(tp_loaded *loaded, tp_bound_site *bound, tp_bound_launch *launch,
                               const tp_wave *wave)
{
    for (int32_t i = 0; i < launch->moving_count; i++) {
        tp_moving_arg *arg = &launch->moving[i];
        uint64_t value = moving_offset(arg, loaded, bound, wave);
        if (arg->is_set && arg->last == value) continue;
        TP_TRY(tp_device_kernel_set_bytes(launch->kernel, arg->cl_index, &value, sizeof value));
        arg->last = value;
        arg->is_set = true;
    }
    TP_TRY(set_word(launch->kernel, launch->indexes.core_base, wave->core_base));
    TP_TRY(set_word(launch->kernel, launch->indexes.core_step, wave->core_step));
    TP_TRY(set_word(launch->kernel, launch->indexes.position, wave->position));
    TP_TRY(set_word(launch->kernel, launch->indexes.cores, (uint32_t)wave->count));
    if (launch->indexes.sum >= 0)
        TP_TRY(tp_launch_set_sum(launch->kernel, launch->indexes.sum, wave->sum,
                                 launch->sum_offset_elems + wave->sum_shift_elems,
                                 wave->sum_is_result));
    TP_TRY(set_word(launch->kernel, launch->indexes.step, wave->step));
    return TPUCL_OK;
}

static tpucl_status run_library(tp_loaded *loaded, tp_bound_site *bound, tp_bound_launch *launch,
                                int32_t cores, const tp_wave *wave)
{
    tp_device *device = tp_site_device(loaded->executor, bound->site);
    for (int32_t i = 0; i < launch->moving_count; i++) {
        const tp_moving_arg *arg = &launch->moving[i];
        launch->places[arg->cl_index].offset_elems = moving_offset(arg, loaded, bound, wave);
    }
    return tp_launch_library(device, launch->launch, cores, launch->places);
}

static tpucl_status enqueue(tp_loaded *loaded, tp_bound_site *bound, tp_bound_launch *launch,
                            int32_t cores, const tp_wave *wave)
{
    if (launch->launch->kind == TP_LAUNCH_CLBLAST_SGEMM)
        return run_library(loaded, bound, launch, cores, wave);
    TP_TRY(set_moving(loaded, bound, launch, wave));
    const size_t *global = launch->launch->global;
    size_t grid[3] = {global[0], global[1],
                      global[2] * (size_t)(launch->launch->sums_cores ? 1 : cores)};
    tpucl_status status =
        tp_device_kernel_enqueue(launch->kernel, grid, launch->launch->local, NULL, 0, NULL);
    if (status != TPUCL_OK)
        tp_error_note("launch '%s' of program '%s'", launch->launch->label, bound->program->name);
    return status;
}

static tpucl_status run_launch(tp_loaded *loaded, tp_bound_site *bound, tp_bound_launch *launch,
                               const tp_wave *wave)
{
    const int32_t cores = launch->launch->is_per_core ? wave->count : 1;
    if (!loaded->is_measured) return enqueue(loaded, bound, launch, cores, wave);
    tp_device *device = tp_site_device(loaded->executor, bound->site);
    TP_TRY(tp_device_finish(device));
    const uint64_t begin_ns = tp_clock_now_ns();
    TP_TRY(enqueue(loaded, bound, launch, cores, wave));
    TP_TRY(tp_device_finish(device));
    launch->total_ns += tp_clock_now_ns() - begin_ns;
    launch->runs++;
    launch->core_runs += (uint64_t)cores;
    return TPUCL_OK;
}

/* How many launches from `first` on are turned together, and how often. */
static int32_t range_at(const tp_program *program, int32_t first, int64_t *out_turns)
{
    const tp_program_loop *loop = tp_program_loop_at(program, first);
    *out_turns = loop ? loop->turns : 1;
    return loop ? loop->launch_count : 1;
}

tpucl_status tp_run_segment(tp_loaded *loaded, tp_bound_site *bound,
                            const tp_program_segment *segment, const tp_wave *wave)
{
    const int32_t end = segment->first_launch + segment->launch_count;
    for (int32_t first = segment->first_launch, count; first < end; first += count) {
        tp_wave now = *wave;
        int64_t turns;
        count = range_at(bound->program, first, &turns);
        for (now.turn = 0; now.turn < turns; now.turn++)
            for (int32_t i = 0; i < count; i++)
                TP_TRY(run_launch(loaded, bound, &bound->launches[first + i], &now));
    }
    return TPUCL_OK;
}
