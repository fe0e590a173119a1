/* SPDX-License-Identifier: Apache-2.0
 * Random ops and initial values: keyed as they say, distributed as they should, nothing shared. (Philox
 * itself: tests/unit/num.) */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/builder.h"
#include "harness/coverage.h"
#include "num/bf16.h"
#include "num/init.h"
#include "ops/registry.h"
#include "reference/reference.h"

#define ELEMS 40000

static void evaluate(const char *op, tp_dtype dtype, int64_t stream, const tp_eval_context *context,
                     void *out)
{
    tp_graph *graph;
    const tp_shape shape = {1, {ELEMS}};
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    const tp_node_id id = strcmp(op, "uniform") == 0  ? tp_op_uniform(graph, dtype, shape, stream)
                          : strcmp(op, "normal") == 0 ? tp_op_normal(graph, dtype, shape, stream)
                          : strcmp(op, "random_bits") == 0
                              ? tp_op_random_bits(graph, shape, stream)
                              : tp_op_bernoulli(graph, shape, 0.3, stream);
    cr_assert_eq(tp_graph_check(graph), TPUCL_OK);
    tp_host_tensor tensor = {graph->nodes[id].dtype, shape, out};
    cr_assert_eq(tp_reference_evaluate(&graph->nodes[id], NULL, context, &tensor), TPUCL_OK);
    tp_graph_destroy(graph);
}

static void moments(const float *x, double *out_mean, double *out_variance)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < ELEMS; ++i)
        sum += x[i];
    for (int i = 0; i < ELEMS; ++i)
        squares += (x[i] - sum / ELEMS) * (x[i] - sum / ELEMS);
    *out_mean = sum / ELEMS;
    *out_variance = squares / ELEMS;
}

/* Four standard errors of the mean and of the variance at 40000 draws. */
Test(op_random, distributions)
{
    static float x[ELEMS];
    static uint8_t flags[ELEMS];
    const tp_eval_context context = {.seed = 42, .core = 3, .step = 7};
    double mean, variance;
    evaluate("uniform", TP_F32, 5, &context, x);
    moments(x, &mean, &variance);
    cr_expect(fabs(mean - 0.5) < 0.006 && fabs(variance - 1.0 / 12) < 0.0016, "%g %g", mean,
              variance);
    for (int i = 0; i < ELEMS; ++i)
        cr_assert(x[i] >= 0 && x[i] < 1);
    evaluate("normal", TP_F32, 5, &context, x);
    moments(x, &mean, &variance);
    cr_expect(fabs(mean) < 0.02 && fabs(variance - 1) < 0.029, "%g %g", mean, variance);
    evaluate("bernoulli", TP_PRED, 5, &context, flags);
    int count = 0;
    for (int i = 0; i < ELEMS; ++i) {
        cr_assert_leq(flags[i], 1);
        count += flags[i];
    }
    cr_expect(abs(count - 12000) < 370, "%d", count);
}

Test(op_random, every_key_counts)
{
    static float base[ELEMS], other[ELEMS];
    const tp_eval_context key = {.seed = 42, .core = 3, .step = 7};
    evaluate("uniform", TP_F32, 5, &key, base);
    evaluate("uniform", TP_F32, 5, &key, other);
    cr_expect_arr_eq(base, other, sizeof base);
#define KEY(seed_, core_, step_)                                                                   \
    {                                                                                              \
        .seed = seed_, .core = core_, .step = step_                                                \
    }
    const tp_eval_context keys[] = {KEY(43, 3, 7), KEY(42 + (1ull << 32), 3, 7),
                                    KEY(42, 4, 7), KEY(42, 3, 8),
                                    KEY(42, 7, 3), KEY(42, 3, 7)};
    for (int k = 0; k < 6; ++k) {
        evaluate("uniform", TP_F32, k == 5 ? 6 : 5, &keys[k], other);
        int equal = 0;
        for (int i = 0; i < ELEMS; ++i)
            equal += base[i] == other[i];
        cr_expect_lt(equal, 10, "key %d: %d equal draws", k, equal);
    }
}

