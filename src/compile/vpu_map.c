/* SPDX-License-Identifier: Apache-2.0
 * Element-wise clusters. The kernel runs up to three nested loops: x (the fastest index, contiguous
 * where the tensors allow it), y, and z for whatever is left, taken apart by division once per
 * work-item.
 */
#include "compile/vpu_kernel.h"

#include <inttypes.h>
#include <string.h>
#include "compile/vpu_pieces.h"
#include "core/alloc.h"
#include "graph/opdef.h"

typedef struct map_text {
    tp_vpu_ir *ir;
    tp_vpu_loops loops;
    const char *var_names[TP_IX_MAX_VARS];
    tp_vpu_coefs coefs;
    int32_t outer_count; /* loops below z */
    int width;           /* neighbours along x that are computed at once: 1 or TP_VPU_WIDE */
} map_text;

/* A root that is several times as large as the loops: each turn stores an element of every piece. */
static tpucl_status store_pieces(tp_vpu_ir *ir, tp_node_id root, const tp_shape *loops,
                                 const tp_ix *tuple)
{
    const tp_shape *shape = &tp_graph_node(ir->graph, root)->shape;
    const int last = shape->rank - 1;
    tp_ix own[TP_MAX_RANK] = {0};
    memcpy(own, tuple, (size_t)shape->rank * sizeof *own);
    for (int64_t start = 0; start < shape->dims[last]; start += loops->dims[last]) {
        own[last] = tp_ix_add(ir->index, tuple[last], tp_ix_const(ir->index, start));
        TP_TRY(tp_vpu_ir_store(ir, root, own));
    }
    return TPUCL_OK;
}

/* Evaluates all roots over the axes of the first one, or over a piece of the largest. */
static tpucl_status build_body(map_text *text, const tp_node_id *roots, int32_t root_count)
{
    tp_vpu_ir *ir = text->ir;
    tp_shape shape;
    if (!tp_vpu_pieces_find(ir->graph, ir->is_stored, roots, root_count, &shape))
        return TP_FAIL(TPUCL_INTERNAL, "the cluster of '%s' has no loop for all that it stores",
                       tp_graph_node(ir->graph, roots[0])->def->name);
    const int64_t elems = tp_shape_elems(&shape);
    tp_ix tuple[TP_MAX_RANK] = {0};
    tp_vpu_loops_add(ir, &text->loops, &shape, tuple);
    const tp_ix number = tp_ix_linearise(ir->index, &shape, tuple);
    for (int32_t i = 0; i < root_count; i++)
        ir->is_own_root[roots[i]] = true;
    for (int32_t i = 0; i < root_count; i++) {
        const tp_shape *own = &tp_graph_node(ir->graph, roots[i])->shape;
        tp_ix own_tuple[TP_MAX_RANK] = {0};
        if (tp_shape_equal(own, &shape)) {
            TP_TRY(tp_vpu_ir_store(ir, roots[i], tuple));
        } else if (tp_shape_elems(own) != elems) {
            TP_TRY(store_pieces(ir, roots[i], &shape, tuple));
        } else {
            tp_ix_delinearise(ir->index, own, number, own_tuple);
            TP_TRY(tp_vpu_ir_store(ir, roots[i], own_tuple));
        }
    }
    tp_vpu_loops *const lists[] = {&text->loops};
    tp_vpu_loops_simplify(ir, lists, 1);
    return tp_ix_check(ir->index);
}

static tpucl_status name_loops(map_text *text)
{
    const int32_t count = text->loops.count;
    text->outer_count = count > 2 ? count - 2 : 0;
    for (int32_t i = 0; i < count; i++) {
        const char *name = i == count - 1   ? "x"
                           : i == count - 2 ? "y"
                                            : tp_arena_printf(text->ir->arena, "z%" PRId32, i);
        if (!name) return TPUCL_OUT_OF_MEMORY;
        text->var_names[text->loops.vars[i]] = name;
    }
    return TPUCL_OK;
}

