/* SPDX-License-Identifier: Apache-2.0
 * Metrics against Keras (tests/golden/gen_keras_metric.py): twelve examples on one, three and four cores, whose
 * sums are added; and the same sums on the default device, bit by bit.
 */
#include "golden/keras_metric.h"
#include "harness/graph_run.h"
#include "harness/program_run.h"
#include "model/metric.h"

enum { CASES = sizeof golden_keras_metric / sizeof golden_keras_metric[0] };
enum { EXAMPLES = 12, CLASSES = 5, ALL = EXAMPLES * CLASSES, MAX_COUNT = 4096 };

TestSuite(metric, .timeout = 300);

static const float weights[EXAMPLES] = {1, 1, 2, 0, 1, 0.5, 1, 1, 3, 1, 0.25, 1};

static float element(const char *data, int i)
{
    if (strcmp(data, "raw") == 0) return golden_value(1, (uint32_t)i) * 4;
    if (strcmp(data, "other") == 0) return golden_value(2, (uint32_t)i) * 4;
    if (strcmp(data, "share") == 0) return golden_value(1, (uint32_t)i) * 0.5f * 0.75f + 0.5f;
    if (strcmp(data, "binary") == 0) return golden_value(2, (uint32_t)i) > -0.2f ? 1.0f : 0.0f;
    return (i / CLASSES * 7) % CLASSES == i % CLASSES ? 1.0f : 0.0f; /* one_hot */
}

static tp_metric_options options_of(const char *arguments)
{
    static const double targets[] = {1, 3};
    tp_metric_options options = tp_metric_defaults();
    double value;
    if (tp_choice_number(arguments, "k", &value)) options.k = (int64_t)value;
    if (tp_choice_number(arguments, "threshold", &value)) options.threshold = value;
    if (tp_choice_number(arguments, "num_thresholds", &value))
        options.num_thresholds = (int64_t)value;
    if (tp_choice_number(arguments, "curve", &value)) options.curve = (tp_metric_curve)value;
    if (tp_choice_number(arguments, "average", &value)) options.average = (tp_metric_average)value;
    if (strstr(arguments, "classes=13")) {
        options.target_class_ids = targets;
        options.target_count = 2;
    }
    return options;
}

static tp_metric_kind kind_of(const char *name)
{
    tp_metric_kind kind = TP_METRIC_ACCURACY;
    cr_assert(tp_metric_find(name, &kind), "no metric '%s'", name);
    return kind;
}

/* The inputs of a core's part of the examples, and the sums of a case as outputs. */
static int32_t add_case(tp_graph *graph, int index, int64_t batch)
{
    const bool is_sparse = strcmp(golden_keras_metric[index].label, "sparse") == 0;
    const tp_shape shape = {2, {batch, CLASSES}}, rows = {1, {batch}};
    const tp_metric_options options = options_of(golden_keras_metric[index].arguments);
    const tp_loss_input input = {.kind = is_sparse ? TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY
                                                   : TP_MODEL_LOSS_BINARY_CROSSENTROPY,
                                 .result = tp_graph_add_input(graph, "result", TP_F32, shape),
                                 .logits = TP_NO_NODE,
                                 .label =
                                     tp_graph_add_input(graph, "label", is_sparse ? TP_S32 : TP_F32,
                                                        is_sparse ? rows : shape)};
    const tp_loss_weights w = {tp_graph_add_input(graph, "weight", TP_F32, rows), false};
    tp_metric_parts parts;
    EXPECT_OK(tp_metric_build(graph, kind_of(golden_keras_metric[index].name), &options, &input, &w,
                              &parts));
    for (int32_t i = 0; i < parts.count; i++) {
        const char *name = tp_arena_printf(graph->arena, "%d", (int)i);
        tp_graph_add_output(graph, name, tp_op_all_reduce(graph, parts.nodes[i]));
    }
    EXPECT_OK(tp_graph_check(graph));
    EXPECT_OK(tp_graph_verify(graph));
    return parts.count;
}

