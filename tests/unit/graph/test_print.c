/* SPDX-License-Identifier: Apache-2.0
 * The text form: exact round trips, and refusal of everything else. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "graph/attrs.h"
#include "graph/hex_float.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "harness/alloc_loop.h"
#include "harness/sample_graph.h"
#include "ops/registry.h"

static char *print(const tp_graph *graph)
{
    tp_str_builder builder = {0};
    char *text;
    tp_graph_print(graph, &builder);
    cr_assert_eq(tp_str_builder_finish(&builder, &text, NULL), TPUCL_OK);
    return text;
}

Test(print, round_trip_of_a_training_step)
{
    tp_graph *graph = tp_sample_graph(&tp_sample_small), *parsed;
    char *text = print(graph);
    cr_assert_eq(tp_graph_parse(tp_ops_registry(), tp_view_of(text), &parsed), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    char *again = print(parsed);
    cr_expect_str_eq(again, text);
    cr_expect_eq(parsed->node_count, graph->node_count);
    cr_expect_eq(parsed->update_count, 4);
    cr_expect_eq(parsed->variables[0].init, TP_INIT_UNIFORM);
    cr_expect_eq(parsed->variables[0].init_b, graph->variables[0].init_b);
    cr_expect(parsed->variables[0].is_trainable);
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        cr_expect(tp_attrs_equal(graph->nodes[id].attrs, graph->nodes[id].attr_count,
                                 parsed->nodes[id].attrs, parsed->nodes[id].attr_count));
    tp_free(text);
    tp_free(again);
    tp_graph_destroy(graph);
    tp_graph_destroy(parsed);
}

Test(print, names_with_odd_characters)
{
    tp_graph *graph, *parsed;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    const char *name = "a\"b\\c\n\t\x01\xc3\xa4 # {";
    tp_graph_add_output(graph, name, tp_graph_add_input(graph, name, TP_BF16, (tp_shape){0}));
    char *text = print(graph);
    cr_assert_eq(tp_graph_parse(tp_ops_registry(), tp_view_of(text), &parsed), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_expect_str_eq(parsed->inputs[0].name, name);
    cr_expect_str_eq(parsed->outputs[0].name, name);
    tp_free(text);
    tp_graph_destroy(graph);
    tp_graph_destroy(parsed);
}

Test(print, comments_and_blank_lines)
{
    tp_graph *parsed;
    const char *text = "\n# a graph\ngraph 1  # version\n\n  %0 = step() : s32[] \"\"\r\n"
                       "output \"step\" = %0 # the end";
    cr_assert_eq(tp_graph_parse(tp_ops_registry(), tp_view_of(text), &parsed), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_expect_eq(parsed->node_count, 1);
    cr_expect_eq(parsed->output_count, 1);
    tp_graph_destroy(parsed);
}

/* Each must be refused with these words. */
static const struct {
    const char *text, *words;
} refused[] = {
    {"", "line 1: expected 'graph 1', found the end of the text"},
    {"graph 2\n", "found 'graph 2'"},
    {"graph 1 x\n", "line 1: expected the end of the line, found 'x'"},
    {"graph 1\n%1 = step() : s32[] \"\"\n", "line 2: node %1, expected %0"},
    {"graph 1\n%0 = jump() : s32[] \"\"\n", "there is no op 'jump'"},
    {"graph 1\n%0 = step() : f32[] \"\"\n", "the type that the op gives, s32[], found 'f32[]"},
    {"graph 1\n%0 = step(%0) : s32[] \"\"\n", "there is no node %0 before this line"},
    {"graph 1\n%0 = step() {a = 1} : s32[] \"\"\n", "takes no attribute 'a'"},
    {"graph 1\n%0 = step() {a = [1, } : s32[] \"\"\n", "expected an integer, found '} : s32"},
    {"graph 1\n%0 = step() {a = 1 b = 2} : s32[] \"\"\n", "expected ',', found 'b = 2"},
    {"graph 1\n%0 = step() : s32[] \"abc\n", "'\"' at the end of the text"},
    {"graph 1\n%0 = step() : s32[] \"a\\q\"\n", "one of"},
    {"graph 1\n%0 = step() : s32[] \"a\\x00\"\n", "one of"},
    {"graph 1\n%99999999999999999999 = step() : s32[] \"\"\n", "expected an integer"},
    {"graph 1\n%0 = constant() {dtype = \"f32\", shape = [], value = x\"00\"} : f32[] \"\"\n",
     "needs 4 bytes, found 1"},
    {"graph 1\n%0 = constant() {dtype = \"f32\", shape = [], value = x\"0\"} : f32[] \"\"\n",
     "even number"},
    {"graph 1\n%0 = constant() {dtype = \"f32\", shape = [-1], value = x\"\"} : f32[] \"\"\n",
     "-1"},
    {"graph 1\n%0 = constant() {dtype = \"f32\", shape = [1099511627776, 4], value = x\"\"} : "
     "f32[] \"\"\n",
     "line 2"},
    {"graph 1\n%0 = iota() {dtype = \"f32\", shape = [2], axis = 0x1p+0} : f32[2] \"\"\n",
     "'axis' of 'iota' is of kind float, expected int"},
    {"graph 1\n%0 = input() {dtype = \"f32\", name = \"x\", shape = []} : f32[] \"\"\n",
     "has no entry"},
    {"graph 1\n%0 = input() {dtype = \"f32\", name = \"x\", shape = []} : f32[] \"\"\ninput \"y\" "
     "= %0\n",
     "the name in node %0 is 'x'"},
    {"graph 1\n%0 = step() : s32[] \"\"\ninput \"x\" = %0\n", "line 3"},
    {"graph 1\n%0 = step() : s32[] \"\"\nupdate \"w\" = %0\n", "no variable above it"},
    {"graph 1\n%0 = step() : s32[] \"\"\noutput \"a\" = %0\noutput \"a\" = %0\n",
     "'a' is added twice"},
    {"graph 1\n%0 = variable() {dtype = \"f32\", name = \"w\", shape = []} : f32[] \"\"\n"
     "variable \"w\" = %0 spiral(0x0p+0, 0x0p+0)\n",
     "no initialiser 'spiral'"},
    {"graph 1\n%0 = variable() {dtype = \"f32\", name = \"w\", shape = []} : f32[] \"\"\n"
     "variable \"w\" = %0 zeros(0.5, 0x0p+0)\n",
     "hexadecimal float"},
    {"graph 1\n%0 = variable() {dtype = \"f32\", name = \"w\", shape = []} : f32[] \"\"\n"
     "variable \"w\" = %0 zeros(0x0p+0, 0x0p+0)\n"
     "%1 = uniform() {dtype = \"f32\", shape = [], stream = 0} : f32[] \"\"\nupdate \"w\" = %1\n",
     "differs from core to core"},
};

