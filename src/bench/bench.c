/* SPDX-License-Identifier: Apache-2.0
 * The table of suites, measuring in turn, and keeping what was found. */
#include "bench/bench_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "core/str.h"
#include "core/thread.h"
#include "tune/product_timer.h"

static const struct {
    const char *name;
    tpucl_status (*run)(tp_bench *bench);
    bool is_usual; /* runs when no suite is asked for: the comparison for users */
} suites[] = {
    {"roofline", tp_bench_roofline, true}, {"gemm", tp_bench_gemm, true},
    {"conv", tp_bench_conv, false},        {"vpu", tp_bench_vpu, false},
    {"train", tp_bench_train, true},       {"growth", tp_bench_growth, false},
    {"input", tp_bench_input, false},
};
enum { SUITE_COUNT = sizeof suites / sizeof *suites };

const char *tp_bench_suite_name(size_t index)
{
    return index < SUITE_COUNT ? suites[index].name : NULL;
}

/* ---- measuring ---- */

enum { MIN_ROUNDS = 3, MAX_ROUNDS = 50 };

static void summarise(tp_bench_side *side, double *times, int32_t rounds)
{
    side->seconds = tp_product_median(times, rounds); /* sorts them */
    side->spread = (times[rounds - 1] - times[0]) / side->seconds;
}

tpucl_status tp_bench_measure(tp_bench_side *sides, int32_t count, double seconds)
{
    double *times = TP_NEW_ARRAY(double, (size_t)count *MAX_ROUNDS);
    if (!times) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = TPUCL_OK;
    int32_t round = -1; /* the first one warms */
    for (bool enough = false; !enough; round++) {
        enough = round + 1 >= MIN_ROUNDS;
        for (int32_t i = 0; i < count; i++) {
            if (sides[i].before) TP_TRY_GOTO(status, sides[i].before(sides[i].before_user), done);
            uint64_t begin_ns = tp_clock_now_ns();
            TP_TRY_GOTO(status, sides[i].run(sides[i].user), done);
            double elapsed = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
            if (round < 0) continue;
            times[i * MAX_ROUNDS + round] = elapsed;
            enough = enough && (elapsed * (round + 1) >= seconds);
        }
        enough = enough || round + 1 == MAX_ROUNDS;
    }
    for (int32_t i = 0; i < count; i++)
        summarise(&sides[i], times + i * MAX_ROUNDS, round);
done:
    tp_free(times);
    return status;
}

/* ---- the report ---- */

static const char *keep(tp_bench *bench, const char *text)
{
    return text ? tp_arena_strdup(bench->report->arena, text) : NULL;
}

tpucl_status tp_bench_add_row(tp_bench *bench, const tp_bench_row *row)
{
    tp_bench_row copy = *row;
    copy.name = keep(bench, row->name);
    copy.side = keep(bench, row->side);
    copy.unit = keep(bench, row->unit);
    copy.note = keep(bench, row->note);
    if (!copy.name || !copy.side || !copy.unit || (row->note && !copy.note))
        return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_bench_rows_push(&bench->suite->rows, copy));
    return TPUCL_OK;
}

tpucl_status tp_bench_add_ratio(tp_bench *bench, double value, const char *format, ...)
{
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    tp_bench_ratio ratio = {keep(bench, name), value};
    if (!ratio.name) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_bench_ratios_push(&bench->suite->ratios, ratio));
    return TPUCL_OK;
}

tpucl_status tp_bench_add_note(tp_bench *bench, const char *note)
{
    const char *copy = keep(bench, note);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_bench_notes_push(&bench->report->notes, copy));
    return TPUCL_OK;
}

void tp_bench_progress(const tp_bench *bench, const char *what, int32_t done, int32_t total)
{
    if (bench->options->progress) bench->options->progress(bench->options->user, what, done, total);
}

/* Linux names the processor in /proc/cpuinfo; elsewhere it stays "unknown". */
static void describe_host(tp_bench_report *report)
{
    char line[256], *value;
    FILE *file = fopen("/proc/cpuinfo", "r");
    strcpy(report->processor, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) || !(value = strchr(line, ':'))) continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(report->processor, sizeof report->processor, "%.120s", value);
        break;
    }
    if (file) fclose(file);
    report->processor_count = tp_thread_processor_count();
    tp_clock_format(tp_clock_wall_ns(), report->time);
}

static tpucl_status open_device(tp_bench_report *report, const char *selector)
{
    tp_device_list *list = NULL;
    tp_device_choice choice;
    tp_device_options options = {0};
    TP_TRY(tp_device_list_create(&list));
    tpucl_status status = tp_device_list_select(list, selector, &choice);
    if (status == TPUCL_OK && choice.split > 1)
        status =
            TP_FAIL(TPUCL_INVALID_ARGUMENT,
                    "device '%s': benchmarks run on whole devices, not on sub-devices", selector);
    if (status == TPUCL_OK) status = tp_device_open(list, choice.index, &options, &report->device);
    tp_device_list_destroy(list);
    return status;
}

static tpucl_status describe_machine(tp_bench_report *report)
{
    const tp_device_caps *caps = tp_device_get_caps(report->device);
    report->machine = tp_arena_printf(
        report->arena, "%s, %d processor%s; device %s: %s (%s %s)", report->processor,
        report->processor_count, report->processor_count == 1 ? "" : "s",
        tp_device_label(report->device), caps->name, caps->platform, caps->driver);
    return report->machine ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status run_suites(const tp_bench_options *options, tp_bench_report *report)
{
    const char *names[SUITE_COUNT];
    bool found = false;
    for (size_t i = 0; i < SUITE_COUNT; i++) {
        names[i] = suites[i].name;
        found = found || !options->suite || !strcmp(options->suite, names[i]);
    }
    if (!found) {
        const char *nearest = tp_str_nearest(options->suite, names, SUITE_COUNT);
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "there is no suite '%s'; did you mean '%s'?",
                       options->suite, nearest ? nearest : names[0]);
    }
    TP_TRY(open_device(report, options->selector));
    TP_TRY(describe_machine(report));
    for (size_t i = 0; i < SUITE_COUNT; i++) {
        if (options->suite ? strcmp(options->suite, names[i]) != 0 : !suites[i].is_usual) continue;
        TP_TRY(tp_bench_suites_push(&report->suites, (tp_bench_suite){.name = names[i]}));
        tp_bench bench = {options, report, &report->suites.items[report->suites.count - 1]};
        TP_TRY(suites[i].run(&bench));
    }
    return TPUCL_OK;
}

tpucl_status tp_bench_run(const tp_bench_options *options, tp_bench_report **out_report)
{
    *out_report = NULL;
    tp_bench_report *report = TP_NEW(tp_bench_report);
    if (!report) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_arena_create(0, &report->arena), failed);
    describe_host(report);
    TP_TRY_GOTO(status, run_suites(options, report), failed);
    *out_report = report;
    return TPUCL_OK;
failed:
    tp_bench_report_destroy(report);
    return status;
}

void tp_bench_report_destroy(tp_bench_report *report)
{
    if (!report) return;
    for (size_t i = 0; i < report->suites.count; i++) {
        tp_bench_rows_deinit(&report->suites.items[i].rows);
        tp_bench_ratios_deinit(&report->suites.items[i].ratios);
    }
    tp_bench_suites_deinit(&report->suites);
    tp_bench_notes_deinit(&report->notes);
    tp_device_close(report->device);
    tp_arena_destroy(report->arena);
    tp_free(report);
}
