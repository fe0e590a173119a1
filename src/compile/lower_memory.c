/* SPDX-License-Identifier: Apache-2.0
 * Memory ops: kernels/memory/. Here: launches in general, tables of dims, gather and the dynamic slices;
 * scatter and sort have files of their own.
 */
#include "compile/lower_memory.h"

#include <inttypes.h>
#include <string.h>
#include "graph/attrs.h"
#include "graph/opdef.h"

/* ---- launches ---- */

tp_memory_launch tp_memory_launch_begin(tp_lowering *l, const tp_cluster *cluster,
                                        const char *source, const char *entry, const char *options)
{
    tp_memory_launch m = {.lowering = l,
                          .cluster = cluster,
                          .launch = {.kind = TP_LAUNCH_KERNEL,
                                     .label = tp_lower_label(l, cluster),
                                     .options = options,
                                     .entry = entry},
                          .args = {.arena = l->fusion->arena}};
    m.launch.source = tp_arena_printf(l->fusion->arena, "#include \"memory/%s.cl\"\n", source);
    if (!m.launch.source || !options) m.args.status = TPUCL_OUT_OF_MEMORY;
    return m;
}

void tp_memory_launch_add_buffer(tp_memory_launch *m, int32_t buffer, bool is_written)
{
    tp_vpu_args_add(
        &m->args,
        (tp_kernel_arg){.kind = TP_ARG_TENSOR, .tensor = buffer, .is_written = is_written});
}

void tp_memory_launch_add_node(tp_memory_launch *m, tp_node_id id, bool is_written)
{
    const tp_node *node = tp_graph_node(m->lowering->fusion->graph, id);
    const int32_t buffer = m->lowering->buffer_of[id];
    if (buffer < 0)
        m->args.status =
            TP_FAIL(TPUCL_INTERNAL, "node %" PRId32 " is used by a kernel but not stored", id);
    m->launch.bytes += (double)tp_shape_bytes(&node->shape, node->dtype);
    tp_memory_launch_add_buffer(m, buffer, is_written);
}

void tp_memory_launch_add_int(tp_memory_launch *m, int64_t value)
{
    tp_vpu_args_add_int(&m->args, value);
}

void tp_memory_launch_add_u32(tp_memory_launch *m, int64_t value)
{
    if (value > UINT32_MAX) {
        m->args.status = TP_FAIL(TPUCL_UNSUPPORTED,
                                 "%s: a stride of %" PRId64 " elements is too long for a kernel",
                                 m->launch.label, value);
        return;
    }
    tp_vpu_args_add(&m->args, (tp_kernel_arg){.kind = TP_ARG_U32, .u32 = (uint32_t)value});
}

tpucl_status tp_memory_launch_end(tp_memory_launch *m, int64_t nx, int64_t ny, int64_t nz,
                                  bool has_rows)
{
    if (nx == 0 || ny == 0 || nz == 0) return m->args.status;
    const tp_vpu_grid grid =
        tp_vpu_grid_plan(m->lowering->options->caps, nx, has_rows ? ny : 1, nz, 4096);
    tp_vpu_args_add_int(&m->args, nz);
    tp_vpu_args_add_int(&m->args, grid.chunk_x);
    if (has_rows) tp_vpu_args_add_int(&m->args, grid.chunk_y);
    TP_TRY(m->args.status);
    for (int i = 0; i < 3; i++) {
        m->launch.global[i] = grid.global[i];
        m->launch.local[i] = grid.local[i];
    }
    m->launch.grid_z = m->launch.global[2];
    m->launch.args = m->args.items;
    m->launch.arg_count = m->args.count;
    return tp_lower_add_launch(m->lowering, m->cluster->level, !m->cluster->is_replicated,
                               &m->launch);
}

const char *tp_memory_dtype_option(tp_dtype dtype)
{
    switch (dtype) {
    case TP_BF16:
        return " -DMEMORY_BF16";
    case TP_S32:
        return " -DMEMORY_S32";
    case TP_U32:
        return " -DMEMORY_U32";
    case TP_U8:
    case TP_PRED:
        return " -DMEMORY_U8";
    default:
        return " -DMEMORY_F32";
    }
}

/* The type that moves elements of a dtype. */
static const char *type_option(tp_dtype dtype)
{
    switch (tp_dtype_size(dtype)) {
    case 1:
        return "-DMEMORY_TYPE=uchar";
    case 2:
        return "-DMEMORY_TYPE=ushort";
    default:
        return "-DMEMORY_TYPE=uint";
    }
}

/* ---- tables ---- */

