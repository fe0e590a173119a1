/* SPDX-License-Identifier: Apache-2.0
 * Checks a program against its own rules before anything runs. What it finds is a mistake of ours,
 * so every failure is TPUCL_INTERNAL; the message names launch and buffer.
 *
 * Liveness is computed anew from the launches: the planner's own numbers are compared with it, so
 * that a planner which forgets a use is caught.
 */
#include "program/program.h"

#include <inttypes.h>
#include "core/alloc.h"

typedef struct live_range {
    int32_t first, last; /* launch indexes; -1, -1: unused */
    bool is_written_first;
} live_range;

static bool is_slab(tp_space space)
{
    return space == TP_SPACE_CORE || space == TP_SPACE_REPLICATED;
}

/* Bytes that the buffer's offset may range over. */
static uint64_t space_bytes(const tp_program *program, const tp_program_buffer *buffer)
{
    switch (buffer->space) {
    case TP_SPACE_CORE:
        return program->core_bytes[buffer->slab_segment];
    case TP_SPACE_REPLICATED:
        return program->replicated_bytes[buffer->slab_segment];
    case TP_SPACE_VARIABLE:
        return program->variables[buffer->variable].bytes;
    case TP_SPACE_INPUT:
        return program->input_bytes;
    case TP_SPACE_OUTPUT:
        return program->output_bytes;
    case TP_SPACE_RESULT:
        return program->result_bytes;
    case TP_SPACE_CONSTANT:
        return program->constant_bytes;
    }
    return 0;
}

/* A view lies inside its buffer in all turns, and where it says that it begins. */
static tpucl_status verify_view(const tp_program *program, int32_t index)
{
    const tp_program_buffer *buffer = &program->buffers[index];
    const tp_program_view *view = &buffer->view;
    if (view->of < 0 || view->of >= program->buffer_count ||
        program->buffers[view->of].view.is_view)
        return TP_FAIL(TPUCL_INTERNAL,
                       "buffer %" PRId32 " '%s' is a view of %" PRId32
                       ", which is no buffer with memory",
                       index, buffer->name, view->of);
    const tp_program_buffer *base = &program->buffers[view->of];
    if (buffer->space != base->space || buffer->slab_segment != base->slab_segment ||
        buffer->variable != base->variable ||
        buffer->offset_bytes != base->offset_bytes + view->offset_bytes)
        return TP_FAIL(TPUCL_INTERNAL, "view %" PRId32 " '%s' is not where its buffer '%s' is",
                       index, buffer->name, base->name);
    const int64_t turns = view->period > 0 ? view->period : view->turns;
    const int64_t far = view->stride_bytes * (turns > 0 ? turns - 1 : 0);
    const int64_t low = (int64_t)view->offset_bytes + (far < 0 ? far : 0);
    const int64_t high = (int64_t)(view->offset_bytes + buffer->bytes) + (far > 0 ? far : 0);
    if (low >= 0 && high <= (int64_t)base->bytes &&
        view->stride_bytes % (int64_t)tp_dtype_size(buffer->dtype) == 0)
        return TPUCL_OK;
    return TP_FAIL(TPUCL_INTERNAL,
                   "view %" PRId32 " '%s' covers bytes %" PRId64 " to %" PRId64
                   " of '%s', which has "
                   "%" PRIu64,
                   index, buffer->name, low, high, base->name, base->bytes);
}

