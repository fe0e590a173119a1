/* SPDX-License-Identifier: Apache-2.0
 * Pipelines over records: many threads that read, damage, a cache, augmentation, two pipelines on one
 * source at once, and ends at any moment. Checked here: every batch is the one that a single thread
 * makes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/hash.h"
#include "core/thread.h"
#include "data/pipeline.h"
#include "data/source_augment.h"
#include "data/source_records.h"
#include "io/example.h"

enum { RECORDS = 60, SIDE = 9, BATCHES = 40, BATCH = 8 };

static void require(bool condition, const char *what)
{
    if (condition) return;
    fprintf(stderr, "stress_pipeline: %s\n", what);
    exit(1);
}

static void require_ok(tpucl_status status)
{
    require(status == TPUCL_OK, tpucl_last_error()->message);
}

static void write_file(const char *path)
{
    tp_writer *target = NULL;
    tp_record_writer *writer = NULL;
    require_ok(tp_writer_open_file(path, &target));
    require_ok(tp_record_writer_adopt(target, TP_COMPRESSION_NONE, &writer));
    for (int64_t i = 0; i < RECORDS; i++) {
        uint8_t pixels[SIDE * SIDE * 3];
        for (size_t k = 0; k < sizeof pixels; k++)
            pixels[k] = (uint8_t)(i * 31 + (int64_t)k * 7);
        const tp_view bytes = {(const char *)pixels, sizeof pixels};
        const tp_feature list[] = {
            {"image", {.kind = TP_FEATURE_BYTES, .count = 1, .bytes = &bytes}},
            {"label", {.kind = TP_FEATURE_INT64, .count = 1, .ints = &i}}};
        tp_str_builder record = {0};
        tp_example_encode(&record, list, 2);
        require_ok(tp_record_writer_put(writer, record.data, record.length));
        tp_str_builder_deinit(&record);
    }
    require_ok(tp_record_writer_commit(writer));
}

static void damage(const char *path)
{
    FILE *file = fopen(path, "r+b");
    require(file && fseek(file, 500, SEEK_SET) == 0 && fputc(0x55, file) != EOF, "damage");
    fclose(file);
}

static tp_source *open_source(const char *path)
{
    tp_arena *arena = NULL;
    tp_source *records = NULL, *source = NULL;
    tp_record_source_options options = {.paths = &path,
                                        .path_count = 1,
                                        .index = {.policy = TP_RECORD_SKIP},
                                        .field_count = 2,
                                        .label_count = 1,
                                        .cache_bytes = 20 * (SIDE * SIDE * 3 + 4)};
    const tp_source_augment_options augment = {
        .augment =
            {.height = 7, .width = 6, .pad = 2, .flips_x = true, .contrast = 0.5, .noise = 0.1},
        .is_random = true,
        .seed = 3,
        .per_core_batch = BATCH / 2};
    require_ok(tp_arena_create(0, &arena));
    require_ok(tp_record_field_parse("image bytes[9,9,3]", arena, &options.fields[0]));
    require_ok(tp_record_field_parse("label int", arena, &options.fields[1]));
    options.fields[0].name = "image";
    options.fields[1].name = "label";
    require_ok(tp_source_open_records(&options, &records));
    require_ok(tp_source_augment(records, &augment, &source));
    tp_arena_destroy(arena);
    return source;
}

typedef struct consumer {
    const tp_source *source;
    int32_t threads, batches;
    uint8_t digest[32];
} consumer;

static tpucl_status consume(void *user)
{
    consumer *c = user;
    const tp_pipeline_options options = {
        .batch = BATCH, .shuffle = true, .seed = 5, .threads = c->threads, .is_training = true};
    tp_pipeline *pipeline = NULL;
    tp_pipeline_stats stats;
    tp_sha256 sha;
    tp_sha256_init(&sha);
    require_ok(tp_pipeline_create(c->source, &options, &pipeline));
    for (int32_t i = 0; i < c->batches; i++) {
        const tp_batch *batch = NULL;
        require_ok(tp_pipeline_next(pipeline, &batch));
        tp_pipeline_get_stats(pipeline, &stats);
        for (int32_t f = 0; f < c->source->field_count; f++)
            tp_sha256_update(&sha, batch->arrays[f], (size_t)c->source->fields[f].bytes * BATCH);
    }
    tp_pipeline_destroy(pipeline);
    tp_sha256_finish(&sha, c->digest);
    return TPUCL_OK;
}

int main(void)
{
    char path[] = "/tmp/tpucl_stress_XXXXXX";
    const int descriptor = mkstemp(path);
    require(descriptor >= 0, "no temporary file");
    close(descriptor);
    write_file(path);
    damage(path);
    tp_source *alone_source = open_source(path), *source = open_source(path);
    consumer alone = {.source = alone_source, .threads = 1, .batches = BATCHES};
    require_ok(consume(&alone));
    for (int round = 0; round < 3; round++) {
        consumer two[2] = {{.source = source, .threads = 4, .batches = BATCHES},
                           {.source = source, .threads = 0, .batches = BATCHES}};
        tp_thread *threads[2] = {NULL, NULL};
        for (int i = 0; i < 2; i++)
            require_ok(tp_thread_create("consume", consume, &two[i], &threads[i]));
        for (int i = 0; i < 2; i++) {
            require_ok(tp_thread_join(threads[i]));
            require(memcmp(two[i].digest, alone.digest, sizeof alone.digest) == 0,
                    "threads make other batches than one alone");
        }
    }
    for (int32_t batches = 0; batches < 12; batches++) { /* left while threads read */
        consumer brief = {.source = source, .threads = 5, .batches = batches};
        require_ok(consume(&brief));
    }
    tp_source_destroy(source);
    tp_source_destroy(alone_source);
    unlink(path);
    return 0;
}
