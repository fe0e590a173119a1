/* SPDX-License-Identifier: Apache-2.0
 * The interpreter: cores and groups, the order of the cross-core sum, updates at the end of a step, a
 * training run. (Ops: tests/unit/ops.) */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/builder.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "harness/alloc_loop.h"
#include "harness/sample_graph.h"
#include "num/bf16.h"
#include "ops/registry.h"
#include "reference/reference.h"

static tp_graph *new_graph(void)
{
    tp_graph *graph;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    return graph;
}

static tp_reference *new_reference(const tp_graph *graph, int32_t cores, int32_t group_cores,
                                   uint64_t seed)
{
    tp_reference *reference;
    const tp_reference_options options = {.cores = cores, .group_cores = group_cores, .seed = seed};
    cr_assert_eq(tp_reference_create(graph, &options, &reference), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    return reference;
}

static float scalar_output(const tp_reference *reference, int32_t core, int32_t output)
{
    return *(const float *)tp_reference_output(reference, core, output)->data;
}

/* Seven values whose sum depends on the order: the tree gives ((0+1)+(2+3)) + ((4+5)+6). */
Test(reference, all_reduce_is_the_balanced_tree)
{
    tp_graph *g = new_graph();
    tp_graph_add_output(g, "sum",
                        tp_op_all_reduce(g, tp_graph_add_input(g, "x", TP_F32, (tp_shape){0})));
    const float x[7] = {1e8f, 3.0f, -1e8f, 5.0f, 7e-3f, 1e7f, 0.1f};
    const float want = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + x[6]);
    const float in_order = (((((x[0] + x[1]) + x[2]) + x[3]) + x[4]) + x[5]) + x[6];
    cr_assert_neq(want, in_order, "the values do not tell orders apart");
    const void *inputs[7];
    for (int i = 0; i < 7; ++i)
        inputs[i] = &x[i];
    tp_reference *reference = new_reference(g, 7, 0, 0);
    cr_expect_null(tp_reference_output(reference, 0, 0));
    cr_assert_eq(tp_reference_step(reference, inputs, 0), TPUCL_OK);
    for (int core = 0; core < 7; ++core)
        cr_expect_eq(scalar_output(reference, core, 0), want);
    tp_reference_destroy(reference);
    tp_graph_destroy(g);
}

Test(reference, groups_do_not_meet)
{
    tp_graph *g = new_graph();
    const tp_variable total = {.name = "total", .dtype = TP_F32};
    const tp_node_id w = tp_graph_add_variable(g, &total);
    const tp_node_id sum = tp_op_all_reduce(g, tp_graph_add_input(g, "x", TP_F32, (tp_shape){0}));
    tp_graph_add_update(g, w, tp_op_add(g, w, sum));
    tp_graph_add_output(g, "before", w);
    const float x[4] = {1, 2, 10, 20};
    const void *inputs[4] = {&x[0], &x[1], &x[2], &x[3]};
    tp_reference *reference = new_reference(g, 4, 2, 0);
    cr_assert_eq(tp_reference_step(reference, inputs, 0), TPUCL_OK);
    cr_expect_eq(scalar_output(reference, 0, 0), 0,
                 "an output reads the variable before the updates");
    cr_assert_eq(tp_reference_step(reference, inputs, 1), TPUCL_OK);
    cr_expect_eq(scalar_output(reference, 1, 0), 3);
    cr_expect_eq(scalar_output(reference, 2, 0), 30);
    cr_expect_eq(*(float *)tp_reference_variable(reference, 0, 0)->data, 6);
    cr_expect_eq(*(float *)tp_reference_variable(reference, 1, 0)->data, 60);
    tp_reference_destroy(reference);
    tp_graph_destroy(g);
}

/* Both updates read the old values. */
Test(reference, variables_swap)
{
    tp_graph *g = new_graph();
    const tp_variable a = {.name = "a", .dtype = TP_F32, .init = TP_INIT_CONSTANT, .init_a = 1};
    const tp_variable b = {.name = "b", .dtype = TP_F32, .init = TP_INIT_CONSTANT, .init_a = 2};
    const tp_node_id first = tp_graph_add_variable(g, &a), second = tp_graph_add_variable(g, &b);
    tp_graph_add_update(g, first, second);
    tp_graph_add_update(g, second, first);
    tp_reference *reference = new_reference(g, 1, 0, 0);
    cr_assert_eq(tp_reference_step(reference, NULL, 0), TPUCL_OK);
    cr_expect_eq(*(float *)tp_reference_variable(reference, 0, 0)->data, 2);
    cr_expect_eq(*(float *)tp_reference_variable(reference, 0, 1)->data, 1);
    tp_reference_destroy(reference);
    tp_graph_destroy(g);
}

