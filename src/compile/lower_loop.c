/* SPDX-License-Identifier: Apache-2.0
 * Loops: their launches, and the memory of what enters and leaves them. A slice is a view of the tensor
 * that moves by one row a turn; a stacked value is computed right into its row of the stack. A carry has
 * memory for two turns and they take turns: one is read while the other one is written, so nothing is
 * copied and no reader has to come before the writer.
 */
#include "compile/lower.h"

#include "graph/loop.h"
#include "graph/opdef.h"

static const tp_node *node_at(const tp_lowering *l, tp_node_id id)
{
    return tp_graph_node(l->fusion->graph, id);
}

tpucl_status tp_lower_find_hosts(tp_lowering *l)
{
    const tp_fusion *fusion = l->fusion;
    for (tp_node_id id = 0; id < fusion->graph->node_count; id++) {
        if (!fusion->is_live[id]) continue;
        const tp_node *node = node_at(l, id);
        tp_node_id guest = TP_NO_NODE, host = id;
        if (node->def->loop_part == TP_LOOP_STACK || node->def->loop_part == TP_LOOP_CARRY)
            guest = node->inputs[0];
        if (node->def->loop_part == TP_LOOP_LAST) {
            guest = node->inputs[1];
            host = node->inputs[0];
        }
        if (guest == TP_NO_NODE) continue;
        if (l->host[guest] != TP_NO_NODE || fusion->cluster_of[guest] < 0)
            return TP_FAIL(TPUCL_INTERNAL, "node %d has two places in memory", guest);
        l->host[guest] = host;
    }
    return TPUCL_OK;
}

bool tp_lower_is_view(const tp_lowering *l, tp_node_id id)
{
    const tp_loop_part part = node_at(l, id)->def->loop_part;
    return l->host[id] != TP_NO_NODE || (part != TP_LOOP_NONE && part != TP_LOOP_STACK);
}

static uint64_t bytes_of(const tp_node *node)
{
    return (uint64_t)tp_shape_bytes(&node->shape, node->dtype);
}

/* From one of a carry's two values to the other. */
static uint64_t carry_stride(const tp_node *carry)
{
    const uint64_t bytes = bytes_of(carry);
    return (bytes + TP_PROGRAM_ALIGN_BYTES - 1) / TP_PROGRAM_ALIGN_BYTES * TP_PROGRAM_ALIGN_BYTES;
}

static tpucl_status add_carry_memory(tp_lowering *l, tp_node_id carry, int32_t *out_buffer)
{
    int32_t *known = &l->memory_of[carry];
    const tp_node *node = node_at(l, carry);
    const uint64_t stride = carry_stride(node);
    if (*known < 0)
        TP_TRY(tp_lower_add_scratch(l, node->name, node->dtype, 2 * (stride ? stride : 1),
                                    !l->fusion->is_replicated[carry], known));
    *out_buffer = *known;
    return TPUCL_OK;
}

/* A row of a tensor whose first axis is the turns, as a slice or stack says. */
static tp_program_view row_view(const tp_node *node, uint64_t row_bytes)
{
    const int64_t turns = tp_node_attr_int(node, "length", 0);
    tp_program_view view = {.stride_bytes = (int64_t)row_bytes, .turns = turns};
    if (tp_node_attr_int(node, "reverse", 0)) {
        view.offset_bytes = row_bytes * (uint64_t)(turns - 1);
        view.stride_bytes = -view.stride_bytes;
    }
    return view;
}

/* Turn t reads value t % 2, writes value (t + 1) % 2, and so on. */
static tp_program_view carry_view(const tp_node *carry, int32_t phase)
{
    return (tp_program_view){.period = 2,
                             .phase = phase,
                             .stride_bytes = (int64_t)carry_stride(carry),
                             .turns = tp_node_attr_int(carry, "length", 0)};
}

/* The view of a carry's memory that a node is: the carry itself, what it starts with, what it is in the
 * next turn, or what it is in the end. */
static tp_program_view view_of_carry(const tp_lowering *l, tp_node_id id, tp_node_id carry)
{
    const tp_node *node = node_at(l, id), *carry_node = node_at(l, carry);
    if (id == carry) return carry_view(carry_node, 0);
    if (node->loop) return carry_view(carry_node, 1);
    const bool is_last = node->def->loop_part == TP_LOOP_LAST;
    const int64_t turn = is_last ? tp_node_attr_int(carry_node, "length", 0) : 0;
    return (tp_program_view){.offset_bytes = (uint64_t)(turn % 2) * carry_stride(carry_node)};
}

static tpucl_status find_view(tp_lowering *l, tp_node_id id, tp_program_view *out_view)
{
    const tp_node *node = node_at(l, id);
    const tp_loop_part part = node->def->loop_part;
    if (part == TP_LOOP_SLICE) {
        TP_TRY(tp_lower_add_buffer(l, node->inputs[0]));
        *out_view = row_view(node, bytes_of(node));
        out_view->of = l->buffer_of[node->inputs[0]];
        return TPUCL_OK;
    }
    tp_node_id host = l->host[id];
    if (part == TP_LOOP_CARRY) host = id;
    if (part == TP_LOOP_LAST) host = node->inputs[0];
    if (node_at(l, host)->def->loop_part == TP_LOOP_STACK) {
        TP_TRY(tp_lower_add_buffer(l, host));
        *out_view = row_view(node_at(l, host), bytes_of(node));
        out_view->of = l->buffer_of[host];
        return TPUCL_OK;
    }
    *out_view = view_of_carry(l, id, host);
    return add_carry_memory(l, host, &out_view->of);
}

tpucl_status tp_lower_add_view(tp_lowering *l, tp_node_id id)
{
    const tp_node *node = node_at(l, id);
    tp_program_view view;
    TP_TRY(find_view(l, id, &view));
    view.is_view = true;
    const tp_program_buffer of = tp_program_builder_program(l->builder)->buffers[view.of];
    if (of.view.is_view) { /* a slice of what another loop carried out */
        view.of = of.view.of;
        view.offset_bytes += of.view.offset_bytes;
    }
    const tp_program_buffer buffer = {.name = node->name[0] ? node->name : node->def->name,
                                      .dtype = node->dtype,
                                      .shape = node->shape,
                                      .bytes = bytes_of(node),
                                      .space = of.space,
                                      .variable = of.variable,
                                      .view = view};
    return tp_program_builder_add_buffer(l->builder, &buffer, &l->buffer_of[id]);
}

tpucl_status tp_lower_enter_loop(tp_lowering *l, const tp_cluster *next)
{
    tp_lowered_loop *open = l->loops.count > 0 ? &l->loops.items[l->loops.count - 1] : NULL;
    const int32_t loop = next ? next->loop : 0;
    if (open && open->count < 0) {
        if (open->loop == loop) return TPUCL_OK;
        open->count = (int32_t)l->segments[open->segment].count - open->first;
    }
    if (!loop) return TPUCL_OK;
    const int32_t segment = 2 * next->level + (next->is_replicated ? 0 : 1);
    return tp_loop_list_push(&l->loops,
                             (tp_lowered_loop){.loop = loop,
                                               .segment = segment,
                                               .first = (int32_t)l->segments[segment].count,
                                               .count = -1});
}
