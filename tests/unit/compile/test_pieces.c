/* SPDX-License-Identifier: Apache-2.0
 * Element-wise clusters that put tensors side by side: one loop over a piece where pieces are equal, with
 * what the pieces are made of in the same kernel, and conditions where they are not. Bits of the reference.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include "graph/builder.h"
#include "graph/verify.h"
#include "harness/program_run.h"
#include "ops/registry.h"

typedef struct piece_case {
    int32_t count;
    int64_t columns[9];
} piece_case;

/* Equal pieces, pieces of a common divisor, of none, too narrow ones, too many. */
static const piece_case cases[] = {{2, {32, 32}},
                                   {3, {16, 48, 32}},
                                   {2, {33, 20}},
                                   {4, {5, 5, 5, 5}},
                                   {9, {16, 16, 16, 16, 16, 16, 16, 16, 16}}};
enum { CASES = sizeof cases / sizeof cases[0], ROWS = 9 };

static tp_graph *new_graph(void)
{
    tp_graph *g = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &g), TPUCL_OK);
    return g;
}

static void run(tp_graph *g)
{
    cr_assert_eq(tp_graph_check(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_graph_verify(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    program_run_options options = {.cores = 2, .steps = 1, .seed = 3, .int_limit = 1000};
    program_run_expect_equal(g, &options);
    options.as_gpu = true;
    program_run_expect_equal(g, &options);
    tp_graph_destroy(g);
}

/* What is put side by side; every second one is wanted by itself, too. */
static void add_parts(tp_graph *g, size_t number, tp_node_id *out_parts)
{
    const piece_case *c = &cases[number];
    for (int32_t i = 0; i < c->count; i++) {
        char name[32];
        snprintf(name, sizeof name, "x%zu_%d", number, (int)i);
        const tp_shape shape = {2, {ROWS, c->columns[i]}};
        const tp_node_id x = tp_graph_add_input(g, name, i % 2 ? TP_BF16 : TP_F32, shape);
        out_parts[i] = tp_op_tanh(g, tp_op_convert(g, x, TP_F32));
        snprintf(name, sizeof name, "part%zu_%d", number, (int)i);
        if (i % 2 == 0) tp_graph_add_output(g, name, out_parts[i]);
    }
}

Test(pieces, concatenations)
{
    tp_graph *g = new_graph();
    for (size_t n = 0; n < CASES; n++) {
        tp_node_id parts[9];
        add_parts(g, n, parts);
        char name[32];
        snprintf(name, sizeof name, "all%zu", n);
        const tp_node_id all = tp_op_concatenate(g, parts, cases[n].count, 1);
        tp_graph_add_output(g, name, tp_op_convert(g, tp_op_add(g, all, all), TP_BF16));
    }
    run(g);
}

/* The gradient of slices; -0 becomes +0 where another part's zero is added. */
Test(pieces, sums_of_padded_tensors)
{
    static const int64_t interior[] = {0, 0};
    tp_graph *g = new_graph();
    for (size_t n = 0; n < CASES; n++) {
        const piece_case *c = &cases[n];
        tp_node_id parts[9];
        add_parts(g, n, parts);
        int64_t all = 0, start = 0;
        for (int32_t i = 0; i < c->count; i++)
            all += c->columns[i];
        tp_node_id sum = TP_NO_NODE;
        for (int32_t i = 0; i < c->count; i++) {
            const int64_t low[] = {0, start}, high[] = {0, all - start - c->columns[i]};
            start += c->columns[i];
            const tp_node_id zero = tp_op_scalar(g, TP_F32, 0);
            const tp_node_id padded =
                tp_op_pad(g, tp_op_negate(g, parts[i]), zero, low, high, interior);
            sum = i == 0 ? padded : tp_op_add(g, sum, padded);
        }
        char name[32];
        snprintf(name, sizeof name, "sum%zu", n);
        tp_graph_add_output(g, name, sum);
    }
    run(g);
}
