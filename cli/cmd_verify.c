/* SPDX-License-Identifier: Apache-2.0
 * tpucl verify: does a device reproduce the contract's bits, kernel by kernel? */
#include <stdio.h>
#include <string.h>
#include <tpucl/tools.h>
#include "cmd.h"
#include "ui.h"

typedef struct verify_values {
    tp_cmd_common common;
    const char *device, *variant;
    bool quick;
} verify_values;

static const tp_opt_row options[] = {
    {.name = "device",
     .kind = TP_OPT_TEXT,
     .value = "SELECTOR",
     .offset = offsetof(verify_values, device),
     .help = "which device; see 'tpucl help devices'"},
    {.name = "quick",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(verify_values, quick),
     .help = "leave out the cases that take long"},
    {.name = "variant",
     .kind = TP_OPT_TEXT,
     .value = "NAME",
     .offset = offsetof(verify_values, variant),
     .help =
         "check this kernel variant alone; 'generated' is the code that is generated for graphs"},
    {.name = NULL},
};

typedef struct display {
    tp_ui_progress progress;
    int64_t verbose;
} display;

static void on_check(void *user, const tpucl_verify_check *check, int32_t done, int32_t total)
{
    display *shown = user;
    if (shown->verbose > 0) {
        tp_ui_progress_clear();
        fprintf(stderr, "%s  %s  %s  %.2f s  %s\n", check->status, check->variant, check->name,
                check->seconds, check->reason ? check->reason : "");
    }
    tp_ui_progress_draw(&shown->progress, "verify", done, total, 0, "", check->name);
}

/* A row per variant; what failed follows in full. */
static void print_table(const tpucl_verify_report *report)
{
    enum { MAX_VARIANTS = 64 };
    struct {
        const char *name;
        int passed, failed, skipped;
        double seconds;
    } rows[MAX_VARIANTS];
    int count = 0;
    tpucl_verify_check check;
    for (int32_t i = 0; (check = tpucl_verify_report_check(report, i)).name; ++i) {
        int row = 0;
        while (row < count && strcmp(rows[row].name, check.variant) != 0)
            ++row;
        if (row == MAX_VARIANTS) continue;
        if (row == count) {
            memset(&rows[count], 0, sizeof rows[0]);
            rows[count++].name = check.variant;
        }
        rows[row].passed += !strcmp(check.status, "passed");
        rows[row].failed += !strcmp(check.status, "failed");
        rows[row].skipped += !strcmp(check.status, "skipped");
        rows[row].seconds += check.seconds;
    }
    tp_ui_table table;
    tp_ui_table_begin(&table, "variant|>passed|>failed|>skipped|>seconds");
    for (int row = 0; row < count; ++row) {
        tp_ui_cell(&table, "%s", rows[row].name);
        tp_ui_cell(&table, "%d", rows[row].passed);
        tp_ui_cell(&table, "%d", rows[row].failed);
        tp_ui_cell(&table, "%d", rows[row].skipped);
        tp_ui_cell(&table, "%.2f", rows[row].seconds);
    }
    tp_ui_table_end(&table, stdout);
    for (int32_t i = 0; (check = tpucl_verify_report_check(report, i)).name; ++i)
        if (!strcmp(check.status, "failed"))
            printf("failed: %s on %s: %s\n", check.variant, check.name, check.reason);
}

static tp_exit finish(const tp_cmd *cmd, const verify_values *values,
                      const tpucl_verify_report *report)
{
    const tpucl_verify_summary *summary = tpucl_verify_report_summary(report);
    if (tp_cmd_wants_table(&values->common)) {
        print_table(report);
        printf("%s%s%s: %s on %s\n", summary->exact ? tp_ui_green(stdout) : tp_ui_red(stdout),
               summary->exact ? "exact" : "NOT EXACT", tp_ui_plain(stdout),
               summary->exact ? "every result has the contract's bits"
                              : "results can differ from the contract",
               summary->device.name);
    }
    char *json = NULL;
    tpucl_status status = tpucl_verify_report_json(report, &json);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    tp_exit code = tp_cmd_write_json(cmd, values->common.json, json);
    tpucl_free(json);
    if (summary->exact && summary->failed && code == TP_EXIT_DONE)
        fprintf(stderr, "note: what failed is passed over here; other variants do its work\n");
    return code == TP_EXIT_DONE && !summary->exact ? TP_EXIT_FAILED : code;
}

static tp_exit run_verify(const tp_cmd *cmd, int argc, char **argv)
{
    verify_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    display shown = {.verbose = values.common.verbose};
    tpucl_verify_options settings = tpucl_verify_options_default();
    settings.device = values.device;
    settings.variant = values.variant;
    settings.quick = values.quick;
    settings.progress = on_check;
    settings.user = &shown;
    tpucl_verify_report *report = NULL;
    tpucl_status status = tpucl_verify(&settings, &report);
    tp_ui_progress_clear();
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    code = finish(cmd, &values, report);
    tpucl_verify_report_destroy(report);
    return code;
}

const tp_cmd tp_cmd_verify = {
    .name = "verify",
    .summary = "check that a device reproduces the contract's bits",
    .operands = "",
    .description = "Runs every kernel variant on ragged shapes with guarded buffers, and small "
                   "graphs that use all of "
                   "the generated code, and compares every bit with the reference interpreter.\n\n"
                   "A variant that fails is never used on this device; the next one in the list "
                   "does its work. The "
                   "device is exact, and the exit code 0, when every kind of work has a variant "
                   "that is right.",
    .examples = "tpucl verify\nthe default device\n"
                "tpucl verify --device gpu --json report.json\nanother one, with a report\n"
                "tpucl verify --variant generated -v\nthe generated code alone, a line per check",
    .options = options,
    .run = run_verify,
};
