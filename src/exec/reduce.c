/* SPDX-License-Identifier: Apache-2.0
 * Cross-core sums: inside a wave by a kernel, between waves by adding partial sums, between devices on the
 * host. All three follow one tree (comm/tree_plan.h); partial sums are never flushed, the result always is.
 */
#include <stdio.h>
#include "core/clock.h"
#include "exec/executor_internal.h"
#include "kernel/source.h"
#include "num/exact_math.h"

enum { GROUP_ITEMS = 256 };

static tpucl_status make_kernel(tp_loaded *loaded, int32_t device, const char *options,
                                const char *entry, tp_device_kernel **out_kernel)
{
    const char *text = NULL, *expanded = NULL;
    tp_device_program *program = NULL;
    TP_TRY(tp_kernel_source_find("comm/cross_core.cl", loaded->arena, &text));
    TP_TRY(tp_kernel_source_expand(text, loaded->arena, &expanded));
    const tp_device_program_source source = {"cross_core", expanded, options};
    TP_TRY(tp_device_program_build(loaded->executor->map->devices[device], &source, &program));
    tpucl_status status = tp_device_kernel_create(program, entry, out_kernel);
    tp_device_program_release(program);
    return status;
}

static tpucl_status set_range(tp_device_kernel *kernel, uint32_t index, tp_buffer *buffer,
                              uint64_t offset_elems)
{
    TP_TRY(tp_device_kernel_set_buffer(kernel, index, buffer));
    return tp_device_kernel_set_bytes(kernel, index + 1, &offset_elems, sizeof offset_elems);
}

static tpucl_status enqueue_elements(tp_device_kernel *kernel, uint64_t elems)
{
    tp_device_kernel_limits limits;
    size_t local[3] = {GROUP_ITEMS, 1, 1};
    tp_device_kernel_get_limits(kernel, &limits);
    if (limits.max_work_group_size < GROUP_ITEMS) local[0] = limits.max_work_group_size;
    size_t global[3] = {(elems + local[0] - 1) / local[0] * local[0], 1, 1};
    return tp_device_kernel_enqueue(kernel, global, local, NULL, 0, NULL);
}

/* A slot's own buffer. Made when first needed, for the largest sum of the program: all of its reduces share the slots. */
static tpucl_status partial_buffer(tp_loaded *loaded, tp_bound_site *bound, int32_t slot,
                                   tp_buffer **out_buffer)
{
    if (slot >= bound->partial_count)
        return TP_FAIL(TPUCL_INTERNAL, "partial sum %d of %d", slot, bound->partial_count);
    if (!bound->partials[slot])
        TP_TRY(tp_buffer_create(tp_site_device(loaded->executor, bound->site),
                                loaded->most_sum_elems * sizeof(float), "partial sums",
                                &bound->partials[slot]));
    *out_buffer = bound->partials[slot];
    return TPUCL_OK;
}

static void final_range(const tp_bound_site *bound, const tp_program_reduce *reduce,
                        tp_buffer **out_buffer, uint64_t *out_offset)
{
    *out_buffer = tp_slab_segment(bound->replicated, (uint32_t)reduce->replicated_slab_segment);
    *out_offset = reduce->replicated_offset_bytes / sizeof(float);
}

/* Where a slot's partial sum is, in elements of *out_buffer. A device that has the whole group keeps the first where the
 * result will be. */
static tpucl_status find_slot(tp_loaded *loaded, tp_bound_site *bound,
                              const tp_program_reduce *reduce, int32_t slot, tp_buffer **out_buffer,
                              uint64_t *out_offset)
{
    const bool is_whole = loaded->plans[bound->site->group]->leaf_count == 1;
    *out_offset = 0;
    if (!is_whole || slot > 0) return partial_buffer(loaded, bound, slot, out_buffer);
    final_range(bound, reduce, out_buffer, out_offset);
    return TPUCL_OK;
}

