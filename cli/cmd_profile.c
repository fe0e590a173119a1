/* SPDX-License-Identifier: Apache-2.0
 * tpucl profile: where the time of a training step goes, launch by launch or kernel by kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "run_options.h"
#include "ui.h"

typedef struct profile_values {
    tp_run_values run; /* first: TP_RUN_OPTION_ROWS */
    int64_t top;
    bool by_kernel;
} profile_values;

static const tp_opt_row options[] = {
    {.name = "steps",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .offset = offsetof(profile_values, run.steps),
     .help = "measure N steps; default 5"},
    {.name = "top",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .offset = offsetof(profile_values, top),
     .help = "show the N rows that take longest; default 30"},
    {.name = "by-kernel",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(profile_values, by_kernel),
     .help = "a row for each OpenCL kernel instead of each launch"},
    TP_RUN_OPTION_DATA,
    TP_RUN_OPTION_ROWS,
    {.name = NULL},
};

static int by_seconds(const void *a, const void *b)
{
    const double x = ((const tpucl_launch_profile *)a)->seconds;
    const double y = ((const tpucl_launch_profile *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Adds up the launches of each kernel, in place; returns how many there are. */
static int32_t merge_kernels(tpucl_launch_profile *rows, int32_t count)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t k = 0;
        while (k < kept && strcmp(rows[k].kernel, rows[i].kernel) != 0)
            k++;
        if (k == kept) {
            rows[kept] = rows[i];
            rows[kept++].name = rows[i].kernel;
            continue;
        }
        rows[k].runs += rows[i].runs;
        rows[k].seconds += rows[i].seconds;
        rows[k].flops += rows[i].flops;
        rows[k].bytes += rows[i].bytes;
    }
    return kept;
}

static void print_rate(tp_ui_table *table, double work, double seconds)
{
    if (work > 0 && seconds > 0)
        tp_ui_cell(table, "%.1f", 1e-9 * work / seconds);
    else
        tp_ui_cell(table, "-");
}

static void print_rows(const tpucl_profile *profile, const tpucl_launch_profile *rows,
                       int32_t count, int64_t top)
{
    tp_ui_table table;
    tp_ui_table_begin(&table, "launch|>runs|>ms a step|>share|>GFLOP/s|>GB/s");
    for (int32_t i = 0; i < count && i < top; i++) {
        tp_ui_cell(&table, "%.100s", rows[i].name);
        tp_ui_cell(&table, "%.0f", rows[i].runs);
        tp_ui_cell(&table, "%.3f", 1e3 * rows[i].seconds);
        tp_ui_cell(&table, "%.1f %%", 100 * rows[i].seconds / profile->launch_seconds);
        print_rate(&table, rows[i].flops, rows[i].seconds);
        print_rate(&table, rows[i].bytes, rows[i].seconds);
    }
    tp_ui_table_end(&table, stdout);
    if (count > top) printf("%lld more; --top shows them\n", (long long)count - (long long)top);
    printf(
        "a step takes %.3f ms; with every launch waited for %.3f ms, %.3f ms of it in launches\n",
        1e3 * profile->step_seconds, 1e3 * profile->measured_seconds,
        1e3 * profile->launch_seconds);
}

static tp_exit print_table(const tp_cmd *cmd, const profile_values *values,
                           const tpucl_profile *profile)
{
    const size_t bytes = (size_t)profile->launch_count * sizeof *profile->launches;
    tpucl_launch_profile *rows = malloc(bytes);
    if (!rows) return tp_cmd_fail(cmd, TPUCL_OUT_OF_MEMORY);
    memcpy(rows, profile->launches, bytes);
    const int32_t count =
        values->by_kernel ? merge_kernels(rows, profile->launch_count) : profile->launch_count;
    qsort(rows, (size_t)count, sizeof *rows, by_seconds);
    print_rows(profile, rows, count, values->top ? values->top : 30);
    free(rows);
    return TP_EXIT_DONE;
}

static tp_exit run_profile(const tp_cmd *cmd, int argc, char **argv)
{
    profile_values values = {0};
    tp_opt_operands operands;
    tp_exit code = TP_EXIT_DONE;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    const int64_t steps = values.run.steps ? values.run.steps : 5;
    values.run.steps = 0; /* the configuration's own stay */
    tpucl_run *run = NULL;
    tpucl_profile profile;
    char *json = NULL;
    tpucl_status status = tp_run_open(&values.run, operands.items[0], &run);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    tp_run_print_summary(run);
    if ((status = tpucl_run_profile(run, steps, &profile)) != TPUCL_OK ||
        (status = tpucl_run_profile_json(run, &profile, &json)) != TPUCL_OK) {
        code = tp_cmd_fail(cmd, status);
    } else {
        if (tp_cmd_wants_table(&values.run.common)) code = print_table(cmd, &values, &profile);
        if (code == TP_EXIT_DONE) code = tp_cmd_write_json(cmd, values.run.common.json, json);
    }
    tpucl_free(json);
    tpucl_run_destroy(run);
    return code;
}

const tp_cmd tp_cmd_profile = {
    .name = "profile",
    .summary = "where the time of a training step goes",
    .operands = "CONFIG",
    .min_operands = 1,
    .max_operands = 1,
    .complete = TP_COMPLETE_FILE,
    .description = "Trains a few steps of CONFIG with every launch of the program waited for and "
                   "timed, and prints what "
                   "took longest, with the rates it reached: multiply-adds count 2 FLOP, and every "
                   "operand is counted as "
                   "moved once.\n\n"
                   "Launches that are waited for take longer than those of a training, whose time "
                   "for a step is printed, "
                   "too; what is not in launches is feeding, sums across cores and the host. "
                   "Nothing is saved.",
    .examples =
        "tpucl profile configs/fashion-conv.json\nthe launches that take longest\n"
        "tpucl profile configs/fashion-conv.json --by-kernel --steps 20\nwhat each kernel takes\n"
        "tpucl profile run.json --topology k80 --json profile.json\non another machine, as JSON",
    .options = options,
    .run = run_profile,
};