static tpucl_status verify_place(const tp_program *program, int32_t index)
{
    const tp_program_buffer *buffer = &program->buffers[index];
    if ((unsigned)buffer->space > TP_SPACE_CONSTANT)
        return TP_FAIL(TPUCL_INTERNAL, "buffer %" PRId32 " '%s' is in no space", index,
                       buffer->name);
    const int32_t segments = buffer->space == TP_SPACE_CORE ? program->core_slab_segments
                                                            : program->replicated_slab_segments;
    if (is_slab(buffer->space) && (buffer->slab_segment < 0 || buffer->slab_segment >= segments))
        return TP_FAIL(TPUCL_INTERNAL,
                       "buffer %" PRId32 " '%s' is in slab segment %" PRId32 " of %" PRId32, index,
                       buffer->name, buffer->slab_segment, segments);
    if (buffer->space == TP_SPACE_VARIABLE &&
        (buffer->variable < 0 || buffer->variable >= program->variable_count))
        return TP_FAIL(TPUCL_INTERNAL,
                       "buffer %" PRId32 " '%s' is of variable %" PRId32 ", there are %" PRId32,
                       index, buffer->name, buffer->variable, program->variable_count);
    if (buffer->view.is_view) return verify_view(program, index);
    const uint64_t limit = space_bytes(program, buffer);
    if (buffer->offset_bytes % TP_PROGRAM_ALIGN_BYTES != 0 || buffer->bytes > limit ||
        buffer->offset_bytes > limit - buffer->bytes)
        return TP_FAIL(TPUCL_INTERNAL,
                       "buffer %" PRId32 " '%s' (%" PRIu64 " bytes at %" PRIu64
                       ") is outside of its space of %" PRIu64 " bytes or not aligned to %d",
                       index, buffer->name, buffer->bytes, buffer->offset_bytes, limit,
                       TP_PROGRAM_ALIGN_BYTES);
    return TPUCL_OK;
}

static tpucl_status verify_arg(const tp_program *program, const tp_launch *launch,
                               const tp_kernel_arg *arg)
{
    if (arg->tensor < 0 || arg->tensor >= program->buffer_count)
        return TP_FAIL(TPUCL_INTERNAL, "launch '%s' names buffer %" PRId32 " of %" PRId32,
                       launch->label, arg->tensor, program->buffer_count);
    const tp_program_buffer *buffer = &program->buffers[arg->tensor];
    if (arg->offset_elems > buffer->bytes / tp_dtype_size(buffer->dtype))
        return TP_FAIL(TPUCL_INTERNAL,
                       "launch '%s' starts %" PRIu64 " elements into buffer %" PRId32
                       " '%s' of %" PRIu64 " bytes",
                       launch->label, arg->offset_elems, arg->tensor, buffer->name, buffer->bytes);
    const bool is_fixed = buffer->space == TP_SPACE_INPUT || buffer->space == TP_SPACE_CONSTANT ||
                          (launch->is_per_core && (buffer->space == TP_SPACE_VARIABLE ||
                                                   buffer->space == TP_SPACE_REPLICATED ||
                                                   buffer->space == TP_SPACE_RESULT));
    if (arg->kind == TP_ARG_SUM &&
        (!launch->sums_cores || !launch->is_per_core || program->most_cores < 1 ||
         buffer->space != TP_SPACE_REPLICATED))
        return TP_FAIL(TPUCL_INTERNAL,
                       "launch '%s' sums over cores into buffer %" PRId32
                       " '%s'; expected one that stands once per device",
                       launch->label, arg->tensor, buffer->name);
    if (arg->kind == TP_ARG_TENSOR && arg->is_written && is_fixed)
        return TP_FAIL(TPUCL_INTERNAL,
                       "launch '%s' writes buffer %" PRId32 " '%s', which it may not",
                       launch->label, arg->tensor, buffer->name);
    if (!launch->is_per_core &&
        (buffer->space == TP_SPACE_CORE || buffer->space == TP_SPACE_INPUT ||
         buffer->space == TP_SPACE_OUTPUT))
        return TP_FAIL(TPUCL_INTERNAL,
                       "launch '%s' runs once per device but uses buffer %" PRId32
                       " '%s' of a core",
                       launch->label, arg->tensor, buffer->name);
    return TPUCL_OK;
}

static void touch(live_range *range, int32_t launch, bool is_written)
{
    if (range->first < 0 || launch < range->first) {
        range->first = launch;
        range->is_written_first = is_written;
    } else if (launch == range->first) {
        range->is_written_first |= is_written;
    }
    if (launch > range->last) range->last = launch;
}

/* A reduction reads its core range after the segment's last launch and writes the replicated one. */
static void touch_reduce(const tp_program *program, const tp_program_segment *segment,
                         live_range *ranges)
{
    const tp_program_reduce *reduce = &segment->reduce;
    /* Without launches it comes in front of what is there next. */
    const int32_t last =
        segment->first_launch + (segment->launch_count > 0 ? segment->launch_count - 1 : 0);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        const bool is_source = buffer->space == TP_SPACE_CORE;
        if (!is_slab(buffer->space) || buffer->view.is_view) continue;
        if (buffer->slab_segment !=
            (is_source ? reduce->core_slab_segment : reduce->replicated_slab_segment))
            continue;
        const uint64_t start =
            is_source ? reduce->core_offset_bytes : reduce->replicated_offset_bytes;
        if (buffer->offset_bytes < start ||
            buffer->offset_bytes >= start + (is_source ? reduce->core_elems : reduce->elems) * 4)
            continue;
        /* Others may have the same bytes at another time: only those that are planned to be live
         * here take part. */
        if (buffer->first_use > last || buffer->last_use < last) continue;
        touch(&ranges[i], last, !is_source);
    }
}

