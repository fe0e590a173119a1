/* SPDX-License-Identifier: Apache-2.0
 * Programs and trainers through the public calls, on the default device. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tpucl/tpucl.h>
#include <unistd.h>

enum { CORES = 4, PER_CORE = 4, ROWS = CORES * PER_CORE };

static const char topology[] = "{\"name\": \"four\", \"chips\": 2, \"cores_per_chip\": 2, "
                               "\"cores\": 4}";

static tpucl_runtime *runtime;
static tpucl_program *program;
static tpucl_trainer *trainer;

#define OK(call) cr_assert_eq((call), TPUCL_OK, "%s", tpucl_last_error()->message)

/* y = x * w, mean squared error. */
static void make(bool minimize)
{
    tpucl_runtime_options machine = tpucl_runtime_options_default();
    tpucl_graph *graph = NULL;
    machine.topology = topology;
    OK(tpucl_runtime_create(&machine, &runtime));
    OK(tpucl_graph_create(&graph));
    tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(PER_CORE, 2));
    tpucl_tensor y = tpucl_graph_input(graph, "y", TPUCL_F32, tpucl_shape2(PER_CORE, 1));
    tpucl_tensor w = tpucl_graph_parameter(graph, "w", tpucl_shape2(2, 1), "zeros");
    tpucl_tensor error = tpucl_mean_squared_error(graph, tpucl_matmul(graph, x, w), y);
    tpucl_optimizer_options sgd = tpucl_optimizer_options_default();
    sgd.learning_rate = 0.125;
    if (minimize)
        tpucl_graph_minimize(graph, error, &sgd);
    else
        tpucl_graph_metric(graph, "error", error);
    OK(tpucl_program_compile(runtime, graph, NULL, &program));
    tpucl_graph_destroy(graph); /* the program does not need it */
    OK(tpucl_trainer_create(program, NULL, &trainer));
}

static void unmake(void)
{
    tpucl_trainer_destroy(trainer);
    tpucl_program_destroy(program);
    tpucl_runtime_destroy(runtime);
}

/* Small whole numbers; y = 3 x0 - x1, so bf16 products are exact. */
static float inputs[ROWS][2], targets[ROWS];

static tpucl_dataset *open_data(int64_t examples, int64_t batch)
{
    for (int i = 0; i < ROWS; i++) {
        inputs[i][0] = (float)(i % 3 - 1);
        inputs[i][1] = (float)(i % 2);
        targets[i] = 3 * inputs[i][0] - inputs[i][1];
    }
    tpucl_dataset_options options = tpucl_dataset_options_default();
    tpucl_dataset *dataset = NULL;
    options.kind = "memory";
    options.inputs = (tpucl_array){"x", TPUCL_F32, tpucl_shape2(examples, 2), inputs};
    options.labels = (tpucl_array){"y", TPUCL_F32, tpucl_shape2(examples, 1), targets};
    options.batch_size = batch;
    options.repeat = true;
    OK(tpucl_dataset_open(&options, &dataset));
    return dataset;
}

/* The first step from w = 0 on `count` examples: w -= rate * mean of -2 x (y - 0). Products
 * round their operands to bf16 (8 bits), which changes nothing where `count` is a power of two. */
static void expect_first_step(int count, const float w[2])
{
    for (int j = 0; j < 2; j++) {
        double gradient = 0;
        for (int i = 0; i < count; i++)
            gradient += -2.0 * (double)inputs[i][j] * (double)targets[i] / count;
        double slack = (count & (count - 1)) ? 0x1p-8 * fabs(gradient) : 1e-6;
        cr_assert_float_eq((double)w[j], -0.125 * gradient, slack, "w[%d] is %g", j, (double)w[j]);
    }
}

Test(trainer, a_step_follows_the_mean_gradient)
{
    make(true);
    tpucl_dataset *data = open_data(ROWS, ROWS);
    tpucl_step_result result;
    float w[2];
    OK(tpucl_trainer_steps(trainer, data, 1, &result));
    cr_assert_eq(result.step, 1);
    cr_assert_eq(result.example_count, ROWS);
    cr_assert_eq(result.metric_count, 1);
    cr_assert_str_eq(result.metrics[0].name, "loss");
    cr_assert_eq(result.loss, result.metrics[0].value);
    OK(tpucl_trainer_read(trainer, "w", w, sizeof w));
    expect_first_step(ROWS, w);
    OK(tpucl_trainer_steps(trainer, data, 200, &result));
    cr_assert_lt(result.loss, 1e-3);
    cr_assert_eq(result.step, 201);
    tpucl_dataset_close(data);
    unmake();
}

Test(trainer, a_partial_batch_is_a_smaller_batch)
{
    make(true);
    tpucl_dataset *data = open_data(7, ROWS); /* 4 + 3 + 0 + 0 examples on the cores */
    tpucl_step_result result;
    float w[2];
    OK(tpucl_trainer_steps(trainer, data, 1, &result));
    cr_assert_eq(result.example_count, 7);
    OK(tpucl_trainer_read(trainer, "w", w, sizeof w));
    expect_first_step(7, w);
    tpucl_dataset_close(data);
    unmake();
}

Test(trainer, evaluation_counts_every_example_once)
{
    make(false);
    tpucl_dataset *data = open_data(11, 4);
    tpucl_step_result result;
    double sum = 0;
    for (int i = 0; i < 11; i++)
        sum += (double)(targets[i] * targets[i]);
    for (int pass = 0; pass < 2; pass++) {
        OK(tpucl_trainer_evaluate(trainer, data, &result));
        cr_assert_eq(result.example_count, 11);
        cr_assert_str_eq(result.metrics[0].name, "error");
        cr_assert_float_eq(result.metrics[0].value, sum / 11, 1e-6);
        cr_assert_eq(result.loss, 0);
    }
    cr_assert_eq(tpucl_trainer_steps(trainer, data, 1, &result), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "minimises nothing"));
    tpucl_dataset_close(data);
    unmake();
}