tpucl_status tp_reduce_place(tp_loaded *loaded, tp_bound_site *bound,
                             const tp_program_segment *segment, const tp_tree_op *op, tp_wave *wave)
{
    uint64_t offset = 0;
    wave->sum_is_result = op->count == loaded->executor->group_size;
    if (wave->sum_is_result)
        final_range(bound, &segment->reduce, &wave->sum, &offset);
    else
        TP_TRY(find_slot(loaded, bound, &segment->reduce, op->slot, &wave->sum, &offset));
    wave->sum_shift_elems = offset - segment->reduce.replicated_offset_bytes / sizeof(float);
    return TPUCL_OK;
}

tpucl_status tp_reduce_wave(tp_loaded *loaded, tp_bound_site *bound,
                            const tp_program_segment *segment, const tp_tree_op *op,
                            const tp_wave *wave)
{
    const tp_program_reduce *reduce = &segment->reduce;
    tp_bound_device *device = &loaded->devices[bound->site->device];
    const bool is_final = wave->sum_is_result;
    if (reduce->core_elems == 0) return TPUCL_OK;
    tp_device_kernel **kernel = &(is_final ? device->sum_final : device->sum_partial)[op->count];
    if (!*kernel) {
        char options[64];
        snprintf(options, sizeof options, "-DCORES=%d -DFLUSH=%d", op->count, is_final);
        TP_TRY(make_kernel(loaded, bound->site->device, options, "cross_core_sum", kernel));
    }
    uint64_t stride = bound->program->core_bytes[reduce->core_slab_segment] / sizeof(float);
    uint64_t src_offset = reduce->core_offset_bytes / sizeof(float);
    if (bound->program->is_resident) src_offset += (uint64_t)wave->local_begin * stride;
    TP_TRY(set_range(*kernel, 0, tp_slab_segment(device->core, (uint32_t)reduce->core_slab_segment),
                     src_offset));
    TP_TRY(tp_device_kernel_set_bytes(*kernel, 2, &stride, sizeof stride));
    TP_TRY(set_range(*kernel, 3, wave->sum,
                     reduce->replicated_offset_bytes / sizeof(float) + wave->sum_shift_elems));
    TP_TRY(tp_device_kernel_set_bytes(*kernel, 5, &reduce->core_elems, sizeof reduce->core_elems));
    return enqueue_elements(*kernel, reduce->core_elems);
}

static tpucl_status flush_into_place(tp_loaded *loaded, tp_bound_site *bound,
                                     const tp_program_reduce *reduce, tp_buffer *sum,
                                     uint64_t offset)
{
    tp_bound_device *device = &loaded->devices[bound->site->device];
    tp_buffer *dst = NULL;
    uint64_t dst_offset = 0;
    if (!device->flush)
        TP_TRY(make_kernel(loaded, bound->site->device, "", "cross_core_flush", &device->flush));
    final_range(bound, reduce, &dst, &dst_offset);
    TP_TRY(set_range(device->flush, 0, sum, offset));
    TP_TRY(set_range(device->flush, 2, dst, dst_offset));
    TP_TRY(tp_device_kernel_set_bytes(device->flush, 4, &reduce->elems, sizeof reduce->elems));
    return enqueue_elements(device->flush, reduce->elems);
}

tpucl_status tp_reduce_add(tp_loaded *loaded, tp_bound_site *bound,
                           const tp_program_segment *segment, const tp_tree_op *op)
{
    const tp_program_reduce *reduce = &segment->reduce;
    tp_bound_device *device = &loaded->devices[bound->site->device];
    tp_buffer *left = NULL, *right = NULL;
    uint64_t left_offset = 0, right_offset = 0;
    if (!device->add)
        TP_TRY(make_kernel(loaded, bound->site->device, "", "cross_core_add", &device->add));
    TP_TRY(find_slot(loaded, bound, reduce, op->slot, &left, &left_offset));
    TP_TRY(find_slot(loaded, bound, reduce, op->slot + 1, &right, &right_offset));
    TP_TRY(set_range(device->add, 0, left, left_offset));
    TP_TRY(set_range(device->add, 2, right, right_offset));
    TP_TRY(tp_device_kernel_set_bytes(device->add, 4, &reduce->elems, sizeof reduce->elems));
    TP_TRY(enqueue_elements(device->add, reduce->elems));
    if (op->count == loaded->executor->group_size)
        return flush_into_place(loaded, bound, reduce, left, left_offset);
    return TPUCL_OK;
}

