/* SPDX-License-Identifier: Apache-2.0
 * Bytes on a real TPU: tiles, and which tensors they make large.
 */
#include "plan/memory_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check/padding.h"

enum { LANES = 128 };

/* Smaller ones are not worth a warning. */
#define WARN_BYTES (1 << 20)

/* ---- one array ---- */

tp_padded_array tp_pad_array(tp_dtype dtype, const tp_shape *shape)
{
    const double plain = tp_unpadded_bytes(shape, dtype);
    const double row = tp_padded_bytes(shape, dtype, shape->rank - 2, shape->rank - 1);
    const tp_best_layout best = tp_find_best_layout(shape, dtype);
    return (tp_padded_array){
        .bytes = tp_memory_whole((double)tp_shape_elems(shape) * (double)tp_dtype_size(dtype)),
        .row_major = tp_memory_whole(row),
        .best = tp_memory_whole(best.bytes),
        .row_padding = plain > 0 ? row / plain : 1,
        .best_padding = plain > 0 ? best.bytes / plain : 1,
        .minor = best.minor,
        .second = best.second};
}

/* Rows of a tile: what a second-minor dimension of one is padded to, or of its own size if that is less. */
static int64_t rows_of(tp_dtype dtype, int64_t size)
{
    const tp_shape one = {.rank = 2, .dims = {size, LANES}};
    const double row_bytes = tp_unpadded_bytes(&one, dtype) / (double)(size ? size : 1);
    return (int64_t)(tp_padded_bytes(&one, dtype, 0, 1) / row_bytes);
}

void tp_describe_tiles(tp_dtype dtype, const tp_shape *shape, int32_t second, int32_t minor,
                       char *out_text, size_t room)
{
    size_t used = 0;
    out_text[0] = '\0';
    if (shape->rank < 2) return;
    const int64_t lane = shape->dims[minor], row = shape->dims[second];
    const int64_t lanes = (lane + LANES - 1) / LANES * LANES, rows = rows_of(dtype, row);
    if (lane != lanes)
        used = (size_t)snprintf(out_text, room, "dimension %d of %lld fills %lld", minor,
                                (long long)lane, (long long)lanes);
    if (row != rows && used < room)
        snprintf(out_text + used, room - used, "%sdimension %d of %lld fills %lld",
                 used ? ", " : "", second, (long long)row, (long long)rows);
}

/* ---- tensors of a program ---- */

/* Operands that kernels pack for themselves are none of a TPU's; copies of weights it has, too. */
static uint64_t tpu_bytes(const tp_memory_plan *plan, const tp_program_buffer *buffer)
{
    if (plan->is_tiled && buffer->is_scratch && buffer->space == TP_SPACE_CORE) return 0;
    if (plan->is_tiled) return tp_pad_array(buffer->dtype, &buffer->shape).best;
    return buffer->bytes;
}

/* "conv" of "gradient/conv/select": the scopes without "gradient/" in front and without the op. */
static const char *layer_of(const char *name, tp_arena *arena)
{
    static const char gradient[] = "gradient/";
    while (!strncmp(name, gradient, sizeof gradient - 1))
        name += sizeof gradient - 1;
    const char *slash = strrchr(name, '/');
    return slash ? tp_arena_printf(arena, "%.*s", (int)(slash - name), name) : "";
}

static tpucl_status describe(tp_memory_plan *plan, const tp_program *program,
                             const tp_program_buffer *buffer, tp_memory_tensor *out)
{
    char shape[TP_SHAPE_TEXT_MAX], tiles[160] = "";
    const tp_padded_array padded = tp_pad_array(buffer->dtype, &buffer->shape);
    tp_shape_format(&buffer->shape, shape, sizeof shape);
    *out = (tp_memory_tensor){
        .name = tp_arena_strdup(plan->arena, buffer->name),
        .layer = layer_of(buffer->name, plan->arena),
        .type = tp_arena_printf(plan->arena, "%s%s", tp_dtype_name(buffer->dtype), shape),
        .kind = tp_memory_kind_of(program, buffer),
        .bytes = buffer->bytes,
        .tpu = tpu_bytes(plan, buffer),
        .padding = plan->is_tiled ? padded.best_padding : 1};
    if (out->padding > 2)
        tp_describe_tiles(buffer->dtype, &buffer->shape, padded.second, padded.minor, tiles,
                          sizeof tiles);
    out->note = tp_arena_strdup(plan->arena, tiles);
    return out->name && out->layer && out->type && out->note ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static uint64_t alive_at(const tp_memory_plan *plan, const tp_program *program, int32_t launch,
                         tp_memory_view *inout_view)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        if (!tp_memory_is_in_slab(buffer) || !tp_memory_is_alive(buffer, launch)) continue;
        const uint64_t bytes = tpu_bytes(plan, buffer);
        sum = tp_add_bytes(sum, bytes);
        if (inout_view) tp_memory_add(inout_view, tp_memory_kind_of(program, buffer), bytes);
    }
    return sum;
}

