/* SPDX-License-Identifier: Apache-2.0
 * How fast JPEG files are decoded by all processors, against TurboJPEG alone: its handle, memory that is
 * there, nothing checked.
 *
 *   bench_jpeg [--threads N] [--rounds N] FILE...
 *
 * FILEs are JPEG files. Both sides decode all of them, again and again for a third of a second, in
 * alternation. Median megapixels a second of each side, and the median ratio of rounds with their spread;
 * then the same ratio of processor time, which suffers less from what else the machine does. The target is
 * 0.95. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tpucl/status.h>
#include <turbojpeg.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/pool.h"
#include "io/image.h"

enum { MAX_FILES = 4096, MAX_THREADS = 256, MAX_ROUNDS = 101, MAX_FILE_BYTES = 1 << 28 };
static const double seconds_a_round = 0.33;

typedef struct jpeg_file {
    char *bytes;
    size_t length;
    tp_image_header header;
} jpeg_file;

typedef struct work {
    jpeg_file files[MAX_FILES];
    size_t file_count;
    tjhandle handles[MAX_THREADS];
    unsigned char *pixels[MAX_THREADS]; /* of the largest image */
    tp_image_decoder *decoders[MAX_THREADS];
    bool is_alone;
} work;

static tpucl_status decode(void *user, size_t begin, size_t end, int worker)
{
    work *w = user;
    for (size_t i = begin; i < end; i++) {
        const jpeg_file *file = &w->files[i % w->file_count];
        const tp_image_header *h = &file->header;
        tp_image image;
        if (!w->is_alone) {
            TP_TRY(tp_image_decode(w->decoders[worker], file->bytes, file->length, "bench", 3,
                                   false, &image));
        } else if (tjDecompress2(w->handles[worker], (unsigned char *)file->bytes, file->length,
                                 w->pixels[worker], h->width, 0, h->height, TJPF_RGB,
                                 TJFLAG_ACCURATEDCT)) {
            return TP_FAIL(TPUCL_CORRUPT_DATA, "%s", tjGetErrorStr2(w->handles[worker]));
        }
    }
    return TPUCL_OK;
}

typedef struct rate {
    double wall, processor; /* megapixels a second */
} rate;

static tpucl_status measure(work *w, tp_pool *pool, bool is_alone, rate *out_rate)
{
    const clock_t begin_cpu = clock();
    const uint64_t begin_ns = tp_clock_now_ns();
    const size_t count = w->file_count * (size_t)(1 + 63 / w->file_count);
    double pixels = 0, seconds;
    w->is_alone = is_alone;
    do {
        TP_TRY(tp_pool_parallel_for(pool, count, 1, decode, w));
        for (size_t i = 0; i < count; i++)
            pixels += (double)w->files[i % w->file_count].header.width *
                      w->files[i % w->file_count].header.height;
        seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
    } while (seconds < seconds_a_round);
    out_rate->wall = 1e-6 * pixels / seconds;
    out_rate->processor = 1e-6 * pixels * CLOCKS_PER_SEC / (double)(clock() - begin_cpu);
    return TPUCL_OK;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tpucl_status run(work *w, tp_pool *pool, int rounds)
{
    double ours[MAX_ROUNDS], theirs[MAX_ROUNDS], ratios[MAX_ROUNDS], processor[MAX_ROUNDS];
    for (int i = -1; i < rounds; i++) { /* the first one warms */
        rate alone, own;
        TP_TRY(measure(w, pool, true, &alone));
        TP_TRY(measure(w, pool, false, &own));
        if (i < 0) continue;
        ours[i] = own.wall;
        theirs[i] = alone.wall;
        ratios[i] = own.wall / alone.wall;
        processor[i] = own.processor / alone.processor;
    }
    qsort(ours, (size_t)rounds, sizeof *ours, compare);
    qsort(theirs, (size_t)rounds, sizeof *theirs, compare);
    qsort(ratios, (size_t)rounds, sizeof *ratios, compare);
    qsort(processor, (size_t)rounds, sizeof *processor, compare);
    printf("%zu files, %d threads, %d rounds: tpucl %.0f, TurboJPEG alone %.0f megapixels/s; ratio "
           "%.3f (%.3f to %.3f), of processor time %.3f (%.3f to %.3f)\n",
           w->file_count, tp_pool_thread_count(pool), rounds, ours[rounds / 2], theirs[rounds / 2],
           ratios[rounds / 2], ratios[0], ratios[rounds - 1], processor[rounds / 2], processor[0],
           processor[rounds - 1]);
    return TPUCL_OK;
}

static tpucl_status open_all(work *w, int threads)
{
    size_t most = 0;
    for (size_t i = 0; i < w->file_count; i++) {
        const tp_image_header *h = &w->files[i].header;
        const size_t bytes = (size_t)h->width * (size_t)h->height * 3;
        most = bytes > most ? bytes : most;
    }
    for (int i = 0; i < threads; i++) {
        w->handles[i] = tjInitDecompress();
        w->pixels[i] = tp_alloc(most);
        if (!w->handles[i] || !w->pixels[i]) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_image_decoder_create(&w->decoders[i]));
    }
    return TPUCL_OK;
}

static tpucl_status add_file(work *w, const char *path)
{
    jpeg_file *file = &w->files[w->file_count];
    if (w->file_count == MAX_FILES) return TPUCL_OK;
    TP_TRY(tp_file_read(path, MAX_FILE_BYTES, &file->bytes, &file->length));
    w->file_count++;
    TP_TRY(tp_image_read_header(file->bytes, file->length, path, &file->header));
    if (file->header.format == TP_IMAGE_JPEG) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' is no JPEG file", path);
}

static void close_all(work *w)
{
    for (size_t i = 0; i < w->file_count; i++)
        tp_free(w->files[i].bytes);
    for (int i = 0; i < MAX_THREADS; i++) {
        if (w->handles[i]) tjDestroy(w->handles[i]);
        tp_free(w->pixels[i]);
        tp_image_decoder_destroy(w->decoders[i]);
    }
}

int main(int argc, char **argv)
{
    static work w;
    int threads = 0, rounds = 7;
    tp_pool *pool = NULL;
    tpucl_status status = TPUCL_OK;
    for (int i = 1; i < argc && status == TPUCL_OK; i++)
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else
            status = add_file(&w, argv[i]);
    if (status == TPUCL_OK && (!w.file_count || rounds < 1 || rounds > MAX_ROUNDS)) {
        fprintf(stderr, "usage: bench_jpeg [--threads N] [--rounds N] FILE...\n");
        return 2;
    }
    if (status == TPUCL_OK) status = tp_pool_create(threads, &pool);
    if (status == TPUCL_OK) status = open_all(&w, tp_pool_thread_count(pool));
    if (status == TPUCL_OK) status = run(&w, pool, rounds);
    if (status != TPUCL_OK) fprintf(stderr, "bench_jpeg: %s\n", tpucl_last_error()->message);
    close_all(&w);
    tp_pool_destroy(pool);
    return status != TPUCL_OK;
}
