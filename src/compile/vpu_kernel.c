/* SPDX-License-Identifier: Apache-2.0
 * What the generators of VPU kernels share: arguments, parameters, grids.
 */
#include "compile/vpu_kernel.h"

#include <inttypes.h>
#include <string.h>
#include "core/alloc.h"

void tp_vpu_args_add(tp_vpu_args *args, tp_kernel_arg arg)
{
    if (args->count == args->capacity) {
        const int32_t capacity = args->capacity ? args->capacity * 2 : 32;
        tp_kernel_arg *items = TP_ARENA_NEW_ARRAY(args->arena, tp_kernel_arg, (size_t)capacity);
        if (!items) {
            args->status = TPUCL_OUT_OF_MEMORY;
            return;
        }
        if (args->count > 0) memcpy(items, args->items, (size_t)args->count * sizeof *items);
        args->items = items;
        args->capacity = capacity;
    }
    args->items[args->count++] = arg;
}

void tp_vpu_args_add_int(tp_vpu_args *args, int64_t value)
{
    if (value > INT32_MAX) {
        args->status = TP_FAIL(TPUCL_UNSUPPORTED,
                               "a loop over %" PRId64 " elements is too long for a kernel, which "
                               "takes %d; make the layer or the batch of a core smaller",
                               value, (int)INT32_MAX);
        return;
    }
    tp_vpu_args_add(args, (tp_kernel_arg){.kind = TP_ARG_S32, .s32 = (int32_t)value});
}

void tp_vpu_args_add_slots(tp_vpu_args *args, const tp_vpu_ir *ir)
{
    for (int32_t i = 0; i < ir->slot_count; i++)
        tp_vpu_args_add(args, (tp_kernel_arg){.kind = TP_ARG_TENSOR,
                                              .tensor = ir->slots[i].node,
                                              .is_written = ir->slots[i].is_stored_to});
}

void tp_vpu_emit_extra_params(const tp_vpu_ir *ir, const tp_vpu_coefs *coefs, tp_str_builder *out)
{
    for (int32_t i = 0; i < coefs->count; i++)
        tp_str_builder_printf(out, "int %s, ", coefs->names[i]);
    if (ir->uses_random)
        tp_str_append(out, "ulong vpu_seed, uint vpu_core_base, uint vpu_core_step, ");
    if (ir->uses_random || ir->uses_step) tp_str_append(out, "uint vpu_step, ");
}

void tp_vpu_emit_extra_pass(const tp_vpu_ir *ir, const tp_vpu_coefs *coefs, tp_str_builder *out)
{
    for (int32_t i = 0; i < coefs->count; i++)
        tp_str_builder_printf(out, "%s, ", coefs->names[i]);
    if (ir->uses_random) tp_str_append(out, "vpu_seed, vpu_core_base, vpu_core_step, ");
    if (ir->uses_random || ir->uses_step) tp_str_append(out, "vpu_step, ");
}

void tp_vpu_args_add_extra(tp_vpu_args *args, const tp_vpu_ir *ir, const tp_vpu_coefs *coefs)
{
    for (int32_t i = 0; i < coefs->count; i++)
        tp_vpu_args_add_int(args, coefs->values[i]);
    if (ir->uses_random) {
        tp_vpu_args_add(args, (tp_kernel_arg){.kind = TP_ARG_SEED});
        tp_vpu_args_add(args, (tp_kernel_arg){.kind = TP_ARG_CORE_BASE});
        tp_vpu_args_add(args, (tp_kernel_arg){.kind = TP_ARG_CORE_STEP});
    }
    if (ir->uses_random || ir->uses_step)
        tp_vpu_args_add(args, (tp_kernel_arg){.kind = TP_ARG_STEP});
}

