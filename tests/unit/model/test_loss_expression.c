/* SPDX-License-Identifier: Apache-2.0
 * Losses and metrics that are expressions against custom ones of Keras (tests/golden/gen_keras_expression.py), for
 * results of the shape [3, 4, 5], as one batch, example by example, and with padding; and what may not be said.
 */
#include "golden/keras_expression.h"
#include "harness/coverage.h"
#include "harness/graph_run.h"
#include "model/loss_expression.h"

enum { LOSSES = sizeof golden_keras_losses / sizeof *golden_keras_losses };
enum { METRICS = sizeof golden_keras_metrics / sizeof *golden_keras_metrics };
enum { ROWS = 3, INNER = 4, CLASSES = 5, ROW = INNER * CLASSES, ALL = ROWS * ROW };

/* The data of the generator by name. */
static float element(const char *data, int i)
{
    if (strcmp(data, "raw") == 0) return golden_value(1, (uint32_t)i) * 4;
    if (strcmp(data, "other") == 0) return golden_value(2, (uint32_t)i) * 4;
    if (strcmp(data, "share") == 0) return golden_value(1, (uint32_t)i) * 0.5f * 0.75f + 0.5f;
    return golden_value(2, (uint32_t)i) > 0 ? 1.0f : 0.0f; /* binary */
}

/* Rows `first` to `first + count` of the data, and then `padding` rows of weight 0. */
typedef struct piece {
    graph_run run;
    tp_loss_options options;
    tp_loss_input input;
    tp_loss_weights weights;
} piece;

static tpucl_status begin(piece *p, const char *result, const char *label, int first, int count,
                          int padding, const char *expression, const char *mask)
{
    const bool is_sparse = strcmp(label, "sparse") == 0;
    const int64_t dims[] = {count + padding, INNER, CLASSES};
    tp_node_id counts;
    graph_run_begin(&p->run);
    p->options = tp_loss_defaults(TP_MODEL_LOSS_EXPRESSION);
    p->options.expression = expression;
    p->options.mask = mask;
    p->options.path = "loss";
    p->input = (tp_loss_input){
        .kind = TP_MODEL_LOSS_EXPRESSION,
        .result = graph_run_input(&p->run, TP_F32, 1, 3, dims),
        .logits = TP_NO_NODE,
        .label = graph_run_input(&p->run, is_sparse ? TP_S32 : TP_F32, 1, is_sparse ? 2 : 3, dims),
        .options = &p->options};
    const tp_node_id weight = graph_run_input(&p->run, TP_F32, 1, 1, dims);
    for (int i = 0; i < (count + padding) * ROW; i++) {
        const bool is_real = i < count * ROW;
        const int at = first * ROW + i;
        /* what a model makes of cleared padding, and labels that are nothing */
        ((float *)p->run.data[0])[i] = is_real ? element(result, at) : 0;
        if (!is_sparse) ((float *)p->run.data[1])[i] = is_real ? element(label, at) : 0;
        if (is_sparse && i % CLASSES == 0)
            ((int32_t *)p->run.data[1])[i / CLASSES] = is_real ? at / CLASSES * 7 % 6 : 1000000;
        ((float *)p->run.data[2])[i / ROW] = is_real ? 1 : 0;
    }
    tp_loss_name_all(p->run.graph, &p->input, weight, TP_NO_NODE);
    TP_TRY(tp_loss_read_values(p->run.graph, &p->input));
    TP_TRY(tp_loss_read_mask(p->run.graph, &p->input, TP_NO_NODE, &counts));
    p->weights = tp_loss_weights_of(p->run.graph, &p->input, weight, counts);
    return TPUCL_OK;
}

static double sum_of(piece *p, tp_node_id node)
{
    return (double)*(const float *)graph_run_eval(&p->run, node)->data;
}

static void expect_near(double found, double expected, const char *name, const char *what)
{
    cr_assert(fabs(found - expected) <= 1e-6 + 1e-5 * fabs(expected),
              "%s, %s: %.9g, Keras has %.9g", name, what, found, expected);
}

