/* SPDX-License-Identifier: Apache-2.0
 * Models that are graphs of layers: order, shared layers, nested models, several inputs and outputs, and
 * every problem at once. Values against Keras: test_layers_golden.c.
 */
#include "core/alloc.h"
#include "harness/alloc_loop.h"
#include "model_run.h"

/* `body`: the members of the model's object, with ' for ". */
static tpucl_status parse(const char *body, const tp_model_input *inputs, int32_t input_count,
                          tp_model **out_model)
{
    tp_json_document *document;
    char text[8192];
    snprintf(text, sizeof text, "{%s}", body);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    tpucl_status status = tp_json_parse(text, strlen(text), "test.json", &document);
    if (status != TPUCL_OK) return status;
    status = tp_model_create_many(tp_json_root(document), inputs, input_count, &float32_options,
                                  out_model);
    tp_json_destroy(document);
    return status;
}

static tp_model_input input_of(const char *name, int rank, const int64_t *dims)
{
    tp_model_input input = f32_input(rank, dims);
    input.name = name;
    return input;
}

static tp_model *functional_of(const char *body)
{
    const tp_model_input inputs[] = {input_of("x", 1, (int64_t[]){3})};
    tp_model *model = NULL;
    EXPECT_OK(parse(body, inputs, 1, &model));
    return model;
}

static void expect_problems(const char *body, const char *const *parts)
{
    const tp_model_input inputs[] = {input_of("x", 1, (int64_t[]){3})};
    tp_model *model = NULL;
    cr_assert(parse(body, inputs, 1, &model) == TPUCL_INVALID_CONFIG, "%s", body);
    for (int i = 0; parts[i]; i++)
        cr_assert(strstr(tpucl_last_error()->message, parts[i]), "'%s' is not in:\n%s", parts[i],
                  tpucl_last_error()->message);
}

/* ---- values ---- */

/* All kernels become `kernel`, all biases 0; the prediction for one example. */
static void predict(const char *body, const float *x, float *out, int64_t count)
{
    tp_model *model = functional_of(body);
    tp_graph *graph;
    EXPECT_OK(tp_model_build_predict(model, 1, &graph));
    model_run run = model_start(graph, 1, 0);
    for (int32_t i = 0; i < graph->variable_count; i++) {
        tp_host_tensor *variable = tp_reference_variable(run.reference, 0, i);
        for (int64_t j = 0; j < tp_shape_elems(&variable->shape); j++)
            ((float *)variable->data)[j] = variable->shape.rank == 2 ? (float)(j % 4 + i) : 0;
    }
    const void *in = x;
    EXPECT_OK(tp_reference_step(run.reference, &in, 0));
    const tp_host_tensor *found = model_output(&run, "prediction");
    cr_assert(tp_shape_elems(&found->shape) == count);
    memcpy(out, found->data, (size_t)count * sizeof *out);
    model_stop(&run);
    tp_model_destroy(model);
}

static const char in_order[] =
    "'layers': [{'type': 'Dense', 'name': 'a', 'units': 3, 'use_bias': false},"
    "           {'type': 'Add', 'name': 'sum', 'inputs': ['a', 'x']}]";
static const char upside_down[] =
    "'inputs': [{'name': 'x'}], 'outputs': ['sum'],"
    "'layers': [{'type': 'Add', 'name': 'sum', 'inputs': ['a', 'x']},"
    "           {'type': 'Dense', 'name': 'a', 'units': 3, 'use_bias': false, 'inputs': 'x'}]";

/* kernel rows 0 1 2 / 3 0 1 / 2 3 0 */
Test(functional, a_residual_in_any_order)
{
    static const float x[3] = {1, 2, 4};
    float out[3];
    const char *const bodies[] = {in_order, upside_down};
    for (int i = 0; i < 2; i++) {
        predict(bodies[i], x, out, 3);
        cr_assert(out[0] == 0 + 6 + 8 + 1 && out[1] == 1 + 0 + 12 + 2 && out[2] == 2 + 2 + 0 + 4,
                  "%g %g %g", (double)out[0], (double)out[1], (double)out[2]);
    }
}

