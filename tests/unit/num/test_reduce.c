/* SPDX-License-Identifier: Apache-2.0
 * Orders of summation against golden_reduce.py, which works in rational numbers from the contract's
 * text.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "golden_reduce.h"
#include "num/mxu.h"
#include "num/reduce.h"
#include "num_inputs.h"

enum { LONGEST = 5 * 8192 + 77 };

/* As inputs() in golden_reduce.py. */
static void fill(float *out, uint64_t seed, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t word = num_next(&seed);
        const double value = (double)((int64_t)(word >> 40) - (1 << 23)) * 0x1p-24;
        out[i] = (float)(value * (double)(1 << (word & 7)));
    }
}

Test(reduce, vpu_sums_and_products_are_golden)
{
    static float x[LONGEST], near_one[LONGEST];
    for (size_t i = 0; i < sizeof golden_sums / sizeof golden_sums[0]; i++) {
        const int64_t n = golden_sums[i].n;
        fill(x, (uint64_t)n, n);
        for (int64_t j = 0; j < n; j++)
            near_one[j] = (float)(1.0 + (double)x[j] / 4096);
        cr_expect_eq(tp_f32_bits(tp_vpu_reduce(TP_REDUCE_ADD, x, n, 1)), golden_sums[i].add,
                     "n %lld", (long long)n);
        cr_expect_eq(tp_f32_bits(tp_vpu_reduce(TP_REDUCE_MULTIPLY, near_one, n, 1)),
                     golden_sums[i].multiply, "n %lld", (long long)n);
    }
}

Test(reduce, max_and_min)
{
    static float x[LONGEST];
    fill(x, 5, LONGEST);
    float larger = x[0], smaller = x[0];
    for (int i = 0; i < LONGEST; i++) {
        larger = fmaxf(larger, x[i]);
        smaller = fminf(smaller, x[i]);
    }
    cr_expect_eq(tp_vpu_reduce(TP_REDUCE_MAX, x, LONGEST, 1), larger);
    cr_expect_eq(tp_vpu_reduce(TP_REDUCE_MIN, x, LONGEST, 1), smaller);
    x[12345] = NAN;
    cr_expect(isnan(tp_vpu_reduce(TP_REDUCE_MAX, x, LONGEST, 1)));
    const float zeros[] = {-0.0f, 0.0f, -0.0f};
    cr_expect_eq(tp_f32_bits(tp_vpu_reduce(TP_REDUCE_MAX, zeros, 3, 1)), 0u);
    cr_expect_eq(tp_f32_bits(tp_vpu_reduce(TP_REDUCE_MIN, zeros, 3, 1)), 0x80000000u);
}

Test(reduce, nothing_and_negative_zero)
{
    const float negative_zero = -0.0f, tiny = 0x1p-126f, almost = -0x1.8p-126f;
    cr_expect_eq(tp_f32_bits(tp_vpu_reduce(TP_REDUCE_ADD, NULL, 0, 1)), 0u);
    cr_expect_eq(tp_vpu_reduce(TP_REDUCE_MULTIPLY, NULL, 0, 1), 1.0f);
    cr_expect_eq(tp_vpu_reduce(TP_REDUCE_MAX, NULL, 0, 1), -INFINITY);
    cr_expect_eq(tp_vpu_reduce(TP_REDUCE_MIN, NULL, 0, 1), INFINITY);
    cr_expect_eq(tp_f32_bits(tp_vpu_reduce(TP_REDUCE_ADD, &negative_zero, 1, 1)),
                 0u); /* lanes start at +0 */
    const float pair[] = {tiny, almost};
    cr_expect_eq(tp_f32_bits(tp_vpu_reduce(TP_REDUCE_ADD, pair, 2, 1)),
                 0x80000000u);                   /* flushed at the end */
    const float triple[] = {tiny, almost, tiny}; /* but not on the way */
    cr_expect_eq(tp_vpu_reduce(TP_REDUCE_ADD, triple, 3, 1), 0.0f);
    const float four[] = {0x1p-126f, -0x1.8p-126f, 0x1p-126f, 0x1p-126f};
    cr_expect_eq(tp_vpu_reduce(TP_REDUCE_ADD, four, 4, 1), 0x1.8p-126f);
}

