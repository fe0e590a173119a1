/* SPDX-License-Identifier: Apache-2.0
 * Index arithmetic: what simplifies does, and every form has the value of the arithmetic it stands for.
 */
#include <criterion/criterion.h>
#include <string.h>
#include "compile/index.h"
#include "core/alloc.h"

typedef struct fixture {
    tp_arena *arena;
    tp_ix_context *c;
} fixture;

static fixture begin(void)
{
    fixture f;
    cr_assert_eq(tp_arena_create(0, &f.arena), TPUCL_OK);
    cr_assert_eq(tp_ix_context_create(f.arena, &f.c), TPUCL_OK);
    return f;
}

static void end(fixture *f)
{
    cr_assert_eq(tp_ix_check(f->c), TPUCL_OK);
    tp_arena_destroy(f->arena);
}

static void expect_text(const fixture *f, tp_ix form, const char *expected)
{
    static const char *const names[] = {"i", "j", "k", "l"};
    tp_str_builder out = {0};
    char *text = NULL;
    tp_ix_print(f->c, form, names, NULL, NULL, &out);
    cr_assert_eq(tp_str_builder_finish(&out, &text, NULL), TPUCL_OK);
    cr_assert_str_eq(text, expected);
    tp_free(text);
}

Test(index, sums_are_interned_and_sorted)
{
    fixture f = begin();
    const tp_ix i = tp_ix_add_var(f.c, 10, NULL), j = tp_ix_add_var(f.c, 7, NULL);
    const tp_ix a = tp_ix_add(f.c, tp_ix_scale(f.c, i, 7), j);
    const tp_ix b = tp_ix_add(f.c, j, tp_ix_scale(f.c, i, 7));
    cr_assert_eq(a, b);
    expect_text(&f, a, "(7 * i + j)");
    expect_text(&f, tp_ix_add(f.c, a, tp_ix_scale(f.c, i, -7)), "j");
    expect_text(&f, tp_ix_scale(f.c, a, 0), "0");
    expect_text(&f, tp_ix_add(f.c, tp_ix_scale(f.c, j, -1), tp_ix_const(f.c, 6)), "(-j + 6)");
    end(&f);
}

Test(index, a_variable_of_extent_one_is_zero)
{
    fixture f = begin();
    int32_t var;
    cr_assert_eq(tp_ix_add_var(f.c, 1, &var), TP_IX_ZERO);
    cr_assert_eq(tp_ix_var_extent(f.c, var), 1);
    end(&f);
}

Test(index, reshape_there_and_back_is_nothing)
{
    fixture f = begin();
    const tp_shape shape = {3, {4, 5, 6}}, flat = {1, {120}};
    const tp_ix tuple[3] = {tp_ix_add_var(f.c, 4, NULL), tp_ix_add_var(f.c, 5, NULL),
                            tp_ix_add_var(f.c, 6, NULL)};
    tp_ix one[1], back[3];
    tp_ix_delinearise(f.c, &flat, tp_ix_linearise(f.c, &shape, tuple), one);
    expect_text(&f, one[0], "(30 * i + 6 * j + k)");
    tp_ix_delinearise(f.c, &shape, one[0], back);
    for (int n = 0; n < 3; n++)
        cr_assert_eq(back[n], tuple[n]);
    end(&f);
}

Test(index, quotient_and_remainder_join_again)
{
    fixture f = begin();
    const tp_ix i = tp_ix_add_var(f.c, 100, NULL);
    const tp_ix q = tp_ix_div(f.c, i, 7), r = tp_ix_mod(f.c, i, 7);
    expect_text(&f, q, "(i / 7)");
    expect_text(&f, r, "(i % 7)");
    cr_assert_eq(tp_ix_add(f.c, tp_ix_scale(f.c, q, 7), r), i);
    cr_assert_eq(tp_ix_add(f.c, tp_ix_scale(f.c, r, 3), tp_ix_scale(f.c, q, 21)),
                 tp_ix_scale(f.c, i, 3));
    end(&f);
}

/* Rows of an image that a product counts by: image, line and column of a pixel, put together again. */
Test(index, quotients_of_quotients_join_again)
{
    fixture f = begin();
    const tp_ix i = tp_ix_add_var(f.c, 5 * 6 * 7, NULL);
    const tp_ix image = tp_ix_div(f.c, i, 42), line = tp_ix_mod(f.c, tp_ix_div(f.c, i, 7), 6);
    const tp_ix lines = tp_ix_add(f.c, tp_ix_scale(f.c, image, 6), line);
    cr_assert_eq(lines, tp_ix_div(f.c, i, 7));
    const tp_ix column = tp_ix_mod(f.c, i, 7);
    const tp_ix outer =
        tp_ix_add(f.c, tp_ix_scale(f.c, image, 42 * 16), tp_ix_scale(f.c, line, 7 * 16));
    cr_assert_eq(tp_ix_add(f.c, outer, tp_ix_scale(f.c, column, 16)), tp_ix_scale(f.c, i, 16));
    /* Another divisor, or another distance of images, and they stay apart. */
    expect_text(&f, tp_ix_add(f.c, tp_ix_scale(f.c, image, 5), line),
                "(5 * (i / 42) + ((i / 7) % 6))");
    end(&f);
}

