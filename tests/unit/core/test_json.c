/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/json.h"
#include "core/str.h"
#include "harness/alloc_loop.h"

static tp_json_document *parse(const char *text)
{
    tp_json_document *document;
    tpucl_status status = tp_json_parse(text, strlen(text), "t", &document);
    cr_assert_eq(status, TPUCL_OK, "%s: %s", text, tpucl_last_error()->message);
    return document;
}

Test(json, values_know_kind_place_and_path)
{
    tp_json_document *document =
        parse("{\"a\": [1, 2.5, \"x\\u00e9\\n\"],\n  \"b\": {\"c\": true, \"d\": null}}");
    const tp_json *root = tp_json_root(document), *a = tp_json_member(root, "a");
    char where[TP_JSON_WHERE_BYTES], path[64];
    cr_assert(root->kind == TP_JSON_OBJECT && root->count == 2 && root->line == 1);
    cr_assert(a->kind == TP_JSON_ARRAY && a->count == 3);
    cr_assert(a->items[0].kind == TP_JSON_INTEGER && a->items[0].integer == 1);
    cr_assert(a->items[1].kind == TP_JSON_NUMBER && a->items[1].number == 2.5);
    cr_assert_str_eq(a->items[2].string, "x\xc3\xa9\n");
    const tp_json *c = tp_json_member(tp_json_member(root, "b"), "c");
    cr_assert(c->kind == TP_JSON_BOOL && c->boolean && c->line == 2 && c->column == 14);
    cr_assert_str_eq(tp_json_where(c, where), "t:2:14 (key path 'b.c')");
    cr_assert_str_eq(tp_json_path(&a->items[2], path, sizeof path), "a[2]");
    cr_assert_str_eq(tp_json_where(root, where), "t:1:1");
    cr_assert_null(tp_json_member(root, "A")); /* case matters */
    cr_assert_null(tp_json_member(a, "a"));
    tp_json_destroy(document);
    tp_json_destroy(NULL);
}

Test(json, integers_are_exact)
{
    tp_json_document *document =
        parse("[9007199254740993, -9223372036854775808, 9223372036854775807, 9223372036854775808,"
              " 1e3, -0, 123456789012345678901234567890123456789012345678901234567890123456789]");
    const tp_json *items = tp_json_root(document)->items;
    cr_assert_eq(items[0].integer, 9007199254740993);
    cr_assert_eq(items[1].integer, INT64_MIN);
    cr_assert_eq(items[2].integer, INT64_MAX);
    cr_assert_eq(items[3].kind, TP_JSON_NUMBER);
    cr_assert_eq(items[3].number, 0x1p63);
    cr_assert_eq(items[4].kind, TP_JSON_NUMBER);
    cr_assert(items[5].kind == TP_JSON_INTEGER && items[5].integer == 0);
    cr_assert_eq(items[6].number, 1.2345678901234568e68);
    int64_t value;
    cr_assert_eq(tp_json_as_int64(&items[3], INT64_MIN, INT64_MAX, &value), TPUCL_INVALID_CONFIG);
    tp_json_destroy(document);
}

