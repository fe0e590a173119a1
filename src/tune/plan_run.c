/* SPDX-License-Identifier: Apache-2.0
 * See plan_run.h.
 */
#include "tune/plan_run.h"

#include <string.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "device/buffer.h"
#include "exec/launch_args.h"
#include "kernel/source.h"

/* Behind each part; a multiple of every element size and of a cache line. */
#define GAP_BYTES 256

static size_t tensor_bytes(const tp_plan_tensor *tensor)
{
    return (tensor->lead_elements + tensor->parts * tensor->pitch_elements) * tensor->element_bytes;
}

tpucl_status tp_plan_tensor_create(tp_device *device, const char *label, size_t element_bytes,
                                   size_t elements, size_t parts, size_t lead_elements,
                                   tp_plan_tensor *out_tensor)
{
    const unsigned char pattern = TP_GUARD_PATTERN;
    *out_tensor = (tp_plan_tensor){.element_bytes = element_bytes,
                                   .elements = elements,
                                   .parts = parts,
                                   .lead_elements = lead_elements,
                                   .pitch_elements = elements + GAP_BYTES / element_bytes};
    const size_t bytes = tensor_bytes(out_tensor);
    TP_TRY(tp_buffer_create(device, bytes, label, &out_tensor->buffer));
    TP_TRY(
        tp_buffer_fill(out_tensor->buffer, 0, bytes, &pattern, 1, TP_LANE_COMPUTE, NULL, 0, NULL));
    return TPUCL_OK;
}

void tp_plan_tensor_deinit(tp_plan_tensor *tensor)
{
    tp_buffer_release(tensor->buffer);
    tensor->buffer = NULL;
}

static size_t part_offset(const tp_plan_tensor *tensor, size_t part)
{
    return (tensor->lead_elements + part * tensor->pitch_elements) * tensor->element_bytes;
}

tpucl_status tp_plan_tensor_write(tp_plan_tensor *tensor, size_t part, const void *elements)
{
    return tp_buffer_write(tensor->buffer, part_offset(tensor, part), elements,
                           tensor->elements * tensor->element_bytes);
}

tpucl_status tp_plan_tensor_read(tp_plan_tensor *tensor, size_t part, void *out_elements)
{
    return tp_buffer_read(tensor->buffer, part_offset(tensor, part), out_elements,
                          tensor->elements * tensor->element_bytes);
}

/* `count` bytes from `begin` on, at most GAP_BYTES. */
static tpucl_status check_gap(tp_plan_tensor *tensor, size_t begin, size_t count, const char *where,
                              size_t part)
{
    unsigned char gap[GAP_BYTES];
    if (count == 0) return TPUCL_OK;
    TP_TRY(tp_buffer_read(tensor->buffer, begin, gap, count));
    for (size_t i = 0; i < count; i++)
        if (gap[i] != TP_GUARD_PATTERN)
            return TP_FAIL(TPUCL_NOT_EXACT, "'%s': %s part %zu byte %zu of a gap was overwritten",
                           tp_buffer_label(tensor->buffer), where, part, i);
    return TPUCL_OK;
}

tpucl_status tp_plan_tensor_check(tp_plan_tensor *tensor)
{
    const size_t lead_bytes = tensor->lead_elements * tensor->element_bytes;
    TP_TRY(tp_buffer_check_guards(tensor->buffer));
    TP_TRY(check_gap(tensor, 0, lead_bytes < GAP_BYTES ? lead_bytes : GAP_BYTES, "in front of", 0));
    for (size_t part = 0; part < tensor->parts; part++)
        TP_TRY(check_gap(tensor,
                         part_offset(tensor, part) + tensor->elements * tensor->element_bytes,
                         GAP_BYTES, "behind", part));
    return TPUCL_OK;
}

/* ---- launches ---- */

typedef struct bound {
    const tp_launch *launch;
    tp_device_kernel *kernel;
    size_t global[3];
} bound;

struct tp_plan_run {
    tp_device *device;
    tp_plan_tensor *tensors;
    int32_t count, cores;
    bound *items;
};

/* From one core's part to the next; 0 for what stands once. */
static uint64_t core_stride(const tp_plan_tensor *tensor)
{
    return tensor->parts > 1 ? tensor->pitch_elements : 0;
}

