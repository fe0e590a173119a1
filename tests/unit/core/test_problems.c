/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/problems.h"

Test(problems, none_is_success)
{
    tp_problems problems = {0};
    cr_assert(tp_problems_add_failed(&problems, TPUCL_OK));
    cr_assert_eq(tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "x"), TPUCL_OK);
}

Test(problems, one_stands_alone_and_more_are_listed)
{
    tp_problems problems = {0};
    tp_problems_add(&problems, "a is %d", 1);
    cr_assert_eq(tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "x"), TPUCL_INVALID_CONFIG);
    cr_assert_str_eq(tpucl_last_error()->message, "a is 1");
    cr_assert_not(tp_problems_add_failed(&problems, TP_FAIL(TPUCL_NOT_FOUND, "no b")));
    cr_assert_eq(tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "x"), TPUCL_INVALID_CONFIG);
    cr_assert_str_eq(tpucl_last_error()->message, "x has 2 problems:\n  a is 1\n  no b");
}

Test(problems, too_many_are_counted)
{
    tp_problems problems = {0};
    for (int i = 0; i < 500; i++)
        tp_problems_add(&problems, "problem number %d", i);
    cr_assert_eq(tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "x"), TPUCL_INVALID_CONFIG);
    const char *message = tpucl_last_error()->message, *tail = strstr(message, "and ");
    int hidden = 0;
    cr_assert_eq(strncmp(message, "x has 500 problems:\n  problem number 0\n", 39), 0);
    cr_assert_eq(sscanf(tail, "and %d more", &hidden), 1);
    char last[64];
    snprintf(last, sizeof last, "problem number %d\n  and", 499 - hidden);
    cr_assert(strstr(message, last));
}

Test(problems, one_endless_line_is_cut)
{
    char line[5000];
    tp_problems problems = {0};
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    tp_problems_add(&problems, "%s", line);
    tp_problems_add(&problems, "%s", line);
    cr_assert_eq(tp_problems_result(&problems, TPUCL_INVALID_CONFIG, "y"), TPUCL_INVALID_CONFIG);
    cr_assert(strstr(tpucl_last_error()->message, "and 1 more"));
}
