/* SPDX-License-Identifier: Apache-2.0
 * A segmentation model with an ignored class and class weights: the same step on one core and on eight with
 * unequal shards and padding, against double precision, and on the default device.
 */
#include "harness/program_run.h"
#include "model/loss.h"
#include "model/metric.h"
#include "model_run.h"

enum { IMAGES = 5, PLACES = 8, SIDE = 3, CLASSES = 3, IGNORED = 3, CELLS = SIDE * SIDE };

static const char layers[] = "{\"type\": \"Conv2D\", \"filters\": 3, \"kernel_size\": 1}";
static const double class_weight[] = {1, 0.25, 2};

typedef enum form {
    BY_NAME,   /* sparse_categorical_crossentropy with ignore_class and class_weight */
    AS_FORMULA /* the same as an expression with a mask, and metrics with masks */
} form;

typedef struct step_result {
    double loss_sum, weight_sum, correct;
    double counts[4]; /* above and below the line of the two metrics of the formula */
    float kernel[2 * CLASSES], bias[CLASSES];
} step_result;

static float image_at(int i)
{
    return golden_value(5, (uint32_t)i);
}

static int32_t label_at(int i)
{
    return (i * 5 + i / 4) % 4;
}

static const float start[2 * CLASSES] = {0.5f, -1, 0.25f, 1, 0.75f, -0.5f};

static tp_graph *graph_of_formula(tp_model *model, int64_t batch, const tp_optim_config *optimizer,
                                  const tp_cross_shard *cross_shard)
{
    static const tp_loss_options options = {
        .expression = "-sum(log_softmax(y_pred) * one_hot(y_true, 3), axis=-1) * "
                      "where(y_true == 1, 0.25, where(y_true == 2, 2, 1))",
        .mask = "y_true != 3"};
    static const tp_metric_options right = {.expression = "argmax(y_pred) == y_true",
                                            .weight = "y_true != 3"};
    static const tp_metric_options iou = {.expression = "argmax(y_pred) == 2 & y_true == 2",
                                          .weight =
                                              "(argmax(y_pred) == 2 | y_true == 2) & y_true != 3"};
    const tp_model_target target = {.label = "label",
                                    .loss = TP_MODEL_LOSS_EXPRESSION,
                                    .options = &options,
                                    .weight = 1,
                                    .label_dtype = TP_S32,
                                    .label_shape = {.rank = 2, .dims = {SIDE, SIDE}}};
    const tp_model_metric metrics[] = {
        {.kind = TP_METRIC_EXPRESSION, .name = "right", .options = &right},
        {.kind = TP_METRIC_EXPRESSION, .name = "iou", .options = &iou}};
    const tp_model_score score = {.metrics = metrics, .metric_count = 2, .targets = &target};
    const tp_model_train train = {
        .batch = batch, .optimizer = optimizer, .cross_shard = cross_shard};
    tp_graph *graph = NULL;
    EXPECT_OK(tp_model_build_scored_train(model, &train, &score, &graph));
    return graph;
}

static tp_graph *graph_of(form how, tp_model *model, int64_t batch,
                          const tp_optim_config *optimizer, const tp_cross_shard *cross_shard)
{
    if (how == AS_FORMULA) return graph_of_formula(model, batch, optimizer, cross_shard);
    static tp_loss_options options;
    options = tp_loss_defaults(TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY);
    options.ignore_class = IGNORED;
    options.class_weight = class_weight;
    options.class_count = CLASSES;
    const tp_model_score score = {.loss = &options};
    const tp_model_train train = {batch, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true,
                                  optimizer, cross_shard};
    tp_graph *graph = NULL;
    EXPECT_OK(tp_model_build_scored_train(model, &train, &score, &graph));
    return graph;
}

