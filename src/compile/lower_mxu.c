/* SPDX-License-Identifier: Apache-2.0
 * Products: the node's geometry and operand views become a tp_mxu_problem, kernel/ plans it, and its
 * launches and scratch memory become the program's. Packed forms of what stands once per device are
 * made once per step, in front of the cores' work. They, and what a core packs of its own, are shared by all
 * products that ask for the same form.
 */
#include "compile/lower.h"

#include <inttypes.h>
#include <string.h>
#include "graph/geometry.h"
#include "graph/loop.h"
#include "graph/opdef.h"

/* Above every buffer index: positions of a plan's scratch memory. */
#define SCRATCH_BASE (1 << 24)

static tpucl_status read_dot(const tp_fusion *fusion, const tp_node *node, tp_dot_geometry *out)
{
    return tp_dot_geometry_read(node, &tp_graph_node(fusion->graph, node->inputs[0])->shape,
                                &tp_graph_node(fusion->graph, node->inputs[1])->shape, out);
}

static tp_conv_kind conv_kind(const tp_node *node)
{
    if (strcmp(node->def->name, "convolution_input_grad") == 0) return TP_CONV_INPUT_GRAD;
    if (strcmp(node->def->name, "convolution_filter_grad") == 0) return TP_CONV_FILTER_GRAD;
    return TP_CONV_FORWARD;
}

static tpucl_status read_conv(const tp_fusion *fusion, const tp_node *node, tp_conv_geometry *out)
{
    return tp_conv_geometry_read(node, conv_kind(node),
                                 &tp_graph_node(fusion->graph, node->inputs[0])->shape,
                                 &tp_graph_node(fusion->graph, node->inputs[1])->shape, out);
}

tpucl_status tp_fusion_product_size(const tp_fusion *fusion, tp_node_id id, int64_t *out_batch,
                                    int64_t *out_m, int64_t *out_n)
{
    const tp_node *node = tp_graph_node(fusion->graph, id);
    if (strcmp(node->def->name, "dot_general") == 0) {
        tp_dot_geometry g;
        TP_TRY(read_dot(fusion, node, &g));
        *out_batch = g.batch;
        *out_m = g.m;
        *out_n = g.n;
        return TPUCL_OK;
    }
    tp_conv_geometry g;
    TP_TRY(read_conv(fusion, node, &g));
    *out_batch = 1;
    *out_m = g.m;
    *out_n = g.n;
    return TPUCL_OK;
}

static bool is_once_per_device(tp_space space)
{
    return space == TP_SPACE_REPLICATED || space == TP_SPACE_VARIABLE ||
           space == TP_SPACE_CONSTANT || space == TP_SPACE_RESULT;
}

/* What stands once per device is packed in front of the cores' work, unless a loop moves it: then it is
 * packed in each turn, where the product is. */
static tp_mxu_operand operand_of(tp_lowering *l, const tp_cluster *cluster,
                                 const tp_operand_view *view)
{
    const tp_program *program = tp_program_builder_program(l->builder);
    const tp_program_buffer *buffer = &program->buffers[l->buffer_of[view->base]];
    return (tp_mxu_operand){.dtype = tp_graph_node(l->fusion->graph, view->base)->dtype,
                            .is_replicated = is_once_per_device(buffer->space) &&
                                             (cluster->is_replicated || !buffer->view.stride_bytes),
                            .stride_batch = view->stride_batch,
                            .stride_outer = view->stride_outer,
                            .stride_inner = view->stride_inner};
}

static tpucl_status fill_problem(tp_lowering *l, const tp_cluster *cluster, tp_mxu_problem *p)
{
    const tp_fusion *fusion = l->fusion;
    const tp_node_id head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(fusion->graph, head);
    const tp_operand_view *views = &fusion->operands[2 * head];
    p->a = operand_of(l, cluster, &views[0]);
    p->b = operand_of(l, cluster, &views[1]);
    p->a_tensor = l->buffer_of[views[0].base];
    p->b_tensor = l->buffer_of[views[1].base];
    p->c_is_replicated = cluster->is_replicated;
    p->is_fast_math = l->options->is_fast_math;
    if (p->b.is_replicated && l->options->cores > 0) p->runs_per_b = l->options->cores;
    if (p->b.is_replicated && cluster->loop)
        p->runs_per_b =
            (p->runs_per_b ? p->runs_per_b : 1) * tp_loop_length(fusion->graph, cluster->loop);
    p->label = tp_lower_label(l, cluster);
    if (strcmp(node->def->name, "dot_general") == 0) {
        tp_dot_geometry g;
        TP_TRY(read_dot(fusion, node, &g));
        p->kind = TP_MXU_DOT;
        p->precision = g.precision;
        p->batch = g.batch;
        p->m = g.m;
        p->n = g.n;
        p->k = g.k;
        return TPUCL_OK;
    }
    tp_conv_geometry g;
    TP_TRY(read_conv(fusion, node, &g));
    static const tp_mxu_kind kinds[] = {TP_MXU_CONV, TP_MXU_CONV_INPUT_GRAD,
                                        TP_MXU_CONV_FILTER_GRAD};
    p->kind = kinds[conv_kind(node)];
    p->precision = g.precision;
    p->batch = 1;
    p->m = g.m;
    p->n = g.n;
    p->k = g.k;
    p->conv = (tp_mxu_conv){.images = g.images,
                            .in_h = g.in_h,
                            .in_w = g.in_w,
                            .in_c = g.in_c,
                            .out_h = g.out_h,
                            .out_w = g.out_w,
                            .out_c = g.out_c,
                            .kernel_h = g.kernel_h,
                            .kernel_w = g.kernel_w,
                            .stride_h = g.stride_h,
                            .stride_w = g.stride_w,
                            .pad_top = g.pad_top,
                            .pad_left = g.pad_left,
                            .dilation_h = g.dilation_h,
                            .dilation_w = g.dilation_w,
                            .groups = g.groups};
    return TPUCL_OK;
}

