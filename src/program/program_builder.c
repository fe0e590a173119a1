/* SPDX-License-Identifier: Apache-2.0
 * Growing arrays live on the heap while the builder works and are copied into the arena at the end,
 * so that a finished program is one arena without slack.
 */
#include "program/program_builder.h"

#include <string.h>
#include "core/array.h"

TP_ARRAY_DEFINE(buffer_array, tp_program_buffer)
TP_ARRAY_DEFINE(launch_array, tp_launch)
TP_ARRAY_DEFINE(segment_array, tp_program_segment)
TP_ARRAY_DEFINE(loop_array, tp_program_loop)
TP_ARRAY_DEFINE(variable_array, tp_program_variable)
TP_ARRAY_DEFINE(port_array, tp_program_port)
TP_ARRAY_DEFINE(byte_array, unsigned char)
TP_ARRAY_DEFINE(text_array, const char *)

typedef struct constant_range {
    uint64_t offset, bytes;
} constant_range;
TP_ARRAY_DEFINE(range_array, constant_range)

struct tp_program_builder {
    tp_program *program; /* its array pointers follow the arrays below */
    buffer_array buffers;
    launch_array launches;
    segment_array segments;
    loop_array loops;
    variable_array variables;
    port_array ports[3];
    byte_array constants;
    range_array constant_ranges;
    text_array sources;
};

static void sync_arrays(tp_program_builder *builder)
{
    tp_program *program = builder->program;
    program->buffers = builder->buffers.items;
    program->buffer_count = (int32_t)builder->buffers.count;
    program->launches = builder->launches.items;
    program->launch_count = (int32_t)builder->launches.count;
    program->segments = builder->segments.items;
    program->segment_count = (int32_t)builder->segments.count;
    program->loops = builder->loops.items;
    program->loop_count = (int32_t)builder->loops.count;
    program->variables = builder->variables.items;
    program->variable_count = (int32_t)builder->variables.count;
    program->inputs = builder->ports[TP_PORT_INPUT].items;
    program->input_count = (int32_t)builder->ports[TP_PORT_INPUT].count;
    program->outputs = builder->ports[TP_PORT_OUTPUT].items;
    program->output_count = (int32_t)builder->ports[TP_PORT_OUTPUT].count;
    program->results = builder->ports[TP_PORT_RESULT].items;
    program->result_count = (int32_t)builder->ports[TP_PORT_RESULT].count;
    program->constants = builder->constants.items;
    program->constant_bytes = builder->constants.count;
}

static void deinit_arrays(tp_program_builder *builder)
{
    buffer_array_deinit(&builder->buffers);
    launch_array_deinit(&builder->launches);
    segment_array_deinit(&builder->segments);
    loop_array_deinit(&builder->loops);
    variable_array_deinit(&builder->variables);
    for (int i = 0; i < 3; i++)
        port_array_deinit(&builder->ports[i]);
    byte_array_deinit(&builder->constants);
    range_array_deinit(&builder->constant_ranges);
    text_array_deinit(&builder->sources);
}

tpucl_status tp_program_builder_create(const char *name, tp_program_builder **out_builder)
{
    *out_builder = NULL;
    tp_arena *arena;
    TP_TRY(tp_arena_create(0, &arena));
    tp_program_builder *builder = TP_NEW(tp_program_builder);
    tp_program *program = TP_ARENA_NEW(arena, tp_program);
    const char *own_name = tp_arena_strdup(arena, name);
    if (!builder || !program || !own_name) {
        tp_arena_destroy(arena);
        tp_free(builder);
        return TPUCL_OUT_OF_MEMORY;
    }
    program->arena = arena;
    program->name = own_name;
    program->is_exact = true;
    builder->program = program;
    *out_builder = builder;
    return TPUCL_OK;
}

void tp_program_builder_destroy(tp_program_builder *builder)
{
    if (!builder) return;
    tp_program_destroy(builder->program);
    deinit_arrays(builder);
    tp_free(builder);
}