/* The batch in pieces of `count` rows, each with padding: sums, and the gradient of the mean. */
static void expect_loss(int index, int count, int padding)
{
    const char *name = golden_keras_losses[index].name;
    double loss = 0, weight = 0, slopes[ALL];
    for (int first = 0; first < ROWS; first += count) {
        piece p;
        tp_node_id slope;
        EXPECT_OK(begin(&p, golden_keras_losses[index].result, golden_keras_losses[index].label,
                        first, count, padding, golden_keras_losses[index].expression,
                        golden_keras_losses[index].mask));
        const tp_node_id sum = tp_loss_sum(p.run.graph, &p.input, &p.weights);
        tp_graph_gradients(p.run.graph, sum, &p.input.result, 1, &slope);
        loss += sum_of(&p, sum);
        weight += sum_of(&p, tp_op_reduce(p.run.graph, p.weights.weight, "add", NULL, 0));
        const float *found = graph_run_eval(&p.run, slope)->data;
        for (int i = 0; i < count * ROW; i++)
            slopes[first * ROW + i] = (double)found[i];
        for (int i = count * ROW; i < (count + padding) * ROW; i++)
            cr_assert(found[i] == 0, "%s: padding has the gradient %g", name, (double)found[i]);
        graph_run_end(&p.run);
    }
    expect_near(loss / weight, golden_keras_losses[index].loss, name, "loss");
    for (int i = 0; i < ALL; i++)
        expect_near(slopes[i] / weight, golden_keras_losses[index].gradient[i], name, "gradient");
}

Test(loss_expression, losses_and_gradients_of_keras)
{
    for (int i = 0; i < LOSSES; i++) {
        expect_loss(i, ROWS, 0);
        expect_loss(i, 1, 0);
        expect_loss(i, 1, 2);
    }
    coverage_note("loss.golden", "expression");
    coverage_note("loss.gradient", "expression");
}

static double metric_of(int index, int count, int padding)
{
    double above = 0, below = 0;
    tp_metric_options options = tp_metric_defaults();
    options.expression = golden_keras_metrics[index].expression;
    options.weight = golden_keras_metrics[index].weight;
    for (int first = 0; first < ROWS; first += count) {
        piece p;
        tp_metric_parts parts;
        EXPECT_OK(begin(&p, golden_keras_metrics[index].result, golden_keras_metrics[index].label,
                        first, count, padding, "mean(y_pred, axis=-1)", NULL));
        EXPECT_OK(tp_metric_build(p.run.graph, TP_METRIC_EXPRESSION, &options, &p.input, &p.weights,
                                  &parts));
        cr_assert_eq(parts.count, 2);
        above += sum_of(&p, parts.nodes[0]);
        below += sum_of(&p, parts.nodes[1]);
        graph_run_end(&p.run);
    }
    const double *const sums[] = {&above, &below};
    const int64_t counts[] = {1, 1};
    return tp_metric_finish(TP_METRIC_EXPRESSION, &options, sums, counts);
}

Test(loss_expression, metrics_of_keras)
{
    for (int i = 0; i < METRICS; i++) {
        const char *name = golden_keras_metrics[i].name;
        expect_near(metric_of(i, ROWS, 0), golden_keras_metrics[i].value, name, "one batch");
        expect_near(metric_of(i, 1, 0), golden_keras_metrics[i].value, name, "single examples");
        expect_near(metric_of(i, 1, 2), golden_keras_metrics[i].value, name, "padding");
    }
    coverage_note("metric.golden", "expression");
}

