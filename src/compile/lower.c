/* SPDX-License-Identifier: Apache-2.0
 * Buffers for what is stored, launches for clusters, segments for levels.
 */
#include "compile/lower.h"

#include <inttypes.h>
#include <string.h>
#include "core/alloc.h"
#include "graph/loop.h"
#include "graph/opdef.h"

/* ---- buffers ---- */

static bool is_named(const tp_node *node, const char *name)
{
    return node->def->op_class == TP_OP_SOURCE && strcmp(node->def->name, name) == 0;
}

static int32_t variable_of(const tp_graph *graph, tp_node_id id)
{
    for (int32_t i = 0; i < graph->variable_count; i++)
        if (graph->variables[i].node == id) return i;
    return -1;
}

static int32_t output_of(const tp_graph *graph, tp_node_id id)
{
    for (int32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i].node == id) return i;
    return -1;
}

/* The update in place whose value the node is, -1. */
static int32_t update_in_place(const tp_fusion *fusion, tp_node_id id)
{
    for (int32_t i = 0; i < fusion->graph->update_count; i++)
        if (fusion->graph->updates[i].value == id && fusion->is_in_place[i]) return i;
    return -1;
}

/* ---- results in the memory of operands ---- */

/* Position in the order of the last cluster that reads the node. */
static int32_t last_reader(const tp_fusion *fusion, tp_node_id id)
{
    for (int32_t i = fusion->order_count - 1; i >= 0; i--) {
        const tp_cluster *cluster = &fusion->clusters.items[fusion->order[i]];
        for (size_t r = 0; r < cluster->reads.count; r++)
            if (cluster->reads.items[r] == id) return i;
    }
    return -1;
}

/* Memory of one core that nothing outside of launches looks at, and no other turn of a loop. */
static bool is_private(const tp_lowering *l, tp_node_id id)
{
    const tp_fusion *fusion = l->fusion;
    if (fusion->cluster_of[id] < 0 || fusion->is_replicated[id] ||
        output_of(fusion->graph, id) >= 0 || l->host[id] != TP_NO_NODE ||
        tp_graph_node(fusion->graph, id)->def->op_class == TP_OP_LOOP)
        return false;
    for (int32_t u = fusion->user_start[id]; u < fusion->user_start[id + 1]; u++)
        if (tp_graph_node(fusion->graph, fusion->users[u])->def->op_class == TP_OP_COLLECTIVE)
            return false;
    return true;
}

static bool is_taken(const tp_lowering *l, tp_node_id id)
{
    for (tp_node_id root = 0; root < l->fusion->graph->node_count; root++)
        if (l->takes_from[root] == id) return true;
    return false;
}

/* An element-wise result takes the place of an operand that dies with this launch and is read only at
 * the very element that is stored: the launch then moves no new memory into the cache, and the core
 * needs less of it. */
static tpucl_status share_operand(tp_lowering *l, int32_t position, tp_node_id root)
{
    const tp_fusion *fusion = l->fusion;
    const tp_cluster *cluster = &fusion->clusters.items[fusion->order[position]];
    const tp_vpu_target target = tp_fusion_target(fusion);
    const tp_node *node = tp_graph_node(fusion->graph, root);
    for (size_t r = 0; r < cluster->reads.count; r++) {
        const tp_node_id id = cluster->reads.items[r];
        const tp_node *operand = tp_graph_node(fusion->graph, id);
        if (!is_private(l, id) || tp_shape_elems(&operand->shape) != tp_shape_elems(&node->shape) ||
            tp_dtype_size(operand->dtype) != tp_dtype_size(node->dtype) ||
            fusion->clusters.items[fusion->cluster_of[id]].loop != cluster->loop ||
            is_taken(l, id) || last_reader(fusion, id) != position)
            continue;
        bool is_in_place;
        TP_TRY(tp_vpu_map_is_in_place(&target, cluster->roots.items, (int32_t)cluster->roots.count,
                                      root, id, &is_in_place));
        if (!is_in_place) continue;
        l->takes_from[root] = id;
        return TPUCL_OK;
    }
    return TPUCL_OK;
}

static tpucl_status share_operands(tp_lowering *l)
{
    const tp_fusion *fusion = l->fusion;
    for (int32_t i = 0; i < fusion->order_count; i++) {
        const tp_cluster *cluster = &fusion->clusters.items[fusion->order[i]];
        if (cluster->kind != TP_CLUSTER_MAP) continue;
        for (size_t r = 0; r < cluster->roots.count; r++)
            if (is_private(l, cluster->roots.items[r]))
                TP_TRY(share_operand(l, i, cluster->roots.items[r]));
    }
    return TPUCL_OK;
}

