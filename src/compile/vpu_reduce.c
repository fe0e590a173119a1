/* SPDX-License-Identifier: Apache-2.0
 * Plans reductions: which form of kernel, one launch or two, and what is fused before and behind.
 */
#include "compile/vpu_kernel.h"

#include <inttypes.h>
#include <string.h>
#include "compile/vpu_reduce_text.h"
#include "graph/geometry.h"
#include "graph/opdef.h"
#include "num/reduce.h"

typedef struct reduce_problem {
    const tp_vpu_target *target;
    tp_reduce_head heads[TP_VPU_MAX_HEADS];
    int32_t head_count;
    const tp_node_id *roots;
    int32_t root_count;
    int64_t kept_elems, reduced_elems, blocks;
    bool is_arg;
} reduce_problem;

static bool is_reduced_axis(const tp_node *head, int axis)
{
    if (strcmp(head->def->name, "reduce") != 0) return tp_node_attr_int(head, "axis", 0) == axis;
    int32_t count;
    const int64_t *axes = tp_node_attr_ints(head, "axes", &count);
    for (int32_t i = 0; i < count; i++)
        if (axes[i] == axis) return true;
    return false;
}

/* Loops over the operand's axes, and what the heads reduce. out_kept gets the forms of the kept axes:
 * the tuple of the result. */
static tpucl_status build_operands(reduce_problem *problem, tp_reduce_text *text, tp_ix *out_kept)
{
    tp_vpu_ir *ir = text->ir;
    const tp_graph *graph = problem->target->graph;
    const tp_node *head = tp_graph_node(graph, problem->heads[0].node);
    const tp_shape *shape = &tp_graph_node(graph, head->inputs[0])->shape;
    tp_ix tuple[TP_MAX_RANK] = {0};
    int32_t kept = 0;
    for (int i = 0; i < shape->rank; i++) {
        const bool is_reduced = is_reduced_axis(head, i);
        tp_vpu_loops *loops = is_reduced ? &text->reduced : &text->kept;
        int32_t var;
        tuple[i] = tp_ix_add_var(ir->index, shape->dims[i], &var);
        if (shape->dims[i] != 1) loops->vars[loops->count++] = var;
        if (!is_reduced) out_kept[kept++] = tuple[i];
    }
    for (int32_t i = 0; i < problem->head_count; i++) {
        const tp_node *own = tp_graph_node(graph, problem->heads[i].node);
        TP_TRY(tp_vpu_ir_eval(ir, own->inputs[0], tuple, &problem->heads[i].operand));
    }
    return TPUCL_OK;
}

/* The value whose index is the row-major number of the kept element. */
static tpucl_status add_kept_number(reduce_problem *problem, tp_reduce_text *text,
                                    const tp_ix *kept)
{
    tp_vpu_ir *ir = text->ir;
    const tp_node *head = tp_graph_node(problem->target->graph, problem->heads[0].node);
    return tp_vpu_ir_number(ir, tp_ix_linearise(ir->index, &head->shape, kept), &text->kept_number);
}

/* The heads are registers r0, r1, ...; everything in `roots` is computed from them and stored. */
static tpucl_status build_roots(reduce_problem *problem, tp_reduce_text *text, const tp_ix *kept)
{
    static const char *const registers[TP_VPU_MAX_HEADS] = {"r0", "r1", "r2", "r3",
                                                            "r4", "r5", "r6", "r7"};
    tp_vpu_ir *ir = text->ir;
    const tp_graph *graph = problem->target->graph;
    const tp_shape *shape = &tp_graph_node(graph, problem->heads[0].node)->shape;
    const tp_ix number = tp_ix_linearise(ir->index, shape, kept);
    for (int32_t i = 0; i < problem->head_count; i++)
        TP_TRY(tp_vpu_ir_bind(ir, problem->heads[i].node, kept, registers[i],
                              &problem->heads[i].bound));
    for (int32_t i = 0; i < problem->head_count; i++)
        ir->is_own_root[problem->heads[i].node] = true;
    for (int32_t i = 0; i < problem->root_count; i++)
        ir->is_own_root[problem->roots[i]] = true;
    for (int32_t i = 0; i < problem->root_count; i++) {
        const tp_shape *own = &tp_graph_node(graph, problem->roots[i])->shape;
        tp_ix tuple[TP_MAX_RANK] = {0};
        if (tp_shape_equal(own, shape))
            memcpy(tuple, kept, sizeof tuple);
        else
            tp_ix_delinearise(ir->index, own, number, tuple);
        TP_TRY(tp_vpu_ir_store(ir, problem->roots[i], tuple));
    }
    return TPUCL_OK;
}