/* sqrt has an infinite slope at the 0 that padding gives: 0 times that would be NaN. */
Test(loss_expression, padding_has_no_gradient)
{
    piece p;
    tp_node_id slope;
    EXPECT_OK(begin(&p, "raw", "other", 0, 2, 1,
                    "sqrt(sum(square(y_pred - y_true), axis=-1)) / sum(abs(y_pred), axis=-1)",
                    NULL));
    const tp_node_id sum = tp_loss_sum(p.run.graph, &p.input, &p.weights);
    tp_graph_gradients(p.run.graph, sum, &p.input.result, 1, &slope);
    cr_assert(isfinite(sum_of(&p, sum)));
    const float *found = graph_run_eval(&p.run, slope)->data;
    for (int i = 0; i < 3 * ROW; i++)
        cr_assert(i < 2 * ROW ? isfinite(found[i]) && found[i] != 0 : found[i] == 0, "%d: %g", i,
                  (double)found[i]);
    graph_run_end(&p.run);
}

/* As docs/expressions.md has it: labels that are missing count for nothing and leave no NaN behind. */
Test(loss_expression, squared_error_where_labels_are_finite)
{
    piece p;
    tp_node_id slope;
    double expected = 0;
    EXPECT_OK(begin(&p, "raw", "other", 0, 2, 1,
                    "square(y_pred - where(is_finite(y_true), y_true, 0))", "is_finite(y_true)"));
    float *labels = p.run.data[1];
    for (int i = 0; i < 2 * ROW; i++) {
        const double error = (double)element("raw", i) - (double)element("other", i);
        if (i % 7 == 3)
            labels[i] = i % 2 ? NAN : INFINITY;
        else
            expected += error * error;
    }
    const tp_node_id sum = tp_loss_sum(p.run.graph, &p.input, &p.weights);
    tp_graph_gradients(p.run.graph, sum, &p.input.result, 1, &slope);
    expect_near(sum_of(&p, sum), expected, "missing labels", "loss");
    expect_near(sum_of(&p, tp_op_reduce(p.run.graph, p.weights.weight, "add", NULL, 0)),
                2 * ROW - 6, "missing labels", "count");
    const float *found = graph_run_eval(&p.run, slope)->data;
    for (int i = 0; i < 3 * ROW; i++)
        cr_assert((i < 2 * ROW && i % 7 != 3) ? found[i] != 0 && isfinite(found[i]) : found[i] == 0,
                  "%d: %g", i, (double)found[i]);
    graph_run_end(&p.run);
}

static void expect_refused(const char *expression, const char *mask, const char *part)
{
    piece p;
    EXPECT_FAILURE(begin(&p, "raw", "sparse", 0, 2, 0, expression, mask), TPUCL_INVALID_CONFIG,
                   part);
    graph_run_end(&p.run);
}

Test(loss_expression, examples_do_not_meet)
{
    expect_refused("mean(y_pred)", NULL,
                   "loss.expression, column 1: 'mean' goes over the examples");
    expect_refused("y_pred - max(y_pred, axis=0)", NULL, "column 10: 'max' goes over the examples");
    expect_refused("y_pred * argmax(sample_weight)", NULL, "column 10: 'argmax' goes over");
    expect_refused("softmax(sample_weight)", NULL, "'softmax' goes over the examples");
    expect_refused("sample_weight[..., 0]", NULL, "'[...]' goes over the examples");
    expect_refused("any(y_true > 0, axis=[0, 1])", NULL, "'any' goes over the examples");
    /* of 2 examples, this would broadcast by accident with an axis of 2 */
    expect_refused("y_pred[..., 0:2] * sample_weight", NULL, "loss.expression, column 18");
    expect_refused("y_pred * sum(flatten(expand_dims(y_pred, 0)), axis=1)", NULL,
                   "column 14: 'flatten' goes over the examples");
    expect_refused("1", NULL, "a value for each example, found one number");
    expect_refused("expand_dims(y_pred, 0)", NULL, "the examples of a batch as the first axis");
    expect_refused("y_pred > 0", NULL, "loss.expression gives a mask (pred)");
    expect_refused("y_pred", "y_true", "loss.mask gives s32, expected a mask");
    expect_refused("mean(y_pred, axis=[1, 2])", "y_true != 5", "loss.mask is [2,4]");
    expect_refused("mean(y_pred, axis=1)", "y_true != 5", "the loss is [2,5]");
}
