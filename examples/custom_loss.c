/* SPDX-License-Identifier: Apache-2.0
 * A loss and a metric of one's own, as graph code: the pinball loss of the quantile q,
 *     max(q e, (q - 1) e) with e = target - prediction
 * (Koenker and Bassett 1978, "Regression Quantiles"), over the targets that are there: -1 means that one is
 * missing, and a mask leaves it out of the loss and of the count. Shapes stay static, so this runs on a TPU as
 * well. A line with nothing but noise around it learns to have 90 % of the targets below it. */
#include <stdio.h>
#include <tpucl/tpucl.h>

enum {
    CORES = 2,
    PER_CORE_BATCH = 32,
    EXAMPLES = CORES * PER_CORE_BATCH,
    TARGETS = 8,
    STEPS = 600
};

static tpucl_tensor compare(tpucl_graph *g, const char *direction, tpucl_tensor a, tpucl_tensor b)
{
    const tpucl_attribute attribute = tpucl_attribute_text("direction", direction);
    const tpucl_tensor inputs[] = {a, b};
    return tpucl_graph_apply(g, "compare", &attribute, 1, inputs, 2);
}

static tpucl_tensor choose(tpucl_graph *g, tpucl_tensor mask, tpucl_tensor a, tpucl_tensor b)
{
    const tpucl_tensor inputs[] = {mask, a, b};
    return tpucl_graph_apply(g, "select", NULL, 0, inputs, 3);
}

/* [batch, n] -> [batch] */
static tpucl_tensor sum_of_rows(tpucl_graph *g, tpucl_tensor x)
{
    const int64_t axis = 1;
    const tpucl_attribute attributes[] = {tpucl_attribute_ints("axes", &axis, 1),
                                          tpucl_attribute_text("kind", "add")};
    return tpucl_graph_apply(g, "reduce", attributes, 2, &x, 1);
}

/* Mean of `values` over those that count, for each example; 0 where none does. */
static tpucl_tensor masked_mean(tpucl_graph *g, tpucl_tensor mask, tpucl_tensor values)
{
    const tpucl_tensor zeros = tpucl_scale(g, values, 0, 0), ones = tpucl_scale(g, zeros, 1, 1);
    const tpucl_tensor count = sum_of_rows(g, choose(g, mask, ones, zeros));
    const tpucl_tensor least = tpucl_scale(g, count, 0, 1);
    return tpucl_divide(g, sum_of_rows(g, choose(g, mask, values, zeros)),
                        tpucl_maximum(g, count, least));
}

static tpucl_tensor pinball(tpucl_graph *g, tpucl_tensor prediction, tpucl_tensor target,
                            tpucl_tensor mask, double q)
{
    const tpucl_tensor error = tpucl_subtract(g, target, prediction);
    return masked_mean(
        g, mask, tpucl_maximum(g, tpucl_scale(g, error, q, 0), tpucl_scale(g, error, q - 1, 0)));
}

static void describe(tpucl_graph *g)
{
    tpucl_tensor x = tpucl_graph_input(g, "x", TPUCL_F32, tpucl_shape2(PER_CORE_BATCH, 1));
    tpucl_tensor target =
        tpucl_graph_input(g, "target", TPUCL_F32, tpucl_shape2(PER_CORE_BATCH, TARGETS));
    tpucl_tensor w = tpucl_graph_parameter(g, "w", tpucl_shape2(1, TARGETS), "zeros");
    tpucl_tensor b = tpucl_graph_parameter(g, "b", tpucl_shape1(TARGETS), "zeros");
    tpucl_tensor prediction = tpucl_add(g, tpucl_matmul(g, x, w), b);

    tpucl_tensor zeros = tpucl_scale(g, target, 0, 0), ones = tpucl_scale(g, zeros, 1, 1);
    tpucl_tensor mask = compare(g, "NE", target, tpucl_scale(g, zeros, 1, -1));
    tpucl_tensor is_below = choose(g, compare(g, "LE", target, prediction), ones, zeros);

    tpucl_optimizer_options sgd = tpucl_optimizer_options_default();
    sgd.learning_rate = 0.2;
    tpucl_graph_metric(g, "below", masked_mean(g, mask, is_below));
    tpucl_graph_minimize(g, pinball(g, prediction, target, mask, 0.9), &sgd);
}

int main(void)
{
    static float x[EXAMPLES], target[EXAMPLES][TARGETS];
    tpucl_runtime *runtime = NULL;
    tpucl_graph *graph = NULL;
    tpucl_program *program = NULL;
    tpucl_trainer *trainer = NULL;
    tpucl_dataset *data = NULL;
    tpucl_step_result result;
    tpucl_status status;
    tpucl_runtime_options machine = tpucl_runtime_options_default();
    machine.topology = "{\"name\": \"two\", \"chips\": 1, \"cores_per_chip\": 2, \"cores\": 2}";
    unsigned random = 1; /* the generator of the C standard's example, as noise in [0, 1) */
    for (int i = 0; i < EXAMPLES; i++) {
        x[i] = (float)(i % 16) / 16;
        for (int k = 0; k < TARGETS; k++) {
            random = random * 1103515245u + 12345u;
            const float noise = (float)(random >> 16 & 0x7fff) / 0x8000;
            target[i][k] = (i + k) % 5 == 0 ? -1 : x[i] + noise;
        }
    }
    tpucl_dataset_options options = tpucl_dataset_options_default();
    options.kind = "memory";
    options.inputs.name = "x";
    options.inputs.dtype = options.labels.dtype = TPUCL_F32;
    options.inputs.shape = tpucl_shape2(EXAMPLES, 1);
    options.inputs.data = x;
    options.labels.name = "target";
    options.labels.shape = tpucl_shape2(EXAMPLES, TARGETS);
    options.labels.data = target;
    options.batch_size = EXAMPLES;
    options.repeat = true;

    if ((status = tpucl_runtime_create(&machine, &runtime))) goto done;
    if ((status = tpucl_graph_create(&graph))) goto done;
    describe(graph);
    if ((status = tpucl_program_compile(runtime, graph, NULL, &program))) goto done;
    if ((status = tpucl_trainer_create(program, NULL, &trainer))) goto done;
    if ((status = tpucl_dataset_open(&options, &data))) goto done;
    if ((status = tpucl_trainer_steps(trainer, data, STEPS, &result))) goto done;
    printf("loss %.4f, %.1f %% of the targets below the prediction\n", result.loss,
           100 * result.metrics[1].value);
done:
    if (status) fprintf(stderr, "custom_loss: %s\n", tpucl_last_error()->message);
    tpucl_dataset_close(data);
    tpucl_trainer_destroy(trainer);
    tpucl_program_destroy(program);
    tpucl_graph_destroy(graph);
    tpucl_runtime_destroy(runtime);
    return status != TPUCL_OK;
}