tp_index_table tp_index_table_make(const tp_indexing *ix, bool clamps, const bool *is_taken)
{
    tp_index_table t = {.components = ix->components};
    int64_t dense[TP_MAX_RANK];
    tp_shape_strides(&ix->dense, dense);
    for (int32_t k = 0; k < ix->components; k++)
        t.window_dims[k] = -1;
    for (int32_t d = 0; d < ix->rank; d++) {
        bool is_window = false;
        for (int32_t k = 0; k < ix->components && !clamps; k++)
            is_window = is_window || ix->window_dims[k] == d;
        if ((is_taken && !is_taken[d]) || ix->sizes[d] == 1) continue;
        const int32_t last = t.rank - 1;
        const int64_t size = ix->sizes[d];
        const bool runs_on = t.rank > 0 && !is_window && !t.is_window[last] &&
                             t.operand_strides[last] == size * ix->operand_strides[d] &&
                             t.index_strides[last] == size * ix->index_strides[d] &&
                             t.dense_strides[last] == size * dense[d];
        const int32_t at = runs_on ? last : t.rank++;
        t.sizes[at] = runs_on ? t.sizes[at] * size : size;
        t.operand_strides[at] = ix->operand_strides[d];
        t.index_strides[at] = ix->index_strides[d];
        t.dense_strides[at] = dense[d];
        t.is_window[at] = is_window;
        for (int32_t k = 0; k < ix->components && is_window; k++)
            if (ix->window_dims[k] == d) t.window_dims[k] = at;
    }
    return t;
}

int64_t tp_index_table_elems(const tp_index_table *t, int32_t rank)
{
    int64_t elems = 1;
    for (int32_t d = 0; d < rank; d++)
        elems *= t->sizes[d];
    return elems;
}

tpucl_status tp_index_table_store(tp_lowering *l, const tp_index_table *t, const tp_indexing *ix,
                                  int32_t *out_buffer)
{
    enum { COLUMNS = 4 }; /* TABLE_COLUMNS of memory/indexing.clh */
    int64_t numbers[2 * TP_MAX_RANK * COLUMNS] = {0};
    uint32_t words[2 * TP_MAX_RANK * COLUMNS] = {0};
    int32_t count = 0;
    for (int32_t d = 0; d < t->rank; d++) {
        numbers[count++] = t->sizes[d];
        numbers[count++] = t->operand_strides[d];
        numbers[count++] = t->index_strides[d];
        numbers[count++] = t->dense_strides[d];
    }
    for (int32_t k = 0; k < t->components; k++) {
        numbers[count++] = ix->limits[k];
        numbers[count++] = ix->extents[k];
        numbers[count++] = ix->steps[k];
        numbers[count++] = t->window_dims[k] + 1;
    }
    for (int32_t i = 0; i < count; i++) {
        if (numbers[i] > UINT32_MAX)
            return TP_FAIL(TPUCL_UNSUPPORTED,
                           "an indexed tensor with a size or stride of %" PRId64
                           " elements is too large for a kernel",
                           numbers[i]);
        words[i] = (uint32_t)numbers[i];
    }
    if (count == 0) count = 1; /* OpenCL has no empty buffers */
    tp_program_buffer buffer = {.name = "table of dims",
                                .dtype = TP_U32,
                                .shape = {.rank = 1, .dims = {count}},
                                .bytes = (uint64_t)count * sizeof *words,
                                .space = TP_SPACE_CONSTANT};
    TP_TRY(tp_program_builder_add_constant(l->builder, words, buffer.bytes, &buffer.offset_bytes));
    return tp_program_builder_add_buffer(l->builder, &buffer, out_buffer);
}

const char *tp_index_options(tp_lowering *l, const tp_indexing *ix, bool clamps,
                             tp_dtype index_dtype)
{
    return tp_arena_printf(l->fusion->arena, " -DINDEX_COMPONENTS=%" PRId32 "%s%s", ix->components,
                           clamps ? " -DINDEX_CLAMP" : "",
                           index_dtype == TP_U32 ? " -DINDEX_UNSIGNED" : "");
}

/* ---- what is there before ---- */

bool tp_fusion_is_fill(const tp_fusion *fusion, tp_node_id head, int32_t input)
{
    const tp_node *node = tp_graph_node(fusion->graph, head);
    if (input != 0 || (!tp_node_is(node, "scatter") && !tp_node_is(node, "dynamic_update_slice")))
        return false;
    node = tp_graph_node(fusion->graph, node->inputs[0]);
    while (node->def->op_class == TP_OP_BROADCAST || node->def->op_class == TP_OP_RESHAPE)
        node = tp_graph_node(fusion->graph, node->inputs[0]);
    return tp_node_is(node, "constant") && tp_shape_elems(&node->shape) == 1;
}

