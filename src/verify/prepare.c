/* SPDX-License-Identifier: Apache-2.0
 * See prepare.h. What goes wrong here goes wrong again in the check, which says so. */
#include "verify/prepare.h"

#include "compile/compile.h"
#include "core/arena.h"
#include "core/array.h"
#include "kernel/source.h"

TP_ARRAY_DEFINE(source_array, tp_device_program_source)

struct tp_prepare {
    tp_device *device;
    tp_arena *arena;
    source_array sources;
};

tp_prepare *tp_prepare_begin(tp_device *device)
{
    tp_arena *arena = NULL;
    tp_prepare *prepare = NULL;
    if (tp_arena_create(0, &arena) == TPUCL_OK) prepare = TP_ARENA_NEW(arena, tp_prepare);
    if (prepare)
        *prepare = (tp_prepare){.device = device, .arena = arena};
    else
        tp_arena_destroy(arena);
    return prepare;
}

static tpucl_status add(tp_prepare *prepare, const tp_launch *launch)
{
    const char *text = NULL;
    TP_TRY(tp_kernel_source_expand(launch->source, prepare->arena, &text));
    const tp_device_program_source source = {tp_arena_strdup(prepare->arena, launch->label), text,
                                             tp_arena_strdup(prepare->arena, launch->options)};
    if (!source.label || !source.options) return TPUCL_OUT_OF_MEMORY;
    return source_array_push(&prepare->sources, source);
}

void tp_prepare_add_launches(tp_prepare *prepare, const tp_launch *launches, int32_t count)
{
    for (int32_t i = 0; prepare && i < count; i++)
        if (launches[i].kind == TP_LAUNCH_KERNEL && add(prepare, &launches[i]) != TPUCL_OK)
            tp_error_clear();
}

void tp_prepare_add_graph(tp_prepare *prepare, const tp_graph *graph)
{
    tp_program *program = NULL;
    if (!prepare) return;
    const tp_compile_options options = {.caps = tp_device_get_caps(prepare->device),
                                        .name = "verify"};
    if (tp_compile(graph, &options, &program) == TPUCL_OK)
        tp_prepare_add_launches(prepare, program->launches, program->launch_count);
    else
        tp_error_clear();
    tp_program_destroy(program);
}

void tp_prepare_end(tp_prepare *prepare, tp_build_callback callback, void *user)
{
    if (!prepare) return;
    tp_device_programs_prepare(prepare->device, prepare->sources.items,
                               (uint32_t)prepare->sources.count, callback, user);
    source_array_deinit(&prepare->sources);
    tp_arena_destroy(prepare->arena);
}
