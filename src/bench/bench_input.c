/* SPDX-License-Identifier: Apache-2.0
 * Where the time of a training on images goes when they are changed by chance on the way: a convnet on
 * records of JPEG files, augmented on host threads, on the device, or not at all. What is asked is how much
 * of the time the cores wait for the input, and what moving the augmentation does to it. The images are
 * made here, smooth with some grain, so that a JPEG of them is as large as one of a photograph. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench/bench_internal.h"
#include "core/alloc.h"
#include "core/file.h"
#include "data/pipeline.h"
#include "io/example.h"
#include "io/image.h"
#include "io/tfrecord.h"
#include "train/session.h"

enum { SIDE = 256, CROP = 224, SHARDS = 4, CLASSES = 10, PER_CORE = 4, CORES = 8, WAYS = 3 };

static const char *const way_names[WAYS] = {"none", "host", "device"};
static const char model_name[] = "convnet 224 x 224, JPEG 256 x 256";

typedef struct way {
    tp_session *session;
    int64_t steps;          /* of a run */
    double seconds, waited; /* of all runs but the first */
    int32_t runs;
} way;

typedef struct input_bench {
    tp_bench *bench;
    char folder[64];
    way ways[WAYS];
    int32_t done;
} input_bench;

/* ---- records ---- */

static tpucl_status make_jpeg(int index, uint8_t *pixels, tp_str_builder *out)
{
    uint32_t state = (uint32_t)index * 2654435761u + 1;
    const double a = 0.01 + 0.001 * (index % 37), b = 0.013 + 0.0015 * (index % 23);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int c = 0; c < 3; c++) {
                state = state * 1664525u + 1013904223u;
                const double wave = sin(a * x + c) * cos(b * y - c) + sin(0.11 * (x + y) + index);
                const double grain = (double)(state >> 27) - 16;
                pixels[(y * SIDE + x) * 3 + c] = (uint8_t)(127 + 50 * wave + grain);
            }
    out->length = 0;
    return tp_jpeg_encode(pixels, SIDE, SIDE, 3, 90, false, out);
}

static tpucl_status write_records(const char *path, int first, int count, uint8_t *pixels)
{
    tp_writer *target = NULL;
    tp_record_writer *writer = NULL;
    tp_str_builder jpeg = {0}, record = {0};
    TP_TRY(tp_writer_open_file(path, &target));
    TP_TRY(tp_record_writer_adopt(target, TP_COMPRESSION_NONE, &writer));
    tpucl_status status = TPUCL_OK;
    for (int i = first; i < first + count && status == TPUCL_OK; i++) {
        const int64_t label = i % CLASSES;
        status = make_jpeg(i, pixels, &jpeg);
        const tp_view bytes = {jpeg.data, jpeg.length};
        const tp_feature features[] = {
            {"image", {.kind = TP_FEATURE_BYTES, .count = 1, .bytes = &bytes}},
            {"label", {.kind = TP_FEATURE_INT64, .count = 1, .ints = &label}}};
        record.length = 0;
        if (status == TPUCL_OK) tp_example_encode(&record, features, 2);
        if (status == TPUCL_OK) status = record.status;
        if (status == TPUCL_OK) status = tp_record_writer_put(writer, record.data, record.length);
    }
    tp_str_builder_deinit(&jpeg);
    tp_str_builder_deinit(&record);
    if (status == TPUCL_OK) return tp_record_writer_commit(writer);
    tp_record_writer_abort(writer);
    return status;
}

static void shard_path(const input_bench *b, int shard, char out_path[128])
{
    snprintf(out_path, 128, "%s/train-%05d-of-%05d", b->folder, shard, SHARDS);
}

