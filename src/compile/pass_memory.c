/* SPDX-License-Identifier: Apache-2.0
 * Lifetimes to offsets. A buffer lives from the first to the last launch that uses it. Large buffers
 * are placed first, each at the lowest offset where nothing that lives at the same time is in the way
 * (greedy by size: Pisarchyk, Lee: "Efficient Memory Management for Deep Neural Net Inference", 2020);
 * on training graphs this comes close to the peak of what is alive, which is reported beside it.
 *
 * In a loop, what one turn leaves for the next or for those outside lives as long as the loop, and so
 * does what the loop reads from outside; what a turn makes and uses up lives only in between.
 *
 * Buffers that are summed over cores must lie side by side, once in CORE and once in REPLICATED in the
 * same order: each such group is placed as one item.
 */
#include "compile/lower.h"

#include <inttypes.h>
#include <stdlib.h>
#include "core/alloc.h"

typedef struct item {
    int32_t buffer; /* of a group: -1 */
    int32_t group;  /* level + 1 of a group of summed buffers, 0: a single buffer */
    tp_space space;
    uint64_t bytes;
    int32_t first, last;
    int32_t segment;
    uint64_t offset;
} item;
TP_ARRAY_DEFINE(item_list, item)

typedef struct planner {
    tp_program *program;
    const tp_reduce_list *reduces;
    uint64_t max_segment_bytes;
    int32_t *group_of; /* per buffer: level + 1 */
    item_list items;
} planner;

static uint64_t align(uint64_t bytes)
{
    return (bytes + TP_PROGRAM_ALIGN_BYTES - 1) / TP_PROGRAM_ALIGN_BYTES * TP_PROGRAM_ALIGN_BYTES;
}

static bool is_slab(tp_space space)
{
    return space == TP_SPACE_CORE || space == TP_SPACE_REPLICATED;
}

/* ---- lifetimes ---- */

static void touch(tp_program_buffer *buffer, int32_t first, int32_t last)
{
    if (buffer->first_use < 0 || first < buffer->first_use) buffer->first_use = first;
    if (last > buffer->last_use) buffer->last_use = last;
}

static void extend_over_loop(tp_program *program, const tp_program_loop *loop)
{
    const int32_t last = loop->first_launch + loop->launch_count - 1;
    for (int32_t i = loop->first_launch; i <= last; i++)
        for (int32_t a = 0; a < program->launches[i].arg_count; a++) {
            const tp_kernel_arg *arg = &program->launches[i].args[a];
            if (!tp_arg_is_tensor(arg)) continue;
            const int32_t base = tp_program_base(program, arg->tensor);
            tp_program_buffer *buffer = &program->buffers[base];
            if (base != arg->tensor || buffer->first_use < loop->first_launch ||
                buffer->last_use > last)
                touch(buffer, loop->first_launch, last);
        }
}

/* What stands once per device and is read by cores is read again by every wave: it lives to the end of
 * the segment. */
static void find_lifetimes(const planner *p)
{
    tp_program *program = p->program;
    for (int32_t s = 0; s < program->segment_count; s++) {
        const tp_program_segment *segment = &program->segments[s];
        const int32_t end = segment->first_launch + segment->launch_count - 1;
        for (int32_t i = segment->first_launch; i <= end; i++) {
            const tp_launch *launch = &program->launches[i];
            for (int32_t a = 0; a < launch->arg_count; a++) {
                if (!tp_arg_is_tensor(&launch->args[a])) continue;
                tp_program_buffer *buffer =
                    &program->buffers[tp_program_base(program, launch->args[a].tensor)];
                const bool stays = segment->is_per_core && buffer->space == TP_SPACE_REPLICATED;
                touch(buffer, i, stays ? end : i);
            }
        }
    }
    for (size_t r = 0; r < p->reduces->count; r++) {
        const tp_reduce_pair *pair = &p->reduces->items[r];
        const tp_program_segment *segment = &program->segments[2 * pair->level + 1];
        const int32_t start = segment->first_launch > 0 ? segment->first_launch : 0;
        int32_t end = segment->first_launch + segment->launch_count - 1;
        if (end < start) end = start;
        if (pair->core_buffer >= 0) touch(&program->buffers[pair->core_buffer], end, end);
        touch(&program->buffers[pair->replicated_buffer], start, end);
    }
    for (int32_t i = 0; i < program->loop_count; i++)
        extend_over_loop(program, &program->loops[i]);
}

