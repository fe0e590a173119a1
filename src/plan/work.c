/* SPDX-License-Identifier: Apache-2.0
 * See work.h.
 */
#include "plan/work.h"

#include <string.h>
#include "check/rules.h"
#include "core/alloc.h"
#include "graph/geometry.h"
#include "graph/loop.h"
#include "graph/opdef.h"

/* ---- products ---- */

/* What a step's results and updates need; gradients of inputs that nobody asked for are not among it. `out_is_alive`:
 * [node_count], all false before. */
static tpucl_status mark_alive(const tp_graph *graph, bool *out_is_alive)
{
    const size_t room = (size_t)graph->node_count;
    tp_node_id *stack = TP_NEW_ARRAY(tp_node_id, room + 1);
    size_t count = 0;
    if (!stack) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < graph->output_count + graph->update_count; i++) {
        const tp_node_id id = i < graph->output_count
                                  ? graph->outputs[i].node
                                  : graph->updates[i - graph->output_count].value;
        if (out_is_alive[id]) continue;
        out_is_alive[id] = true;
        stack[count++] = id;
    }
    while (count) {
        const tp_node *node = tp_graph_node(graph, stack[--count]);
        for (int32_t i = 0; i < node->input_count; i++) {
            if (out_is_alive[node->inputs[i]]) continue;
            out_is_alive[node->inputs[i]] = true;
            stack[count++] = node->inputs[i];
        }
    }
    tp_free(stack);
    return TPUCL_OK;
}

static double node_bytes(const tp_graph *graph, tp_node_id id)
{
    const tp_node *node = tp_graph_node(graph, id);
    return (double)tp_shape_bytes(&node->shape, node->dtype);
}

/* Multiplications of a convolution by the size of its product: an input gradient of stride s multiplies with the one tap
 * in s * s that is there. *out_fast: see tp_work_item; 1 for what is no convolution, strided, dilated, or has kernels of
 * one tap in some direction. */
static double read_taps(const tp_graph *graph, const tp_node *node, double *out_fast)
{
    static const char *const kinds[] = {"convolution", "convolution_input_grad",
                                        "convolution_filter_grad"};
    *out_fast = 1;
    for (int kind = 0; kind < 3; kind++) {
        tp_conv_geometry g;
        if (!tp_node_is(node, kinds[kind])) continue;
        if (tp_conv_geometry_read(node, (tp_conv_kind)kind,
                                  &tp_graph_node(graph, node->inputs[0])->shape,
                                  &tp_graph_node(graph, node->inputs[1])->shape, &g) != TPUCL_OK)
            return 1;
        const double strides = (double)(g.stride_h * g.stride_w);
        if (strides == 1 && g.dilation_h * g.dilation_w == 1 && g.groups == 1 &&
            g.kernel_h == g.kernel_w && g.kernel_h >= 3 && g.kernel_h <= 7) {
            const double r = (double)g.kernel_h;
            *out_fast = (r + 1) * (r + 1) / (4 * r * r);
        }
        return kind == TP_CONV_INPUT_GRAD ? 1 / strides : 1;
    }
    return 1;
}

static tpucl_status add_product(const tp_graph *graph, tp_node_id id, tp_work *work)
{
    const tp_node *node = tp_graph_node(graph, id);
    const char *precision = tp_node_attr_text(node, "precision", "");
    tp_check_product product;
    if (!tp_check_read_product(graph, id, &product)) return TPUCL_OK;
    tp_work_item item = {.layer = tp_check_layer_of(graph, id, work->arena),
                         .count = node->loop ? (double)tp_loop_length(graph, node->loop) : 1,
                         .is_product = true,
                         .is_f32 = tp_graph_node(graph, node->inputs[0])->dtype == TP_F32 &&
                                   strcmp(precision, "default") != 0, /* rounded on the way in */
                         .batch = product.batch,
                         .m = product.m,
                         .n = product.n,
                         .bytes = node_bytes(graph, id)};
    if (!item.layer) return TPUCL_OUT_OF_MEMORY;
    item.k = product.k * read_taps(graph, node, &item.fast_share);
    for (int32_t i = 0; i < node->input_count; i++)
        item.bytes += node_bytes(graph, node->inputs[i]);
    return tp_work_items_push(&work->items, item);
}

static tpucl_status add_products(const tp_graph *graph, tp_work *work)
{
    bool *is_alive = TP_NEW_ARRAY(bool, (size_t)graph->node_count + 1);
    if (!is_alive) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = mark_alive(graph, is_alive);
    for (tp_node_id id = 0; id < graph->node_count && status == TPUCL_OK; id++)
        if (is_alive[id]) status = add_product(graph, id, work);
    tp_free(is_alive);
    return status;
}

/* ---- everything else ---- */

static bool is_of_product(const tp_launch *launch)
{
    return launch->kind == TP_LAUNCH_CLBLAST_SGEMM || !strncmp(launch->entry, "mxu_", 4) ||
           !strncmp(launch->entry, "attention", 9);
}

/* "gradient/conv/select select [...]" gives "conv". */
static const char *layer_of_label(const char *label, tp_arena *arena)
{
    static const char gradient[] = "gradient/";
    while (!strncmp(label, gradient, sizeof gradient - 1))
        label += sizeof gradient - 1;
    const size_t length = strcspn(label, " ");
    const char *slash = memrchr(label, '/', length);
    return slash ? tp_arena_strndup(arena, label, (size_t)(slash - label)) : "";
}

static tpucl_status add_launches(const tp_program *program, tp_work *work)
{
    for (int32_t i = 0; i < program->launch_count; i++) {
        const tp_launch *launch = &program->launches[i];
        if (is_of_product(launch)) continue;
        const tp_program_loop *loop = tp_program_loop_at(program, i);
        const tp_work_item item = {
            .layer = layer_of_label(launch->label ? launch->label : "", work->arena),
            .count = loop ? (double)loop->turns : 1,
            .fast_share = 1,
            .bytes = launch->bytes};
        if (!item.layer) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_work_items_push(&work->items, item));
    }
    return TPUCL_OK;
}

static void add_traffic(const tp_graph *graph, const tp_program *program, tp_work *work)
{
    work->input_bytes = (double)program->input_bytes;
    for (int32_t i = 0; i < program->segment_count; i++)
        if (program->segments[i].has_reduce)
            work->gradient_bytes +=
                (double)sizeof(float) * (double)program->segments[i].reduce.elems;
    work->longest_loop = 1;
    for (int32_t loop = 1; loop <= graph->loop_count; loop++) {
        const double turns = (double)tp_loop_length(graph, loop);
        if (turns > work->longest_loop) work->longest_loop = turns;
    }
}

tpucl_status tp_work_create(const tp_graph *graph, const tp_program *program, int64_t examples,
                            tp_work **out_work)
{
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tp_work *work = TP_ARENA_NEW(arena, tp_work);
    if (!work) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    work->arena = arena;
    work->examples = examples;
    add_traffic(graph, program, work);
    tpucl_status status = add_products(graph, work);
    if (status == TPUCL_OK) status = add_launches(program, work);
    if (status != TPUCL_OK) {
        tp_work_destroy(work);
        return status;
    }
    *out_work = work;
    return TPUCL_OK;
}

void tp_work_destroy(tp_work *work)
{
    if (!work) return;
    tp_work_items_deinit(&work->items);
    tp_arena_destroy(work->arena);
}
