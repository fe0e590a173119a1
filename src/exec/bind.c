/* SPDX-License-Identifier: Apache-2.0
 * Binds a program to sites: builds its kernels, presets every argument that never changes, and remembers
 * the few that move with the step or the wave.
 */
#include <string.h>
#include "exec/executor_internal.h"
#include "kernel/source.h"

/* Where a program's buffer is on this site, and whether that moves with step or wave. */
static tpucl_status place_buffer(tp_loaded *loaded, const tp_bound_site *bound, int32_t index,
                                 tp_tensor_place *out, bool *out_moves)
{
    const tp_program *program = bound->program;
    const tp_program_buffer *buffer = &program->buffers[index];
    tp_bound_device *device = &loaded->devices[bound->site->device];
    uint64_t elem_bytes = tp_dtype_size(buffer->dtype), record = 0;
    *out = (tp_tensor_place){NULL, buffer->offset_bytes / elem_bytes, 0};
    *out_moves = false;
    switch (buffer->space) {
    case TP_SPACE_CORE:
        out->buffer = tp_slab_segment(device->core, (uint32_t)buffer->slab_segment);
        record = program->core_bytes[buffer->slab_segment];
        *out_moves = program->is_resident;
        break;
    case TP_SPACE_REPLICATED:
        out->buffer = tp_slab_segment(bound->replicated, (uint32_t)buffer->slab_segment);
        break;
    case TP_SPACE_VARIABLE:
        out->buffer = tp_variables_buffer(loaded->executor->variables,
                                          loaded->variable_index[buffer->variable],
                                          bound->site->device, bound->site->group);
        break;
    case TP_SPACE_INPUT:
        out->buffer = device->input;
        record = program->input_bytes;
        *out_moves = true;
        break;
    case TP_SPACE_OUTPUT:
        out->buffer = device->output;
        record = program->output_bytes;
        *out_moves = true;
        break;
    case TP_SPACE_RESULT:
        out->buffer = device->result;
        *out_moves = true;
        break;
    case TP_SPACE_CONSTANT:
        out->buffer = device->constants;
        break;
    }
    if (buffer->view.stride_bytes) *out_moves = true;
    out->core_stride_elems = record / elem_bytes;
    if (!out->buffer)
        return TP_FAIL(TPUCL_INTERNAL, "buffer '%s' of program '%s' has no memory", buffer->name,
                       program->name);
    return TPUCL_OK;
}

typedef struct site_placer {
    tp_loaded *loaded;
    tp_bound_site *bound;
    tp_bound_launch *launch;
} site_placer;

/* Notes that the offset of a buffer, at place `out`, is to be set anew before a launch. */
static void add_moving(const site_placer *placer, int32_t index, uint32_t cl_index,
                       const tp_tensor_place *out, uint64_t arg_offset_elems)
{
    const tp_program *program = placer->bound->program;
    const tp_program_buffer *buffer = &program->buffers[index];
    tp_moving_arg moving = {.cl_index = cl_index,
                            .space = buffer->space,
                            .base_elems = out->offset_elems + arg_offset_elems,
                            .stride_elems = out->core_stride_elems,
                            .elem_bytes = tp_dtype_size(buffer->dtype)};
    if (buffer->space == TP_SPACE_RESULT)
        moving.stride_elems = program->result_bytes / moving.elem_bytes;
    if (buffer->space == TP_SPACE_CORE && !program->is_resident) moving.stride_elems = 0;
    if (buffer->view.stride_bytes) moving.view = &buffer->view;
    placer->launch->moving[placer->launch->moving_count++] = moving;
}

static tpucl_status place_arg(void *user, const tp_kernel_arg *arg, uint32_t offset_index,
                              tp_tensor_place *out)
{
    const site_placer *placer = user;
    bool moves = false;
    TP_TRY(place_buffer(placer->loaded, placer->bound, arg->tensor, out, &moves));
    if (arg->kind == TP_ARG_SUM) placer->launch->sum_offset_elems = out->offset_elems;
    if (moves) add_moving(placer, arg->tensor, offset_index, out, arg->offset_elems);
    return TPUCL_OK;
}

/* A library product takes plain offsets: those of its places, which move like a kernel's arguments. */
static tpucl_status bind_gemm(tp_loaded *loaded, tp_bound_site *bound, tp_bound_launch *launch)
{
    const site_placer user = {loaded, bound, launch};
    for (uint32_t i = 0; i < 3; i++) {
        bool moves = false;
        TP_TRY(place_buffer(loaded, bound, launch->launch->args[i].tensor, &launch->places[i],
                            &moves));
        if (moves) add_moving(&user, launch->launch->args[i].tensor, i, &launch->places[i], 0);
    }
    return TPUCL_OK;
}