/* What a variable's tiles take beyond its bytes. */
static void add_variables(const tp_program *program, tp_memory_plan *plan)
{
    for (int32_t i = 0; i < program->variable_count && plan->is_tiled; i++) {
        const tp_program_variable *variable = &program->variables[i];
        const uint64_t padded = tp_pad_array(variable->dtype, &variable->shape).best;
        if (padded > variable->bytes)
            tp_memory_add(&plan->tpu, variable->is_model ? TP_MEMORY_WEIGHTS : TP_MEMORY_SLOTS,
                          padded - variable->bytes);
    }
}

/* ---- the largest, and warnings ---- */

typedef struct ranked {
    int32_t buffer;
    uint64_t bytes;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->buffer - y->buffer;
}

static tpucl_status list_tensors(const tp_program *program, int32_t peak, tp_memory_plan *plan)
{
    ranked *list = TP_ARENA_NEW_ARRAY(plan->arena, ranked, (size_t)program->buffer_count + 1);
    int32_t count = 0;
    if (!list) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        const bool is_variable = buffer->space == TP_SPACE_VARIABLE && !buffer->view.is_view;
        const bool is_held = tp_memory_is_in_slab(buffer) && tp_memory_is_alive(buffer, peak);
        if ((is_variable || is_held) && tpu_bytes(plan, buffer))
            list[count++] = (ranked){i, tpu_bytes(plan, buffer)};
    }
    if (count) qsort(list, (size_t)count, sizeof *list, compare_ranked);
    for (int32_t i = 0; i < count && i < TP_MEMORY_TENSORS; i++)
        TP_TRY(describe(plan, program, &program->buffers[list[i].buffer], &plan->largest[i]));
    plan->largest_count = count < TP_MEMORY_TENSORS ? count : TP_MEMORY_TENSORS;
    return TPUCL_OK;
}

static const char *warn(tp_memory_plan *plan, const tp_program_buffer *buffer, bool is_input)
{
    char shape[TP_SHAPE_TEXT_MAX], tiles[160];
    const tp_padded_array padded = tp_pad_array(buffer->dtype, &buffer->shape);
    const int32_t minor = is_input ? buffer->shape.rank - 1 : padded.minor;
    const int32_t second = is_input ? buffer->shape.rank - 2 : padded.second;
    tp_shape_format(&buffer->shape, shape, sizeof shape);
    tp_describe_tiles(buffer->dtype, &buffer->shape, second, minor, tiles, sizeof tiles);
    return tp_arena_printf(
        plan->arena, "'%s' %s%s takes %.1f MiB of HBM for %.1f MiB%s, %.1f times: %s", buffer->name,
        tp_dtype_name(buffer->dtype), shape,
        (double)(is_input ? padded.row_major : padded.best) / 0x1p20, (double)padded.bytes / 0x1p20,
        is_input ? " when fed as it is" : " in its best layout",
        is_input ? padded.row_padding : padded.best_padding, tiles);
}

/* Tensors that any layout more than doubles, and inputs that are more than doubled as they are fed. */
static tpucl_status list_warnings(const tp_program *program, tp_memory_plan *plan)
{
    plan->warnings =
        TP_ARENA_NEW_ARRAY(plan->arena, const char *, (size_t)program->buffer_count + 1);
    if (!plan->warnings) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < program->buffer_count && plan->is_tiled; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        const bool is_input = buffer->space == TP_SPACE_INPUT;
        if (buffer->view.is_view || buffer->shape.rank < 2) continue;
        const tp_padded_array padded = tp_pad_array(buffer->dtype, &buffer->shape);
        const double padding = is_input ? padded.row_padding : padded.best_padding;
        if (padding <= 2 || (is_input ? padded.row_major : padded.best) < WARN_BYTES) continue;
        const char *text = warn(plan, buffer, is_input);
        if (!text) return TPUCL_OUT_OF_MEMORY;
        plan->warnings[plan->warning_count++] = text;
    }
    return TPUCL_OK;
}

tpucl_status tp_memory_view_tpu(const tp_program *program, tp_memory_plan *plan)
{
    uint64_t most = 0;
    int32_t peak = 0;
    for (int32_t launch = 0; launch < program->launch_count; launch++) {
        const uint64_t alive = alive_at(plan, program, launch, NULL);
        if (alive > most) most = alive, peak = launch;
    }
    tp_memory_add_fixed(program, &plan->tpu);
    add_variables(program, plan);
    alive_at(plan, program, peak, &plan->tpu);
    const char *label = program->launch_count ? program->launches[peak].label : NULL;
    plan->tpu.peak_at = tp_arena_strdup(plan->arena, label ? label : "");
    if (!plan->tpu.peak_at) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(list_tensors(program, peak, plan));
    return list_warnings(program, plan);
}