/* Columns when the fastest kept axis is contiguous in the largest tensor that the operands read. */
static bool is_column_form(const tp_reduce_text *text)
{
    const tp_vpu_ir *ir = text->ir;
    if (text->kept.count == 0) return false;
    const int32_t x = text->kept.vars[text->kept.count - 1];
    int64_t largest = 0;
    bool is_contiguous = false;
    for (int32_t i = 0; i < ir->value_count; i++) {
        const tp_vpu_value *value = &ir->values[i];
        if (value->kind != TP_VPU_LOAD) continue;
        const int64_t elems = tp_shape_elems(&ir->graph->nodes[value->node].shape);
        if (elems <= largest) continue;
        largest = elems;
        is_contiguous = tp_ix_coef(ir->index, value->index, x) == 1;
    }
    return is_contiguous;
}

/* 256 kB of sums for all heads and lanes stay in a second-level cache. */
static int64_t columns_for(const reduce_problem *problem)
{
    if (problem->target->caps->type != TP_DEVICE_CPU) return 0;
    int64_t columns = 512;
    while (columns * problem->head_count > 512)
        columns /= 2;
    return columns;
}

static int64_t lanes_for(int64_t elems)
{
    int64_t lanes = 1;
    while (lanes < elems && lanes < TP_VPU_LANES)
        lanes *= 2;
    return lanes;
}

/* How many results there are along x, y and z (blocks included), and how they are dealt out. */
typedef struct result_grid {
    int64_t nx, ny, nz;
    tp_vpu_grid grid;
} result_grid;

/* Columns of a work-item: as many as a tile takes, so that memory is read in long pieces, or as many as
 * are worth a work-item; fewer, but not below 128, where that gives each compute unit two work-items. */
static int64_t columns_of_item(const tp_reduce_text *text, const tp_device_caps *caps,
                               const result_grid *r, int64_t wanted)
{
    const int64_t units = caps->compute_units > 0 ? caps->compute_units : 1;
    int64_t columns = r->nx < text->columns ? r->nx : text->columns;
    while (columns > 128 && columns > wanted &&
           (r->nx + columns - 1) / columns * r->ny * r->nz < 2 * units)
        columns = (columns / 2 + 31) / 32 * 32;
    return columns > 0 ? columns : 1;
}