Test(op_random, bf16_is_the_rounded_f32)
{
    static float wide[ELEMS];
    static tp_bf16 narrow[ELEMS];
    const tp_eval_context key = {.seed = 1};
    evaluate("normal", TP_F32, 0, &key, wide);
    evaluate("normal", TP_BF16, 0, &key, narrow);
    for (int i = 0; i < ELEMS; ++i)
        cr_assert_eq(narrow[i], tp_bf16_from_f32(wide[i]));
}

Test(init, distributions)
{
    static float x[ELEMS];
    double mean, variance;
    cr_assert_eq(tp_init_fill(TP_INIT_UNIFORM, -2, 4, "w", 9, TP_F32, ELEMS, x), TPUCL_OK);
    moments(x, &mean, &variance);
    cr_expect(fabs(mean - 1) < 0.035 && fabs(variance - 3) < 0.06, "%g %g", mean, variance);
    cr_assert_eq(tp_init_fill(TP_INIT_NORMAL, 3, 0.5, "w", 9, TP_F32, ELEMS, x), TPUCL_OK);
    moments(x, &mean, &variance);
    cr_expect(fabs(mean - 3) < 0.01 && fabs(variance - 0.25) < 0.0072, "%g %g", mean, variance);
    cr_assert_eq(tp_init_fill(TP_INIT_TRUNCATED_NORMAL, 3, 0.5, "w", 9, TP_F32, ELEMS, x),
                 TPUCL_OK);
    moments(x, &mean, &variance);
    /* variance of a normal cut at two deviations: 0.7737 of the whole one's */
    cr_expect(fabs(mean - 3) < 0.009 && fabs(variance - 0.7737 * 0.25) < 0.005, "%g %g", mean,
              variance);
    for (int i = 0; i < ELEMS; ++i)
        cr_assert(x[i] >= 2 && x[i] <= 4);
}

Test(init, name_and_seed_count)
{
    static float a[ELEMS], b[ELEMS];
    cr_assert_eq(tp_init_fill(TP_INIT_NORMAL, 0, 1, "w", 9, TP_F32, ELEMS, a), TPUCL_OK);
    cr_assert_eq(tp_init_fill(TP_INIT_NORMAL, 0, 1, "w", 9, TP_F32, ELEMS, b), TPUCL_OK);
    cr_expect_arr_eq(a, b, sizeof a);
    cr_assert_eq(tp_init_fill(TP_INIT_NORMAL, 0, 1, "v", 9, TP_F32, ELEMS, b), TPUCL_OK);
    cr_expect_arr_neq(a, b, sizeof a);
    cr_assert_eq(tp_init_fill(TP_INIT_NORMAL, 0, 1, "w", 10, TP_F32, ELEMS, b), TPUCL_OK);
    cr_expect_arr_neq(a, b, sizeof a);
}

Test(init, constants_and_mistakes)
{
    int32_t ints[3];
    tp_bf16 narrow[2];
    cr_assert_eq(tp_init_fill(TP_INIT_CONSTANT, -7, 0, "n", 0, TP_S32, 3, ints), TPUCL_OK);
    cr_expect_eq(ints[2], -7);
    cr_assert_eq(tp_init_fill(TP_INIT_ONES, 0, 0, "n", 0, TP_BF16, 2, narrow), TPUCL_OK);
    cr_expect_eq(narrow[1], 0x3f80);
    cr_expect_eq(tp_init_fill(TP_INIT_CONSTANT, 0.5, 0, "n", 0, TP_S32, 3, ints),
                 TPUCL_INVALID_ARGUMENT);
    cr_expect_eq(tp_init_fill(TP_INIT_NORMAL, 0, 1, "n", 0, TP_S32, 3, ints),
                 TPUCL_INVALID_ARGUMENT);
    cr_expect(strstr(tpucl_last_error()->message, "normal") &&
              strstr(tpucl_last_error()->message, "s32"));
    tp_init_kind kind;
    cr_expect_eq(tp_init_kind_parse("truncated_normal", &kind), TPUCL_OK);
    cr_expect_eq(kind, TP_INIT_TRUNCATED_NORMAL);
    cr_expect_eq(tp_init_kind_parse("glorot", &kind), TPUCL_INVALID_ARGUMENT);
}

