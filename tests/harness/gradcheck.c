/* SPDX-License-Identifier: Apache-2.0
 * See gradcheck.h. Runs on the reference interpreter with one core. */
#include "harness/gradcheck.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "graph/autodiff.h"
#include "harness/coverage.h"
#include "ops/registry.h"
#include "reference/reference.h"

static const double step_size = 0x1p-7;

typedef struct checker {
    tp_graph *graph;
    tp_reference *reference;
    int32_t input_count;
    float *data[TP_GRADCHECK_INPUTS];
    int64_t elems[TP_GRADCHECK_INPUTS];
    tp_node_id gradients[TP_GRADCHECK_INPUTS];
    int32_t outputs[TP_GRADCHECK_INPUTS]; /* of gradients */
} checker;

/* A weight of the loss: no two are equal, signs alternate. */
static double weight(int64_t i)
{
    return (i % 2 ? -1.0 : 1.0) * (1.0 + (double)(i * 7 % 16) / 16.0);
}

static void must_be_ok(const checker *c)
{
    cr_assert_eq(tp_graph_check(c->graph), TPUCL_OK, "%s", tpucl_last_error()->message);
}

/* Distinct values in an order that looks random: i -> i * step mod n with step and n coprime. */
static void fill_inputs(checker *c, double middle)
{
    int64_t total = 0, next = 0, step = 1;
    for (int32_t i = 0; i < c->input_count; ++i)
        total += c->elems[i];
    for (int64_t candidate = total * 5 / 8 | 1; candidate > 1; --candidate) {
        int64_t a = candidate, b = total;
        while (b) {
            const int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) {
            step = candidate;
            break;
        }
    }
    for (int32_t i = 0; i < c->input_count; ++i)
        for (int64_t j = 0; j < c->elems[i]; ++j, ++next)
            c->data[i][j] =
                (float)(middle + ((double)(next * step % total - total / 2) + 0.5) / 32.0);
}

static void make_inputs(checker *c, const tp_gradcheck_case *test, tp_node_id *out_inputs)
{
    for (; c->input_count < TP_GRADCHECK_INPUTS && test->shapes[c->input_count]; ++c->input_count) {
        const int32_t i = c->input_count;
        tp_shape shape;
        const char name[] = {(char)('a' + i), '\0'};
        cr_assert_eq(tp_shape_parse(test->shapes[i], &shape), TPUCL_OK);
        out_inputs[i] = tp_graph_add_input(c->graph, name, TP_F32, shape);
        c->elems[i] = tp_shape_elems(&shape);
        c->data[i] = malloc((size_t)c->elems[i] * sizeof(float) + 1);
    }
    fill_inputs(c, test->middle);
}

/* loss = sum of weights * y, as nodes. */
static tp_node_id add_loss(checker *c, tp_node_id y)
{
    const tp_shape shape = c->graph->nodes[y].shape;
    const int64_t elems = tp_shape_elems(&shape);
    float *weights = malloc((size_t)elems * sizeof(float) + 1);
    for (int64_t i = 0; i < elems; ++i)
        weights[i] = (float)weight(i);
    const tp_node_id w = tp_op_constant(c->graph, TP_F32, shape, weights);
    free(weights);
    return tp_op_reduce(c->graph, tp_op_multiply(c->graph, tp_op_convert(c->graph, y, TP_F32), w),
                        "add", NULL, 0);
}

/* The loss in double, from the f32 results. */
static double run(checker *c)
{
    const void *inputs[TP_GRADCHECK_INPUTS] = {c->data[0], c->data[1], c->data[2], c->data[3]};
    cr_assert_eq(tp_reference_step(c->reference, inputs, 0), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    const tp_host_tensor *y = tp_reference_output(c->reference, 0, 0);
    const int64_t elems = tp_shape_elems(&y->shape);
    double sum = 0;
    for (int64_t i = 0; i < elems; ++i)
        sum += weight(i) * (double)((const float *)y->data)[i];
    return sum;
}

/* Ops between inputs and y that a gradient flows through; gradients came after y. */
static void note_coverage(const checker *c, const tp_node_id *inputs, tp_node_id y)
{
    bool *is_active = calloc((size_t)y + 1, sizeof *is_active);
    for (int32_t i = 0; i < c->input_count; ++i)
        is_active[inputs[i]] = true;
    for (tp_node_id id = 0; id <= y; ++id) {
        const tp_node *node = &c->graph->nodes[id];
        bool is_reached = false;
        for (int32_t i = 0; i < node->input_count; ++i)
            is_reached = is_reached || is_active[node->inputs[i]];
        const bool is_differentiable = node->def->gradient || node->def->loop_part;
        if (!is_reached || !is_differentiable || !tp_dtype_is_float(node->dtype)) continue;
        is_active[id] = true;
        coverage_note("gradient", node->def->name);
    }
    free(is_active);
}

static void check_input(checker *c, int32_t i, double tolerance)
{
    const float *found = NULL;
    float *kept = malloc((size_t)c->elems[i] * sizeof(float) + 1);
    (void)run(c);
    found = tp_reference_output(c->reference, 0, c->outputs[i])->data;
    for (int64_t j = 0; j < c->elems[i]; ++j)
        kept[j] = found[j];
    for (int64_t j = 0; j < c->elems[i]; ++j) {
        const float x = c->data[i][j];
        c->data[i][j] = (float)((double)x + step_size);
        const double above = run(c);
        c->data[i][j] = (float)((double)x - step_size);
        const double below = run(c);
        c->data[i][j] = x;
        const double want = (above - below) / (2 * step_size), scale = fmax(1, fabs(want));
        cr_expect(fabs((double)kept[j] - want) <= tolerance * scale,
                  "input %d element %lld at %g: gradient %.9g, differences give %.9g", i,
                  (long long)j, (double)x, (double)kept[j], want);
    }
    free(kept);
}

void tp_gradcheck(tp_gradcheck_case test)
{
    checker c = {0};
    tp_node_id inputs[TP_GRADCHECK_INPUTS];
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &c.graph), TPUCL_OK);
    make_inputs(&c, &test, inputs);
    const tp_node_id y = test.build(c.graph, inputs);
    must_be_ok(&c);
    tp_graph_add_output(c.graph, "y", tp_op_convert(c.graph, y, TP_F32));
    tp_graph_gradients(c.graph, add_loss(&c, y), inputs, c.input_count, c.gradients);
    must_be_ok(&c);
    int32_t outputs = 1;
    for (int32_t i = 0; i < c.input_count; ++i) {
        const bool is_without = test.without_inputs >> i & 1u;
        cr_assert_eq(c.gradients[i] == TP_NO_NODE, is_without, "input %d %s a gradient", i,
                     is_without ? "has" : "lacks");
        if (is_without) continue;
        const char name[] = {'d', (char)('a' + i), '\0'};
        tp_graph_add_output(c.graph, name, c.gradients[i]);
        c.outputs[i] = outputs++;
    }
    must_be_ok(&c);
    const tp_reference_options options = {.cores = 1};
    cr_assert_eq(tp_reference_create(c.graph, &options, &c.reference), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    for (int32_t i = 0; i < c.input_count; ++i)
        if (!(test.without_inputs >> i & 1u))
            check_input(&c, i, test.tolerance > 0 ? test.tolerance : 2e-3);
    note_coverage(&c, inputs, y);
    tp_reference_destroy(c.reference);
    tp_graph_destroy(c.graph);
    for (int32_t i = 0; i < c.input_count; ++i)
        free(c.data[i]);
}