Test(print, refuses_wrong_text)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; ++i) {
        tp_graph *parsed = NULL;
        tp_error_clear();
        cr_expect_eq(tp_graph_parse(tp_ops_registry(), tp_view_of(refused[i].text), &parsed),
                     TPUCL_CORRUPT_DATA, "accepted: %s", refused[i].text);
        cr_expect(strstr(tpucl_last_error()->message, refused[i].words), "'%s' is not in '%s'",
                  refused[i].words, tpucl_last_error()->message);
    }
}

/* Every truncation and every replaced byte of a valid text gives an answer, never a crash. */
Test(print, survives_damage)
{
    tp_graph *graph = tp_sample_graph(&tp_sample_small), *parsed;
    char *text = print(graph);
    tp_graph_destroy(graph);
    const size_t length = strlen(text);
    uint32_t state = 1;
    for (size_t i = 0; i < length; i += 7) {
        if (tp_graph_parse(tp_ops_registry(), (tp_view){text, i}, &parsed) == TPUCL_OK)
            tp_graph_destroy(parsed);
        state = state * 1664525u + 1013904223u;
        const char kept = text[i];
        text[i] = (char)(state >> 24);
        if (tp_graph_parse(tp_ops_registry(), (tp_view){text, length}, &parsed) == TPUCL_OK)
            tp_graph_destroy(parsed);
        text[i] = kept;
    }
    tp_free(text);
}