static result_grid plan_grid(const reduce_problem *problem, const tp_reduce_text *text)
{
    const tp_device_caps *caps = problem->target->caps;
    const tp_vpu_loops *kept = &text->kept;
    const tp_ix_context *index = text->ir->index;
    const bool is_tree = text->form == TP_REDUCE_TREE;
    const int64_t blocks = is_tree || text->form == TP_REDUCE_ARG ? 1 : problem->blocks;
    result_grid r = {.nx = 1, .ny = 1};
    if (kept->count > 0) r.nx = tp_ix_var_extent(index, kept->vars[kept->count - 1]);
    if (kept->count > 1) r.ny = tp_ix_var_extent(index, kept->vars[kept->count - 2]);
    r.nz = tp_vpu_loops_extent(text->ir, kept, 0, kept->count > 2 ? kept->count - 2 : 0) * blocks;
    r.grid = tp_vpu_grid_plan(caps, r.nx, r.ny, r.nz, 16384);
    if (text->form == TP_REDUCE_GROUP) {
        r.grid = (tp_vpu_grid){.chunk_x = 1,
                               .chunk_y = 1,
                               .global = {(size_t)r.nx * TP_VPU_LANES, (size_t)r.ny, (size_t)r.nz},
                               .local = {TP_VPU_LANES, 1, 1}};
    } else if (caps->type == TP_DEVICE_CPU) {
        /* As many results as make a work-item of about 16384 elements. */
        const int64_t per_result =
            is_tree ? problem->blocks : problem->reduced_elems / problem->blocks + 1;
        const int64_t wanted = 16384 / per_result > 0 ? 16384 / per_result : 1;
        tp_vpu_grid *grid = &r.grid;
        grid->chunk_x = text->columns > 0 ? columns_of_item(text, caps, &r, wanted) : wanted;
        if (grid->chunk_x > r.nx) grid->chunk_x = r.nx > 0 ? r.nx : 1;
        grid->chunk_y = wanted / grid->chunk_x > 0 ? wanted / grid->chunk_x : 1;
        if (grid->chunk_y > r.ny) grid->chunk_y = r.ny > 0 ? r.ny : 1;
        grid->global[0] = (size_t)((r.nx + grid->chunk_x - 1) / grid->chunk_x);
        grid->global[1] = (size_t)((r.ny + grid->chunk_y - 1) / grid->chunk_y);
    }
    return r;
}

/* Only tiles of columns are summed up in vectors; partial results must lie in a row as the columns do. */
static int width_of(const reduce_problem *problem, const tp_reduce_text *text, int64_t chunk)
{
    if (text->columns == 0) return 1;
    if (text->is_long && tp_ix_coef(text->ir->index, text->ir->values[text->kept_number].index,
                                    text->kept.vars[text->kept.count - 1]) != 1)
        return 1;
    return tp_vpu_width(problem->target->caps, text->ir, &text->kept, chunk);
}

static tpucl_status make_launch(reduce_problem *problem, tp_reduce_text *text, const char *label,
                                tp_launch *out_launch)
{
    const bool is_tree = text->form == TP_REDUCE_TREE;
    tp_launch launch = {.kind = TP_LAUNCH_KERNEL, .label = label, .options = ""};
    const result_grid r = plan_grid(problem, text);
    text->width = width_of(problem, text, r.grid.chunk_x);
    TP_TRY(tp_reduce_text_emit(text, &launch.source, &launch.entry));
    tp_vpu_args args = {.arena = problem->target->arena};
    tp_vpu_args_add_slots(&args, text->ir);
    if (text->is_long || is_tree) {
        tp_vpu_args_add(&args, (tp_kernel_arg){.kind = TP_ARG_TENSOR,
                                               .tensor = TP_VPU_SCRATCH,
                                               .is_written = text->is_long});
        tp_vpu_args_add(&args,
                        (tp_kernel_arg){.kind = TP_ARG_U64, .u64 = (uint64_t)problem->kept_elems});
    }
    tp_vpu_args_add_extra(&args, text->ir, &text->coefs);
    const int64_t numbers[] = {
        r.nx, r.ny, r.nz, r.grid.chunk_x, r.grid.chunk_y, problem->reduced_elems, problem->blocks};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        tp_vpu_args_add_int(&args, numbers[i]);
    TP_TRY(args.status);
    launch.args = args.items;
    launch.arg_count = args.count;
    for (int i = 0; i < 3; i++) {
        launch.global[i] = r.grid.global[i];
        launch.local[i] = r.grid.local[i];
    }
    launch.grid_z = launch.global[2];
    launch.bytes = tp_vpu_ir_bytes(text->ir);
    if (!is_tree) launch.flops = (double)problem->kept_elems * (double)problem->reduced_elems;
    *out_launch = launch;
    return TPUCL_OK;
}

/* Below 32 elements most of a work-group would have nothing to add. */
static tp_reduce_form choose_form(const reduce_problem *problem, const tp_reduce_text *text)
{
    const tp_device_caps *caps = problem->target->caps;
    if (problem->is_arg) return TP_REDUCE_ARG;
    if (is_column_form(text)) return TP_REDUCE_COLUMNS;
    const bool has_groups =
        caps->type != TP_DEVICE_CPU && caps->max_work_group_size >= TP_VPU_LANES;
    return has_groups && problem->reduced_elems >= 32 ? TP_REDUCE_GROUP : TP_REDUCE_ROWS;
}

