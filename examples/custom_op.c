/* SPDX-License-Identifier: Apache-2.0
 * An op of one's own, in both forms: "mine.leaky_square" with an OpenCL kernel, y = x^2 where x > 0 and slope * x
 * elsewhere, and "mine.layer", graph code that puts it behind a product and a bias. A network with both learns
 * a parabola on four cores. Also compiles as C++17. */
#include <stdio.h>
#include <tpucl/ext/op.h>
#include <tpucl/tpucl.h>

enum { CORES = 4, PER_CORE_BATCH = 16, EXAMPLES = CORES * PER_CORE_BATCH, STEPS = 200 };

/* ---- mine.leaky_square ---- */

static tpucl_status leaky_infer(void *user, const tpucl_op_context *context, tpucl_dtype *out_dtype,
                                tpucl_shape *out_shape)
{
    (void)user;
    if (tpucl_op_dtype(context, 0) != TPUCL_F32) return tpucl_op_fail("expected an f32 operand");
    *out_dtype = TPUCL_F32;
    *out_shape = tpucl_op_shape(context, 0);
    return TPUCL_OK;
}

/* The definition: what the kernel has to give, bit for bit. */
static tpucl_status leaky_evaluate(void *user, const tpucl_op_context *context,
                                   const tpucl_op_array *inputs, const tpucl_op_array *out)
{
    const float slope = (float)tpucl_op_float(context, "slope", 0.125);
    const float *x = (const float *)inputs[0].data;
    float *y = (float *)out->data;
    (void)user;
    for (int64_t i = 0; i < tpucl_op_elements(context, 0); i++)
        y[i] = x[i] > 0 ? x[i] * x[i] : slope * x[i];
    return TPUCL_OK;
}

static const char leaky_kernel[] =
    "kernel void leaky_square(TP_TENSOR(const float, x), TP_TENSOR(float, y), uint count, float "
    "slope,\n"
    "                         uint grid_z)\n"
    "{\n"
    "    const uint i = get_global_id(0), core = get_global_id(2) / grid_z;\n"
    "    if (i >= count) return;\n"
    "    const float v = TP_AT(x, core)[i];\n"
    "    TP_AT(y, core)[i] = tp_flush(v > 0.0f ? v * v : slope * v);\n"
    "}\n";

static tpucl_status leaky_launch(void *user, const tpucl_op_context *context,
                                 tpucl_op_launch *launch)
{
    (void)user;
    launch->global[0] = (size_t)tpucl_op_elements(context, 0);
    launch->global[1] = launch->global[2] = 1;
    launch->scalars[0].u32 = (uint32_t)tpucl_op_elements(context, 0);
    launch->scalars[1].is_float = true;
    launch->scalars[1].f32 = (float)tpucl_op_float(context, "slope", 0.125);
    launch->scalar_count = 2;
    return TPUCL_OK;
}

/* d * (x > 0 ? 2 x : slope) */
static void leaky_gradient(void *user, const tpucl_op_context *context, tpucl_graph *g,
                           const tpucl_tensor *inputs, tpucl_tensor result, tpucl_tensor d_result,
                           tpucl_tensor *d_inputs)
{
    const tpucl_attribute direction = tpucl_attribute_text("direction", "GT");
    const tpucl_tensor zeros = tpucl_scale(g, inputs[0], 0, 0);
    const tpucl_tensor pair[] = {inputs[0], zeros};
    const tpucl_tensor slopes = tpucl_scale(g, zeros, 1, tpucl_op_float(context, "slope", 0.125));
    tpucl_tensor choice[3];
    (void)user;
    (void)result;
    choice[0] = tpucl_graph_apply(g, "compare", &direction, 1, pair, 2);
    choice[1] = tpucl_scale(g, inputs[0], 2, 0);
    choice[2] = slopes;
    d_inputs[0] = tpucl_multiply(g, d_result, tpucl_graph_apply(g, "select", NULL, 0, choice, 3));
}

/* ---- mine.layer: inputs [batch, in], [in, out], [out] ---- */

static tpucl_tensor layer_compose(void *user, const tpucl_op_context *context, tpucl_graph *g,
                                  const tpucl_tensor *inputs)
{
    const tpucl_tensor sum = tpucl_add(g, tpucl_matmul(g, inputs[0], inputs[1]), inputs[2]);
    (void)user;
    (void)context;
    return tpucl_graph_apply(g, "mine.leaky_square", NULL, 0, &sum, 1);
}