static uint32_t fill_bits(const tp_graph *graph, tp_node_id operand)
{
    const tp_node *node = tp_graph_node(graph, operand);
    while (!tp_node_is(node, "constant"))
        node = tp_graph_node(graph, node->inputs[0]);
    uint32_t bits = 0;
    memcpy(&bits, tp_node_attr(node, "value")->data, tp_dtype_size(node->dtype));
    return bits;
}

tpucl_status tp_lower_operand_to_result(tp_lowering *l, const tp_cluster *cluster,
                                        tp_node_id operand)
{
    const tp_fusion *fusion = l->fusion;
    const tp_node_id head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(fusion->graph, head);
    const int64_t elems = tp_shape_elems(&node->shape);
    const bool is_fill = !fusion->is_stored[operand];
    tp_memory_launch m = tp_memory_launch_begin(
        l, cluster, "copy", is_fill ? "memory_fill" : "memory_copy", type_option(node->dtype));
    if (!is_fill) tp_memory_launch_add_node(&m, operand, false);
    tp_memory_launch_add_node(&m, head, true);
    if (is_fill) tp_memory_launch_add_u32(&m, fill_bits(fusion->graph, operand));
    tp_memory_launch_add_int(&m, elems);
    return tp_memory_launch_end(&m, elems, 1, 1, false);
}

/* ---- gather, dynamic_slice, dynamic_update_slice ---- */

/* Copies between `indexed` and `dense`, nodes both. */
static tpucl_status lower_copy(tp_lowering *l, const tp_cluster *cluster, const tp_indexing *ix,
                               bool clamps, bool is_store, tp_node_id indexed, tp_node_id indices,
                               tp_node_id dense)
{
    const tp_graph *graph = l->fusion->graph;
    const tp_index_table t = tp_index_table_make(ix, clamps, NULL);
    const int32_t last = t.rank - 1;
    const bool is_run = last >= 0 && t.index_strides[last] == 0 && !t.is_window[last];
    const int64_t nx = last >= 0 ? t.sizes[last] : 1;
    const int64_t rows = last >= 0 ? tp_index_table_elems(&t, last) : 1;
    const char *index_options =
        tp_index_options(l, ix, clamps, tp_graph_node(graph, indices)->dtype);
    int32_t table;
    TP_TRY(tp_index_table_store(l, &t, ix, &table));
    if (!index_options || nx * rows > UINT32_MAX)
        return index_options ? TP_FAIL(TPUCL_UNSUPPORTED,
                                       "%s of %" PRId64 " elements is too large for a kernel",
                                       tp_graph_node(graph, dense)->name, nx * rows)
                             : TPUCL_OUT_OF_MEMORY;
    const char *options =
        tp_arena_printf(l->fusion->arena, "%s%s%s", type_option(tp_graph_node(graph, dense)->dtype),
                        index_options, is_run ? " -DGATHER_RUN" : "");
    tp_memory_launch m =
        tp_memory_launch_begin(l, cluster, "gather", is_store ? "put" : "gather", options);
    tp_memory_launch_add_node(&m, indexed, is_store);
    tp_memory_launch_add_node(&m, indices, false);
    tp_memory_launch_add_buffer(&m, table, false);
    tp_memory_launch_add_node(&m, dense, !is_store);
    tp_memory_launch_add_int(&m, t.rank);
    tp_memory_launch_add_u32(&m, ix->component_stride);
    tp_memory_launch_add_int(&m, nx);
    tp_memory_launch_add_int(&m, rows);
    tp_memory_launch_add_u32(&m, is_run ? t.operand_strides[last] : 0);
    /* Only the elements that are taken are moved. */
    m.launch.bytes =
        2.0 * (double)(nx * rows) * (double)tp_dtype_size(tp_graph_node(graph, dense)->dtype);
    return tp_memory_launch_end(&m, nx, rows, 1, true);
}

static tpucl_status lower_gather(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_graph *graph = l->fusion->graph;
    const tp_node_id head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(graph, head);
    tp_indexing ix;
    TP_TRY(tp_indexing_read(node, &tp_graph_node(graph, node->inputs[0])->shape,
                            &tp_graph_node(graph, node->inputs[1])->shape, NULL, &ix));
    const bool clamps = strcmp(tp_node_attr_text(node, "out_of_range", "clamp"), "clamp") == 0;
    return lower_copy(l, cluster, &ix, clamps, false, node->inputs[0], node->inputs[1], head);
}

static tpucl_status lower_dynamic_slice(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_graph *graph = l->fusion->graph;
    const tp_node_id head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(graph, head);
    tp_indexing ix;
    TP_TRY(tp_indexing_read(node, &tp_graph_node(graph, node->inputs[0])->shape,
                            &tp_graph_node(graph, node->inputs[1])->shape, NULL, &ix));
    return lower_copy(l, cluster, &ix, true, false, node->inputs[0], node->inputs[1], head);
}

