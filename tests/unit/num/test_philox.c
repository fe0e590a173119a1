/* SPDX-License-Identifier: Apache-2.0
 * Philox4x32-10 against the known-answer vectors of Random123 (kat_vectors, philox4x32 10), the
 * derived distributions by their definition and by moments, and the streams for being disjoint.
 */
#include <criterion/criterion.h>
#include <math.h>
#include "num/philox.h"

Test(philox, known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t v = 0; v < 3; v++)
        for (uint32_t lane = 0; lane < 4; lane++)
            cr_expect_eq(tp_philox_word(vectors[v].counter[0], vectors[v].counter[1],
                                        vectors[v].counter[2], vectors[v].counter[3],
                                        vectors[v].key[0], vectors[v].key[1], lane),
                         vectors[v].expected[lane]);
}

Test(philox, stream_fields_go_where_the_header_says)
{
    const tp_random_stream stream = tp_random_stream_make(1, 2, 3, 4, 5);
    cr_expect_eq(tp_random_bits(stream, 6, 1), tp_philox_word(6, 5, 4, 3, 1, 2, 1));
}

Test(philox, uniform_and_bernoulli_agree)
{
    cr_expect_eq(tp_random_uniform_from_bits(0xffffffffu), 1.0f - 0x1p-24f);
    cr_expect_eq(tp_random_uniform_from_bits(0xffu), 0.0f);
    const tp_random_stream stream = tp_random_stream_make(1, 2, 3, 4, 5);
    static const float rates[] = {0.0f, 0x1p-30f, 0.1f, 0.5f, 0.9f, 1.0f - 0x1p-24f, 1.0f};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        const uint32_t threshold = tp_bernoulli_threshold(rates[r]);
        for (uint32_t i = 0; i < 20000; i++)
            cr_assert_eq(tp_random_bernoulli(stream, i / 4, i % 4, threshold) != 0,
                         tp_random_uniform(stream, i / 4, i % 4) < rates[r]);
    }
    cr_expect_eq(tp_bernoulli_threshold(0.0f), 0);
    cr_expect_eq(tp_bernoulli_threshold(1.0f), 1u << 24);
    cr_expect_eq(tp_bernoulli_threshold(NAN), 0);
    cr_expect_eq(tp_bernoulli_threshold(-1.0f), 0);
    cr_expect_eq(tp_bernoulli_threshold(7.0f), 1u << 24);
}

/* The definition, in double. */
Test(philox, normal_is_box_muller)
{
    const tp_random_stream stream = tp_random_stream_make(11, 0, 1, 0, 0);
    for (uint32_t i = 0; i < 100000; i++) {
        const uint32_t block = i / 4, lane = i % 4;
        const double u = ((tp_random_bits(stream, block, lane & 2) >> 8) + 1.0) * 0x1p-24;
        const double turn = (tp_random_bits(stream, block, lane | 1) >> 8) * 0x1p-24;
        const double angle = 2 * acos(-1.0) * turn;
        const double want = sqrt(-2 * log(u)) * (lane % 2 == 0 ? cos(angle) : sin(angle));
        cr_assert_float_eq((double)tp_random_normal(stream, block, lane), want, 2e-6, "element %u",
                           i);
    }
    /* the ends: u = 2^-24 and u = 1 */
    cr_expect_float_eq((double)tp_random_normal_from_bits(0, 0, 0), sqrt(48 * log(2)), 1e-6);
    cr_expect_eq(tp_random_normal_from_bits(0xffffffffu, 0x12345678u, 1), 0.0f);
}

/* With n = 2^20 the standard errors are 1e-3 (mean), 1.4e-3 (variance), 4.8e-3 (kurtosis). */
Test(philox, normal_has_the_right_moments)
{
    const tp_random_stream stream = tp_random_stream_make(5, 6, 7, 8, 9);
    const uint32_t n = 1u << 20;
    double m1 = 0, m2 = 0, m4 = 0, neighbours = 0, before = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double z = (double)tp_random_normal(stream, i / 4, i % 4);
        m1 += z;
        m2 += z * z;
        m4 += z * z * z * z;
        neighbours += z * before;
        before = z;
    }
    cr_expect_float_eq(m1 / n, 0.0, 5e-3);
    cr_expect_float_eq(m2 / n, 1.0, 7e-3);
    cr_expect_float_eq(m4 / n, 3.0, 5e-2);
    cr_expect_float_eq(neighbours / n, 0.0, 5e-3);
}
