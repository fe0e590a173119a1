/* SPDX-License-Identifier: Apache-2.0
 * Making and looking into records: shards cover all, work that was stopped goes on, every allocation may fail. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/file.h"
#include "data/record_make.h"
#include "data/record_scan.h"
#include "data/record_shards.h"
#include "io/image.h"

static char folder[64], images[96], labels[96], output[96];

static void setup(void)
{
    unsigned char bytes[16 + 20 * 6] = {0, 0, 8, 3, 0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 3};
    unsigned char classes[8 + 20] = {0, 0, 8, 1, 0, 0, 0, 20};
    strcpy(folder, "/tmp/tpucl_make_XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(images, sizeof images, "%s/images", folder);
    snprintf(labels, sizeof labels, "%s/labels", folder);
    snprintf(output, sizeof output, "%s/data/train", folder);
    for (int i = 0; i < 20 * 6; i++)
        bytes[16 + i] = (unsigned char)i;
    for (int i = 0; i < 20; i++)
        classes[8 + i] = (unsigned char)(i % 10);
    cr_assert(tp_file_write_atomic(images, bytes, sizeof bytes) == TPUCL_OK);
    cr_assert(tp_file_write_atomic(labels, classes, sizeof classes) == TPUCL_OK);
}

static void remove_all(const char *what)
{
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s/%s", folder, what);
    cr_assert_eq(system(command), 0);
}

static void teardown(void)
{
    remove_all("");
}

TestSuite(record_make, .init = setup, .fini = teardown);

static tp_make_options options_of(const char *preset, int32_t shards)
{
    tp_make_options options = {.inputs = images,
                               .labels = labels,
                               .output = output,
                               .shards = shards,
                               .compression = TP_COMPRESSION_NONE};
    cr_assert(tp_record_preset_find(preset, &options.preset) == TPUCL_OK);
    return options;
}

/* The labels of all files, in order. */
static int read_labels(const char *key, int64_t *out, int room)
{
    tp_arena *arena = NULL;
    const char *const *paths;
    const char *data[1];
    char path[96];
    int32_t files = 0;
    int count = 0;
    snprintf(path, sizeof path, "%s/data", folder);
    data[0] = path;
    cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
    cr_assert(tp_record_paths_expand(data, 1, arena, &paths, &files) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    for (int32_t i = 0; i < files; i++) {
        tp_reader *source = NULL;
        tp_record_reader *reader = NULL;
        tp_record record;
        bool found = true;
        cr_assert(tp_reader_open_file(paths[i], 0, &source) == TPUCL_OK);
        cr_assert(tp_record_reader_adopt(source, NULL, &reader) == TPUCL_OK);
        while (tp_record_reader_next(reader, &record, &found) == TPUCL_OK && found) {
            const tp_feature_spec spec = {.key = key, .kind = TP_FEATURE_INT64, .count = 1};
            tp_feature_values values;
            const tp_view bytes = {(const char *)record.bytes, record.length};
            cr_assert(tp_example_decode(bytes, &spec, 1, arena, &values) == TPUCL_OK);
            cr_assert_lt(count, room);
            out[count++] = values.ints[0];
        }
        tp_record_reader_close(reader);
    }
    tp_arena_destroy(arena);
    return count;
}

Test(record_make, shards_cover_everything_in_order)
{
    static const int32_t shards[] = {1, 3, 7, 20, 23};
    for (int k = 0; k < 5; k++) {
        tp_make_result result;
        int64_t got[40];
        const tp_make_options options = options_of("raw", shards[k]);
        cr_assert(tp_records_make(&options, &result) == TPUCL_OK, "%s",
                  tpucl_last_error()->message);
        cr_assert(result.records == 20 && result.files == shards[k] && result.found == 0);
        cr_assert_eq(read_labels("label", got, 40), 20);
        for (int i = 0; i < 20; i++)
            cr_assert_eq(got[i], i % 10);
        remove_all("data");
    }
}

Test(record_make, shuffling_is_a_permutation_that_the_seed_decides)
{
    int64_t first[20], second[20], other[20];
    tp_make_result result;
    tp_make_options options = options_of("raw", 2);
    options.shuffle = true;
    options.seed = 3;
    cr_assert(tp_records_make(&options, &result) == TPUCL_OK);
    cr_assert_eq(read_labels("label", first, 20), 20);
    options.force = true;
    cr_assert(tp_records_make(&options, &result) == TPUCL_OK);
    read_labels("label", second, 20);
    options.seed = 4;
    cr_assert(tp_records_make(&options, &result) == TPUCL_OK);
    read_labels("label", other, 20);
    cr_assert_arr_eq(first, second, sizeof first);
    cr_assert_neq(memcmp(first, other, sizeof first), 0);
    int seen[10] = {0};
    for (int i = 0; i < 20; i++)
        seen[first[i]]++;
    for (int i = 0; i < 10; i++)
        cr_assert_eq(seen[i], 2);
}

static bool stop_at_twelve(void *user, int64_t done, int64_t total)
{
    (void)user, (void)total;
    return done != 12;
}

Test(record_make, goes_on_where_it_was_stopped)
{
    tp_make_result result;
    int64_t got[20];
    tp_make_options options = options_of("raw", 4);
    options.progress = stop_at_twelve;
    cr_assert_eq(tp_records_make(&options, &result), TPUCL_INTERRUPTED);
    cr_assert_eq(read_labels("label", got, 20), 10); /* two files of five are complete */
    options.progress = NULL;
    cr_assert(tp_records_make(&options, &result) == TPUCL_OK);
    cr_assert(result.found == 2 && result.records == 20);
    cr_assert_eq(read_labels("label", got, 20), 20);
    options.preset = NULL;
    cr_assert(tp_record_preset_find("imagenet", &options.preset) == TPUCL_OK);
    cr_assert_eq(tp_records_make(&options, &result), TPUCL_INVALID_ARGUMENT);
}

/* Nothing leaks and no file is half there, whichever allocation fails. */
Test(record_make, survives_failing_allocations)
{
    int failures = 0;
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    for (int64_t n = 0; status != TPUCL_OK && n < 2000; n += 1 + n / 8) {
        tp_make_result result;
        const tp_make_options options = options_of("raw", 2);
        remove_all("data");
        tp_alloc_test_fail_after(n);
        status = tp_records_make(&options, &result);
        tp_alloc_test_fail_after(-1);
        cr_assert(status == TPUCL_OK || status == TPUCL_OUT_OF_MEMORY, "%s",
                  tpucl_last_error()->message);
        failures += status != TPUCL_OK;
    }
    cr_assert(status == TPUCL_OK && failures > 5, "%d", failures);
}

Test(record_make, scanning_survives_failing_allocations)
{
    tp_make_result result;
    const tp_make_options options = options_of("raw", 1);
    const tp_scan_options scanning = {.with_features = true};
    char path[128];
    const char *const paths[] = {path};
    int failures = 0;
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    snprintf(path, sizeof path, "%s-00000-of-00001", output);
    cr_assert(tp_records_make(&options, &result) == TPUCL_OK);
    for (int64_t n = 0; status != TPUCL_OK && n < 2000; n++) {
        tp_scan *scan = NULL;
        tp_alloc_test_fail_after(n);
        status = tp_scan_records(paths, 1, &scanning, &scan);
        tp_alloc_test_fail_after(-1);
        failures += status != TPUCL_OK;
        if (status != TPUCL_OK) continue;
        cr_assert(scan->total.records == 20 && scan->parsed == 20 && scan->not_examples == 0);
        cr_assert_eq(scan->feature_count, 5);
        cr_assert_str_eq(scan->features[0].key, "depth");
        cr_assert(scan->features[2].kind == TP_FEATURE_BYTES && scan->features[2].bytes == 120);
        tp_scan_destroy(scan);
    }
    cr_assert(status == TPUCL_OK && failures > 5, "%d", failures);
}

/* ---- presets ---- */

/* What a preset writes, it finds again: pixels, and classes from 0. */
Test(record_make, presets_read_what_they_write)
{
    for (int k = 0; tp_record_preset_at(k); k++) {
        const tp_record_preset *preset = tp_record_preset_at(k);
        const tp_make_options options = options_of(preset->name, 1);
        tp_make_result result;
        tp_reader *source = NULL;
        tp_record_reader *reader = NULL;
        tp_arena *arena = NULL;
        tp_record record;
        bool found = true;
        int count = 0;
        char path[128];
        tpucl_status status = tp_records_make(&options, &result);
        if (status == TPUCL_UNSUPPORTED) continue; /* a build without PNG */
        cr_assert(status == TPUCL_OK, "%s", tpucl_last_error()->message);
        snprintf(path, sizeof path, "%s-00000-of-00001", output);
        cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
        cr_assert(tp_reader_open_file(path, 0, &source) == TPUCL_OK);
        cr_assert(tp_record_reader_adopt(source, NULL, &reader) == TPUCL_OK);
        while (tp_record_reader_next(reader, &record, &found) == TPUCL_OK && found) {
            tp_record_example example;
            tp_image image = {0};
            const tp_view bytes = {(const char *)record.bytes, record.length};
            cr_assert(tp_record_preset_decode(preset, bytes, arena, &example) == TPUCL_OK, "%s",
                      tpucl_last_error()->message);
            cr_assert_eq(example.label, count % 10);
            cr_assert_eq(example.height, preset->keys[TP_PART_HEIGHT] ? 2 : 0);
            cr_assert_eq(example.width, preset->keys[TP_PART_WIDTH] ? 3 : 0);
            cr_assert_eq(example.channels, preset->keys[TP_PART_CHANNELS] ? 1 : 0);
            if (!preset->is_raw)
                cr_assert(tp_png_decode(example.image.data, example.image.length, path, 0,
                                        &image) == TPUCL_OK);
            const uint8_t *pixels =
                preset->is_raw ? (const uint8_t *)example.image.data : image.pixels;
            for (int i = 0; i < 6; i++)
                cr_assert_eq(pixels[i], 6 * count + i);
            tp_free(image.pixels);
            count++;
        }
        cr_assert_eq(count, 20);
        tp_record_reader_close(reader);
        tp_arena_destroy(arena);
        remove_all("data");
    }
}

Test(record_make, the_wrong_preset_is_noticed)
{
    const tp_record_preset *imagenet;
    const tp_view file = {"png", 3};
    const int64_t zero = 0;
    const tp_feature features[] = {
        {"image/encoded", {.kind = TP_FEATURE_BYTES, .count = 1, .bytes = &file}},
        {"image/class/label", {.kind = TP_FEATURE_INT64, .count = 1, .ints = &zero}}};
    tp_str_builder record = {0};
    tp_record_example example;
    tp_arena *arena = NULL;
    cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
    tp_example_encode(&record, features, 2);
    cr_assert(tp_record_preset_find("imagenet", &imagenet) == TPUCL_OK);
    cr_assert_eq(
        tp_record_preset_decode(imagenet, (tp_view){record.data, record.length}, arena, &example),
        TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "begin with 1"));
    cr_assert_eq(tp_record_preset_decode(tp_record_preset_at(0),
                                         (tp_view){record.data, record.length}, arena, &example),
                 TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "'image' is missing"));
    tp_str_builder_deinit(&record);
    tp_arena_destroy(arena);
}