static tpucl_status make_records(input_bench *b)
{
    const int images = b->bench->options->quick ? 64 : 512;
    uint8_t *pixels = tp_alloc((size_t)SIDE * SIDE * 3);
    if (!pixels) return TPUCL_OUT_OF_MEMORY;
    snprintf(b->folder, sizeof b->folder, "/tmp/tpucl_input_XXXXXX");
    tpucl_status status = TPUCL_OK;
    if (!mkdtemp(b->folder)) {
        b->folder[0] = '\0';
        status = TP_FAIL(TPUCL_IO_ERROR, "no folder can be made in /tmp");
    }
    for (int s = 0; s < SHARDS && status == TPUCL_OK; s++) {
        char path[128];
        shard_path(b, s, path);
        status = write_records(path, s * images / SHARDS, images / SHARDS, pixels);
    }
    tp_free(pixels);
    return status;
}

static void remove_records(const input_bench *b)
{
    if (!b->folder[0]) return;
    for (int s = 0; s < SHARDS; s++) {
        char path[128];
        shard_path(b, s, path);
        unlink(path);
    }
    rmdir(b->folder);
}

/* ---- sessions ---- */

static void on_build(const tp_build_progress *progress, void *user)
{
    const input_bench *b = user;
    tp_bench_progress(b->bench, progress->label, b->done, WAYS + 1);
}

static tpucl_status open_way(input_bench *b, int index)
{
    tp_session_options options = {
        .selector = b->bench->options->selector, .build_progress = on_build, .build_user = b};
    tp_str_builder text = {0};
    tp_str_builder_printf(
        &text,
        "{\"name\":\"input\",\"topology\":\"v2-8\",\"model\":{\"layers\":["
        "{\"type\":\"Conv2D\",\"filters\":16,\"kernel_size\":3,\"strides\":2,\"activation\":"
        "\"relu\"},"
        "{\"type\":\"Conv2D\",\"filters\":32,\"kernel_size\":3,\"strides\":2,\"activation\":"
        "\"relu\"},"
        "{\"type\":\"Conv2D\",\"filters\":64,\"kernel_size\":3,\"strides\":2,\"activation\":"
        "\"relu\"},"
        "{\"type\":\"GlobalAveragePooling2D\"},{\"type\":\"Dense\",\"units\":%d}]},"
        "\"loss\":{\"name\":\"sparse_categorical_crossentropy\",\"from_logits\":true},"
        "\"optimizer\":{\"name\":\"Adam\"},\"precision\":\"mixed_bfloat16\",\"per_core_batch\":%d,"
        "\"data\":{\"dataset\":\"records\",\"preset\":\"tfds\",\"train\":{\"inputs\":\"%s\"},"
        "\"augment\":{\"on\":\"%s\",\"crop\":[%d,%d],\"pad\":8,\"flip\":\"horizontal\","
        "\"contrast\":0.4,\"brightness\":0.2,\"saturation\":0.4,\"noise\":0.02}}}",
        CLASSES, PER_CORE, b->folder, way_names[index], CROP, CROP);
    tpucl_status status = text.status;
    if (status == TPUCL_OK)
        status = tp_config_parse(text.data, text.length, "input", NULL, 0, &options.config);
    tp_str_builder_deinit(&text);
    TP_TRY(status);
    return tp_session_create(&options, &b->ways[index].session);
}

/* ---- measuring ---- */

static tpucl_status run_way(void *user)
{
    way *w = user;
    double seconds;
    const double before = tp_session_input_stats(w->session)->waited;
    TP_TRY(tp_session_run_steps(w->session, w->steps, &seconds));
    if (w->runs++ == 0) return TPUCL_OK; /* it warms */
    w->seconds += seconds;
    w->waited += tp_session_input_stats(w->session)->waited - before;
    return TPUCL_OK;
}

/* Long enough that batches which were ready before a run do not count for much. */
static tpucl_status choose_steps(const input_bench *b, way *w)
{
    const double wanted = b->bench->options->quick ? 0.2 : 2;
    double seconds;
    TP_TRY(tp_session_run_steps(w->session, 2, &seconds));
    TP_TRY(tp_session_run_steps(w->session, 4, &seconds));
    w->steps = (int64_t)(4 * wanted / seconds) + 1;
    return TPUCL_OK;
}