static tpucl_status parse_once(void *user)
{
    tp_graph *parsed;
    TP_TRY(tp_graph_parse(tp_ops_registry(), tp_view_of(user), &parsed));
    tp_str_builder builder = {0};
    char *text;
    tp_graph_print(parsed, &builder);
    tp_graph_destroy(parsed);
    TP_TRY(tp_str_builder_finish(&builder, &text, NULL));
    tp_free(text);
    return TPUCL_OK;
}

Test(print, survives_lack_of_memory)
{
    tp_sample_options options = tp_sample_small;
    options.dropout = 0;
    tp_graph *graph = tp_sample_graph(&options);
    char *text = print(graph), *copy = strdup(text);
    tp_free(text);
    tp_graph_destroy(graph);
    alloc_loop_run(parse_once, copy);
    free(copy);
}

Test(print, dot)
{
    tp_graph *graph = tp_sample_graph(&tp_sample_small);
    tp_str_builder builder = {0};
    char *text;
    cr_assert_eq(tp_graph_print_dot(graph, &builder), TPUCL_OK);
    cr_assert_eq(tp_str_builder_finish(&builder, &text, NULL), TPUCL_OK);
    cr_expect(strstr(text, "digraph"));
    cr_expect(strstr(text, "dot_general\\ndense/dot_general\\nf32[4,5]"));
    tp_free(text);
    tp_graph_destroy(graph);
}

Test(print, hex_floats)
{
    const double values[] = {0.0,
                             -0.0,
                             1.0,
                             -1.5,
                             0.1,
                             1e300,
                             0x1p-1074,
                             0x1.fffffffffffffp-1022,
                             (double)INFINITY,
                             -(double)INFINITY,
                             3.0f,
                             0x1.fffffep127};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        char text[TP_HEX_FLOAT_BYTES];
        double back;
        tp_hex_float_format(values[i], text);
        cr_assert(tp_hex_float_parse(tp_view_of(text), &back), "%s", text);
        cr_expect(memcmp(&back, &values[i], sizeof back) == 0, "%a as %s gives %a", values[i], text,
                  back);
        if (isfinite(values[i])) {
            char *end;
            const double c_library = strtod(text, &end);
            cr_expect(*end == '\0' && c_library == values[i], "%s", text);
        }
    }
    static const char *const wrong[] = {"",
                                        "0x",
                                        "0x1",
                                        "0x1p",
                                        "0x1p+1024",
                                        "1.5",
                                        "0x1.8",
                                        "0x2p+0",
                                        "0x1..8p+0",
                                        "0x1p+0 ",
                                        "0x1.123456789abcdefp+0",
                                        "-nan",
                                        "0x1p99999999999999999999",
                                        "0xfp+0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        double back;
        cr_expect_not(tp_hex_float_parse(tp_view_of(wrong[i]), &back), "'%s' is accepted",
                      wrong[i]);
    }
}

/* The fuzz target starts from graphs, not from errors. */
Test(print, fuzz_corpus_is_valid)
{
    static const char *const names[] = {"small.txt", "images.txt"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        char path[512];
        char *text;
        size_t length;
        tp_graph *graph;
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/graph/%s", TPUCL_SOURCE_DIR, names[i]);
        cr_assert_eq(tp_file_read(path, 1 << 20, &text, &length), TPUCL_OK);
        cr_assert_eq(tp_graph_parse(tp_ops_registry(), (tp_view){text, length}, &graph), TPUCL_OK,
                     "%s: %s", names[i], tpucl_last_error()->message);
        tp_graph_destroy(graph);
        tp_free(text);
    }
}
