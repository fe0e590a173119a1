/* SPDX-License-Identifier: Apache-2.0
 * Ops from outside (include/tpucl/ext/op.h): the kernel's text with what it may use in front, the tensors of
 * the operands and the result, the scalars, and grid_z.
 */
#include "compile/lower_memory.h"

#include <string.h>
#include "graph/opdef.h"

/* What exact_math.h leaves of its macros is taken away by itself, so that a text may bring its own. */
static const char words[] = "#include \"lib/platform.clh\"\n"
                            "#include \"lib/tensor.clh\"\n"
                            "#include \"lib/bf16.clh\"\n"
                            "#define EM_WIDTH 1\n"
                            "#include \"num/exact_math.h\"\n";

static tpucl_status check_sizes(const tp_node *node, const tp_external_launch *launch)
{
    bool has_local = false;
    for (int i = 0; i < 3; i++) {
        has_local = has_local || launch->local[i] != 0;
        if (launch->global[i] < 1 || launch->global[i] > INT32_MAX)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "%s: global[%d] of its launch is %zu, expected 1 to 2^31 - 1",
                           node->def->name, i, launch->global[i]);
    }
    for (int i = 0; has_local && i < 3; i++)
        if (launch->local[i] < 1 || launch->global[i] % launch->local[i] != 0)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "%s: local[%d] of its launch is %zu, expected a divisor of %zu",
                           node->def->name, i, launch->local[i], launch->global[i]);
    if (has_local && launch->local[2] != 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%s: local[2] of its launch is %zu, expected 1",
                       node->def->name, launch->local[2]);
    return TPUCL_OK;
}

tpucl_status tp_lower_external(tp_lowering *l, const tp_cluster *cluster)
{
    const tp_graph *graph = l->fusion->graph;
    const tp_node_id head = cluster->heads.items[0];
    const tp_node *node = tp_graph_node(graph, head);
    const tp_external_op *external = node->def->external;
    tp_external_launch rule;
    memset(&rule, 0, sizeof rule);
    if (tp_shape_elems(&node->shape) == 0) return TPUCL_OK;
    TP_TRY(external->launch(graph, node, &rule));
    TP_TRY(check_sizes(node, &rule));

    tp_memory_launch m = {.lowering = l,
                          .cluster = cluster,
                          .args = {.arena = l->fusion->arena},
                          .launch = {.kind = TP_LAUNCH_KERNEL,
                                     .label = tp_lower_label(l, cluster),
                                     .entry = external->entry,
                                     .grid_z = rule.global[2]}};
    m.launch.source = tp_arena_printf(l->fusion->arena, "%s%s\n", words, external->source);
    m.launch.options = tp_arena_printf(l->fusion->arena, "%s", rule.options);
    if (!m.launch.source || !m.launch.options) return TPUCL_OUT_OF_MEMORY;
    m.launch.flops =
        node->def->flops ? node->def->flops(graph, node) : (double)tp_shape_elems(&node->shape);
    m.launch.bytes = (double)tp_shape_bytes(&node->shape, node->dtype);
    for (int32_t i = 0; i < node->input_count; i++) {
        const tp_node *input = tp_graph_node(graph, node->inputs[i]);
        m.launch.bytes += (double)tp_shape_bytes(&input->shape, input->dtype);
        tp_memory_launch_add_node(&m, node->inputs[i], false);
    }
    tp_memory_launch_add_node(&m, head, true);
    for (int32_t i = 0; i < rule.scalar_count; i++) {
        tp_kernel_arg arg = {.kind = TP_ARG_U32, .u32 = rule.scalars[i].u32};
        if (rule.scalars[i].is_float)
            arg = (tp_kernel_arg){.kind = TP_ARG_F32, .f32 = rule.scalars[i].f32};
        tp_vpu_args_add(&m.args, arg);
    }
    tp_memory_launch_add_u32(&m, (int64_t)rule.global[2]);
    TP_TRY(m.args.status);
    for (int i = 0; i < 3; i++) {
        m.launch.global[i] = rule.global[i];
        m.launch.local[i] = rule.local[i];
    }
    m.launch.args = m.args.items;
    m.launch.arg_count = m.args.count;
    m.launch.is_per_core = !cluster->is_replicated;
    return tp_lower_add_launch(l, cluster->level, m.launch.is_per_core, &m.launch);
}