Test(json, good_texts)
{
    const char *const good[] = {"0",
                                "-0.0e+00",
                                "\"\"",
                                "[]",
                                "{}",
                                " \t\r\n[ ] \n",
                                "true",
                                "\"\\ud83d\\ude00\"",
                                "[[[[]]]]",
                                "{\"\":0}",
                                "\"\x7f\"",
                                "{\"a\":1,\"A\":2}",
                                "\"\\u0041\\/\""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        tp_json_destroy(parse(good[i]));
    tp_json_document *document = parse("\"\\ud83d\\ude00\"");
    cr_assert_str_eq(tp_json_root(document)->string, "\xf0\x9f\x98\x80");
    tp_json_destroy(document);
}

/* Each with the place that the message must name. */
Test(json, hostile_texts)
{
    const struct {
        const char *text, *message;
    } bad[] = {
        {"", "expected a value, found the end of the text at t:1:1"},
        {"\xef\xbb\xbf{}", "without a byte order mark"},
        {"01", "expected a number without a leading zero, found '1' at t:1:2"},
        {"-", "expected a digit, found the end of the text at t:1:2"},
        {"-a", "t:1:2"},
        {"1.", "t:1:3"},
        {".5", "t:1:1"},
        {"+1", "found '+' at t:1:1"},
        {"1e", "t:1:3"},
        {"1e+", "t:1:4"},
        {"0x10", "expected nothing after the value, found 'x' at t:1:2"},
        {"NaN", "t:1:1"},
        {"Infinity", "t:1:1"},
        {"1e400", "expected a number that a double can hold, found '1e400' at t:1:1"},
        {"nul", "t:1:1"},
        {"True", "t:1:1"},
        {"[1,]", "expected a value, found ']' at t:1:4 (key path '[1]')"},
        {"[1 2]", "expected ',' or ']', found '2' at t:1:4"},
        {"[1", "found the end of the text at t:1:3"},
        {"[", "t:1:2"},
        {"{", "t:1:2"},
        {"{\"a\"}", "expected ':', found '}' at t:1:5 (key path 'a')"},
        {"{\"a\":}", "t:1:6 (key path 'a')"},
        {"{\"a\":1,}", "expected a key in double quotes, found '}' at t:1:8"},
        {"{a:1}", "expected a key in double quotes, found 'a' at t:1:2"},
        {"{'a':1}", "t:1:2"},
        {"{\"a\":1 \"b\":2}", "expected ',' or '}', found '\"' at t:1:8"},
        {"{\"a\":{\"b\":[1,\n  {\"c\":x}]}}", "found 'x' at t:2:8 (key path 'a.b[1].c')"},
        {"{} {}", "expected nothing after the value, found '{' at t:1:4"},
        {"// c\n1", "t:1:1"},
        {"\"a\tb\"", "found byte 0x09 at t:1:3"},
        {"\"a\nb\"", "found byte 0x0a at t:1:3"},
        {"\"abc", "expected a closing quote, found the end of the text at t:1:5"},
        {"\"\\", "t:1:3"},
        {"\"\\x\"", "found 'x' at t:1:3"},
        {"\"\\u12g4\"", "expected four hexadecimal digits after '\\u', found 'g' at t:1:6"},
        {"\"\\u0000\"", "expected a string without zero characters"},
        {"\"\\ud800\"", "half of a surrogate pair"},
        {"\"\\udc00\"", "half of a surrogate pair"},
        {"\"\\ud800\\u0041\"", "half of a surrogate pair"},
        {"\"\\ud800x\"", "half of a surrogate pair"},
        {"\"\xff\"", "expected valid UTF-8, found byte 0xff at t:1:2"},
        {"\"\xc0\xaf\"", "valid UTF-8"},
        {"\"\xed\xa0\x80\"", "valid UTF-8"},
        {"\"\xe2\x82", "valid UTF-8"},
        {"{\"a\":1,\n\"b\":2,\n\"a\":3}",
         "expected every key once, found 'a' again (first on line 1) at t:3:5 (key path 'a')"},
        {"{\"x\":{\"\\u0061\":1,\"a\":2}}", "found 'a' again"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tp_json_document *document;
        tpucl_status status = tp_json_parse(bad[i].text, strlen(bad[i].text), "t", &document);
        cr_assert_eq(status, TPUCL_INVALID_CONFIG, "accepted: %s", bad[i].text);
        cr_assert_null(document);
        cr_assert(strstr(tpucl_last_error()->message, bad[i].message), "%s\n gives: %s\n not: %s",
                  bad[i].text, tpucl_last_error()->message, bad[i].message);
    }
}

Test(json, zero_byte_in_the_text)
{
    tp_json_document *document;
    cr_assert_eq(tp_json_parse("1\0", 2, "t", &document), TPUCL_INVALID_CONFIG);
    cr_assert_eq(tp_json_parse("\"\0\"", 3, "t", &document), TPUCL_INVALID_CONFIG);
    cr_assert(strstr(tpucl_last_error()->message, "byte 0x00 at t:1:2"));
}

static void nested(int levels, char *out_text)
{
    memset(out_text, '[', (size_t)levels);
    memset(out_text + levels, ']', (size_t)levels);
    out_text[2 * levels] = '\0';
}

Test(json, depth_is_limited)
{
    char text[300];
    tp_json_document *document;
    nested(TP_JSON_DEPTH_LIMIT, text);
    tp_json_destroy(parse(text));
    nested(TP_JSON_DEPTH_LIMIT + 1, text);
    cr_assert_eq(tp_json_parse(text, strlen(text), "t", &document), TPUCL_INVALID_CONFIG);
    cr_assert(strstr(tpucl_last_error()->message, "expected at most 100 levels"));
    static char endless[1 << 20];
    memset(endless, '[', sizeof endless);
    cr_assert_eq(tp_json_parse(endless, sizeof endless, "t", &document), TPUCL_INVALID_CONFIG);
}

/* Every prefix of a good text is refused without reading past its end (the sanitizers watch). */
Test(json, truncated_anywhere)
{
    const char *text =
        "{\"a\":[1,-2.5e3,true,null,\"\\ud83d\\ude00\xc3\xa9\"],\"b\":{\"c\":false}}";
    for (size_t length = 0; length < strlen(text); length++) {
        char *copy = tp_alloc(length);
        memcpy(copy, text, length);
        tp_json_document *document;
        cr_assert_eq(tp_json_parse(copy, length, "t", &document), TPUCL_INVALID_CONFIG);
        tp_free(copy);
    }
}

Test(json, many_keys_are_found)
{
    tp_str_builder text = {0};
    char *json, key[16];
    size_t length;
    for (int i = 0; i < 5000; i++)
        tp_str_builder_printf(&text, "%s\"k%d\":%d", i ? "," : "{", (i * 7919) % 5000, i);
    tp_str_append_char(&text, '}');
    cr_assert_eq(tp_str_builder_finish(&text, &json, &length), TPUCL_OK);
    tp_json_document *document = parse(json);
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "k%d", (i * 7919) % 5000);
        cr_assert_eq(tp_json_member(tp_json_root(document), key)->integer, i);
    }
    cr_assert_null(tp_json_member(tp_json_root(document), "k5000"));
    tp_json_destroy(document);
    tp_free(json);
}

