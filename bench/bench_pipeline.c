/* SPDX-License-Identifier: Apache-2.0
 * The whole way from records to batches, without a training behind it: records, JPEG, window, flip, batch.
 * For bench/peers/pipeline.
 *
 *   bench_pipeline PATTERN CROP BATCH [THREADS]
 *
 * For each line SECONDS on standard input it takes batches for so long and answers with examples, seconds,
 * processor seconds and threads. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <tpucl/status.h>
#include "core/arena.h"
#include "core/clock.h"
#include "data/pipeline.h"
#include "data/record_shards.h"
#include "data/source_augment.h"
#include "data/source_records.h"

static tpucl_status open_source(const char *pattern, int crop, int batch, tp_arena *arena,
                                tp_source **out_source)
{
    const tp_record_preset *preset = NULL;
    tp_record_source_options options = {.index = {.cycle_length = 4},
                                        .image = {.channels = 3, .resize = TP_RESIZE_NONE}};
    const tp_source_augment_options augment = {
        .augment = {.height = crop, .width = crop, .flips_x = true},
        .is_random = true,
        .seed = 1,
        .per_core_batch = batch};
    tp_source *records = NULL;
    TP_TRY(tp_record_paths_expand(&pattern, 1, arena, &options.paths, &options.path_count));
    TP_TRY(tp_record_preset_find("imagenet", &preset));
    tp_record_source_use_preset(preset, &options);
    TP_TRY(tp_source_open_records(&options, &records));
    const tpucl_status status = tp_source_augment(records, &augment, out_source);
    if (status != TPUCL_OK) tp_source_destroy(records);
    return status;
}

static tpucl_status answer(tp_pipeline *pipeline, double wanted)
{
    const uint64_t begin_ns = tp_clock_now_ns();
    const clock_t begin_cpu = clock();
    double seconds = 0;
    int64_t examples = 0;
    while (seconds < wanted) {
        const tp_batch *batch = NULL;
        TP_TRY(tp_pipeline_next(pipeline, &batch));
        examples += batch->valid;
        seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
    }
    tp_pipeline_stats stats;
    tp_pipeline_get_stats(pipeline, &stats);
    printf("%lld %.6f %.6f %d\n", (long long)examples, seconds,
           (double)(clock() - begin_cpu) / CLOCKS_PER_SEC, stats.threads);
    fflush(stdout);
    return TPUCL_OK;
}

static tpucl_status serve(const char *pattern, int crop, int batch, int threads, tp_arena *arena)
{
    char line[64];
    tp_source *source = NULL;
    tp_pipeline *pipeline = NULL;
    const tp_pipeline_options options = {.batch = batch,
                                         .shuffle = true,
                                         .shuffle_buffer = 256,
                                         .threads = threads,
                                         .is_training = true,
                                         .drop_remainder = true};
    TP_TRY(open_source(pattern, crop, batch, arena, &source));
    tpucl_status status = tp_pipeline_create(source, &options, &pipeline);
    while (status == TPUCL_OK && fgets(line, sizeof line, stdin))
        status = answer(pipeline, atof(line));
    tp_pipeline_destroy(pipeline);
    tp_source_destroy(source);
    return status;
}

int main(int argc, char **argv)
{
    tp_arena *arena = NULL;
    if (argc < 4) {
        fprintf(stderr, "usage: bench_pipeline PATTERN CROP BATCH [THREADS]\n");
        return 2;
    }
    tpucl_status status = tp_arena_create(0, &arena);
    if (status == TPUCL_OK)
        status = serve(argv[1], atoi(argv[2]), atoi(argv[3]), argc > 4 ? atoi(argv[4]) : 0, arena);
    if (status != TPUCL_OK) fprintf(stderr, "bench_pipeline: %s\n", tpucl_last_error()->message);
    tp_arena_destroy(arena);
    return status != TPUCL_OK;
}