static tpucl_status lower_dynamic_update_slice(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_graph *graph = l->fusion->graph;
    const tp_node_id head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(graph, head);
    tp_indexing ix;
    TP_TRY(tp_indexing_read(node, &node->shape, &tp_graph_node(graph, node->inputs[2])->shape,
                            &tp_graph_node(graph, node->inputs[1])->shape, &ix));
    TP_TRY(tp_lower_operand_to_result(l, cluster, node->inputs[0]));
    return lower_copy(l, cluster, &ix, true, true, head, node->inputs[2], node->inputs[1]);
}

/* ---- cumulative ---- */

const char *tp_memory_kind_option(const tp_node *node)
{
    const char *kind = tp_node_attr_text(node, "kind", "");
    return strcmp(kind, "max") == 0        ? " -DMEMORY_MAX"
           : strcmp(kind, "min") == 0      ? " -DMEMORY_MIN"
           : strcmp(kind, "multiply") == 0 ? " -DMEMORY_MULTIPLY"
           : strcmp(kind, "replace") == 0  ? " -DMEMORY_REPLACE"
                                           : " -DMEMORY_ADD";
}

static tpucl_status lower_cumulative(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_node_id head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(l->fusion->graph, head);
    const int64_t axis = tp_node_attr_int(node, "axis", 0), n = node->shape.dims[axis];
    const int64_t elems = tp_shape_elems(&node->shape);
    if (elems == 0) return TPUCL_OK;
    int64_t strides[TP_MAX_RANK];
    tp_shape_strides(&node->shape, strides);
    const int64_t inner = strides[axis], outer = elems / n / inner;
    const bool is_wide = l->options->caps->type == TP_DEVICE_CPU && inner >= 16;
    const char *options =
        tp_arena_printf(l->fusion->arena, "%s%s%s", tp_memory_dtype_option(node->dtype),
                        tp_memory_kind_option(node), is_wide ? " -DCUMULATIVE_WIDE" : "");
    tp_memory_launch m = tp_memory_launch_begin(l, cluster, "cumulative", "cumulative", options);
    tp_memory_launch_add_node(&m, node->inputs[0], false);
    tp_memory_launch_add_node(&m, head, true);
    tp_memory_launch_add_int(&m, n);
    tp_memory_launch_add_int(&m, inner);
    tp_memory_launch_add_int(&m, outer);
    tp_memory_launch_add_int(&m, tp_node_attr_int(node, "exclusive", 0) != 0);
    tp_memory_launch_add_int(&m, tp_node_attr_int(node, "reverse", 0) != 0);
    m.launch.flops = (double)elems;
    return tp_memory_launch_end(&m, inner, outer, 1, true);
}

/* ---- replica_id ---- */

static tpucl_status lower_replica_id(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_node_id head = cluster->heads.items[0];
    const int64_t cores = tp_node_attr_int(tp_graph_node(l->fusion->graph, head), "cores", 0);
    tp_program *program = tp_program_builder_program(l->builder);
    if (program->group_cores != 0 && program->group_cores != cores)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "the graph is for replica groups of %" PRId32 " and of %" PRId64 " cores",
                       program->group_cores, cores);
    program->group_cores = (int32_t)cores;
    tp_memory_launch m = tp_memory_launch_begin(l, cluster, "replica_id", "replica_id", "");
    tp_memory_launch_add_node(&m, head, true);
    tp_vpu_args_add(&m.args, (tp_kernel_arg){.kind = TP_ARG_POSITION});
    return tp_memory_launch_end(&m, 1, 1, 1, false);
}

tpucl_status tp_lower_memory(tp_lowering *l, const tp_cluster *cluster)
{
    static const struct {
        const char *op;
        tpucl_status (*lower)(tp_lowering *lowering, const tp_cluster *cluster);
    } lowerings[] = {
        {"gather", lower_gather},
        {"scatter", tp_lower_scatter},
        {"dynamic_slice", lower_dynamic_slice},
        {"dynamic_update_slice", lower_dynamic_update_slice},
        {"cumulative", lower_cumulative},
        {"sort", tp_lower_sort},
        {"top_k", tp_lower_sort},
        {"attention", tp_lower_attention},
        {"attention_grad", tp_lower_attention},
        {"replica_id", lower_replica_id},
    };
    const tp_node *node = tp_graph_node(l->fusion->graph, cluster->heads.items[0]);
    if (node->def->external) return tp_lower_external(l, cluster);
    for (size_t i = 0; i < sizeof lowerings / sizeof *lowerings; i++)
        if (tp_node_is(node, lowerings[i].op)) return lowerings[i].lower(l, cluster);
    return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' has no kernel", node->def->name);
}