static const char shared[] =
    "'layers': [{'type': 'Dense', 'name': 'a', 'units': 3, 'use_bias': false,"
    "            'kernel_regularizer': 'l2'},"
    "           {'layer': 'a'},"
    "           {'layer': 'a', 'name': 'third', 'inputs': 'x'},"
    "           {'type': 'Subtract', 'name': 'end', 'inputs': ['a_1', 'third']}]";

Test(functional, a_layer_called_three_times)
{
    static const float x[3] = {1, 2, 4};
    float out[3];
    tp_model *model = functional_of(shared);
    cr_assert(tp_model_row_count(model) == 4);
    cr_assert_str_eq(tp_model_row_at(model, 1).name, "a_1");
    cr_assert(tp_model_row_at(model, 0).params == 9 && tp_model_row_at(model, 1).params == 0 &&
              tp_model_row_at(model, 2).params == 0);
    tp_graph *graph;
    EXPECT_OK(tp_model_build_predict(model, 2, &graph));
    cr_assert(graph->variable_count == 1);
    cr_assert_str_eq(graph->variables[0].name, "a/kernel");
    tp_graph_destroy(graph);
    tp_model_destroy(model);
    /* y = x K = (14 13 4); y K = 14 * row 0 + 13 * row 1 + 4 * row 2 = (47 26 41) */
    predict(shared, x, out, 3);
    cr_assert(out[0] == 47 - 14 && out[1] == 26 - 13 && out[2] == 41 - 4, "%g %g %g",
              (double)out[0], (double)out[1], (double)out[2]);
}

/* The penalty counts once, the gradient is the sum over the calls. */
Test(functional, a_shared_layer_is_trained_once)
{
    static const char once[] = "'layers': [{'type': 'Dense', 'name': 'a', 'units': 3, "
                               "'use_bias': false, 'kernel_regularizer': 'l2'},"
                               "{'type': 'Dense', 'name': 'b', 'units': 3, 'use_bias': false},"
                               "{'type': 'Dense', 'name': 'c', 'units': 3, 'use_bias': false, "
                               "'inputs': 'x'},"
                               "{'type': 'Subtract', 'inputs': ['b', 'c']}]";
    static const float x[3] = {1, 2, 4}, target[3] = {0.5f, -1, 2}, weight = 1;
    static const float kernel[9] = {0.5f, -0.25f, 1, 0.75f, 0.125f, -1, -0.5f, 0.25f, 0.375f};
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = 1;
    const tp_cross_shard one = {.shards = 1};
    float gradient[2][9] = {{0}}, loss[2];
    const char *const bodies[] = {shared, once};
    for (int m = 0; m < 2; m++) {
        tp_model *model = functional_of(bodies[m]);
        model_run run =
            train_start(model, 1, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false, &optimizer, &one);
        for (int32_t i = 0; i < run.graph->variable_count; i++)
            if (run.graph->variables[i].is_model)
                memcpy(tp_reference_variable(run.reference, 0, i)->data, kernel, sizeof kernel);
        model_step(&run, x, target, &weight, 0);
        loss[m] = model_scalar(&run, "loss_sum");
        for (int32_t i = 0; i < run.graph->variable_count; i++)
            for (int j = 0; run.graph->variables[i].is_model && j < 9; j++)
                gradient[m][j] +=
                    kernel[j] - ((float *)tp_reference_variable(run.reference, 0, i)->data)[j];
        model_stop(&run);
        tp_model_destroy(model);
    }
    cr_assert(loss[0] == loss[1], "%.9g %.9g", (double)loss[0], (double)loss[1]);
    for (int j = 0; j < 9; j++)
        cr_assert(fabsf(gradient[0][j] - gradient[1][j]) <= 4e-6f, "%d: %.9g %.9g", j,
                  (double)gradient[0][j], (double)gradient[1][j]);
}

