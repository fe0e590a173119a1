/* SPDX-License-Identifier: Apache-2.0
 * Attention: values and gradients against tests/golden/gen_attention.py, gradients against differences, rules.
 */
#include "harness/alloc_loop.h"
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "golden/attention.h"
#include "unit/ops/attention_cases.h"

/* Within 1e-5 of the f64 result, relative to the largest element. */
static void expect_close(graph_run *run, tp_node_id node, const double *golden, int64_t count,
                         const char *what)
{
    const tp_host_tensor *out = graph_run_eval(run, node);
    double largest = 0;
    cr_assert_eq(tp_shape_elems(&out->shape), count, "%s", what);
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(golden[i]));
    for (int64_t i = 0; i < count; i++)
        cr_assert_float_eq(((const float *)out->data)[i], golden[i], 1e-5 * largest,
                           "%s, element %lld: %.9g, expected %.9g", what, (long long)i,
                           (double)((const float *)out->data)[i], golden[i]);
    coverage_note_graph("reference", run->graph);
}

typedef struct golden_case {
    attention_case c;
    const double *result, *gradients[3];
} golden_case;

#define GOLDEN(name)                                                                               \
    golden_attention_##name,                                                                       \
    {                                                                                              \
        golden_attention_##name##_dq, golden_attention_##name##_dk, golden_attention_##name##_dv   \
    }

static const golden_case golden_cases[] = {
    {{"plain", 1, 5, 150, 1, 1, 3, 2, {.scale = 1.5}, {0}, TP_F32, "f32"}, GOLDEN(plain)},
    {{"causal", 1, 7, 7, 2, 1, 4, 3, {.scale = 0.5, .is_causal = true}, {0}, TP_F32, "f32"},
     GOLDEN(causal)},
    {{"window", 1, 4, 6, 1, 1, 3, 2, {.scale = 2, .window = 2}, {0}, TP_F32, "f32"},
     GOLDEN(window)},
    {{"masked", 2, 3, 5, 2, 2, 3, 3, {.scale = 1}, {2, 1, 3}, TP_F32, "f32"}, GOLDEN(masked)},
};

Test(op_attention, golden)
{
    for (size_t i = 0; i < sizeof golden_cases / sizeof golden_cases[0]; i++) {
        const golden_case *test = &golden_cases[i];
        const attention_case *c = &test->c;
        graph_run run;
        graph_run_begin(&run);
        const int64_t q_dims[] = {c->batch, c->queries, c->heads, c->depth};
        const int64_t k_dims[] = {c->batch, c->keys, c->shared, c->depth};
        const int64_t v_dims[] = {c->batch, c->keys, c->shared, c->width};
        const int64_t w_dims[] = {c->batch, c->queries, c->heads, c->width};
        const tp_node_id in[] = {graph_run_input(&run, TP_F32, 1, 4, q_dims),
                                 graph_run_input(&run, TP_F32, 2, 4, k_dims),
                                 graph_run_input(&run, TP_F32, 3, 4, v_dims)};
        const tp_node_id w = graph_run_input(&run, TP_F32, 4, 4, w_dims);
        tp_node_id mask = TP_NO_NODE, gradients[3];
        if (c->mask[0]) {
            const int64_t dims[] = {c->mask[0], c->mask[1], c->mask[2], c->keys};
            mask = tp_op_compare(run.graph, "GT", graph_run_input(&run, TP_F32, 5, 4, dims),
                                 tp_op_scalar(run.graph, TP_F32, -0.5));
        }
        const tp_node_id seen =
            tp_op_attention(run.graph, in[0], in[1], in[2], mask, &c->options, c->precision);
        const tp_node_id loss =
            tp_op_reduce(run.graph, tp_op_multiply(run.graph, seen, w), "add", NULL, 0);
        tp_graph_gradients(run.graph, loss, in, 3, gradients);
        expect_close(&run, seen, test->result, run.elems[3], c->name);
        for (int g = 0; g < 3; g++)
            expect_close(&run, gradients[g], test->gradients[g], run.elems[g], c->name);
        graph_run_end(&run);
    }
    coverage_note("shape", "attention");
    coverage_note("golden", "attention");
    coverage_note("shape", "attention_grad");
    coverage_note("golden", "attention_grad");
}

