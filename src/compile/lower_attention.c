/* SPDX-License-Identifier: Apache-2.0
 * attention and its gradient: kernels/attention/. A work-item has scratch memory of its own for packed
 * operands and for the scores of one block, so there are few of them, each with many heads to do.
 */
#include "compile/lower_memory.h"

#include "graph/attention.h"
#include "graph/opdef.h"

enum {
    BLOCK = TP_ATTENTION_BLOCK,
    PAD = 32,   /* rows and columns of packed operands come in as many */
    SPAN = 512, /* queries that keep to one packed block of keys: their state fits a cache */
    ITEMS_PER_UNIT = 2, /* work-items for each compute unit: uneven ones even out */
    WIDE_VECTOR = 16    /* floats in a register from which a tile has 8 x 32 sums */
};

typedef struct attention_plan {
    const tp_node *node;
    tp_node_id head;
    bool is_gradient;
    tp_attention_geometry g;
    tp_node_id mask; /* TP_NO_NODE: none */
    int64_t span, units, items, slice;
    const char *options;
} attention_plan;

static int64_t whole(int64_t n, int64_t of)
{
    return (n + of - 1) / of * of;
}

/* Floats of scratch for a work-item; see place_scratch() of the kernels. */
static int64_t slice_of(const attention_plan *p)
{
    const tp_attention_geometry *g = &p->g;
    const int64_t depth = whole(g->depth, PAD), width = whole(g->width, PAD);
    const int64_t queries = whole(g->queries, PAD), keys = whole(g->keys, PAD);
    if (!p->is_gradient)
        return p->span * (depth + width + 2) + BLOCK * (1 + 2 * depth + width + BLOCK);
    return queries * (2 * depth + width + 3) + keys * (depth + width) +
           2 * BLOCK * (depth + width + BLOCK);
}

static const char *if_bf16(const tp_graph *graph, tp_node_id id, const char *option)
{
    return tp_graph_node(graph, id)->dtype == TP_BF16 ? option : "";
}