tp_program *tp_program_builder_program(tp_program_builder *builder)
{
    return builder->program;
}

static const char *copy_text(tp_program_builder *builder, const char *text)
{
    return tp_arena_strdup(builder->program->arena, text ? text : "");
}

tpucl_status tp_program_builder_add_buffer(tp_program_builder *builder,
                                           const tp_program_buffer *buffer, int32_t *out_index)
{
    tp_program_buffer copy = *buffer;
    copy.name = copy_text(builder, buffer->name);
    if (!copy.name) return TPUCL_OUT_OF_MEMORY;
    if (copy.bytes == 0) copy.bytes = (uint64_t)tp_shape_bytes(&copy.shape, copy.dtype);
    copy.first_use = copy.last_use = -1;
    TP_TRY(buffer_array_push(&builder->buffers, copy));
    sync_arrays(builder);
    *out_index = builder->program->buffer_count - 1;
    return TPUCL_OK;
}

tpucl_status tp_program_builder_add_variable(tp_program_builder *builder,
                                             const tp_program_variable *variable,
                                             int32_t *out_index)
{
    tp_program_variable copy = *variable;
    copy.name = copy_text(builder, variable->name);
    if (!copy.name) return TPUCL_OUT_OF_MEMORY;
    copy.bytes = (uint64_t)tp_shape_bytes(&copy.shape, copy.dtype);
    TP_TRY(variable_array_push(&builder->variables, copy));
    sync_arrays(builder);
    *out_index = builder->program->variable_count - 1;
    return TPUCL_OK;
}

tpucl_status tp_program_builder_add_constant(tp_program_builder *builder, const void *data,
                                             uint64_t bytes, uint64_t *out_offset_bytes)
{
    for (size_t i = 0; i < builder->constant_ranges.count; i++) {
        const constant_range range = builder->constant_ranges.items[i];
        if (range.bytes != bytes) continue;
        if (memcmp(builder->constants.items + range.offset, data, bytes) != 0) continue;
        *out_offset_bytes = range.offset;
        return TPUCL_OK;
    }
    const constant_range range = {.offset = builder->constants.count, .bytes = bytes};
    TP_TRY(range_array_push(&builder->constant_ranges, range));
    TP_TRY(byte_array_append(&builder->constants, data, bytes));
    while (builder->constants.count % TP_PROGRAM_ALIGN_BYTES != 0)
        TP_TRY(byte_array_push(&builder->constants, 0));
    sync_arrays(builder);
    *out_offset_bytes = range.offset;
    return TPUCL_OK;
}

tpucl_status tp_program_builder_begin_segment(tp_program_builder *builder, bool is_per_core)
{
    const tp_program_segment segment = {.is_per_core = is_per_core,
                                        .first_launch = (int32_t)builder->launches.count};
    TP_TRY(segment_array_push(&builder->segments, segment));
    sync_arrays(builder);
    return TPUCL_OK;
}

/* The one copy of `source`. */
static tpucl_status intern_source(tp_program_builder *builder, const char *source,
                                  const char **out_source)
{
    for (size_t i = 0; i < builder->sources.count; i++) {
        *out_source = builder->sources.items[i];
        if (strcmp(*out_source, source) == 0) return TPUCL_OK;
    }
    *out_source = copy_text(builder, source);
    if (!*out_source) return TPUCL_OUT_OF_MEMORY;
    return text_array_push(&builder->sources, *out_source);
}

