/* SPDX-License-Identifier: Apache-2.0
 * The benchmarks of `tpucl bench`: suites of cases, each measured on several sides in turn, and
 * ratios of figures of one session. docs/benchmarks.md says how and what is not claimed. */
#ifndef TP_BENCH_BENCH_H
#define TP_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bench/roofline.h"
#include "core/array.h"
#include "core/arena.h"
#include "core/status.h"
#include "device/device.h"

/* One case on one side. Texts live in the report's arena. */
typedef struct tp_bench_row {
    const char *name;  /* the case: "1024 x 1024 x 1024" */
    const char *side;  /* "tpucl bf16", "openblas f32" */
    double seconds;    /* median of the repeats; 0 when the row is no duration */
    double spread;     /* (slowest - fastest) / median of the repeats, 0 for one */
    double value;      /* what is compared, in `unit` */
    const char *unit;  /* "GFLOP/s", "examples/s", "%" */
    double share;      /* of the measured roofline, 0 to 1 and a little above; 0: not compared */
    bool is_projected; /* computed from a topology's figures, not measured */
    const char *note;  /* the variant that ran, or NULL */
} tp_bench_row;
TP_ARRAY_DEFINE(tp_bench_rows, tp_bench_row)

typedef struct tp_bench_ratio {
    const char *name; /* "tpucl bf16 / openblas f32, 1024" */
    double value;
} tp_bench_ratio;
TP_ARRAY_DEFINE(tp_bench_ratios, tp_bench_ratio)

typedef struct tp_bench_suite {
    const char *name;
    tp_bench_rows rows;
    tp_bench_ratios ratios;
    const char *sentence; /* which side is better here and why, or NULL */
} tp_bench_suite;
TP_ARRAY_DEFINE(tp_bench_suites, tp_bench_suite)
TP_ARRAY_DEFINE(tp_bench_notes, const char *)

typedef struct tp_bench_options {
    const char *selector; /* device */
    const char *suite;    /* only this one; NULL: the usual ones */
    bool quick;           /* fewer sizes and repeats: to see that it works, not to quote */
    /* Called as work goes on; may be NULL. */
    void (*progress)(void *user, const char *what, int32_t done, int32_t total);
    void *user;
} tp_bench_options;

typedef struct tp_bench_report {
    tp_arena *arena;
    tp_bench_suites suites;
    tp_bench_notes notes; /* what was corrected or left out */
    tp_device *device;
    tp_roofline roofline; /* zeros until a suite asks for it */
    char processor[128];  /* of the host, as the system names it */
    int processor_count;
    const char *machine; /* processor, device, driver: one line */
    char time[32];       /* when it began, UTC */
} tp_bench_report;

/* Names of the suites in their order; NULL past the end. */
const char *tp_bench_suite_name(size_t index);

tpucl_status tp_bench_run(const tp_bench_options *options,
                          tp_bench_report **out_report) TPUCL_MUST_CHECK;
void tp_bench_report_destroy(tp_bench_report *report);

#endif
