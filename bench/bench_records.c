/* SPDX-License-Identifier: Apache-2.0
 * How fast records are read and checked from the page cache by one thread.
 *
 *   bench_records [--record-bytes N] [--wall] [FILE]
 *
 * Without FILE, 512 MiB of records of N bytes (default 110000, a photograph of ImageNet) are written to a
 * temporary file. Best and median of seven passes, in GB (10^9 bytes) of contents a second of processor time;
 * --wall: of the clock's. The target is 2 GB/s. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/alloc.h"
#include "core/str.h"
#include "io/tfrecord.h"

enum { PASSES = 7 };
static const uint64_t total_bytes = UINT64_C(512) << 20;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tpucl_status make_file(const char *path, size_t record_bytes)
{
    tp_writer *target = NULL;
    tp_record_writer *writer = NULL;
    unsigned char *bytes = tp_alloc(record_bytes);
    if (!bytes) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < record_bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    tpucl_status status = tp_writer_open_file(path, &target);
    if (status == TPUCL_OK) status = tp_record_writer_adopt(target, TP_COMPRESSION_NONE, &writer);
    for (uint64_t done = 0; status == TPUCL_OK && done < total_bytes; done += record_bytes + 16)
        status = tp_record_writer_put(writer, bytes, record_bytes);
    tp_free(bytes);
    if (status == TPUCL_OK) return tp_record_writer_commit(writer);
    tp_record_writer_abort(writer);
    return status;
}

static tpucl_status read_file(const char *path, bool is_unchecked, tp_record_counts *out_counts)
{
    const tp_record_options options = {.is_unchecked = is_unchecked};
    tp_reader *source = NULL;
    tp_record_reader *reader = NULL;
    tp_record record;
    bool found = true;
    TP_TRY(tp_reader_open_file(path, 0, &source));
    TP_TRY(tp_record_reader_adopt(source, &options, &reader));
    tpucl_status status = TPUCL_OK;
    while (status == TPUCL_OK && found)
        status = tp_record_reader_next(reader, &record, &found);
    *out_counts = tp_record_reader_counts(reader);
    tp_record_reader_close(reader);
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static tpucl_status measure(const char *path, clockid_t clock)
{
    for (int unchecked = 0; unchecked < 2; unchecked++) {
        double rates[PASSES];
        tp_record_counts counts = {0};
        TP_TRY(read_file(path, unchecked, &counts));
        for (int i = 0; i < PASSES; i++) {
            const double begin = now(clock);
            TP_TRY(read_file(path, unchecked, &counts));
            rates[i] = 1e-9 * (double)counts.bytes / (now(clock) - begin);
        }
        qsort(rates, PASSES, sizeof *rates, compare_doubles);
        printf("%-18s %6.2f GB/s  (best %.2f; %llu records, %.3f GB)\n",
               unchecked ? "read" : "read and checked", rates[PASSES / 2], rates[PASSES - 1],
               (unsigned long long)counts.records, 1e-9 * (double)counts.bytes);
    }
    return TPUCL_OK;
}

int main(int argc, char **argv)
{
    char temporary[] = "/tmp/tpucl_records_XXXXXX";
    const char *path = NULL;
    int64_t record_bytes = 110000;
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
    tpucl_status status = TPUCL_OK;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--wall") == 0)
            clock = CLOCK_MONOTONIC;
        else if (strcmp(argv[i], "--record-bytes") == 0 && i + 1 < argc)
            status = tp_str_parse_int64(tp_view_of(argv[++i]), &record_bytes);
        else
            path = argv[i];
    if (status == TPUCL_OK && (record_bytes < 1 || record_bytes > 1 << 30))
        status = TP_FAIL(TPUCL_INVALID_ARGUMENT, "records have 1 to 2^30 bytes");
    const bool is_own = !path;
    if (status == TPUCL_OK && is_own) {
        const int descriptor = mkstemp(temporary);
        if (descriptor >= 0) close(descriptor);
        path = temporary;
        status = make_file(path, (size_t)record_bytes);
    }
    if (status == TPUCL_OK) status = measure(path, clock);
    if (is_own) unlink(temporary);
    if (status != TPUCL_OK) fprintf(stderr, "bench_records: %s\n", tpucl_last_error()->message);
    return status != TPUCL_OK;
}