/* What the statistics are: the largest score, and 1 / the sum of exp(score - largest). */
Test(op_attention, statistics)
{
    graph_run run;
    graph_run_begin(&run);
    const int64_t q_dims[] = {1, 1, 1, 1}, k_dims[] = {1, 3, 1, 1};
    const tp_node_id q = graph_run_input(&run, TP_F32, 1, 4, q_dims);
    const tp_node_id k = graph_run_input(&run, TP_F32, 2, 4, k_dims);
    const float keys[] = {-4, 4, 4};
    *(float *)run.data[0] = 1;
    memcpy(run.data[1], keys, sizeof keys);
    const tp_node_id seen = tp_op_attention(run.graph, q, k, k, TP_NO_NODE,
                                            &(tp_attention_options){.scale = 50}, "f32");
    const tp_host_tensor *all = graph_run_eval(&run, tp_graph_node(run.graph, seen)->inputs[0]);
    const float *result = all->data;
    cr_assert(result[0] == 4.0f && result[1] == 200.0f && result[2] == 0.5f, "%g %g %g",
              (double)result[0], (double)result[1], (double)result[2]);
    graph_run_end(&run);
}

/* A query that may see nothing sees zeros, and no gradient goes through it. */
Test(op_attention, nothing_to_see)
{
    graph_run run;
    graph_run_begin(&run);
    const int64_t dims[] = {1, 2, 1, 2}, mask_dims[] = {1, 1, 2, 2};
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 4, dims);
    const tp_node_id m = graph_run_input(&run, TP_F32, 2, 4, mask_dims);
    const float marks[] = {0, 0, 0, 1};
    memcpy(run.data[1], marks, sizeof marks);
    const tp_node_id mask = tp_op_convert(run.graph, m, TP_PRED);
    const tp_node_id seen =
        tp_op_attention(run.graph, x, x, x, mask, &(tp_attention_options){.scale = 1}, "f32");
    tp_node_id gradient;
    tp_graph_gradients(run.graph, tp_op_reduce(run.graph, seen, "add", NULL, 0), &x, 1, &gradient);
    const float *x_values = run.data[0];
    const float *result = graph_run_eval(&run, seen)->data;
    cr_assert(result[0] == 0 && result[1] == 0 && result[2] == x_values[2] &&
              result[3] == x_values[3]);
    const float *d = graph_run_eval(&run, gradient)->data;
    cr_assert(d[0] == 0 && d[1] == 0 && d[2] == 1 && d[3] == 1, "%g %g %g %g", (double)d[0],
              (double)d[1], (double)d[2], (double)d[3]);
    graph_run_end(&run);
}

/* A quarter of the probabilities is dropped and the others are raised: with one value for all keys, a query
 * sees the share that was kept. */
Test(op_attention, dropout_keeps_the_mean)
{
    graph_run run;
    graph_run_begin(&run);
    const int64_t q_dims[] = {2, 40, 2, 1}, k_dims[] = {2, 200, 2, 1};
    const tp_node_id q = graph_run_input(&run, TP_F32, 1, 4, q_dims);
    const tp_node_id k = graph_run_input(&run, TP_F32, 2, 4, k_dims);
    const tp_node_id ones = tp_op_fill(run.graph, TP_F32, (tp_shape){4, {2, 200, 2, 1}}, 1);
    const tp_attention_options options = {.dropout = 0.25, .stream = 3};
    const tp_node_id seen = tp_op_attention(run.graph, q, k, ones, TP_NO_NODE, &options, "f32");
    const float *result = graph_run_eval(&run, seen)->data;
    double sum = 0;
    for (int i = 0; i < 160; i++) {
        const double kept = result[i] * 0.75 * 200; /* of 200 */
        cr_assert(fabs(kept - round(kept)) < 1e-2 && kept > 120 && kept < 180, "%g of 200", kept);
        sum += kept;
    }
    /* 32000 draws have a deviation of 77 */
    cr_assert(fabs(sum - 24000) < 300, "%g of 32000", sum);
    graph_run_end(&run);
}

