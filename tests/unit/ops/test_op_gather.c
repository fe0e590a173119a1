/* SPDX-License-Identifier: Apache-2.0
 * gather and its wrappers: bits against tests/golden/gen_memory.py, gradients against differences. */
#include "harness/gradcheck.h"
#include "harness/graph_run.h"
#include "unit/ops/memory_cases.h"

static tp_node_id operand_of(graph_run *run, const memory_case *c)
{
    return graph_run_input(run, TP_F32, 20, c->operand.rank, c->operand.dims);
}

Test(op_gather, bits)
{
    for (int i = 0; i < MEMORY_CASES; ++i) {
        const memory_case *c = &memory_cases[i];
        for (int rule = 0; rule < 2; ++rule) {
            graph_run run;
            graph_run_begin(&run);
            const tp_node_id x = operand_of(&run, c), at = memory_case_indices(run.graph, c);
            const tp_node_id y =
                tp_op_gather(run.graph, x, at, &c->dims, c->slices, rule ? "zero" : "clamp");
            EXPECT_OK(tp_graph_check(run.graph));
            cr_assert(tp_shape_equal(&tp_graph_node(run.graph, y)->shape, &c->dense), "%s",
                      c->name);
            graph_run_expect_bits(&run, y, c->gathered[rule], tp_shape_elems(&c->dense));
            graph_run_end(&run);
        }
    }
}

/* take and take_along_axis are the first three cases. */
Test(op_gather, wrappers)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const memory_case *rows = &memory_cases[0], *middle = &memory_cases[1],
                      *along = &memory_cases[2];
    graph_run_expect_bits(&run,
                          tp_op_take(g, operand_of(&run, rows), memory_case_indices(g, rows), 0),
                          rows->gathered[0], 60);
    graph_run_expect_bits(
        &run, tp_op_take(g, operand_of(&run, middle), memory_case_indices(g, middle), 1),
        middle->gathered[0], 60);
    graph_run_expect_bits(
        &run, tp_op_take_along_axis(g, operand_of(&run, along), memory_case_indices(g, along), 1),
        along->gathered[0], 24);
    graph_run_end(&run);
}

Test(op_gather, one_hot)
{
    const int32_t classes[] = {2, 0, -1, 3, 4};
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id at = tp_op_constant(run.graph, TP_S32, (tp_shape){1, {5}}, classes);
    const tp_host_tensor *y = graph_run_eval(&run, tp_op_one_hot(run.graph, at, 4, TP_F32));
    cr_assert(y->shape.rank == 2 && y->shape.dims[0] == 5 && y->shape.dims[1] == 4);
    for (int i = 0; i < 20; ++i)
        cr_assert_eq(((const float *)y->data)[i], classes[i / 4] == i % 4, "element %d", i);
    graph_run_end(&run);
}

/* Elements keep their bits in every dtype, and u32 indices above 2^31 are large, not negative. */
Test(op_gather, dtypes_and_unsigned_indices)
{
    static const uint8_t bytes[] = {1, 0, 1, 7};
    const uint32_t places[] = {3, 0xffffffffu, 0};
    for (int dtype = 0; dtype < TP_DTYPE_COUNT; ++dtype) {
        uint8_t data[16] = {0};
        const size_t size = tp_dtype_size((tp_dtype)dtype);
        for (size_t i = 0; i < 4; ++i)
            data[size * i + size - 1] = dtype == TP_PRED ? bytes[i] & 1 : bytes[i];
        graph_run run;
        graph_run_begin(&run);
        const tp_node_id x = tp_op_constant(run.graph, (tp_dtype)dtype, (tp_shape){1, {4}}, data);
        const tp_node_id at = tp_op_constant(run.graph, TP_U32, (tp_shape){1, {3}}, places);
        const tp_host_tensor *y = graph_run_eval(&run, tp_op_take(run.graph, x, at, 0));
        for (size_t i = 0; i < 3; ++i)
            cr_assert_arr_eq((const uint8_t *)y->data + size * i,
                             data + size * (places[i] < 4 ? places[i] : 3), size);
        graph_run_end(&run);
    }
}

static tp_node_id squared_gather(tp_graph *graph, tp_node_id x, int which, const char *rule)
{
    const memory_case *c = &memory_cases[which];
    const tp_node_id y =
        tp_op_gather(graph, x, memory_case_indices(graph, c), &c->dims, c->slices, rule);
    return tp_op_multiply(graph, y, y);
}
#define BUILD(which, rule)                                                                         \
    static tp_node_id build_##which##_##rule(tp_graph *graph, const tp_node_id *in)                \
    {                                                                                              \
        return squared_gather(graph, in[0], which, #rule);                                         \
    }
BUILD(0, clamp)
BUILD(1, zero)
BUILD(2, clamp)
BUILD(3, clamp)
BUILD(3, zero)
BUILD(4, zero)

Test(op_gather, gradients)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_0_clamp, .shapes = {"[11,5]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_1_zero, .shapes = {"[3,7,4]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_2_clamp, .shapes = {"[3,6,4]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_3_clamp, .shapes = {"[4,3,5]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_3_zero, .shapes = {"[4,3,5]"}});
    tp_gradcheck((tp_gradcheck_case){.build = build_4_zero, .shapes = {"[2,4,3,3]"}});
}

static void expect_mistake(void (*change)(memory_case *c), const char *part)
{
    graph_run run;
    graph_run_begin(&run);
    memory_case c = memory_cases[4];
    change(&c);
    const tp_node_id x = operand_of(&run, &c), at = memory_case_indices(run.graph, &c);
    tp_op_gather(run.graph, x, at, &c.dims, c.slices, "clamp");
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT, part);
    graph_run_end(&run);
}

static void wrong_batch(memory_case *c)
{
    c->dims.index_batch[0] = 0;
    c->dims.index_batch[1] = 1;
}
static void wrong_map(memory_case *c)
{
    c->dims.map[1] = 2;
}
static void wrong_vector_dim(memory_case *c)
{
    c->dims.vector_dim = 5;
}
static void batch_is_indexed(memory_case *c)
{
    c->dims.map[0] = 3;
}
static void large_slice(memory_case *c)
{
    c->slices[1] = 7;
}
static void large_batch_slice(memory_case *c)
{
    c->slices[0] = 2;
}
static void missing_window(memory_case *c)
{
    c->dims.window_count = 1;
}
static void window_outside(memory_case *c)
{
    c->dims.window[1] = 5;
}
static void falling_window(memory_case *c)
{
    c->dims.window[0] = 4;
    c->dims.window[1] = 0;
}

Test(op_gather, mistakes)
{
    expect_mistake(wrong_batch, "batching dim 0 of the operand has 2 elements, its partner 0");
    expect_mistake(wrong_map, "indexed dim 2 is named twice");
    expect_mistake(wrong_vector_dim, "index_vector_dim 5, expected 0 to 4");
    expect_mistake(batch_is_indexed, "operand dim 3 is a batching dim");
    expect_mistake(large_slice, "slices have 7 elements in operand dim 1, expected 0 to 4");
    expect_mistake(large_batch_slice, "expected 0 to 1: it is collapsed or batching");
    expect_mistake(missing_window, "1 window, 0 collapsed and 2 batching dims");
    expect_mistake(window_outside, "window dim 5, expected 0 to 4");
    expect_mistake(falling_window, "window dim 0 comes after 4");
}