static void expect_message(tpucl_status status, const char *message)
{
    cr_assert_eq(status, TPUCL_INVALID_CONFIG);
    cr_assert_str_eq(tpucl_last_error()->message, message);
}

Test(json, typed_access_says_what_it_found)
{
    tp_json_document *document = parse("{\"n\":9,\"s\":\"mean\",\"x\":1.5,\"o\":{}}");
    const tp_json *root = tp_json_root(document), *value;
    int64_t n = 0;
    double x = 0;
    bool b;
    const char *s;
    size_t index;
    const char *const names[] = {"mean", "sum"}, *const others[] = {"meal", "sum"};
    cr_assert_eq(tp_json_as_int64(tp_json_member(root, "n"), 0, 9, &n), TPUCL_OK);
    cr_assert_eq(n, 9);
    expect_message(tp_json_as_int64(tp_json_member(root, "n"), 1, 8, &n),
                   "expected an integer from 1 to 8, found 9 at t:1:6 (key path 'n')");
    expect_message(tp_json_as_int64(tp_json_member(root, "x"), 1, INT64_MAX, &n),
                   "expected an integer of at least 1, found 1.5 at t:1:23 (key path 'x')");
    expect_message(tp_json_as_double(tp_json_member(root, "s"), 0, INFINITY, &x),
                   "expected a number of at least 0.0, found the string 'mean' at t:1:12 (key path "
                   "'s')");
    cr_assert_eq(tp_json_as_double(tp_json_member(root, "n"), 0, 10, &x), TPUCL_OK);
    cr_assert_eq(x, 9);
    expect_message(tp_json_as_bool(tp_json_member(root, "o"), &b),
                   "expected true or false, found an object at t:1:31 (key path 'o')");
    cr_assert_eq(tp_json_as_choice(tp_json_member(root, "s"), names, 2, &index), TPUCL_OK);
    cr_assert_eq(index, 0);
    expect_message(
        tp_json_as_choice(tp_json_member(root, "s"), others, 2, &index),
        "expected one of 'meal', 'sum' (did you mean 'meal'?), found the string 'mean' at "
        "t:1:12 (key path 's')");
    expect_message(tp_json_require(root, "q", TP_JSON_STRING, &value),
                   "key 'q' (a string) is missing in the object at t:1:1");
    cr_assert_eq(tp_json_require(root, "n", TP_JSON_NUMBER, &value), TPUCL_OK);
    cr_assert_eq(tp_json_get_string(root, "s", &s), TPUCL_OK);
    cr_assert_str_eq(s, "mean");
    n = 4;
    cr_assert_eq(tp_json_get_int64(root, "absent", 0, 1, &n), TPUCL_OK);
    cr_assert_eq(n, 4);
    const char *const keys[] = {"n", "s", "xx", "o"};
    expect_message(tp_json_check_keys(root, keys, 4),
                   "unknown key 'x' at t:1:23 (key path 'x'), did you mean 'xx'?");
    tp_json_destroy(document);
}

static tpucl_status parse_and_drop(void *user)
{
    tp_json_document *document;
    tpucl_status status = tp_json_parse(user, strlen(user), "t", &document);
    tp_json_destroy(document);
    return status;
}

Test(json, every_allocation_may_fail)
{
    alloc_loop_run(parse_and_drop,
                   "{\"a\":[1,2,{\"b\":\"text\",\"c\":[]}],\"d\":1.5,\"e\":[[],[[]],{}]}");
}