static tp_node_id build_plain(tp_graph *g, const tp_node_id *in)
{
    return tp_op_attention(g, in[0], in[1], in[2], TP_NO_NODE,
                           &(tp_attention_options){.scale = 0.7}, "f32");
}

static tp_node_id build_causal(tp_graph *g, const tp_node_id *in)
{
    return tp_op_attention(g, in[0], in[1], in[2], TP_NO_NODE,
                           &(tp_attention_options){.scale = 0.7, .is_causal = true}, "f32");
}

static tp_node_id build_dropped(tp_graph *g, const tp_node_id *in)
{
    const tp_attention_options options = {.scale = 0.7, .dropout = 0.3, .stream = 2};
    return tp_op_attention(g, in[0], in[1], in[2], TP_NO_NODE, &options, "f32");
}

Test(op_attention, gradients)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_plain,
                                     .shapes = {"[1,3,2,3]", "[1,4,2,3]", "[1,4,2,2]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_causal,
                                     .shapes = {"[2,3,2,2]", "[2,3,1,2]", "[2,3,1,2]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_dropped,
                                     .shapes = {"[1,3,2,3]", "[1,4,2,3]", "[1,4,2,2]"}});
}

static void expect_refused(const int64_t *q, const int64_t *k, const int64_t *v, const int64_t *m,
                           tp_attention_options options, const char *part)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id in[] = {graph_run_input(&run, TP_F32, 1, 4, q),
                             graph_run_input(&run, TP_F32, 2, 4, k),
                             graph_run_input(&run, TP_F32, 3, 4, v)};
    tp_node_id mask = TP_NO_NODE;
    if (m) mask = tp_op_convert(run.graph, graph_run_input(&run, TP_F32, 4, 4, m), TP_PRED);
    tp_op_attention(run.graph, in[0], in[1], in[2], mask, &options, "f32");
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, part);
    graph_run_end(&run);
}

Test(op_attention, refuses_wrong_shapes)
{
    static const int64_t q[] = {2, 5, 4, 3}, k[] = {2, 6, 2, 3}, other[] = {2, 6, 3, 3},
                         deep[] = {2, 6, 2, 4}, m[] = {2, 1, 5, 6}, bad_mask[] = {2, 2, 5, 6};
    const tp_attention_options options = {.scale = 1};
    expect_refused(q, other, other, NULL, options, "4 heads of queries do not share 3");
    expect_refused(q, deep, k, NULL, options, "expected [batch,queries,heads,depth]");
    expect_refused(q, k, k, bad_mask, options, "the mask is [2,2,5,6], expected [2 or 1,4 or 1");
    expect_refused(q, k, k, m, (tp_attention_options){.window = -1}, "a window of -1 keys");
    expect_refused(q, k, k, m, (tp_attention_options){.dropout = 1.5}, "dropout 1.5");
}

static tpucl_status whole_life_of_attention(void *user)
{
    tp_graph *g = NULL, *compact = NULL;
    tp_reference *reference = NULL;
    const tp_reference_options options = {.cores = 1};
    const float values[] = {0.5f};
    const void *inputs[] = {values, values, values, values};
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    attention_case_build(g, user);
    tpucl_status status = tp_graph_check(g);
    if (status == TPUCL_OK) status = tp_graph_compact(g, &compact);
    if (status == TPUCL_OK) status = tp_reference_create(compact, &options, &reference);
    if (status == TPUCL_OK) status = tp_reference_step(reference, inputs, 0);
    tp_reference_destroy(reference);
    tp_graph_destroy(compact);
    tp_graph_destroy(g);
    return status;
}

Test(op_attention, every_allocation_may_fail)
{
    attention_case one = attention_cases[0];
    alloc_loop_run(whole_life_of_attention, &one);
}
