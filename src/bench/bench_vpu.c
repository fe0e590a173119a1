/* SPDX-License-Identifier: Apache-2.0
 * Vector unit: GB/s of what has to move, as a share of the copy that was measured here. Each graph is compared
 * with the reference interpreter on a few rows, by bits, before it is timed. */
#include <math.h>
#include <stdio.h>
#include "bench/bench_internal.h"
#include "bench/graph_timer.h"
#include "bench/vpu_cases.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tune/product_timer.h"
#include "verify/check.h"

enum { ROUNDS = 7, QUICK_ROUNDS = 3, CHECKED_ROWS = 37 };
#define ELEMENTS ((int64_t)16 << 20) /* 32 MiB of bf16, above most caches */
#define QUICK_ELEMENTS ((int64_t)1 << 20)

static tpucl_status build(const tp_vpu_case *row, int64_t rows, tp_graph **out_graph)
{
    tp_graph *graph;
    TP_TRY(tp_graph_create(tp_ops_registry(), &graph));
    row->build(graph, rows, row->columns);
    const tpucl_status status = tp_graph_check(graph);
    if (status != TPUCL_OK) {
        tp_graph_destroy(graph);
        return status;
    }
    *out_graph = graph;
    return TPUCL_OK;
}

static tpucl_status check_case(tp_bench *bench, const tp_vpu_case *row)
{
    const tp_check_graph_options options = {.cores = 1, .steps = 2, .seed = 1};
    tp_check_outcome outcome;
    tp_graph *graph;
    TP_TRY(build(row, CHECKED_ROWS, &graph));
    const tpucl_status status = tp_check_graph(bench->report->device, graph, &options, &outcome);
    tp_graph_destroy(graph);
    TP_TRY(status);
    if (outcome.status == TP_CHECK_PASSED) return TPUCL_OK;
    return TP_FAIL(TPUCL_NOT_EXACT, "%s: %s", row->name, outcome.reason);
}

static tpucl_status add_row(tp_bench *bench, const tp_vpu_case *row, int64_t rows, double *times,
                            int32_t count, int32_t launches)
{
    const tp_roofline *roofline;
    const double bytes = row->element_bytes * (double)(rows * row->columns);
    const double median = tp_product_median(times, count); /* sorts them */
    char name[96], note[128];
    TP_TRY(tp_bench_get_roofline(bench, &roofline));
    snprintf(name, sizeof name, "%s, %lld x %lld", row->name, (long long)rows,
             (long long)row->columns);
    snprintf(note, sizeof note, "%s; %d launch%s", row->note, launches, launches == 1 ? "" : "es");
    const tp_bench_row out = {.name = name,
                              .side = "tpucl",
                              .seconds = median,
                              .spread = (times[count - 1] - times[0]) / median,
                              .value = 1e-9 * bytes / median,
                              .unit = "GB/s",
                              .share = tp_roofline_seconds(roofline, 0, bytes, false) / median,
                              .note = note};
    return tp_bench_add_row(bench, &out);
}

static tpucl_status measure_case(tp_bench *bench, const tp_vpu_case *row)
{
    const bool quick = bench->options->quick;
    const int64_t rows = (quick ? QUICK_ELEMENTS : ELEMENTS) / row->columns;
    const int32_t rounds = quick ? QUICK_ROUNDS : ROUNDS;
    double times[ROUNDS], seconds;
    tp_graph *graph = NULL;
    tp_graph_timer *timer = NULL;
    tpucl_status status;
    TP_TRY(check_case(bench, row));
    TP_TRY(build(row, rows, &graph));
    TP_TRY_GOTO(status, tp_graph_timer_create(bench->report->device, graph, &timer), done);
    TP_TRY_GOTO(status, tp_graph_timer_step(timer, &seconds), done); /* warms */
    for (int32_t round = 0; round < rounds; round++)
        TP_TRY_GOTO(status, tp_graph_timer_step(timer, &times[round]), done);
    status = add_row(bench, row, rows, times, rounds, tp_graph_timer_launches(timer));
done:
    tp_graph_timer_destroy(timer);
    tp_graph_destroy(graph);
    return status;
}

tpucl_status tp_bench_vpu(tp_bench *bench)
{
    size_t count;
    double log_share = 0;
    char sentence[128];
    const tp_vpu_case *rows = tp_vpu_cases(&count);
    for (size_t i = 0; i < count; i++) {
        tp_bench_progress(bench, rows[i].name, (int32_t)i, (int32_t)count);
        TP_TRY(measure_case(bench, &rows[i]));
        log_share += log(bench->suite->rows.items[i].share);
    }
    tp_bench_progress(bench, "vector unit", (int32_t)count, (int32_t)count);
    snprintf(sentence, sizeof sentence,
             "geometric mean of the shares: %.0f %% of the copy measured here",
             100 * exp(log_share / (double)count));
    bench->suite->sentence = tp_arena_strdup(bench->report->arena, sentence);
    return bench->suite->sentence ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}
