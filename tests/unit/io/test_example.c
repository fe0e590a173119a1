/* SPDX-License-Identifier: Apache-2.0
 * The wire format and tf.Example: every corner that the format allows, against bytes written by hand, against
 * protoc, and on records that TensorFlow wrote. */
#include <criterion/criterion.h>
#include "core/alloc.h"
#include "harness/protoc.h"
#include "io/example.h"
#include "io/proto.h"
#include "io/tfrecord.h"

static tp_arena *arena;

static void setup(void)
{
    cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
}

static void teardown(void)
{
    tp_arena_destroy(arena);
}

TestSuite(proto);
TestSuite(example, .init = setup, .fini = teardown);

#define VIEW(text) ((tp_view){(text), sizeof(text) - 1})

/* ---- wire format ---- */

Test(proto, reads_every_wire_type_and_skips_groups)
{
    tp_proto_reader reader =
        tp_proto_read(VIEW("\x08\x96\x01"
                           "\x13\x08\x01\x1b\x1c\x14" /* group 2 with 3 in it */
                           "\x11\x01\x00\x00\x00\x00\x00\x00\x80"
                           "\x22\x03"
                           "abc"
                           "\x2d\x00\x00\x80\x3f"));
    tp_proto_field field;
    cr_assert(tp_proto_next(&reader, &field) && field.number == 1 && field.value == 150);
    cr_assert(tp_proto_next(&reader, &field) && field.number == 2 &&
              field.value == UINT64_C(0x8000000000000001));
    cr_assert(tp_proto_next(&reader, &field) && field.number == 4 &&
              tp_view_equal_text(field.bytes, "abc"));
    cr_assert(tp_proto_next(&reader, &field) && field.number == 5 && field.value == 0x3f800000);
    cr_assert(!tp_proto_next(&reader, &field) && !reader.mistake);
}

