/* SPDX-License-Identifier: Apache-2.0
 * Losses, their gradients and the accuracy, against double precision.
 */
#include "harness/graph_run.h"
#include "model/activation.h"
#include "model/loss.h"

enum { ROWS = 4, CLASSES = 3 };

static const float logits[ROWS][CLASSES] = {
    {0.5f, -1.0f, 2.0f}, {3.0f, 3.0f, 3.0f}, {-80.0f, 90.0f, 10.0f}, {1e4f, -1e4f, 9e3f}};
static const int32_t labels[ROWS] = {2, 0, 0, 0};
static const float targets[ROWS][CLASSES] = {
    {0.0f, 0.25f, 0.75f}, {1.0f, 0.0f, 0.0f}, {0.0f, 1.0f, 0.0f}, {0.5f, 0.0f, 0.5f}};

/* log-sum-exp in double */
static double log_sum_exp(const float *z)
{
    double largest = -INFINITY, sum = 0;
    for (int i = 0; i < CLASSES; i++)
        largest = fmax(largest, (double)z[i]);
    for (int i = 0; i < CLASSES; i++)
        sum += exp((double)z[i] - largest);
    return largest + log(sum);
}

typedef struct loss_run {
    graph_run run;
    tp_loss_input input;
} loss_run;

static void begin(loss_run *run, tp_model_loss kind, bool from_logits)
{
    graph_run_begin(&run->run);
    const bool is_sparse = kind == TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;
    const tp_node_id result = graph_run_input(&run->run, TP_F32, 1, 2, (int64_t[]){ROWS, CLASSES});
    const tp_node_id label = graph_run_input(&run->run, is_sparse ? TP_S32 : TP_F32, 1,
                                             is_sparse ? 1 : 2, (int64_t[]){ROWS, CLASSES});
    memcpy(run->run.data[0], logits, sizeof logits);
    if (is_sparse)
        memcpy(run->run.data[1], labels, sizeof labels);
    else
        memcpy(run->run.data[1], targets, sizeof targets);
    run->input = (tp_loss_input){.kind = kind,
                                 .result = result,
                                 .logits = TP_NO_NODE,
                                 .label = label,
                                 .from_logits = from_logits};
}

/* f32 arithmetic on values up to 2e4: an ulp is 2^-10 there, so relative 1e-6 plus 1e-6. */
static void expect_near(const float *found, const double *expected, int count)
{
    for (int i = 0; i < count; i++)
        cr_assert(fabs((double)found[i] - expected[i]) <= 1e-6 + 1e-6 * fabs(expected[i]),
                  "element %d is %.9g, expected %.9g", i, (double)found[i], expected[i]);
}

Test(loss, sparse_from_logits)
{
    loss_run run;
    double expected[ROWS];
    for (int i = 0; i < ROWS; i++)
        expected[i] = log_sum_exp(logits[i]) - (double)logits[i][labels[i]];
    begin(&run, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true);
    const tp_node_id loss = tp_loss_per_example(run.run.graph, &run.input);
    expect_near(graph_run_eval(&run.run, loss)->data, expected, ROWS);
    graph_run_end(&run.run);
}

Test(loss, dense_from_logits)
{
    loss_run run;
    double expected[ROWS] = {0};
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < CLASSES; j++)
            expected[i] += (double)targets[i][j] * (log_sum_exp(logits[i]) - (double)logits[i][j]);
    begin(&run, TP_MODEL_LOSS_CATEGORICAL_CROSSENTROPY, true);
    const tp_node_id loss = tp_loss_per_example(run.run.graph, &run.input);
    expect_near(graph_run_eval(&run.run, loss)->data, expected, ROWS);
    graph_run_end(&run.run);
}

/* d loss / d logits = softmax - one_hot, and nothing flows through the largest logit. */
Test(loss, gradient_of_cross_entropy)
{
    static const tp_model_loss kinds[] = {TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
                                          TP_MODEL_LOSS_CATEGORICAL_CROSSENTROPY};
    for (int k = 0; k < 2; k++) {
        loss_run run;
        double expected[ROWS][CLASSES];
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < CLASSES; j++)
                expected[i][j] = exp((double)logits[i][j] - log_sum_exp(logits[i])) -
                                 (k ? (double)targets[i][j] : (double)(j == labels[i]));
        begin(&run, kinds[k], true);
        tp_graph *graph = run.run.graph;
        const tp_node_id loss =
            tp_op_reduce(graph, tp_loss_per_example(graph, &run.input), "add", NULL, 0);
        tp_node_id d;
        tp_graph_gradients(graph, loss, &run.input.result, 1, &d);
        expect_near(graph_run_eval(&run.run, d)->data, expected[0], ROWS * CLASSES);
        graph_run_end(&run.run);
    }
}

