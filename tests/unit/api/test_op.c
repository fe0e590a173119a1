/* SPDX-License-Identifier: Apache-2.0
 * Ops from outside through the public calls: what is refused, types and attributes, gradients against
 * differences, the same bits on the device, and a kernel that does not give its evaluation's. */
#include <math.h>
#include <string.h>
#include <tpucl/ext/op.h>
#include <tpucl/tpucl.h>
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "harness/program_run.h"
#include "ops/registry.h"

TestSuite(op, .timeout = 300);

/* y[r][c] = factor * x[r][c] * x[r][c - 1], and 0 in the first column. */
static tpucl_status infer(void *user, const tpucl_op_context *context, tpucl_dtype *out_dtype,
                          tpucl_shape *out_shape)
{
    (void)user;
    if (tpucl_op_shape(context, 0).rank != 2) return tpucl_op_fail("expected a matrix");
    if (tpucl_op_dtype(context, 0) != TPUCL_F32) return TPUCL_UNSUPPORTED; /* without a word */
    *out_dtype = TPUCL_F32;
    *out_shape = tpucl_op_shape(context, 0);
    return TPUCL_OK;
}

static tpucl_status evaluate(void *user, const tpucl_op_context *context,
                             const tpucl_op_array *inputs, const tpucl_op_array *out)
{
    const float factor = (float)tpucl_op_float(context, "factor", 1);
    const int64_t columns = out->shape.dims[1];
    const float *x = inputs[0].data;
    float *y = out->data;
    (void)user;
    for (int64_t i = 0; i < tpucl_op_elements(context, -1); i++)
        y[i] = i % columns == 0 ? 0 : factor * x[i] * x[i - 1];
    return TPUCL_OK;
}

static const char kernel_source[] =
    "kernel void neighbours(TP_TENSOR(const float, x), TP_TENSOR(float, y), uint columns,\n"
    "                       float factor, uint grid_z)\n"
    "{\n"
    "    const uint c = get_global_id(0), core = TP_CORE(grid_z);\n"
    "    const ulong i = (ulong)get_global_id(1) * columns + c;\n"
    "    global const float *v = TP_AT(x, core) + i;\n"
    "    TP_AT(y, core)[i] = c == 0 ? 0.0f : tp_flush(factor * v[0] * v[-1]);\n"
    "}\n";

/* Multiplies in another order. */
static const char wrong_source[] =
    "kernel void neighbours(TP_TENSOR(const float, x), TP_TENSOR(float, y), uint columns,\n"
    "                       float factor, uint grid_z)\n"
    "{\n"
    "    const uint c = get_global_id(0), core = TP_CORE(grid_z);\n"
    "    const ulong i = (ulong)get_global_id(1) * columns + c;\n"
    "    global const float *v = TP_AT(x, core) + i;\n"
    "    TP_AT(y, core)[i] = c == 0 ? 0.0f : tp_flush(factor * (v[0] * v[-1]));\n"
    "}\n";

static tpucl_status launch(void *user, const tpucl_op_context *context, tpucl_op_launch *out)
{
    const tpucl_shape shape = tpucl_op_shape(context, -1);
    (void)user;
    out->global[0] = (size_t)shape.dims[1];
    out->global[1] = (size_t)shape.dims[0];
    out->global[2] = 1;
    out->scalars[0].u32 = (uint32_t)shape.dims[1];
    out->scalars[1] = (tpucl_op_scalar){true, 0, (float)tpucl_op_float(context, "factor", 1)};
    out->scalar_count = 2;
    return TPUCL_OK;
}

/* x without its last or first column, with a column of zeros on the other side. */
static tpucl_tensor shifted(tpucl_graph *g, tpucl_tensor x, bool to_the_left)
{
    const tpucl_shape shape = tpucl_graph_shape(g, x);
    const float nothing = 0;
    const int64_t low[] = {0, to_the_left ? -1 : 1}, high[] = {0, to_the_left ? 1 : -1};
    const int64_t interior[] = {0, 0};
    const tpucl_attribute attributes[] = {tpucl_attribute_ints("low", low, 2),
                                          tpucl_attribute_ints("high", high, 2),
                                          tpucl_attribute_ints("interior", interior, 2)};
    const tpucl_tensor inputs[] = {x, tpucl_graph_constant(g, tpucl_shape0(), &nothing)};
    cr_assert(shape.rank == 2);
    return tpucl_graph_apply(g, "pad", attributes, 3, inputs, 2);
}