static tp_bound_site *find_site(tp_loaded *loaded, int32_t device, int32_t group)
{
    for (int32_t i = 0; i < loaded->executor->site_count; i++)
        if (loaded->sites[i].site->device == device && loaded->sites[i].site->group == group)
            return &loaded->sites[i];
    return NULL;
}

/* Starts a download of every leaf; the devices go on in parallel until the wait. */
static tpucl_status download_leaves(tp_loaded *loaded, const tp_tree_plan *plan, int32_t group,
                                    uint64_t elems, tp_event **events)
{
    for (int32_t i = 0; i < plan->leaf_count; i++) {
        const tp_tree_leaf *leaf = &plan->leaves[i];
        tp_device *device = loaded->executor->map->devices[leaf->device];
        tp_buffer *sum = NULL;
        tp_event *ready = NULL;
        TP_TRY(partial_buffer(loaded, find_site(loaded, leaf->device, group), leaf->slot, &sum));
        TP_TRY(tp_lane_mark(device, TP_LANE_COMPUTE, &ready));
        tpucl_status status = tp_buffer_download(sum, 0, loaded->exchange[i], elems * sizeof(float),
                                                 TP_LANE_DOWNLOAD, false, &ready, 1, &events[i]);
        tp_event_release(ready);
        if (status == TPUCL_OK) status = tp_lane_flush(device, TP_LANE_COMPUTE);
        if (status == TPUCL_OK) status = tp_lane_flush(device, TP_LANE_DOWNLOAD);
        TP_TRY(status);
    }
    return TPUCL_OK;
}

static tpucl_status upload_sum(tp_loaded *loaded, int32_t group, const tp_program_segment *segment,
                               const float *sum)
{
    for (int32_t i = 0; i < loaded->executor->site_count; i++) {
        tp_bound_site *bound = &loaded->sites[i];
        if (bound->site->group != group) continue;
        tp_buffer *dst = NULL;
        uint64_t offset = 0;
        final_range(bound, &segment->reduce, &dst, &offset);
        TP_TRY(tp_buffer_upload(dst, offset * sizeof(float), sum,
                                segment->reduce.elems * sizeof(float), TP_LANE_COMPUTE, true, NULL,
                                0, NULL));
    }
    return TPUCL_OK;
}

tpucl_status tp_reduce_exchange(tp_loaded *loaded, int32_t group, const tp_program_segment *segment)
{
    const tp_tree_plan *plan = loaded->plans[group];
    if (plan->leaf_count == 1) return TPUCL_OK;
    uint64_t begin_ns = tp_clock_now_ns(), elems = segment->reduce.elems;
    tp_event **events = loaded->exchange_events;
    tpucl_status status = download_leaves(loaded, plan, group, elems, events);
    for (int32_t i = 0; i < plan->leaf_count;
         i++) { /* one by one: each device has its own context */
        if (status == TPUCL_OK) status = tp_event_wait(&events[i], 1);
        tp_event_release(events[i]);
        events[i] = NULL;
    }
    TP_TRY(status);
    tp_tree_combine_leaves(plan, loaded->exchange, elems);
    for (uint64_t i = 0; i < elems; i++)
        loaded->exchange[0][i] = tp_flush(loaded->exchange[0][i]);
    TP_TRY(upload_sum(loaded, group, segment, loaded->exchange[0]));
    loaded->times.reduce_ns += tp_clock_now_ns() - begin_ns;
    return TPUCL_OK;
}