/* ---- places ---- */

static uint64_t align(uint64_t bytes)
{
    return (bytes + TP_PROGRAM_ALIGN_BYTES - 1) / TP_PROGRAM_ALIGN_BYTES * TP_PROGRAM_ALIGN_BYTES;
}

/* The next place in a record. */
static uint64_t take_record(uint64_t *inout_record_bytes, uint64_t bytes)
{
    const uint64_t offset = *inout_record_bytes;
    *inout_record_bytes = offset + align(bytes);
    return offset;
}

tpucl_status tp_lower_add_buffer(tp_lowering *l, tp_node_id id)
{
    const tp_fusion *fusion = l->fusion;
    const tp_graph *graph = fusion->graph;
    const tp_node *node = tp_graph_node(graph, id);
    tp_program *program = tp_program_builder_program(l->builder);
    tp_program_buffer buffer = {.name = node->name[0] ? node->name : node->def->name,
                                .dtype = node->dtype,
                                .shape = node->shape,
                                .bytes = (uint64_t)tp_shape_bytes(&node->shape, node->dtype)};
    const int32_t update = update_in_place(fusion, id);
    if (l->buffer_of[id] >= 0) return TPUCL_OK;
    if (tp_lower_is_view(l, id)) return tp_lower_add_view(l, id);
    if (l->takes_from[id] != TP_NO_NODE) {
        TP_TRY(tp_lower_add_buffer(l, l->takes_from[id]));
        l->buffer_of[id] = l->buffer_of[l->takes_from[id]];
        return TPUCL_OK;
    }
    if (is_named(node, "input")) {
        buffer.space = TP_SPACE_INPUT;
        buffer.offset_bytes = take_record(&program->input_bytes, buffer.bytes);
    } else if (is_named(node, "variable")) {
        buffer.space = TP_SPACE_VARIABLE;
        buffer.variable = variable_of(graph, id);
    } else if (is_named(node, "constant")) {
        buffer.space = TP_SPACE_CONSTANT;
        TP_TRY(tp_program_builder_add_constant(l->builder, tp_node_attr(node, "value")->data,
                                               buffer.bytes, &buffer.offset_bytes));
    } else if (update >= 0) {
        l->buffer_of[id] = l->buffer_of[graph->variables[graph->updates[update].variable].node];
        return TPUCL_OK;
    } else if (output_of(graph, id) >= 0) {
        const bool is_result = fusion->is_replicated[id];
        buffer.space = is_result ? TP_SPACE_RESULT : TP_SPACE_OUTPUT;
        buffer.offset_bytes =
            take_record(is_result ? &program->result_bytes : &program->output_bytes, buffer.bytes);
    } else {
        buffer.space = fusion->is_replicated[id] ? TP_SPACE_REPLICATED : TP_SPACE_CORE;
    }
    return tp_program_builder_add_buffer(l->builder, &buffer, &l->buffer_of[id]);
}

static tpucl_status add_variables(tp_lowering *l)
{
    const tp_graph *graph = l->fusion->graph;
    for (int32_t i = 0; i < graph->variable_count; i++) {
        const tp_variable *from = &graph->variables[i];
        const tp_program_variable variable = {.name = from->name,
                                              .dtype = from->dtype,
                                              .shape = from->shape,
                                              .init = (int32_t)from->init,
                                              .init_a = from->init_a,
                                              .init_b = from->init_b,
                                              .is_trainable = from->is_trainable,
                                              .is_model = from->is_model};
        int32_t index;
        TP_TRY(tp_program_builder_add_variable(l->builder, &variable, &index));
        TP_TRY(tp_lower_add_buffer(l, from->node));
    }
    return TPUCL_OK;
}