/* All in one launch, or (is_long) the blocks' partial results only. */
static tpucl_status plan_first(reduce_problem *problem, bool is_long, const char *label,
                               tp_launch *out_launch)
{
    const tp_vpu_target *target = problem->target;
    tp_reduce_text text = {.heads = problem->heads,
                           .head_count = problem->head_count,
                           .is_long = is_long,
                           .lanes = lanes_for(problem->reduced_elems)};
    TP_TRY(tp_vpu_ir_create(target->arena, target->graph, target->is_stored, &text.ir));
    tp_ix kept[TP_MAX_RANK] = {0};
    TP_TRY(build_operands(problem, &text, kept));
    if (is_long)
        TP_TRY(add_kept_number(problem, &text, kept));
    else
        TP_TRY(build_roots(problem, &text, kept));
    tp_vpu_loops *const lists[] = {&text.kept, &text.reduced};
    tp_vpu_loops_simplify(text.ir, lists, 2);
    text.form = choose_form(problem, &text);
    if (text.form == TP_REDUCE_COLUMNS) text.columns = columns_for(problem);
    return make_launch(problem, &text, label, out_launch);
}

static tpucl_status plan_tree(reduce_problem *problem, const char *label, tp_launch *out_launch)
{
    const tp_vpu_target *target = problem->target;
    tp_reduce_text text = {
        .heads = problem->heads, .head_count = problem->head_count, .form = TP_REDUCE_TREE};
    TP_TRY(tp_vpu_ir_create(target->arena, target->graph, target->is_stored, &text.ir));
    const tp_node *head = tp_graph_node(target->graph, problem->heads[0].node);
    tp_ix kept[TP_MAX_RANK] = {0};
    tp_vpu_loops_add(text.ir, &text.kept, &head->shape, kept);
    TP_TRY(add_kept_number(problem, &text, kept));
    TP_TRY(build_roots(problem, &text, kept));
    tp_vpu_loops *const lists[] = {&text.kept};
    tp_vpu_loops_simplify(text.ir, lists, 1);
    return make_launch(problem, &text, label, out_launch);
}

tpucl_status tp_vpu_reduce_create(const tp_vpu_target *target, const tp_node_id *heads,
                                  int32_t head_count, const tp_node_id *roots, int32_t root_count,
                                  const char *label, tp_vpu_reduce_plan *out_plan)
{
    reduce_problem problem = {
        .target = target, .head_count = head_count, .roots = roots, .root_count = root_count};
    for (int32_t i = 0; i < head_count; i++)
        TP_TRY(tp_reduce_head_init(target->graph, heads[i], &problem.heads[i]));
    const tp_node *head = tp_graph_node(target->graph, heads[0]);
    tp_reduce_geometry geometry;
    TP_TRY(tp_reduce_geometry_read(head, &tp_graph_node(target->graph, head->inputs[0])->shape,
                                   &geometry));
    problem.is_arg = strcmp(head->def->name, "reduce") != 0;
    problem.kept_elems = geometry.kept_elems;
    problem.reduced_elems = geometry.reduced_elems;
    problem.blocks = problem.is_arg || geometry.reduced_elems <= TP_VPU_BLOCK
                         ? 1
                         : (geometry.reduced_elems + TP_VPU_BLOCK - 1) / TP_VPU_BLOCK;
    *out_plan = (tp_vpu_reduce_plan){.launch_count = problem.blocks > 1 ? 2 : 1};
    TP_TRY(plan_first(&problem, problem.blocks > 1, label, &out_plan->launches[0]));
    if (problem.blocks == 1) return TPUCL_OK;
    out_plan->scratch_bytes =
        (uint64_t)(problem.kept_elems * problem.blocks * head_count) * sizeof(float);
    return plan_tree(&problem, label, &out_plan->launches[1]);
}
