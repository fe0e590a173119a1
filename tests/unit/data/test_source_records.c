/* SPDX-License-Identifier: Apache-2.0
 * Records as a source: the order of tf.data's interleave, every kind of field, damage that stops or is left
 * out, compressed files, the cache, and wrong specifications. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/file.h"
#include "data/pipeline.h"
#include "data/source_records.h"
#include "io/example.h"

enum { FILES = 5 };
static const int lengths[FILES] = {5, 2, 7, 1, 4};

static char folder[64];
static char names[FILES][96];
static const char *paths[FILES];

/* Record i of file f holds the label 10 f + i and three floats. */
static void write_file(int f, tp_compression compression)
{
    tp_writer *target = NULL;
    tp_record_writer *writer = NULL;
    snprintf(names[f], sizeof names[f], "%s/part-%d", folder, f);
    paths[f] = names[f];
    cr_assert(tp_writer_open_file(names[f], &target) == TPUCL_OK);
    cr_assert(tp_record_writer_adopt(target, compression, &writer) == TPUCL_OK);
    for (int i = 0; i < lengths[f]; i++) {
        const int64_t label = 10 * f + i;
        const float x[] = {(float)f, (float)i, 0.5f};
        const uint8_t raw[] = {(uint8_t)f, (uint8_t)i};
        const tp_view bytes = {(const char *)raw, 2};
        const tp_feature list[] = {
            {"label", {.kind = TP_FEATURE_INT64, .count = 1, .ints = &label}},
            {"x", {.kind = TP_FEATURE_FLOAT, .count = 3, .floats = x}},
            {"raw", {.kind = TP_FEATURE_BYTES, .count = 1, .bytes = &bytes}}};
        tp_str_builder record = {0};
        tp_example_encode(&record, list, 3);
        cr_assert(tp_record_writer_put(writer, record.data, record.length) == TPUCL_OK);
        tp_str_builder_deinit(&record);
    }
    cr_assert(tp_record_writer_commit(writer) == TPUCL_OK);
}