static tpucl_status verify_launches(const tp_program *program, live_range *ranges)
{
    int32_t next = 0;
    for (int32_t s = 0; s < program->segment_count; s++) {
        const tp_program_segment *segment = &program->segments[s];
        if (segment->first_launch != next)
            return TP_FAIL(TPUCL_INTERNAL,
                           "segment %" PRId32 " starts at launch %" PRId32 ", expected %" PRId32, s,
                           segment->first_launch, next);
        next += segment->launch_count;
        if (next > program->launch_count)
            return TP_FAIL(TPUCL_INTERNAL,
                           "segment %" PRId32 " ends at launch %" PRId32 " of %" PRId32, s, next,
                           program->launch_count);
        for (int32_t i = segment->first_launch; i < next; i++) {
            const tp_launch *launch = &program->launches[i];
            if (launch->is_per_core != segment->is_per_core)
                return TP_FAIL(TPUCL_INTERNAL, "launch '%s' is in a segment of the other kind",
                               launch->label);
            for (int32_t a = 0; a < launch->arg_count; a++) {
                const tp_kernel_arg *arg = &launch->args[a];
                if (!tp_arg_is_tensor(arg)) continue;
                TP_TRY(verify_arg(program, launch, arg));
                touch(&ranges[tp_program_base(program, arg->tensor)], i, arg->is_written);
            }
        }
        if (segment->has_reduce) touch_reduce(program, segment, ranges);
    }
    if (next != program->launch_count)
        return TP_FAIL(TPUCL_INTERNAL, "%" PRId32 " launches are in no segment",
                       program->launch_count - next);
    return TPUCL_OK;
}

static tpucl_status verify_liveness(const tp_program *program, const live_range *ranges)
{
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        if (!is_slab(buffer->space) || ranges[i].first < 0) continue;
        if (!ranges[i].is_written_first)
            return TP_FAIL(TPUCL_INTERNAL,
                           "launch '%s' reads buffer %" PRId32 " '%s' before anything wrote it",
                           program->launches[ranges[i].first].label, i, buffer->name);
        if (ranges[i].first < buffer->first_use || ranges[i].last > buffer->last_use)
            return TP_FAIL(TPUCL_INTERNAL,
                           "buffer %" PRId32 " '%s' is used in launches %" PRId32 "..%" PRId32
                           " but planned for %" PRId32 "..%" PRId32,
                           i, buffer->name, ranges[i].first, ranges[i].last, buffer->first_use,
                           buffer->last_use);
    }
    return TPUCL_OK;
}

static tpucl_status verify_loop(const tp_program *program, const tp_program_loop *loop,
                                const live_range *ranges)
{
    const int32_t last = loop->first_launch + loop->launch_count - 1;
    for (int32_t i = loop->first_launch; i <= last; i++)
        for (int32_t a = 0; a < program->launches[i].arg_count; a++) {
            const tp_kernel_arg *arg = &program->launches[i].args[a];
            if (!tp_arg_is_tensor(arg)) continue;
            const int32_t index = tp_program_base(program, arg->tensor);
            const tp_program_buffer *buffer = &program->buffers[index];
            /* What one turn makes and uses up may share memory with the rest of the turn. */
            const bool is_local = index == arg->tensor &&
                                  ranges[index].first >= loop->first_launch &&
                                  ranges[index].last <= last;
            if (is_local || !is_slab(buffer->space) ||
                (buffer->first_use <= loop->first_launch && buffer->last_use >= last))
                continue;
            return TP_FAIL(TPUCL_INTERNAL,
                           "buffer %" PRId32 " '%s' outlives the turns of a loop of launches "
                           "%" PRId32 "..%" PRId32 " but is planned for %" PRId32 "..%" PRId32,
                           index, buffer->name, loop->first_launch, last, buffer->first_use,
                           buffer->last_use);
        }
    return TPUCL_OK;
}