static tpucl_status add_buffers(tp_lowering *l)
{
    const tp_fusion *fusion = l->fusion;
    const tp_graph *graph = fusion->graph;
    TP_TRY(add_variables(l));
    for (int32_t i = 0; i < graph->input_count; i++) {
        TP_TRY(tp_lower_add_buffer(l, graph->inputs[i].node));
        TP_TRY(tp_program_builder_add_port(l->builder, TP_PORT_INPUT, graph->inputs[i].name,
                                           l->buffer_of[graph->inputs[i].node]));
    }
    for (tp_node_id id = 0; id < graph->node_count; id++)
        if (fusion->is_live[id] && fusion->is_stored[id]) TP_TRY(tp_lower_add_buffer(l, id));
    for (int32_t i = 0; i < graph->output_count; i++) {
        const tp_node_id id = graph->outputs[i].node;
        const tp_port_kind kind = fusion->is_replicated[id] ? TP_PORT_RESULT : TP_PORT_OUTPUT;
        TP_TRY(tp_program_builder_add_port(l->builder, kind, graph->outputs[i].name,
                                           l->buffer_of[id]));
    }
    return TPUCL_OK;
}

tpucl_status tp_lower_add_scratch(tp_lowering *l, const char *name, tp_dtype dtype, uint64_t bytes,
                                  bool is_per_core, int32_t *out_buffer)
{
    tp_program_buffer buffer = {.name = name,
                                .dtype = dtype,
                                .bytes = bytes,
                                .is_scratch = true,
                                .space = is_per_core ? TP_SPACE_CORE : TP_SPACE_REPLICATED};
    buffer.shape.rank = 1;
    buffer.shape.dims[0] = (int64_t)(bytes / tp_dtype_size(dtype));
    return tp_program_builder_add_buffer(l->builder, &buffer, out_buffer);
}

/* ---- launches ---- */

tpucl_status tp_lower_add_launch(tp_lowering *l, int32_t level, bool is_per_core,
                                 const tp_launch *launch)
{
    tp_launch copy = *launch;
    copy.is_per_core = is_per_core;
    return tp_launch_list_push(&l->segments[2 * level + (is_per_core ? 1 : 0)], copy);
}

tpucl_status tp_lower_map_args(tp_lowering *l, const tp_kernel_arg *args, int32_t count,
                               int32_t scratch, const tp_kernel_arg **out_args)
{
    tp_kernel_arg *mapped = TP_ARENA_NEW_ARRAY(l->fusion->arena, tp_kernel_arg, (size_t)count + 1);
    if (!mapped) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        mapped[i] = args[i];
        if (args[i].kind != TP_ARG_TENSOR) continue;
        mapped[i].tensor =
            args[i].tensor == TP_VPU_SCRATCH ? scratch : l->buffer_of[args[i].tensor];
        if (mapped[i].tensor < 0)
            return TP_FAIL(TPUCL_INTERNAL, "node %" PRId32 " is used by a kernel but not stored",
                           args[i].tensor);
    }
    *out_args = mapped;
    return TPUCL_OK;
}

const char *tp_lower_label(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_graph *graph = l->fusion->graph;
    const tp_node *head =
        cluster->heads.count > 0 ? tp_graph_node(graph, cluster->heads.items[0]) : NULL;
    const tp_node *root = cluster->roots.count > 0
                              ? tp_graph_node(graph, cluster->roots.items[cluster->roots.count - 1])
                              : head;
    const char *name = head && head->name[0] ? head->name : root->name;
    const char *op = head ? head->def->name : root->def->name;
    const char *label = tp_arena_printf(l->fusion->arena, "%s%s%s", name, *name ? " " : "", op);
    return label ? label : op;
}

static tpucl_status lower_map(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_vpu_target target = tp_fusion_target(l->fusion);
    tp_launch launch;
    TP_TRY(tp_vpu_map_create(&target, cluster->roots.items, (int32_t)cluster->roots.count,
                             tp_lower_label(l, cluster), &launch));
    TP_TRY(tp_lower_map_args(l, launch.args, launch.arg_count, -1, &launch.args));
    return tp_lower_add_launch(l, cluster->level, !cluster->is_replicated, &launch);
}

static tpucl_status lower_reduce(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_vpu_target target = tp_fusion_target(l->fusion);
    tp_vpu_reduce_plan plan;
    TP_TRY(tp_vpu_reduce_create(&target, cluster->heads.items, (int32_t)cluster->heads.count,
                                cluster->roots.items, (int32_t)cluster->roots.count,
                                tp_lower_label(l, cluster), &plan));
    int32_t scratch = -1;
    if (plan.scratch_bytes > 0)
        TP_TRY(tp_lower_add_scratch(l, "partial sums", TP_F32, plan.scratch_bytes,
                                    !cluster->is_replicated, &scratch));
    for (int32_t i = 0; i < plan.launch_count; i++) {
        tp_launch *launch = &plan.launches[i];
        TP_TRY(tp_lower_map_args(l, launch->args, launch->arg_count, scratch, &launch->args));
        TP_TRY(tp_lower_add_launch(l, cluster->level, !cluster->is_replicated, launch));
    }
    return TPUCL_OK;
}