static void setup(void)
{
    strcpy(folder, "/tmp/tpucl_records_XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    for (int f = 0; f < FILES; f++)
        write_file(f, TP_COMPRESSION_NONE);
}

static void teardown(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(source_records, .init = setup, .fini = teardown);

static tp_arena *arena;

static tp_record_source_options options_of(const char *input, const char *label)
{
    tp_record_source_options options = {.paths = paths,
                                        .path_count = FILES,
                                        .field_count = 2,
                                        .label_count = 1,
                                        .index = {.resident_bytes = 1 << 20}};
    if (!arena) cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
    cr_assert(tp_record_field_parse(input, arena, &options.fields[0]) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    cr_assert(tp_record_field_parse(label, arena, &options.fields[1]) == TPUCL_OK);
    options.fields[0].name = "x";
    options.fields[1].name = "label";
    return options;
}

static tp_source *open_source(const tp_record_source_options *options)
{
    tp_source *source = NULL;
    cr_assert(tp_source_open_records(options, &source) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    return source;
}

/* Labels of an epoch in order; -1 where a batch has no more. Returns how many records were left out. */
static int64_t read_labels(const tp_source *source, int32_t threads, int32_t *out)
{
    const tp_pipeline_options options = {.batch = 4, .epochs = 1, .threads = threads};
    tp_pipeline *pipeline = NULL;
    const tp_batch *batch = NULL;
    int64_t missing = 0;
    tpucl_status status;
    cr_assert(tp_pipeline_create(source, &options, &pipeline) == TPUCL_OK);
    while ((status = tp_pipeline_next(pipeline, &batch)) == TPUCL_OK) {
        missing += batch->missing;
        for (int64_t row = 0; row < batch->valid; row++)
            *out++ = ((const int32_t *)batch->arrays[1])[row];
    }
    cr_assert_eq(status, TPUCL_END_OF_DATA, "%s", tpucl_last_error()->message);
    *out = -1;
    tp_pipeline_destroy(pipeline);
    return missing;
}

/* Expected: what tf.data.Dataset.interleave gave for the same files (TensorFlow 2.18, deterministic). */
Test(source_records, interleave_is_tf_datas)
{
    static const struct {
        int64_t cycle, block;
        int32_t wanted[20];
    } cases[] = {
        {1, 1, {0, 1, 2, 3, 4, 10, 11, 20, 21, 22, 23, 24, 25, 26, 30, 40, 41, 42, 43, -1}},
        {2, 3, {0, 1, 2, 10, 11, 3, 4, 20, 21, 22, 30, 23, 24, 25, 40, 41, 42, 26, 43, -1}},
        {3, 2, {0, 1, 10, 11, 20, 21, 2, 3, 22, 23, 4, 30, 24, 25, 40, 41, 26, 42, 43, -1}},
        {5, 1, {0, 10, 20, 30, 40, 1, 11, 21, 41, 2, 22, 42, 3, 23, 43, 4, 24, 25, 26, -1}},
        {9, 1, {0, 10, 20, 30, 40, 1, 11, 21, 41, 2, 22, 42, 3, 23, 43, 4, 24, 25, 26, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t labels[32];
        tp_record_source_options options = options_of("x float[3]", "label int");
        options.index.cycle_length = cases[i].cycle;
        options.index.block_length = cases[i].block;
        tp_source *source = open_source(&options);
        cr_assert_eq(source->example_count, 19);
        for (int32_t threads = 1; threads <= 5; threads += 2) {
            cr_assert_eq(read_labels(source, threads, labels), 0);
            cr_assert_arr_eq(labels, cases[i].wanted, sizeof cases[i].wanted, "case %zu", i);
        }
        tp_source_destroy(source);
    }
}

static void read_one(const tp_source *source, int64_t example, void *input, int32_t *label)
{
    void *worker = NULL, *out[] = {input, label};
    bool is_there = false;
    const tp_source_place place = {.example = example};
    cr_assert(source->ops->open_worker(source, &worker) == TPUCL_OK);
    cr_assert(source->ops->read(source, worker, &place, out, &is_there) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    cr_assert(is_there);
    source->ops->close_worker(worker);
}

Test(source_records, kinds_of_fields)
{
    float x[3];
    uint8_t raw[2];
    int32_t label;
    tp_record_source_options options = options_of("x float[3]", "label int -1");
    tp_source *source = open_source(&options);
    cr_assert(source->fields[0].dtype == TP_F32 && source->fields[0].bytes == 12);
    read_one(source, 8, x, &label); /* record 1 of file 2 */
    cr_assert(x[0] == 2 && x[1] == 1 && x[2] == 0.5f && label == 20);
    tp_source_destroy(source);
    options = options_of("raw bytes[1,2]", "label int");
    source = open_source(&options);
    cr_assert(source->fields[0].dtype == TP_U8 && source->fields[0].shape.rank == 2);
    read_one(source, 18, raw, &label);
    cr_assert(raw[0] == 4 && raw[1] == 3 && label == 43);
    tp_source_destroy(source);
}

static void change_byte(const char *path, long offset)
{
    FILE *file = fopen(path, "r+b");
    cr_assert(file && fseek(file, offset, SEEK_SET) == 0);
    const int byte = fgetc(file);
    cr_assert(fseek(file, offset, SEEK_SET) == 0 && fputc(byte ^ 1, file) != EOF);
    fclose(file);
}

Test(source_records, damaged_contents_stop_or_are_left_out)
{
    static const int32_t wanted[] = {0,  1,  2,  3,  4,  10, 11, 21, 22, 23,
                                     24, 25, 26, 30, 40, 41, 42, 43, -1};
    int32_t labels[32];
    tp_pipeline *pipeline = NULL;
    const tp_batch *batch = NULL;
    const tp_pipeline_options once = {.batch = 19, .epochs = 1, .threads = 3};
    tp_record_source_options options = options_of("x float[3]", "label int");
    tp_source *source = open_source(&options);
    change_byte(paths[2], 20); /* in the contents of its first record */
    cr_assert(tp_pipeline_create(source, &once, &pipeline) == TPUCL_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(tp_pipeline_next(pipeline, &batch), TPUCL_CORRUPT_DATA);
        const char *message = tpucl_last_error()->message;
        cr_assert(strstr(message, paths[2]) && strstr(message, "offset 0"), "%s", message);
    }
    tp_pipeline_destroy(pipeline);
    tp_source_destroy(source);
    options.index.policy = TP_RECORD_SKIP;
    source = open_source(&options);
    for (int32_t threads = 1; threads <= 3; threads++) {
        cr_assert_eq(read_labels(source, threads, labels), 1);
        cr_assert_arr_eq(labels, wanted, sizeof wanted);
    }
    tp_source_destroy(source);
}

Test(source_records, a_cut_file_stops_or_ends)
{
    tp_source *source = NULL;
    int32_t labels[32];
    uint64_t bytes = 0;
    tp_record_source_options options = options_of("x float[3]", "label int");
    cr_assert(tp_file_size(paths[4], &bytes) == TPUCL_OK);
    cr_assert_eq(truncate(paths[4], (off_t)bytes - 3), 0);
    cr_assert_eq(tp_source_open_records(&options, &source), TPUCL_CORRUPT_DATA);
    cr_assert(strstr(tpucl_last_error()->message, paths[4]), "%s", tpucl_last_error()->message);
    options.index.policy = TP_RECORD_SKIP;
    source = open_source(&options);
    cr_assert_eq(source->example_count, 18);
    cr_assert_eq(read_labels(source, 2, labels), 0);
    cr_assert_eq(labels[17], 42);
    tp_source_destroy(source);
}

Test(source_records, compressed_files_are_kept_within_bounds)
{
    int32_t labels[32];
    tp_record_source_options options = options_of("x float[3]", "label int");
    write_file(1, TP_COMPRESSION_GZIP);
    write_file(2, TP_COMPRESSION_ZLIB);
    tp_source *source = open_source(&options);
    cr_assert_eq(read_labels(source, 3, labels), 0);
    cr_assert(labels[6] == 11 && labels[13] == 26 && labels[18] == 43);
    tp_source_destroy(source);
    options.index.resident_bytes = 200;
    cr_assert_eq(tp_source_open_records(&options, &source), TPUCL_OUT_OF_MEMORY);
    cr_assert(strstr(tpucl_last_error()->message, "data.resident_bytes"), "%s",
              tpucl_last_error()->message);
}

/* The files lose their contents after the first epoch: what still comes was kept. */
Test(source_records, the_cache_keeps_as_much_as_it_may)
{
    int32_t labels[32];
    tp_record_source_options options = options_of("x float[3]", "label int");
    options.index.policy = TP_RECORD_SKIP;
    for (int part = 0; part < 2; part++) {
        options.cache_bytes = part ? 16 * 10 : 16 * 19; /* of 19 examples */
        tp_source *source = open_source(&options);
        cr_assert_eq(read_labels(source, 1, labels), 0);
        for (int f = 0; f < FILES; f++)
            cr_assert_eq(truncate(paths[f], 0), 0);
        cr_assert_eq(read_labels(source, 3, labels), part ? 9 : 0);
        cr_assert_eq(labels[9], part ? 22 : 22);
        cr_assert_eq(labels[10], part ? -1 : 23);
        tp_source_destroy(source);
        for (int f = 0; f < FILES; f++)
            write_file(f, TP_COMPRESSION_NONE);
    }
}

Test(source_records, wrong_specifications)
{
    static const struct {
        const char *input, *label, *message;
        tpucl_status status;
    } cases[] = {
        {"y float[3]", "label int", "'y'", TPUCL_INVALID_ARGUMENT},
        {"x float[4]", "label int", "3 values, expected 4", TPUCL_INVALID_ARGUMENT},
        {"x int[3]", "label int", "'x'", TPUCL_INVALID_ARGUMENT},
        {"raw bytes[3]", "label int", "2 values, expected 3", TPUCL_INVALID_ARGUMENT},
        {"x float[3]", "label int +5000000000", "beyond 32 bits", TPUCL_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float x[4];
        int32_t label;
        void *worker = NULL, *out[] = {x, &label};
        bool is_there;
        const tp_source_place place = {.example = 3};
        tp_record_source_options options = options_of(cases[i].input, cases[i].label);
        options.index.policy = TP_RECORD_SKIP; /* no damage, so never left out */
        tp_source *source = open_source(&options);
        cr_assert(source->ops->open_worker(source, &worker) == TPUCL_OK);
        cr_assert_eq(source->ops->read(source, worker, &place, out, &is_there), cases[i].status,
                     "case %zu", i);
        const char *message = tpucl_last_error()->message;
        cr_assert(strstr(message, cases[i].message) && strstr(message, paths[0]), "%s", message);
        source->ops->close_worker(worker);
        tp_source_destroy(source);
    }
}

Test(source_records, labels_are_the_models_classes)
{
    float x[3];
    int32_t label;
    void *worker = NULL, *out[] = {x, &label};
    bool is_there;
    tp_record_source_options options = options_of("x float[3]", "label int");
    tp_source *source = open_source(&options);
    source->ops->expect_classes(source, 1, 40, 43);
    cr_assert(source->ops->open_worker(source, &worker) == TPUCL_OK);
    const tp_source_place good = {.example = 14}, ignored = {.example = 18}, bad = {.example = 17};
    cr_assert(source->ops->read(source, worker, &good, out, &is_there) == TPUCL_OK && label == 30);
    cr_assert(source->ops->read(source, worker, &ignored, out, &is_there) == TPUCL_OK &&
              label == 43);
    cr_assert_eq(source->ops->read(source, worker, &bad, out, &is_there), TPUCL_INVALID_CONFIG);
    cr_assert(strstr(tpucl_last_error()->message, "label is 42"), "%s",
              tpucl_last_error()->message);
    source->ops->close_worker(worker);
    tp_source_destroy(source);
}

Test(source_records, texts_that_are_no_features)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "x ",
                                        " float",
                                        "x flaot",
                                        "x float[",
                                        "x float[0]",
                                        "x float[2,]",
                                        "x float[2]]",
                                        "x int one",
                                        "x float 3",
                                        "x image[2,2]",
                                        "x int -1 2",
                                        "x float[1,1,1,1,1,1,1,1,1]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tp_record_field field;
        if (!arena) cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
        cr_assert_eq(tp_record_field_parse(texts[i], arena, &field), TPUCL_INVALID_CONFIG, "'%s'",
                     texts[i]);
    }
}
