/* SPDX-License-Identifier: Apache-2.0
 * One step over all sites: feed, segments wave by wave, cross-core sums, results on their way back. Nothing
 * here waits for a device, except for a free infeed slot and where sums cross devices.
 */
#include "core/clock.h"
#include "exec/executor_internal.h"
#include "num/flush.h"

tpucl_status tp_loaded_acquire(tp_loaded *loaded, tp_feed **out_feed)
{
    tp_feed *feed = &loaded->feeds[loaded->submitted % (uint64_t)loaded->infeed_depth];
    if (feed->is_acquired)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "an infeed slot is acquired already; submit it before the next");
    uint64_t begin_ns = tp_clock_now_ns();
    for (int32_t d = 0; d < loaded->executor->map->device_count; d++) {
        tp_event **done = &loaded->devices[d].slot_done[feed->slot];
        if (!*done) continue;
        TP_TRY(tp_event_wait(done, 1));
        tp_event_release(*done);
        *done = NULL;
    }
    loaded->times.wait_ns += tp_clock_now_ns() - begin_ns;
    feed->is_acquired = true;
    *out_feed = feed;
    return TPUCL_OK;
}

void *tp_feed_record(const tp_feed *feed, int32_t core)
{
    const tp_loaded *loaded = feed->loaded;
    int32_t device = loaded->executor->map->owner[core];
    char *records = tp_staging_data(loaded->devices[device].staging[feed->slot]);
    return records +
           (uint64_t)loaded->executor->record_of_core[core] * loaded->programs[device]->input_bytes;
}

static void flush_records(tp_loaded *loaded, int32_t device, int32_t slot)
{
    const tp_program *program = loaded->programs[device];
    char *record = tp_staging_data(loaded->devices[device].staging[slot]);
    for (int32_t r = 0; r < loaded->executor->records_on[device];
         r++, record += program->input_bytes)
        for (int32_t i = 0; i < program->input_count; i++) {
            const tp_program_buffer *buffer = &program->buffers[program->inputs[i].buffer];
            tp_flush_array(buffer->dtype, record + buffer->offset_bytes,
                           buffer->bytes / tp_dtype_size(buffer->dtype));
        }
}

/* Records to the device on the upload lane; compute waits for them on the device. The slot is free: its
 * last step has finished. */
static tpucl_status upload_records(tp_loaded *loaded, int32_t slot)
{
    const tp_executor *executor = loaded->executor;
    for (int32_t d = 0; d < executor->map->device_count; d++) {
        uint64_t bytes = loaded->programs[d]->input_bytes * (uint64_t)executor->records_on[d];
        if (!bytes) continue;
        tp_bound_device *bound = &loaded->devices[d];
        tp_device *device = executor->map->devices[d];
        tp_event *arrived = NULL;
        flush_records(loaded, d, slot);
        TP_TRY(tp_buffer_upload(bound->input, (uint64_t)slot * bytes,
                                tp_staging_data(bound->staging[slot]), bytes, TP_LANE_UPLOAD, false,
                                NULL, 0, &arrived));
        tpucl_status status = tp_lane_flush(device, TP_LANE_UPLOAD);
        if (status == TPUCL_OK) status = tp_lane_wait(device, TP_LANE_COMPUTE, &arrived, 1);
        tp_event_release(arrived);
        TP_TRY(status);
    }
    return TPUCL_OK;
}