/* ---- items ---- */

static void add_to_group(item *group, const tp_program_buffer *buffer)
{
    group->bytes += align(buffer->bytes);
    if (buffer->first_use < group->first) group->first = buffer->first_use;
    if (buffer->last_use > group->last) group->last = buffer->last_use;
}

/* What launches sum over cores by themselves has no place in CORE. */
static tpucl_status add_groups(planner *p, int32_t level)
{
    item core = {.buffer = -1, .group = level + 1, .space = TP_SPACE_CORE, .first = INT32_MAX};
    item replicated = {
        .buffer = -1, .group = level + 1, .space = TP_SPACE_REPLICATED, .first = INT32_MAX};
    for (size_t r = 0; r < p->reduces->count; r++) {
        const tp_reduce_pair *pair = &p->reduces->items[r];
        if (pair->level != level) continue;
        if (pair->core_buffer >= 0) add_to_group(&core, &p->program->buffers[pair->core_buffer]);
        add_to_group(&replicated, &p->program->buffers[pair->replicated_buffer]);
    }
    if (core.bytes > 0) TP_TRY(item_list_push(&p->items, core));
    if (replicated.bytes > 0) TP_TRY(item_list_push(&p->items, replicated));
    return TPUCL_OK;
}

static tpucl_status list_items(planner *p)
{
    tp_program *program = p->program;
    for (size_t r = 0; r < p->reduces->count; r++) {
        const tp_reduce_pair *pair = &p->reduces->items[r];
        p->group_of[pair->replicated_buffer] = pair->level + 1;
        if (pair->core_buffer >= 0) p->group_of[pair->core_buffer] = pair->level + 1;
    }
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        if (!is_slab(buffer->space) || p->group_of[i] > 0 || buffer->first_use < 0 ||
            buffer->view.is_view)
            continue;
        const item single = {.buffer = i,
                             .space = buffer->space,
                             .bytes = align(buffer->bytes),
                             .first = buffer->first_use,
                             .last = buffer->last_use};
        TP_TRY(item_list_push(&p->items, single));
    }
    for (int32_t s = 1; s < program->segment_count; s += 2)
        TP_TRY(add_groups(p, s / 2));
    return TPUCL_OK;
}

/* Large ones first; among equals those that come first. */
static int compare_items(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    if (x->buffer != y->buffer) return x->buffer < y->buffer ? -1 : 1;
    return x->group - y->group;
}

/* ---- placement ---- */

static bool is_in_the_way(const item *placed, const item *other, int32_t segment)
{
    return placed->space == other->space && placed->segment == segment &&
           placed->first <= other->last && other->first <= placed->last;
}

/* The lowest offset in `segment` that is free for the item's whole life. */
static uint64_t lowest_offset(const planner *p, size_t placed_count, const item *it,
                              int32_t segment)
{
    uint64_t offset = 0;
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (size_t i = 0; i < placed_count; i++) {
            const item *other = &p->items.items[i];
            if (!is_in_the_way(other, it, segment)) continue;
            if (offset < other->offset + other->bytes && other->offset < offset + it->bytes) {
                offset = other->offset + other->bytes;
                has_moved = true;
            }
        }
    }
    return offset;
}

static tpucl_status place(planner *p, size_t index)
{
    item *it = &p->items.items[index];
    const bool is_core = it->space == TP_SPACE_CORE;
    int32_t *segments =
        is_core ? &p->program->core_slab_segments : &p->program->replicated_slab_segments;
    uint64_t *bytes = is_core ? p->program->core_bytes : p->program->replicated_bytes;
    if (it->bytes > p->max_segment_bytes)
        return TP_FAIL(TPUCL_OUT_OF_DEVICE_MEMORY,
                       "buffer '%s' needs %" PRIu64 " bytes, the device allocates at most %" PRIu64
                       " at once",
                       it->buffer >= 0 ? p->program->buffers[it->buffer].name : "all gradients",
                       it->bytes, p->max_segment_bytes);
    for (int32_t s = 0; s < TP_PROGRAM_MAX_SLAB_SEGMENTS; s++) {
        const uint64_t offset = lowest_offset(p, index, it, s);
        if (offset > p->max_segment_bytes - it->bytes) continue;
        it->segment = s;
        it->offset = offset;
        if (s >= *segments) *segments = s + 1;
        if (offset + it->bytes > bytes[s]) bytes[s] = offset + it->bytes;
        return TPUCL_OK;
    }
    return TP_FAIL(TPUCL_OUT_OF_DEVICE_MEMORY,
                   "the program needs more than %d slab segments of %" PRIu64 " bytes",
                   TP_PROGRAM_MAX_SLAB_SEGMENTS, p->max_segment_bytes);
}