/* Line `name` of the golden file as numbers in C's notation (bits with base 16, floats otherwise). */
static int read_golden(const char *name, bool is_bits, double *out, int max)
{
    static char line[4096];
    FILE *file = fopen(TPUCL_SOURCE_DIR "/tests/golden/random.txt", "r");
    cr_assert(file);
    int count = 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) != 0 || line[strlen(name)] != ' ') continue;
        strtok(line, " ");
        for (char *word = strtok(NULL, " \n"); word && count < max; word = strtok(NULL, " \n"))
            out[count++] = is_bits ? (double)strtoul(word, NULL, 16) : strtod(word, NULL);
    }
    fclose(file);
    return count;
}

static void expect_bits(const char *name, const float *found)
{
    double want[12];
    cr_assert_eq(read_golden(name, true, want, 12), 12);
    for (int i = 0; i < 12; ++i) {
        uint32_t bits;
        memcpy(&bits, &found[i], sizeof bits);
        cr_expect_eq(bits, (uint32_t)want[i], "%s: element %d is %08x", name, i, bits);
    }
}

static void expect_near(const char *name, const float *found, int count)
{
    double want[100];
    cr_assert_eq(read_golden(name, false, want, count), count);
    for (int i = 0; i < count; ++i)
        cr_expect(fabs((double)found[i] - want[i]) < 2e-6, "%s: element %d is %g, expected %g",
                  name, i, (double)found[i], want[i]);
}

/* stochastic_round of ELEMS values, widened. */
static void round_by(float *values, uint32_t *words, float *out)
{
    static tp_bf16 narrow[ELEMS];
    tp_graph *graph;
    const tp_shape shape = {1, {ELEMS}};
    const tp_eval_context context = {.seed = 1};
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &graph), TPUCL_OK);
    const tp_node_id id =
        tp_op_stochastic_round(graph, tp_graph_add_input(graph, "x", TP_F32, shape),
                               tp_graph_add_input(graph, "b", TP_U32, shape));
    cr_assert_eq(tp_graph_check(graph), TPUCL_OK);
    cr_assert_eq(graph->nodes[id].dtype, TP_BF16);
    const tp_host_tensor inputs[] = {{TP_F32, shape, values}, {TP_U32, shape, words}};
    tp_host_tensor tensor = {TP_BF16, shape, narrow};
    cr_assert_eq(tp_reference_evaluate(&graph->nodes[id], inputs, &context, &tensor), TPUCL_OK);
    tp_graph_destroy(graph);
    for (int i = 0; i < ELEMS; ++i)
        out[i] = tp_bf16_to_f32(narrow[i]);
}

/* The mean of the results is the operand, to four standard errors; a bf16 number stays what it is. */
Test(op_random, stochastic_rounding_is_right_on_average)
{
    static const struct {
        float value, below, unit;
    } cases[] = {{1.001953125f + 0.00001f, 1, 0.0078125f},
                 {-0.3f, -0.298828125f, 0.001953125f},
                 {1.0f, 1, 0.0078125f},
                 {100.45f, 100, 0.5f}};
    static float x[ELEMS], y[ELEMS];
    static uint32_t words[ELEMS];
    const tp_eval_context key = {.seed = 5, .step = 1};
    evaluate("random_bits", TP_U32, 0, &key, words);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        double sum = 0;
        for (int i = 0; i < ELEMS; ++i)
            x[i] = cases[c].value;
        round_by(x, words, y);
        for (int i = 0; i < ELEMS; ++i) {
            const float beyond = cases[c].below + copysignf(cases[c].unit, cases[c].below);
            cr_assert(y[i] == cases[c].below || (y[i] == beyond && x[i] != cases[c].below));
            sum += (double)y[i];
        }
        cr_expect(fabs(sum / ELEMS - (double)cases[c].value) <= 0.01 * (double)cases[c].unit,
                  "%g on average instead of %g", sum / ELEMS, (double)cases[c].value);
    }
}

