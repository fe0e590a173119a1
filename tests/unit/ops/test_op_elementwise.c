/* SPDX-License-Identifier: Apache-2.0
 * Element-wise ops on the host against NumPy: bits for everything that is exact, 2 units in the last place
 * for the elementary functions (whose own bounds tests/unit/num checks). NaN equals NaN. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/attrs.h"
#include "harness/coverage.h"
#include "num/bf16.h"
#include "ops/op_util.h"
#include "ops/registry.h"
#include "reference/reference.h"

#define MAX_SETS 64
#define MAX_ELEMS 256
#define MAX_LINE 4096

typedef struct number_set {
    char name[8];
    uint32_t values[MAX_ELEMS];
    int64_t count;
} number_set;

static FILE *open_golden(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/%s", TPUCL_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    cr_assert(file, "cannot open %s", path);
    return file;
}

static int64_t read_hexes(FILE *file, uint32_t *values)
{
    static char line[MAX_LINE];
    int64_t count = 0;
    cr_assert(fgets(line, sizeof line, file));
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        cr_assert_lt(count, MAX_ELEMS);
        values[count++] = (uint32_t)strtoul(word, NULL, 16);
    }
    return count;
}

static tp_host_tensor pack(tp_dtype dtype, const uint32_t *values, int64_t count)
{
    const tp_host_tensor tensor = {dtype, {1, {count}}, malloc((size_t)count * 4)};
    for (int64_t i = 0; i < count; ++i) {
        if (tp_dtype_size(dtype) == 4)
            ((uint32_t *)tensor.data)[i] = values[i];
        else if (tp_dtype_size(dtype) == 2)
            ((uint16_t *)tensor.data)[i] = (uint16_t)values[i];
        else
            ((uint8_t *)tensor.data)[i] = (uint8_t)values[i];
    }
    return tensor;
}

static uint32_t unpack(const tp_host_tensor *tensor, int64_t i)
{
    if (tp_dtype_size(tensor->dtype) == 4) return ((const uint32_t *)tensor->data)[i];
    if (tp_dtype_size(tensor->dtype) == 2) return ((const uint16_t *)tensor->data)[i];
    return ((const uint8_t *)tensor->data)[i];
}

static bool is_nan_bits(tp_dtype dtype, uint32_t bits)
{
    if (dtype == TP_BF16) bits <<= 16;
    return (dtype == TP_BF16 || dtype == TP_F32) && (bits & 0x7fffffffu) > 0x7f800000u;
}

/* Callers compare the result, which has the operands' shape, with golden values. */
static void note(const char *op)
{
    coverage_note("shape", op);
    coverage_note("reference", op);
    coverage_note("golden", op);
}

/* Builds a graph of the one op, to have its node, and evaluates it. */
static tp_host_tensor evaluate(const char *op, const char *attr, tp_dtype out_dtype,
                               const tp_host_tensor *operands, int32_t count)
{
    tp_graph *graph;
    tp_node_id inputs[2] = {0, 1};
    static const char *const names[] = {"a", "b"};
    const tp_attr attrs[] = {strcmp(op, "compare") == 0 ? tp_attr_text("direction", attr)
                                                        : tp_attr_text("dtype", attr)};
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    for (int32_t i = 0; i < count; ++i)
        tp_graph_add_input(graph, names[i], operands[i].dtype, operands[i].shape);
    const tp_node_id id = tp_graph_add(graph, op, inputs, count, attrs, strcmp(attr, "-") != 0);
    cr_assert_eq(tp_graph_check(graph), TPUCL_OK, "%s", tpucl_last_error()->message);
    const tp_node *node = &graph->nodes[id];
    cr_assert_eq(node->dtype, out_dtype);
    cr_assert_not_null(node->def->vpu(graph, node), "%s has no expression", op);
    tp_host_tensor out = {node->dtype, node->shape, malloc((size_t)operands[0].shape.dims[0] * 4)};
    const tp_eval_context context = {0};
    cr_assert_eq(tp_reference_evaluate(node, operands, &context, &out), TPUCL_OK);
    note(op);
    tp_graph_destroy(graph);
    return out;
}

static void check_case(const char *op, const char *attr, tp_dtype from, tp_dtype to,
                       const number_set *const *sets, int32_t count, const uint32_t *want)
{
    tp_host_tensor operands[2];
    for (int32_t i = 0; i < count; ++i)
        operands[i] = pack(from, sets[i]->values, sets[i]->count);
    tp_host_tensor out = evaluate(op, attr, to, operands, count);
    for (int64_t i = 0; i < sets[0]->count; ++i) {
        const uint32_t found = unpack(&out, i);
        if (is_nan_bits(to, found) && is_nan_bits(to, want[i])) continue;
        cr_expect_eq(found, want[i], "%s %s %s: element %d of %x %x is %x, expected %x", op, attr,
                     tp_dtype_name(from), (int)i, sets[0]->values[i],
                     count > 1 ? sets[1]->values[i] : 0, found, want[i]);
    }
    for (int32_t i = 0; i < count; ++i)
        free(operands[i].data);
    free(out.data);
}

