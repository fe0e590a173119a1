/* SPDX-License-Identifier: Apache-2.0
 * Reductions of all forms, with something computed before and behind them: rows, columns, mixtures, one
 * block and several, one launch and two, sibling reductions in one kernel. Bits of the reference.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include "graph/builder.h"
#include "graph/verify.h"
#include "harness/program_run.h"
#include "ops/registry.h"

typedef struct reduce_case {
    tp_dtype dtype;
    tp_shape shape;
    int32_t axis_count;
    int64_t axes[3];
} reduce_case;

static const reduce_case cases[] = {
    {TP_F32, {1, {1}}, 1, {0}},
    {TP_F32, {1, {127}}, 1, {0}},
    {TP_F32, {1, {128}}, 1, {0}},
    {TP_F32, {1, {8192}}, 1, {0}},
    {TP_F32, {1, {8193}}, 1, {0}},
    {TP_F32, {1, {50001}}, 1, {0}},
    {TP_F32, {2, {7, 10}}, 1, {1}},
    {TP_BF16, {2, {5, 129}}, 1, {1}},
    {TP_F32, {2, {3, 20000}}, 1, {1}},
    {TP_F32, {2, {128, 33}}, 1, {0}},
    {TP_F32, {2, {129, 32}}, 1, {0}},
    {TP_BF16, {2, {100, 48}}, 1, {0}},
    {TP_BF16, {2, {8500, 17}}, 1, {0}},
    {TP_F32, {2, {30000, 40}}, 1, {0}},
    {TP_F32, {2, {17000, 3}}, 1, {0}},
    {TP_BF16, {2, {140, 2080}}, 1, {0}},
    {TP_F32, {3, {2, 4100, 70}}, 2, {0, 1}},
    {TP_F32, {3, {5, 6, 70}}, 1, {1}},
    {TP_F32, {3, {5, 6, 7}}, 2, {0, 2}},
    {TP_BF16, {4, {4, 9, 9, 16}}, 3, {0, 1, 2}},
    {TP_F32, {4, {6, 40, 40, 8}}, 3, {0, 1, 2}},
    {TP_F32, {4, {2, 3, 4, 5}}, 2, {1, 3}},
    {TP_S32, {2, {300, 20}}, 1, {0}},
    {TP_U32, {2, {9, 500}}, 1, {1}},
};

static tp_graph *new_graph(void)
{
    tp_graph *g = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &g), TPUCL_OK);
    return g;
}

/* As the device is, and as if it were a GPU. */
static void run_limited(tp_graph *g, int32_t int_limit)
{
    cr_assert_eq(tp_graph_check(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_graph_verify(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    program_run_options options = {.cores = 2, .steps = 1, .seed = 3, .int_limit = int_limit};
    program_run_expect_equal(g, &options);
    options.as_gpu = true;
    program_run_expect_equal(g, &options);
    tp_graph_destroy(g);
}

static void run(tp_graph *g)
{
    run_limited(g, 1000);
}

TestSuite(reduce, .timeout = 250);

enum { CASES = sizeof cases / sizeof cases[0] };

static const char *name_of(char name[32], const char *what, size_t number)
{
    snprintf(name, 32, "%s%zu", what, number);
    return name;
}

/* All cases in one program: few builds. */
Test(reduce, all_kinds_of_all_shapes)
{
    static const char *const kinds[] = {"add", "max", "min", "multiply"};
    tp_graph *g = new_graph();
    for (size_t c = 0; c < CASES; c++) {
        char name[32];
        const tp_node_id x =
            tp_graph_add_input(g, name_of(name, "x", c), cases[c].dtype, cases[c].shape);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            tp_graph_add_output(g, name_of(name, kinds[k], c),
                                tp_op_reduce(g, x, kinds[k], cases[c].axes, cases[c].axis_count));
    }
    run(g);
}

/* sum(exp(x) * mask) with an epilogue, and the sum of squares beside it. */
Test(reduce, fused_before_and_behind)
{
    tp_graph *g = new_graph();
    for (size_t c = 0; c < CASES; c++) {
        if (!tp_dtype_is_float(cases[c].dtype)) continue;
        char name[32];
        const int64_t *axes = cases[c].axes;
        const int32_t count = cases[c].axis_count;
        const tp_node_id x =
            tp_graph_add_input(g, name_of(name, "x", c), cases[c].dtype, cases[c].shape);
        const tp_node_id f = tp_op_convert(g, x, TP_F32);
        const tp_node_id keep = tp_op_bernoulli(g, cases[c].shape, 0.7, 5);
        const tp_node_id masked =
            tp_op_select(g, keep, tp_op_exponential(g, f), tp_op_scalar(g, TP_F32, 0));
        const tp_node_id sum = tp_op_reduce(g, masked, "add", axes, count);
        const tp_node_id squares = tp_op_reduce(g, tp_op_multiply(g, f, f), "add", axes, count);
        const tp_node_id ratio =
            tp_op_divide(g, tp_op_sqrt(g, squares), tp_op_add_scalar(g, sum, 1));
        tp_graph_add_output(g, name_of(name, "ratio", c), tp_op_convert(g, ratio, TP_BF16));
        tp_graph_add_output(g, name_of(name, "sum", c), sum);
    }
    run(g);
}

Test(reduce, arguments_and_predicates)
{
    tp_graph *g = new_graph();
    for (size_t c = 0; c < CASES; c++) {
        if (cases[c].dtype == TP_U32) continue;
        char name[32];
        const tp_node_id x =
            tp_graph_add_input(g, name_of(name, "x", c), cases[c].dtype, cases[c].shape);
        const tp_attr axis = {.name = "axis", .kind = TP_ATTR_INT, .int_value = cases[c].axes[0]};
        tp_graph_add_output(g, name_of(name, "argmax", c),
                            tp_graph_add(g, "argmax", &x, 1, &axis, 1));
        tp_graph_add_output(g, name_of(name, "argmin", c),
                            tp_graph_add(g, "argmin", &x, 1, &axis, 1));
        const tp_node_id mask = tp_op_compare(g, "GT", x, tp_op_scalar(g, cases[c].dtype, 0));
        tp_graph_add_output(g, name_of(name, "and", c),
                            tp_op_reduce(g, mask, "and", cases[c].axes, cases[c].axis_count));
        tp_graph_add_output(g, name_of(name, "or", c),
                            tp_op_reduce(g, mask, "or", cases[c].axes, cases[c].axis_count));
    }
    run(g);
}

/* NaN, infinities, zeros of both signs: made by dividing what the input has. */
Test(reduce, special_values)
{
    tp_graph *g = new_graph();
    const tp_shape shape = {2, {40, 150}};
    const tp_node_id n = tp_op_convert(g, tp_graph_add_input(g, "n", TP_S32, shape), TP_F32);
    const tp_node_id d = tp_op_convert(g, tp_graph_add_input(g, "d", TP_S32, shape), TP_F32);
    const tp_node_id x =
        tp_op_divide(g, tp_op_add_scalar(g, n, -1), tp_op_negate(g, tp_op_add_scalar(g, d, -2)));
    for (int64_t axis = 0; axis < 2; axis++) {
        static const char *const kinds[] = {"add", "max", "min"};
        char name[16];
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            snprintf(name, sizeof name, "%s%d", kinds[k], (int)axis);
            tp_graph_add_output(g, name, tp_op_reduce(g, x, kinds[k], &axis, 1));
        }
        const tp_attr attr = {.name = "axis", .kind = TP_ATTR_INT, .int_value = axis};
        snprintf(name, sizeof name, "arg%d", (int)axis);
        tp_graph_add_output(g, name, tp_graph_add(g, "argmax", &x, 1, &attr, 1));
    }
    run_limited(g, 4);
}
