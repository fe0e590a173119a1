/* SPDX-License-Identifier: Apache-2.0
 * Rewriting and verifying. */
#include <criterion/criterion.h>
#include <string.h>

#include "graph/rewrite.h"
#include "graph/verify.h"
#include "harness/sample_graph.h"
#include "ops/registry.h"

Test(rewrite, compact_drops_what_is_dead)
{
    tp_graph *graph = tp_sample_graph(&tp_sample_small), *compact, *again;
    bool *is_live = calloc((size_t)graph->node_count, sizeof(bool));
    tp_graph_mark_live(graph, is_live);
    int32_t live = 0;
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        live += is_live[id];
    free(is_live);
    cr_assert_lt(live, graph->node_count, "the gradient of x must be dead");
    cr_assert_eq(tp_graph_compact(graph, &compact), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_expect_eq(compact->node_count, live);
    cr_expect_eq(compact->variable_count, 4);
    cr_expect_eq(compact->update_count, 4);
    cr_expect_eq(compact->output_count, 2);
    cr_expect_str_eq(compact->variables[2].name, "logits/kernel");
    cr_expect_str_eq(compact->nodes[compact->outputs[1].node].name,
                     graph->nodes[graph->outputs[1].node].name);
    cr_assert_eq(tp_graph_compact(compact, &again), TPUCL_OK);
    cr_expect_eq(again->node_count, live);
    tp_graph_destroy(graph);
    tp_graph_destroy(compact);
    tp_graph_destroy(again);
}

Test(rewrite, unused_inputs_and_variables_stay)
{
    tp_graph *graph, *compact;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    const tp_variable w = {.name = "w", .dtype = TP_F32, .init = TP_INIT_CONSTANT, .init_a = 3};
    tp_graph_add_variable(graph, &w);
    tp_graph_add_input(graph, "x", TP_F32, (tp_shape){0});
    tp_op_negate(graph, 0);
    cr_assert_eq(tp_graph_compact(graph, &compact), TPUCL_OK);
    cr_expect_eq(compact->node_count, 2);
    cr_expect_eq(compact->input_count, 1);
    cr_expect_eq(compact->variables[0].init_a, 3);
    tp_graph_destroy(graph);
    tp_graph_destroy(compact);
}

Test(rewrite, map_replaces)
{
    tp_graph *graph, *result;
    tp_rewrite *rewrite;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    const tp_node_id x = tp_graph_add_input(graph, "x", TP_F32, (tp_shape){1, {3}});
    const tp_node_id twice = tp_op_negate(graph, tp_op_negate(graph, x));
    tp_graph_add_output(graph, "y", tp_op_tanh(graph, twice));
    cr_assert_eq(tp_rewrite_begin(graph, &rewrite), TPUCL_OK);
    tp_rewrite_copy(rewrite, x);
    tp_rewrite_map(rewrite, twice, tp_rewrite_of(rewrite, x));
    cr_assert_eq(tp_rewrite_finish(rewrite, &result), TPUCL_OK, "%s", tpucl_last_error()->message);
    /* the inner negate was live in the old graph, so finish copied it; a second round drops it */
    tp_graph *compact;
    cr_assert_eq(tp_graph_compact(result, &compact), TPUCL_OK);
    cr_expect_eq(compact->node_count, 2);
    cr_expect_eq(compact->nodes[1].inputs[0], 0);
    tp_graph_destroy(graph);
    tp_graph_destroy(result);
    tp_graph_destroy(compact);
}

Test(rewrite, map_of_another_type_is_refused)
{
    tp_graph *graph, *result;
    tp_rewrite *rewrite;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    const tp_node_id x = tp_graph_add_input(graph, "x", TP_F32, (tp_shape){1, {3}});
    tp_graph_add_output(graph, "y", tp_op_convert(graph, x, TP_BF16));
    cr_assert_eq(tp_rewrite_begin(graph, &rewrite), TPUCL_OK);
    tp_rewrite_copy(rewrite, x);
    tp_rewrite_map(rewrite, 1, tp_rewrite_of(rewrite, x));
    cr_expect_eq(tp_rewrite_finish(rewrite, &result), TPUCL_INVALID_ARGUMENT);
    cr_expect(strstr(tpucl_last_error()->message, "cannot stand for"));
    tp_graph_destroy(graph);
}

Test(rewrite, count_uses)
{
    tp_graph *graph;
    int32_t counts[3];
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    const tp_node_id x = tp_graph_add_input(graph, "x", TP_F32, (tp_shape){0});
    const tp_node_id y = tp_op_add(graph, x, x);
    tp_graph_add_output(graph, "y", y);
    tp_graph_add_output(graph, "x", x);
    tp_graph_count_uses(graph, counts);
    cr_expect_eq(counts[x], 3);
    cr_expect_eq(counts[y], 1);
    tp_graph_destroy(graph);
}

/* Each breaks one invariant behind the builder's back. */
static void expect_broken(tp_graph *graph, const char *words)
{
    cr_expect_neq(tp_graph_verify(graph), TPUCL_OK, "accepted: %s", words);
    cr_expect(strstr(tpucl_last_error()->message, words), "'%s' is not in '%s'", words,
              tpucl_last_error()->message);
}

Test(verify, finds_what_is_broken)
{
    tp_graph *graph = tp_sample_graph(&tp_sample_small);
    tp_node *last = &graph->nodes[graph->node_count - 1];

    const tp_node kept = *last;
    last->inputs[0] = graph->node_count - 1;
    expect_broken(graph, "expected one before it");
    *last = kept;
    last->shape.rank = 1;
    last->shape.dims[0] = 7;
    expect_broken(graph, "its rule says");
    *last = kept;

    const tp_update update = graph->updates[1];
    graph->updates[1].variable = graph->updates[0].variable;
    expect_broken(graph, "differs in type");
    graph->updates[1] = update;
    graph->updates[1] = graph->updates[0];
    expect_broken(graph, "updated twice");
    graph->updates[1] = update;

    const char *name = graph->variables[0].name;
    graph->variables[0].name = "other";
    expect_broken(graph, "whose name is 'dense/kernel'");
    graph->variables[0].name = name;

    --graph->input_count;
    expect_broken(graph, "has no entry");
    ++graph->input_count;

    graph->outputs[0].name = "logits";
    expect_broken(graph, "logits");
    graph->outputs[0].name = "loss";
    cr_expect_eq(tp_graph_verify(graph), TPUCL_OK);
    tp_graph_destroy(graph);
}

Test(verify, updates_must_be_replicated)
{
    tp_graph *graph;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    const tp_variable w = {.name = "w", .dtype = TP_F32};
    const tp_node_id id = tp_graph_add_variable(graph, &w);
    tp_graph_add_update(graph, id, tp_graph_add_input(graph, "x", TP_F32, (tp_shape){0}));
    expect_broken(graph, "all_reduce");
    tp_graph_destroy(graph);
}