/* Places 5 to 7 are padding full of NaN, with labels that are no classes. */
static step_result step_on(form how, int32_t cores, const tp_optim_config *optimizer)
{
    float image[PLACES * CELLS * 2], weight[PLACES];
    int32_t label[PLACES * CELLS];
    step_result result = {0};
    const tp_cross_shard cross_shard = {.shards = cores};
    tp_model *model = model_of(layers, f32_input(3, (int64_t[]){SIDE, SIDE, 2}), &float32_options);
    model_run run =
        model_start(graph_of(how, model, PLACES / cores, optimizer, &cross_shard), cores, cores);
    for (int i = 0; i < PLACES * CELLS * 2; i++)
        image[i] = i < IMAGES * CELLS * 2 ? image_at(i) : NAN;
    for (int i = 0; i < PLACES * CELLS; i++)
        label[i] = i < IMAGES * CELLS ? label_at(i) : 1000000;
    for (int i = 0; i < PLACES; i++)
        weight[i] = i < IMAGES ? 1 : 0;
    memcpy(model_variable(&run, "conv2d/kernel")->data, start, sizeof start);
    model_step(&run, image, label, weight, 0);
    result.loss_sum = (double)model_scalar(&run, "loss_sum");
    result.weight_sum = (double)model_scalar(&run, "weight_sum");
    if (how == BY_NAME) result.correct = (double)model_scalar(&run, "correct");
    for (int i = 0; i < 4 && how == AS_FORMULA; i++) {
        static const char *const sums[] = {"metric/right/0", "metric/right/1", "metric/iou/0",
                                           "metric/iou/1"};
        result.counts[i] = (double)model_scalar(&run, sums[i]);
    }
    memcpy(result.kernel, model_variable(&run, "conv2d/kernel")->data, sizeof result.kernel);
    memcpy(result.bias, model_variable(&run, "conv2d/bias")->data, sizeof result.bias);
    model_stop(&run);
    tp_model_destroy(model);
    return result;
}

/* The same in double: loss, gradient by its formula, one step of SGD. */
static step_result expected_step(double rate)
{
    step_result result = {0};
    double d_kernel[2 * CLASSES] = {0}, d_bias[CLASSES] = {0};
    for (int cell = 0; cell < IMAGES * CELLS; cell++) {
        double z[CLASSES], sum = 0;
        const int label = label_at(cell);
        int best = 0;
        if (label == IGNORED) continue;
        for (int c = 0; c < CLASSES; c++) {
            z[c] = (double)image_at(2 * cell) * (double)start[c] +
                   (double)image_at(2 * cell + 1) * (double)start[CLASSES + c];
            sum += exp(z[c]);
            if (z[c] > z[best]) best = c;
        }
        result.weight_sum += 1;
        result.correct += best == label;
        result.counts[2] += best == 2 && label == 2;
        result.counts[3] += best == 2 || label == 2;
        result.loss_sum += class_weight[label] * (log(sum) - z[label]);
        for (int c = 0; c < CLASSES; c++) {
            const double d = class_weight[label] * (exp(z[c]) / sum - (c == label));
            d_bias[c] += d;
            for (int k = 0; k < 2; k++)
                d_kernel[k * CLASSES + c] += d * (double)image_at(2 * cell + k);
        }
    }
    result.counts[0] = result.correct;
    result.counts[1] = result.weight_sum;
    for (int i = 0; i < 2 * CLASSES; i++)
        result.kernel[i] = (float)((double)start[i] - rate * d_kernel[i] / result.weight_sum);
    for (int i = 0; i < CLASSES; i++)
        result.bias[i] = (float)(-rate * d_bias[i] / result.weight_sum);
    return result;
}

static void expect_step(const step_result *found, const step_result *expected, form how,
                        int32_t cores)
{
    cr_assert(found->weight_sum == expected->weight_sum);
    cr_assert(how == AS_FORMULA || found->correct == expected->correct);
    for (int i = 0; i < 4 && how == AS_FORMULA; i++)
        cr_assert(found->counts[i] == expected->counts[i], "%d cores, count %d: %g, expected %g",
                  cores, i, found->counts[i], expected->counts[i]);
    cr_assert(fabs(found->loss_sum - expected->loss_sum) < 1e-5 * expected->loss_sum);
    for (int i = 0; i < 2 * CLASSES; i++)
        cr_assert(fabsf(found->kernel[i] - expected->kernel[i]) < 1e-6f,
                  "%d cores, kernel[%d]: %.9g, expected %.9g", cores, i, (double)found->kernel[i],
                  (double)expected->kernel[i]);
    for (int i = 0; i < CLASSES; i++)
        cr_assert(fabsf(found->bias[i] - expected->bias[i]) < 1e-6f);
}

