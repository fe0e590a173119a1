/* SPDX-License-Identifier: Apache-2.0
 * The CPU baseline trains like the reference interpreter: the same losses and weights, up to the order of f32
 * sums.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "baseline/cpu_runner.h"
#include "core/json.h"
#include "model/model.h"
#include "reference/reference.h"

enum { BATCH = 12, STEPS = 6, PIXELS = 8 * 8 };

static tp_graph *make_graph(const char *text)
{
    tp_json_document *document = NULL;
    tp_model *model = NULL;
    tp_graph *graph = NULL;
    tp_model_input input = {.dtype = TP_U8, .scale = 1.0 / 255};
    cr_assert_eq(tp_shape_init(&input.shape, 3, (int64_t[]){8, 8, 1}), TPUCL_OK);
    tp_model_options options = {.policy = TP_POLICY_FLOAT32, .precision = TP_PRECISION_F32};
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAM);
    tp_cross_shard cross_shard = {.shards = 1};
    tp_model_train train = {.batch = BATCH,
                            .loss = TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .from_logits = true,
                            .optimizer = &optimizer,
                            .cross_shard = &cross_shard};
    cr_assert_eq(tp_json_parse(text, strlen(text), "test", &document), TPUCL_OK);
    cr_assert_eq(tp_model_create(tp_json_root(document), &input, &options, &model), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(tp_model_build_train(model, &train, &graph), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    tp_model_destroy(model);
    tp_json_destroy(document);
    return graph;
}

typedef struct example_batch {
    uint8_t image[BATCH * PIXELS];
    int32_t label[BATCH];
    float weight[BATCH], denominator;
} example_batch;

static void fill(example_batch *batch, int step)
{
    for (int i = 0; i < BATCH; i++) {
        batch->label[i] = (i * 7 + step) % 10;
        batch->weight[i] = i < BATCH - 2 ? 1 : 0;
        for (int p = 0; p < PIXELS; p++)
            batch->image[i * PIXELS + p] =
                (uint8_t)((p * batch->label[i] * 13 + i * 31 + step * 3 + p * p) % 256);
    }
    batch->denominator = BATCH - 2;
}

static const void *input_of(const example_batch *batch, const char *name)
{
    if (strcmp(name, "image") == 0) return batch->image;
    if (strcmp(name, "label") == 0) return batch->label;
    if (strcmp(name, "weight") == 0) return batch->weight;
    return &batch->denominator;
}

static void compare(const tp_host_tensor *a, const tp_host_tensor *b, const char *name,
                    double tolerance)
{
    const float *x = a->data, *y = b->data;
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < tp_shape_elems(&a->shape); i++) {
        largest = fmax(largest, fabs((double)x[i]));
        difference = fmax(difference, fabs((double)x[i] - (double)y[i]));
    }
    cr_assert(difference <= tolerance * fmax(largest, 1), "'%s' differs by %g of %g", name,
              difference, largest);
}

/* Adam divides by the root of a mean of squares: where a gradient is all rounding error, the sign of a step of
 * size lr is, too. After n steps a weight may so be off by 2 n lr. */
static void train_both(const char *text)
{
    tp_graph *graph = make_graph(text);
    tp_cpu_runner *runner = NULL;
    tp_reference *reference = NULL;
    tp_reference_options options = {.cores = 1, .seed = 3};
    example_batch batch;
    const void *inputs[8];
    cr_assert_eq(tp_cpu_runner_create(graph, 3, 2, &runner), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(tp_reference_create(graph, &options, &reference), TPUCL_OK);
    float first = 0, last = 0;
    for (int step = 0; step < STEPS; step++) {
        fill(&batch, step % 2);
        for (int32_t i = 0; i < graph->input_count; i++)
            inputs[i] = input_of(&batch, graph->inputs[i].name);
        cr_assert_eq(tp_cpu_runner_step(runner, inputs, (uint32_t)step), TPUCL_OK, "%s",
                     tpucl_last_error()->message);
        cr_assert_eq(tp_reference_step(reference, inputs, (uint32_t)step), TPUCL_OK);
        for (int32_t i = 0; i < graph->output_count; i++)
            compare(tp_reference_output(reference, 0, i), tp_cpu_runner_output(runner, i),
                    graph->outputs[i].name, 1e-4);
        last = *(const float *)tp_cpu_runner_output(runner, 0)->data;
        if (step == 0) first = last;
    }
    cr_assert_lt(last, first);
    for (int32_t i = 0; i < graph->variable_count; i++)
        if (graph->variables[i].is_model)
            compare(tp_reference_variable(reference, 0, i), tp_cpu_runner_variable(runner, i),
                    graph->variables[i].name, 2 * STEPS * 1e-3);
    tp_reference_destroy(reference);
    tp_cpu_runner_destroy(runner);
    tp_graph_destroy(graph);
}

Test(cpu_runner, dense_network)
{
    train_both("{\"layers\":[{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":40,"
               "\"activation\":\"relu\"},{\"type\":\"Dropout\",\"rate\":0.2},"
               "{\"type\":\"Dense\",\"units\":10}]}");
}

Test(cpu_runner, convolutional_network)
{
    train_both("{\"layers\":[{\"type\":\"Conv2D\",\"filters\":6,\"kernel_size\":3,"
               "\"padding\":\"same\",\"activation\":\"relu\"},{\"type\":\"MaxPooling2D\"},"
               "{\"type\":\"BatchNormalization\"},"
               "{\"type\":\"Conv2D\",\"filters\":5,\"kernel_size\":2,\"strides\":2},"
               "{\"type\":\"AveragePooling2D\"},{\"type\":\"Flatten\"},"
               "{\"type\":\"Dense\",\"units\":10}]}");
}

Test(cpu_runner, groups_of_channels)
{
    train_both("{\"layers\":[{\"type\":\"Conv2D\",\"filters\":6,\"kernel_size\":3,"
               "\"padding\":\"same\",\"activation\":\"relu\"},{\"type\":\"SeparableConv2D\","
               "\"filters\":6,\"kernel_size\":3,\"strides\":2,\"padding\":\"same\"},"
               "{\"type\":\"Conv2D\",\"filters\":4,\"kernel_size\":2,\"groups\":2},"
               "{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":10}]}");
}