tpucl_status tp_vpu_finish_text(tp_str_builder *builder, tp_arena *arena, const char **out_text)
{
    char *text = NULL;
    TP_TRY(tp_str_builder_finish(builder, &text, NULL));
    *out_text = tp_arena_strdup(arena, text);
    tp_free(text);
    return *out_text ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

const char *tp_vpu_index_type(const tp_vpu_ir *ir)
{
    for (int32_t i = 0; i < ir->slot_count; i++)
        if (tp_shape_elems(&ir->graph->nodes[ir->slots[i].node].shape) > INT32_MAX) return "long";
    for (int32_t i = 0; i < ir->value_count; i++)
        if (tp_ix_get(ir->index, ir->values[i].index)->hi > INT32_MAX) return "long";
    return "int";
}

typedef struct span {
    int64_t first, last;
} span;

static void add_index(const tp_vpu_ir *ir, tp_ix index, span *touched)
{
    const tp_ix_form *range = tp_ix_get(ir->index, index);
    if (range->lo < touched->first) touched->first = range->lo;
    if (range->hi > touched->last) touched->last = range->hi;
}

/* Of each tensor what lies between the first and the last element that is touched: of the steps of a sequence one, in
 * a turn of a loop. */
double tp_vpu_ir_bytes(const tp_vpu_ir *ir)
{
    double bytes = 0;
    for (int32_t i = 0; i < ir->slot_count; i++) {
        const tp_node *node = &ir->graph->nodes[ir->slots[i].node];
        const int64_t all = tp_shape_elems(&node->shape);
        span touched = {INT64_MAX, -1};
        for (int32_t v = 0; v < ir->value_count; v++)
            if (ir->values[v].kind == TP_VPU_LOAD && ir->values[v].slot == i)
                add_index(ir, ir->values[v].index, &touched);
        for (int32_t s = 0; s < ir->store_count; s++)
            if (ir->stores[s].slot == i) add_index(ir, ir->stores[s].index, &touched);
        if (touched.first < 0) touched.first = 0;
        const int64_t elems = touched.last - touched.first + 1;
        if (touched.last >= 0)
            bytes += (double)(elems < all ? elems : all) * (double)tp_dtype_size(node->dtype);
    }
    return bytes;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

int tp_vpu_width(const tp_device_caps *caps, const tp_vpu_ir *ir, const tp_vpu_loops *loops,
                 int64_t chunk)
{
    if (caps->type != TP_DEVICE_CPU || loops->count == 0) return 1;
    const int32_t x = loops->vars[loops->count - 1];
    const int64_t extent = tp_ix_var_extent(ir->index, x);
    const bool is_whole = extent > 0 && extent % TP_VPU_WIDE == 0 && chunk % TP_VPU_WIDE == 0;
    return is_whole && tp_vpu_can_widen(ir, x) ? TP_VPU_WIDE : 1;
}

tp_vpu_grid tp_vpu_grid_plan(const tp_device_caps *caps, int64_t nx, int64_t ny, int64_t nz,
                             int64_t target_elems)
{
    tp_vpu_grid grid = {.chunk_x = 1, .chunk_y = 1, .local = {1, 1, 1}};
    if (caps->type == TP_DEVICE_CPU) {
        /* Four work-items for each compute unit, so that they finish together; but not less than
         * 1024 elements each, below which starting one costs more than its work. */
        const int64_t units = caps->compute_units > 0 ? caps->compute_units : 1;
        const int64_t target = clamp(nx * ny * nz / (4 * units), 1024, target_elems);
        if (nx >= target) {
            grid.chunk_x = divide_up(target, 64) * 64;
        } else {
            grid.chunk_x = nx > 0 ? nx : 1;
            grid.chunk_y = clamp(target / grid.chunk_x, 1, ny > 0 ? ny : 1);
        }
    } else {
        /* 256 work-items a group: a multiple of every warp and wavefront size. Small devices take fewer. */
        const uint64_t most = caps->max_work_group_size < 256 ? caps->max_work_group_size : 256;
        while (2 * grid.local[0] <= most && 2 * grid.local[0] <= caps->max_work_item_sizes[0] &&
               (int64_t)grid.local[0] < nx)
            grid.local[0] *= 2;
        while (2 * grid.local[0] * grid.local[1] <= most &&
               2 * grid.local[1] <= caps->max_work_item_sizes[1] && (int64_t)grid.local[1] < ny)
            grid.local[1] *= 2;
    }
    const size_t items_x = (size_t)divide_up(nx, grid.chunk_x);
    const size_t items_y = (size_t)divide_up(ny, grid.chunk_y);
    grid.global[0] = (items_x + grid.local[0] - 1) / grid.local[0] * grid.local[0];
    grid.global[1] = (items_y + grid.local[1] - 1) / grid.local[1] * grid.local[1];
    grid.global[2] = (size_t)nz;
    return grid;
}
