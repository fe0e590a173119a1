/* SPDX-License-Identifier: Apache-2.0
 * Building graphs: types, names, broadcasts, and the sentences that mistakes give. */
#include <criterion/criterion.h>
#include <string.h>

#include "graph/attrs.h"
#include "graph/builder.h"
#include "ops/registry.h"

static tp_graph *new_graph(void)
{
    tp_graph *graph;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    return graph;
}

static tp_node_id input(tp_graph *graph, const char *name, tp_dtype dtype, const char *shape_text)
{
    tp_shape shape;
    cr_assert_eq(tp_shape_parse(shape_text, &shape), TPUCL_OK);
    return tp_graph_add_input(graph, name, dtype, shape);
}

/* The graph must have failed with all of these in its sentence. */
static void expect_mistake(tp_graph *graph, const char *const *parts)
{
    cr_expect_eq(tp_graph_check(graph), TPUCL_INVALID_ARGUMENT);
    for (; *parts; ++parts)
        cr_expect(strstr(tpucl_last_error()->message, *parts), "'%s' is not in '%s'", *parts,
                  tpucl_last_error()->message);
    tp_graph_destroy(graph);
}
#define EXPECT_MISTAKE(graph, ...) expect_mistake((graph), (const char *const[]){__VA_ARGS__, NULL})

Test(builder, infers_types)
{
    tp_graph *g = new_graph();
    const tp_node_id a = input(g, "a", TP_F32, "[4,3]"), b = input(g, "b", TP_F32, "[3]");
    const tp_node_id sum = tp_op_add(g, a, b), less = tp_op_compare(g, "LT", a, sum);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK);
    cr_expect_eq(g->nodes[sum].dtype, TP_F32);
    cr_expect_eq(g->nodes[sum].shape.rank, 2);
    cr_expect_eq(g->nodes[sum].shape.dims[0], 4);
    cr_expect_eq(g->nodes[less].dtype, TP_PRED);
    cr_expect_str_eq(g->nodes[g->nodes[sum].inputs[1]].def->name, "broadcast_in_dim");
    tp_graph_destroy(g);
}

Test(builder, first_mistake_sticks)
{
    tp_graph *g = new_graph();
    const tp_node_id a = input(g, "a", TP_F32, "[4,3]"), b = input(g, "b", TP_F32, "[2,3]");
    const char *old_scope = tp_graph_push_scope(g, "dense_1");
    const tp_node_id bad = tp_op_add(g, a, b);
    cr_expect_eq(bad, TP_NO_NODE);
    const int32_t count = g->node_count;
    cr_expect_eq(tp_op_multiply(g, bad, a), TP_NO_NODE);
    cr_expect_eq(tp_graph_add_input(g, "c", TP_F32, (tp_shape){0}), TP_NO_NODE);
    tp_graph_add_output(g, "y", bad);
    cr_expect_eq(g->node_count, count);
    tp_graph_pop_scope(g, old_scope);
    EXPECT_MISTAKE(g, "dense_1", "add", "[4,3]", "[2,3]");
}

Test(builder, scopes_name_nodes_and_variables)
{
    tp_graph *g = new_graph();
    const char *outer = tp_graph_push_scope(g, "model"), *inner = tp_graph_push_scope(g, "dense");
    const tp_variable kernel = {.name = "kernel", .dtype = TP_F32, .shape = {1, {3}}};
    const tp_node_id w = tp_graph_add_variable(g, &kernel), twice = tp_op_add(g, w, w);
    tp_graph_pop_scope(g, inner);
    const tp_node_id after = tp_op_negate(g, twice);
    tp_graph_pop_scope(g, outer);
    cr_expect_str_eq(g->variables[0].name, "model/dense/kernel");
    cr_expect_str_eq(g->nodes[w].name, "model/dense/kernel");
    cr_expect_str_eq(g->nodes[twice].name, "model/dense/add");
    cr_expect_str_eq(g->nodes[after].name, "model/negate");
    cr_expect_eq(tp_graph_find_variable(g, "model/dense/kernel"), 0);
    cr_expect_eq(tp_graph_find_variable(g, "kernel"), -1);
    cr_expect_eq(tp_graph_variable_of(g, twice), -1);
    tp_graph_destroy(g);
}

Test(builder, mixed_dtypes)
{
    tp_graph *g = new_graph();
    const tp_node_id a = input(g, "a", TP_F32, "[4]"), b = input(g, "b", TP_BF16, "[4]");
    tp_op_multiply(g, a, b);
    EXPECT_MISTAKE(g, "multiply", "f32", "bf16", "convert");
}

Test(builder, unsupported_dtype)
{
    tp_graph *g = new_graph();
    tp_op_tanh(g, input(g, "a", TP_S32, "[4]"));
    EXPECT_MISTAKE(g, "tanh", "s32", "f32, bf16");
}

Test(builder, matmul_shapes)
{
    tp_graph *g = new_graph();
    tp_op_matmul(g, input(g, "a", TP_F32, "[4,7]"), input(g, "b", TP_F32, "[8,3]"), "default");
    EXPECT_MISTAKE(g, "dot_general", "[4,7]", "[8,3]");
}

Test(builder, reshape_count)
{
    tp_graph *g = new_graph();
    tp_op_reshape(g, input(g, "a", TP_F32, "[4,7]"), (tp_shape){1, {27}});
    EXPECT_MISTAKE(g, "reshape", "[4,7]", "28", "[27]");
}

Test(builder, slice_outside)
{
    tp_graph *g = new_graph();
    const int64_t start[] = {2}, limit[] = {9};
    tp_op_slice(g, input(g, "a", TP_F32, "[8]"), start, limit, NULL);
    EXPECT_MISTAKE(g, "slice", "[2, 9)", "axis 0", "8 elements");
}