static tpucl_status register_ops(void)
{
    static const tpucl_op_attribute slope = {"slope", TPUCL_ATTRIBUTE_FLOAT, true};
    tpucl_op leaky = tpucl_op_default(), layer = tpucl_op_default();
    leaky.name = "mine.leaky_square";
    leaky.attributes = &slope;
    leaky.attribute_count = 1;
    leaky.infer = leaky_infer;
    leaky.evaluate = leaky_evaluate;
    leaky.kernel_source = leaky_kernel;
    leaky.kernel_entry = "leaky_square";
    leaky.launch = leaky_launch;
    leaky.gradient = leaky_gradient;
    layer.name = "mine.layer";
    layer.min_inputs = layer.max_inputs = 3;
    layer.compose = layer_compose;
    const tpucl_status status = tpucl_op_register(&leaky);
    return status ? status : tpucl_op_register(&layer);
}

static void describe(tpucl_graph *g)
{
    tpucl_tensor x = tpucl_graph_input(g, "x", TPUCL_F32, tpucl_shape2(PER_CORE_BATCH, 1));
    tpucl_tensor y = tpucl_graph_input(g, "y", TPUCL_F32, tpucl_shape2(PER_CORE_BATCH, 1));
    tpucl_tensor w = tpucl_graph_parameter(g, "hidden/w", tpucl_shape2(1, 16), "glorot_uniform");
    tpucl_tensor b = tpucl_graph_parameter(g, "hidden/b", tpucl_shape1(16), "zeros");
    tpucl_tensor out = tpucl_graph_parameter(g, "out/w", tpucl_shape2(16, 1), "glorot_uniform");
    const tpucl_tensor inputs[] = {x, w, b};
    tpucl_tensor hidden = tpucl_graph_apply(g, "mine.layer", NULL, 0, inputs, 3);
    tpucl_optimizer_options adam = tpucl_optimizer_options_default();
    adam.kind = "adam";
    adam.learning_rate = 0.02;
    tpucl_graph_minimize(g, tpucl_mean_squared_error(g, tpucl_matmul(g, hidden, out), y), &adam);
}

int main(void)
{
    static float x[EXAMPLES], y[EXAMPLES];
    tpucl_runtime *runtime = NULL;
    tpucl_graph *graph = NULL;
    tpucl_program *program = NULL;
    tpucl_trainer *trainer = NULL;
    tpucl_dataset *data = NULL;
    tpucl_step_result first, last;
    tpucl_status status;
    tpucl_runtime_options machine = tpucl_runtime_options_default();
    machine.topology = "{\"name\": \"four\", \"chips\": 2, \"cores_per_chip\": 2, \"cores\": 4}";
    for (int i = 0; i < EXAMPLES; i++) {
        x[i] = (float)i / EXAMPLES * 2 - 1;
        y[i] = x[i] * x[i] - 0.25f;
    }
    tpucl_dataset_options options = tpucl_dataset_options_default();
    options.kind = "memory";
    options.inputs.name = "x";
    options.inputs.dtype = options.labels.dtype = TPUCL_F32;
    options.inputs.shape = options.labels.shape = tpucl_shape2(EXAMPLES, 1);
    options.inputs.data = x;
    options.labels.name = "y";
    options.labels.data = y;
    options.batch_size = EXAMPLES;
    options.repeat = true;

    if ((status = register_ops())) goto done;
    if ((status = tpucl_runtime_create(&machine, &runtime))) goto done;
    if ((status = tpucl_graph_create(&graph))) goto done;
    describe(graph);
    if ((status = tpucl_program_compile(runtime, graph, NULL, &program))) goto done;
    if ((status = tpucl_trainer_create(program, NULL, &trainer))) goto done;
    if ((status = tpucl_dataset_open(&options, &data))) goto done;
    if ((status = tpucl_trainer_steps(trainer, data, 1, &first))) goto done;
    if ((status = tpucl_trainer_steps(trainer, data, STEPS, &last))) goto done;
    printf("loss %.5f, after %d steps %.5f\n", first.loss, STEPS, last.loss);
done:
    if (status) fprintf(stderr, "custom_op: %s\n", tpucl_last_error()->message);
    tpucl_dataset_close(data);
    tpucl_trainer_destroy(trainer);
    tpucl_program_destroy(program);
    tpucl_graph_destroy(graph);
    tpucl_runtime_destroy(runtime);
    return status != TPUCL_OK;
}