/* ---- results ---- */

/* Places the group's buffers one behind the other, those with a place in CORE first, so that both lie alike. */
static void write_group(const planner *p, const item *group)
{
    uint64_t offset = group->offset;
    tp_program_segment *segment = &p->program->segments[2 * (group->group - 1) + 1];
    const bool is_core = group->space == TP_SPACE_CORE;
    for (int by_launches = 0; by_launches < (is_core ? 1 : 2); by_launches++)
        for (size_t r = 0; r < p->reduces->count; r++) {
            const tp_reduce_pair *pair = &p->reduces->items[r];
            if (pair->level != group->group - 1 || (pair->core_buffer < 0) != by_launches) continue;
            const int32_t index = is_core ? pair->core_buffer : pair->replicated_buffer;
            tp_program_buffer *buffer = &p->program->buffers[index];
            buffer->slab_segment = group->segment;
            buffer->offset_bytes = offset;
            offset += align(buffer->bytes);
        }
    segment->has_reduce = true;
    if (is_core) {
        segment->reduce.core_elems = group->bytes / sizeof(float);
        segment->reduce.core_slab_segment = group->segment;
        segment->reduce.core_offset_bytes = group->offset;
    } else {
        segment->reduce.elems = group->bytes / sizeof(float);
        segment->reduce.replicated_slab_segment = group->segment;
        segment->reduce.replicated_offset_bytes = group->offset;
    }
}

/* Bytes of CORE alive at once, at the launch where that is most. */
static uint64_t peak_core_bytes(const planner *p)
{
    uint64_t peak = 0;
    for (int32_t i = 0; i < p->program->launch_count; i++) {
        uint64_t alive = 0;
        for (size_t k = 0; k < p->items.count; k++) {
            const item *it = &p->items.items[k];
            if (it->space == TP_SPACE_CORE && it->first <= i && it->last >= i) alive += it->bytes;
        }
        if (alive > peak) peak = alive;
    }
    return peak;
}

static void place_views(tp_program *program)
{
    for (int32_t i = 0; i < program->buffer_count; i++) {
        tp_program_buffer *buffer = &program->buffers[i];
        if (!buffer->view.is_view) continue;
        const tp_program_buffer *base = &program->buffers[buffer->view.of];
        buffer->slab_segment = base->slab_segment;
        buffer->offset_bytes = base->offset_bytes + buffer->view.offset_bytes;
        buffer->first_use = base->first_use;
        buffer->last_use = base->last_use;
    }
}

static tpucl_status run(planner *p)
{
    find_lifetimes(p);
    TP_TRY(list_items(p));
    if (p->items.count > 0)
        qsort(p->items.items, p->items.count, sizeof *p->items.items, compare_items);
    for (size_t i = 0; i < p->items.count; i++) {
        TP_TRY(place(p, i));
        const item *it = &p->items.items[i];
        if (it->group > 0) {
            write_group(p, it);
        } else {
            p->program->buffers[it->buffer].slab_segment = it->segment;
            p->program->buffers[it->buffer].offset_bytes = it->offset;
        }
    }
    place_views(p->program);
    p->program->peak_core_bytes = peak_core_bytes(p);
    return TPUCL_OK;
}

tpucl_status tp_pass_memory(tp_program *program, const tp_reduce_list *reduces,
                            uint64_t max_segment_bytes)
{
    planner p = {.program = program,
                 .reduces = reduces,
                 .max_segment_bytes =
                     max_segment_bytes / TP_PROGRAM_ALIGN_BYTES * TP_PROGRAM_ALIGN_BYTES};
    p.group_of = TP_NEW_ARRAY(int32_t, (size_t)program->buffer_count);
    if (!p.group_of) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = run(&p);
    item_list_deinit(&p.items);
    tp_free(p.group_of);
    return status;
}