Test(reduce, strides_and_streams_agree_with_arrays)
{
    static float x[3 * 9000], dense[9000];
    fill(x, 6, 3 * 9000);
    for (int i = 0; i < 9000; i++)
        dense[i] = x[3 * i];
    cr_expect_eq(tp_vpu_reduce(TP_REDUCE_ADD, x, 9000, 3),
                 tp_vpu_reduce(TP_REDUCE_ADD, dense, 9000, 1));
}

/* A tree that spells itself: parts are strings. */
static char spelled[16][128];
static void spell(void *context, int64_t left, int64_t right)
{
    (void)context;
    char joined[128];
    snprintf(joined, sizeof joined, "(%.60s%.60s)", spelled[left], spelled[right]);
    memcpy(spelled[left], joined, sizeof joined);
}

Test(reduce, tree_splits_at_the_largest_power_of_two_below_n)
{
    static const char *const expected[] = {"a",
                                           "(ab)",
                                           "((ab)c)",
                                           "((ab)(cd))",
                                           "(((ab)(cd))e)",
                                           "(((ab)(cd))(ef))",
                                           "(((ab)(cd))((ef)g))"};
    for (int n = 1; n <= 7; n++) {
        for (int i = 0; i < n; i++)
            snprintf(spelled[i], sizeof spelled[i], "%c", 'a' + i);
        tp_tree_combine(n, spell, NULL);
        cr_expect_str_eq(spelled[0], expected[n - 1]);
    }
}

static float parts[16];
static void add_parts(void *context, int64_t left, int64_t right)
{
    (void)context;
    parts[left] = parts[left] + parts[right];
}

Test(reduce, both_forms_of_the_tree_agree)
{
    float source[16];
    fill(source, 8, 16);
    for (int n = 1; n <= 16; n++) {
        memcpy(parts, source, sizeof parts);
        tp_tree_combine(n, add_parts, NULL);
        cr_expect_eq(tp_f32_bits(parts[0]),
                     tp_f32_bits(tp_tree_reduce(TP_REDUCE_ADD, source, n, 1)));
    }
}

Test(mxu, products_are_golden_at_every_precision)
{
    static float a[LONGEST], b[LONGEST];
    for (size_t i = 0; i < sizeof golden_dots / sizeof golden_dots[0]; i++) {
        const int64_t k = golden_dots[i].k;
        fill(a, (uint64_t)(2 * k + 1), k);
        fill(b, (uint64_t)(5 * k + 2), k);
        for (int p = 0; p < TP_PRECISION_COUNT; p++) {
            tp_mxu_dot dot;
            tp_mxu_dot_begin(&dot, (tp_precision)p);
            for (int64_t j = 0; j < k; j++)
                tp_mxu_dot_add(&dot, a[j], b[j]);
            cr_expect_eq(tp_f32_bits(tp_mxu_dot_end(&dot)), golden_dots[i].precision[p],
                         "k %lld, %s", (long long)k, tp_precision_name((tp_precision)p));
        }
    }
}

/* As cancelling() in golden_reduce.py. */
Test(mxu, passes_are_added_smallest_first)
{
    for (size_t i = 0; i < sizeof golden_cancelling / sizeof golden_cancelling[0]; i++) {
        const int64_t k = golden_cancelling[i].k;
        for (int p = 0; p < TP_PRECISION_COUNT; p++) {
            uint64_t seed = (uint64_t)(7 * k);
            double high = 0;
            tp_mxu_dot dot;
            tp_mxu_dot_begin(&dot, (tp_precision)p);
            for (int64_t j = 0; j < k; j++) {
                const uint64_t word = num_next(&seed);
                if (j % 2 == 0) high = 1 + (double)(word & 127) / 128;
                const double low = (double)((int64_t)(word >> 48) - (1 << 15)) * 0x1p-23;
                const double other = (double)((int64_t)(word >> 8 & 0xffff) - (1 << 15)) * 0x1p-23;
                tp_mxu_dot_add(&dot, (float)(j % 2 == 0 ? high + low : -(high + low)),
                               (float)(1 + other));
            }
            cr_expect_eq(tp_f32_bits(tp_mxu_dot_end(&dot)), golden_cancelling[i].precision[p],
                         "k %lld, %s", (long long)k, tp_precision_name((tp_precision)p));
        }
    }
}

