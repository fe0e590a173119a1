/* SPDX-License-Identifier: Apache-2.0
 * The convolutions of ResNet-50 (bench/problems/resnet-50.txt), forward and both gradients, packing of
 * filters included: bf16 with warm and with cold caches, and f32. Each result is compared with the
 * contract's before it is timed; bench/peers/products compares speed with other libraries. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "bench/bench_internal.h"
#include "bench/cold.h"
#include "bench/product_check.h"
#include "core/embedded.h"

extern const tp_embedded_file tp_embedded_problems[];

enum { SIDES = 3, QUICK_PROBLEMS = 3, KINDS = TP_MXU_CONV_FILTER_GRAD + 1 };

typedef struct conv_bench {
    tp_bench *bench;
    tp_cold *cold;
    const tp_roofline *roofline;
    double log_ratio[KINDS], times[KINDS]; /* f32 seconds / bf16 seconds, per kind */
} conv_bench;

static tpucl_status run_timer(void *user)
{
    double seconds;
    return tp_product_timer_run(user, 1, false, &seconds);
}

/* The least that has to move: every tensor once. */
static double bytes_of(tp_product_timer *timer, const tp_mxu_problem *problem)
{
    const tp_dtype dtypes[] = {problem->a.dtype, problem->b.dtype, problem->c_dtype};
    double bytes = 0;
    for (int32_t i = 0; i < 3; i++)
        bytes += (double)(tp_product_timer_elements(timer, i) * tp_dtype_size(dtypes[i]));
    return bytes;
}

static tpucl_status add_rows(conv_bench *c, const tp_problem_line *line,
                             tp_product_timer *const *timers, const tp_bench_side *sides)
{
    char name[TP_PROBLEM_LINE_BYTES];
    const double flops = tp_problem_line_flops(line);
    tp_problem_line_print(line, name);
    for (int32_t i = 0; i < SIDES; i++) {
        const bool is_f32 = i == SIDES - 1;
        tp_mxu_problem problem;
        tp_problem_line_to_mxu(line, is_f32 ? TP_PRECISION_F32 : TP_PRECISION_DEFAULT, &problem);
        const double least =
            tp_roofline_seconds(c->roofline, flops, bytes_of(timers[is_f32], &problem), !is_f32);
        const tp_bench_row row = {.name = name,
                                  .side = sides[i].name,
                                  .seconds = sides[i].seconds,
                                  .spread = sides[i].spread,
                                  .value = 1e-9 * flops / sides[i].seconds,
                                  .unit = "GFLOP/s",
                                  .share = least / sides[i].seconds,
                                  .note = sides[i].note};
        TP_TRY(tp_bench_add_row(c->bench, &row));
    }
    c->log_ratio[line->kind] +=
        (double)line->times * log(sides[SIDES - 1].seconds / sides[0].seconds);
    c->times[line->kind] += (double)line->times;
    return TPUCL_OK;
}

static tpucl_status measure_line(conv_bench *c, const tp_problem_line *line)
{
    static const tp_precision precisions[] = {TP_PRECISION_DEFAULT, TP_PRECISION_F32};
    tp_product_timer *timers[2] = {NULL};
    tpucl_status status = TPUCL_OK;
    for (int32_t i = 0; i < 2 && status == TPUCL_OK; i++) {
        tp_mxu_problem problem;
        tp_problem_line_to_mxu(line, precisions[i], &problem);
        TP_TRY_GOTO(
            status,
            tp_product_timer_create(c->bench->report->device, &problem, NULL, 1, &timers[i]), done);
        TP_TRY_GOTO(status, run_timer(timers[i]), done);
        TP_TRY_GOTO(status, tp_bench_check_product(line, precisions[i], timers[i]), done);
    }
    tp_bench_side sides[SIDES] = {{.name = "tpucl bf16", .run = run_timer, .user = timers[0]},
                                  {.name = "tpucl bf16, cold",
                                   .run = run_timer,
                                   .user = timers[0],
                                   .before = tp_cold_sweep,
                                   .before_user = c->cold},
                                  {.name = "tpucl f32", .run = run_timer, .user = timers[1]}};
    for (int32_t i = 0; i < SIDES; i++)
        sides[i].note = tp_product_timer_plan(timers[i == SIDES - 1])->variant;
    TP_TRY_GOTO(status, tp_bench_measure(sides, SIDES, c->bench->options->quick ? 0 : 0.05), done);
    status = add_rows(c, line, timers, sides);
done:
    for (int32_t i = 0; i < 2; i++)
        tp_product_timer_destroy(timers[i]);
    return status;
}

static tpucl_status add_means(conv_bench *c)
{
    static const char *const names[KINDS] = {[TP_MXU_CONV] = "forward",
                                             [TP_MXU_CONV_INPUT_GRAD] = "input gradient",
                                             [TP_MXU_CONV_FILTER_GRAD] = "filter gradient"};
    for (int32_t kind = TP_MXU_CONV; kind < KINDS; kind++)
        if (names[kind] && c->times[kind] > 0)
            TP_TRY(tp_bench_add_ratio(c->bench, exp(c->log_ratio[kind] / c->times[kind]),
                                      "tpucl bf16 / tpucl f32, %s, geometric mean", names[kind]));
    return TPUCL_OK;
}

tpucl_status tp_bench_conv(tp_bench *bench)
{
    conv_bench c = {.bench = bench};
    tp_problem_lines lines = {0};
    const tp_embedded_file *file = &tp_embedded_problems[0];
    const tp_view text = {file->text, file->length_bytes};
    tpucl_status status;
    TP_TRY_GOTO(status, tp_bench_get_roofline(bench, &c.roofline), done);
    TP_TRY_GOTO(status, tp_problem_lines_parse(text, file->name, &lines), done);
    TP_TRY_GOTO(status, tp_cold_create(bench->report->device, &c.cold), done);
    const size_t count = bench->options->quick ? QUICK_PROBLEMS : lines.count;
    for (size_t i = 0; i < count; i++) {
        char what[TP_PROBLEM_LINE_BYTES];
        tp_problem_line_print(&lines.items[i], what);
        tp_bench_progress(bench, what, (int32_t)i, (int32_t)count);
        TP_TRY_GOTO(status, measure_line(&c, &lines.items[i]), done);
    }
    tp_bench_progress(bench, "convolutions", (int32_t)count, (int32_t)count);
    status = add_means(&c);
done:
    tp_cold_destroy(c.cold);
    tp_problem_lines_deinit(&lines);
    return status;
}
