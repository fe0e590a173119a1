/* SPDX-License-Identifier: Apache-2.0
 * Passes from graph to graph: text in, text out.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "compile/pass.h"
#include "core/alloc.h"
#include "graph/builder.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "ops/registry.h"

typedef tpucl_status (*pass_function)(const tp_graph *graph, tp_graph **out_graph);

static void expect_pass(pass_function pass, const char *before, const char *after)
{
    tp_graph *graph = NULL, *result = NULL;
    tp_str_builder out = {0};
    char *text = NULL;
    cr_assert_eq(tp_graph_parse(tp_ops_registry(), tp_view_of(before), &graph), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(pass(graph, &result), TPUCL_OK, "%s", tpucl_last_error()->message);
    tp_graph_print(result, &out);
    cr_assert_eq(tp_str_builder_finish(&out, &text, NULL), TPUCL_OK);
    cr_assert_str_eq(text, after);
    tp_free(text);
    tp_graph_destroy(result);
    tp_graph_destroy(graph);
}

Test(canonical, moves_that_do_nothing_vanish)
{
    expect_pass(
        tp_pass_canonical,
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2, 6]} : f32[2,6] \"x\"\n"
        "%1 = reshape(%0) {shape = [12]} : f32[12] \"\"\n"
        "%2 = reshape(%1) {shape = [3, 4]} : f32[3,4] \"\"\n"
        "%3 = reshape(%2) {shape = [2, 6]} : f32[2,6] \"\"\n"
        "%4 = transpose(%3) {axes = [0, 1]} : f32[2,6] \"\"\n"
        "%5 = slice(%4) {start = [0, 0], limit = [2, 6], strides = [1, 1]} : f32[2,6] \"\"\n"
        "%6 = convert(%5) {dtype = \"f32\"} : f32[2,6] \"\"\n"
        "%7 = negate(%6) : f32[2,6] \"y\"\n"
        "input \"x\" = %0\n"
        "output \"y\" = %7\n",
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2, 6]} : f32[2,6] \"x\"\n"
        "%1 = negate(%0) : f32[2,6] \"y\"\n"
        "input \"x\" = %0\n"
        "output \"y\" = %1\n");
}

Test(canonical, a_reshape_of_a_reshape_is_one)
{
    expect_pass(tp_pass_canonical,
                "graph 1\n"
                "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2, 6]} : f32[2,6] \"x\"\n"
                "%1 = reshape(%0) {shape = [12]} : f32[12] \"\"\n"
                "%2 = reshape(%1) {shape = [3, 4]} : f32[3,4] \"\"\n"
                "input \"x\" = %0\n"
                "output \"y\" = %2\n",
                "graph 1\n"
                "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2, 6]} : f32[2,6] \"x\"\n"
                "%1 = reshape(%0) {shape = [3, 4]} : f32[3,4] \"reshape\"\n"
                "input \"x\" = %0\n"
                "output \"y\" = %1\n");
}

Test(canonical, bf16_to_f32_and_back_is_nothing_but_f32_to_bf16_rounds)
{
    expect_pass(tp_pass_canonical,
                "graph 1\n"
                "%0 = input() {dtype = \"bf16\", name = \"x\", shape = [4]} : bf16[4] \"x\"\n"
                "%1 = convert(%0) {dtype = \"f32\"} : f32[4] \"up\"\n"
                "%2 = convert(%1) {dtype = \"bf16\"} : bf16[4] \"down\"\n"
                "%3 = convert(%2) {dtype = \"f32\"} : f32[4] \"up\"\n"
                "%4 = add(%3, %3) : f32[4] \"sum\"\n"
                "%5 = convert(%4) {dtype = \"bf16\"} : bf16[4] \"rounded\"\n"
                "%6 = convert(%5) {dtype = \"f32\"} : f32[4] \"wide\"\n"
                "input \"x\" = %0\n"
                "output \"y\" = %6\n",
                "graph 1\n"
                "%0 = input() {dtype = \"bf16\", name = \"x\", shape = [4]} : bf16[4] \"x\"\n"
                "%1 = convert(%0) {dtype = \"f32\"} : f32[4] \"up\"\n"
                "%2 = add(%1, %1) : f32[4] \"sum\"\n"
                "%3 = convert(%2) {dtype = \"bf16\"} : bf16[4] \"rounded\"\n"
                "%4 = convert(%3) {dtype = \"f32\"} : f32[4] \"wide\"\n"
                "input \"x\" = %0\n"
                "output \"y\" = %4\n");
}

/* Rows of a bf16 table, as an Embedding with bf16 weights takes them. */
Test(canonical, what_is_gathered_is_widened_afterwards)
{
    tp_graph *graph = NULL, *passed = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    const tp_node_id table = tp_graph_add_input(graph, "t", TP_BF16, (tp_shape){2, {50, 3}});
    const tp_node_id rows = tp_graph_add_input(graph, "i", TP_S32, (tp_shape){1, {7}});
    const tp_node_id wide = tp_op_convert(graph, table, TP_F32);
    tp_graph_add_output(graph, "y", tp_op_take(graph, wide, rows, 0));
    cr_assert_eq(tp_pass_canonical(graph, &passed), TPUCL_OK);
    const tp_node *y = tp_graph_node(passed, passed->outputs[0].node);
    cr_assert(tp_node_is(y, "convert") && y->dtype == TP_F32 && y->shape.dims[0] == 7);
    cr_assert(tp_node_is(tp_graph_node(passed, y->inputs[0]), "gather"));
    for (tp_node_id id = 0; id < passed->node_count; id++)
        cr_expect(tp_graph_node(passed, id)->shape.dims[0] != 50 ||
                  tp_node_is(tp_graph_node(passed, id), "input"));
    tp_graph_destroy(passed);
    tp_graph_destroy(graph);
}

