/* SPDX-License-Identifier: Apache-2.0
 * Ops that move elements, against NumPy: every element carries a number, so its way is seen. In all three
 * element sizes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/parse.h"
#include "harness/coverage.h"
#include "ops/registry.h"
#include "reference/reference.h"

#define MAX_OPERANDS 4
#define MAX_ELEMS 1024

typedef struct shape_case {
    char op[32], attrs[256];
    tp_shape operands[MAX_OPERANDS], result;
    int32_t operand_count;
    uint32_t want[MAX_ELEMS];
} shape_case;

static void read_shape(const char *line, tp_shape *out)
{
    char text[64];
    const size_t length = strcspn(line, "\n");
    memcpy(text, line, length);
    text[length] = '\0';
    cr_assert_eq(tp_shape_parse(text, out), TPUCL_OK, "%s", line);
}

/* False at the end of the file. */
static bool read_case(FILE *file, shape_case *out)
{
    char line[4096];
    memset(out, 0, sizeof *out);
    if (!fgets(line, sizeof line, file)) return false;
    cr_assert_eq(sscanf(line, "%31s %255[^\n]", out->op, out->attrs), 2);
    while (fgets(line, sizeof line, file) && line[0] == '[')
        read_shape(line, &out->operands[out->operand_count++]);
    read_shape(line + 2, &out->result);
    cr_assert(fgets(line, sizeof line, file));
    int64_t count = 0;
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
        out->want[count++] = (uint32_t)strtoul(word, NULL, 10);
    cr_assert_eq(count, tp_shape_elems(&out->result));
    return true;
}

/* The op's text after its operands, as a graph; the result is the last node. */
static tp_graph *make_graph(const shape_case *test, tp_dtype dtype)
{
    char text[4096], shape[TP_SHAPE_TEXT_MAX], operands[64] = "";
    size_t at = (size_t)snprintf(text, sizeof text, "graph 1\n");
    for (int32_t i = 0; i < test->operand_count; ++i) {
        tp_shape_format(&test->operands[i], shape, sizeof shape);
        at += (size_t)snprintf(
            text + at, sizeof text - at,
            "%%%d = input() {name = \"%d\", dtype = \"%s\", shape = %s} : %s%s \"\"\n", i, i,
            tp_dtype_name(dtype), shape, tp_dtype_name(dtype), shape);
        snprintf(operands + strlen(operands), sizeof operands - strlen(operands), "%s%%%d",
                 i ? ", " : "", i);
    }
    tp_shape_format(&test->result, shape, sizeof shape);
    at += (size_t)snprintf(text + at, sizeof text - at, "%%%d = %s(%s) %s : %s%s \"\"\n",
                           test->operand_count, test->op, operands, test->attrs,
                           tp_dtype_name(dtype), shape);
    for (int32_t i = 0; i < test->operand_count; ++i)
        at += (size_t)snprintf(text + at, sizeof text - at, "input \"%d\" = %%%d\n", i, i);
    snprintf(text + at, sizeof text - at, "output \"y\" = %%%d\n", test->operand_count);
    tp_graph *graph;
    cr_assert_eq(tp_graph_parse(tp_ops_registry(), tp_view_of(text), &graph), TPUCL_OK, "%s\n%s",
                 tpucl_last_error()->message, text);
    return graph;
}

static void put(void *data, size_t size, int64_t i, uint32_t value)
{
    if (size == 4) ((uint32_t *)data)[i] = value;
    if (size == 2) ((uint16_t *)data)[i] = (uint16_t)(value | 0x4000); /* a normal bf16 */
    if (size == 1) ((uint8_t *)data)[i] = (uint8_t)value;
}

static void check_case(const shape_case *test, tp_dtype dtype)
{
    tp_graph *graph = make_graph(test, dtype);
    tp_reference *reference;
    const tp_reference_options options = {.cores = 1};
    const size_t size = tp_dtype_size(dtype);
    void *inputs[MAX_OPERANDS] = {NULL};
    for (int32_t i = 0; i < test->operand_count; ++i) {
        const int64_t elems = tp_shape_elems(&test->operands[i]);
        inputs[i] = malloc((size_t)elems * size + 1);
        for (int64_t j = 0; j < elems; ++j)
            put(inputs[i], size, j, (uint32_t)(j + 1000 * i));
    }
    cr_assert_eq(tp_reference_create(graph, &options, &reference), TPUCL_OK);
    cr_assert_eq(tp_reference_step(reference, (const void *const *)inputs, 0), TPUCL_OK);
    const tp_host_tensor *y = tp_reference_output(reference, 0, 0);
    const int64_t elems = tp_shape_elems(&y->shape);
    uint32_t want;
    for (int64_t i = 0; i < elems; ++i) {
        put(&want, size, 0, test->want[i]);
        cr_expect(memcmp(&want, (const char *)y->data + (size_t)i * size, size) == 0,
                  "%s %s of %s: element %d is wrong", test->op, test->attrs, tp_dtype_name(dtype),
                  (int)i);
    }
    coverage_note("shape", test->op); /* the parser has compared it with the text */
    coverage_note("reference", test->op);
    coverage_note("golden", test->op);
    tp_reference_destroy(reference);
    tp_graph_destroy(graph);
    for (int32_t i = 0; i < test->operand_count; ++i)
        free(inputs[i]);
}

Test(op_shape, elements_go_where_numpy_puts_them)
{
    FILE *file = fopen(TPUCL_SOURCE_DIR "/tests/golden/shape.txt", "r");
    static shape_case test;
    int cases = 0;
    cr_assert(file);
    for (; read_case(file, &test); ++cases) {
        check_case(&test, TP_U32);
        check_case(&test, TP_BF16);
        check_case(&test, TP_U8);
    }
    fclose(file);
    cr_expect_geq(cases, 15);
}