static tpucl_status add_rows(input_bench *b, const tp_bench_side *sides)
{
    for (int i = 0; i < WAYS; i++) {
        const way *w = &b->ways[i];
        const tp_pipeline_stats *stats = tp_session_input_stats(w->session);
        const double share = w->seconds > 0 ? w->waited / w->seconds : 0;
        char side[64], note[128];
        snprintf(side, sizeof side, "augmentation: %s", way_names[i]);
        snprintf(note, sizeof note, "%d threads read, %d batches ahead", stats->threads,
                 stats->prefetch);
        tp_bench_row row = {.name = model_name,
                            .side = side,
                            .seconds = sides[i].seconds / (double)w->steps,
                            .spread = sides[i].spread,
                            .value = (double)(w->steps * PER_CORE * CORES) / sides[i].seconds,
                            .unit = "examples/s",
                            .note = note};
        TP_TRY(tp_bench_add_row(b->bench, &row));
        row = (tp_bench_row){
            .name = "of that, waiting for input", .side = side, .value = 100 * share, .unit = "%"};
        TP_TRY(tp_bench_add_row(b->bench, &row));
    }
    TP_TRY(tp_bench_add_ratio(b->bench,
                              sides[1].seconds / (double)b->ways[1].steps /
                                  (sides[2].seconds / (double)b->ways[2].steps),
                              "augmentation on the device / on the host"));
    return tp_bench_add_ratio(b->bench,
                              sides[0].seconds / (double)b->ways[0].steps /
                                  (sides[2].seconds / (double)b->ways[2].steps),
                              "augmentation on the device / none");
}

/* What the threads do at most: nobody takes the processors from them. */
static tpucl_status measure_alone(input_bench *b, int index)
{
    const tp_pipeline_options options = {
        .batch = PER_CORE * CORES, .shuffle = true, .is_training = true};
    const double wanted = b->bench->options->quick ? 0.2 : 2;
    tp_pipeline *pipeline = NULL;
    tp_pipeline_stats stats = {0};
    TP_TRY(
        tp_pipeline_create(tp_session_train_source(b->ways[index].session), &options, &pipeline));
    tpucl_status status = TPUCL_OK;
    while (status == TPUCL_OK && stats.seconds < wanted) {
        const tp_batch *batch = NULL;
        status = tp_pipeline_next(pipeline, &batch);
        tp_pipeline_get_stats(pipeline, &stats);
    }
    tp_pipeline_destroy(pipeline);
    TP_TRY(status);
    char side[64], note[128];
    snprintf(side, sizeof side, "augmentation: %s", way_names[index]);
    snprintf(note, sizeof note, "%d threads read", stats.threads);
    const tp_bench_row row = {.name = "its input alone",
                              .side = side,
                              .value = (double)stats.examples / stats.seconds,
                              .unit = "examples/s",
                              .note = note};
    return tp_bench_add_row(b->bench, &row);
}

static tpucl_status measure(input_bench *b)
{
    tp_bench_side sides[WAYS];
    TP_TRY(make_records(b));
    for (int i = 0; i < WAYS; i++) {
        tp_bench_progress(b->bench, way_names[i], b->done, WAYS + 1);
        TP_TRY(open_way(b, i));
        TP_TRY(choose_steps(b, &b->ways[i]));
        sides[i] = (tp_bench_side){.name = way_names[i], .run = run_way, .user = &b->ways[i]};
        b->done++;
    }
    tp_bench_progress(b->bench, "input", b->done, WAYS + 1);
    TP_TRY(tp_bench_measure(sides, WAYS, 0));
    TP_TRY(add_rows(b, sides));
    TP_TRY(measure_alone(b, 0));
    return measure_alone(b, 1);
}

tpucl_status tp_bench_input(tp_bench *bench)
{
    input_bench b = {.bench = bench};
    const tpucl_status status = measure(&b);
    for (int i = 0; i < WAYS; i++)
        tp_session_destroy(b.ways[i].session);
    remove_records(&b);
    tp_bench_progress(bench, "input", WAYS + 1, WAYS + 1);
    return status;
}