Test(canonical, equal_nodes_merge_dead_ones_go_inputs_stay)
{
    expect_pass(
        tp_pass_canonical,
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"x\", shape = [4]} : f32[4] \"x\"\n"
        "%1 = input() {dtype = \"f32\", name = \"unused\", shape = [4]} : f32[4] \"unused\"\n"
        "%2 = tanh(%0) : f32[4] \"a\"\n"
        "%3 = tanh(%0) : f32[4] \"b\"\n"
        "%4 = multiply(%2, %3) : f32[4] \"c\"\n"
        "%5 = negate(%1) : f32[4] \"dead\"\n"
        "input \"x\" = %0\n"
        "input \"unused\" = %1\n"
        "output \"y\" = %4\n",
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"x\", shape = [4]} : f32[4] \"x\"\n"
        "%1 = input() {dtype = \"f32\", name = \"unused\", shape = [4]} : f32[4] \"unused\"\n"
        "%2 = tanh(%0) : f32[4] \"a\"\n"
        "%3 = multiply(%2, %2) : f32[4] \"c\"\n"
        "input \"x\" = %0\n"
        "input \"unused\" = %1\n"
        "output \"y\" = %3\n");
}

/* 2 * 3 + 2 = 8, also where two elements are equal. */
Test(canonical, scalar_constants_fold_and_splats_shrink)
{
    expect_pass(
        tp_pass_canonical,
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2]} : f32[2] \"x\"\n"
        "%1 = constant() {dtype = \"f32\", shape = [], value = x\"00000040\"} : f32[] \"two\"\n"
        "%2 = constant() {dtype = \"f32\", shape = [], value = x\"00004040\"} : f32[] \"three\"\n"
        "%3 = multiply(%1, %2) : f32[] \"six\"\n"
        "%4 = broadcast_in_dim(%3) {shape = [2], axes = []} : f32[2] \"\"\n"
        "%5 = constant() {dtype = \"f32\", shape = [2], value = x\"0000004000000040\"} : f32[2] "
        "\"\"\n"
        "%6 = add(%4, %5) : f32[2] \"\"\n"
        "%7 = add(%6, %0) : f32[2] \"y\"\n"
        "input \"x\" = %0\n"
        "output \"y\" = %7\n",
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2]} : f32[2] \"x\"\n"
        "%1 = constant() {dtype = \"f32\", shape = [], value = x\"00000041\"} : f32[] "
        "\"constant\"\n"
        "%2 = broadcast_in_dim(%1) {shape = [2], axes = []} : f32[2] \"broadcast_in_dim\"\n"
        "%3 = add(%2, %0) : f32[2] \"y\"\n"
        "input \"x\" = %0\n"
        "output \"y\" = %3\n");
}