static tpucl_status lower_all_reduce(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_node_id head = cluster->heads.items[0];
    const tp_node_id summand = tp_graph_node(l->fusion->graph, head)->inputs[0];
    const tp_reduce_pair pair = {.level = cluster->level,
                                 .core_buffer = l->is_summed[summand] ? -1 : l->buffer_of[summand],
                                 .replicated_buffer = l->buffer_of[head]};
    return tp_reduce_list_push(&l->reduces, pair);
}

static tpucl_status lower_cluster(tp_lowering *l, const tp_cluster *cluster)
{
    switch (cluster->kind) {
    case TP_CLUSTER_MAP:
        return lower_map(l, cluster);
    case TP_CLUSTER_REDUCE:
        return lower_reduce(l, cluster);
    case TP_CLUSTER_MXU:
        return tp_lower_mxu(l, cluster);
    case TP_CLUSTER_WINDOW:
        return tp_lower_window(l, cluster);
    case TP_CLUSTER_MEMORY:
        return tp_lower_memory(l, cluster);
    case TP_CLUSTER_LOOP:
        return TPUCL_OK; /* its memory is a view */
    case TP_CLUSTER_ALL_REDUCE:
    default:
        return lower_all_reduce(l, cluster);
    }
}

/* Updates that could not be written in place are copied when all else is done. */
static tpucl_status copy_updates(tp_lowering *l)
{
    const tp_fusion *fusion = l->fusion;
    const tp_graph *graph = fusion->graph;
    for (int32_t u = 0; u < graph->update_count; u++) {
        if (fusion->is_in_place[u]) continue;
        const tp_node_id value = graph->updates[u].value;
        const tp_node *node = tp_graph_node(graph, value);
        const int64_t elems = tp_shape_elems(&node->shape);
        tp_vpu_args args = {.arena = fusion->arena};
        const tp_vpu_grid grid = tp_vpu_grid_plan(fusion->caps, elems, 1, 1, 1 << 18);
        tp_vpu_args_add(&args,
                        (tp_kernel_arg){.kind = TP_ARG_TENSOR, .tensor = l->buffer_of[value]});
        tp_vpu_args_add(
            &args, (tp_kernel_arg){
                       .kind = TP_ARG_TENSOR,
                       .tensor = l->buffer_of[graph->variables[graph->updates[u].variable].node],
                       .is_written = true});
        tp_vpu_args_add_int(&args, elems);
        tp_vpu_args_add_int(&args, grid.chunk_x);
        TP_TRY(args.status);
        tp_launch launch = {.kind = TP_LAUNCH_KERNEL,
                            .label = "copy of an update",
                            .source = "#include \"vpu/vpu_copy.cl\"\n",
                            .entry = "vpu_copy",
                            .args = args.items,
                            .arg_count = args.count,
                            .grid_z = 1,
                            .bytes = 2.0 * (double)tp_shape_bytes(&node->shape, node->dtype)};
        launch.options =
            tp_arena_printf(fusion->arena, "-DCOPY_TYPE=%s", tp_vpu_storage_type(node->dtype));
        if (!launch.options) return TPUCL_OUT_OF_MEMORY;
        for (int i = 0; i < 3; i++) {
            launch.global[i] = grid.global[i];
            launch.local[i] = grid.local[i];
        }
        TP_TRY(tp_lower_add_launch(l, fusion->level_count - 1, false, &launch));
    }
    return TPUCL_OK;
}

/* Generated kernels of all segments share sources. */
static tpucl_status join_sources(tp_lowering *l)
{
    tp_launch_refs generated = {0};
    tpucl_status status = TPUCL_OK;
    for (int32_t s = 0; s < l->segment_count; s++)
        for (size_t i = 0; i < l->segments[s].count && status == TPUCL_OK; i++) {
            tp_launch *launch = &l->segments[s].items[i];
            if (launch->source && strstr(launch->source, "VPU_NAME("))
                status = tp_launch_refs_push(&generated, launch);
        }
    if (status == TPUCL_OK)
        status = tp_vpu_module_build(l->fusion->arena, generated.items, (int32_t)generated.count);
    tp_launch_refs_deinit(&generated);
    return status;
}