static void emit_outer_indexes(const map_text *text, tp_str_builder *out)
{
    const tp_vpu_ir *ir = text->ir;
    for (int32_t i = 0; i < text->outer_count; i++) {
        const int64_t below = tp_vpu_loops_extent(ir, &text->loops, i + 1, text->outer_count);
        tp_str_builder_printf(out, "    const vpu_index z%" PRId32 " = z", i);
        if (below > 1) tp_str_builder_printf(out, " / %" PRId64, below);
        if (i > 0)
            tp_str_builder_printf(out, " %% %" PRId64,
                                  tp_ix_var_extent(ir->index, text->loops.vars[i]));
        tp_str_append(out, ";\n");
    }
}

static tpucl_status emit_body(map_text *text, tp_str_builder *out)
{
    const tp_vpu_ir *ir = text->ir;
    const tp_vpu_style style = {
        .width = text->width,
        .lane_var = text->loops.count > 0 ? text->loops.vars[text->loops.count - 1] : -1,
        .var_names = text->var_names,
        .coefs = &text->coefs,
        .indent = "            "};
    bool *done = TP_ARENA_NEW_ARRAY(ir->arena, bool, (size_t)ir->value_count + 1);
    if (!done) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < ir->store_count; i++)
        tp_vpu_emit_value(ir, &style, ir->stores[i].value, done, out);
    for (int32_t i = 0; i < ir->store_count; i++)
        tp_vpu_emit_store(ir, &style, &ir->stores[i], out);
    return TPUCL_OK;
}

static tpucl_status emit_kernel(map_text *text, const char **out_source)
{
    const tp_vpu_ir *ir = text->ir;
    tp_str_builder body = {0}, out = {0};
    const tpucl_status status = emit_body(text, &body);
    const char *body_text;
    TP_TRY(tp_vpu_finish_text(&body, ir->arena, &body_text));
    TP_TRY(status);

    tp_vpu_emit_words(text->width, &out);
    tp_str_builder_printf(&out, "#undef vpu_index\n#define vpu_index %s\n", tp_vpu_index_type(ir));
    tp_str_append(&out, "kernel void VPU_NAME(vpu_map)(");
    tp_vpu_emit_params(ir, &out);
    tp_vpu_emit_extra_params(ir, &text->coefs, &out);
    tp_str_append(&out, "int nx, int ny, int nz, int chunk_x, int chunk_y)\n{\n"
                        "    const uint core = (uint)get_global_id(2) / (uint)nz;\n"
                        "    const vpu_index z = (int)((uint)get_global_id(2) % (uint)nz);\n");
    if (ir->uses_random)
        tp_str_append(&out, "    const uint vpu_core = vpu_core_base + core * vpu_core_step;\n");
    emit_outer_indexes(text, &out);
    tp_vpu_emit_pointers(ir, "    ", "core", &out);
    tp_str_append(&out, "    const int x0 = (int)get_global_id(0) * chunk_x;\n"
                        "    const int y0 = (int)get_global_id(1) * chunk_y;\n"
                        "    const int x1 = min(x0 + chunk_x, nx), y1 = min(y0 + chunk_y, ny);\n"
                        "    for (vpu_index y = y0; y < y1; y++)\n");
    tp_str_builder_printf(&out, "        VPU_LOOP for (vpu_index x = x0; x < x1; x += %d) {\n",
                          text->width);
    tp_str_append(&out, body_text);
    tp_str_append(&out, "        }\n}\n");
    return tp_vpu_finish_text(&out, ir->arena, out_source);
}

/* Is some tensor contiguous along y and not along x? */
static bool is_transposing(const map_text *text)
{
    const tp_vpu_ir *ir = text->ir;
    const tp_vpu_loops *loops = &text->loops;
    if (loops->count < 2) return false;
    const int32_t x = loops->vars[loops->count - 1], y = loops->vars[loops->count - 2];
    for (int32_t i = 0; i < ir->value_count; i++) {
        const tp_vpu_value *value = &ir->values[i];
        if (value->kind == TP_VPU_LOAD && tp_ix_coef(ir->index, value->index, y) == 1 &&
            tp_ix_coef(ir->index, value->index, x) > 1)
            return true;
    }
    return false;
}

/* Tiles of 64 by 64, so that each cache line is used for all the elements in it while it is there. */
static void use_tiles(tp_vpu_grid *grid, int64_t nx, int64_t ny)
{
    grid->chunk_x = nx < 64 ? nx : 64;
    grid->chunk_y = ny < 64 ? ny : 64;
    grid->global[0] = (size_t)((nx + grid->chunk_x - 1) / grid->chunk_x);
    grid->global[1] = (size_t)((ny + grid->chunk_y - 1) / grid->chunk_y);
}