/* Plain where the product itself is all that is stored: then a library may do it. */
static tpucl_status fill_epilogue(tp_lowering *l, const tp_cluster *cluster, tp_mxu_problem *p)
{
    const tp_node_id head = cluster->heads.items[0];
    p->c_dtype = TP_F32;
    p->c_tensor = -1;
    if (cluster->roots.count == 1 && cluster->roots.items[0] == head) {
        p->c_tensor = l->buffer_of[head];
        p->c_dtype = tp_graph_node(l->fusion->graph, head)->dtype;
        return tp_mxu_plain_epilogue(p, l->fusion->arena);
    }
    const tp_vpu_target target = tp_fusion_target(l->fusion);
    TP_TRY(tp_vpu_epilogue_create(&target, head, p->batch, p->m, p->n, cluster->roots.items,
                                  (int32_t)cluster->roots.count, &p->epilogue));
    return tp_lower_map_args(l, p->epilogue.args, p->epilogue.arg_count, -1, &p->epilogue.args);
}

/* Is what an earlier product packed there for this cluster, too? A device's is from its level on. A core's is
 * within a level only, since the next wave of cores overwrites it, and in the turn of a loop that made it. */
static bool is_there(const tp_shared_pack *pack, const tp_cluster *cluster)
{
    if (!pack->is_per_core) return pack->level <= cluster->level;
    return pack->level == cluster->level && pack->loop == cluster->loop;
}

/* The buffer of a packed form made by an earlier product, -1. */
static int32_t find_pack(const tp_lowering *l, const tp_mxu_scratch *scratch, tp_node_id from,
                         const tp_cluster *cluster)
{
    for (size_t i = 0; i < l->packs.count; i++) {
        const tp_shared_pack *pack = &l->packs.items[i];
        if (pack->from == from && pack->is_per_core == scratch->is_per_core &&
            is_there(pack, cluster) && strcmp(pack->key, scratch->pack_key) == 0)
            return pack->buffer;
    }
    return -1;
}

/* The node whose packed form the scratch memory holds. */
static tp_node_id packed_node(const tp_lowering *l, const tp_cluster *cluster,
                              const tp_mxu_scratch *scratch)
{
    const tp_operand_view *views = &l->fusion->operands[2 * cluster->heads.items[0]];
    return views[l->buffer_of[views[1].base] == scratch->packed_from].base;
}

typedef struct scratch_place {
    int32_t buffer;
    bool is_shared; /* its packing launch has run already */
    bool is_written;
} scratch_place;

static tpucl_status place_scratch(tp_lowering *l, const tp_cluster *cluster,
                                  const tp_mxu_plan *plan, scratch_place *out_places)
{
    for (int32_t i = 0; i < plan->scratch_count; i++) {
        const tp_mxu_scratch *scratch = &plan->scratch[i];
        const bool may_share = scratch->packed_from >= 0;
        const tp_node_id from = may_share ? packed_node(l, cluster, scratch) : TP_NO_NODE;
        out_places[i] = (scratch_place){.buffer = -1};
        if (may_share) out_places[i].buffer = find_pack(l, scratch, from, cluster);
        out_places[i].is_shared = out_places[i].is_written = out_places[i].buffer >= 0;
        if (out_places[i].is_shared) continue;
        const char *name = "scratch of a product";
        if (scratch->packed_from >= 0)
            name = tp_arena_printf(
                l->fusion->arena, "%s packed",
                tp_program_builder_program(l->builder)->buffers[scratch->packed_from].name);
        if (!name) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_lower_add_scratch(l, name, scratch->dtype, scratch->bytes, scratch->is_per_core,
                                    &out_places[i].buffer));
        if (may_share)
            TP_TRY(tp_pack_list_push(&l->packs,
                                     (tp_shared_pack){.from = from,
                                                      .key = scratch->pack_key,
                                                      .buffer = out_places[i].buffer,
                                                      .level = cluster->level,
                                                      .loop = cluster->loop,
                                                      .is_per_core = scratch->is_per_core}));
    }
    return TPUCL_OK;
}