static tpucl_status bind_launch(tp_loaded *loaded, tp_bound_site *bound, tp_bound_launch *launch,
                                tp_device_program *program)
{
    launch->moving =
        TP_ARENA_NEW_ARRAY(loaded->arena, tp_moving_arg, (size_t)launch->launch->arg_count + 1);
    if (!launch->moving) return TPUCL_OUT_OF_MEMORY;
    if (launch->launch->kind == TP_LAUNCH_CLBLAST_SGEMM) return bind_gemm(loaded, bound, launch);
    TP_TRY(tp_device_kernel_create(program, launch->launch->entry, &launch->kernel));
    site_placer user = {loaded, bound, launch};
    const tp_tensor_placer placer = {place_arg, &user};
    return tp_launch_set_args(launch->kernel, launch->launch, loaded->executor->options.seed,
                              &placer, &launch->indexes);
}

/* The distinct sources of a program; `of_launch[i]` says which one launch i uses. */
static tpucl_status collect_sources(const tp_program *program, tp_arena *arena,
                                    tp_device_program_source *sources, int32_t *of_launch,
                                    uint32_t *out_count)
{
    uint32_t count = 0;
    for (int32_t i = 0; i < program->launch_count; i++) {
        const tp_launch *launch = &program->launches[i];
        if (launch->kind != TP_LAUNCH_KERNEL) continue;
        int32_t found = -1;
        for (int32_t k = 0; k < i && found < 0; k++) {
            const tp_launch *other = &program->launches[k];
            if (other->kind == TP_LAUNCH_KERNEL && strcmp(other->options, launch->options) == 0 &&
                (other->source == launch->source || strcmp(other->source, launch->source) == 0))
                found = of_launch[k];
        }
        if (found < 0) {
            const char *expanded = NULL;
            TP_TRY(tp_kernel_source_expand(launch->source, arena, &expanded));
            sources[count] = (tp_device_program_source){launch->label, expanded, launch->options};
            found = (int32_t)count++;
        }
        of_launch[i] = found;
    }
    *out_count = count;
    return TPUCL_OK;
}

static tpucl_status bind_program(tp_loaded *loaded, int32_t device, tp_build_callback callback,
                                 void *user)
{
    const tp_program *program = loaded->programs[device];
    const size_t launch_count = (size_t)program->launch_count + 1;
    tp_arena *scratch = NULL;
    TP_TRY(tp_arena_create(0, &scratch));
    tpucl_status status = TPUCL_OK;
    uint32_t count = 0;
    tp_device_program_source *sources =
        TP_ARENA_NEW_ARRAY(scratch, tp_device_program_source, launch_count);
    int32_t *of_launch = TP_ARENA_NEW_ARRAY(scratch, int32_t, launch_count);
    tp_device_program **built = TP_ARENA_NEW_ARRAY(scratch, tp_device_program *, launch_count);
    if (!sources || !of_launch || !built) {
        tp_arena_destroy(scratch);
        return TPUCL_OUT_OF_MEMORY;
    }
    TP_TRY_GOTO(status, collect_sources(program, scratch, sources, of_launch, &count), done);
    TP_TRY_GOTO(status,
                tp_device_program_build_many(loaded->executor->map->devices[device], sources, count,
                                             0, callback, user, built),
                done);
    for (int32_t s = 0; s < loaded->executor->site_count; s++) {
        tp_bound_site *bound = &loaded->sites[s];
        if (bound->site->device != device) continue;
        for (int32_t i = 0; i < program->launch_count; i++)
            TP_TRY_GOTO(status,
                        bind_launch(loaded, bound, &bound->launches[i],
                                    program->launches[i].kind == TP_LAUNCH_KERNEL
                                        ? built[of_launch[i]]
                                        : NULL),
                        done);
    }
done:
    for (uint32_t i = 0; i < count; i++)
        tp_device_program_release(built[i]);
    tp_arena_destroy(scratch);
    return status;
}

tpucl_status tp_bind(tp_loaded *loaded, tp_build_callback callback, void *user)
{
    for (int32_t s = 0; s < loaded->executor->site_count; s++) {
        tp_bound_site *bound = &loaded->sites[s];
        bound->launches = TP_ARENA_NEW_ARRAY(loaded->arena, tp_bound_launch,
                                             (size_t)bound->program->launch_count + 1);
        if (!bound->launches) return TPUCL_OUT_OF_MEMORY;
        for (int32_t i = 0; i < bound->program->launch_count; i++)
            bound->launches[i].launch = &bound->program->launches[i];
    }
    for (int32_t d = 0; d < loaded->executor->map->device_count; d++)
        TP_TRY(bind_program(loaded, d, callback, user));
    return TPUCL_OK;
}

void tp_bind_release(tp_loaded *loaded)
{
    for (int32_t s = 0; s < loaded->executor->site_count; s++) {
        tp_bound_site *bound = &loaded->sites[s];
        for (int32_t i = 0; bound->launches && i < bound->program->launch_count; i++)
            tp_device_kernel_destroy(bound->launches[i].kernel);
    }
}