tpucl_status tp_vpu_map_create(const tp_vpu_target *target, const tp_node_id *roots,
                               int32_t root_count, const char *label, tp_launch *out_launch)
{
    map_text text = {0};
    TP_TRY(tp_vpu_ir_create(target->arena, target->graph, target->is_stored, &text.ir));
    TP_TRY(build_body(&text, roots, root_count));
    TP_TRY(name_loops(&text));
    const tp_vpu_loops *loops = &text.loops;
    const int64_t nx =
        tp_vpu_loops_extent(text.ir, loops, loops->count > 0 ? loops->count - 1 : 0, loops->count);
    const int64_t ny = loops->count > 1
                           ? tp_vpu_loops_extent(text.ir, loops, loops->count - 2, loops->count - 1)
                           : 1;
    const int64_t nz = tp_vpu_loops_extent(text.ir, loops, 0, text.outer_count);
    tp_vpu_grid grid = tp_vpu_grid_plan(target->caps, nx, ny, nz, 16384);
    if (target->caps->type == TP_DEVICE_CPU && nx > 0 && ny > 0 && is_transposing(&text))
        use_tiles(&grid, nx, ny);
    text.width = tp_vpu_width(target->caps, text.ir, loops, grid.chunk_x);
    tp_launch launch = {
        .kind = TP_LAUNCH_KERNEL, .label = label, .options = "", .entry = "vpu_map"};
    TP_TRY(emit_kernel(&text, &launch.source));
    tp_vpu_args args = {.arena = target->arena};
    tp_vpu_args_add_slots(&args, text.ir);
    tp_vpu_args_add_extra(&args, text.ir, &text.coefs);
    tp_vpu_args_add_int(&args, nx);
    tp_vpu_args_add_int(&args, ny);
    tp_vpu_args_add_int(&args, nz);
    tp_vpu_args_add_int(&args, grid.chunk_x);
    tp_vpu_args_add_int(&args, grid.chunk_y);
    TP_TRY(args.status);
    launch.args = args.items;
    launch.arg_count = args.count;
    for (int i = 0; i < 3; i++) {
        launch.global[i] = grid.global[i];
        launch.local[i] = grid.local[i];
    }
    launch.grid_z = launch.global[2];
    launch.bytes = tp_vpu_ir_bytes(text.ir);
    *out_launch = launch;
    return TPUCL_OK;
}

tpucl_status tp_vpu_map_divides(const tp_vpu_target *target, const tp_node_id *roots,
                                int32_t root_count, bool *out_divides)
{
    map_text text = {0};
    *out_divides = false;
    TP_TRY(tp_vpu_ir_create(target->arena, target->graph, target->is_stored, &text.ir));
    TP_TRY(build_body(&text, roots, root_count));
    for (int32_t i = 0; i < text.ir->value_count; i++)
        for (int32_t v = 0; v < text.loops.count; v++)
            if (tp_ix_is_pinned(text.ir->index, text.ir->values[i].index, text.loops.vars[v]))
                *out_divides = true;
    return TPUCL_OK;
}

tpucl_status tp_vpu_map_is_in_place(const tp_vpu_target *target, const tp_node_id *roots,
                                    int32_t root_count, tp_node_id root, tp_node_id node,
                                    bool *out_is_in_place)
{
    map_text text = {0};
    *out_is_in_place = true;
    TP_TRY(tp_vpu_ir_create(target->arena, target->graph, target->is_stored, &text.ir));
    TP_TRY(build_body(&text, roots, root_count));
    const tp_vpu_ir *ir = text.ir;
    tp_ix stored = TP_IX_ZERO;
    for (int32_t i = 0; i < ir->store_count; i++)
        if (ir->slots[ir->stores[i].slot].node == root) stored = ir->stores[i].index;
    for (int32_t i = 0; i < ir->value_count; i++) {
        const tp_vpu_value *value = &ir->values[i];
        if (value->kind == TP_VPU_LOAD && value->node == node &&
            (value->index != stored || value->guard >= 0))
            *out_is_in_place = false;
    }
    return TPUCL_OK;
}
