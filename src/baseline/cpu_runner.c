/* SPDX-License-Identifier: Apache-2.0
 * Making, stepping and unmaking a CPU run. */
#include <string.h>
#include "baseline/cpu_internal.h"
#include "num/init.h"

static tpucl_status create_variables(tp_cpu_runner *runner)
{
    const tp_graph *graph = runner->graph;
    runner->variables =
        TP_ARENA_NEW_ARRAY(runner->arena, void *, (size_t)graph->variable_count + 1);
    if (!runner->variables) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < graph->variable_count; i++) {
        const tp_variable *variable = &graph->variables[i];
        uint64_t bytes = (uint64_t)tp_shape_bytes(&variable->shape, variable->dtype);
        runner->variables[i] = tp_arena_alloc(runner->arena, bytes + 64);
        if (!runner->variables[i]) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_init_fill(variable->init, variable->init_a, variable->init_b, variable->name,
                            runner->seed, variable->dtype, tp_shape_elems(&variable->shape),
                            runner->variables[i]));
        runner->values[variable->node].data = runner->variables[i];
    }
    return TPUCL_OK;
}

static tpucl_status create_constants(tp_cpu_runner *runner)
{
    const tp_graph *graph = runner->graph;
    const tp_eval_context context = {0};
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        const tp_node *node = &graph->nodes[id];
        if (strcmp(node->def->name, "constant") != 0) continue;
        size_t bytes = (size_t)tp_shape_bytes(&node->shape, node->dtype);
        tp_host_tensor out = {node->dtype, node->shape, tp_arena_alloc(runner->arena, bytes + 1)};
        if (!out.data) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(node->def->evaluate(node, NULL, &context, &out));
        runner->values[id].data = out.data;
    }
    return TPUCL_OK;
}

static tpucl_status create_scratch(tp_cpu_runner *runner)
{
    int32_t largest = 0;
    int threads = tp_pool_thread_count(runner->pool);
    for (int32_t i = 0; i < runner->cluster_count; i++)
        if (runner->clusters[i].count > largest) largest = runner->clusters[i].count;
    runner->tiles = TP_ARENA_NEW_ARRAY(runner->arena, float *, (size_t)threads);
    runner->columns = TP_ARENA_NEW_ARRAY(runner->arena, float, (size_t)runner->column_elems + 16);
    if (!runner->tiles || !runner->columns) return TPUCL_OUT_OF_MEMORY;
    for (int t = 0; t < threads; t++) {
        runner->tiles[t] =
            TP_ARENA_NEW_ARRAY(runner->arena, float, ((size_t)largest + 1) * TP_CPU_TILE);
        if (!runner->tiles[t]) return TPUCL_OUT_OF_MEMORY;
    }
    return TPUCL_OK;
}

static tpucl_status create(tp_cpu_runner *runner, int threads)
{
    runner->values =
        TP_ARENA_NEW_ARRAY(runner->arena, tp_host_tensor, (size_t)runner->graph->node_count + 1);
    if (!runner->values) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_openblas_open(&runner->blas));
    TP_TRY(tp_pool_create(threads, &runner->pool));
    TP_TRY(create_variables(runner));
    TP_TRY(create_constants(runner));
    TP_TRY(tp_cpu_plan(runner));
    return create_scratch(runner);
}

tpucl_status tp_cpu_runner_create(const tp_graph *graph, uint64_t seed, int threads,
                                  tp_cpu_runner **out_runner)
{
    tp_arena *arena = NULL;
    if (graph->loop_count > 0)
        return TP_FAIL(TPUCL_UNSUPPORTED, "the graph has loops, which the CPU baseline cannot run");
    TP_TRY(tp_arena_create((size_t)1 << 20, &arena));
    tp_cpu_runner *runner = TP_ARENA_NEW(arena, tp_cpu_runner);
    if (!runner) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    runner->graph = graph;
    runner->arena = arena;
    runner->seed = seed;
    tpucl_status status = create(runner, threads);
    if (status != TPUCL_OK) {
        tp_cpu_runner_destroy(runner);
        return status;
    }
    *out_runner = runner;
    return TPUCL_OK;
}

void tp_cpu_runner_destroy(tp_cpu_runner *runner)
{
    if (!runner) return;
    if (runner->pool) tp_pool_destroy(runner->pool);
    tp_openblas_close(runner->blas);
    tp_arena_destroy(runner->arena);
}

tpucl_status tp_cpu_run_plain(tp_cpu_runner *runner, tp_node_id id)
{
    const tp_node *node = tp_cpu_node(runner, id);
    const tp_eval_context context = {.seed = runner->seed, .step = runner->step};
    tp_host_tensor inputs[TP_MAX_INPUTS];
    for (int32_t i = 0; i < node->input_count; i++)
        inputs[i] = runner->values[node->inputs[i]];
    return node->def->evaluate(node, inputs, &context, &runner->values[id]);
}

static tpucl_status run_item(tp_cpu_runner *runner, const tp_cpu_item *item)
{
    if (item->cluster >= 0) return tp_cpu_run_cluster(runner, &runner->clusters[item->cluster]);
    switch (tp_cpu_node(runner, item->node)->def->op_class) {
    case TP_OP_MXU:
        return tp_cpu_run_product(runner, item->node);
    case TP_OP_REDUCE:
        return tp_cpu_run_reduce(runner, item->node);
    case TP_OP_WINDOW:
        return tp_cpu_run_window(runner, item->node);
    default:
        return tp_cpu_run_plain(runner, item->node);
    }
}

/* Aliases of inputs point to the caller's arrays, which change from step to step. */
static void point_aliases(tp_cpu_runner *runner)
{
    for (tp_node_id id = 0; id < runner->graph->node_count; id++)
        if (runner->actions[id] == TP_CPU_ALIAS)
            runner->values[id].data = runner->values[tp_cpu_node(runner, id)->inputs[0]].data;
}

tpucl_status tp_cpu_runner_step(tp_cpu_runner *runner, const void *const *inputs, uint32_t step)
{
    const tp_graph *graph = runner->graph;
    runner->step = step;
    for (int32_t i = 0; i < graph->input_count; i++)
        runner->values[graph->inputs[i].node].data = (void *)inputs[i];
    point_aliases(runner);
    for (int32_t i = 0; i < runner->item_count; i++) {
        tpucl_status status = run_item(runner, &runner->items[i]);
        if (status == TPUCL_OK) continue;
        if (runner->items[i].node >= 0)
            tp_error_note("node '%s'", tp_cpu_node(runner, runner->items[i].node)->name);
        return status;
    }
    for (int32_t i = 0; i < graph->update_count; i++) {
        const tp_variable *variable = &graph->variables[graph->updates[i].variable];
        memcpy(runner->variables[graph->updates[i].variable],
               runner->values[graph->updates[i].value].data,
               (size_t)tp_shape_bytes(&variable->shape, variable->dtype));
    }
    return TPUCL_OK;
}

const tp_host_tensor *tp_cpu_runner_output(const tp_cpu_runner *runner, int32_t output)
{
    return &runner->values[runner->graph->outputs[output].node];
}

tp_host_tensor *tp_cpu_runner_variable(tp_cpu_runner *runner, int32_t variable)
{
    return &runner->values[runner->graph->variables[variable].node];
}
