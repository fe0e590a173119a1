/* SPDX-License-Identifier: Apache-2.0
 * Every loss per example and its gradient, f32 and bf16 results, on the default device: bits of the reference.
 */
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "harness/coverage.h"
#include "harness/graph_run.h"
#include "harness/program_run.h"
#include "model/loss_expression.h"

enum { CLASSES = 5 };

static const char *const names[] = {
#define NAME(id, symbol, name, keys) name,
    TP_LOSS_LIST(NAME)
#undef NAME
};

enum { LOSSES = sizeof names / sizeof *names };

/* Its inputs and outputs in a scope of its own. */
static void add_loss(tp_graph *graph, tp_model_loss kind, tp_dtype dtype)
{
    const tp_shape shape = {3, {3, 4, CLASSES}}, classes = {2, {3, 4}};
    tp_loss_options options = tp_loss_defaults(kind);
    options.expression = "where(y_true > 0.25, y_pred * abs(y_pred - y_true), 0)";
    const bool is_sparse = tp_loss_is_sparse(kind);
    const char *name = names[kind];
    const char *outer = tp_graph_push_scope(graph, name);
    tp_loss_input input = {
        .kind = kind,
        .result = tp_graph_add_input(graph, tp_arena_printf(graph->arena, "%s result", name), dtype,
                                     shape),
        .logits = TP_NO_NODE,
        .label = tp_graph_add_input(graph, tp_arena_printf(graph->arena, "%s label", name),
                                    is_sparse ? TP_S32 : TP_F32, is_sparse ? classes : shape),
        .options = &options};
    const tp_node_id result = input.result;
    input.result = tp_op_convert(graph, result, TP_F32);
    if (kind == TP_MODEL_LOSS_EXPRESSION) {
        const tp_node_id ones =
            tp_op_broadcast_to(graph, tp_op_scalar(graph, TP_F32, 1), (tp_shape){1, {3}});
        tp_loss_name_all(graph, &input, ones, TP_NO_NODE);
        EXPECT_OK(tp_loss_read_values(graph, &input));
    }
    const tp_node_id losses = tp_loss_per_example(graph, &input);
    const tp_node_id sum = tp_op_reduce(graph, losses, "add", NULL, 0);
    tp_node_id gradient;
    tp_graph_gradients(graph, sum, &result, 1, &gradient);
    tp_graph_add_output(graph, tp_arena_printf(graph->arena, "%s losses", name), losses);
    tp_graph_add_output(graph, tp_arena_printf(graph->arena, "%s gradient", name), gradient);
    tp_graph_pop_scope(graph, outer);
}

/* All in one graph, because building kernels takes longer than running them. */
static void check(tp_dtype dtype)
{
    tp_graph *graph;
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    for (int i = 0; i < LOSSES; i++)
        add_loss(graph, (tp_model_loss)i, dtype);
    EXPECT_OK(tp_graph_check(graph));
    EXPECT_OK(tp_graph_verify(graph));
    program_run_expect_equal(graph,
                             &(program_run_options){.cores = 2, .seed = 6, .int_limit = CLASSES});
    tp_graph_destroy(graph);
}

Test(loss_device, has_the_bits_of_the_reference, .timeout = 120)
{
    check(TP_F32);
    check(TP_BF16);
    for (int i = 0; i < LOSSES; i++)
        coverage_note("loss.device", names[i]);
}