/* Keras clips probabilities to [1e-7, 1 - 1e-7] and takes the logs as logits. */
Test(loss, from_probabilities)
{
    static const float p[ROWS][CLASSES] = {
        {0.25f, 0.25f, 0.5f}, {0.0f, 0.0f, 1.0f}, {1.0f, 0.0f, 0.0f}, {0.2f, 0.3f, 0.5f}};
    loss_run run;
    double expected[ROWS];
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < CLASSES; j++)
            sum += fmin(fmax((double)p[i][j], 1e-7), 1 - 1e-7);
        expected[i] = log(sum) - log(fmin(fmax((double)p[i][labels[i]], 1e-7), 1 - 1e-7));
    }
    begin(&run, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, false);
    memcpy(run.run.data[0], p, sizeof p);
    const tp_node_id loss = tp_loss_per_example(run.run.graph, &run.input);
    expect_near(graph_run_eval(&run.run, loss)->data, expected, ROWS);
    graph_run_end(&run.run);
}

/* The probabilities' own logits are taken where they are known. */
Test(loss, logits_of_a_softmax_are_used)
{
    loss_run run;
    begin(&run, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, false);
    tp_graph *graph = run.run.graph;
    run.input.logits = run.input.result;
    run.input.result = tp_activation_apply(graph, TP_ACTIVATION_SOFTMAX, run.input.logits, TP_F32);
    const tp_node_id loss = tp_loss_per_example(graph, &run.input);
    const double expected = log_sum_exp(logits[2]) - (double)logits[2][0]; /* 170: far below 1e-7 */
    const float *found = graph_run_eval(&run.run, loss)->data;
    expect_near(&found[2], &expected, 1);
    graph_run_end(&run.run);
}

Test(loss, squared_error)
{
    loss_run run;
    double expected[ROWS] = {0};
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < CLASSES; j++) {
            const double error = (double)logits[i][j] - (double)targets[i][j];
            expected[i] += error * error / CLASSES;
        }
    begin(&run, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false);
    const tp_node_id loss = tp_loss_per_example(run.run.graph, &run.input);
    expect_near(graph_run_eval(&run.run, loss)->data, expected, ROWS);
    cr_assert(tp_loss_is_correct(run.run.graph, &run.input) == TP_NO_NODE);
    graph_run_end(&run.run);
}

Test(loss, correct)
{
    static const float values[ROWS][CLASSES] = {
        {1, 3, 3}, {3, 1, 3}, {0, NAN, 1}, {-1, -2, -INFINITY}};
    static const int32_t sparse_labels[ROWS] = {1, 2, 1, 0};
    static const float expected[ROWS] = {1, 0, 0,
                                         1}; /* the first of equals is taken; NaN is never right */
    loss_run run;
    begin(&run, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true);
    memcpy(run.run.data[0], values, sizeof values);
    memcpy(run.run.data[1], sparse_labels, sizeof sparse_labels);
    const tp_node_id correct = tp_loss_is_correct(run.run.graph, &run.input);
    cr_assert(memcmp(graph_run_eval(&run.run, correct)->data, expected, sizeof expected) == 0);
    graph_run_end(&run.run);

    begin(&run, TP_MODEL_LOSS_CATEGORICAL_CROSSENTROPY, true);
    const tp_node_id dense = tp_loss_is_correct(run.run.graph, &run.input);
    static const float dense_expected[ROWS] = {1, 1, 1, 1}; /* labels' largest: 2, 0, 1, 0 */
    cr_assert(memcmp(graph_run_eval(&run.run, dense)->data, dense_expected, sizeof expected) == 0);
    graph_run_end(&run.run);
}

/* Formulas of keras/activations in double; f32 functions are within 4 ulp, and no formula cancels. */
Test(loss, activations)
{
    static const float x[] = {-20.0f, -3.0f, -0.5f, 0.0f, 0.25f, 2.0f, 7.0f};
    enum { COUNT = sizeof x / sizeof *x };
    for (int a = 0; a < TP_ACTIVATION_SOFTMAX; a++) {
        double expected[COUNT];
        for (int i = 0; i < COUNT; i++) {
            const double z = (double)x[i];
            const double table[] = {z,
                                    fmax(z, 0),
                                    fmin(fmax(z, 0), 6),
                                    z > 0 ? z : 0.2 * z,
                                    z > 0 ? z : expm1(z),
                                    1.0507009873554805 *
                                        (z > 0 ? z : 1.6732632423543772 * expm1(z)),
                                    0.5 * z * erfc(-z / sqrt(2)),
                                    1 / (1 + exp(-z)),
                                    tanh(z),
                                    log1p(exp(z)),
                                    z / (1 + fabs(z)),
                                    z / (1 + exp(-z)),
                                    z / (1 + exp(-z)),
                                    exp(z)};
            expected[i] = table[a];
        }
        graph_run run;
        graph_run_begin(&run);
        const tp_node_id z = graph_run_input(&run, TP_F32, 1, 1, (int64_t[]){COUNT});
        memcpy(run.data[0], x, sizeof x);
        const tp_node_id y = tp_activation_apply(run.graph, (tp_activation)a, z, TP_F32);
        const float *found = graph_run_eval(&run, y)->data;
        for (int i = 0; i < COUNT; i++)
            cr_assert(fabs((double)found[i] - expected[i]) <= 1e-6 * fmax(1e-1, fabs(expected[i])),
                      "%s(%g) is %.9g, expected %.9g", tp_activation_names[a], (double)x[i],
                      (double)found[i], expected[i]);
        graph_run_end(&run);
    }
}
