/* SPDX-License-Identifier: Apache-2.0
 * tpucl tune: the fastest way to compute the products of a training, found by trying. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tpucl/tune.h>
#include "cmd.h"
#include "run_options.h"
#include "ui.h"

typedef struct tune_values {
    tp_cmd_common common;
    tp_opt_list set;
    const char *topology, *device, *problems, *output_dir;
    int64_t seconds, rounds;
    bool again, cpu_time;
} tune_values;

static const tp_opt_row options[] = {
    {.name = "problems",
     .kind = TP_OPT_TEXT,
     .value = "FILE",
     .complete = TP_COMPLETE_FILE,
     .offset = offsetof(tune_values, problems),
     .help = "the products of this file instead of a configuration's, one a line"},
    {.name = "seconds",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .offset = offsetof(tune_values, seconds),
     .help = "stop after about N seconds, shared out evenly; default when everything was tried"},
    {.name = "rounds",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 3,
     .max = 99,
     .offset = offsetof(tune_values, rounds),
     .help =
         "compare what is fastest N times with what heuristics choose, in alternation; default 7"},
    {.name = "again",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(tune_values, again),
     .help = "also what has a record of this device, driver and version already"},
    {.name = "cpu-time",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(tune_values, cpu_time),
     .help =
         "count processor time instead of the clock's: for CPU devices of busy machines; how work "
         "is shared out among compute units does not show in it and is left alone"},
    {.name = "output-dir",
     .kind = TP_OPT_TEXT,
     .value = "FOLDER",
     .complete = TP_COMPLETE_FOLDER,
     .offset = offsetof(tune_values, output_dir),
     .help = "keep the records there instead of where runs look for them"},
    {.name = "set",
     .kind = TP_OPT_LIST,
     .value = "KEY=VALUE",
     .offset = offsetof(tune_values, set),
     .help = "change any key of the configuration; as often as needed"},
    {.name = "topology",
     .kind = TP_OPT_TEXT,
     .value = "NAME|FILE",
     .offset = offsetof(tune_values, topology),
     .complete = TP_COMPLETE_TOPOLOGY,
     .help = "the machine to be: a built-in one, or a JSON file"},
    {.name = "device",
     .kind = TP_OPT_TEXT,
     .value = "SELECTOR",
     .offset = offsetof(tune_values, device),
     .help = "which device; see 'tpucl help devices'"},
    {.name = NULL},
};

/* ---- interruption ---- */

static volatile sig_atomic_t was_interrupted;

static void on_signal(int number)
{
    (void)number;
    was_interrupted = 1;
}

static bool should_stop(void *user)
{
    (void)user;
    return was_interrupted != 0;
}

/* The first signal ends it after the setting that is being tried, the second one at once. */
static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- what is shown ---- */

static void on_progress(void *user, const tpucl_tune_progress *progress)
{
    enum { PARTS = 1000 };
    char detail[160];
    snprintf(detail, sizeof detail, "%d of %d: %.90s, %.2f times as fast",
             (int)progress->product + 1, (int)progress->products, progress->name,
             progress->best_ratio);
    const int64_t done = progress->product * PARTS + (int64_t)(progress->share * PARTS);
    tp_ui_progress_draw(user, "tune", done, (int64_t)progress->products * PARTS, 0, "", detail);
}

static void print_time(tp_ui_table *table, bool exists, double seconds)
{
    if (exists)
        tp_ui_cell(table, "%.4g", 1e3 * seconds);
    else
        tp_ui_cell(table, "-");
}

static void print_report(const tpucl_tune_report *report)
{
    tp_ui_table table;
    tpucl_tune_product product;
    int better = 0, left = 0, all = 0;
    tp_ui_table_begin(&table, "product|>uses|>default ms|>best ms|>ratio|>spread|settings");
    for (; (product = tpucl_tune_report_product(report, all)).name; ++all) {
        const bool exists = product.best != NULL;
        const bool is_left = !strcmp(product.state, "left");
        better += exists && product.ratio > 1;
        left += is_left;
        tp_ui_cell(&table, "%s", product.name);
        tp_ui_cell(&table, "%lld", (long long)product.uses);
        print_time(&table, exists, product.default_seconds);
        print_time(&table, exists, product.best_seconds);
        tp_ui_cell(&table, exists ? "%.2f" : "-", product.ratio);
        tp_ui_cell(&table, exists ? "%.0f %%" : "-", 100 * product.spread);
        if (exists)
            tp_ui_cell(&table, "%s", product.ratio > 1 ? product.best : "as by default");
        else
            tp_ui_cell(&table, "%s", is_left ? "not done" : product.text);
    }
    tp_ui_table_end(&table, stdout);
    printf("%d of %d products are faster than by default; records are in %s\n", better, all,
           tpucl_tune_report_file(report));
    if (left > 0) printf("%d are not done; the same command goes on with them\n", left);
}