tpucl_status tp_program_builder_add_launch(tp_program_builder *builder, const tp_launch *launch)
{
    if (builder->segments.count == 0)
        return TP_FAIL(TPUCL_INTERNAL, "launch '%s' is outside of every segment", launch->label);
    tp_launch copy = *launch;
    TP_TRY(intern_source(builder, launch->source ? launch->source : "", &copy.source));
    copy.label = copy_text(builder, launch->label);
    copy.options = copy_text(builder, launch->options);
    copy.entry = copy_text(builder, launch->entry);
    tp_kernel_arg *args =
        TP_ARENA_NEW_ARRAY(builder->program->arena, tp_kernel_arg, (size_t)launch->arg_count);
    if (!copy.label || !copy.options || !copy.entry || (!args && launch->arg_count > 0))
        return TPUCL_OUT_OF_MEMORY;
    if (launch->arg_count > 0) memcpy(args, launch->args, (size_t)launch->arg_count * sizeof *args);
    copy.args = args;
    TP_TRY(launch_array_push(&builder->launches, copy));
    builder->segments.items[builder->segments.count - 1].launch_count++;
    sync_arrays(builder);
    return TPUCL_OK;
}

tpucl_status tp_program_builder_add_loop(tp_program_builder *builder, int32_t first, int32_t count,
                                         int64_t turns)
{
    if (builder->segments.count == 0)
        return TP_FAIL(TPUCL_INTERNAL, "a loop is outside of every segment");
    const tp_program_segment *segment = &builder->segments.items[builder->segments.count - 1];
    const tp_program_loop loop = {
        .first_launch = segment->first_launch + first, .launch_count = count, .turns = turns};
    TP_TRY(loop_array_push(&builder->loops, loop));
    sync_arrays(builder);
    return TPUCL_OK;
}

tpucl_status tp_program_builder_add_port(tp_program_builder *builder, tp_port_kind kind,
                                         const char *name, int32_t buffer)
{
    const tp_program_port port = {.name = copy_text(builder, name), .buffer = buffer};
    if (!port.name) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(port_array_push(&builder->ports[kind], port));
    sync_arrays(builder);
    return TPUCL_OK;
}

/* A copy in the arena, never NULL but for lack of memory. */
static void *move_array(tp_arena *arena, const void *from, size_t count, size_t size)
{
    void *to = tp_arena_alloc_array(arena, count > 0 ? count : 1, size);
    if (to && count > 0) memcpy(to, from, count * size);
    return to;
}

static void drop_empty_segments(tp_program_builder *builder)
{
    size_t kept = 0;
    for (size_t i = 0; i < builder->segments.count; i++) {
        const tp_program_segment *segment = &builder->segments.items[i];
        if (segment->launch_count > 0 || segment->has_reduce)
            builder->segments.items[kept++] = *segment;
    }
    builder->segments.count = kept;
}

tpucl_status tp_program_builder_finish(tp_program_builder *builder, tp_program **out_program)
{
    *out_program = NULL;
    drop_empty_segments(builder);
    sync_arrays(builder);
    tp_program *program = builder->program;
    tp_arena *arena = program->arena;
    program->buffers =
        move_array(arena, program->buffers, builder->buffers.count, sizeof *program->buffers);
    program->launches =
        move_array(arena, program->launches, builder->launches.count, sizeof *program->launches);
    program->segments =
        move_array(arena, program->segments, builder->segments.count, sizeof *program->segments);
    program->loops =
        move_array(arena, program->loops, builder->loops.count, sizeof *program->loops);
    program->variables =
        move_array(arena, program->variables, builder->variables.count, sizeof *program->variables);
    program->inputs = move_array(arena, program->inputs, builder->ports[TP_PORT_INPUT].count,
                                 sizeof *program->inputs);
    program->outputs = move_array(arena, program->outputs, builder->ports[TP_PORT_OUTPUT].count,
                                  sizeof *program->outputs);
    program->results = move_array(arena, program->results, builder->ports[TP_PORT_RESULT].count,
                                  sizeof *program->results);
    program->constants = move_array(arena, program->constants, builder->constants.count, 1);
    if (!program->buffers || !program->launches || !program->segments || !program->loops ||
        !program->variables || !program->inputs || !program->outputs || !program->results ||
        !program->constants) {
        tp_program_builder_destroy(builder);
        return TPUCL_OUT_OF_MEMORY;
    }
    deinit_arrays(builder);
    tp_free(builder);
    *out_program = program;
    return TPUCL_OK;
}