Test(op_elementwise, exact_ops_have_numpys_bits)
{
    static number_set sets[MAX_SETS];
    static uint32_t want[MAX_ELEMS];
    FILE *file = open_golden("elementwise.txt");
    int32_t set_count = 0, cases = 0;
    char line[256], op[32], attr[8], from_text[8], to_text[8], names[2][8];
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "set ", 4) == 0) {
            cr_assert_lt(set_count, MAX_SETS);
            cr_assert_eq(sscanf(line, "set %7s", sets[set_count].name), 1);
            sets[set_count].count = read_hexes(file, sets[set_count].values);
            ++set_count;
            continue;
        }
        const int words = sscanf(line, "%31s %7s %7s %7s %7s %7s", op, attr, from_text, to_text,
                                 names[0], names[1]);
        cr_assert_geq(words, 5, "%s", line);
        const number_set *operands[2] = {NULL, NULL};
        for (int i = 0; i < words - 4; ++i)
            for (int32_t s = 0; s < set_count; ++s)
                if (strcmp(names[i], sets[s].name) == 0) operands[i] = &sets[s];
        tp_dtype from, to;
        cr_assert_eq(tp_dtype_parse(from_text, &from), TPUCL_OK);
        cr_assert_eq(tp_dtype_parse(to_text, &to), TPUCL_OK);
        cr_assert_eq(read_hexes(file, want), operands[0]->count);
        check_case(op, attr, from, to, operands, words - 4, want);
        ++cases;
    }
    fclose(file);
    cr_expect_gt(cases, 90);
}

static double units_apart(float found, double want)
{
    const float nearest = (float)want;
    if (found == nearest) return 0;
    int exponent;
    frexp(want, &exponent);
    return fabs((double)found - want) / ldexp(1.0, exponent - 24);
}

Test(op_elementwise, functions_are_the_right_ones)
{
    static uint32_t bits[2][MAX_ELEMS];
    FILE *file = open_golden("functions.txt");
    char line[MAX_LINE], op[32];
    int cases = 0, operand_count, count;
    while (fgets(line, sizeof line, file)) {
        cr_assert_eq(sscanf(line, "%31s %d %d", op, &operand_count, &count), 3);
        tp_host_tensor operands[2];
        for (int i = 0; i < operand_count; ++i) {
            cr_assert_eq(read_hexes(file, bits[i]), count);
            operands[i] = pack(TP_F32, bits[i], count);
        }
        tp_host_tensor out = evaluate(op, "-", TP_F32, operands, operand_count);
        for (int i = 0; i < count; ++i) {
            double want;
            cr_assert_eq(fscanf(file, "%la", &want), 1);
            const float found = ((const float *)out.data)[i];
            cr_expect(units_apart(found, want) <= 2.5, "%s of %x: %a, expected %a", op, bits[0][i],
                      (double)found, want);
        }
        cr_assert(fgets(line, sizeof line, file));
        for (int i = 0; i < operand_count; ++i)
            free(operands[i].data);
        free(out.data);
        ++cases;
    }
    fclose(file);
    cr_expect_eq(cases, 12);
}

Test(op_elementwise, select_and_clamp)
{
    const uint32_t mask[] = {1, 0, 1, 0}, low[] = {5, 5, 5, 5}, x[] = {1, 7, 30, 12},
                   high[] = {9, 9, 9, 2};
    const tp_host_tensor operands[] = {pack(TP_PRED, mask, 4), pack(TP_U32, x, 4),
                                       pack(TP_U32, high, 4), pack(TP_U32, low, 4)};
    const tp_host_tensor clamp[] = {operands[3], operands[1], operands[2]};
    tp_host_tensor out = pack(TP_U32, x, 4);
    const tp_node node = {0};
    const tp_eval_context context = {0};
    cr_assert_eq(
        tp_op_table_find(tp_ops_registry(), "select")->evaluate(&node, operands, &context, &out),
        TPUCL_OK);
    const uint32_t want_select[] = {1, 9, 30, 2}, want_clamp[] = {5, 7, 9, 2};
    cr_expect_arr_eq(out.data, want_select, sizeof want_select);
    cr_assert_eq(
        tp_op_table_find(tp_ops_registry(), "clamp")->evaluate(&node, clamp, &context, &out),
        TPUCL_OK);
    cr_expect_arr_eq(out.data, want_clamp, sizeof want_clamp);
    coverage_note("golden", "select");
    coverage_note("golden", "clamp");
    for (int i = 0; i < 4; ++i)
        free(operands[i].data);
    free(out.data);
}