Test(segmentation, one_core_and_eight_against_double)
{
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = 0.5;
    const step_result expected = expected_step(0.5);
    cr_assert(expected.weight_sum > 30 && expected.weight_sum < IMAGES * CELLS);
    cr_assert(expected.counts[2] > 0 && expected.counts[2] < expected.counts[3]);
    for (int32_t cores = 1; cores <= PLACES; cores *= 2)
        for (form how = BY_NAME; how <= AS_FORMULA; how++) {
            const step_result found = step_on(how, cores, &optimizer);
            expect_step(&found, &expected, how, cores);
        }
    coverage_note("metric.golden", "accuracy"); /* "correct" */
    coverage_note("metric.cores", "accuracy");
    coverage_note("metric.cores", "expression");
}

Test(segmentation, clipping_per_replica_sees_the_same_scale)
{
    /* far from the threshold: nothing changes; one core's part is below the whole gradient */
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = 0.5;
    const step_result plain = step_on(BY_NAME, 4, &optimizer);
    optimizer.clipvalue = 1;
    optimizer.clip_at = TP_CLIP_PER_REPLICA;
    const step_result clipped = step_on(BY_NAME, 4, &optimizer);
    cr_assert(memcmp(plain.kernel, clipped.kernel, sizeof plain.kernel) == 0);
    optimizer.clipvalue = 1e-3;
    const step_result cut = step_on(BY_NAME, 4, &optimizer);
    cr_assert(memcmp(plain.kernel, cut.kernel, sizeof plain.kernel) != 0);
}

/* A Masking layer's mask reaches the loss: steps whose features are all 0 count for nothing. */
Test(segmentation, masked_steps_of_sequences)
{
    enum { SEQUENCES = 3, STEPS = 4 };
    static const char masked[] = "{\"type\": \"Masking\"}, {\"type\": \"Dense\", \"units\": 3}";
    static const float weight[SEQUENCES] = {1, 0.5f, 0};
    float features[SEQUENCES * STEPS * 2];
    int32_t label[SEQUENCES * STEPS];
    double weight_sum = 0, loss_sum = 0;
    tp_graph *graph = NULL;
    tp_model *model = model_of(masked, f32_input(2, (int64_t[]){STEPS, 2}), &float32_options);
    EXPECT_OK(tp_model_build_evaluate(model, SEQUENCES,
                                      TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true, &graph));
    model_run run = model_start(graph, 1, 1);
    memcpy(model_variable(&run, "dense/kernel")->data, start, sizeof start);
    for (int i = 0; i < SEQUENCES * STEPS; i++) {
        const bool is_masked = i % 3 == 1;
        double z[CLASSES], sum = 0;
        for (int k = 0; k < 2; k++)
            features[2 * i + k] = is_masked ? 0 : image_at(2 * i + k);
        label[i] = i % CLASSES;
        for (int c = 0; c < CLASSES; c++) {
            z[c] = (double)features[2 * i] * (double)start[c] +
                   (double)features[2 * i + 1] * (double)start[CLASSES + c];
            sum += exp(z[c]);
        }
        if (is_masked) continue;
        weight_sum += (double)weight[i / STEPS];
        loss_sum += (double)weight[i / STEPS] * (log(sum) - z[label[i]]);
    }
    model_step(&run, features, label, weight, 0);
    cr_assert((double)model_scalar(&run, "weight_sum") == weight_sum);
    cr_assert(fabs((double)model_scalar(&run, "loss_sum") - loss_sum) < 1e-5 * loss_sum);
    model_stop(&run);
    tp_model_destroy(model);
}

Test(segmentation, device_has_the_bits_of_the_reference)
{
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAFACTOR);
    const tp_cross_shard cross_shard = {.shards = 3};
    for (form how = BY_NAME; how <= AS_FORMULA; how++) {
        tp_model *model =
            model_of(layers, f32_input(3, (int64_t[]){SIDE, SIDE, 2}), &mixed_options);
        tp_graph *graph = graph_of(how, model, 2, &optimizer, &cross_shard);
        program_run_expect_equal(
            graph, &(program_run_options){.cores = 3, .steps = 3, .seed = 4, .int_limit = 4});
        tp_graph_destroy(graph);
        tp_model_destroy(model);
    }
    coverage_note("metric.device", "accuracy");
    coverage_note("metric.device", "expression");
}
