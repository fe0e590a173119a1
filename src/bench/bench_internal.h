/* SPDX-License-Identifier: Apache-2.0
 * What suites are made of. */
#ifndef TP_BENCH_BENCH_INTERNAL_H
#define TP_BENCH_BENCH_INTERNAL_H

#include "bench/bench.h"

/* Where a suite puts what it finds. */
typedef struct tp_bench {
    const tp_bench_options *options;
    tp_bench_report *report;
    tp_bench_suite *suite;
} tp_bench;

/* One side of a case: does the work once and waits for it. */
typedef struct tp_bench_side {
    const char *name;
    tpucl_status (*run)(void *user);
    void *user;
    /* Before each run, not timed; NULL: nothing. */
    tpucl_status (*before)(void *user);
    void *before_user;
    double work; /* in units of the row's `unit` times seconds: FLOP / 1e9 for GFLOP/s */
    const char *note;
    double seconds, spread; /* out */
} tp_bench_side;

/* Runs the sides in turn, so that a change of clock rate meets all of them: at least 3 rounds,
 * then until every side has had `seconds` of work, at most 50 rounds. The first round warms and
 * does not count. */
tpucl_status tp_bench_measure(tp_bench_side *sides, int32_t count, double seconds) TPUCL_MUST_CHECK;

/* Texts are copied into the report. */
tpucl_status tp_bench_add_row(tp_bench *bench, const tp_bench_row *row) TPUCL_MUST_CHECK;
tpucl_status tp_bench_add_ratio(tp_bench *bench, double value, const char *format, ...)
    __attribute__((format(printf, 3, 4))) TPUCL_MUST_CHECK;
tpucl_status tp_bench_add_note(tp_bench *bench, const char *note) TPUCL_MUST_CHECK;

void tp_bench_progress(const tp_bench *bench, const char *what, int32_t done, int32_t total);

/* The device's peaks, measured when first asked for; borrowed from the report. */
tpucl_status tp_bench_get_roofline(tp_bench *bench,
                                   const tp_roofline **out_roofline) TPUCL_MUST_CHECK;

/* The suites. */
tpucl_status tp_bench_roofline(tp_bench *bench);
tpucl_status tp_bench_gemm(tp_bench *bench);
tpucl_status tp_bench_conv(tp_bench *bench);
tpucl_status tp_bench_vpu(tp_bench *bench);
tpucl_status tp_bench_train(tp_bench *bench);
tpucl_status tp_bench_growth(tp_bench *bench);
tpucl_status tp_bench_input(tp_bench *bench);

#endif