/* The mask of relu's gradient is asked of the bf16 result, so that the f32 sum before it can die. */
Test(canonical, the_mask_of_relu_comes_from_its_result)
{
    expect_pass(
        tp_pass_canonical,
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2]} : f32[2] \"x\"\n"
        "%1 = constant() {dtype = \"f32\", shape = [], value = x\"00000000\"} : f32[] \"zero\"\n"
        "%2 = broadcast_in_dim(%1) {shape = [2], axes = []} : f32[2] \"\"\n"
        "%3 = maximum(%0, %2) : f32[2] \"relu\"\n"
        "%4 = convert(%3) {dtype = \"bf16\"} : bf16[2] \"h\"\n"
        "%5 = compare(%0, %2) {direction = \"GT\"} : pred[2] \"mask\"\n"
        "input \"x\" = %0\n"
        "output \"h\" = %4\n"
        "output \"mask\" = %5\n",
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2]} : f32[2] \"x\"\n"
        "%1 = constant() {dtype = \"f32\", shape = [], value = x\"00000000\"} : f32[] \"zero\"\n"
        "%2 = broadcast_in_dim(%1) {shape = [2], axes = []} : f32[2] \"\"\n"
        "%3 = maximum(%0, %2) : f32[2] \"relu\"\n"
        "%4 = convert(%3) {dtype = \"bf16\"} : bf16[2] \"h\"\n"
        "%5 = constant() {dtype = \"bf16\", shape = [], value = x\"0000\"} : bf16[] \"constant\"\n"
        "%6 = broadcast_in_dim(%5) {shape = [2], axes = []} : bf16[2] \"broadcast_in_dim\"\n"
        "%7 = compare(%4, %6) {direction = \"GT\"} : pred[2] \"compare\"\n"
        "input \"x\" = %0\n"
        "output \"h\" = %4\n"
        "output \"mask\" = %7\n");
}

/* Contracting axes 0 and 2 of [2,3,4] needs two strides: a transpose makes one of them. */
Test(layout, operands_get_one_stride_per_role)
{
    expect_pass(
        tp_pass_layout,
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"a\", shape = [2, 3, 4]} : f32[2,3,4] \"a\"\n"
        "%1 = input() {dtype = \"f32\", name = \"b\", shape = [2, 4, 5]} : f32[2,4,5] \"b\"\n"
        "%2 = dot_general(%0, %1) {lhs_contracting_dimensions = [0, 2], rhs_contracting_dimensions "
        "= [0, 1], precision = \"default\"} : f32[3,5] \"y\"\n"
        "input \"a\" = %0\n"
        "input \"b\" = %1\n"
        "output \"y\" = %2\n",
        "graph 1\n"
        "%0 = input() {dtype = \"f32\", name = \"a\", shape = [2, 3, 4]} : f32[2,3,4] \"a\"\n"
        "%1 = input() {dtype = \"f32\", name = \"b\", shape = [2, 4, 5]} : f32[2,4,5] \"b\"\n"
        "%2 = transpose(%0) {axes = [1, 0, 2]} : f32[3,2,4] \"transpose\"\n"
        "%3 = dot_general(%2, %1) {lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
        "lhs_contracting_dimensions = [1, 2], rhs_contracting_dimensions = [0, 1], precision = "
        "\"default\"} : f32[3,5] \"dot_general\"\n"
        "input \"a\" = %0\n"
        "input \"b\" = %1\n"
        "output \"y\" = %3\n");
}

/* One node as two outputs, an input as an output: copies. all_reduce and reshape change places. */
Test(layout, every_port_has_a_node_of_its_own)
{
    expect_pass(tp_pass_layout,
                "graph 1\n"
                "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2, 2]} : f32[2,2] \"x\"\n"
                "%1 = negate(%0) : f32[2,2] \"n\"\n"
                "%2 = reshape(%1) {shape = [4]} : f32[4] \"flat\"\n"
                "%3 = all_reduce(%2) {kind = \"add\"} : f32[4] \"sum\"\n"
                "input \"x\" = %0\n"
                "output \"a\" = %3\n"
                "output \"b\" = %1\n"
                "output \"c\" = %0\n",
                "graph 1\n"
                "%0 = input() {dtype = \"f32\", name = \"x\", shape = [2, 2]} : f32[2,2] \"x\"\n"
                "%1 = negate(%0) : f32[2,2] \"n\"\n"
                "%2 = reshape(%1) {shape = [4]} : f32[4] \"flat\"\n"
                "%3 = all_reduce(%1) {kind = \"add\"} : f32[2,2] \"all_reduce\"\n"
                "%4 = reshape(%3) {shape = [4]} : f32[4] \"reshape\"\n"
                "%5 = reshape(%1) {shape = [2, 2]} : f32[2,2] \"reshape\"\n"
                "%6 = reshape(%0) {shape = [2, 2]} : f32[2,2] \"reshape\"\n"
                "input \"x\" = %0\n"
                "output \"a\" = %4\n"
                "output \"b\" = %5\n"
                "output \"c\" = %6\n");
}