/* d[c] x[c - 1] + d[c + 1] x[c + 1], times the factor; d's first column reaches nothing. */
static void gradient(void *user, const tpucl_op_context *context, tpucl_graph *g,
                     const tpucl_tensor *inputs, tpucl_tensor result, tpucl_tensor d_result,
                     tpucl_tensor *d_inputs)
{
    const tpucl_tensor x = inputs[0], product = tpucl_multiply(g, d_result, x);
    const tpucl_tensor left = tpucl_multiply(g, d_result, shifted(g, x, false));
    (void)user;
    (void)result;
    d_inputs[0] = tpucl_scale(g, tpucl_add(g, left, shifted(g, product, true)),
                              tpucl_op_float(context, "factor", 1), 0);
}

static double flops(void *user, const tpucl_op_context *context)
{
    (void)user;
    return 2.0 * (double)tpucl_op_elements(context, -1);
}

static tpucl_op neighbours(void)
{
    static const tpucl_op_attribute factor = {"factor", TPUCL_ATTRIBUTE_FLOAT, true};
    tpucl_op op = tpucl_op_default();
    op.name = "test.neighbours";
    op.attributes = &factor;
    op.attribute_count = 1;
    op.infer = infer;
    op.evaluate = evaluate;
    op.kernel_source = kernel_source;
    op.kernel_entry = "neighbours";
    op.launch = launch;
    op.gradient = gradient;
    op.flops = flops;
    return op;
}

/* neighbours of x times a number that the caller of the op names. */
static tpucl_tensor compose(void *user, const tpucl_op_context *context, tpucl_graph *g,
                            const tpucl_tensor *inputs)
{
    const tpucl_tensor wide =
        tpucl_scale(g, inputs[0], (double)tpucl_op_int(context, "times", 1), 0);
    cr_assert(user == NULL && tpucl_op_input_count(context) == 1);
    return tpucl_graph_apply(g, "test.neighbours", NULL, 0, &wide, 1);
}

static tpucl_op composite(void)
{
    static const tpucl_op_attribute times = {"times", TPUCL_ATTRIBUTE_INT, false};
    tpucl_op op = tpucl_op_default();
    op.name = "test.composite";
    op.attributes = &times;
    op.attribute_count = 1;
    op.compose = compose;
    return op;
}

static void register_both(void)
{
    const tpucl_op kernel = neighbours(), made = composite();
    EXPECT_OK(tpucl_op_register(&kernel));
    EXPECT_OK(tpucl_op_register(&made));
}

static void expect_refused(const tpucl_op *op, const char *text)
{
    EXPECT_FAILURE(tpucl_op_register(op), TPUCL_INVALID_ARGUMENT, text);
}

Test(op, what_cannot_be_registered)
{
    tpucl_op op = neighbours();
    EXPECT_OK(tpucl_op_register(&op));
    expect_refused(&op, "an op 'test.neighbours' already");
    op.name = "add";
    expect_refused(&op, "an op 'add' already");
    op.name = "two words";
    expect_refused(&op, "'two words'");
    op.name = "test.other";
    op.launch = NULL;
    expect_refused(&op, "needs 'compose' alone");
    op.launch = launch;
    op.compose = compose;
    expect_refused(&op, "needs 'compose' alone");
    op.compose = NULL;
    op.version = 2;
    expect_refused(&op, "version 2, expected 1");
    op.version = TPUCL_OP_VERSION;
    op.max_inputs = 9;
    expect_refused(&op, "1 to 9 inputs");
    op.max_inputs = 1;
    op.struct_size = 3;
    expect_refused(&op, "struct_size of 'tpucl_op' is 3");
    expect_refused(NULL, "'op' is NULL");
    op = composite();
    op.name = "test.neighbours";
    expect_refused(&op, "an op 'test.neighbours' already");
}

static void expect_graph_failure(tpucl_dtype dtype, tpucl_shape shape, const char *op,
                                 const tpucl_attribute *attribute, const char *text)
{
    tpucl_graph *graph;
    EXPECT_OK(tpucl_graph_create(&graph));
    const tpucl_tensor x = tpucl_graph_input(graph, "x", dtype, shape);
    tpucl_graph_apply(graph, op, attribute, attribute ? 1 : 0, &x, 1);
    EXPECT_FAILURE(tpucl_graph_check(graph), TPUCL_INVALID_ARGUMENT, text);
    tpucl_graph_destroy(graph);
}