Test(op_random, stochastic_rounding_of_what_is_special)
{
    static float x[ELEMS], y[ELEMS];
    static uint32_t words[ELEMS];
    const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 3.4028235e38f, 1.1754944e-38f};
    for (int i = 0; i < 14; ++i) {
        x[i] = special[i % 7];
        words[i] = i < 7 ? 0 : UINT32_MAX;
    }
    round_by(x, words, y);
    for (int i = 0; i < 14; ++i)
        if (i % 7 < 4 || i % 7 == 6)
            cr_expect(y[i] == x[i] && signbit(y[i]) == signbit(x[i]), "%d: %g", i, (double)y[i]);
    cr_expect(isnan(y[4]) && isnan(y[11]));
    cr_expect_eq(y[5], 3.3895314e38f); /* the largest bf16 number */
    cr_expect_eq(y[12], INFINITY);
}

/* Random numbers for what cores keep together do not depend on the core. */
Test(op_random, bits_are_equal_on_cores)
{
    static uint32_t base[ELEMS], other[ELEMS];
    const tp_eval_context key = {.seed = 42, .core = 3, .step = 7};
    const tp_eval_context keys[] = {{42, 4, 7, 0, 0}, {42, 3, 8, 0, 0}, {43, 3, 7, 0, 0}};
    evaluate("random_bits", TP_U32, 5, &key, base);
    for (int k = 0; k < 3; ++k) {
        evaluate("random_bits", TP_U32, 5, &keys[k], other);
        cr_expect_eq(memcmp(base, other, sizeof base) == 0, k == 0);
    }
}

Test(op_random, golden_values)
{
    static float x[ELEMS], rounded[ELEMS];
    const tp_eval_context key = {.seed = 42, .core = 3, .step = 7};
    evaluate("uniform", TP_F32, 5, &key, x);
    expect_bits("uniform", x);
    evaluate("normal", TP_F32, 5, &key, x);
    expect_near("normal", x, 12);
    static uint8_t flags[ELEMS];
    double want[100];
    evaluate("bernoulli", TP_PRED, 5, &key, flags);
    cr_assert_eq(read_golden("bernoulli", false, want, 100), 100);
    for (int i = 0; i < 100; ++i)
        cr_expect_eq(flags[i], want[i], "element %d", i);
    static uint32_t words[ELEMS];
    evaluate("random_bits", TP_U32, 5, &key, words);
    cr_assert_eq(read_golden("random_bits", true, want, 12), 12);
    for (int i = 0; i < 12; ++i)
        cr_expect_eq(words[i], (uint32_t)want[i], "word %d is %08x", i, words[i]);
    evaluate("uniform", TP_F32, 5, &key, x);
    for (int i = 1; i < 12; i += 2)
        x[i] = -x[i];
    round_by(x, words, rounded);
    expect_bits("rounded", rounded);
    for (int i = 0; i < 5; ++i) {
        static const char *const ops[] = {"uniform", "normal", "bernoulli", "random_bits",
                                          "stochastic_round"};
        coverage_note("shape", ops[i]); /* ELEMS of them */
        coverage_note("golden", ops[i]);
    }
}

Test(init, golden_values)
{
    float x[100];
    cr_assert_eq(
        tp_init_fill(TP_INIT_UNIFORM, -2, 4, "dense/kernel", (1ull << 32) + 9, TP_F32, 12, x),
        TPUCL_OK);
    expect_bits("init_uniform", x);
    cr_assert_eq(tp_init_fill(TP_INIT_TRUNCATED_NORMAL, 3, 0.5, "w", 9, TP_F32, 100, x), TPUCL_OK);
    expect_near("init_truncated", x, 100);
}
