/* SPDX-License-Identifier: Apache-2.0
 * The smallest complete program: a network with one hidden layer learns Fashion-MNIST on the
 * eight cores of a v2-8, wherever the OpenCL device is. Also compiles as C++17. */
#include <stdio.h>
#include <tpucl/tpucl.h>

enum { CORES = 8, PER_CORE_BATCH = 128, EPOCHS = 2 };

static void describe(tpucl_graph *g)
{
    tpucl_tensor image =
        tpucl_graph_input(g, "image", TPUCL_U8, tpucl_shape4(PER_CORE_BATCH, 28, 28, 1));
    tpucl_tensor label = tpucl_graph_input(g, "label", TPUCL_S32, tpucl_shape1(PER_CORE_BATCH));
    tpucl_tensor w1 =
        tpucl_graph_parameter(g, "hidden/w", tpucl_shape2(784, 256), "glorot_uniform");
    tpucl_tensor b1 = tpucl_graph_parameter(g, "hidden/b", tpucl_shape1(256), "zeros");
    tpucl_tensor w2 = tpucl_graph_parameter(g, "logits/w", tpucl_shape2(256, 10), "glorot_uniform");

    tpucl_tensor pixels = tpucl_scale(g, image, 1 / 255.0, 0);
    pixels = tpucl_reshape(g, pixels, tpucl_shape2(PER_CORE_BATCH, 784));
    tpucl_tensor hidden = tpucl_relu(g, tpucl_add(g, tpucl_matmul(g, pixels, w1), b1));
    tpucl_tensor logits = tpucl_matmul(g, hidden, w2);

    tpucl_optimizer_options adam = tpucl_optimizer_options_default();
    adam.kind = "adam";
    tpucl_graph_metric(g, "accuracy", tpucl_is_correct(g, logits, label));
    tpucl_graph_minimize(g, tpucl_softmax_cross_entropy(g, logits, label), &adam);
}

int main(void)
{
    tpucl_runtime *runtime = NULL;
    tpucl_graph *graph = NULL;
    tpucl_program *program = NULL;
    tpucl_trainer *trainer = NULL;
    tpucl_dataset *train = NULL, *test = NULL;
    tpucl_step_result result;
    tpucl_status status;
    char digest[65];

    tpucl_runtime_options machine = tpucl_runtime_options_default();
    machine.topology = "v2-8";
    tpucl_dataset_options train_files = tpucl_dataset_options_default();
    train_files.batch_size = CORES * PER_CORE_BATCH;
    train_files.shuffle = true;
    train_files.repeat = true;
    tpucl_dataset_options test_files = train_files;
    test_files.part = "test";
    test_files.shuffle = test_files.repeat = false;

    if ((status = tpucl_runtime_create(&machine, &runtime))) goto done;
    if ((status = tpucl_graph_create(&graph))) goto done;
    describe(graph); /* mistakes in there are reported here: */
    if ((status = tpucl_program_compile(runtime, graph, NULL, &program))) goto done;
    if ((status = tpucl_trainer_create(program, NULL, &trainer))) goto done;
    if ((status = tpucl_dataset_open(&train_files, &train))) goto done;
    if ((status = tpucl_dataset_open(&test_files, &test))) goto done;

    for (int epoch = 1; epoch <= EPOCHS; ++epoch) {
        int64_t steps = tpucl_dataset_example_count(train) / train_files.batch_size;
        if ((status = tpucl_trainer_steps(trainer, train, steps, &result))) goto done;
        if ((status = tpucl_trainer_evaluate(trainer, test, &result))) goto done;
        printf("epoch %d: test loss %.4f, test accuracy %.2f %%\n", epoch, result.loss,
               100 * result.metrics[1].value);
    }
    if ((status = tpucl_trainer_params_sha256(trainer, digest))) goto done;
    printf("params_sha256 %s\n", digest);
done:
    if (status) fprintf(stderr, "minimal: %s\n", tpucl_last_error()->message);
    tpucl_dataset_close(test);
    tpucl_dataset_close(train);
    tpucl_trainer_destroy(trainer);
    tpucl_program_destroy(program);
    tpucl_graph_destroy(graph);
    tpucl_runtime_destroy(runtime);
    return status != TPUCL_OK;
}
