/* SPDX-License-Identifier: Apache-2.0
 * Every loss and its gradient against Keras in f64 (tests/golden/gen_keras_loss.py), for results of the shape
 * [3, 4, 5]; what masks, ignored classes and class weights do to the sums.
 */
#include "golden/keras_loss.h"
#include "harness/graph_run.h"
#include "model/loss.h"

enum { CASES = sizeof golden_keras_loss / sizeof golden_keras_loss[0] };
enum { ROWS = 3, INNER = 4, CLASSES = 5, ELEMENTS = ROWS * INNER, ALL = ELEMENTS * CLASSES };

static tp_model_loss kind_of(const char *name)
{
    static const char *const names[] = {
#define NAME(id, symbol, name, keys) name,
        TP_LOSS_LIST(NAME)
#undef NAME
    };
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(names[i], name) != 0)
        i++;
    cr_assert(i < sizeof names / sizeof *names, "no loss '%s'", name);
    return (tp_model_loss)i;
}

static tp_loss_options options_of(const char *name, const char *arguments)
{
    tp_loss_options options = tp_loss_defaults(kind_of(name));
    double value;
#define NUMBER(field, low, high, open, meaning)                                                    \
    if (tp_choice_number(arguments, #field, &value)) options.field = value;
#define FLAG(field, meaning)                                                                       \
    if (tp_choice_number(arguments, #field, &value)) options.field = value != 0;
    TP_LOSS_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
    return options;
}

/* The data of the generator by name. */
static float element(const char *data, int i)
{
    if (strcmp(data, "raw") == 0) return golden_value(1, (uint32_t)i) * 4;
    if (strcmp(data, "other") == 0) return golden_value(2, (uint32_t)i) * 4;
    if (strcmp(data, "share") == 0) return golden_value(1, (uint32_t)i) * 0.5f * 0.75f + 0.5f;
    if (strcmp(data, "positive") == 0) return golden_value(2, (uint32_t)i) * 0.5f * 0.75f + 0.5f;
    if (strcmp(data, "binary") == 0) return golden_value(2, (uint32_t)i) > 0 ? 1.0f : 0.0f;
    return (i / CLASSES * 7) % CLASSES == i % CLASSES ? 1.0f : 0.0f; /* one_hot */
}

typedef struct loss_run {
    graph_run run;
    tp_loss_options options;
    tp_loss_input input;
} loss_run;

static void begin(loss_run *run, const char *name, const char *arguments, const char *result,
                  const char *label)
{
    double from_logits = 0;
    const bool is_sparse = tp_loss_is_sparse(kind_of(name));
    tp_choice_number(arguments, "from_logits", &from_logits);
    graph_run_begin(&run->run);
    run->options = options_of(name, arguments);
    run->input = (tp_loss_input){
        .kind = kind_of(name),
        .result = graph_run_input(&run->run, TP_F32, 1, 3, (int64_t[]){ROWS, INNER, CLASSES}),
        .logits = TP_NO_NODE,
        .label = graph_run_input(&run->run, is_sparse ? TP_S32 : TP_F32, 1, is_sparse ? 2 : 3,
                                 (int64_t[]){ROWS, INNER, CLASSES}),
        .from_logits = from_logits != 0,
        .options = &run->options};
    for (int i = 0; i < ALL; i++)
        ((float *)run->run.data[0])[i] = element(result, i);
    for (int i = 0; i < (is_sparse ? ELEMENTS : ALL); i++) {
        if (is_sparse)
            ((int32_t *)run->run.data[1])[i] = i * 7 % CLASSES;
        else
            ((float *)run->run.data[1])[i] = element(label, i);
    }
}

static void expect_near(float found, double expected, const char *name, int i, const char *what)
{
    cr_assert(fabs((double)found - expected) <= 1e-6 + 1e-5 * fabs(expected),
              "%s, %s %d: %.9g, Keras has %.9g", name, what, i, (double)found, expected);
}

static void expect_case(int index)
{
    const char *name = golden_keras_loss[index].name;
    const double *losses = golden_keras_loss[index].losses;
    const int inner = golden_keras_loss[index].count / ROWS;
    loss_run run;
    begin(&run, name, golden_keras_loss[index].arguments, golden_keras_loss[index].result,
          golden_keras_loss[index].label);
    const tp_node_id per_example = tp_loss_per_example(run.run.graph, &run.input);
    const tp_host_tensor *found = graph_run_eval(&run.run, per_example);
    cr_assert(found->shape.rank == 1 && found->shape.dims[0] == ROWS, "%s", name);
    for (int i = 0; i < ROWS; i++) {
        double mean = 0;
        for (int j = 0; j < inner; j++)
            mean += losses[i * inner + j] / inner;
        expect_near(((const float *)found->data)[i], mean, name, i, "example");
    }
    tp_node_id gradient;
    const tp_node_id sum = tp_op_multiply_scalar(
        run.run.graph, tp_op_reduce(run.run.graph, per_example, "add", NULL, 0), inner);
    tp_graph_gradients(run.run.graph, sum, &run.input.result, 1, &gradient);
    found = graph_run_eval(&run.run, gradient);
    for (int i = 0; i < ALL; i++)
        expect_near(((const float *)found->data)[i], golden_keras_loss[index].gradient[i], name, i,
                    "gradient");
    graph_run_end(&run.run);
}

Test(keras_loss, values_and_gradients)
{
    for (int i = 0; i < CASES; i++) {
        expect_case(i);
        coverage_note("loss.golden", golden_keras_loss[i].name);
        coverage_note("loss.gradient", golden_keras_loss[i].name);
    }
}

/* Those of expressions are in test_loss_expression.c. */
Test(keras_loss, every_loss_has_a_case)
{
#define EXPECT_CASE(id, symbol, name_, keys)                                                       \
    {                                                                                              \
        int found = TP_MODEL_LOSS_##id == TP_MODEL_LOSS_EXPRESSION;                                \
        coverage_note("loss.exists", name_);                                                       \
        for (int i = 0; i < CASES; i++)                                                            \
            found += strcmp(golden_keras_loss[i].name, name_) == 0;                                \
        cr_assert(found, "%s is not compared with Keras", name_);                                  \
    }
    TP_LOSS_LIST(EXPECT_CASE)
#undef EXPECT_CASE
}

/* loss_sum and weight_sum of the graph's loss with the weights {2, 0, 0.5}. */
static void sums(loss_run *run, tp_node_id mask, double *out_loss, double *out_weight)
{
    tp_graph *graph = run->run.graph;
    static const float weights[ROWS] = {2, 0, 0.5};
    const tp_node_id weight = tp_op_constant(graph, TP_F32, (tp_shape){1, {ROWS}}, weights);
    const tp_loss_weights w = tp_loss_weights_of(graph, &run->input, weight, mask);
    const tp_node_id loss = tp_loss_sum(graph, &run->input, &w);
    *out_loss = (double)*(const float *)graph_run_eval(&run->run, loss)->data;
    const tp_node_id sum = tp_op_reduce(graph, w.weight, "add", NULL, 0);
    *out_weight = (double)*(const float *)graph_run_eval(&run->run, sum)->data;
}

/* The example of weight 0 may hold anything. */
static void spoil(loss_run *run)
{
    for (int i = INNER * CLASSES; i < 2 * INNER * CLASSES; i++)
        ((float *)run->run.data[0])[i] = i % 2 ? NAN : INFINITY;
}

Test(keras_loss, class_weights_and_an_ignored_class)
{
    static const double class_weight[] = {0.5, 3, 0, 1.5}; /* class 4: 1 */
    static const double weights[] = {2, 0, 0.5};
    const double *losses = golden_keras_loss[0].losses;
    for (int ignored = -1; ignored < CLASSES; ignored += 3) {
        loss_run run;
        double loss = 0, weight = 0, found_loss, found_weight;
        begin(&run, "sparse_categorical_crossentropy", "from_logits=true", "raw", "sparse");
        spoil(&run);
        run.options.class_weight = class_weight;
        run.options.class_count = 4;
        if (ignored >= 0) run.options.ignore_class = ignored;
        for (int i = 0; i < ELEMENTS; i++) {
            const int label = i * 7 % CLASSES;
            if (label == ignored) continue;
            weight += weights[i / INNER];
            loss += weights[i / INNER] * (label < 4 ? class_weight[label] : 1) * losses[i];
        }
        /* without masked elements both are per example */
        const double share = ignored < 0 ? INNER : 1;
        sums(&run, TP_NO_NODE, &found_loss, &found_weight);
        cr_assert(fabs(found_weight - weight / share) < 1e-6, "%g", found_weight);
        cr_assert(fabs(found_loss - loss / share) < 1e-5, "%g, expected %g", found_loss, loss);
        graph_run_end(&run.run);
    }
}

Test(keras_loss, class_weights_of_dense_labels)
{
    static const double class_weight[] = {0.5, 3, 0, 1.5};
    loss_run run;
    begin(&run, "categorical_crossentropy", "", "share", "one_hot");
    run.options.class_weight = class_weight;
    run.options.class_count = 4;
    const float *found =
        graph_run_eval(&run.run, tp_loss_per_example(run.run.graph, &run.input))->data;
    for (int i = 0; i < ROWS; i++) {
        double mean = 0;
        for (int j = i * INNER; j < (i + 1) * INNER; j++) {
            const int label = j * 7 % CLASSES;
            mean += (label < 4 ? class_weight[label] : 1) * golden_keras_loss[2].losses[j] / INNER;
        }
        expect_near(found[i], mean, "weighted", i, "example");
    }
    graph_run_end(&run.run);
}

/* Masked elements have no part in any loss; dice and tversky see them as 0. */
Test(keras_loss, masks)
{
    static const uint8_t mask[ELEMENTS] = {1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0};
    static const double weights[] = {2, 0, 0.5};
    for (int index = 0; index < CASES; index++) {
        if (golden_keras_loss[index].count != ELEMENTS) continue;
        loss_run run;
        double loss = 0, weight = 0, found_loss, found_weight;
        begin(&run, golden_keras_loss[index].name, golden_keras_loss[index].arguments,
              golden_keras_loss[index].result, golden_keras_loss[index].label);
        spoil(&run);
        const tp_node_id counts =
            tp_op_constant(run.run.graph, TP_PRED, (tp_shape){2, {ROWS, INNER}}, mask);
        for (int i = 0; i < ELEMENTS; i++) {
            weight += weights[i / INNER] * mask[i];
            loss += weights[i / INNER] * mask[i] * golden_keras_loss[index].losses[i];
        }
        sums(&run, counts, &found_loss, &found_weight);
        cr_assert(found_weight == weight, "%g, expected %g", found_weight, weight);
        expect_near((float)found_loss, loss, golden_keras_loss[index].name, 0, "masked sum");
        graph_run_end(&run.run);
    }
}

Test(keras_loss, masked_dice)
{
    static const uint8_t mask[ELEMENTS] = {1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0};
    static const double weights[] = {2, 0, 0.5};
    loss_run run;
    double loss = 0, found_loss, found_weight;
    begin(&run, "dice", "", "share", "binary");
    const tp_node_id counts =
        tp_op_constant(run.run.graph, TP_PRED, (tp_shape){2, {ROWS, INNER}}, mask);
    for (int row = 0; row < ROWS; row++) {
        double common = 0, all = 1e-7, elements = 0;
        for (int i = row * INNER * CLASSES; i < (row + 1) * INNER * CLASSES; i++) {
            if (!mask[i / CLASSES]) continue;
            const double y = (double)element("binary", i), p = (double)element("share", i);
            common += y * p;
            all += y + p;
            elements += 1.0 / CLASSES;
        }
        loss += weights[row] * elements * (1 - 2 * common / all);
    }
    sums(&run, counts, &found_loss, &found_weight);
    expect_near((float)found_loss, loss, "dice", 0, "masked sum");
    cr_assert(fabs(found_weight - 6.5) < 1e-6, "%g", found_weight);
    graph_run_end(&run.run);
}

Test(keras_loss, accuracy_of_two_sides)
{
    loss_run run;
    begin(&run, "binary_crossentropy", "from_logits=true", "raw", "binary");
    const float *found =
        graph_run_eval(&run.run, tp_loss_is_correct(run.run.graph, &run.input))->data;
    for (int i = 0; i < ROWS; i++) {
        double correct = 0;
        for (int j = i * INNER * CLASSES; j < (i + 1) * INNER * CLASSES; j++)
            correct += (element("raw", j) > 0) == (element("binary", j) > 0);
        cr_assert(fabs((double)found[i] - correct / (INNER * CLASSES)) < 1e-6);
    }
    graph_run_end(&run.run);
}