static bool has_failed(const tpucl_tune_report *report)
{
    tpucl_tune_product product;
    for (int i = 0; (product = tpucl_tune_report_product(report, i)).name; ++i)
        if (!strcmp(product.state, "failed")) return true;
    return false;
}

static tp_exit finish(const tp_cmd *cmd, const tune_values *values, const tpucl_tune_report *report)
{
    char *json = NULL;
    if (tp_cmd_wants_table(&values->common)) print_report(report);
    for (int32_t i = 0; tpucl_tune_report_wrong(report, i); ++i)
        fprintf(stderr, "note: not timed, it is wrong here: %s\n",
                tpucl_tune_report_wrong(report, i));
    tpucl_status status = tpucl_tune_report_json(report, &json);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    tp_exit code = tp_cmd_write_json(cmd, values->common.json, json);
    tpucl_free(json);
    if (code != TP_EXIT_DONE) return code;
    if (tpucl_tune_report_stopped(report)) return TP_EXIT_INTERRUPTED;
    return has_failed(report) ? TP_EXIT_FAILED : TP_EXIT_DONE;
}

static tp_exit run_tune(const tp_cmd *cmd, int argc, char **argv)
{
    tune_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    if ((operands.count > 0) == (values.problems != NULL))
        return tp_cmd_fail_usage(cmd, operands.count
                                          ? "CONFIG and --problems at once"
                                          : "either CONFIG or --problems FILE is needed");
    const tp_run_values run = {
        .common = values.common, .set = values.set, .topology = values.topology};
    const tpucl_run_options config = tp_run_settings(&run, operands.items[0]);
    tp_ui_progress progress = {0};
    tpucl_tune_options settings = tpucl_tune_options_default();
    settings.device = values.device;
    settings.run = values.problems ? NULL : &config;
    settings.problems_file = values.problems;
    settings.folder = values.output_dir;
    settings.seconds = (double)values.seconds;
    settings.rounds = (int32_t)values.rounds;
    settings.again = values.again;
    settings.cpu_time = values.cpu_time;
    settings.progress = on_progress;
    settings.should_stop = should_stop;
    settings.user = &progress;
    catch_signals();
    tpucl_tune_report *report = NULL;
    tpucl_status status = tpucl_tune(&settings, &report);
    tp_ui_progress_clear();
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    code = finish(cmd, &values, report);
    tpucl_tune_report_destroy(report);
    return code;
}

const tp_cmd tp_cmd_tune = {
    .name = "tune",
    .summary = "find the fastest settings of kernels for the products of a training",
    .operands = "[CONFIG]",
    .max_operands = 1,
    .complete = TP_COMPLETE_FILE,
    .description =
        "Goes through the matrix products and convolutions of a training step, tries other tiles, "
        "layouts and variants for each, and keeps what is faster than the heuristics as a record. "
        "Later runs on this device use it. Records change the time of a run, never a bit of it: a "
        "setting is compared with the reference before it is timed, and one that is wrong is never "
        "timed.\n\n"
        "Each record is written as soon as it is found, so the command can be interrupted and "
        "given again: what has a record of this device, driver and version is passed over.\n\n"
        "A file for --problems has a product on each line: 'dot M N K [batch=B] "
        "[layout=NN|NT|TN|TT]' or 'conv IMAGES H W C FILTERS KHxKW [stride=S] [pad=same|valid|P] "
        "[dilation=D] [groups=G] [op=forward|input_grad|filter_grad]'; '#' begins a comment.\n\n"
        "Records go to a folder of yours: TPUCL_TUNING_DIR, else tpucl/tuning in XDG_DATA_HOME, "
        "else ~/.local/share/tpucl/tuning. 'tpucl devices --why PRODUCT' shows which one counts.",
    .examples = "tpucl tune configs/fashion-conv.json\nall products of that training\n"
                "tpucl tune --problems products.txt --seconds 60\nthose of a file, for a minute\n"
                "tpucl tune run.json --device gpu --json tuned.json\nanother device, with a report",
    .options = options,
    .run = run_tune,
};