Test(trainer, wrong_batches_are_named)
{
    make(true);
    tpucl_array arrays[2] = {{"x", TPUCL_F32, tpucl_shape2(ROWS, 2), inputs},
                             {"y", TPUCL_F32, tpucl_shape2(ROWS, 1), targets}};
    tpucl_batch batch = {ROWS, 2, arrays};
    OK(tpucl_trainer_step(trainer, &batch, NULL));
    struct {
        tpucl_batch batch;
        tpucl_array x;
        const char *text;
    } rows[] = {
        {{ROWS + 1, 2, arrays}, arrays[0], "expected 1 to 16: 4 for each of 4 cores"},
        {{0, 2, arrays}, arrays[0], "a batch of 0 examples"},
        {{ROWS, 1, arrays}, arrays[0], "no array for input 'y'"},
        {{ROWS, 2, NULL}, arrays[0], "'arrays' is NULL"},
        {batch, {"x", TPUCL_S32, tpucl_shape2(ROWS, 2), inputs}, "s32[16,2], expected f32[16,2]"},
        {batch, {"x", TPUCL_F32, tpucl_shape2(ROWS, 3), inputs}, "f32[16,3], expected f32[16,2]"},
        {batch, {"x", TPUCL_F32, tpucl_shape2(ROWS, 2), NULL}, "without data"},
        {batch, {"z", TPUCL_F32, tpucl_shape2(ROWS, 2), inputs}, "no array for input 'x'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arrays[0] = rows[i].x;
        cr_assert_eq(tpucl_trainer_step(trainer, &rows[i].batch, NULL), TPUCL_INVALID_ARGUMENT);
        cr_assert(strstr(tpucl_last_error()->message, rows[i].text), "'%s' is not in '%s'",
                  rows[i].text, tpucl_last_error()->message);
    }
    unmake();
}

Test(trainer, variables_are_read_written_saved_restored)
{
    make(true);
    char path[] = "/tmp/tpucl-test-XXXXXX", before[65], changed[65], after[65];
    const float w[2] = {1.5f, -2.25f}, other[2] = {0, 7};
    float back[2];
    cr_assert_geq(mkstemp(path), 0);
    OK(tpucl_trainer_write(trainer, "w", w, sizeof w));
    OK(tpucl_trainer_read(trainer, "w", back, sizeof back));
    cr_assert_eq(memcmp(w, back, sizeof w), 0);
    const float tiny[2] = {-1e-40f, 1}, flushed[2] = {-0.0f, 1};
    OK(tpucl_trainer_write(trainer, "w", tiny, sizeof tiny));
    OK(tpucl_trainer_read(trainer, "w", back, sizeof back));
    cr_assert_eq(memcmp(flushed, back, sizeof back), 0, "subnormals end where values enter");
    OK(tpucl_trainer_write(trainer, "w", w, sizeof w));
    OK(tpucl_trainer_params_sha256(trainer, before));
    cr_assert_eq(strlen(before), 64);
    OK(tpucl_trainer_save(trainer, path));
    OK(tpucl_trainer_write(trainer, "w", other, sizeof other));
    OK(tpucl_trainer_params_sha256(trainer, changed));
    cr_assert_str_neq(before, changed);
    OK(tpucl_trainer_restore(trainer, path));
    OK(tpucl_trainer_params_sha256(trainer, after));
    cr_assert_str_eq(before, after);
    cr_assert_eq(tpucl_trainer_read(trainer, "v", back, sizeof back), TPUCL_NOT_FOUND);
    cr_assert_eq(tpucl_trainer_read(trainer, "w", back, 4), TPUCL_INVALID_ARGUMENT);
    remove(path);
    unmake();
}

Test(trainer, a_program_says_what_it_costs)
{
    make(true);
    tpucl_program_stats stats = tpucl_program_query(program);
    cr_assert_eq(stats.parameter_count, 2);
    cr_assert_eq(stats.cores, CORES);
    cr_assert_gt(stats.launches, 0);
    cr_assert_gt(stats.flops, 0);
    cr_assert(stats.exact);
    char *text = NULL;
    OK(tpucl_program_print(program, &text));
    cr_assert_gt(strlen(text), 100);
    tpucl_free(text);
    tpucl_topology_info info = tpucl_runtime_topology(runtime);
    cr_assert_str_eq(info.name, "four");
    cr_assert_eq(info.cores, CORES);
    tpucl_device_info device;
    cr_assert_geq(tpucl_runtime_device_count(runtime), 1);
    OK(tpucl_runtime_device_info(runtime, 0, &device));
    cr_assert(device.usable);
    cr_assert_eq(tpucl_runtime_device_info(runtime, 99, &device), TPUCL_INVALID_ARGUMENT);
    unmake();
}

Test(trainer, a_wrong_runtime_is_refused)
{
    tpucl_runtime_options options = tpucl_runtime_options_default();
    options.topology = "v9-8";
    cr_assert_neq(tpucl_runtime_create(&options, &runtime), TPUCL_OK);
    cr_assert_null(runtime);
    options.topology = "{\"name\": 3}";
    cr_assert_eq(tpucl_runtime_create(&options, &runtime), TPUCL_INVALID_CONFIG);
    options.topology = topology;
    options.device = "no such device";
    cr_assert_eq(tpucl_runtime_create(&options, &runtime), TPUCL_NO_DEVICE);
    options.device = NULL;
    options.split = -1;
    cr_assert_eq(tpucl_runtime_create(&options, &runtime), TPUCL_INVALID_ARGUMENT);
    cr_assert_null(runtime);
}
