/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/str.h"
#include "harness/alloc_loop.h"

Test(str, views)
{
    tp_view rest = tp_view_of("a,,b,"), part;
    const char *const expected[] = {"a", "", "b"};
    for (int i = 0; i < 3; i++) {
        cr_assert(tp_view_next(&rest, ',', &part));
        cr_assert(tp_view_equal_text(part, expected[i]));
    }
    cr_assert_not(tp_view_next(&rest, ',', &part));
    cr_assert(tp_view_equal_text(tp_view_trim(tp_view_of(" \t x y\n")), "x y"));
    cr_assert(tp_view_equal_text(tp_view_trim(tp_view_of("  ")), ""));
    cr_assert_eq(tp_view_of(NULL).length, 0);
    cr_assert(tp_str_contains_nocase("NVIDIA H200", "h20") && tp_str_contains_nocase("x", ""));
    cr_assert_not(tp_str_contains_nocase("H20", "h200"));
    cr_assert(tp_str_ends_with("run.json", ".json") && !tp_str_ends_with("n", ".json"));
    cr_assert(tp_str_starts_with("run.json", "run") && tp_str_equal(NULL, NULL));
    cr_assert_not(tp_str_equal("a", NULL));
}

static tpucl_status build(void *user)
{
    char *text;
    size_t length;
    tp_str_builder builder = {0};
    (void)user;
    for (int i = 0; i < 100; i++)
        tp_str_builder_printf(&builder, "%d,", i);
    tp_str_append_char(&builder, '!');
    tpucl_status status = tp_str_builder_finish(&builder, &text, &length);
    if (status != TPUCL_OK) return status;
    cr_assert_eq(strlen(text), length);
    cr_assert_eq(strncmp(text, "0,1,2,3,", 8), 0);
    cr_assert_str_eq(text + length - 4, "99,!");
    tp_free(text);
    return TPUCL_OK;
}

Test(str, builder_keeps_the_first_error)
{
    alloc_loop_run(build, NULL);
}

Test(str, empty_builder_gives_an_empty_text)
{
    char *text;
    tp_str_builder builder = {0};
    cr_assert_eq(tp_str_builder_finish(&builder, &text, NULL), TPUCL_OK);
    cr_assert_str_eq(text, "");
    tp_free(text);
}

Test(str, integers)
{
    int64_t value;
    uint64_t natural;
    cr_assert_eq(tp_str_parse_int64(tp_view_of("-9223372036854775808"), &value), TPUCL_OK);
    cr_assert_eq(value, INT64_MIN);
    cr_assert_eq(tp_str_parse_int64(tp_view_of("9223372036854775807"), &value), TPUCL_OK);
    cr_assert_eq(value, INT64_MAX);
    cr_assert_eq(tp_str_parse_uint64(tp_view_of("18446744073709551615"), &natural), TPUCL_OK);
    cr_assert_eq(natural, UINT64_MAX);
    const char *const wrong[] = {
        "",    "-",   "9223372036854775808", "-9223372036854775809", "1 ", "+1",
        "0x1", "12a", "18446744073709551616"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert_eq(tp_str_parse_int64(tp_view_of(wrong[i]), &value), TPUCL_INVALID_ARGUMENT, "%s",
                     wrong[i]);
    cr_assert_eq(tp_str_parse_int64(tp_view_of("12a"), &value), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "wrong at character 3"));
}

Test(str, doubles)
{
    double value;
    cr_assert_eq(tp_str_parse_double(tp_view_of("-1.5e-3"), &value), TPUCL_OK);
    cr_assert_eq(value, -0.0015);
    const char *const wrong[] = {"", "inf", "nan", "1.", ".5", "0x1p3", "1e", "1e400", "1,5", " 1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert_eq(tp_str_parse_double(tp_view_of(wrong[i]), &value), TPUCL_INVALID_ARGUMENT,
                     "'%s'", wrong[i]);
}

Test(str, shortest_text_of_a_double_reads_back)
{
    char text[TP_STR_DOUBLE_BYTES];
    const struct {
        double value;
        const char *text;
    } known[] = {{0.1, "0.1"},      {0.30000000000000004, "0.30000000000000004"},
                 {3, "3.0"},        {1e300, "1e+300"},
                 {-0.0, "-0.0"},    {5e-324, "5e-324"},
                 {INFINITY, "inf"}, {9007199254740993.0, "9007199254740992.0"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        tp_str_from_double(known[i].value, text);
        cr_assert_str_eq(text, known[i].text);
    }
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        tp_str_from_double(value, text);
        cr_assert_eq(tp_str_parse_double(tp_view_of(text), &back), TPUCL_OK);
        cr_assert_eq(memcmp(&value, &back, sizeof value), 0, "%s", text);
    }
}

Test(str, numbers_ignore_the_locale)
{
    char text[TP_STR_DOUBLE_BYTES];
    double value;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        cr_skip_test("no locale with a decimal comma is installed");
    tp_str_from_double(0.5, text);
    cr_assert_str_eq(text, "0.5");
    cr_assert_eq(tp_str_parse_double(tp_view_of("0.5"), &value), TPUCL_OK);
    cr_assert_eq(value, 0.5);
}

Test(str, bytes)
{
    char text[TP_STR_DOUBLE_BYTES];
    tp_str_from_bytes(512, text);
    cr_assert_str_eq(text, "512 B");
    tp_str_from_bytes(8589934592, text);
    cr_assert_str_eq(text, "8.00 GiB");
    tp_str_from_bytes(UINT64_MAX, text);
    cr_assert_str_eq(text, "16.00 EiB");
}

Test(str, utf8)
{
    const struct {
        const char *bytes;
        size_t length;
    } cases[] = {{"a", 1},        {"\xc3\xa9", 2},     {"\xe2\x82\xac", 3}, {"\xf0\x9f\x98\x80", 4},
                 {"\xc0\x80", 0}, {"\xe0\x80\x80", 0}, {"\xed\xa0\x80", 0}, {"\xf4\x90\x80\x80", 0},
                 {"\x80", 0},     {"\xff", 0},         {"\xc3", 0},         {"\xe2\x82", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_eq(tp_str_utf8_length(cases[i].bytes, strlen(cases[i].bytes)), cases[i].length,
                     "case %zu", i);
    cr_assert_eq(tp_str_utf8_length("", 0), 0);
}

Test(str, nearest_name)
{
    const char *const names[] = {"learning_rate", "momentum", "epochs", "steps"};
    cr_assert_str_eq(tp_str_nearest("learning_rat", names, 4), "learning_rate");
    cr_assert_str_eq(tp_str_nearest("LEARNING_RATE", names, 4), "learning_rate");
    cr_assert_str_eq(tp_str_nearest("epohcs", names, 4), "epochs"); /* a swap is one edit */
    cr_assert_str_eq(tp_str_nearest("step", names, 4), "steps");
    cr_assert_null(tp_str_nearest("batch", names, 4));
    cr_assert_null(tp_str_nearest("x", names, 0));
}