Test(index, quotients_and_remainders_nest)
{
    fixture f = begin();
    const tp_ix i = tp_ix_add_var(f.c, 1000, NULL);
    expect_text(&f, tp_ix_div(f.c, tp_ix_div(f.c, i, 6), 5), "(i / 30)");
    expect_text(&f, tp_ix_mod(f.c, tp_ix_mod(f.c, i, 30), 6), "(i % 6)");
    cr_assert_eq(tp_ix_div(f.c, tp_ix_mod(f.c, i, 5), 5), TP_IX_ZERO);
    end(&f);
}

/* Value of a form at i, j, by its definition. */
static int64_t value_of(const tp_ix_context *c, tp_ix form, const int64_t *vars)
{
    const tp_ix_form *f = tp_ix_get(c, form);
    int64_t sum = f->constant;
    for (int32_t t = 0; t < f->term_count; t++) {
        const tp_ix_atom *atom = tp_ix_get_atom(c, f->terms[t].atom);
        int64_t value = atom->kind == TP_IX_VAR ? vars[atom->var] : value_of(c, atom->form, vars);
        if (atom->kind == TP_IX_DIV) value /= atom->divisor;
        if (atom->kind == TP_IX_MOD) value %= atom->divisor;
        sum += f->terms[t].coef * value;
    }
    cr_assert(sum >= f->lo && sum <= f->hi, "%lld outside of [%lld, %lld]", (long long)sum,
              (long long)f->lo, (long long)f->hi);
    return sum;
}

/* (a * i + b * j + c) / d and % d, for all i and j where the sum is not negative. */
Test(index, simplified_forms_have_the_right_value)
{
    static const int64_t numbers[] = {0, 1, 2, 3, 4, 6, 8, 12};
    enum { COUNT = sizeof numbers / sizeof numbers[0] };
    for (int ia = 0; ia < COUNT; ia++)
        for (int ib = 0; ib < COUNT; ib++)
            for (int64_t constant = -3; constant <= 7; constant += 5) {
                fixture f = begin();
                const int64_t a = numbers[ia], b = numbers[ib];
                const tp_ix i = tp_ix_add_var(f.c, 5, NULL), j = tp_ix_add_var(f.c, 4, NULL);
                const tp_ix sum =
                    tp_ix_add(f.c, tp_ix_add(f.c, tp_ix_scale(f.c, i, a), tp_ix_scale(f.c, j, b)),
                              tp_ix_const(f.c, constant));
                for (int64_t d = 1; d <= 12; d++) {
                    const tp_ix q = tp_ix_div(f.c, sum, d), r = tp_ix_mod(f.c, sum, d);
                    for (int64_t vi = 0; vi < 5; vi++)
                        for (int64_t vj = 0; vj < 4; vj++) {
                            const int64_t vars[] = {vi, vj}, n = a * vi + b * vj + constant;
                            if (n < 0) continue;
                            cr_assert_eq(value_of(f.c, q, vars), n / d);
                            cr_assert_eq(value_of(f.c, r, vars), n % d);
                        }
                }
                end(&f);
            }
}

Test(index, substitution_simplifies_again)
{
    fixture f = begin();
    int32_t v;
    const tp_ix i = tp_ix_add_var(f.c, 24, &v);
    const tp_ix form =
        tp_ix_add(f.c, tp_ix_scale(f.c, tp_ix_div(f.c, i, 6), 100), tp_ix_mod(f.c, i, 6));
    const tp_ix outer = tp_ix_add_var(f.c, 4, NULL), inner = tp_ix_add_var(f.c, 6, NULL);
    const tp_ix replacement[] = {tp_ix_add(f.c, tp_ix_scale(f.c, outer, 6), inner)};
    cr_assert(tp_ix_is_pinned(f.c, form, v));
    expect_text(&f, tp_ix_substitute(f.c, form, replacement, 1), "(100 * j + k)");
    end(&f);
}

Test(index, too_many_terms_are_an_error)
{
    fixture f = begin();
    tp_ix sum = TP_IX_ZERO;
    for (int n = 0; n <= TP_IX_MAX_TERMS; n++)
        sum = tp_ix_add(f.c, sum, tp_ix_add_var(f.c, 9, NULL));
    cr_assert_eq(tp_ix_check(f.c), TPUCL_INTERNAL);
    tp_arena_destroy(f.arena);
}