Test(mxu, matrix_form_has_the_bits_of_the_single_product)
{
    static const int64_t sizes[][3] = {{1, 1, 1},     {3, 65, 129},         {2, 64, 8192},
                                       {5, 130, 200}, {2, 3, 3 * 8192 + 1}, {2, 7, 0},
                                       {0, 4, 3}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        float *a = malloc((size_t)(m * k + 1) * sizeof *a),
              *b = malloc((size_t)(k * n + 1) * sizeof *b);
        float *c = malloc((size_t)(m * n + 1) * sizeof *c);
        fill(a, 1, m * k);
        fill(b, 2, k * n);
        for (int p = 0; p < TP_PRECISION_COUNT; p++) {
            c[m * n] = 42.0f; /* guard */
            cr_assert_eq(tp_mxu_matmul((tp_precision)p, m, n, k, a, b, c), TPUCL_OK);
            size_t wrong = 0;
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++) {
                    tp_mxu_dot dot;
                    tp_mxu_dot_begin(&dot, (tp_precision)p);
                    for (int64_t l = 0; l < k; l++)
                        tp_mxu_dot_add(&dot, a[i * k + l], b[l * n + j]);
                    wrong += tp_f32_bits(tp_mxu_dot_end(&dot)) != tp_f32_bits(c[i * n + j]);
                }
            cr_expect_eq(wrong, 0, "%lld x %lld x %lld, %s: %zu differ", (long long)m, (long long)n,
                         (long long)k, tp_precision_name((tp_precision)p), wrong);
            cr_expect_eq(c[m * n], 42.0f);
        }
        free(a);
        free(b);
        free(c);
    }
}

Test(mxu, precision_names_go_round)
{
    static const int passes[] = {1, 3, 6, 1};
    for (int p = 0; p < TP_PRECISION_COUNT; p++) {
        tp_precision parsed;
        cr_assert_eq(tp_precision_parse(tp_precision_name((tp_precision)p), &parsed), TPUCL_OK);
        cr_assert_eq(parsed, (tp_precision)p);
        cr_assert_eq(tp_precision_passes(parsed), passes[p]);
    }
    static const int order[6][2] = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};
    for (int i = 0; i < 6; i++) {
        const tp_mxu_pass pass = tp_mxu_pass_parts(TP_PRECISION_HIGHEST, i);
        cr_expect(pass.a_part == order[i][0] && pass.b_part == order[i][1]);
        const tp_mxu_pass high = tp_mxu_pass_parts(TP_PRECISION_HIGH, i % 3);
        cr_expect(high.a_part == order[3 + i % 3][0] && high.b_part == order[3 + i % 3][1]);
    }
    tp_precision none;
    cr_assert_eq(tp_precision_parse("fast", &none), TPUCL_INVALID_ARGUMENT);
}

Test(mxu, parts_add_up)
{
    uint64_t seed = 3;
    for (int i = 0; i < 10000; i++) {
        float x = tp_f32_from_bits((uint32_t)num_next(&seed));
        if (!isfinite(x) || fabsf(x) < 0x1p-100f || fabsf(x) > 0x1p+126f) continue;
        const double sum =
            (double)tp_mxu_part(x, 0) + (double)tp_mxu_part(x, 1) + (double)tp_mxu_part(x, 2);
        cr_assert_eq(sum, (double)x); /* three times 8 bits hold 24 */
    }
}
