/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/json_write.h"
#include "harness/alloc_loop.h"

static void write_sample(tp_json_writer *writer)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "z", "a\"\\\n\t\x01\x7f\xc3\xa9\xff");
    tp_json_put_int(writer, "big", INT64_MIN);
    tp_json_key(writer, "u");
    tp_json_write_uint(writer, UINT64_MAX);
    tp_json_put_double(writer, "x", 0.1);
    tp_json_put_double(writer, "nan", NAN);
    tp_json_key(writer, "list");
    tp_json_begin_inline_array(writer);
    tp_json_write_int(writer, 1);
    tp_json_write_bool(writer, true);
    tp_json_write_null(writer);
    tp_json_end_array(writer);
    tp_json_key(writer, "empty");
    tp_json_begin_array(writer);
    tp_json_end_array(writer);
    tp_json_key(writer, "objects");
    tp_json_begin_array(writer);
    tp_json_begin_object(writer);
    tp_json_end_object(writer);
    tp_json_write_string(writer, NULL);
    tp_json_end_array(writer);
    tp_json_end_object(writer);
}

static const char compact[] =
    "{\"z\":\"a\\\"\\\\\\n\\t\\u0001\\u007f\xc3\xa9\xef\xbf\xbd\",\"big\":-9223372036854775808,"
    "\"u\":18446744073709551615,\"x\":0.1,\"nan\":null,\"list\":[1,true,null],\"empty\":[],"
    "\"objects\":[{},null]}";

static const char pretty[] = "{\n"
                             "  \"z\": \"a\\\"\\\\\\n\\t\\u0001\\u007f\xc3\xa9\xef\xbf\xbd\",\n"
                             "  \"big\": -9223372036854775808,\n"
                             "  \"u\": 18446744073709551615,\n"
                             "  \"x\": 0.1,\n"
                             "  \"nan\": null,\n"
                             "  \"list\": [1, true, null],\n"
                             "  \"empty\": [],\n"
                             "  \"objects\": [\n"
                             "    {},\n"
                             "    null\n"
                             "  ]\n"
                             "}\n";

static tpucl_status write_and_drop(void *user)
{
    tp_json_writer writer = {.compact = *(bool *)user};
    char *text;
    write_sample(&writer);
    TP_TRY(tp_json_writer_finish(&writer, &text));
    cr_assert_str_eq(text, *(bool *)user ? compact : pretty);
    tp_free(text);
    return TPUCL_OK;
}

Test(json_write, pretty_and_compact)
{
    bool yes = true, no = false;
    alloc_loop_run(write_and_drop, &yes);
    alloc_loop_run(write_and_drop, &no);
}

Test(json_write, what_is_read_is_written_back)
{
    tp_json_document *document;
    char *text;
    cr_assert_eq(tp_json_parse(compact, strlen(compact), "t", &document), TPUCL_OK);
    tp_json_writer writer = {.compact = true};
    tp_json_write_value(&writer, tp_json_root(document));
    cr_assert_eq(tp_json_writer_finish(&writer, &text), TPUCL_OK);
    /* 2^64-1 is no int64 and comes back as the double that it rounds to */
    char *number = strstr(text, "18446744073709552000");
    cr_assert(number || strstr(text, "1.8446744073709552e+19"), "%s", text);
    tp_free(text);
    tp_json_destroy(document);
}

Test(json_write, wrong_order_is_reported)
{
    for (int wrong = 0; wrong < 6; wrong++) {
        tp_json_writer writer = {0};
        char *text;
        tp_json_begin_object(&writer);
        if (wrong == 0) tp_json_write_int(&writer, 1); /* no key */
        if (wrong == 1) tp_json_end_array(&writer);
        if (wrong == 2) tp_json_key(&writer, "a"); /* no value */
        if (wrong != 3) tp_json_end_object(&writer);
        if (wrong == 4) tp_json_write_int(&writer, 1); /* second root */
        if (wrong == 5) tp_json_end_object(&writer);
        cr_assert_eq(tp_json_writer_finish(&writer, &text), TPUCL_INTERNAL, "case %d", wrong);
    }
}