/* Position in the group to index among the site's cores. */
static int32_t local_of_position(const tp_site *site, int32_t position)
{
    int32_t low = 0, high = site->core_count;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (site->positions[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tpucl_status run_waves(tp_loaded *loaded, tp_bound_site *bound,
                              const tp_program_segment *segment, tp_wave wave)
{
    const tp_executor *executor = loaded->executor;
    const tp_site *site = bound->site;
    const tp_tree_device *plan = &loaded->plans[site->group]->devices[site->device];
    const int32_t *ids = executor->group_cores + site->group * executor->group_size;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const tp_tree_op *op = &plan->ops[i];
        if (op->kind == TP_TREE_ADD) {
            if (segment->has_reduce) TP_TRY(tp_reduce_add(loaded, bound, segment, op));
            continue;
        }
        wave.local_begin = local_of_position(site, op->begin);
        wave.count = op->count;
        wave.core_base = (uint32_t)ids[op->begin];
        wave.position = (uint32_t)op->begin;
        wave.core_step = op->count > 1 ? (uint32_t)(ids[op->begin + 1] - ids[op->begin]) : 1;
        if (segment->has_reduce) TP_TRY(tp_reduce_place(loaded, bound, segment, op, &wave));
        TP_TRY(tp_run_segment(loaded, bound, segment, &wave));
        if (segment->has_reduce) TP_TRY(tp_reduce_wave(loaded, bound, segment, op, &wave));
    }
    return TPUCL_OK;
}

static tpucl_status run_segments(tp_loaded *loaded, const tp_wave *wave)
{
    const tp_executor *executor = loaded->executor;
    for (int32_t s = 0; s < loaded->programs[0]->segment_count; s++) {
        for (int32_t i = 0; i < executor->site_count; i++) {
            tp_bound_site *bound = &loaded->sites[i];
            const tp_program_segment *segment = &bound->program->segments[s];
            if (segment->is_per_core)
                TP_TRY(run_waves(loaded, bound, segment, *wave));
            else
                TP_TRY(tp_run_segment(loaded, bound, segment, wave));
        }
        if (!loaded->programs[0]->segments[s].has_reduce) continue;
        for (int32_t g = 0; g < executor->group_count; g++)
            TP_TRY(tp_reduce_exchange(loaded, g, &loaded->programs[0]->segments[s]));
    }
    return TPUCL_OK;
}

/* Each group's RESULT record starts its way to the host, from the first site that has it. */
static tpucl_status download_results(tp_loaded *loaded, int32_t slot)
{
    const tp_executor *executor = loaded->executor;
    uint64_t bytes = loaded->programs[0]->result_bytes;
    if (!bytes) return TPUCL_OK;
    for (int32_t g = 0; g < executor->group_count; g++) {
        int32_t device = executor->map->owner[executor->group_cores[g * executor->group_size]];
        uint64_t record = (uint64_t)(slot * executor->group_count + g);
        tp_event *ready = NULL;
        TP_TRY(tp_lane_mark(executor->map->devices[device], TP_LANE_COMPUTE, &ready));
        tpucl_status status = tp_buffer_download(
            loaded->devices[device].result, record * bytes, loaded->result_records + record * bytes,
            bytes, TP_LANE_DOWNLOAD, false, &ready, 1, &loaded->result_done[record]);
        tp_event_release(ready);
        TP_TRY(status);
    }
    return TPUCL_OK;
}

static tpucl_status mark_done(tp_loaded *loaded, int32_t slot)
{
    for (int32_t d = 0; d < loaded->executor->map->device_count; d++) {
        tp_device *device = loaded->executor->map->devices[d];
        TP_TRY(tp_lane_mark(device, TP_LANE_COMPUTE, &loaded->devices[d].slot_done[slot]));
        TP_TRY(tp_lane_flush(device, TP_LANE_COMPUTE));
        TP_TRY(tp_lane_flush(device, TP_LANE_DOWNLOAD));
    }
    return TPUCL_OK;
}

/* A results slot is used again only when its download is over, whether or not anybody asked for it. */
static tpucl_status free_result_slot(tp_loaded *loaded, int32_t slot)
{
    int32_t groups = loaded->executor->group_count;
    for (int32_t g = 0; g < groups; g++) {
        tp_event **done = &loaded->result_done[slot * groups + g];
        if (!*done) continue;
        TP_TRY(tp_event_wait(done, 1));
        tp_event_release(*done);
        *done = NULL;
    }
    return TPUCL_OK;
}

tpucl_status tp_loaded_submit(tp_loaded *loaded, tp_feed *feed, uint32_t step, uint64_t *out_ticket)
{
    if (feed->loaded != loaded || !feed->is_acquired)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "this infeed slot was not acquired from the program "
                                               "that is to run");
    tp_wave wave = {.count = 1,
                    .core_step = 1,
                    .step = step,
                    .infeed_slot = feed->slot,
                    .result_slot = (int32_t)(loaded->submitted % (uint64_t)loaded->results_depth)};
    TP_TRY(free_result_slot(loaded, wave.result_slot));
    uint64_t begin_ns = tp_clock_now_ns();
    feed->is_acquired = false;
    TP_TRY(upload_records(loaded, feed->slot));
    TP_TRY(run_segments(loaded, &wave));
    TP_TRY(download_results(loaded, wave.result_slot));
    TP_TRY(mark_done(loaded, feed->slot));
    loaded->times.enqueue_ns += tp_clock_now_ns() - begin_ns;
    *out_ticket = ++loaded->submitted;
    loaded->result_tickets[wave.result_slot] = *out_ticket;
    loaded->slot_tickets[feed->slot] = *out_ticket;
    return TPUCL_OK;
}

tpucl_status tp_loaded_result(tp_loaded *loaded, uint64_t ticket, int32_t group,
                              const void **out_record)
{
    int32_t slot = (int32_t)((ticket - 1) % (uint64_t)loaded->results_depth);
    if (ticket == 0 || loaded->result_tickets[slot] != ticket)
        return TP_FAIL(
            TPUCL_INVALID_ARGUMENT,
            "the results of step ticket %llu are gone: the newest is %llu and %d are kept",
            (unsigned long long)ticket, (unsigned long long)loaded->submitted,
            loaded->results_depth);
    TP_TRY(free_result_slot(loaded, slot)); /* waits; the record stays until the slot is reused */
    *out_record =
        loaded->result_records + (uint64_t)(slot * loaded->executor->group_count + group) *
                                     loaded->programs[0]->result_bytes;
    return TPUCL_OK;
}

tpucl_status tp_loaded_output(tp_loaded *loaded, uint64_t ticket, int32_t core, void *out_record)
{
    int32_t slot = (int32_t)((ticket - 1) % (uint64_t)loaded->infeed_depth);
    if (ticket == 0 || loaded->slot_tickets[slot] != ticket)
        return TP_FAIL(
            TPUCL_INVALID_ARGUMENT,
            "the outputs of step ticket %llu are gone: the newest is %llu and %d are kept",
            (unsigned long long)ticket, (unsigned long long)loaded->submitted,
            loaded->infeed_depth);
    const tp_executor *executor = loaded->executor;
    int32_t device = executor->map->owner[core];
    uint64_t bytes = loaded->programs[device]->output_bytes;
    uint64_t record = (uint64_t)slot * (uint64_t)executor->records_on[device] +
                      (uint64_t)executor->record_of_core[core];
    return tp_buffer_read(loaded->devices[device].output, record * bytes, out_record, bytes);
}