static tpucl_status plan(tp_lowering *l, const tp_cluster *cluster, attention_plan *p)
{
    const tp_graph *graph = l->fusion->graph;
    const tp_device_caps *caps = l->options->caps;
    const tp_node *node = tp_graph_node(graph, cluster->heads.items[0]);
    *p = (attention_plan){.node = node,
                          .head = cluster->heads.items[0],
                          .is_gradient = tp_node_is(node, "attention_grad")};
    const int32_t mask = p->is_gradient ? 5 : 3;
    p->mask = node->input_count > mask ? node->inputs[mask] : TP_NO_NODE;
    TP_TRY(tp_attention_geometry_read(
        node, &tp_graph_node(graph, node->inputs[0])->shape,
        &tp_graph_node(graph, node->inputs[1])->shape,
        &tp_graph_node(graph, node->inputs[2])->shape,
        p->mask == TP_NO_NODE ? NULL : &tp_graph_node(graph, p->mask)->shape, &p->g));
    const tp_attention_geometry *g = &p->g;
    p->span = whole(g->queries, PAD) < SPAN ? whole(g->queries, PAD) : SPAN;
    if (p->is_gradient)
        p->units = g->batch * g->shared;
    else if (p->span > 0)
        p->units = g->batch * g->heads * ((g->queries + p->span - 1) / p->span);
    const int64_t most = ITEMS_PER_UNIT * (int64_t)(caps->compute_units ? caps->compute_units : 1);
    p->items = p->units < most ? p->units : most;
    p->slice = slice_of(p);
    p->options = tp_arena_printf(
        l->fusion->arena, "-DTILE_M=%d -DTILE_VECTORS=%d%s%s%s%s%s%s%s",
        caps->preferred_float_vector >= WIDE_VECTOR ? 8 : 4,
        caps->preferred_float_vector >= WIDE_VECTOR ? 2 : 1,
        g->precision == TP_PRECISION_F32 ? " -DATTENTION_F32" : "",
        if_bf16(graph, node->inputs[0], " -DATTENTION_QUERY_BF16"),
        if_bf16(graph, node->inputs[1], " -DATTENTION_KEY_BF16"),
        if_bf16(graph, node->inputs[2], " -DATTENTION_VALUE_BF16"),
        p->is_gradient ? if_bf16(graph, node->inputs[4], " -DATTENTION_D_BF16") : "",
        p->mask == TP_NO_NODE ? "" : " -DATTENTION_MASK",
        g->dropout > 0 ? " -DATTENTION_DROPOUT" : "");
    return p->options ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static void add_f32(tp_memory_launch *m, float value)
{
    tp_vpu_args_add(&m->args, (tp_kernel_arg){.kind = TP_ARG_F32, .f32 = value});
}

/* DROP_PARAMS of operands.clh. */
static void add_dropout(tp_memory_launch *m, const tp_attention_geometry *g)
{
    static const tp_arg_kind keys[] = {TP_ARG_SEED, TP_ARG_CORE_BASE, TP_ARG_CORE_STEP,
                                       TP_ARG_STEP};
    if (g->dropout == 0) return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        tp_vpu_args_add(&m->args, (tp_kernel_arg){.kind = keys[i]});
    tp_memory_launch_add_u32(m, g->stream);
    tp_memory_launch_add_u32(m, tp_attention_threshold(g));
    add_f32(m, tp_attention_raise(g));
}

tpucl_status tp_lower_attention(tp_lowering *l, const tp_cluster *cluster)
{
    attention_plan p;
    int32_t scratch;
    TP_TRY(plan(l, cluster, &p));
    const tp_attention_geometry *g = &p.g;
    if (tp_shape_elems(&p.node->shape) == 0) return TPUCL_OK;
    TP_TRY(tp_lower_add_scratch(l, "attention blocks", TP_F32,
                                (uint64_t)p.items * (uint64_t)p.slice * sizeof(float),
                                !cluster->is_replicated, &scratch));
    tp_memory_launch m =
        tp_memory_launch_begin(l, cluster, p.node->def->name, p.node->def->name, p.options);
    m.launch.source = p.is_gradient ? "#include \"attention/attention_grad.cl\"\n"
                                    : "#include \"attention/attention.cl\"\n";
    for (int32_t i = 0; i < (p.is_gradient ? 5 : 3); i++)
        tp_memory_launch_add_node(&m, p.node->inputs[i], false);
    if (p.mask != TP_NO_NODE) {
        tp_memory_launch_add_node(&m, p.mask, false);
        for (int32_t i = 0; i < 3; i++)
            tp_memory_launch_add_u32(&m, g->mask_strides[i]);
    }
    tp_memory_launch_add_node(&m, p.head, true);
    tp_memory_launch_add_buffer(&m, scratch, true);
    add_dropout(&m, g);
    add_f32(&m, g->scale);
    const int64_t sizes[] = {g->batch, g->queries, g->keys,      g->heads, g->shared,
                             g->depth, g->width,   g->is_causal, g->window};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        tp_memory_launch_add_int(&m, sizes[i]);
    if (!p.is_gradient) tp_memory_launch_add_int(&m, p.span);
    tp_memory_launch_add_int(&m, p.slice);
    tp_memory_launch_add_int(&m, 1); /* grid_z */
    TP_TRY(m.args.status);
    m.launch.flops = p.node->def->flops(l->fusion->graph, p.node);
    m.launch.global[0] = (uint64_t)p.items;
    m.launch.global[1] = m.launch.global[2] = 1;
    for (int i = 0; i < 3; i++)
        m.launch.local[i] = 1;
    m.launch.grid_z = 1;
    m.launch.args = m.args.items;
    m.launch.arg_count = m.args.count;
    return tp_lower_add_launch(l, cluster->level, !cluster->is_replicated, &m.launch);
}