static tpucl_status place(void *user, const tp_kernel_arg *arg, uint32_t offset_index,
                          tp_tensor_place *out_place)
{
    const tp_plan_tensor *tensor = &((tp_plan_run *)user)->tensors[arg->tensor];
    (void)offset_index;
    *out_place = (tp_tensor_place){tensor->buffer, tensor->lead_elements, core_stride(tensor)};
    return TPUCL_OK;
}

static tpucl_status bind(tp_plan_run *run, const tp_launch *launch, tp_arena *arena, bound *out)
{
    tp_device_program *program = NULL;
    tpucl_status status = TPUCL_OK;
    const char *source = NULL;
    out->launch = launch;
    if (launch->kind == TP_LAUNCH_CLBLAST_SGEMM) return TPUCL_OK;
    memcpy(out->global, launch->global, sizeof out->global);
    if (launch->is_per_core && !launch->sums_cores) out->global[2] *= (size_t)run->cores;

    TP_TRY(tp_kernel_source_expand(launch->source, arena, &source));
    const tp_device_program_source text = {launch->label, source, launch->options};
    TP_TRY(tp_device_program_build(run->device, &text, &program));
    TP_TRY_GOTO(status, tp_device_kernel_create(program, launch->entry, &out->kernel), done);
    tp_launch_indexes indexes;
    const tp_tensor_placer placer = {place, run};
    TP_TRY_GOTO(status, tp_launch_set_args(out->kernel, launch, 0, &placer, &indexes), done);
    if (indexes.cores >= 0) {
        const uint32_t cores = (uint32_t)run->cores;
        TP_TRY_GOTO(
            status,
            tp_device_kernel_set_bytes(out->kernel, (uint32_t)indexes.cores, &cores, sizeof cores),
            done);
    }
done:
    tp_device_program_release(program);
    return status;
}

tpucl_status tp_plan_run_create(tp_device *device, const tp_launch *launches, int32_t count,
                                tp_plan_tensor *tensors, int32_t cores, tp_plan_run **out_run)
{
    tpucl_status status = TPUCL_OK;
    tp_arena *arena = NULL;
    tp_plan_run *run = tp_alloc_zero(sizeof *run);
    if (run == NULL) return TPUCL_OUT_OF_MEMORY;
    *run = (tp_plan_run){device, tensors, count, cores, NULL};
    run->items = tp_alloc_array((size_t)count, sizeof *run->items);
    if (run->items == NULL) {
        status = TPUCL_OUT_OF_MEMORY;
        goto done;
    }
    TP_TRY_GOTO(status, tp_arena_create(0, &arena), done);
    for (int32_t i = 0; i < count; i++)
        TP_TRY_GOTO(status, bind(run, &launches[i], arena, &run->items[i]), done);
    *out_run = run;
    run = NULL;
done:
    tp_arena_destroy(arena);
    tp_plan_run_destroy(run);
    return status;
}

void tp_plan_run_destroy(tp_plan_run *run)
{
    if (run == NULL) return;
    for (int32_t i = 0; run->items != NULL && i < run->count; i++)
        tp_device_kernel_destroy(run->items[i].kernel);
    tp_free(run->items);
    tp_free(run);
}

static tpucl_status enqueue_library(tp_plan_run *run, const tp_launch *launch)
{
    tp_tensor_place places[3];
    for (int i = 0; i < 3; i++)
        TP_TRY(place(run, &launch->args[i], 0, &places[i]));
    return tp_launch_library(run->device, launch, launch->is_per_core ? run->cores : 1, places);
}

tpucl_status tp_plan_run_enqueue(tp_plan_run *run, int32_t first, int32_t last)
{
    for (int32_t i = first; i < last; i++) {
        const bound *item = &run->items[i];
        if (item->launch->kind == TP_LAUNCH_CLBLAST_SGEMM)
            TP_TRY(enqueue_library(run, item->launch));
        else
            TP_TRY(tp_device_kernel_enqueue(item->kernel, item->global, item->launch->local, NULL,
                                            0, NULL));
    }
    return TPUCL_OK;
}