Test(reference, inputs_are_flushed_and_step_counts)
{
    tp_graph *g = new_graph();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){0});
    const tp_node_id y = tp_graph_add_input(g, "y", TP_BF16, (tp_shape){0});
    tp_graph_add_output(g, "x", tp_op_multiply_scalar(g, x, 0x1p+60));
    tp_graph_add_output(g, "y", y);
    tp_graph_add_output(g, "step", tp_op_step(g));
    const float tiny = -0x1p-130f;
    const tp_bf16 narrow = 0x0040;
    const void *inputs[] = {&tiny, &narrow};
    tp_reference *reference = new_reference(g, 1, 0, 0);
    cr_assert_eq(tp_reference_step(reference, inputs, 12), TPUCL_OK);
    cr_expect_eq(*(const uint32_t *)tp_reference_output(reference, 0, 0)->data, 0x80000000u);
    cr_expect_eq(*(const tp_bf16 *)tp_reference_output(reference, 0, 1)->data, 0);
    cr_expect_eq(*(const int32_t *)tp_reference_output(reference, 0, 2)->data, 12);
    tp_reference_destroy(reference);
    tp_graph_destroy(g);
}

Test(reference, cores_draw_different_numbers)
{
    tp_graph *g = new_graph();
    tp_graph_add_output(g, "u", tp_op_uniform(g, TP_F32, (tp_shape){0}, 0));
    tp_reference *reference = new_reference(g, 2, 0, 5);
    cr_assert_eq(tp_reference_step(reference, NULL, 0), TPUCL_OK);
    const float first = scalar_output(reference, 0, 0), second = scalar_output(reference, 1, 0);
    cr_expect_neq(first, second);
    cr_assert_eq(tp_reference_step(reference, NULL, 1), TPUCL_OK);
    cr_expect_neq(scalar_output(reference, 0, 0), first);
    cr_assert_eq(tp_reference_step(reference, NULL, 0), TPUCL_OK);
    cr_expect_eq(scalar_output(reference, 0, 0), first);
    tp_reference_destroy(reference);
    tp_graph_destroy(g);
}

/* ---- training ---- */
typedef struct batch {
    float *x;
    int32_t *label;
    const void **inputs;
} batch;

/* Class k's examples lie around a corner of their own. */
static batch make_batch(const tp_sample_options *o)
{
    batch b;
    const int64_t rows = o->batch * o->cores;
    b.x = malloc((size_t)(rows * o->features) * sizeof(float));
    b.label = malloc((size_t)rows * sizeof(int32_t));
    b.inputs = malloc((size_t)o->cores * 2 * sizeof(void *));
    uint32_t state = 7;
    for (int64_t row = 0; row < rows; ++row) {
        b.label[row] = (int32_t)(row % o->classes);
        for (int64_t i = 0; i < o->features; ++i) {
            state = state * 1664525u + 1013904223u;
            b.x[row * o->features + i] =
                (float)(state >> 8) * 0x1p-24f + (i % o->classes == b.label[row] ? 1.0f : 0.0f);
        }
    }
    for (int32_t core = 0; core < o->cores; ++core) {
        b.inputs[2 * core] = b.x + core * o->batch * o->features;
        b.inputs[2 * core + 1] = b.label + core * o->batch;
    }
    return b;
}

static void free_batch(batch *b)
{
    free(b->x);
    free(b->label);
    free(b->inputs);
}

Test(reference, training_learns_and_repeats)
{
    const tp_sample_options options = {8, 12, 16, 4, 4, 0.5, 0.25};
    tp_graph *g = tp_sample_graph(&options);
    batch b = make_batch(&options);
    tp_reference *first = new_reference(g, options.cores, 0, 11),
                 *second = new_reference(g, options.cores, 0, 11);
    float loss_at_start = 0, loss = 0;
    for (uint32_t step = 0; step < 30; ++step) {
        cr_assert_eq(tp_reference_step(first, b.inputs, step), TPUCL_OK, "%s",
                     tpucl_last_error()->message);
        cr_assert_eq(tp_reference_step(second, b.inputs, step), TPUCL_OK);
        loss = scalar_output(first, 0, 0);
        if (step == 0) loss_at_start = loss;
        cr_assert_eq(loss, scalar_output(second, 3, 0));
    }
    cr_expect(loss_at_start > 1.0f && loss < 0.4f, "loss %g at the start, %g at the end",
              (double)loss_at_start, (double)loss);
    for (int32_t i = 0; i < g->variable_count; ++i)
        cr_expect(memcmp(tp_reference_variable(first, 0, i)->data,
                         tp_reference_variable(second, 0, i)->data,
                         (size_t)tp_shape_bytes(&g->variables[i].shape, TP_F32)) == 0);
    tp_reference_destroy(first);
    tp_reference_destroy(second);
    tp_graph_destroy(g);
    free_batch(&b);
}