static int64_t turns_of(const tp_lowering *l, const tp_lowered_loop *loop)
{
    return tp_loop_length(l->fusion->graph, loop->loop);
}

static int64_t turns_of_launch(const tp_lowering *l, int32_t segment, int32_t index)
{
    for (size_t i = 0; i < l->loops.count; i++) {
        const tp_lowered_loop *loop = &l->loops.items[i];
        if (loop->segment == segment && index >= loop->first && index < loop->first + loop->count)
            return turns_of(l, loop);
    }
    return 1;
}

static tpucl_status emit_loops(tp_lowering *l, int32_t segment)
{
    for (size_t i = 0; i < l->loops.count; i++) {
        const tp_lowered_loop *loop = &l->loops.items[i];
        if (loop->segment == segment && loop->count > 0)
            TP_TRY(tp_program_builder_add_loop(l->builder, loop->first, loop->count,
                                               turns_of(l, loop)));
    }
    return TPUCL_OK;
}

static tpucl_status emit_segments(tp_lowering *l)
{
    int32_t per_core_segments = 0;
    tp_program *program = tp_program_builder_program(l->builder);
    for (int32_t s = 0; s < l->segment_count; s++) {
        const bool is_per_core = s % 2 == 1;
        TP_TRY(tp_program_builder_begin_segment(l->builder, is_per_core));
        for (size_t i = 0; i < l->segments[s].count; i++) {
            const tp_launch *launch = &l->segments[s].items[i];
            const double turns = (double)turns_of_launch(l, s, (int32_t)i);
            TP_TRY(tp_program_builder_add_launch(l->builder, launch));
            if (launch->kind != TP_LAUNCH_KERNEL) program->is_exact = false;
            if (is_per_core) {
                program->flops_per_core += turns * launch->flops;
                program->bytes_per_core += turns * launch->bytes;
            }
        }
        TP_TRY(emit_loops(l, s));
        if (is_per_core && l->segments[s].count > 0) per_core_segments++;
    }
    program->is_resident = per_core_segments > 1;
    return TPUCL_OK;
}

tpucl_status tp_lower(tp_lowering *l)
{
    const tp_fusion *fusion = l->fusion;
    const size_t nodes = (size_t)fusion->graph->node_count;
    l->buffer_of = TP_ARENA_NEW_ARRAY(fusion->arena, int32_t, nodes + 1);
    l->takes_from = TP_ARENA_NEW_ARRAY(fusion->arena, tp_node_id, nodes + 1);
    l->host = TP_ARENA_NEW_ARRAY(fusion->arena, tp_node_id, nodes + 1);
    l->memory_of = TP_ARENA_NEW_ARRAY(fusion->arena, int32_t, nodes + 1);
    l->is_summed = TP_ARENA_NEW_ARRAY(fusion->arena, bool, nodes + 1);
    l->segment_count = 2 * fusion->level_count;
    l->segments = TP_ARENA_NEW_ARRAY(fusion->arena, tp_launch_list, (size_t)l->segment_count + 1);
    if (!l->buffer_of || !l->takes_from || !l->host || !l->memory_of || !l->is_summed ||
        !l->segments) {
        l->segment_count = 0;
        return TPUCL_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < nodes; i++) {
        l->buffer_of[i] = l->memory_of[i] = -1;
        l->takes_from[i] = l->host[i] = TP_NO_NODE;
    }
    TP_TRY(tp_lower_find_hosts(l));
    TP_TRY(share_operands(l));
    TP_TRY(add_buffers(l));
    for (int32_t i = 0; i < fusion->order_count; i++) {
        const tp_cluster *cluster = &fusion->clusters.items[fusion->order[i]];
        TP_TRY(tp_lower_enter_loop(l, cluster));
        TP_TRY(lower_cluster(l, cluster));
    }
    TP_TRY(tp_lower_enter_loop(l, NULL));
    TP_TRY(copy_updates(l));
    TP_TRY(join_sources(l));
    return emit_segments(l);
}

void tp_lowering_deinit(tp_lowering *l)
{
    for (int32_t i = 0; i < l->segment_count; i++)
        tp_launch_list_deinit(&l->segments[i]);
    tp_reduce_list_deinit(&l->reduces);
    tp_pack_list_deinit(&l->packs);
    tp_loop_list_deinit(&l->loops);
}
