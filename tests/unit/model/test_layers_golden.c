/* SPDX-License-Identifier: Apache-2.0
 * Every case of tests/golden/layers against Keras in float64: prediction, loss and gradients under the policy
 * float32. Gradients are what a step of SGD with a learning rate of 1 takes away.
 */
#include "harness/layer_case.h"
#include "harness/model_coverage.h"
#include "model_run.h"

/* Of the greatest magnitude of what is compared, and of 1 for what is 0 by cancelling. */
#define TOLERANCE 1e-5

static void expect_near(const layer_case *c, const char *what, const float *found,
                        const tp_json *expected, double least)
{
    const tp_json *own = tp_json_member(c->root, "tolerance");
    double greatest = least;
    for (size_t i = 0; i < expected->count; i++)
        greatest = fmax(greatest, fabs(expected->items[i].number));
    for (size_t i = 0; i < expected->count; i++)
        cr_assert(fabs((double)found[i] - expected->items[i].number) <=
                      (own ? own->number : TOLERANCE) * greatest,
                  "%s: %s, element %zu: %.9g, expected %.9g", c->name, what, i, (double)found[i],
                  expected->items[i].number);
}

/* Model variables in the order of the graph: the names and shapes that the file says, filled. */
static int32_t set_variables(const layer_case *c, const model_run *run)
{
    const tp_json *names = tp_json_member(c->root, "variables");
    int32_t count = 0;
    for (int32_t i = 0; i < run->graph->variable_count; i++) {
        const tp_variable *variable = &run->graph->variables[i];
        if (!variable->is_model) continue;
        cr_assert((size_t)count < names->count, "%s: no variable %s", c->name, variable->name);
        tp_host_tensor *tensor = tp_reference_variable(run->reference, 0, i);
        char shape[TP_SHAPE_TEXT_MAX], wanted[TP_SHAPE_TEXT_MAX] = "";
        tp_shape_format(&tensor->shape, shape, sizeof shape);
        for (const char *s = strrchr(names->items[count].string, '['); *s; s++)
            if (*s != ' ') strncat(wanted, s, 1);
        cr_assert_str_eq(shape, wanted, "%s: %s is %s, in Keras %s", c->name, variable->name, shape,
                         names->items[count].string);
        const bool is_variance = strstr(variable->name, "variance") != NULL;
        for (int64_t j = 0; j < tp_shape_elems(&tensor->shape); j++) {
            const float value = golden_value(30 + (uint32_t)count, (uint32_t)j) / 2;
            ((float *)tensor->data)[j] = is_variance ? fabsf(value) + 0.5f : value;
        }
        count++;
    }
    cr_assert((size_t)count == names->count, "%s: %d variables, in Keras %zu", c->name, count,
              names->count);
    return count;
}

static void check_prediction(const layer_case *c, const tp_model *model)
{
    tp_graph *graph;
    EXPECT_OK(tp_model_build_predict(model, c->batch, &graph));
    model_run run = model_start(graph, 1, 0);
    set_variables(c, &run);
    EXPECT_OK(tp_reference_step(run.reference, (const void *const *)c->arrays, 0));
    const tp_json *expected = tp_json_member(c->root, "prediction");
    const tp_host_tensor *found = tp_reference_output(run.reference, 0, 0);
    cr_assert(tp_shape_elems(&found->shape) == (int64_t)expected->count, "%s: %lld elements",
              c->name, (long long)tp_shape_elems(&found->shape));
    expect_near(c, "prediction", found->data, expected, 0);
    model_stop(&run);
}

/* What the host feeds besides the model's inputs. */
static void feed(const layer_case *c, const tp_graph *graph, float *label, float *weight,
                 const float *denominator, const void **out_inputs)
{
    for (int32_t i = 0; i < graph->input_count; i++) {
        const char *name = graph->inputs[i].name;
        out_inputs[i] = strcmp(name, "label") == 0    ? label
                        : strcmp(name, "weight") == 0 ? weight
                                                      : (const void *)denominator;
        for (int32_t j = 0; j < c->input_count; j++)
            if (strcmp(name, c->inputs[j].name) == 0) out_inputs[i] = c->arrays[j];
    }
}

static void check_step(const layer_case *c, const tp_model *model)
{
    const tp_json *gradients = tp_json_member(c->root, "gradients");
    const int64_t elems = c->batch * tp_shape_elems(tp_model_output(model));
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = 1;
    const tp_cross_shard one = {.shards = 1};
    model_run run =
        train_start(model, c->batch, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false, &optimizer, &one);
    float *label = malloc((size_t)elems * sizeof *label);
    float *weight = malloc((size_t)c->batch * sizeof *weight);
    const float denominator = (float)c->batch;
    const void *inputs[LAYER_CASE_INPUTS + 3];
    for (int64_t i = 0; i < elems; i++)
        label[i] = golden_value(20, (uint32_t)i);
    for (int64_t i = 0; i < c->batch; i++)
        weight[i] = 1;
    set_variables(c, &run);
    feed(c, run.graph, label, weight, &denominator, inputs);
    EXPECT_OK(tp_reference_step(run.reference, inputs, 0));
    const double loss = (double)(model_scalar(&run, "loss_sum") / denominator);
    const double expected = tp_json_member(c->root, "loss")->number;
    cr_assert(fabs(loss - expected) <= TOLERANCE * fabs(expected), "%s: loss %.9g, expected %.9g",
              c->name, loss, expected);
    uint32_t count = 0;
    for (int32_t i = 0; i < run.graph->variable_count; i++) {
        if (!run.graph->variables[i].is_model) continue;
        const tp_json *gradient = &gradients->items[count];
        const tp_host_tensor *after = tp_reference_variable(run.reference, 0, i);
        float *step = malloc((size_t)tp_shape_elems(&after->shape) * sizeof *step);
        for (uint32_t j = 0; j < (uint32_t)tp_shape_elems(&after->shape); j++)
            step[j] = golden_value(30 + count, j) / 2 - ((const float *)after->data)[j];
        /* The step is a difference of values of size 0.5. */
        if (gradient->kind == TP_JSON_ARRAY)
            expect_near(c, run.graph->variables[i].name, step, gradient, 0.05);
        free(step);
        count++;
    }
    free(label);
    free(weight);
    model_stop(&run);
}

Test(layers_golden, what_there_is)
{
#define NOTE_LAYER(id) coverage_note("layer.exists", tp_layer_##id.name);
    TP_LAYER_LIST(NOTE_LAYER)
#undef NOTE_LAYER
    static const char *const activations[] = {
#define NAME(id, name) name,
        TP_ACTIVATION_LIST(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        coverage_note("activation.exists", activations[i]);
}

Test(layers_golden, all_cases)
{
    char *paths[LAYER_CASES];
    const int count = layer_case_list(paths);
    cr_assert(count >= 18);
    for (int i = 0; i < count; i++) {
        layer_case c;
        layer_case_open(paths[i], &c);
        tp_model *model = layer_case_model(&c, &float32_options);
        check_prediction(&c, model);
        coverage_note_model("layer.golden", model);
        coverage_note_activations("activation.golden", tp_json_member(c.root, "model"));
        if (tp_json_member(c.root, "gradients")) {
            check_step(&c, model);
            coverage_note_model("layer.gradient", model);
            coverage_note_activations("activation.gradient", tp_json_member(c.root, "model"));
        }
        tp_model_destroy(model);
        layer_case_close(&c);
        free(paths[i]);
    }
}