/* A call may name a layer that was named by number; ten thousand layers without names are no trouble. */
Test(functional, numbers, .timeout = 20)
{
    tp_model *model = functional_of("'layers': [{'type': 'Dense', 'units': 3}, {'type': 'Dense', "
                                    "'units': 3}, {'layer': 'dense_1'}, {'layer': 'dense_1'}]");
    cr_assert_str_eq(tp_model_row_at(model, 2).name, "dense_1_1");
    cr_assert_str_eq(tp_model_row_at(model, 3).name, "dense_1_2");
    cr_assert(tp_model_row_at(model, 1).params == 12 && tp_model_row_at(model, 3).params == 0);
    tp_model_destroy(model);
    static char text[10000 * 17 + 64];
    size_t length = (size_t)snprintf(text, sizeof text, "{\"layers\": [");
    for (int i = 0; i < 10000; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s{\"type\":\"ReLU\"}",
                                   i ? "," : "");
    snprintf(text + length, sizeof text - length, "]}");
    const tp_model_input input = input_of("x", 1, (int64_t[]){3});
    tp_json_document *document;
    EXPECT_OK(tp_json_parse(text, strlen(text), "test.json", &document));
    EXPECT_OK(tp_model_create(tp_json_root(document), &input, &float32_options, &model));
    cr_assert_str_eq(tp_model_row_at(model, 9999).name, "re_lu_9999");
    tp_model_destroy(model);
    tp_json_destroy(document);
}

static const char nested[] =
    "'layers': [{'type': 'Model', 'name': 'block', 'model_inputs': ['l', 'r'], 'inputs': ['x', "
    "'x'],"
    "            'layers': [{'type': 'Dense', 'units': 3, 'use_bias': false, 'inputs': 'l'},"
    "                       {'type': 'Subtract', 'name': 'less', 'inputs': ['dense', 'r']}],"
    "            'outputs': ['less', 'dense']},"
    "           {'layer': 'block', 'name': 'again', 'inputs': ['block:0', 'block:1']},"
    "           {'type': 'Sequential', 'inputs': 'again:1',"
    "            'layers': [{'type': 'ReLU'}, {'type': 'Dense', 'units': 3, 'use_bias': false}]},"
    "           {'type': 'Add', 'inputs': ['sequential', 'again']}]";

Test(functional, nested_models)
{
    static const char flat[] =
        "'layers': [{'type': 'Dense', 'name': 'd', 'units': 3, 'use_bias': false},"
        "{'type': 'Subtract', 'name': 's', 'inputs': ['d', 'x']},"
        "{'layer': 'd', 'name': 'd2', 'inputs': 's'},"
        "{'type': 'Subtract', 'name': 's2', 'inputs': ['d2', 'd']},"
        "{'type': 'ReLU', 'inputs': 'd2'},"
        "{'type': 'Dense', 'name': 'e', 'units': 3, 'use_bias': false},"
        "{'type': 'Add', 'inputs': ['e', 's2']}]";
    static const char *const names[] = {"block/dense", "block/less",       "again/dense",
                                        "again/less",  "sequential/re_lu", "sequential/dense",
                                        "add"};
    static const float x[3] = {1, 2, 4};
    float out[3], expected[3];
    tp_model *model = functional_of(nested);
    cr_assert(tp_model_row_count(model) == 7);
    for (int i = 0; i < 7; i++)
        cr_assert_str_eq(tp_model_row_at(model, i).name, names[i]);
    tp_graph *graph;
    EXPECT_OK(tp_model_build_predict(model, 2, &graph));
    cr_assert(graph->variable_count == 2);
    cr_assert_str_eq(graph->variables[0].name, "block/dense/kernel");
    cr_assert_str_eq(graph->variables[1].name, "sequential/dense/kernel");
    tp_graph_destroy(graph);
    tp_model_destroy(model);
    predict(nested, x, out, 3);
    predict(flat, x, expected, 3);
    cr_assert(memcmp(out, expected, sizeof out) == 0);
}

Test(functional, a_nested_model_that_is_frozen)
{
    tp_model *model =
        functional_of("'layers': [{'type': 'Sequential', 'trainable': false, 'layers':"
                      "[{'type': 'Dense', 'units': 2}]}, {'type': 'Dense', 'units': 1}]");
    cr_assert(tp_model_row_at(model, 0).params == 8);
    cr_assert(tp_model_row_at(model, 0).trainable_params == 0);
    cr_assert(tp_model_row_at(model, 1).trainable_params == 3);
    tp_model_destroy(model);
}

/* What the source takes for an image of one row is a sequence to the model. */
Test(functional, an_input_may_be_reshaped)
{
    const tp_model_input image = input_of("x", 3, (int64_t[]){3, 2, 1});
    tp_model *model = NULL;
    EXPECT_OK(parse("'inputs': [{'name': 'x', 'shape': [3, 2]}],"
                    "'layers': [{'type': 'LSTM', 'units': 4}]",
                    &image, 1, &model));
    cr_assert(tp_shape_elems(tp_model_output_shape(model, 0)) == 4);
    tp_model_destroy(model);
}

Test(functional, inputs_and_outputs_by_name)
{
    const tp_model_input data[] = {input_of("text", 1, (int64_t[]){4}),
                                   input_of("image", 2, (int64_t[]){2, 3})};
    tp_model *model = NULL;
    EXPECT_OK(
        parse("'inputs': [{'name': 'image', 'shape': [2, 3], 'dtype': 'float32'},"
              "           {'name': 'text'}],"
              "'layers': [{'type': 'Flatten', 'inputs': 'image'},"
              "           {'type': 'Concatenate', 'name': 'both', 'inputs': ['flatten', 'text']},"
              "           {'type': 'Dense', 'name': 'one', 'units': 1},"
              "           {'type': 'Dense', 'name': 'two', 'units': 2, 'inputs': 'both'}],"
              "'outputs': ['two', 'one']",
              data, 2, &model));
    cr_assert(tp_model_input_count(model) == 2 && tp_model_output_count(model) == 2);
    cr_assert_str_eq(tp_model_input_at(model, 0)->name, "image");
    cr_assert_str_eq(tp_model_input_at(model, 1)->name, "text");
    cr_assert_str_eq(tp_model_output_name(model, 0), "two");
    cr_assert(tp_model_output_shape(model, 0)->dims[0] == 2);
    cr_assert(tp_model_row_at(model, 1).output.dims[0] == 10);
    tp_model_destroy(model);
}

/* ---- several outputs ---- */

/* The kernels of one step of SGD from fixed values, on so many cores, with these weights of two losses. */
static void step_with(double weight_a, double weight_b, int32_t cores, float out[9 + 6],
                      float *out_loss)
{
    static const char body[] =
        "'layers': [{'type': 'Dense', 'name': 'a', 'units': 3, 'use_bias': false},"
        "           {'type': 'Dense', 'name': 'b', 'units': 2, 'use_bias': false}],"
        "'outputs': ['b', 'a']";
    static const float x[12] = {1, 2, 4, -1, 0.5f, 2, 0.25f, -1, 1, 3, -2, 1},
                       row_weight[4] = {1, 1, 0.5f, 0};
    static const float target_b[8] = {1, 0, -1, 2, 0.5f, 1, 9, 9};
    static const int32_t target_a[4] = {0, 2, 1, 1};
    const tp_model_target targets[] = {
        {.label = "b", .loss = TP_MODEL_LOSS_MEAN_SQUARED_ERROR, .weight = weight_b},
        {.label = "a",
         .loss = TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
         .from_logits = true,
         .weight = weight_a}};
    const tp_model_score score = {.targets = targets};
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.learning_rate = 1;
    const tp_cross_shard shards = {.shards = cores};
    const int64_t batch = 4 / cores;
    const tp_model_train train = {.batch = batch, .optimizer = &optimizer, .cross_shard = &shards};
    tp_model *model = functional_of(body);
    tp_graph *graph;
    EXPECT_OK(tp_model_build_scored_train(model, &train, &score, &graph));
    model_run run = model_start(graph, cores, cores);
    const void *inputs[2 * 5];
    const float denominator = 2.5f;
    for (int32_t core = 0; core < cores; core++) {
        const void **in = &inputs[core * graph->input_count];
        cr_assert(graph->input_count == 5);
        in[0] = x + core * batch * 3;
        in[1] = target_b + core * batch * 2;
        in[2] = target_a + core * batch;
        in[3] = row_weight + core * batch;
        in[4] = &denominator;
    }
    for (int32_t i = 0; i < 2; i++)
        for (int32_t j = 0; j < (i ? 6 : 9); j++)
            ((float *)tp_reference_variable(run.reference, 0, i)->data)[j] =
                golden_value(9 + (uint32_t)i, (uint32_t)j);
    EXPECT_OK(tp_reference_step(run.reference, inputs, 0));
    *out_loss = model_scalar(&run, "loss_sum") / model_scalar(&run, "weight_sum");
    const double parts =
        weight_a * (double)(model_scalar(&run, "a/loss_sum") / model_scalar(&run, "a/weight_sum")) +
        weight_b * (double)(model_scalar(&run, "b/loss_sum") / model_scalar(&run, "b/weight_sum"));
    cr_assert(fabs((double)*out_loss - parts) < 1e-5, "%g %g", (double)*out_loss, parts);
    cr_assert(model_scalar(&run, "weight_sum") == 2.5f);
    model_output(&run, "a/correct");
    for (int32_t i = 0; i < 2; i++)
        for (int32_t j = 0; j < (i ? 6 : 9); j++)
            out[9 * i + j] = golden_value(9 + (uint32_t)i, (uint32_t)j) -
                             ((float *)tp_reference_variable(run.reference, 0, i)->data)[j];
    model_stop(&run);
    tp_model_destroy(model);
}

Test(functional, the_total_is_the_weighted_sum)
{
    float a[15], b[15], both[15], split[15], loss_a, loss_b, loss, loss_split;
    step_with(1, 0, 1, a, &loss_a);
    step_with(0, 1, 1, b, &loss_b);
    step_with(0.5, 2, 1, both, &loss);
    step_with(0.5, 2, 2, split, &loss_split);
    cr_assert(fabsf(loss - (0.5f * loss_a + 2 * loss_b)) < 1e-5f);
    cr_assert(fabsf(loss - loss_split) < 1e-5f);
    for (int i = 0; i < 15; i++) {
        cr_assert(fabsf(both[i] - (0.5f * a[i] + 2 * b[i])) < 1e-5f, "%d: %g", i, (double)both[i]);
        cr_assert(fabsf(both[i] - split[i]) < 1e-5f, "%d: %g", i, (double)split[i]);
    }
    cr_assert(fabsf(b[0]) > 1e-3f && a[9] == 0, "the second output alone reaches its kernel");
}

/* ---- problems ---- */

Test(functional, all_problems_at_once)
{
    expect_problems(
        "'layers': [{'type': 'Dense', 'name': 'one', 'units': 2},"
        "           {'type': 'Dense', 'name': 'two', 'units': 0, 'inputs': 'X'},"
        "           {'type': 'Add', 'name': 'sum', 'inputs': ['one', 'tow']},"
        "           {'layer': 'three'},"
        "           {'layer': 'one', 'units': 3},"
        "           {'layer': 'x'},"
        "           {'type': 'Model', 'name': 'inner', 'model_inputs': ['p', 'p'],"
        "            'layers': [{'type': 'Add', 'inputs': ['p', 'q']}, {'type': 'Danse'}]}],"
        "'outputs': ['some', 3]",
        (const char *const[]){"layers[1].units", "'X', did you mean 'x'", "layers[2].inputs[1]",
                              "'tow', did you mean 'two'", "layers[3].layer", "layers[4].units",
                              "'x' is not a layer's definition", "there is another input 'p'",
                              "layers[6].layers[0].inputs[1]", "layers[6].layers[1].type",
                              "outputs[0]", "outputs[1]", NULL});
}

Test(functional, what_is_not_used)
{
    expect_problems("'layers': [{'type': 'Dense', 'name': 'a', 'units': 2},"
                    "{'type': 'Dense', 'name': 'b', 'units': 2, 'inputs': 'x'}]",
                    (const char *const[]){"layers[0]", "no output needs 'a'", NULL});
    expect_problems("'layers': [{'type': 'Sequential', 'name': 'n', 'model_inputs': ['p', 'q'],"
                    " 'inputs': ['x', 'x'], 'layers': [{'type': 'ReLU', 'inputs': 'p'}]}]",
                    (const char *const[]){"no output needs the input 'q'", NULL});
}

Test(functional, cycles)
{
    expect_problems("'layers': [{'type': 'Add', 'name': 'a', 'inputs': ['x', 'c']},"
                    "{'type': 'ReLU', 'name': 'b'}, {'type': 'ReLU', 'name': 'c'}]",
                    (const char *const[]){"the layers form a cycle", "'c' takes 'b'", NULL});
    expect_problems("'layers': [{'type': 'ReLU', 'name': 'a', 'inputs': 'a'}]",
                    (const char *const[]){"cycle: 'a' takes 'a'", NULL});
}

Test(functional, what_does_not_fit)
{
    expect_problems("'layers': [{'type': 'Add', 'name': 'a'}]",
                    (const char *const[]){"Add 'a': it has 1 inputs, expected 2 or more", NULL});
    expect_problems("'layers': [{'type': 'ReLU', 'name': 'a', 'inputs': ['x', 'x']}]",
                    (const char *const[]){"it has 2 inputs, expected 1", NULL});
    expect_problems("'layers': [{'type': 'Dense', 'name': 'a', 'units': 2},"
                    "{'type': 'Add', 'name': 'b', 'inputs': ['a', 'x']}]",
                    (const char *const[]){"input 1 is [3], which does not fit [2]", NULL});
    expect_problems(
        "'layers': [{'type': 'Dense', 'name': 'a', 'units': 2}, {'layer': 'a'}]",
        (const char *const[]){"Dense 'a_1': with these inputs its kernel is [2,2], where "
                              "it is called as 'a' it is [3,2]",
                              NULL});
    expect_problems("'layers': [{'type': 'ReLU', 'name': 'a', 'inputs': 'x:1'}]",
                    (const char *const[]){"takes result 1", NULL});
    expect_problems("'layers': [{'type': 'Sequential', 'name': 's', 'inputs': ['x', 'x'],"
                    "'layers': [{'type': 'ReLU'}]}]",
                    (const char *const[]){"'s' has 2 inputs, expected 1", NULL});
    expect_problems("'inputs': [{'name': 'x', 'shape': [4]}], 'layers': [{'type': 'ReLU'}]",
                    (const char *const[]){"inputs[0].shape", "examples are [3]", NULL});
    expect_problems("'inputs': [{'name': 'x', 'shape': [1, 1, 1, 1, 1, 1, 1, 3]}], "
                    "'layers': [{'type': 'ReLU'}]",
                    (const char *const[]){"inputs[0].shape", "examples are [3]", NULL});
    expect_problems("'inputs': [{'name': 'a'}, {'name': 'b', 'dtype': 'int8'}], "
                    "'layers': [{'type': 'Add', 'inputs': ['a', 'b']}]",
                    (const char *const[]){"the data have no array 'a'", NULL});
    expect_problems("'outputs': [], 'layers': [{'type': 'ReLU'}]",
                    (const char *const[]){"no outputs", NULL});
    expect_problems("'layers': [{'type': 'Model', 'inputs': 'x'}]",
                    (const char *const[]){"layers[0]", "'layers'", NULL});
}

/* A model that calls another twice, which calls another twice, and so on: it is refused, soon. */
Test(functional, exploding_models, .timeout = 20)
{
    char body[8192] = "{'type': 'ReLU', 'name': 'end'}", next[8192];
    for (int depth = 0; depth < 24; depth++) {
        snprintf(next, sizeof next,
                 "{'type': 'Sequential', 'name': 'm', 'layers': [%.7000s, {'layer': '%s'}]}", body,
                 depth ? "m" : "end");
        strcpy(body, next);
    }
    snprintf(next, sizeof next, "'layers': [%.8000s]", body);
    expect_problems(next, (const char *const[]){"10000", NULL});
}

static tpucl_status whole_life(void *user)
{
    const tp_model_input *input = user;
    tp_model *model = NULL;
    tp_graph *graph = NULL;
    tpucl_status status = parse(nested, input, 1, &model);
    if (status == TPUCL_OK) status = tp_model_build_predict(model, 2, &graph);
    tp_graph_destroy(graph);
    tp_model_destroy(model);
    return status;
}

Test(functional, every_allocation_may_fail)
{
    tp_model_input input = input_of("x", 1, (int64_t[]){3});
    alloc_loop_run(whole_life, &input);
}