/* In one segment each, one behind the other. */
static tpucl_status verify_loops(const tp_program *program, const live_range *ranges)
{
    int32_t end = 0;
    for (int32_t i = 0; i < program->loop_count; i++) {
        const tp_program_loop *loop = &program->loops[i];
        bool is_inside = false;
        for (int32_t s = 0; s < program->segment_count; s++) {
            const tp_program_segment *segment = &program->segments[s];
            is_inside = is_inside || (loop->first_launch >= segment->first_launch &&
                                      loop->first_launch + loop->launch_count <=
                                          segment->first_launch + segment->launch_count);
        }
        if (!is_inside || loop->first_launch < end || loop->launch_count < 1 || loop->turns < 1)
            return TP_FAIL(TPUCL_INTERNAL,
                           "loop %" PRId32 " of launches %" PRId32 "+%" PRId32 ", %" PRId64
                           " turns, is empty, overlaps another or leaves its segment",
                           i, loop->first_launch, loop->launch_count, loop->turns);
        end = loop->first_launch + loop->launch_count;
        TP_TRY(verify_loop(program, loop, ranges));
    }
    return TPUCL_OK;
}

/* Do the two share bytes at the same time? Records (input, output, result) live as a whole;
 * constants may be shared. */
static bool do_collide(const tp_program_buffer *a, const tp_program_buffer *b)
{
    if (a->view.is_view || b->view.is_view) return false; /* their buffers are asked */
    if (a->space != b->space || a->space == TP_SPACE_CONSTANT || a->space == TP_SPACE_VARIABLE)
        return false;
    if (is_slab(a->space)) {
        if (a->slab_segment != b->slab_segment || a->first_use < 0 || b->first_use < 0)
            return false;
        if (a->last_use < b->first_use || b->last_use < a->first_use) return false;
    }
    return a->offset_bytes < b->offset_bytes + b->bytes &&
           b->offset_bytes < a->offset_bytes + a->bytes;
}

static tpucl_status verify_overlap(const tp_program *program)
{
    for (int32_t i = 0; i < program->buffer_count; i++)
        for (int32_t j = i + 1; j < program->buffer_count; j++) {
            const tp_program_buffer *a = &program->buffers[i], *b = &program->buffers[j];
            if (!do_collide(a, b)) continue;
            return TP_FAIL(TPUCL_INTERNAL,
                           "buffers %" PRId32 " '%s' and %" PRId32
                           " '%s' are live at once and overlap at %" PRIu64 " and %" PRIu64,
                           i, a->name, j, b->name, a->offset_bytes, b->offset_bytes);
        }
    return TPUCL_OK;
}

static tpucl_status verify_ports(const tp_program *program, const char *kind,
                                 const tp_program_port *ports, int32_t count, tp_space space)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t buffer = ports[i].buffer;
        if (buffer < 0 || buffer >= program->buffer_count ||
            program->buffers[buffer].space != space)
            return TP_FAIL(TPUCL_INTERNAL, "%s '%s' is not a buffer of that space", kind,
                           ports[i].name);
    }
    return TPUCL_OK;
}

static tpucl_status verify_all(const tp_program *program, live_range *ranges)
{
    TP_TRY(verify_launches(program, ranges));
    TP_TRY(verify_liveness(program, ranges));
    TP_TRY(verify_loops(program, ranges));
    TP_TRY(verify_overlap(program));
    TP_TRY(verify_ports(program, "input", program->inputs, program->input_count, TP_SPACE_INPUT));
    TP_TRY(
        verify_ports(program, "output", program->outputs, program->output_count, TP_SPACE_OUTPUT));
    return verify_ports(program, "result", program->results, program->result_count,
                        TP_SPACE_RESULT);
}

tpucl_status tp_program_verify(const tp_program *program)
{
    for (int32_t i = 0; i < program->buffer_count; i++)
        TP_TRY(verify_place(program, i));
    live_range *ranges = TP_NEW_ARRAY(live_range, (size_t)program->buffer_count);
    if (!ranges) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < program->buffer_count; i++)
        ranges[i] = (live_range){.first = -1, .last = -1};
    const tpucl_status status = verify_all(program, ranges);
    tp_free(ranges);
    return status;
}
