/* SPDX-License-Identifier: Apache-2.0
 * tpucl eval: loss and accuracy of saved parameters. */
#include <stdio.h>
#include "run_options.h"
#include "ui.h"

static const tp_opt_row options[] = {
    {.name = "params",
     .kind = TP_OPT_TEXT,
     .value = "FILE",
     .complete = TP_COMPLETE_FILE,
     .offset = offsetof(tp_run_values, params),
     .help =
         "the parameters, a safetensors file; default: params.safetensors in the configuration's "
         "output_dir"},
    {.name = "part",
     .kind = TP_OPT_TEXT,
     .value = "train|test",
     .offset = offsetof(tp_run_values, part),
     .help = "which part of the data; default test"},
    TP_RUN_OPTION_ROWS,
    {.name = NULL},
};

static tpucl_status load(tpucl_run *run, const char *params)
{
    char path[4096];
    if (!params) {
        snprintf(path, sizeof path, "%s/params.safetensors", tpucl_run_get_info(run)->output_dir);
        params = path;
    }
    return tpucl_run_load_params(run, params);
}

static tp_exit evaluate(const tp_cmd *cmd, const tp_run_values *values, tpucl_run *run)
{
    tpucl_epoch result;
    char *json = NULL;
    tpucl_status status;
    tp_run_print_summary(run);
    if ((status = load(run, values->params)) != TPUCL_OK ||
        (status = tpucl_run_evaluate(run, values->part, &result)) != TPUCL_OK ||
        (status = tpucl_run_evaluation_json(run, values->part, &result, &json)) != TPUCL_OK)
        return tp_cmd_fail(cmd, status);
    if (tp_cmd_wants_table(&values->common)) {
        tp_ui_table table;
        tp_ui_table_begin(&table, "part|>loss|>accuracy|>seconds");
        tp_ui_cell(&table, "%s", values->part ? values->part : "test");
        tp_ui_cell(&table, "%.4f", result.eval_loss);
        tp_ui_cell(&table, result.eval_accuracy < 0 ? "-" : "%.2f %%", 100 * result.eval_accuracy);
        tp_ui_cell(&table, "%.2f", result.eval_seconds);
        tp_ui_table_end(&table, stdout);
        for (int32_t i = 0; i < result.metric_count; i++)
            printf("%-36s %.4f\n", result.metric_names[i], result.eval_metrics[i]);
    }
    tp_exit code = tp_cmd_write_json(cmd, values->common.json, json);
    tpucl_free(json);
    return code;
}

static tp_exit run_eval(const tp_cmd *cmd, int argc, char **argv)
{
    tp_run_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    if (tp_cmd_would_replace(&values.common, values.params))
        return tp_cmd_fail_usage(cmd, "--json '%s' would replace the parameters, which are read",
                                 values.common.json);
    tpucl_run *run = NULL;
    tpucl_status status = tp_run_open(&values, operands.items[0], &run);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    if (!values.params && !*tpucl_run_get_info(run)->output_dir)
        code = tp_cmd_fail_usage(cmd, "--params is missing, and '%s' has no output_dir to look in",
                                 operands.items[0]);
    else
        code = evaluate(cmd, &values, run);
    tpucl_run_destroy(run);
    return code;
}

const tp_cmd tp_cmd_eval = {
    .name = "eval",
    .summary = "loss and accuracy of saved parameters",
    .operands = "CONFIG",
    .min_operands = 1,
    .max_operands = 1,
    .complete = TP_COMPLETE_FILE,
    .description =
        "Evaluates parameters that 'tpucl train' saved, on the data of CONFIG. Every example "
        "counts once, the last partial batch included.",
    .examples = "tpucl eval run.json --params out/params.safetensors\non the test part\n"
                "tpucl eval run.json --params out/params.safetensors --part train --json -\n"
                "on the training part, as JSON",
    .options = options,
    .run = run_eval,
};