static tpucl_status add_launch(tp_lowering *l, const tp_cluster *cluster, const tp_mxu_plan *plan,
                               int32_t index, scratch_place *places)
{
    tp_launch launch = plan->launches[index];
    const int32_t fills = plan->launch_fills_scratch[index];
    if (fills >= 0 && places[fills].is_shared) return TPUCL_OK;
    tp_kernel_arg *args =
        TP_ARENA_NEW_ARRAY(l->fusion->arena, tp_kernel_arg, (size_t)launch.arg_count + 1);
    if (!args) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < launch.arg_count; i++) {
        args[i] = launch.args[i];
        if (args[i].kind != TP_ARG_TENSOR || args[i].tensor < SCRATCH_BASE) continue;
        scratch_place *place = &places[args[i].tensor - SCRATCH_BASE];
        args[i].tensor = place->buffer;
        /* Scratch memory is written by the first launch that has it. */
        if (!place->is_written) args[i].is_written = true;
        place->is_written = true;
    }
    launch.args = args;
    const bool is_per_core =
        fills >= 0 ? plan->scratch[fills].is_per_core : !cluster->is_replicated;
    return tp_lower_add_launch(l, cluster->level, is_per_core, &launch);
}

/* The all_reduce that is all that becomes of the product, TP_NO_NODE: weights' gradients. */
static tp_node_id sum_of(const tp_lowering *l, const tp_cluster *cluster)
{
    const tp_fusion *fusion = l->fusion;
    const tp_node_id head = cluster->heads.items[0];
    if (cluster->is_replicated || cluster->loop || cluster->roots.count != 1 ||
        cluster->roots.items[0] != head || tp_graph_node(fusion->graph, head)->dtype != TP_F32 ||
        fusion->user_start[head + 1] - fusion->user_start[head] != 1)
        return TP_NO_NODE;
    const tp_node_id user = fusion->users[fusion->user_start[head]];
    for (int32_t i = 0; i < fusion->graph->output_count; i++)
        if (fusion->graph->outputs[i].node == head) return TP_NO_NODE;
    return tp_node_is(tp_graph_node(fusion->graph, user), "all_reduce") ? user : TP_NO_NODE;
}

/* No core has a result of its own: what stands for it in listings is the sum. */
static void mark_summed(tp_lowering *l, tp_node_id head, const tp_mxu_problem *problem)
{
    tp_program *program = tp_program_builder_program(l->builder);
    tp_program_buffer *own = &program->buffers[l->buffer_of[head]];
    own->space = TP_SPACE_REPLICATED;
    own->view = (tp_program_view){.is_view = true, .of = problem->sum_tensor, .turns = 1};
    l->is_summed[head] = true;
    program->most_cores = problem->most_cores;
}

/* Plans the product; where nothing but its sum over cores is wanted and a variant makes that, as the sum. */
static tpucl_status plan_product(tp_lowering *l, const tp_cluster *cluster, tp_mxu_plan *plan)
{
    tp_mxu_problem problem = {0};
    const tp_node_id sum = sum_of(l, cluster);
    TP_TRY(fill_problem(l, cluster, &problem));
    TP_TRY(fill_epilogue(l, cluster, &problem));
    if (sum != TP_NO_NODE) {
        problem.most_cores = l->options->cores > 0 ? l->options->cores : 1;
        problem.sum_tensor = l->buffer_of[sum];
    }
    TP_TRY(tp_mxu_plan_create(&problem, l->options->caps, l->options->allow, SCRATCH_BASE,
                              l->fusion->arena, plan));
    if (plan->sums_cores) mark_summed(l, cluster->heads.items[0], &problem);
    return TPUCL_OK;
}

tpucl_status tp_lower_mxu(tp_lowering *l, const tp_cluster *cluster)
{
    tp_mxu_plan *plan = TP_ARENA_NEW(l->fusion->arena, tp_mxu_plan);
    if (!plan) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(plan_product(l, cluster, plan));
    scratch_place places[TP_MXU_MAX_SCRATCH];
    TP_TRY(place_scratch(l, cluster, plan, places));
    for (int32_t i = 0; i < plan->launch_count; i++)
        TP_TRY(add_launch(l, cluster, plan, i, places));
    return TPUCL_OK;
}
