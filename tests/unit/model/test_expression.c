/* SPDX-License-Identifier: Apache-2.0
 * Expressions against NumPy's values, and their mistakes with the column.
 */
#include "golden/expression.h"
#include "harness/graph_run.h"
#include "model/expression.h"

enum { NAMES = 3 };

typedef struct expression_run {
    graph_run run;
    tp_expression_name names[NAMES];
} expression_run;

static void begin(expression_run *run)
{
    static const int32_t labels[] = {2, 0, 3};
    static const int64_t dims[] = {3, 4};
    graph_run_begin(&run->run);
    run->names[0] = (tp_expression_name){"x", graph_run_input(&run->run, TP_F32, 1, 2, dims)};
    run->names[1] = (tp_expression_name){"y", graph_run_input(&run->run, TP_F32, 2, 2, dims)};
    run->names[2] = (tp_expression_name){"label", graph_run_input(&run->run, TP_S32, 3, 1, dims)};
    memcpy(run->run.data[2], labels, sizeof labels);
}

static tpucl_status build(expression_run *run, const char *text, tp_node_id *out_node)
{
    return tp_expression_build(run->run.graph, "loss.expression", text, run->names, NAMES,
                               out_node);
}

/* Some roundings of values of up to 30. */
Test(expression, gives_numpys_values)
{
    const size_t count = sizeof expression_cases / sizeof *expression_cases;
    for (size_t i = 0; i < count; i++) {
        const expression_case *row = &expression_cases[i];
        expression_run run;
        tp_node_id node;
        begin(&run);
        EXPECT_OK(build(&run, row->text, &node));
        const tp_host_tensor *out = graph_run_eval(&run.run, node);
        cr_assert_eq(tp_shape_elems(&out->shape), row->count, "%s", row->text);
        for (int e = 0; e < row->count; e++) {
            const double found = out->dtype == TP_S32 ? ((const int32_t *)out->data)[e]
                                                      : (double)((const float *)out->data)[e];
            cr_expect(fabs(found - row->values[e]) <= 2e-6 * (1 + fabs(row->values[e])),
                      "%s: element %d is %.9g, expected %.9g", row->text, e, found, row->values[e]);
        }
        graph_run_end(&run.run);
    }
    cr_assert(count >= 25);
}

static void expect_refused(const char *text, const char *column, const char *part)
{
    expression_run run;
    tp_node_id node;
    begin(&run);
    EXPECT_FAILURE(build(&run, text, &node), TPUCL_INVALID_CONFIG, column);
    cr_expect(strstr(tpucl_last_error()->message, part), "'%s' is not in: %s", part,
              tpucl_last_error()->message);
    cr_expect(strstr(tpucl_last_error()->message, "loss.expression"));
    cr_expect(strchr(tpucl_last_error()->message, '^'));
    graph_run_end(&run.run);
}

Test(expression, mistakes_name_their_column)
{
    expect_refused("", "column 1:", "found the end");
    expect_refused("x +", "column 4:", "found the end");
    expect_refused("x y", "column 3:", "expected the end, found 'y'");
    expect_refused("x * z", "column 5:", "there is no 'z'");
    expect_refused("labl * x", "column 1:", "did you mean 'label'");
    expect_refused("1 + soft_max(x)", "column 5:", "did you mean 'softmax'");
    expect_refused("(x > 0) * y", "column 9:", "where(mask, x, 0)");
    expect_refused("x > 0 > y", "column 7:", "pred meets f32");
    expect_refused("where(x, y, 0)", "column 7:", "compare it");
    expect_refused("sum(x > 0)", "column 1:", "counts them");
    expect_refused("any(x)", "column 1:", "takes masks");
    expect_refused("x + label", "column 3:", "[3,4]");
    expect_refused("sum(x, axis=2)", "column 1:", "axis 2 of an array with 2");
    expect_refused("sum(x, axis=[0, -2])", "column 1:", "given twice");
    expect_refused("sum(x, axes=1)", "column 8:", "there are axis, keepdims");
    expect_refused("exp(x, axis=1)", "column 1:", "takes no axis");
    expect_refused("exp(x, y)", "column 1:", "takes 1 argument, found 2");
    expect_refused("exp(x", "column 6:", "expected ','");
    expect_refused("x[..., 4]", "column 2:", "elements 4 to 4 of an axis of 4");
    expect_refused("x[1]", "column 3:", "expected '...'");
    expect_refused("one_hot(x, 4)", "column 9:", "takes classes");
    expect_refused("one_hot(label, 2.5)", "column 16:", "whole number");
    expect_refused("cast(x, f16)", "column 9:", "there is no 'f16'");
    expect_refused("1e", "column 1:", "no number");
    expect_refused("1..2 + x", "column 1:", "no number");
    expect_refused("x @ y", "column 3:", "found '@'");
}

Test(expression, what_is_too_long_or_too_deep_is_refused)
{
    expression_run run;
    tp_node_id node;
    static char text[9001];
    begin(&run);
    memset(text, '(', 200);
    EXPECT_FAILURE(build(&run, text, &node), TPUCL_INVALID_CONFIG, "nested more than 64 deep");
    memset(text, '-', 200);
    EXPECT_FAILURE(build(&run, text, &node), TPUCL_INVALID_CONFIG, "nested more than 64 deep");
    memset(text, '1', 9000);
    EXPECT_FAILURE(build(&run, text, &node), TPUCL_INVALID_CONFIG, "9000 characters");
    graph_run_end(&run.run);
}
