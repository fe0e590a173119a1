/* SPDX-License-Identifier: Apache-2.0
 * tpucl check: what a real TPU would say to a run, before anything runs. */
#include <stdio.h>
#include <string.h>
#include <tpucl/tools.h>
#include "keras_run.h"
#include "run_options.h"
#include "ui.h"

static const tp_opt_row options[] = {
    {.name = "set",
     .kind = TP_OPT_LIST,
     .value = "KEY=VALUE",
     .offset = offsetof(tp_run_values, set),
     .help = "change any key of the configuration ('per_core_batch=128'); as often as needed"},
    {.name = "topology",
     .kind = TP_OPT_TEXT,
     .value = "NAME|FILE",
     .offset = offsetof(tp_run_values, topology),
     .complete = TP_COMPLETE_TOPOLOGY,
     .help = "check it for this machine: a built-in one, or a JSON file"},
    {.name = "state",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(tp_run_values, state),
     .help = "list every variable with its kind, dtype and bytes: weights and what the optimizer "
             "keeps"},
    TP_RUN_OPTION_WEIGHTS,
    TP_RUN_OPTION_DATA,
    {.name = NULL},
};

static const char *colour_of(const char *severity)
{
    if (!strcmp(severity, "error")) return tp_ui_red(stdout);
    return !strcmp(severity, "warning") ? tp_ui_bold(stdout) : "";
}

static void print_finding(const tpucl_finding *finding)
{
    printf("%s%s%s", colour_of(finding->severity), finding->severity, tp_ui_plain(stdout));
    if (*finding->where) printf(" %s", finding->where);
    printf(": %s [%s]\n", finding->text, finding->rule);
    if (*finding->remedy) printf("    %s\n", finding->remedy);
}

static uint64_t bytes_of_kind(const tpucl_check_report *report, const char *kind)
{
    uint64_t bytes = 0;
    tpucl_check_state state;
    for (int32_t i = 0; (state = tpucl_check_report_state(report, i)).name; i++)
        if (!kind || !strcmp(state.kind, kind)) bytes += (uint64_t)state.bytes;
    return bytes;
}

/* "variables: 3.1 MiB on each device: 1.0 MiB weight, 1.0 MiB first_moment, ..." */
static void print_state_sums(const tpucl_check_report *report)
{
    char text[TP_UI_TEXT_BYTES];
    const char *kind, *separator = ":";
    printf("variables: %s on each device", tp_ui_bytes(bytes_of_kind(report, NULL), text));
    for (int32_t k = 0; (kind = tpucl_check_state_kind(k)) != NULL; k++) {
        const uint64_t bytes = bytes_of_kind(report, kind);
        if (!bytes) continue;
        printf("%s %s %s", separator, tp_ui_bytes(bytes, text), kind);
        separator = ",";
    }
    printf("\n");
}

static void print_state(const tpucl_check_report *report)
{
    tpucl_check_state state;
    printf("%s%-14s %-5s %-20s %12s %14s  %s%s\n", tp_ui_bold(stdout), "kind", "dtype", "shape",
           "elements", "bytes", "variable", tp_ui_plain(stdout));
    for (int32_t i = 0; (state = tpucl_check_report_state(report, i)).name; i++)
        printf("%-14s %-5s %-20s %12lld %14lld  %s\n", state.kind, state.dtype, state.shape,
               (long long)state.elements, (long long)state.bytes, state.name);
}

static const char *plural(int32_t count)
{
    return count == 1 ? "" : "s";
}

static void print_report(const tpucl_check_report *report, bool lists_state)
{
    const tpucl_check_summary *summary = tpucl_check_report_summary(report);
    tpucl_finding finding;
    for (int32_t i = 0; (finding = tpucl_check_report_finding(report, i)).text; i++)
        print_finding(&finding);
    printf("%d error%s, %d warning%s, %d note%s\n", (int)summary->errors, plural(summary->errors),
           (int)summary->warnings, plural(summary->warnings), (int)summary->notes,
           plural(summary->notes));
    if (!*summary->topology) return;
    printf("%s on %s: %lld examples per core, %lld on %d cores", summary->name, summary->topology,
           (long long)summary->per_core_batch, (long long)summary->global_batch,
           (int)summary->cores);
    if (summary->errors) { /* there was no step to look at */
        printf("\n");
        return;
    }
    printf("; ");
    if (summary->mxu_share > 0) printf("%.0f %% of the MXU, ", 100 * summary->mxu_share);
    printf("%.0f %% of HBM bytes are no padding\n",
           summary->hbm_share > 0 ? 100 * summary->hbm_share : 100.0);
    print_state_sums(report);
    if (lists_state) print_state(report);
}

static tpucl_status make_report(const tp_run_values *values, const char *operand,
                                tpucl_check_report **out_report)
{
    const tpucl_run_options settings = tp_run_settings(values, operand);
    if (!tp_keras_run_is_model(operand)) return tpucl_check(&settings, out_report);
    tpucl_import_options model = tpucl_import_options_default();
    model.model = operand;
    model.weights = values->weights;
    return tpucl_check_keras(&model, &settings, out_report);
}

static tp_exit run_check(const tp_cmd *cmd, int argc, char **argv)
{
    tp_run_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    tpucl_check_report *report = NULL;
    char *json = NULL;
    tpucl_status status = make_report(&values, operands.items[0], &report);
    if (status == TPUCL_OK) status = tpucl_check_report_json(report, &json);
    if (status != TPUCL_OK) {
        tpucl_check_report_destroy(report);
        return tp_cmd_fail(cmd, status);
    }
    if (tp_cmd_wants_table(&values.common)) print_report(report, values.state);
    code = tp_cmd_write_json(cmd, values.common.json, json);
    if (code == TP_EXIT_DONE && tpucl_check_report_summary(report)->errors) code = TP_EXIT_USAGE;
    tpucl_free(json);
    tpucl_check_report_destroy(report);
    return code;
}

const tp_cmd tp_cmd_check = {
    .name = "check",
    .summary = "find what a real TPU would refuse or do slowly, without running",
    .operands = "CONFIG|MODEL",
    .min_operands = 1,
    .max_operands = 1,
    .complete = TP_COMPLETE_FILE,
    .description =
        "Reads the configuration, the model and the data's headers, builds one core's "
        "training step and reports everything at once, each finding with the layer, "
        "the numbers and what to do: batch sizes off the rule, dimensions that are "
        "padded to tiles and the share of MXU and HBM they waste, ops that are slow on "
        "a TPU, hazards of precision.\n\n"
        "MODEL is a file of Keras (.keras, .h5, the JSON of to_json()): everything in it "
        "that a TPU or tpucl does not have is found at once, each with its layer: open "
        "dimensions, text and Python code, ops whose result has no fixed size, 64-bit "
        "numbers, arguments and layers that there are none of. Without --data the "
        "step is looked at as if there were data that fit.\n\n"
        "Nothing runs and no device is needed. The exit code is 0 when the run could "
        "start, whatever was found, and 2 when there are errors.",
    .examples =
        "tpucl check configs/fashion-mlp.json\nthe run as it is\n"
        "tpucl check run.json --topology v3-8 --set per_core_batch=64\n"
        "the same on another machine, with another batch\n"
        "tpucl check model.keras --topology v2-8 --set precision=mixed_bfloat16\na Keras model\n"
        "tpucl check run.json --json - | jq '.findings[].rule'\nfor scripts",
    .options = options,
    .run = run_check,
};