/* The same rows on one core and on four: equal up to the rounding of sums. */
Test(reference, cores_share_a_batch)
{
    const tp_sample_options four = {8, 12, 16, 4, 4, 0.5, 0}, one = {32, 12, 16, 4, 1, 0.5, 0};
    tp_graph *g4 = tp_sample_graph(&four), *g1 = tp_sample_graph(&one);
    batch b = make_batch(&four);
    const void *whole[] = {b.x, b.label};
    tp_reference *r4 = new_reference(g4, 4, 0, 3), *r1 = new_reference(g1, 1, 0, 3);
    cr_assert_eq(tp_reference_step(r4, b.inputs, 0), TPUCL_OK);
    cr_assert_eq(tp_reference_step(r1, whole, 0), TPUCL_OK);
    for (int32_t i = 0; i < g1->variable_count; ++i) {
        const float *a = tp_reference_variable(r4, 0, i)->data,
                    *c = tp_reference_variable(r1, 0, i)->data;
        for (int64_t j = 0; j < tp_shape_elems(&g1->variables[i].shape); ++j)
            cr_expect(fabsf(a[j] - c[j]) <= 1e-5f, "%s[%d]: %g and %g", g1->variables[i].name,
                      (int)j, (double)a[j], (double)c[j]);
    }
    tp_reference_destroy(r4);
    tp_reference_destroy(r1);
    tp_graph_destroy(g4);
    tp_graph_destroy(g1);
    free_batch(&b);
}

Test(reference, variables_are_copied_by_name)
{
    tp_graph *train = tp_sample_graph(&tp_sample_small), *other = new_graph();
    const tp_variable bias = {.name = "logits/bias", .dtype = TP_F32, .shape = {1, {3}}};
    tp_graph_add_variable(other, &bias);
    tp_reference *from = new_reference(train, 2, 0, 0), *to = new_reference(other, 1, 0, 0);
    ((float *)tp_reference_variable(from, 0, 3)->data)[2] = 5;
    cr_assert_eq(tp_reference_copy_variables(from, to), TPUCL_OK);
    cr_expect_eq(((float *)tp_reference_variable(to, 0, 0)->data)[2], 5);
    cr_expect_eq(tp_reference_copy_variables(to, from), TPUCL_NOT_FOUND);
    cr_expect(strstr(tpucl_last_error()->message, "dense/kernel"));
    tp_reference_destroy(from);
    tp_reference_destroy(to);
    tp_graph_destroy(train);
    tp_graph_destroy(other);
}

Test(reference, mistakes)
{
    tp_graph *g = tp_sample_graph(&tp_sample_small);
    tp_reference *reference;
    const tp_reference_options odd = {.cores = 4, .group_cores = 3};
    cr_expect_eq(tp_reference_create(g, &odd, &reference), TPUCL_INVALID_ARGUMENT);
    cr_expect(strstr(tpucl_last_error()->message, "4 cores in groups of 3"));
    reference = new_reference(g, 2, 0, 0);
    const float before = *(float *)tp_reference_variable(reference, 0, 0)->data;
    const void *inputs[4] = {NULL};
    cr_expect_eq(tp_reference_step(reference, inputs, 0), TPUCL_INVALID_ARGUMENT);
    cr_expect(strstr(tpucl_last_error()->message, "input 'x' of core 0"));
    cr_expect_eq(*(float *)tp_reference_variable(reference, 0, 0)->data, before);
    tp_reference_destroy(reference);
    tp_graph_destroy(g);
}

typedef struct memory_case {
    char *text;
    batch b;
} memory_case;

static tpucl_status run_one_step(void *user)
{
    const memory_case *test = user;
    const tp_reference_options options = {.cores = 2};
    tp_graph *graph = NULL;
    tp_reference *reference = NULL;
    tpucl_status status = tp_graph_parse(tp_ops_registry(), tp_view_of(test->text), &graph);
    if (status == TPUCL_OK) status = tp_reference_create(graph, &options, &reference);
    if (status == TPUCL_OK) status = tp_reference_step(reference, test->b.inputs, 0);
    tp_reference_destroy(reference);
    tp_graph_destroy(graph);
    return status;
}

Test(reference, survives_lack_of_memory)
{
    tp_graph *g = tp_sample_graph(&tp_sample_small);
    tp_str_builder builder = {0};
    char *text;
    tp_graph_print(g, &builder);
    cr_assert_eq(tp_str_builder_finish(&builder, &text, NULL), TPUCL_OK);
    memory_case test = {.text = strdup(text), .b = make_batch(&tp_sample_small)};
    tp_free(text);
    tp_graph_destroy(g);
    alloc_loop_run(run_one_step, &test);
    free(test.text);
    free_batch(&test.b);
}