Test(proto, names_what_is_wrong)
{
    static const struct {
        tp_view bytes;
        const char *mistake;
    } cases[] = {
        {VIEW("\x08"), "has no value"},
        {VIEW("\x08\x80"), "is cut"},
        {VIEW("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "more than 10"},
        {VIEW("\x0a\x05"
              "abcd"),
         "exceeds"},
        {VIEW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "exceeds"},
        {VIEW("\x0d\x01\x02"), "4 bytes"},
        {VIEW("\x09\x01\x02"), "8 bytes"},
        {VIEW("\x0f"), "wire type"},
        {VIEW("\x00\x01"), "out of range"},
        {VIEW("\x0b\x14"), "not begun"},
        {VIEW("\x0b\x08\x01"), "does not end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_proto_reader reader = tp_proto_read(cases[i].bytes);
        tp_proto_field field;
        while (tp_proto_next(&reader, &field)) {
        }
        cr_assert(reader.mistake && strstr(reader.mistake, cases[i].mistake), "%zu: %s", i,
                  reader.mistake ? reader.mistake : "nothing");
        cr_assert(!tp_proto_next(&reader, &field));
    }
}

Test(proto, lengths_of_messages_take_as_many_bytes_as_they_need)
{
    static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384, 300000};
    char *bytes = calloc(1, 300000);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        tp_str_builder message = {0}, expected = {0};
        const size_t begin = tp_proto_begin(&message, 3);
        tp_str_append_bytes(&message, bytes, lengths[i]);
        tp_proto_end(&message, begin);
        tp_proto_put_bytes(&expected, 3, bytes, lengths[i]);
        cr_assert(message.status == TPUCL_OK && message.length == expected.length);
        cr_assert_arr_eq(message.data, expected.data, expected.length);
        tp_str_builder_deinit(&message);
        tp_str_builder_deinit(&expected);
    }
    free(bytes);
}

/* ---- reading Examples ---- */

/* An Example of one feature "a" whose Feature has these bytes, wrapped by hand. */
static tp_view wrap(const char *feature, size_t length)
{
    tp_str_builder to = {0};
    char *bytes;
    size_t total;
    const size_t features = tp_proto_begin(&to, 1), entry = tp_proto_begin(&to, 1);
    tp_proto_put_text(&to, 1, "a");
    tp_proto_put_bytes(&to, 2, feature, length);
    tp_proto_end(&to, entry);
    tp_proto_end(&to, features);
    cr_assert(tp_str_builder_finish(&to, &bytes, &total) == TPUCL_OK);
    const tp_view view = {tp_arena_strndup(arena, bytes, total), total};
    tp_free(bytes);
    return view;
}
#define WRAP(text) wrap((text), sizeof(text) - 1)

static tp_feature_values decode(tp_view record, tp_feature_kind kind, int64_t count)
{
    const tp_feature_spec spec = {.key = "a", .kind = kind, .count = count};
    tp_feature_values values;
    cr_assert(tp_example_decode(record, &spec, 1, arena, &values) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    return values;
}

static void refuse(tp_view record, tp_feature_kind kind, int64_t count, tpucl_status expected,
                   const char *text)
{
    const tp_feature_spec spec = {.key = "a", .kind = kind, .count = count};
    tp_feature_values values;
    cr_assert_eq(tp_example_decode(record, &spec, 1, arena, &values), expected);
    cr_assert(strstr(tpucl_last_error()->message, text), "%s", tpucl_last_error()->message);
}

Test(example, numbers_are_packed_or_not_or_both)
{
    /* int64_list { value: 1, value: -1 unpacked, then 5 and 300 packed } */
    const tp_view ints =
        WRAP("\x1a\x12\x08\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x03\x05\xac\x02");
    const tp_feature_values values = decode(ints, TP_FEATURE_INT64, 4);
    cr_assert(values.ints[0] == 1 && values.ints[1] == -1 && values.ints[2] == 5 &&
              values.ints[3] == 300);
    const tp_view floats =
        WRAP("\x12\x0f\x0d\x00\x00\x80\x3f\x0a\x08\x00\x00\x00\x40\x00\x00\x80\xbf");
    const tp_feature_values reals = decode(floats, TP_FEATURE_FLOAT, -1);
    cr_assert(reals.count == 3 && reals.floats[0] == 1 && reals.floats[1] == 2 &&
              reals.floats[2] == -1);
}

Test(example, bytes_stay_where_they_are)
{
    const tp_view record = WRAP("\x0a\x07\x0a\x03xyz\x0a\x00");
    const tp_feature_values values = decode(record, TP_FEATURE_BYTES, 2);
    cr_assert(tp_view_equal_text(values.bytes[0], "xyz") && values.bytes[1].length == 0);
    cr_assert(values.bytes[0].data > record.data &&
              values.bytes[0].data < record.data + record.length);
}

/* Lists of one kind merge, another kind replaces them; unknown fields are passed over. */
Test(example, messages_merge_as_protoc_merges_them)
{
    const tp_feature_values merged =
        decode(WRAP("\x1a\x02\x08\x01\x7a\x01z\x1a\x02\x08\x02"), TP_FEATURE_INT64, 2);
    cr_assert(merged.ints[0] == 1 && merged.ints[1] == 2);
    const tp_feature_values replaced =
        decode(WRAP("\x1a\x02\x08\x01\x0a\x03\x0a\x01q"), TP_FEATURE_BYTES, 1);
    cr_assert(tp_view_equal_text(replaced.bytes[0], "q"));
    const tp_feature_values again =
        decode(WRAP("\x1a\x02\x08\x01\x0a\x03\x0a\x01q\x1a\x02\x08\x07"), TP_FEATURE_INT64, 1);
    cr_assert_eq(again.ints[0], 7);
}

Test(example, the_last_of_equal_keys_counts)
{
    const tp_view record = VIEW("\x0a\x1a"
                                "\x0a\x0b\x0a\x01"
                                "a\x12\x06\x1a\x04\x0a\x02\x01\x02"
                                "\x0a\x0b\x12\x06\x1a\x04\x0a\x02\x05\x06\x0a\x01"
                                "a");
    const tp_feature_values values = decode(record, TP_FEATURE_INT64, 2);
    cr_assert(values.ints[0] == 5 && values.ints[1] == 6);
    const tp_feature_entry *entries;
    size_t count;
    cr_assert(tp_example_list(record, arena, &entries, &count) == TPUCL_OK);
    cr_assert_eq(count, 1);
    tp_feature_values listed;
    cr_assert(tp_feature_decode(entries[0].feature, arena, &listed) == TPUCL_OK);
    cr_assert(listed.kind == TP_FEATURE_INT64 && listed.ints[0] == 5);
}

Test(example, what_does_not_fit_is_said)
{
    refuse(WRAP("\x1a\x03\x0a\x01\x05"), TP_FEATURE_FLOAT, 1, TPUCL_INVALID_ARGUMENT,
           "'a' holds int64, expected float");
    refuse(WRAP("\x1a\x03\x0a\x01\x05"), TP_FEATURE_INT64, 2, TPUCL_INVALID_ARGUMENT,
           "'a' has 1 values, expected 2");
    refuse(VIEW(""), TP_FEATURE_INT64, 1, TPUCL_INVALID_ARGUMENT, "'a' is missing");
    refuse(WRAP(""), TP_FEATURE_INT64, 1, TPUCL_INVALID_ARGUMENT, "'a' is missing");
    refuse(WRAP("\x12\x05\x0a\x03\x01\x02\x03"), TP_FEATURE_FLOAT, -1, TPUCL_CORRUPT_DATA, "'a'");
    refuse(WRAP("\x1a\x04\x0a\x02\x01\x80"), TP_FEATURE_INT64, -1, TPUCL_CORRUPT_DATA, "is cut");
    refuse(WRAP("\x0a\x02\x08\x01"), TP_FEATURE_BYTES, 1, TPUCL_CORRUPT_DATA, "no bytes");
    refuse(WRAP("\x1a\x05\x0d\x01\x02\x03\x04"), TP_FEATURE_INT64, 1, TPUCL_CORRUPT_DATA, "varint");
    refuse(VIEW("\x0a\x05\x0a\x09"), TP_FEATURE_INT64, 1, TPUCL_CORRUPT_DATA, "exceeds");
}

Test(example, what_is_missing_has_its_default)
{
    const float half = 0.5f;
    const tp_feature_spec spec = {.key = "w",
                                  .kind = TP_FEATURE_FLOAT,
                                  .is_optional = true,
                                  .count = 1,
                                  .missing = {.count = 1, .floats = &half}};
    tp_feature_values values;
    cr_assert(tp_example_decode(WRAP(""), &spec, 1, arena, &values) == TPUCL_OK);
    cr_assert(values.kind == TP_FEATURE_FLOAT && values.count == 1 && values.floats[0] == 0.5f);
}

/* ---- TensorFlow's records, protoc's reading ---- */

static tp_record_reader *open_golden(const char *name)
{
    char path[512];
    tp_reader *source = NULL;
    tp_record_reader *reader = NULL;
    snprintf(path, sizeof path, TPUCL_SOURCE_DIR "/tests/golden/records/%s", name);
    cr_assert(tp_reader_open_file(path, 0, &source) == TPUCL_OK);
    cr_assert(tp_record_reader_adopt(source, NULL, &reader) == TPUCL_OK);
    return reader;
}

static tp_view next(tp_record_reader *reader)
{
    tp_record record;
    bool found;
    cr_assert(tp_record_reader_next(reader, &record, &found) == TPUCL_OK && found);
    return (tp_view){(const char *)record.bytes, record.length};
}

/* As tests/golden/gen_records.py says; what TensorFlow wrote is written again to the byte. */
Test(example, reads_and_writes_what_tensorflow_writes)
{
    const float one = 1;
    const tp_feature_spec specs[] = {
        {.key = "box", .kind = TP_FEATURE_FLOAT, .count = 4},
        {.key = "image", .kind = TP_FEATURE_BYTES, .count = 1},
        {.key = "label", .kind = TP_FEATURE_INT64, .count = 1},
        {.key = "words", .kind = TP_FEATURE_BYTES, .count = -1},
        {.key = "weight",
         .kind = TP_FEATURE_FLOAT,
         .is_optional = true,
         .count = 1,
         .missing = {.count = 1, .floats = &one}},
    };
    tp_record_reader *reader = open_golden("examples.none.tfrecord");
    for (int i = 0; i < 3; i++) {
        const tp_view record = next(reader);
        tp_feature_values values[5];
        cr_assert(tp_example_decode(record, specs, 5, arena, values) == TPUCL_OK);
        cr_assert_eq(values[0].floats[3], (float)i + 0.75f);
        cr_assert(values[1].bytes[0].length == 7 && values[1].bytes[0].data[4] == i);
        cr_assert_eq(values[2].ints[0], i - 1);
        cr_assert_eq(values[3].count, i);
        cr_assert_eq(values[4].floats[0], i < 2 ? 0.5f + (float)i : 1);

        const tp_feature_entry *entries;
        size_t count;
        tp_feature features[8];
        tp_str_builder again = {0};
        cr_assert(tp_example_list(record, arena, &entries, &count) == TPUCL_OK);
        for (size_t k = 0; k < count; k++) {
            features[k].key = tp_arena_strndup(arena, entries[k].key.data, entries[k].key.length);
            cr_assert(tp_feature_decode(entries[k].feature, arena, &features[k].values) ==
                      TPUCL_OK);
        }
        tp_example_encode(&again, features, count);
        cr_assert(again.status == TPUCL_OK && again.length == record.length);
        cr_assert_arr_eq(again.data, record.data, record.length);
        tp_str_builder_deinit(&again);
    }
    tp_record_reader_close(reader);
}

Test(example, reads_sequences_of_tensorflow)
{
    const tp_feature_spec context = {.key = "length", .kind = TP_FEATURE_INT64, .count = 1};
    const tp_feature_spec lists[] = {
        {.key = "tokens", .kind = TP_FEATURE_INT64, .count = 2},
        {.key = "names", .kind = TP_FEATURE_BYTES, .count = -1},
        {.key = "none", .kind = TP_FEATURE_INT64, .is_optional = true}};
    tp_record_reader *reader = open_golden("sequences.tfrecord");
    for (size_t i = 0; i < 2; i++) {
        tp_feature_values length;
        tp_sequence_values out[3];
        const tp_view record = next(reader);
        cr_assert(tp_sequence_decode(record, &context, 1, &length, lists, 3, out, arena) ==
                  TPUCL_OK);
        cr_assert_eq(length.ints[0], (int64_t)i + 2);
        cr_assert(out[0].steps == i + 2 && out[0].values.count == 2 * (i + 2));
        for (size_t k = 0; k < out[0].steps; k++)
            cr_assert(out[0].values.ints[2 * k] == (int64_t)k &&
                      out[0].values.ints[2 * k + 1] == -(int64_t)k);
        cr_assert(out[1].steps == i + 1 && out[1].ends[0] == 0 && out[1].ends[i] == i);
        cr_assert_eq(out[2].steps, 0);
    }
    tp_record_reader_close(reader);
}

Test(example, protoc_reads_what_is_written)
{
    const tp_view words[] = {VIEW("one"), VIEW("\x00\xff")};
    const float floats[] = {0.5f, -2};
    const int64_t ints[] = {-1, 0, 300};
    const tp_feature features[] = {
        {"words", {.kind = TP_FEATURE_BYTES, .count = 2, .bytes = words}},
        {"floats", {.kind = TP_FEATURE_FLOAT, .count = 2, .floats = floats}},
        {"ints", {.kind = TP_FEATURE_INT64, .count = 3, .ints = ints}},
        {"nothing", {.kind = TP_FEATURE_NONE}},
    };
    tp_str_builder to = {0};
    tp_example_encode(&to, features, 4);
    char *text = protoc_decode("example", "Example", to.data, to.length);
    const char *expected[] = {"value: \"one\"", "value: \"\\000\\377\"",
                              "value: 0.5",     "value: -2",
                              "value: -1",      "value: 0",
                              "value: 300",     "key: \"nothing\""};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        cr_assert(strstr(text, expected[i]), "%s in %s", expected[i], text);
    cr_assert(!strstr(text, "1: "), "protoc does not know a field: %s", text);
    free(text);
    tp_str_builder_deinit(&to);

    const tp_feature_values steps[] = {{.kind = TP_FEATURE_INT64, .count = 1, .ints = ints},
                                       {.kind = TP_FEATURE_INT64, .count = 2, .ints = ints + 1}};
    const tp_feature_list list = {"steps", steps, 2};
    tp_sequence_encode(&to, &features[1], 1, &list, 1);
    text = protoc_decode("example", "SequenceExample", to.data, to.length);
    cr_assert(strstr(text, "feature_lists {") && strstr(text, "context {") &&
              strstr(text, "value: 300"));
    free(text);
    tp_str_builder_deinit(&to);
}