static double value_on(int index, int32_t cores)
{
    const int64_t batch = EXAMPLES / cores;
    float result[ALL], label[ALL];
    int32_t classes[EXAMPLES];
    const void *inputs[3 * 4];
    static double sums[TP_METRIC_MAX_PARTS][MAX_COUNT];
    const double *parts[TP_METRIC_MAX_PARTS];
    int64_t counts[TP_METRIC_MAX_PARTS];
    tp_graph *graph;
    tp_reference *reference;
    const tp_reference_options options = {.cores = cores};
    const tp_metric_options metric = options_of(golden_keras_metric[index].arguments);
    const bool is_sparse = strcmp(golden_keras_metric[index].label, "sparse") == 0;
    for (int i = 0; i < ALL; i++) {
        result[i] = element(golden_keras_metric[index].result, i);
        label[i] = element(golden_keras_metric[index].label, i);
        classes[i / CLASSES] = i / CLASSES * 7 % CLASSES;
        if (weights[i / CLASSES] == 0) result[i] = i % 2 ? NAN : INFINITY; /* padding */
    }
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    const int32_t count = add_case(graph, index, batch);
    EXPECT_OK(tp_reference_create(graph, &options, &reference));
    for (int32_t core = 0; core < cores; core++) {
        inputs[3 * core] = result + core * batch * CLASSES;
        inputs[3 * core + 1] = is_sparse ? (const void *)(classes + core * batch)
                                         : (const void *)(label + core * batch * CLASSES);
        inputs[3 * core + 2] = weights + core * batch;
    }
    EXPECT_OK(tp_reference_step(reference, inputs, 0));
    for (int32_t i = 0; i < count; i++) {
        const tp_host_tensor *tensor = tp_reference_output(reference, 0, i);
        counts[i] = tp_shape_elems(&tensor->shape);
        parts[i] = sums[i];
        for (int64_t j = 0; j < counts[i]; j++)
            sums[i][j] = (double)((const float *)tensor->data)[j];
    }
    tp_reference_destroy(reference);
    tp_graph_destroy(graph);
    return tp_metric_finish(kind_of(golden_keras_metric[index].name), &metric, parts, counts);
}

Test(metric, values)
{
    for (int index = 0; index < CASES; index++) {
        const double expected = golden_keras_metric[index].value;
        for (int32_t cores = 1; cores <= 4; cores += cores == 1 ? 2 : 1) {
            const double found = value_on(index, cores);
            cr_assert(fabs(found - expected) <= 1e-6 * fmax(1, fabs(expected)),
                      "%s(%s) on %d cores: %.9g, Keras has %.9g", golden_keras_metric[index].name,
                      golden_keras_metric[index].arguments, cores, found, expected);
        }
        coverage_note("metric.golden", golden_keras_metric[index].name);
        coverage_note("metric.cores", golden_keras_metric[index].name);
    }
}

/* That of the accuracy is in test_loss.c, those of expressions in test_loss_expression.c. */
Test(metric, every_metric_has_a_case){
#define EXPECT_CASE(id, symbol, name_)                                                             \
    {                                                                                              \
        int found =                                                                                \
            TP_METRIC_##id == TP_METRIC_ACCURACY || TP_METRIC_##id == TP_METRIC_EXPRESSION;        \
        coverage_note("metric.exists", name_);                                                     \
        for (int i = 0; i < CASES; i++)                                                            \
            found += strcmp(golden_keras_metric[i].name, name_) == 0;                              \
        cr_assert(found, "%s is not compared with Keras", name_);                                  \
    }
    TP_METRIC_LIST(EXPECT_CASE)
#undef EXPECT_CASE
}

Test(metric, device_has_the_bits_of_the_reference)
{
    for (int index = 0; index < CASES; index++) {
        tp_graph *graph;
        EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
        add_case(graph, index, 7);
        program_run_expect_equal(
            graph, &(program_run_options){.cores = 3, .steps = 2, .seed = 8, .int_limit = CLASSES});
        coverage_note("metric.device", golden_keras_metric[index].name);
        tp_graph_destroy(graph);
    }
}

static void expect_refused(const char *name, tp_model_loss loss, int64_t classes, const char *part)
{
    tp_graph *graph;
    tp_metric_parts parts;
    static const double targets[] = {7};
    tp_metric_options options = tp_metric_defaults();
    options.target_class_ids = targets;
    options.target_count = 1;
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    const tp_shape shape = {2, {3, classes}}, rows = {1, {3}};
    const bool is_sparse = tp_loss_is_sparse(loss);
    const tp_loss_input input = {.kind = loss,
                                 .result = tp_graph_add_input(graph, "result", TP_F32, shape),
                                 .logits = TP_NO_NODE,
                                 .label =
                                     tp_graph_add_input(graph, "label", is_sparse ? TP_S32 : TP_F32,
                                                        is_sparse ? rows : shape)};
    const tp_loss_weights w = {tp_graph_add_input(graph, "weight", TP_F32, rows), false};
    EXPECT_FAILURE(tp_metric_build(graph, kind_of(name), &options, &input, &w, &parts),
                   TPUCL_INVALID_CONFIG, part);
    tp_graph_destroy(graph);
}

Test(metric, that_do_not_fit)
{
    expect_refused("mean_squared_error", TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, 4,
                   "compares numbers");
    expect_refused("categorical_accuracy", TP_MODEL_LOSS_MEAN_SQUARED_ERROR, 1, "2 or more");
    expect_refused("io_u", TP_MODEL_LOSS_CATEGORICAL_CROSSENTROPY, 4, "io_u of class 7");
}