Test(op, types_and_attributes_are_checked)
{
    register_both();
    const tpucl_attribute size = tpucl_attribute_int("size", 3);
    const tpucl_attribute factor = tpucl_attribute_text("factor", "3");
    expect_graph_failure(TPUCL_F32, tpucl_shape1(4), "test.neighbours", NULL, "expected a matrix");
    expect_graph_failure(TPUCL_F32, tpucl_shape2(4, 3), "test.neighbours", &size,
                         "takes no attribute 'size'");
    expect_graph_failure(TPUCL_F32, tpucl_shape2(4, 3), "test.neighbours", &factor, "'factor'");
    expect_graph_failure(TPUCL_F32, tpucl_shape2(4, 3), "test.composite", NULL, "'times'");
    tpucl_graph *graph;
    EXPECT_OK(tpucl_graph_create(&graph));
    const tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_S32, tpucl_shape2(4, 3));
    tpucl_graph_apply(graph, "test.neighbours", NULL, 0, &x, 1);
    EXPECT_FAILURE(tpucl_graph_check(graph), TPUCL_UNSUPPORTED,
                   "test.neighbours: its infer failed");
    tpucl_graph_destroy(graph);
}

static tp_node_id build_neighbours(tp_graph *graph, const tp_node_id *in)
{
    const tp_attr factor = {.name = "factor", .kind = TP_ATTR_FLOAT, .float_value = 1.5};
    return tp_graph_add(graph, "test.neighbours", in, 1, &factor, 1);
}

Test(op, gradient)
{
    register_both();
    tp_gradcheck((tp_gradcheck_case){.build = build_neighbours, .shapes = {"[3,5]"}});
}

Test(op, same_bits_on_the_device)
{
    register_both();
    tp_graph *graph;
    EXPECT_OK(tp_graph_create(tp_ops_registry(), &graph));
    const tp_node_id x = tp_graph_add_input(graph, "x", TP_F32, (tp_shape){2, {13, 21}});
    const tp_node_id y = build_neighbours(graph, &x);
    tp_graph_add_output(graph, "y", y);
    tp_graph_add_output(graph, "behind", tp_op_exponential(graph, tp_op_negate(graph, y)));
    EXPECT_OK(tp_graph_check(graph));
    program_run_expect_equal(
        graph, &(program_run_options){.cores = 3, .wave_cores = 2, .steps = 2, .seed = 5});
    tp_graph_destroy(graph);
}

/* The pieces of a program over the public calls: x and a mean of what `op` makes of it. */
static tpucl_status compile(tpucl_runtime *runtime, const char *op,
                            const tpucl_attribute *attribute)
{
    const int64_t axis = 1;
    const tpucl_attribute reduce[] = {tpucl_attribute_ints("axes", &axis, 1),
                                      tpucl_attribute_text("kind", "add")};
    tpucl_graph *graph = NULL;
    tpucl_program *program = NULL;
    EXPECT_OK(tpucl_graph_create(&graph));
    const tpucl_tensor x = tpucl_graph_input(graph, "x", TPUCL_F32, tpucl_shape2(4, 7));
    const tpucl_tensor y = tpucl_graph_apply(graph, op, attribute, attribute ? 1 : 0, &x, 1);
    tpucl_graph_metric(graph, "sum", tpucl_graph_apply(graph, "reduce", reduce, 2, &y, 1));
    const tpucl_status status = tpucl_program_compile(runtime, graph, NULL, &program);
    tpucl_program_destroy(program);
    tpucl_graph_destroy(graph);
    return status;
}

Test(op, a_kernel_with_other_bits_is_not_run)
{
    register_both();
    tpucl_op wrong = neighbours();
    wrong.name = "test.wrong";
    wrong.kernel_source = wrong_source;
    EXPECT_OK(tpucl_op_register(&wrong));
    tpucl_runtime *runtime = NULL;
    tpucl_runtime_options machine = tpucl_runtime_options_default();
    machine.topology = "{\"name\": \"two\", \"chips\": 1, \"cores_per_chip\": 2, \"cores\": 2}";
    EXPECT_OK(tpucl_runtime_create(&machine, &runtime));
    const tpucl_attribute times = tpucl_attribute_int("times", 3);
    const tpucl_attribute factor = tpucl_attribute_float("factor", (double)0.3f);
    EXPECT_OK(compile(runtime, "test.composite", &times));
    EXPECT_OK(compile(runtime, "test.neighbours", &factor));
    EXPECT_FAILURE(compile(runtime, "test.wrong", &factor), TPUCL_NOT_EXACT,
                   "the kernel of op 'test.wrong' does not give the bits of its evaluation");
    tpucl_runtime_destroy(runtime);
}
