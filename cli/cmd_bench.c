/* SPDX-License-Identifier: Apache-2.0
 * tpucl bench: the comparison of the TPU-like way with the K80-like and the CPU way, on this
 * machine. */
#include <stdio.h>
#include <string.h>
#include <tpucl/tools.h>
#include <tpucl/version.h>
#include "cmd.h"
#include "ui.h"

typedef struct bench_values {
    tp_cmd_common common;
    const char *device;
    bool quick;
} bench_values;

static const tp_opt_row options[] = {
    {.name = "device",
     .kind = TP_OPT_TEXT,
     .value = "SELECTOR",
     .offset = offsetof(bench_values, device),
     .help = "which device; see 'tpucl help devices'"},
    {.name = "quick",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(bench_values, quick),
     .help = "fewer sizes and repeats: to see that it works, not to quote"},
    {.name = NULL},
};

static void on_progress(void *user, const char *what, int32_t done, int32_t total)
{
    tp_ui_progress *progress = user;
    if (done == 0)
        *progress = (tp_ui_progress){0}; /* the next list of work: an estimate of its own */
    tp_ui_progress_draw(progress, "bench", done, total, 0, "", what);
}

static void print_suite(const tpucl_bench_report *report, const char *suite)
{
    tp_ui_table table;
    tpucl_bench_row row;
    tpucl_bench_ratio ratio;
    char value[TP_UI_TEXT_BYTES];
    bool is_first = true;
    for (int32_t i = 0; (row = tpucl_bench_report_row(report, i)).name; ++i) {
        if (strcmp(row.suite, suite) != 0) continue;
        if (is_first)
            tp_ui_table_begin(&table, "case|side|>seconds|>spread|>value|unit|>roof|kind|note");
        is_first = false;
        tp_ui_cell(&table, "%s", row.name);
        tp_ui_cell(&table, "%s", row.side);
        tp_ui_cell(&table, row.seconds > 0 ? "%.4g" : "-", row.seconds);
        tp_ui_cell(&table, row.spread > 0 ? "%.0f %%" : "-", 100 * row.spread);
        snprintf(value, sizeof value, row.value >= 1000 ? "%.0f" : "%.4g", row.value);
        tp_ui_cell(&table, "%s", value);
        tp_ui_cell(&table, "%s", row.unit);
        tp_ui_cell(&table, row.share > 0 ? "%.0f %%" : "-", 100 * row.share);
        tp_ui_cell(&table, "%s", row.projected ? "projected" : "measured");
        tp_ui_cell(&table, "%s", row.note ? row.note : "");
    }
    if (is_first) return;
    printf("%s%s%s\n", tp_ui_bold(stdout), suite, tp_ui_plain(stdout));
    tp_ui_table_end(&table, stdout);
    for (int32_t i = 0; (ratio = tpucl_bench_report_ratio(report, i)).name; ++i)
        if (!strcmp(ratio.suite, suite))
            printf("%s: %.2f times as fast\n", ratio.name, ratio.value);
    if (tpucl_bench_report_sentence(report, suite))
        printf("%s\n", tpucl_bench_report_sentence(report, suite));
    printf("\n");
}

static tp_exit run_bench(const tp_cmd *cmd, int argc, char **argv)
{
    bench_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    tp_ui_progress progress = {0};
    tpucl_bench_options settings = tpucl_bench_options_default();
    settings.device = values.device;
    settings.suite = operands.count ? operands.items[0] : NULL;
    settings.quick = values.quick;
    settings.progress = on_progress;
    settings.user = &progress;
    tpucl_bench_report *report = NULL;
    char *json = NULL;
    tpucl_status status = tpucl_bench(&settings, &report);
    tp_ui_progress_clear();
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    if (tp_cmd_wants_table(&values.common)) {
        printf("tpucl %s on %s\n\n", tpucl_version_string(), tpucl_bench_report_machine(report));
        for (int32_t i = 0; tpucl_bench_suite_name(i); ++i)
            print_suite(report, tpucl_bench_suite_name(i));
    }
    for (int32_t i = 0; tpucl_bench_report_note(report, i); ++i)
        fprintf(stderr, "note: %s\n", tpucl_bench_report_note(report, i));
    if ((status = tpucl_bench_report_json(report, &json)) == TPUCL_OK)
        code = tp_cmd_write_json(cmd, values.common.json, json);
    else
        code = tp_cmd_fail(cmd, status);
    tpucl_free(json);
    tpucl_bench_report_destroy(report);
    return code;
}

const tp_cmd tp_cmd_bench = {
    .name = "bench",
    .summary = "compare the TPU-like with the K80-like and the CPU way, on this machine",
    .operands = "[SUITE]",
    .max_operands = 1,
    .description =
        "Measures each case on all sides in turn and prints the medians, how far the "
        "repeats were apart (slowest - fastest, as a share of the median), "
        "and ratios. 'roof' is the share of what this device can do at most, computing "
        "and moving, as measured by suite 'roofline'.\n\n"
        "SUITE is 'roofline' (peaks of the device, beside plain C on the host), 'gemm' "
        "(square products), 'conv' (the convolutions of ResNet-50 and their gradients), "
        "'vpu' (what memory bounds: normalisations, losses, optimizers), 'train' "
        "(training on Fashion-MNIST, the three ways), 'growth' (8 to 1024 examples per "
        "core, 2 to 64 layers) or 'input' (a convnet on JPEG files, augmented on the host, on "
        "the device, or not, and how long it waits for its input); without one, roofline, gemm and "
        "train. Results are "
        "checked before they are timed.\n\n"
        "Where kernels are used for the first time they are built and checked, which "
        "takes minutes and is not in the figures.\n\n"
        "What is 'projected' was computed from a topology's figures, not measured, and "
        "is in no ratio. "
        "docs/benchmarks.md says what is compared and what is not claimed.",
    .examples = "tpucl bench\nthe comparison\n"
                "tpucl bench gemm --json gemm.json\nthe products alone, with a report\n"
                "tpucl bench --quick\ndoes it work?",
    .options = options,
    .run = run_bench,
};