Test(builder, unknown_op_and_attribute)
{
    tp_graph *g = new_graph();
    tp_graph_add(g, "softmax", NULL, 0, NULL, 0);
    EXPECT_MISTAKE(g, "no op 'softmax'");

    g = new_graph();
    tp_node_id a = input(g, "a", TP_F32, "[8]");
    const tp_attr axis = tp_attr_int("axis", 1);
    tp_graph_add(g, "negate", &a, 1, &axis, 1);
    EXPECT_MISTAKE(g, "'negate' takes no attribute 'axis'");

    g = new_graph();
    a = input(g, "a", TP_F32, "[8]");
    tp_graph_add(g, "reshape", &a, 1, NULL, 0);
    EXPECT_MISTAKE(g, "'reshape' needs attribute 'shape'");

    g = new_graph();
    a = input(g, "a", TP_F32, "[8]");
    tp_op_compare(g, "<", a, a);
    EXPECT_MISTAKE(g, "direction", "'<'", "EQ|NE|LT");

    g = new_graph();
    a = input(g, "a", TP_F32, "[8]");
    const tp_attr wrong_kind = tp_attr_int("shape", 8);
    tp_graph_add(g, "reshape", &a, 1, &wrong_kind, 1);
    EXPECT_MISTAKE(g, "shape", "int", "ints");
}

Test(builder, wrong_number_of_inputs)
{
    tp_graph *g = new_graph();
    const tp_node_id a[] = {input(g, "a", TP_F32, "[8]"), 0, 0};
    tp_graph_add(g, "add", a, 3, NULL, 0);
    EXPECT_MISTAKE(g, "'add' takes 2 to 2 inputs, found 3");

    g = new_graph();
    const tp_node_id missing = 17;
    tp_graph_add(g, "negate", &missing, 1, NULL, 0);
    EXPECT_MISTAKE(g, "node 17");
}

Test(builder, updates_and_outputs)
{
    tp_graph *g = new_graph();
    const tp_variable w = {.name = "w", .dtype = TP_F32, .shape = {1, {3}}};
    tp_node_id id = tp_graph_add_variable(g, &w);
    tp_graph_add_update(g, id, tp_op_reduce(g, id, "add", NULL, 0));
    EXPECT_MISTAKE(g, "update of 'w' is f32[], expected f32[3]");

    g = new_graph();
    id = tp_graph_add_variable(g, &w);
    tp_graph_add_update(g, id, id);
    tp_graph_add_update(g, id, id);
    EXPECT_MISTAKE(g, "'w' is updated twice");

    g = new_graph();
    tp_graph_add_variable(g, &w);
    tp_graph_add_variable(g, &w);
    EXPECT_MISTAKE(g, "variable 'w' is added twice");

    g = new_graph();
    tp_graph_add_output(g, "y", 5);
    EXPECT_MISTAKE(g, "output 'y' is node 5");
}

static const void *scalar_data(tp_graph *g, tp_dtype dtype, double value)
{
    const tp_node_id id = tp_op_scalar(g, dtype, value);
    cr_assert_neq(id, TP_NO_NODE);
    return tp_node_attr(&g->nodes[id], "value")->data;
}

Test(builder, scalars)
{
    tp_graph *g = new_graph();
    cr_expect_eq(*(const uint32_t *)scalar_data(g, TP_F32, -1e-40), 0x80000000u);
    cr_expect_eq(*(const uint16_t *)scalar_data(g, TP_BF16, 1.0 / 3), 0x3eab);
    cr_expect_eq(*(const int32_t *)scalar_data(g, TP_S32, -5), -5);
    cr_expect_eq(*(const uint32_t *)scalar_data(g, TP_U32, 4294967295.0), 4294967295u);
    tp_op_scalar(g, TP_U8, 256);
    EXPECT_MISTAKE(g, "256", "u8");
}

Test(builder, constants_must_be_flushed)
{
    tp_graph *g = new_graph();
    const float values[] = {1.0f, 1e-40f};
    tp_op_constant(g, TP_F32, (tp_shape){1, {2}}, values);
    EXPECT_MISTAKE(g, "element 1", "subnormal");

    g = new_graph();
    const uint8_t flags[] = {0, 2};
    tp_op_constant(g, TP_PRED, (tp_shape){1, {2}}, flags);
    EXPECT_MISTAKE(g, "element 1", "neither 0 nor 1");
}

Test(builder, replicated)
{
    tp_graph *g = new_graph();
    const tp_variable w = {.name = "w", .dtype = TP_F32, .shape = {1, {3}}};
    const tp_node_id ids[] = {tp_graph_add_variable(g, &w), input(g, "x", TP_F32, "[3]"),
                              tp_op_uniform(g, TP_F32, (tp_shape){1, {3}}, 0), tp_op_step(g)};
    const tp_node_id mixed = tp_op_add(g, ids[0], ids[1]), sum = tp_op_all_reduce(g, mixed);
    const tp_node_id after = tp_op_add(g, ids[0], sum);
    bool is_replicated[32];
    cr_assert_leq(g->node_count, 32);
    tp_graph_mark_replicated(g, is_replicated);
    cr_expect(is_replicated[ids[0]]);
    cr_expect_not(is_replicated[ids[1]]);
    cr_expect_not(is_replicated[ids[2]]);
    cr_expect(is_replicated[ids[3]]);
    cr_expect_not(is_replicated[mixed]);
    cr_expect(is_replicated[sum]);
    cr_expect(is_replicated[after]);
    tp_graph_destroy(g);
}
